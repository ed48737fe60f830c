"""Real gunicorn: its workers share one socket, and get one each besides."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import time
from pathlib import Path

import pytest

import sandarac_worker.gunicorn as hooks
from support import BY, PATIENCE, Client, ask, started, wait_for

GUNICORN = ["-m", "gunicorn", "-c", "python:sandarac_worker.gunicorn", "--no-control-socket", "-b", "unix:shared.sock"]


KINDS = ["sync", "gthread", "uvicorn.workers.UvicornWorker"]
#: Without compiled modules: of two releases of a second, the one could be taken for the other.
ENVIRONMENT = {"SANDARAC_SOCKETS": "run", "PYTHONDONTWRITEBYTECODE": "1"}
#: An application that says it loads, and goes on when it may.
SLOW = """
import os, time
from applications import {app} as application
hold = "hold"
{before}
open(f"loading-{{os.getpid()}}", "w").close()
deadline = time.monotonic() + 60
while os.path.exists(hold) and time.monotonic() < deadline:
    time.sleep(0.005)
"""
ONLY_ONE_LOADS = """
try:
    os.close(os.open("first", os.O_CREAT | os.O_EXCL))
    hold = "nothing"
except FileExistsError:
    pass
"""


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


def test_a_configuration_that_lacks_a_hook_is_told_which(tmp_path: Path) -> None:
    hooks = "child_exit, post_fork, post_worker_init, worker_exit"
    (tmp_path / "conf.py").write_text(f"from sandarac_worker.gunicorn import {hooks}\n")
    arguments = ["-m", "gunicorn", "-c", "conf.py", *GUNICORN[4:], "-w", "1", "applications:plain"]
    with started(arguments, tmp_path, **ENVIRONMENT) as gunicorn:
        assert gunicorn.ended() != 0
        assert "has to import pre_fork from sandarac_worker.gunicorn" in gunicorn.output


def alive_as_another(directory: Path, old: str) -> bool:
    try:
        return instance(directory, 0) != old
    except OSError:
        return False


#: An application with a helper process, which outlives a worker that is killed, as those of a process pool do.
HELPED = """
import os, time
from applications import {app} as application
if os.fork() == 0:
    deadline = time.monotonic() + 60
    while os.path.exists("helpers") and time.monotonic() < deadline:
        time.sleep(0.02)
    os._exit(0)
"""


def socket_owners(directory: Path) -> dict[str, str]:
    """The process behind each socket, by the socket's name. Raises ``OSError`` where nothing accepts."""
    return {
        name: ask(f"unix:{directory}/run/{name}", "/pid").text.removeprefix("hello ") for name in announced(directory)
    }


def every_socket_accepts(directory: Path, count: int) -> bool:
    try:
        return len(set(socket_owners(directory).values())) == count == len(announced(directory))
    except OSError:
        return False


@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_that_is_killed_after_a_reload_leaves_no_socket(kind: str, tmp_path: Path) -> None:
    app = "bare" if kind.startswith("uvicorn") else "plain"
    (tmp_path / "app.py").write_text(HELPED.format(app=app))
    (tmp_path / "helpers").touch()
    with started(arguments_for(kind, 600), tmp_path, **ENVIRONMENT) as gunicorn:
        try:
            wait_for(lambda: len(announced(tmp_path)) == 2, f"two sockets; it said {gunicorn.output}")
            old = set(announced(tmp_path))
            gunicorn.signal(signal.SIGHUP)
            wait_for(functools.partial(replaced, tmp_path, old), f"the new ones alone; it said {gunicorn.output}")
            # The old ones have left the lowest slots: the replacement takes one of those, not that of the killed one.
            owners = socket_owners(tmp_path)
            killed = min(owners)
            os.kill(int(owners[killed]), signal.SIGKILL)
            wait_for(lambda: set(announced(tmp_path)) & old, f"the replacement; it said {gunicorn.output}")
            wait_for(lambda: every_socket_accepts(tmp_path, 2), f"no socket but theirs, not {announced(tmp_path)}")
            assert killed not in announced(tmp_path)
            gunicorn.signal(signal.SIGTERM)
            assert gunicorn.popen.wait(PATIENCE) == 0
            assert leftovers(tmp_path) == []
        finally:
            # They hold what the test reads gunicorn's output from.
            (tmp_path / "helpers").unlink()


