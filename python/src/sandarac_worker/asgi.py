"""ASGI middleware (ASGI 3, HTTP) that keeps the résumé and tells the balancer of it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Awaitable, MutableMapping
from typing import Any, Callable

from . import trace
from .document import WELL_KNOWN
from .worker import OWN_FIELDS, Middleware, Worker, length_of

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApplication = Callable[[Scope, Receive, Send], Awaitable[None]]

#: The requests that an event loop works on at a time: as many as come.
EVENT_LOOP = 1000

_INSIDE_KEY = "sandarac.inside"
_numbers = itertools.count(1)


class AsgiMiddleware(Middleware):
    """``app`` with a résumé. Where no worker is given, it is that of the process.

    A request earns for its class when the application answered below 500 and sent its body to the end. Its time runs
    until then, waits for the request's body in ``receive`` and for the server in ``send`` taken off; work that goes on
    behind the response is in hand (it counts as in flight), and costs the class nothing. Lifespan and WebSocket scopes
    pass through.
    """

    def __init__(self, app: AsgiApplication, worker: Worker | None = None) -> None:
        super().__init__(worker)
        self.app = app

    @property
    def worker(self) -> Worker:
        """Whose résumé this is."""
        worker = super().worker
        worker.concurrency = EVENT_LOOP
        return worker

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _INSIDE_KEY in scope:
            await self.app(scope, receive, send)
        elif scope["path"] == WELL_KNOWN:
            await self._resume(scope, send)
        else:
            # A copy: the scope given belongs to the server.
            await _Exchange(self.worker, {**scope, _INSIDE_KEY: True}, receive, send).run(self.app)

    async def _resume(self, scope: Scope, send: Send) -> None:
        query = scope.get("query_string", b"").decode("latin-1")
        answer = self.worker.answer(scope["method"], query, _header(scope, b"if-none-match"))
        headers = [(name.lower().encode("ascii"), value.encode("ascii")) for name, value in answer.fields]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        body = b"" if scope["method"] == "HEAD" else answer.body
        await send({"type": "http.response.body", "body": body})


class _Exchange:
    """One request on its way through the application."""

    def __init__(self, worker: Worker, scope: Scope, receive: Receive, send: Send) -> None:
        self.worker = worker
        self.scope = scope
        self.server_receive = receive
        self.server_send = send
        self.asked = worker.read_class(_header(scope, b"request-class"))
        self.status = 0
        self.began = 0.0
        #: Seconds in which the application could not go on for the server.
        self.waited = 0.0
        #: Whether all of the request is there: what is received then is the client's leaving, which nobody waits for.
        self.received = False
        self.announced: str | None = None
        #: Bytes of the body so far.
        self.given = 0
        self.request = f"-.{next(_numbers)}" if trace.enabled() else ""

    async def run(self, app: AsgiApplication) -> None:
        self.worker.begin()
        if self.request:
            path = self.scope["path"]
            query = self.scope.get("query_string", b"").decode("latin-1")
            trace.begin(self.request, self.scope["method"], f"{path}?{query}" if query else path)
            trace.application_called(self.request)
        self.began = time.perf_counter()
        try:
            await app(self.scope, self.receive, self.send)
        finally:
            self.worker.end()
            if self.request:
                trace.end(self.request)

    async def receive(self) -> Message:
        began = time.perf_counter()
        message = await self.server_receive()
        if not self.received:
            self.waited += time.perf_counter() - began
        last = message["type"] == "http.request" and not message.get("more_body")
        self.received = self.received or last
        if self.request and last:
            trace.input_read(self.request, len(message.get("body", b"")))
        return message

    async def send(self, message: Message) -> None:
        kind = message["type"]
        if kind == "http.response.start":
            self.status = message["status"]
            # Balancers believe these two, so the worker alone says them, and not the application.
            headers = [
                (name, value)
                for name, value in message.get("headers", ())
                if name.lower().decode("latin-1") not in OWN_FIELDS
            ]
            self.announced = next(
                (value.decode("latin-1") for name, value in headers if name.lower() == b"content-length"), None
            )
            if self.request:
                trace.application_answered(self.request, str(self.status), self.announced)
            if self.asked is not None:
                fields = self.worker.fields(self.asked)
                headers += [(name.lower().encode("ascii"), value.encode("ascii")) for name, value in fields]
            message = {**message, "headers": headers}
        began = time.perf_counter()
        seconds = began - self.began - self.waited
        await self.server_send(message)
        self.waited += time.perf_counter() - began
        # Only now: a server may find fault with it. One that does not lets nobody ask for the résumé in between.
        if kind == "http.response.body":
            self.given += len(message.get("body", b""))
        if kind in ("http.response.body", "http.response.pathsend") and not message.get("more_body", False):
            whole = kind == "http.response.pathsend" or self.bodiless or self.given >= length_of(self.announced)
            if self.asked is not None and 0 < self.status < 500 and whole:
                self.worker.earn(self.asked, seconds)
            self.asked = None

    @property
    def bodiless(self) -> bool:
        """Whether the server sends no body, whatever it is given."""
        return self.scope["method"] == "HEAD" or self.status in (204, 304)


def _header(scope: Scope, name: bytes) -> str | None:
    """All lines of a field as one value, ``None`` where there is none. Servers give names in lower case."""
    lines = [value for found, value in scope["headers"] if found == name]
    return b", ".join(lines).decode("latin-1") if lines else None
