"""The server of a worker: one I/O thread for any number of connections, and one application thread, or a few.

The I/O thread reads requests to their end and queues them, so that the application never waits for a network; it also
answers for the résumé, so that a balancer is not kept waiting by a long request.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from . import trace
from .connection import Connection, Timeouts
from .document import WELL_KNOWN
from .gateway import make_environ, run
from .http1 import Limits, Request
from .worker import Worker
from .wsgi import COUNTED_KEY, REQUEST_KEY, WsgiMiddleware

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

logger = logging.getLogger("sandarac_worker")

#: Connections accepted in a row before others are looked after.
_ACCEPT_BURST = 64
#: Seconds between two looks at deadlines, and before a full descriptor table is tried again.
_SWEEP = 1.0
#: Seconds that the application threads have to end once the connections are gone.
_PARTING = 1.0
#: Connections at a time. Balancers hold a handful each; more is a mistake or an attack.
MAX_CONNECTIONS = 1000

_WELL_KNOWN = WELL_KNOWN.encode("ascii")

_Job = tuple[Connection, Request, str]


class Server:
    """Serves ``app`` on a bound, listening socket until :meth:`drain`.

    ``on_drain`` is called before the socket is closed, in the I/O thread, to take it out of sight; ``on_spent``
    after every ``max_requests`` (0: never), while the server goes on. ``drain_timeout`` is in seconds.
    """

    def __init__(
        self,
        app: WSGIApplication,
        worker: Worker,
        listener: socket.socket,
        *,
        threads: int = 1,
        limits: Limits | None = None,
        timeouts: Timeouts | None = None,
        max_connections: int = MAX_CONNECTIONS,
        max_requests: int = 0,
        drain_timeout: float = 30.0,
        on_drain: Callable[[], None] | None = None,
        on_spent: Callable[[], None] | None = None,
    ) -> None:
        if threads < 1:
            raise ValueError("there is at least 1 application thread")
        self._app = app if isinstance(app, WsgiMiddleware) else WsgiMiddleware(app, worker)
        self._worker = worker
        worker.concurrency = threads
        self._listener = listener
        self._threads = threads
        self._limits = limits or Limits()
        self._timeouts = timeouts or Timeouts()
        self._max_connections = max_connections
        self._max_requests = max_requests
        self._drain_timeout = drain_timeout
        self._on_drain = on_drain
        self._on_spent = on_spent
        self._accepted = 0
        self._served = 0
        self._listening = False
        self._draining = threading.Event()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._connections: set[Connection] = set()
        self._attention: deque[Connection] = deque()
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = socket.socketpair()
        self._wake_read.setblocking(False)
        self._wake_write.setblocking(False)

    def drain(self) -> None:
        """Stops accepting, lets what is in flight end, and then :meth:`serve` return. From any thread, or a signal
        handler."""
        self._draining.set()
        self._wake()

    def serve(self) -> None:
        """Serves until drained. The calling thread is the I/O thread."""
        workers = [
            threading.Thread(target=self._work, name=f"application-{number}", daemon=True)
            for number in range(self._threads)
        ]
        for thread in workers:
            thread.start()
        self._listener.setblocking(False)
        self._selector.register(self._wake_read, selectors.EVENT_READ)
        self._listen()
        try:
            self._loop()
        finally:
            for _ in workers:
                self._jobs.put(None)
            for connection in list(self._connections):
                connection.close()
                self._drop(connection)
            if self._listener.fileno() >= 0:
                # It broke, rather than drained: nobody is to find what is about to be closed.
                self._withdraw()
                self._listener.close()
            self._selector.close()
            self._wake_read.close()
            self._wake_write.close()
            # In all, not each: the résumé is yet to be written, and the runner does not wait for ever.
            until = time.monotonic() + _PARTING
            for thread in workers:
                thread.join(max(until - time.monotonic(), 0.0))

    def _loop(self) -> None:
        swept = time.monotonic()
        drained_by: float | None = None
        # A request whose client has left is in flight as well: the application is not cut off in the middle of it.
        while drained_by is None or self._connections or self._worker.inflight:
            now = time.monotonic()
            for key, mask in self._selector.select(_SWEEP if drained_by is None else 0.05):
                if key.fileobj is self._listener:
                    self._accept()
                elif key.data is None:
                    self._awoken()
                else:
                    self._serve_connection(key.data, mask)
            self._settle()
            now = time.monotonic()
            if drained_by is None and self._draining.is_set():
                drained_by = now + self._drain_timeout
                self._begin_drain(now)
            if drained_by is not None and now > drained_by:
                logger.warning("%d connections are broken off: draining took too long", len(self._connections))
                return
            if now - swept >= _SWEEP or drained_by is not None:
                swept = now
                self._sweep(now)

    def _begin_drain(self, now: float) -> None:
        self._withdraw()
        # Who has connected by now did so in good faith.
        self._accept()
        if self._listening:
            self._selector.unregister(self._listener)
            self._listening = False
        self._listener.close()
        for connection in list(self._connections):
            connection.settle(now)
            self._register(connection)

    def _withdraw(self) -> None:
        if self._on_drain is not None:
            self._on_drain()

    def _listen(self) -> None:
        if not self._listening and not self._draining.is_set():
            self._selector.register(self._listener, selectors.EVENT_READ)
            self._listening = True

    def _accept(self) -> None:
        for _ in range(_ACCEPT_BURST):
            if len(self._connections) >= self._max_connections:
                self._pause_accepting()
                return
            try:
                sock, peer = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionError:
                continue
            except OSError as error:
                # No descriptors left, most likely: trying again at once would keep one core busy with failing.
                logger.error("a connection cannot be accepted: %s", error)
                self._pause_accepting()
                return
            sock.setblocking(False)
            if sock.family != socket.AF_UNIX:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._accepted += 1
            connection = Connection(
                sock,
                peer,
                str(self._accepted),
                self._limits,
                self._timeouts,
                self._threads,
                self._hand_over,
                self._attend,
                self._draining.is_set,
                time.monotonic(),
            )
            self._connections.add(connection)
            self._register(connection)

    def _pause_accepting(self) -> None:
        if self._listening:
            self._selector.unregister(self._listener)
            self._listening = False

    def _serve_connection(self, connection: Connection, mask: int) -> None:
        now = time.monotonic()
        if mask & selectors.EVENT_WRITE:
            connection.writable(now)
        if mask & selectors.EVENT_READ:
            connection.readable(now)
        self._register(connection)

    def _settle(self) -> None:
        for _ in range(len(self._attention)):
            connection = self._attention.popleft()
            connection.settle(time.monotonic())
            self._register(connection)

    def _sweep(self, now: float) -> None:
        for connection in list(self._connections):
            connection.expire(now)
            self._register(connection)
        if len(self._connections) < self._max_connections:
            self._listen()

    def _register(self, connection: Connection) -> None:
        """Brings the selector up to date with what the connection waits for."""
        if connection not in self._connections:
            return
        if connection.closed:
            self._drop(connection)
            return
        wanted = selectors.EVENT_READ if connection.wants_read else 0
        if connection.wants_write:
            wanted |= selectors.EVENT_WRITE
        if wanted == connection.watched:
            return
        if not connection.watched:
            self._selector.register(connection.sock, wanted, connection)
        elif wanted:
            self._selector.modify(connection.sock, wanted, connection)
        else:
            self._selector.unregister(connection.sock)
        connection.watched = wanted

    def _drop(self, connection: Connection) -> None:
        self._connections.discard(connection)
        if connection.watched:
            self._selector.unregister(connection.sock)
            connection.watched = 0
        connection.sock.close()
        if len(self._connections) == self._max_connections - 1:
            self._listen()

    def _attend(self, connection: Connection) -> None:
        self._attention.append(connection)
        self._wake()

    def _wake(self) -> None:
        # Full: it will wake up without this byte. Closed: nobody is asleep.
        with contextlib.suppress(OSError):
            self._wake_write.send(b"\0")

    def _awoken(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._wake_read.recv(4096)

    def _hand_over(self, connection: Connection, request: Request) -> None:
        path, _, query = request.target.partition(b"?")
        if path == _WELL_KNOWN:
            last = connection.last
            connection.reply(self._resume(request, query.decode("latin-1"), last), not last)
            request.body.close()
            trace.end(connection.request_name)
            return
        self._worker.begin()
        self._jobs.put((connection, request, connection.request_name))
        self._served += 1
        if self._max_requests and self._served % self._max_requests == 0 and self._on_spent is not None:
            self._on_spent()

    def _resume(self, request: Request, query: str, last: bool) -> bytes:
        tags = [value.decode("latin-1") for name, value in request.fields if name == b"if-none-match"]
        answer = self._worker.answer(request.method, query, ", ".join(tags) if tags else None)
        fields = [*answer.fields, ("Connection", "close")] if last else answer.fields
        head = f"HTTP/1.1 {answer.status} {answer.reason}\r\n" + "".join(
            f"{name}: {value}\r\n" for name, value in fields
        )
        return (head + "\r\n").encode("ascii") + (b"" if request.method == "HEAD" else answer.body)

    def _work(self) -> None:
        """An application thread."""
        while True:
            job = self._jobs.get()
            if job is None:
                return
            connection, request, name = job
            keep = False
            try:
                # Who has left by now wants no answer; an application that has begun is not stopped.
                if not connection.gone:
                    environ = make_environ(request, connection.environ)
                    environ[COUNTED_KEY] = self._worker
                    environ[REQUEST_KEY] = name
                    keep = run(self._app, environ, connection)
            except BaseException:
                # SystemExit of an application, too, ends a request and not the worker.
                logger.exception("a request failed outside the application's reach")
            finally:
                request.body.close()
                self._worker.end()
                trace.end(name)
                connection.done(keep)