def leftovers(directory: Path) -> list[str]:
    """What is in the directory of sockets beside locks."""
    return sorted(name for name in os.listdir(directory / "run") if not name.endswith(".lock"))


def test_a_worker_that_is_killed_while_it_loads_leaves_no_socket(tmp_path: Path) -> None:
    write_slow(tmp_path, "gthread")
    (tmp_path / "hold").touch()
    with started(arguments_for("gthread", 600), tmp_path, **ENVIRONMENT) as gunicorn:
        wait_for(lambda: len(loading(tmp_path)) == 2, f"both to load; it said {gunicorn.output}")
        killed = min(loading(tmp_path)).removeprefix("loading-")
        assert [name for name in leftovers(tmp_path) if name.endswith(f".{killed}")]
        os.kill(int(killed), signal.SIGKILL)
        wait_for(lambda: not [name for name in leftovers(tmp_path) if name.endswith(f".{killed}")], "its socket to go")
        (tmp_path / "hold").unlink()
        wait_for(lambda: len(announced(tmp_path)) == 2, "another in its place")


def test_a_worker_that_gunicorn_kills_at_its_end_leaves_no_socket(tmp_path: Path) -> None:
    arguments = [*GUNICORN, "-k", "sync", "-w", "1", "--graceful-timeout", "1", "applications:plain"]
    with started(arguments, tmp_path, **ENVIRONMENT) as gunicorn:
        wait_for(lambda: announced(tmp_path), f"the socket; it said {gunicorn.output}")
        [worker] = socket_owners(tmp_path).values()
        # It can take no signal but the last.
        os.kill(int(worker), signal.SIGSTOP)
        gunicorn.signal(signal.SIGTERM)
        assert gunicorn.ended() == 0
    assert leftovers(tmp_path) == []


def test_sockets_of_workers_that_died_with_their_master_go_at_the_next_start(tmp_path: Path) -> None:
    arguments = [*GUNICORN, "-k", "sync", "applications:plain"]
    with started([*arguments, "-w", "3"], tmp_path, **ENVIRONMENT) as gunicorn:
        wait_for(lambda: len(announced(tmp_path)) == 3, f"three sockets; it said {gunicorn.output}")
        # So that it neither sees them die nor replaces them.
        gunicorn.signal(signal.SIGSTOP)
        for worker in socket_owners(tmp_path).values():
            os.kill(int(worker), signal.SIGKILL)
        gunicorn.signal(signal.SIGKILL)
        assert gunicorn.ended() == -signal.SIGKILL
    assert len(announced(tmp_path)) == 3
    with started([*arguments, "-w", "1"], tmp_path, **ENVIRONMENT) as gunicorn:
        wait_for(lambda: every_socket_accepts(tmp_path, 1), f"one socket; it said {gunicorn.output}")
        assert announced(tmp_path) == ["worker-0.sock"]


def test_two_masters_leave_each_other_their_sockets(tmp_path: Path) -> None:
    arguments = [*GUNICORN[:-1], "-k", "sync", "-w", "1", "applications:plain"]
    first, second = ([*arguments[:-5], f"unix:{name}.sock", *arguments[-5:]] for name in ("first", "second"))
    with started(first, tmp_path, **ENVIRONMENT) as one:
        wait_for(lambda: len(announced(tmp_path)) == 1, f"its socket; it said {one.output}")
        kept = socket_owners(tmp_path)
        with started(second, tmp_path, **ENVIRONMENT) as other:
            wait_for(lambda: len(announced(tmp_path)) == 2, f"the other socket; it said {other.output}")
            [(name, worker)] = socket_owners(tmp_path).items() - kept.items()
            os.kill(int(worker), signal.SIGKILL)
            wait_for(lambda: every_socket_accepts(tmp_path, 2) and socket_owners(tmp_path)[name] != worker, "another")
            other.signal(signal.SIGTERM)
            assert other.ended() == 0
        assert socket_owners(tmp_path) == kept


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


def arguments_for(kind: str, graceful_timeout: int) -> list[str]:
    timeouts = ["--graceful-timeout", str(graceful_timeout), "--timeout", "600"]
    return [*GUNICORN, "-k", kind, "-w", "2", *timeouts, "app"]


