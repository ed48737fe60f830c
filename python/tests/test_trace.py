"""The trace log of an application under another server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import applications
from sandarac_worker import AsgiMiddleware, Worker, WsgiMiddleware, trace
from test_asgi import http


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "trace.log"
    level = trace.logger.level
    trace.open_trace(str(path))
    yield path
    for handler in list(trace.logger.handlers):
        trace.logger.removeHandler(handler)
        handler.close()
    trace.logger.setLevel(level)
    trace.logger.propagate = True


def codes(log: Path) -> list[tuple[str, str]]:
    lines = [line.split(" ") for line in log.read_text().splitlines()]
    assert len({line[1] for line in lines}) == 1
    return [(line[0], " ".join(line[3:])) for line in lines]


def test_an_application_adds_lines_of_its_own(log: Path) -> None:
    def app(environ: Any, start_response: Any) -> Any:
        environ["tracelog"].log("loaded 30 objects")
        environ["tracelog"].log("one\ntwo", code="D")
        start_response("200 OK", [("content-length", "1")])
        return [b"x"]

    environ: dict[str, Any] = {"REQUEST_METHOD": "GET", "PATH_INFO": "/"}
    body = WsgiMiddleware(app, Worker())(environ, lambda *_: lambda data: None)
    list(body)
    body.close()  # type: ignore[attr-defined]
    assert codes(log) == [("C", ""), ("-", "loaded 30 objects"), ("D", "one?two"), ("A", "200 OK 1"), ("E", "")]


def test_asgi_is_traced_as_well(log: Path) -> None:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"hello"}

    async def send(message: Any) -> None:
        pass

    asyncio.run(AsgiMiddleware(applications.bare, Worker())(http("/x", query_string=b"y"), receive, send))
    assert codes(log) == [("B", "GET /x?y"), ("C", ""), ("I", "5"), ("A", "200 ?"), ("E", "")]


def test_it_is_off_unless_it_is_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        environ: dict[str, Any] = {"REQUEST_METHOD": "GET", "PATH_INFO": "/"}
        list(WsgiMiddleware(applications.plain, Worker())(environ, lambda *_: lambda data: None))
    assert "tracelog" not in environ
    assert caplog.text == ""


def test_what_cannot_be_written_is_dropped_and_said_once(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace.begin("1", "GET", "/first")
    # The directory goes with a rotation, and comes back.
    away = log.parent / "away"
    moved = log.parent.rename(log.parent.with_name("moved"))
    for number in range(3):
        trace.begin("1", "GET", f"/dropped{number}")
    moved.rename(log.parent)
    log.rename(away)
    for number in range(2):
        trace.begin("1", "GET", f"/again{number}")
    assert codes(away) == [("B", "GET /first")]
    assert codes(log) == [("B", "GET /again0"), ("B", "GET /again1")]
    log.unlink()
    log.symlink_to("/dev/full")
    for _ in range(3):
        trace.end("1")
    said = capsys.readouterr().err.splitlines()
    assert [line.partition(": [")[0] for line in said] == ["sandarac-worker: the trace log is not written"] * 2
    assert "No space left" in said[1]
    log.unlink()
    trace.end("1")
    assert codes(log) == [("E", "")]
