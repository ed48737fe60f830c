"""The ASGI middleware, under real uvicorn and by itself."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn

import applications
from sandarac_worker import AsgiMiddleware, Worker
from sandarac_worker.control import Control, Plan
from sandarac_worker.listener import unix_listener
from sandarac_worker.uvicorn import Server
from support import BY, PATIENCE, Client, Clock, wait_for


@contextmanager
def uvicorn_serving(app: Any, directory: Path) -> Iterator[str]:
    path = str(directory / "uvicorn.sock")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="on"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    wait_for(lambda: server.started, "uvicorn")
    try:
        yield f"unix:{path}"
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        assert not thread.is_alive()


def asgi(app: Any, scope: dict[str, Any], *incoming: dict[str, Any]) -> list[dict[str, Any]]:
    """One scope without a server."""
    sent: list[dict[str, Any]] = []
    messages = iter(incoming or ({"type": "http.request"},))

    async def receive() -> dict[str, Any]:
        return next(messages)

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return sent


def http(path: str = "/", **more: Any) -> dict[str, Any]:
    headers = [(b"request-class", f'"a";by="{BY}"'.encode())]
    return {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": headers, **more}


def test_the_worker_alone_speaks_for_itself() -> None:
    theirs = [(b"worker-state", b'id="other", rev=9, inflight=0'), (b"Worker-Skills", b'"a";score=9.0'), (b"x", b"y")]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": theirs})
        await send({"type": "http.response.body"})

    worker = Worker()
    mine = (b"worker-state", f'id="{worker.id}", rev=1, inflight=0, concurrency=1000'.encode())
    assert asgi(AsgiMiddleware(app, worker), http())[0]["headers"] == [(b"x", b"y"), mine]
    assert asgi(AsgiMiddleware(app, worker), http(headers=[]))[0]["headers"] == [(b"x", b"y")]


def test_a_bare_application_under_uvicorn(tmp_path: Path) -> None:
    worker = Worker(history=1, max_skill_age=1000, version="7")
    with uvicorn_serving(AsgiMiddleware(applications.bare, worker), tmp_path) as address, Client(address) as client:
        first = client.ask("/", "a", method="POST", body=b"x" * 100_000)
        assert first.body == b"hello " + b"x" * 100_000
        assert first.fields["worker-state"] == f'id="{worker.id}", rev=1, inflight=0, concurrency=1000, version="7"'
        assert '"a";score=' in client.ask("/", "b", known=f"{worker.id}.1").fields["worker-skills"]
        assert client.ask("/status/404", "c").status == 404
        assert client.ask("/status/500", "d").status == 500
        assert "worker-state" not in client.ask("/").fields
        assert set(client.skills()) == {"a", "b", "c"}
        tag = client.resume().fields["etag"]
        assert client.resume(fields=f"If-None-Match: {tag}\r\n").status == 304
        assert client.ask("/.well-known/worker-resume").status == 400
        assert client.ask(f"/.well-known/worker-resume?by={BY}", method="HEAD").body == b""
        # uvicorn closes behind this one.
        assert client.ask("/raise", "e").status == 500
    assert worker.inflight == 0
    assert b"e" not in worker.document(BY).skills


def test_a_response_broken_off_earns_nothing(tmp_path: Path) -> None:
    worker = Worker()
    with uvicorn_serving(AsgiMiddleware(applications.bare, worker), tmp_path) as address:
        with Client(address) as client:
            client.send(f'GET /half HTTP/1.1\r\nHost: a\r\nRequest-Class: "a";by="{BY}"\r\n\r\n'.encode())
            assert b"half" in client.rest()
        with Client(address) as client:
            assert client.skills() == {}
            assert json.loads(client.resume().body)["inflight"] == 0


@pytest.mark.parametrize(
    ("length", "body", "earned"), [(b"5", b"hello", True), (b"6", b"hello", False), (b"4", "text", False)]
)
def test_a_response_that_its_server_cannot_send_earns_nothing(
    length: bytes, body: Any, earned: bool, tmp_path: Path
) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await applications.bare(scope, receive, send)
            return
        headers = [(b"content-length", length)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    worker = Worker()
    with uvicorn_serving(AsgiMiddleware(app, worker), tmp_path) as address, Client(address) as client:
        client.send(f'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nRequest-Class: "a";by="{BY}"\r\n\r\n'.encode())
        client.rest()
        assert (b"a" in worker.document(BY).skills) == earned


def test_a_body_shorter_than_announced_earns_nothing() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"6")]})
        await send({"type": "http.response.body", "body": b"hel", "more_body": True})
        await send({"type": "http.response.body", "body": b"lo"})

    worker = Worker()
    asgi(AsgiMiddleware(app, worker), http())
    assert worker.document(BY).skills == {}
    # To HEAD a length is that of another response.
    asgi(AsgiMiddleware(app, worker), http(method="HEAD"))
    assert list(worker.document(BY).skills) == [b"a"]


def test_requests_at_the_same_time_are_counted_as_such(tmp_path: Path) -> None:
    worker = Worker()
    _, opened = applications.gate("asgi")
    with uvicorn_serving(AsgiMiddleware(applications.bare, worker), tmp_path) as address:
        with Client(address) as one, Client(address) as two, Client(address) as three:
            for client in (one, two):
                client.send(f'GET /gate/asgi HTTP/1.1\r\nHost: a\r\nRequest-Class: "a";by="{BY}"\r\n\r\n'.encode())
            wait_for(lambda: worker.inflight == 2, "two in flight")
            assert three.ask("/", "b").state["inflight"] == "2"
            opened.set()
            one.read()
            two.read()
        wait_for(lambda: worker.inflight == 0, "none in flight")


def test_many_tasks_lose_no_count() -> None:
    worker = Worker(history=100_000)
    app = AsgiMiddleware(applications.bare, worker)

    async def one(number: int) -> None:
        async def receive() -> dict[str, Any]:
            await asyncio.sleep(0)
            return {"type": "http.request"}

        async def send(message: Any) -> None:
            await asyncio.sleep(0)

        scope = http("/raise" if number % 3 == 0 else "/")
        try:
            await app(scope, receive, send)
        except RuntimeError:
            assert number % 3 == 0

    async def all_of_them() -> None:
        await asyncio.gather(*(one(number) for number in range(300)))

    asyncio.run(all_of_them())
    assert worker.inflight == 0
    assert worker._resumes.get(BY)._generation == 200


def test_waiting_for_the_server_costs_the_class_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, clock = Worker(), Clock()
    monkeypatch.setattr("sandarac_worker.asgi.time", clock)

    async def receive() -> dict[str, Any]:
        clock.sleep(0.2)
        return {"type": "http.request"}

    async def send(message: Any) -> None:
        clock.sleep(0.2)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        clock.sleep(0.03)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x"})
        # What goes on behind the response holds no request up.
        assert worker.inflight == 1
        clock.sleep(0.2)

    asyncio.run(AsgiMiddleware(app, worker)(http(), receive, send))
    assert 1 / worker.document(BY).skills[b"a"] == pytest.approx(0.03, rel=1e-3)


def test_watching_for_the_client_to_leave_is_no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, clock = Worker(), Clock()
    monkeypatch.setattr("sandarac_worker.asgi.time", clock)

    async def run() -> None:
        left = asyncio.Event()
        messages = iter([{"type": "http.request", "body": b"a", "more_body": True}, {"type": "http.request"}])

        async def receive() -> dict[str, Any]:
            clock.sleep(0.2)
            if message := next(messages, None):
                return message
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            pass

        async def app(scope: Any, receive: Any, send: Any) -> None:
            for _ in range(2):
                await receive()
            watching = asyncio.ensure_future(receive())
            await asyncio.sleep(0)
            clock.sleep(0.3)
            left.set()
            await watching
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"x"})

        await AsgiMiddleware(app, worker)(http(), receive, send)

    asyncio.run(run())
    # The last receive, which slept as well, ran beside the work.
    assert 1 / worker.document(BY).skills[b"a"] == pytest.approx(0.5, rel=1e-3)


def test_an_application_that_is_cancelled_is_no_longer_in_flight() -> None:
    worker = Worker()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.Event().wait()

    async def run() -> None:
        task = asyncio.ensure_future(AsgiMiddleware(app, worker)(http(), None, None))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        assert worker.inflight == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert worker.inflight == 0


def test_other_scopes_pass_through() -> None:
    seen: list[dict[str, Any]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope)
        await applications.bare(scope, receive, send)

    middleware = AsgiMiddleware(app, Worker())
    lifespan = {"type": "lifespan"}
    sent = asgi(middleware, lifespan, {"type": "lifespan.startup"}, {"type": "lifespan.shutdown"})
    assert [message["type"] for message in sent] == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    websocket = {"type": "websocket", "path": "/.well-known/worker-resume", "headers": []}
    sent = asgi(middleware, websocket, {"type": "websocket.connect"})
    assert [message["type"] for message in sent] == ["websocket.accept", "websocket.close"]
    assert seen[0] is lifespan
    assert seen[1] is websocket


def test_the_scope_and_the_headers_of_others_are_left_alone() -> None:
    worker = Worker()
    headers = [(b"x", b"y")]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body"})

    scope = http()
    kept = dict(scope)
    sent = asgi(AsgiMiddleware(AsgiMiddleware(app, worker), worker), scope)
    assert scope == kept
    assert headers == [(b"x", b"y")]
    assert [name for name, _ in sent[0]["headers"]] == [b"x", b"worker-state"]
    assert worker._resumes.get(BY)._generation == 1


def test_the_runner_s_uvicorn_announces_the_end_of_a_connection_before_it_comes(tmp_path: Path) -> None:
    listener = unix_listener(str(tmp_path / "worker-0.sock"))
    runner, worker_end = socket.socketpair()
    plan = Plan(app="", slot=0, directory="")
    with runner:
        control = Control(worker_end.detach())
        server = Server(applications.bare, plan, Worker(), listener, control, grace=PATIENCE)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener.socket]})
        thread.start()
        try:
            assert runner.recv(4096) == f"ready {listener.address}\n".encode()
            with Client(listener.address) as client:
                assert "connection" not in client.ask("/").fields
                server.leave()
                assert not (tmp_path / "worker-0.sock").exists()
                response = client.ask("/")
                assert (response.status, response.fields["connection"]) == (200, "close")
                assert client.closed()
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
        assert not thread.is_alive()