def write_slow(directory: Path, kind: str, before: str = "") -> None:
    app = "bare" if kind.startswith("uvicorn") else "plain"
    (directory / "app.py").write_text(SLOW.format(app=app, before=before))


def loading(directory: Path) -> set[str]:
    return {path.name for path in directory.glob("loading-*")}


def pids(directory: Path, names: list[str]) -> set[str]:
    found = set()
    for name in names:
        with contextlib.suppress(OSError):
            found.add(ask(f"unix:{directory}/run/{name}", "/pid").text.removeprefix("hello "))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_on_a_reload_the_old_workers_serve_until_the_new_ones_do(kind: str, tmp_path: Path) -> None:
    write_slow(tmp_path, kind)
    # Nothing here waits for so long: it is by the new ones that the old ones go.
    with started(arguments_for(kind, 600), tmp_path, **ENVIRONMENT) as gunicorn:
        wait_for(lambda: len(announced(tmp_path)) == 2, f"two sockets; it said {gunicorn.output}")
        old = announced(tmp_path)
        served = pids(tmp_path, old)
        (tmp_path / "hold").touch()
        gunicorn.signal(signal.SIGHUP)
        wait_for(lambda: len(loading(tmp_path)) == 4, "the new ones to load")
        # gunicorn has told the old ones by now, or does so in the meantime.
        told = time.monotonic() + 1.0
        while time.monotonic() < told:
            assert announced(tmp_path) == old
            assert pids(tmp_path, old) == served
        seen = []
        (tmp_path / "hold").unlink()

        def replaced() -> bool:
            seen.append(announced(tmp_path))
            return len(seen[-1]) == 2 and not set(seen[-1]) & set(old)

        wait_for(replaced, f"the new sockets alone; it said {gunicorn.output}")
        assert all(seen)
        assert not pids(tmp_path, announced(tmp_path)) & served
        gunicorn.signal(signal.SIGTERM)
        assert gunicorn.ended() == 0
    assert announced(tmp_path) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_does_not_wait_for_one_that_is_told_to_leave_as_well(kind: str, tmp_path: Path) -> None:
    write_slow(tmp_path, kind, ONLY_ONE_LOADS)
    (tmp_path / "hold").touch()
    with started(arguments_for(kind, 600), tmp_path, **ENVIRONMENT) as gunicorn:
        wait_for(lambda: len(loading(tmp_path)) == 2 and announced(tmp_path), "one of the two to serve")
        gunicorn.signal(signal.SIGTERM)
        wait_for(lambda: not announced(tmp_path), "its socket to go")
        (tmp_path / "hold").unlink()
        assert gunicorn.ended() == 0
    assert announced(tmp_path) == []


def test_nobody_waits_for_ever_for_a_worker_that_loads(tmp_path: Path) -> None:
    write_slow(tmp_path, "gthread")
    with started(arguments_for("gthread", 2), tmp_path, **ENVIRONMENT) as gunicorn:
        wait_for(lambda: len(announced(tmp_path)) == 2, f"two sockets; it said {gunicorn.output}")
        (tmp_path / "hold").touch()
        gunicorn.signal(signal.SIGHUP)
        wait_for(lambda: not announced(tmp_path), "the old sockets to go")
        assert (tmp_path / "hold").exists()
        (tmp_path / "hold").unlink()
        wait_for(lambda: len(announced(tmp_path)) == 2, "the new ones")


@pytest.mark.parametrize("kind", KINDS)
def test_a_release_that_does_not_load_ends_it(kind: str, tmp_path: Path) -> None:
    write_slow(tmp_path, kind)
    with started(arguments_for(kind, 600), tmp_path, **ENVIRONMENT) as gunicorn:
        wait_for(lambda: len(announced(tmp_path)) == 2, f"two sockets; it said {gunicorn.output}")
        (tmp_path / "app.py").write_text("raise ValueError('not today')\n")
        gunicorn.signal(signal.SIGHUP)
        # So gunicorn wants it: with 3, or with 1 where it sees a second one fail while it stops for the first.
        assert gunicorn.ended() in (1, 3)
        assert "not today" in gunicorn.output
    wait_for(lambda: not announced(tmp_path), "the sockets to go")


