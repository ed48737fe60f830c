"""The runner, as a process of its own with real workers: started, killed, drained, replaced."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sandarac_worker import __version__
from sandarac_worker.backoff import Backoff
from sandarac_worker.runner import RESTART
from support import BY, HERE, Client, Started, ask, reserved_port, started, wait_for

RUNNER = ["-m", "sandarac_worker"]
PLAIN = [*RUNNER, "applications:plain", "--sockets", "run"]


def address(directory: Path, slot: int = 0) -> str:
    return f"unix:{directory}/run/worker-{slot}.sock"


def serving(runner: Started, workers: int) -> None:
    runner.says("worker-", workers)


def pid(directory: Path, slot: int = 0) -> int:
    return int(ask(address(directory, slot), "/pid").text)


def instance(directory: Path, slot: int = 0) -> str:
    with Client(address(directory, slot)) as client:
        return str(json.loads(client.resume().body)["id"])


def test_each_worker_has_a_process_a_socket_and_an_id_of_its_own(tmp_path: Path) -> None:
    with started([*PLAIN, "--workers", "3"], tmp_path) as runner:
        serving(runner, 3)
        assert sorted(os.listdir(tmp_path / "run")) == [".lock", *(f"worker-{slot}.sock" for slot in range(3))]
        assert len({pid(tmp_path, slot) for slot in range(3)}) == 3
        assert len({instance(tmp_path, slot) for slot in range(3)}) == 3
        runner.signal(signal.SIGTERM)
        assert runner.ended() == 0
        assert os.listdir(tmp_path / "run") == [".lock"]


def test_a_killed_worker_is_started_again_as_another_instance(tmp_path: Path) -> None:
    with started([*PLAIN, "--workers", "2", "--resumes", "resumes"], tmp_path) as runner:
        serving(runner, 2)
        old, old_pid = instance(tmp_path), pid(tmp_path)
        ask(address(tmp_path), "/", "a")
        file = tmp_path / "resumes" / "worker-0.json"
        wait_for(lambda: file.exists() and b'"a"' in file.read_bytes(), "the résumé to be written")
        with Client(address(tmp_path)) as client:
            os.kill(old_pid, signal.SIGKILL)
            assert client.closed()
        runner.says("worker 0 was ended by SIGKILL: started again in 0 s")
        serving(runner, 3)
        assert instance(tmp_path) != old
        with Client(address(tmp_path)) as client:
            # What it was good at it has not forgotten.
            response = client.ask("/", "a", known=f"{old}.2")
            assert response.state["rev"] == "1"
            assert "worker-skills" not in response.fields
            assert list(client.skills()) == ["a"]
        os.kill(pid(tmp_path), signal.SIGKILL)
        assert ask(address(tmp_path, 1), "/").status == 200
        serving(runner, 4)


def test_a_request_that_kills_its_worker_harms_no_other(tmp_path: Path) -> None:
    with started([*PLAIN, "--workers", "2"], tmp_path) as runner:
        serving(runner, 2)
        with Client(address(tmp_path)) as client:
            client.send(b"GET /killed HTTP/1.1\r\nHost: a\r\n\r\n")
            assert client.closed()
        assert ask(address(tmp_path, 1), "/").status == 200
        serving(runner, 3)
        assert ask(address(tmp_path), "/").status == 200


def test_sigterm_ends_what_is_in_flight_and_keeps_the_resume(tmp_path: Path) -> None:
    with started([*PLAIN, "--workers", "1", "--resumes", "resumes"], tmp_path) as runner:
        serving(runner, 1)
        with Client(address(tmp_path)) as client:
            for _ in range(3):
                client.ask("/", "a")
        with Client(address(tmp_path)) as client:
            mark = tmp_path / "in-hand"
            client.send(f'GET /touch/in-hand HTTP/1.1\r\nHost: a\r\nRequest-Class: "b";by="{BY}"\r\n\r\n'.encode())
            wait_for(mark.exists, "the application to begin")
            runner.signal(signal.SIGTERM)
            wait_for(lambda: not (tmp_path / "run" / "worker-0.sock").exists(), "the socket to go")
            assert runner.popen.poll() is None
            mark.unlink()
            response = client.read()
            assert (response.status, response.fields["connection"]) == (200, "close")
            assert client.closed()
        assert runner.ended() == 0
        kept = json.loads((tmp_path / "resumes" / "worker-0.json").read_bytes())["resumes"][0]["skills"]
        assert set(kept) == {"a", "b"}


def test_the_resume_is_kept_though_no_application_thread_ends(tmp_path: Path) -> None:
    threads = 8
    options = ["--workers", "1", "--threads", str(threads), "--drain-timeout", "0.1", "--resumes", "resumes"]
    with started([*PLAIN, *options], tmp_path) as runner, contextlib.ExitStack() as held:
        serving(runner, 1)
        for name in ("a", "b", "c"):
            ask(address(tmp_path), "/", name)
        for number in range(threads):
            client = held.enter_context(Client(address(tmp_path)))
            client.send(b"GET /touch/busy%d HTTP/1.1\r\nHost: a\r\n\r\n" % number)
        wait_for(lambda: len(list(tmp_path.glob("busy*"))) == threads, "all threads to be busy")
        runner.signal(signal.SIGTERM)
        assert runner.ended() == 0
        assert "killed" not in runner.output
    kept = json.loads((tmp_path / "resumes" / "worker-0.json").read_bytes())["resumes"][0]["skills"]
    # The third is written at the end alone.
    assert set(kept) == {"a", "b", "c"}


def test_sighup_replaces_the_workers_one_after_another_without_losing_a_request(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("def application(environ, start):\n    start('200 OK', [])\n    return [b'one']\n")
    arguments = [*RUNNER, "app", "--sockets", "run", "--workers", "2", "--resumes", "resumes"]
    with started(arguments, tmp_path, PYTHONDONTWRITEBYTECODE="1") as runner:
        serving(runner, 2)
        assert ask(address(tmp_path), "/", "a").body == b"one"
        old = [instance(tmp_path, slot) for slot in range(2)]
        (tmp_path / "app.py").write_text(
            "def application(environ, start):\n    start('200 OK', [])\n    return [b'two']\n"
        )
        runner.signal(signal.SIGHUP)
        bodies = set()

        def replaced() -> bool:
            # All the while, somebody answers at every socket.
            for slot in range(2):
                bodies.add(ask(address(tmp_path, slot), "/").body)
            return runner.output.count("worker-") >= 4

        wait_for(replaced, "both to be replaced")
        assert bodies <= {b"one", b"two"}
        for slot in range(2):
            assert ask(address(tmp_path, slot), "/").body == b"two"
            assert instance(tmp_path, slot) != old[slot]
        with Client(address(tmp_path)) as client:
            assert list(client.skills()) == ["a"]


def test_a_release_that_does_not_start_leaves_the_old_one_in_service(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("def application(environ, start):\n    start('200 OK', [])\n    return [b'one']\n")
    arguments = [*RUNNER, "app", "--sockets", "run", "--workers", "2"]
    with started(arguments, tmp_path, PYTHONDONTWRITEBYTECODE="1") as runner:
        serving(runner, 2)
        old = [instance(tmp_path, slot) for slot in range(2)]
        (tmp_path / "app.py").write_text("raise SystemExit('not today')\n")
        runner.signal(signal.SIGHUP)
        runner.says("the successor of worker 0 ended with status 3: the old one stays")
        assert "not today" in runner.output
        assert [instance(tmp_path, slot) for slot in range(2)] == old


def test_a_worker_that_has_served_its_share_is_replaced(tmp_path: Path) -> None:
    with started([*PLAIN, "--workers", "1", "--max-requests", "5"], tmp_path) as runner:
        serving(runner, 1)
        first = pid(tmp_path)
        with Client(address(tmp_path)) as client:
            for _ in range(4):
                assert client.ask("/").status == 200
        serving(runner, 2)
        assert pid(tmp_path) != first


#: An application that starts, and then waits as it starts again, and fails once.
ONCE = """
import os, time
from applications import {app} as application
deadline = time.monotonic() + 60
if os.path.exists("hold"):
    open("loading", "w").close()
    while os.path.exists("hold") and time.monotonic() < deadline:
        time.sleep(0.005)
    raise SystemExit("not now")
