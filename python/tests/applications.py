"""The applications that the tests run, in this process and in others."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Awaitable, Iterator
from typing import Any, Callable

#: Gates that a test opens: a request to /gate/NAME waits for the one of that name.
gates: dict[str, threading.Event] = {}
entered: dict[str, threading.Event] = {}


def gate(name: str) -> tuple[threading.Event, threading.Event]:
    return entered.setdefault(name, threading.Event()), gates.setdefault(name, threading.Event())


def plain(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
    """Answers by path."""
    path = environ["PATH_INFO"]
    if path.startswith("/status/"):
        start_response(f"{path[8:]} Said So", [("Content-Type", "text/plain")])
        return [b"x"]
    if path == "/raise":
        raise RuntimeError("on purpose")
    if path == "/exit":
        raise SystemExit(7)
    if path == "/break":
        start_response("200 OK", [("Content-Type", "text/plain")])
        return broken()
    if path == "/pid":
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [str(os.getpid()).encode()]
    if path == "/release":
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [os.environ.get("RELEASE", "none").encode()]
    if path == "/killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if path == "/echo":
        body = environ["wsgi.input"].read()
        start_response("200 OK", [("Content-Type", "application/octet-stream"), ("X-Length", str(len(body)))])
        return [body]
    if path == "/stream":
        start_response("200 OK", [("Content-Type", "text/plain")])
        return (b"%d\n" % number for number in range(5))
    if path.startswith("/large/"):
        start_response("200 OK", [("Content-Type", "text/plain")])
        return (b"x" * 65536 for _ in range(int(path[7:])))
    if path.startswith("/gate/"):
        inside, opened = gate(path[6:])
        inside.set()
        assert opened.wait(60)
    if path.startswith("/touch/"):
        # Says by a file that it is being served, and goes on when that is gone.
        name = path[7:]
        with open(name, "w"):
            pass
        deadline = time.monotonic() + 60
        while os.path.exists(name) and time.monotonic() < deadline:
            time.sleep(0.005)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hello\n"]


def broken() -> Iterator[bytes]:
    yield b"half"
    raise RuntimeError("on purpose")


def make() -> Any:
    return plain


def django() -> Any:
    from django.conf import settings
    from django.core.wsgi import get_wsgi_application
    from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
    from django.urls import path

    def index(request: HttpRequest) -> HttpResponse:
        return HttpResponse(f"{request.get_host()} {request.method} {len(request.body)}")

    def stream(request: HttpRequest) -> StreamingHttpResponse:
        return StreamingHttpResponse(iter([b"a", b"b"]))

    def fail(request: HttpRequest) -> HttpResponse:
        raise RuntimeError("on purpose")

    class Urls:
        urlpatterns = [path("", index), path("stream", stream), path("fail", fail)]  # noqa: RUF012

    if not settings.configured:
        settings.configure(
            ALLOWED_HOSTS=["*"],
            ROOT_URLCONF=Urls,
            SECRET_KEY="for tests only",
            MIDDLEWARE=["django.middleware.common.CommonMiddleware"],
            LOGGING_CONFIG=None,
        )
    return get_wsgi_application()


def flask() -> Any:
    from flask import Flask, Response, request

    app = Flask("shop")

    @app.route("/", methods=["GET", "POST"])
    def index() -> str:
        return f"{request.host} {request.method} {len(request.get_data())}"

    @app.route("/stream")
    def stream() -> Response:
        return Response((part for part in ("a", "b")), mimetype="text/plain")

    @app.route("/fail")
    def fail() -> str:
        raise RuntimeError("on purpose")

    return app


async def bare(
    scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
) -> None:
    """ASGI without a framework."""
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.close"})
        return
    path = scope["path"]
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    if path == "/raise":
        raise RuntimeError("on purpose")
    status = int(path[8:]) if path.startswith("/status/") else 200
    if path.startswith("/gate/"):
        inside, opened = gate(path[6:])
        inside.set()
        while not opened.is_set():
            await asyncio.sleep(0.005)
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"text/plain")]})
    if path == "/half":
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        raise RuntimeError("on purpose")
    if path == "/pid":
        body = str(os.getpid()).encode()
    await send({"type": "http.response.body", "body": b"hello ", "more_body": True})
    await send({"type": "http.response.body", "body": body})
