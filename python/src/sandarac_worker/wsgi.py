"""WSGI middleware (PEP 3333) that keeps the résumé and tells the balancer of it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Callable, cast

from . import trace
from .document import WELL_KNOWN
from .worker import OWN_FIELDS, Middleware, Worker, length_of

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

#: Set by a server that counts requests itself, from when they are read: the :class:`Worker` it counts for.
COUNTED_KEY = "sandarac.counted"
#: What the trace log calls this request, where the server has given it a name.
REQUEST_KEY = "sandarac.request"
#: Set by the outermost of several such middlewares: one request is earned once.
_INSIDE_KEY = "sandarac.inside"

_numbers = itertools.count(1)


class WsgiMiddleware(Middleware):
    """``app`` with a résumé. Where no worker is given, it is that of the process.

    A request earns for its class when the application answered below 500 and its body was made to the end, or needed
    none. Its time is what the application spent: in the call, and in each step of the iterable; not what the server and
    the client took in between.
    """

    def __init__(self, app: WSGIApplication, worker: Worker | None = None) -> None:
        super().__init__(worker)
        self.app = app

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if _INSIDE_KEY in environ:
            return self.app(environ, start_response)
        if environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "") == WELL_KNOWN:
            return self._resume(environ, start_response)
        environ[_INSIDE_KEY] = True
        return _Exchange(self.worker, environ, start_response).run(self.app)

    def _resume(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        method = environ["REQUEST_METHOD"]
        answer = self.worker.answer(method, environ.get("QUERY_STRING", ""), environ.get("HTTP_IF_NONE_MATCH"))
        start_response(f"{answer.status} {answer.reason}", answer.fields)
        return [b"" if method == "HEAD" else answer.body]


class _Exchange:
    """One request on its way through the application."""

    def __init__(self, worker: Worker, environ: WSGIEnvironment, start_response: StartResponse) -> None:
        self.worker = worker
        self.environ = environ
        self.start = start_response
        self.asked = worker.read_class(environ.get("HTTP_REQUEST_CLASS"))
        self.status = 0
        #: Seconds that the application spent, those in the server's `write` taken off.
        self.spent = 0.0
        self.said = ""
        self.announced: str | None = None
        #: Bytes of the body so far.
        self.given = 0
        self.request = ""
        if trace.enabled():
            self.request = environ.get(REQUEST_KEY) or f"-.{next(_numbers)}"
            environ[trace.ENVIRON_KEY] = trace.ApplicationTrace(self.request)
        self.counts = environ.get(COUNTED_KEY) is not worker
        if self.counts:
            worker.begin()

    def run(self, app: WSGIApplication) -> Iterable[bytes]:
        if self.request:
            trace.application_called(self.request)
        began = time.perf_counter()
        try:
            body = app(self.environ, self.start_response)
        except BaseException:
            self.end()
            raise
        self.spent += time.perf_counter() - began
        if self.request:
            trace.application_answered(self.request, self.said or "?", self.announced)
        if type(body) in (list, tuple):
            # It is made, and what is left to do is not the application's. Of other blocks the server makes a failure.
            if all(isinstance(block, bytes) for block in body):
                self.given += sum(map(len, body))
                self.answered()
            self.asked = None
            if not self.counts:
                return body
        # A server may take the length of a list for that of the response: what had one keeps it.
        return _SizedBody(self, body) if hasattr(body, "__len__") else _Body(self, body)

    def start_response(
        self, status: str, headers: list[tuple[str, str]], exc_info: Any = None
    ) -> Callable[[bytes], object]:
        self.status = int(status[:3]) if status[:3].isdigit() else 0
        self.said = status
        self.announced = next((value for name, value in headers if name.lower() == "content-length"), None)
        # Balancers believe these two, so the worker alone says them, and not the application.
        headers = [(name, value) for name, value in headers if name.lower() not in OWN_FIELDS]
        if self.asked is not None:
            headers += self.worker.fields(self.asked)
        try:
            write = self.start(status, headers, exc_info) if exc_info else self.start(status, headers)
        finally:
            exc_info = None

        def timed_write(data: bytes) -> None:
            began = time.perf_counter()
            try:
                write(data)
            finally:
                self.spent -= time.perf_counter() - began
            self.given += len(data)

        return timed_write

    @property
    def bodiless(self) -> bool:
        """Whether a server need not ask for a body, as it will not send it."""
        return self.environ.get("REQUEST_METHOD") == "HEAD" or self.status in (204, 304)

    def answered(self) -> None:
        """The application has made all of its response, be it less than it announced."""
        whole = self.bodiless or self.given >= length_of(self.announced)
        if self.asked is not None and 0 < self.status < 500 and whole:
            self.worker.earn(self.asked, self.spent)
        self.asked = None

    def end(self) -> None:
        if self.request and self.counts:
            trace.end(self.request)
        if self.counts:
            self.worker.end()


class _Body(Iterator[bytes]):
    """The application's iterable, timed."""

    def __init__(self, exchange: _Exchange, body: Iterable[bytes]) -> None:
        self._exchange = exchange
        self._body = body
        self._next: Iterator[bytes] | None = None
        self._failed = False
        self._closed = False

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        began = time.perf_counter()
        try:
            if self._next is None:
                self._next = iter(self._body)
            data = next(self._next)
        except StopIteration:
            self._exchange.spent += time.perf_counter() - began
            if not self._failed:
                self._exchange.answered()
            raise
        except BaseException:
            self._failed = True
            raise
        self._exchange.spent += time.perf_counter() - began
        if isinstance(data, bytes):
            self._exchange.given += len(data)
        else:
            # The server will make a failure of it.
            self._failed = True
        return data

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._exchange.bodiless and not self._failed:
            self._exchange.answered()
        try:
            if hasattr(self._body, "close"):
                cast(Any, self._body).close()
        finally:
            self._exchange.end()


class _SizedBody(_Body):
    def __len__(self) -> int:
        return len(cast(Any, self._body))