"""


@pytest.mark.parametrize("app", ["plain", "bare"])
def test_a_replacement_that_fails_is_tried_again_and_others_are_not_forgotten(app: str, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(ONCE.format(app=app))
    arguments = [*RUNNER, "app", "--sockets", "run", "--workers", "2", "--max-requests", "5"]
    with started(arguments, tmp_path) as runner:
        serving(runner, 2)
        first = ask(address(tmp_path), "/pid").text
        (tmp_path / "hold").touch()

        def spend(slot: int) -> None:
            for _ in range(6):
                assert ask(address(tmp_path, slot), "/").status == 200

        spend(0)
        wait_for((tmp_path / "loading").exists, "the successor of worker 0")
        spend(1)
        (tmp_path / "hold").unlink()
        runner.says("the successor of worker 0 ended with status 3: the old one stays")
        runner.says("worker 1: unix", 2)
        assert ask(address(tmp_path), "/pid").text == first
        spend(0)
        runner.says("worker 0: unix", 2)
        assert ask(address(tmp_path), "/pid").text != first


def test_tcp_ports_are_printed_and_kept_in_a_file(tmp_path: Path) -> None:
    arguments = [*RUNNER, "applications:plain", "--workers", "2", "--bind", "127.0.0.1:0", "--addresses", "addresses"]
    file = tmp_path / "addresses"
    with started(arguments, tmp_path) as runner:
        runner.says("http://127.0.0.1:", 2)
        listed = file.read_text().split()
        assert sorted(listed) == sorted(line.split(" ")[2] for line in runner.lines)
        first, second = (int(ask(one, "/pid").text) for one in listed)
        assert first != second
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: listed[0] not in file.read_text(), "the dead one to be taken off")
        wait_for(lambda: len(file.read_text().split()) == 2, "another one")
        for one in file.read_text().split():
            assert ask(one, "/").status == 200
        runner.signal(signal.SIGHUP)
        runner.says("http://127.0.0.1:", 5)
        assert set(file.read_text().split()).isdisjoint(listed)
        runner.signal(signal.SIGINT)
        assert runner.ended() == 0
        assert file.read_text() == ""


def test_an_asgi_application_runs_under_uvicorn(tmp_path: Path) -> None:
    arguments = [*RUNNER, "applications:bare", "--sockets", "run", "--workers", "1", "--resumes", "resumes"]
    with started(arguments, tmp_path) as runner:
        serving(runner, 1)
        with Client(address(tmp_path)) as client:
            assert client.ask("/", "a", method="POST", body=b"you").body == b"hello you"
            assert list(client.skills()) == ["a"]
            old = instance(tmp_path)
        runner.signal(signal.SIGHUP)
        serving(runner, 2)
        assert instance(tmp_path) != old
        runner.signal(signal.SIGTERM)
        assert runner.ended() == 0
        assert b'"a"' in (tmp_path / "resumes" / "worker-0.json").read_bytes()
        assert os.listdir(tmp_path / "run") == [".lock"]


@pytest.mark.parametrize("app", ["applications:flask()", "applications:django()"])
def test_frameworks_run_by_their_factories(app: str, tmp_path: Path) -> None:
    with started(
        [*RUNNER, app, "--sockets", "run", "--workers", "1", "--app-version", "2026-11-20.1"], tmp_path
    ) as runner:
        serving(runner, 1)
        response = ask(address(tmp_path), "/", "www.example.com")
        assert response.text == "www.example.com GET 0"
        assert response.state["version"] == '"2026-11-20.1"'


def test_the_trace_log_has_a_line_for_each_step(tmp_path: Path) -> None:
    arguments = [*PLAIN, "--workers", "1", "--trace-log", "trace.log"]
    with started(arguments, tmp_path) as runner:
        serving(runner, 1)
        with Client(address(tmp_path)) as client:
            client.ask("/echo?x=1", method="POST", body=b"hello")
            client.ask("/status/404")

        def lines() -> list[list[str]]:
            return [line.split(" ") for line in (tmp_path / "trace.log").read_text().splitlines()]

        wait_for(lambda: len(lines()) == 10, "ten lines")
        assert len({line[1].split(".")[0] for line in lines()}) == 1
        assert [(line[0], line[1].split(".", 1)[1], line[3:]) for line in lines()] == [
            ("B", "1.1", ["POST", "/echo?x=1"]),
            ("I", "1.1", ["5"]),
            ("C", "1.1", []),
            ("A", "1.1", ["200", "OK", "?"]),
            ("E", "1.1", []),
            ("B", "1.2", ["GET", "/status/404"]),
            ("I", "1.2", ["0"]),
            ("C", "1.2", []),
            ("A", "1.2", ["404", "Said", "So", "?"]),
            ("E", "1.2", []),
        ]
        times = [line[2] for line in lines()]
        assert times == sorted(times)


@pytest.mark.parametrize("app", ["applications:plain", "applications:bare"])
def test_no_two_requests_have_one_name_in_the_trace_log_of_several_workers(app: str, tmp_path: Path) -> None:
    arguments = [*RUNNER, app, "--sockets", "run", "--workers", "2", "--trace-log", "trace.log"]
    with started(arguments, tmp_path) as runner:
        serving(runner, 2)
        for number in range(2):
            assert ask(address(tmp_path, number), f"/?{number}").status == 200

        def begun() -> list[str]:
            lines = (tmp_path / "trace.log").read_text().splitlines()
            return [line.split(" ")[1] for line in lines if line.startswith("B ")]

        wait_for(lambda: len(begun()) == 2, "two requests in the log")
        assert len(set(begun())) == 2


def test_workers_do_not_outlive_their_runner(tmp_path: Path) -> None:
    with started([*PLAIN, "--workers", "1"], tmp_path) as runner:
        serving(runner, 1)
        with Client(address(tmp_path)) as client:
            assert client.ask("/").status == 200
            runner.signal(signal.SIGKILL)
            runner.popen.wait(60)
            assert client.closed()
        wait_for(lambda: not (tmp_path / "run" / "worker-0.sock").exists(), "the worker to leave")
    # What a killed one has left does not stand in the way of the next.
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(tmp_path / "run" / "worker-7.sock"))
    with started([*PLAIN, "--workers", "1"], tmp_path) as runner:
        serving(runner, 1)
        assert sorted(os.listdir(tmp_path / "run")) == [".lock", "worker-0.sock"]


def once(*arguments: str, directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *RUNNER, *arguments],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(HERE)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nosuch:app"], "there is no module nosuch"),
        (["applications:nosuch"], "applications has no nosuch"),
        (["applications:__doc__"], "cannot be called"),
        (["applications plain"], "not module:object"),
        (["applications:bare", "--max-body", "1000"], "--max-body is for WSGI"),
        (["applications:plain", "--sockets", "x" * 120], "107 bytes"),
    ],
)
def test_what_cannot_be_started_is_named_and_not_tried_for_ever(
    arguments: list[str], said: str, tmp_path: Path
) -> None:
    result = once(*arguments, "--workers", "2", directory=tmp_path)
    assert result.returncode == 1
    assert said in result.stderr


def test_what_a_failing_module_says_is_shown(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("import nosuchdependency\n")
    result = once("app:application", directory=tmp_path)
    assert result.returncode == 1
    assert "No module named 'nosuchdependency'" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["a:b", "--workers", "0"],
        ["a:b", "--threads", "x"],
        ["a:b", "--bind", "nowhere"],
        ["a:b", "--bind", "127.0.0.1:0", "--sockets", "run"],
        ["a:b", "--history", "0"],
        ["a:b", "--max-skill-age", "0"],
        ["a:b", "--max-requests", "-1"],
        ["a:b", "--drain-timeout", "nan"],
        ["a:b", "--mode", "999"],
        ["a:b", "--app-version", ""],
        ["a:b", "--app-version", "é"],
        ["a:b", "--nosuch"],
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments: list[str], capsys: Any, tmp_path: Path) -> None:
    from sandarac_worker.command import main

    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: sandarac-worker" in capsys.readouterr().err


def test_two_runners_do_not_share_a_directory(tmp_path: Path) -> None:
    with started([*PLAIN, "--workers", "1"], tmp_path) as runner:
        serving(runner, 1)
        result = once("applications:plain", "--sockets", "run", directory=tmp_path)
        assert (result.returncode, "another runner" in result.stderr) == (1, True)
        assert ask(address(tmp_path), "/").status == 200


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = once("applications:plain", "--workers", "1", "--bind", f"127.0.0.1:{port}", directory=tmp_path)
    assert (result.returncode, f"port {port} already" in result.stderr) == (1, True)


def test_a_fixed_port_is_handed_from_one_worker_to_the_next(tmp_path: Path) -> None:
    with reserved_port() as port:
        arguments = [*RUNNER, "applications:plain", "--workers", "1", "--bind", f"127.0.0.1:{port}"]
        with started(arguments, tmp_path) as runner:
            runner.says(f"http://127.0.0.1:{port}")
            old = ask(f"http://127.0.0.1:{port}", "/pid").text
            runner.signal(signal.SIGHUP)
            runner.says(f"http://127.0.0.1:{port}", 2)

            def successor_answers() -> bool:
                # Who connects at the very moment that the old one lets go is turned away, as by any server.
                with contextlib.suppress(ConnectionError):
                    return ask(f"http://127.0.0.1:{port}", "/pid").text != old
                return False

            wait_for(successor_answers, "the successor to answer")


def test_the_version_is_said(tmp_path: Path) -> None:
    assert once("--version", directory=tmp_path).stdout == f"sandarac-worker {__version__}\n"


def test_pauses_grow_while_a_worker_dies_young() -> None:
    backoff = Backoff(*RESTART)
    assert [backoff.pause(1.0) for _ in range(9)] == [0, 0.5, 1, 2, 4, 8, 16, 30, 30]
    assert backoff.pause(10.0) == 0
    assert backoff.pause(9.9) == 0.5
