"""What fails on the machine, as on a full disk, costs a request at most, and never a worker."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import applications
from sandarac_worker.http1 import Limits
from sandarac_worker.registry import Entry, Registrar, Registry, Unavailable
from support import PATIENCE, Client, ask, serving, started, wait_for

FULL = "/dev/full"


def nowhere(**_: Any) -> Any:
    raise FileNotFoundError("no usable temporary directory")


def full(**_: Any) -> Any:
    return open(FULL, "r+b")


@pytest.mark.parametrize("make", [nowhere, full])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_cannot_be_kept_ends_its_request_alone(
    make: Callable[..., Any],
    chunked: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(tempfile, "TemporaryFile", make)
    framing, body = ("Content-Length: 900", b"x" * 900)
    if chunked:
        framing, body = "Transfer-Encoding: chunked", b"384\r\n" + body + b"\r\n0\r\n\r\n"
    with serving(applications.plain, tmp_path, limits=Limits(memory=100)) as address, Client(address) as other:
        with Client(address) as client:
            client.send(f"POST /echo HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n".encode() + body)
            response = client.read()
            assert (response.status, response.fields["connection"]) == (507, "close")
            assert client.closed()
        assert other.ask("/echo", method="POST", body=b"short").body == b"short"
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "the body of a request cannot be kept"
    ]


@contextlib.contextmanager
def nobody_reads() -> Iterator[int]:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        yield writer
    finally:
        os.close(writer)


@contextlib.contextmanager
def no_room() -> Iterator[int]:
    with open(FULL, "wb") as file:
        yield file.fileno()


@pytest.mark.parametrize("where", [nobody_reads, no_room])
def test_a_runner_goes_on_where_nothing_can_be_said(
    where: Callable[[], contextlib.AbstractContextManager[int]], tmp_path: Path
) -> None:
    arguments = ["-m", "sandarac_worker", "applications:plain", "--sockets", "run", "--workers", "1"]
    with where() as stderr, started(arguments, tmp_path, stderr) as runner:
        runner.says("worker 0:")
        runner.signal(signal.SIGHUP)
        runner.says("worker 0:", 2)
        pid = int(ask(f"unix:{tmp_path}/run/worker-0.sock", "/pid").text)
        os.kill(pid, signal.SIGKILL)
        runner.says("worker 0:", 3)
        runner.signal(signal.SIGTERM)
        assert runner.ended() == 0


class Unanswered(Registry):
    """A registry that fails at first."""

    def __init__(self, failure: Exception) -> None:
        super().__init__()
        self.failure: Exception | None = failure
        self.added = threading.Event()

    def renew(self) -> bool:
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure
        return True

    def look(self, entries: list[Entry]) -> tuple[bytes, set[Entry]]:
        return b"", set(entries)

    def add(self, entry: Entry) -> None:
        self.added.set()

    def remove(self, entry: Entry) -> None:
        pass

    def close(self) -> None:
        raise KeyError("ID")


@pytest.mark.parametrize("full", [True, False])
def test_registration_goes_on_where_nothing_can_be_said(full: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(FULL, "w") as file:
        monkeypatch.setattr(sys, "stderr", file if full else None)
        registry = Unanswered(Unavailable("away"))
        registrar = Registrar("test", registry, lambda live: None)
        registrar.keep(["http://127.0.0.1:1"])
        assert registry.added.wait(PATIENCE)
        registrar.close()
        with contextlib.suppress(OSError):
            file.close()


def steps(log: Path) -> str:
    """The first letters of the lines of a trace log."""
    return "".join(line[0] for line in log.read_text().splitlines()) if log.exists() else ""


def test_a_trace_log_that_is_gone_costs_no_request_and_no_restart(tmp_path: Path) -> None:
    arguments = ["-m", "sandarac_worker", "applications:plain", "--sockets", "run", "--workers", "1"]
    logs = tmp_path / "logs"
    logs.mkdir()
    address = f"unix:{tmp_path}/run/worker-0.sock"
    with started([*arguments, "--trace-log", "logs/trace.log"], tmp_path) as runner:
        runner.says("worker 0:")
        shutil.rmtree(logs)
        with Client(address) as client:
            pid = int(client.ask("/pid").text)
            assert int(client.ask("/pid").text) == pid
        runner.says("the trace log is not written")
        os.kill(pid, signal.SIGKILL)
        runner.says("worker 0: unix", 2)
        assert ask(address, "/").status == 200
        logs.mkdir()
        assert ask(address, "/").status == 200
        # The end of the request before may come after its response, and so after the folder.
        wait_for(lambda: steps(logs / "trace.log") in ("BICAE", "EBICAE"), "the steps of the last request")
        assert runner.output.count("the trace log is not written") == 2
    with started([*arguments, "--trace-log", "missing/trace.log"], tmp_path) as runner:
        assert runner.ended() == 1
        assert "missing/trace.log" in runner.output


def test_registration_goes_on_after_an_answer_that_nobody_expects(capsys: pytest.CaptureFixture[str]) -> None:
    registry = Unanswered(KeyError("ID"))
    registrar = Registrar("test", registry, lambda live: None)
    registrar.keep(["http://127.0.0.1:1"])
    assert registry.added.wait(PATIENCE)
    registrar.close()
    said = capsys.readouterr().err
    assert "test: workers cannot be registered: unexpected answer: KeyError('ID')\n" in said