@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_that_is_killed_while_it_loads_is_not_waited_for(kind: str, tmp_path: Path) -> None:
    write_slow(tmp_path, kind)
    with started(arguments_for(kind, 600), tmp_path, **ENVIRONMENT) as gunicorn:
        wait_for(lambda: len(announced(tmp_path)) == 2, f"two sockets; it said {gunicorn.output}")
        old, before = announced(tmp_path), loading(tmp_path)
        write_slow(tmp_path, kind, ONLY_ONE_LOADS)
        (tmp_path / "hold").touch()
        gunicorn.signal(signal.SIGHUP)
        wait_for(lambda: len(announced(tmp_path)) == 3, "one of the new ones to serve")
        wait_for(lambda: len(loading(tmp_path)) == 4, "the other to load")
        [new] = set(announced(tmp_path)) - set(old)
        [serving] = pids(tmp_path, [new])
        [held] = loading(tmp_path) - before - {f"loading-{serving}"}
        os.kill(int(held.removeprefix("loading-")), signal.SIGKILL)
        wait_for(lambda: not set(announced(tmp_path)) & set(old), "the old sockets to go")
        (tmp_path / "hold").unlink()
        wait_for(lambda: len(announced(tmp_path)) == 2, "another in the place of the killed one")


@pytest.mark.parametrize("kind", KINDS)
def test_resumes_outlive_reloads(kind: str, tmp_path: Path) -> None:
    write_slow(tmp_path, kind)
    earned: set[str] = set()

    def earn(generation: int) -> None:
        for name in announced(tmp_path):
            with Client(f"unix:{tmp_path}/run/{name}") as client:
                assert len(client.skills()) == 3 * generation
            for number in range(3):
                skill = f"{name}-{generation}-{number}"
                earned.add(skill)
                assert ask(f"unix:{tmp_path}/run/{name}", "/", skill).status == 200

    def written() -> bool:
        files = [path.read_text() for path in (tmp_path / "resumes").glob("worker-?.json")]
        return all(any(f'"{skill}"' in file for file in files) for skill in earned)

    with started(arguments_for(kind, 600), tmp_path, SANDARAC_RESUMES="resumes", **ENVIRONMENT) as gunicorn:
        wait_for(lambda: len(announced(tmp_path)) == 2, f"two sockets; it said {gunicorn.output}")
        for generation in range(2):
            old = set(announced(tmp_path))
            earn(generation)
            (tmp_path / "hold").touch()
            gunicorn.signal(signal.SIGHUP)
            # What the third request of each has earned is written when it is told to leave.
            wait_for(written, "the old ones to write")
            (tmp_path / "hold").unlink()
            wait_for(functools.partial(replaced, tmp_path, old), f"the new ones alone; it said {gunicorn.output}")
        earn(2)
        gunicorn.signal(signal.SIGTERM)
        assert gunicorn.ended() == 0
    assert sorted(os.listdir(tmp_path / "resumes")) == ["worker-0.json", "worker-1.json"]


def replaced(directory: Path, old: set[str]) -> bool:
    now = announced(directory)
    return len(now) == 2 and not set(now) & old


def test_a_new_worker_has_the_resume_of_whom_it_replaces(monkeypatch: pytest.MonkeyPatch) -> None:
    held: dict[int, int] = {}
    monkeypatch.setattr(hooks, "_resumes", held)

    def spawned(age: int, living: list[int], wanted: int) -> int:
        hooks._assign_resume(age, living, wanted)
        return held[age]

    assert [spawned(1, [], 2), spawned(2, [1], 2)] == [0, 1]
    # One dies, and one more is wanted.
    assert [spawned(3, [2], 2), spawned(4, [2, 3], 3)] == [0, 2]
    # A reload, with one more.
    assert [spawned(5, [2, 3, 4], 4), spawned(6, [2, 3, 4, 5], 4)] == [3, 1]
    assert [spawned(7, [2, 3, 4, 5, 6], 4), spawned(8, [2, 3, 4, 5, 6, 7], 4)] == [0, 2]
    # And another, while some of those before have not ended.
    assert [spawned(age, [3, 4, 5, 6, 7, 8, *range(9, age)], 4) for age in range(9, 13)] == [3, 1, 0, 2]
