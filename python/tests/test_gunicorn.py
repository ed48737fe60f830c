"""Real gunicorn: its workers share one socket, and get one each besides."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from support import BY, Client, ask, started, wait_for

GUNICORN = ["-m", "gunicorn", "-c", "python:sandarac_worker.gunicorn", "--no-control-socket", "-b", "unix:shared.sock"]


def address(directory: Path, slot: int) -> str:
    return f"unix:{directory}/run/worker-{slot}.sock"


def announced(directory: Path) -> list[str]:
    try:
        return sorted(name for name in os.listdir(directory / "run") if name.startswith("worker-"))
    except FileNotFoundError:
        return []


def instance(directory: Path, slot: int) -> str:
    with Client(address(directory, slot)) as client:
        return str(json.loads(client.resume().body)["id"])


@pytest.mark.parametrize("kind", ["gthread", "sync"])
def test_each_worker_has_a_socket_and_a_resume_of_its_own(kind: str, tmp_path: Path) -> None:
    arguments = [*GUNICORN, "-k", kind, "--threads", "1", "-w", "2", "applications:plain"]
    environment = {"SANDARAC_SOCKETS": "run", "SANDARAC_RESUMES": "resumes", "SANDARAC_VERSION": "7"}
    with started(arguments, tmp_path, **environment) as gunicorn:
        wait_for(lambda: len(announced(tmp_path)) == 2, f"two sockets; it said {gunicorn.output}")
        first, second = instance(tmp_path, 0), instance(tmp_path, 1)
        assert first != second
        assert ask(address(tmp_path, 0), "/pid").text != ask(address(tmp_path, 1), "/pid").text
        response = ask(address(tmp_path, 0), "/", "a")
        assert response.state == {"id": f'"{first}"', "rev": "1", "inflight": "0", "version": '"7"'}
        with Client(address(tmp_path, 0)) as client:
            assert list(client.skills()) == ["a"]
        with Client(address(tmp_path, 1)) as client:
            assert client.skills() == {}
        # The shared one still answers, whoever of the two does.
        shared = ask(f"unix:{tmp_path}/shared.sock", "/", "b")
        assert shared.state["id"] in (f'"{first}"', f'"{second}"')

        os.kill(int(ask(address(tmp_path, 0), "/pid").text), signal.SIGKILL)
        wait_for(lambda: alive_as_another(tmp_path, first), "its successor in the same place")
        gunicorn.signal(signal.SIGTERM)
        assert gunicorn.ended() == 0
    assert announced(tmp_path) == []
    assert sorted(os.listdir(tmp_path / "resumes")) == ["worker-0.json", "worker-1.json"]


def alive_as_another(directory: Path, old: str) -> bool:
    try:
        return instance(directory, 0) != old
    except OSError:
        return False


def test_draining_takes_the_socket_away_first(tmp_path: Path) -> None:
    arguments = [*GUNICORN, "-k", "gthread", "--threads", "1", "-w", "1", "applications:plain"]
    with started(arguments, tmp_path, SANDARAC_SOCKETS="run") as gunicorn:
        wait_for(lambda: announced(tmp_path), "the socket")
        mark = tmp_path / "in-hand"
        with Client(address(tmp_path, 0)) as client:
            client.send(f'GET /touch/in-hand HTTP/1.1\r\nHost: a\r\nRequest-Class: "a";by="{BY}"\r\n\r\n'.encode())
            wait_for(mark.exists, "the application to begin")
            gunicorn.signal(signal.SIGTERM)
            wait_for(lambda: not announced(tmp_path), "the socket to go")
            mark.unlink()
            assert client.read().status == 200
        assert gunicorn.ended() == 0


def test_an_application_that_wraps_itself_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "from applications import plain\nfrom sandarac_worker import WsgiMiddleware\n\n"
        "application = WsgiMiddleware(plain)\n"
    )
    arguments = [*GUNICORN, "-k", "gthread", "-w", "1", "--preload", "app"]
    with started(arguments, tmp_path, SANDARAC_SOCKETS="run") as gunicorn:
        wait_for(lambda: announced(tmp_path), f"the socket; it said {gunicorn.output}")
        assert list(ask(address(tmp_path, 0), "/", "a").state) == ["id", "rev", "inflight"]
