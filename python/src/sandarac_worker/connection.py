"""One connection of a balancer, shared by the I/O thread, which reads, and an application thread, which answers.

The application thread sends by itself as long as the socket takes it, so that a response does not wait for the I/O
thread; what is left over is sent by the I/O thread. Everything both touch is under the connection's lock.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from . import trace
from .gateway import Disconnected, base_environ
from .http1 import Continue, Limits, Refused, Request, RequestReader

logger = logging.getLogger("sandarac_worker")

#: Bytes taken from a socket at once.
_READ_SIZE = 64 * 1024
#: Bytes of a response that wait for the client before the application has to.
_HIGH_WATER = 256 * 1024
#: Bytes of further requests that are taken in while one is being answered.
_AHEAD = 64 * 1024


@dataclass(frozen=True)
class Timeouts:
    """How long what may take, in seconds."""

    #: A connection without a request. Longer than a balancer keeps its own, so that it is the one to close them.
    idle: float = 300.0
    #: From the first byte of a head to its last.
    head: float = 10.0
    #: Without a byte of a body, or without the client taking one of a response.
    stall: float = 60.0
    #: For the client to read a refusal before the connection is closed.
    linger: float = 2.0
    #: When draining: for a request that was under way to this worker as it said that it would stop.
    grace: float = 0.5


class State(Enum):
    """Whose turn it is."""

    READING = auto()
    WORKING = auto()
    #: What is left of the last response is sent; then the client is waited for to close.
    LEAVING = auto()
    CLOSED = auto()


class Connection:
    """One accepted connection. ``hand_over`` takes whole requests, ``attend`` asks the I/O thread to call
    :meth:`settle` soon, ``draining`` says whether responses are to be the last."""

    def __init__(
        self,
        sock: socket.socket,
        peer: Any,
        name: str,
        limits: Limits,
        timeouts: Timeouts,
        threads: int,
        hand_over: Callable[[Connection, Request], None],
        attend: Callable[[Connection], None],
        draining: Callable[[], bool],
        now: float,
    ) -> None:
        self.sock = sock
        self.name = name
        self.environ = base_environ(threads, peer)
        self.state = State.READING
        self.deadline = now + timeouts.idle
        #: The client has left, or will send nothing more.
        self.gone = False
        #: The events that the I/O thread's selector looks for.
        self.watched = 0
        self._timeouts = timeouts
        self._reader = RequestReader(limits)
        self._hand_over = hand_over
        self._attend = attend
        self._draining = draining
        self._requests = 0
        self._keep = True
        #: Whether the request under way has its number.
        self._begun = False
        #: Whether the client was told that nothing more comes.
        self._left = False
        self._out: deque[memoryview] = deque()
        self._out_size = 0
        self._lock = threading.Condition()

    # What the application thread calls.

    @property
    def last(self) -> bool:
        """Whether the response is the last one over this connection."""
        return not self._keep or self._draining()

    @property
    def request_name(self) -> str:
        """What the trace log calls the request in hand."""
        return f"{self.name}.{self._requests}"

    def write(self, data: bytes) -> None:
        """Sends, or takes to send. Waits where too much is waiting already. Raises :class:`Disconnected`."""
        with self._lock:
            if self.closed:
                raise Disconnected
            self._send(data)
            if self._out:
                self._attend(self)
            while self._out_size > _HIGH_WATER and not self.closed:
                self._lock.wait()

    def done(self, keep: bool) -> None:
        """The response is made; ``keep`` says whether another may follow."""
        with self._lock:
            if self.state is not State.WORKING:
                return
            # Not what `last` says by now: who was told nothing of an end may be sending the next request.
            self._keep = self._keep and keep
            self.state = State.READING
            # With nothing to do, the I/O thread need not be woken: it will see the next request come.
            if not self._keep or self.gone or self._reader.buffered or self._draining():
                self._attend(self)

    # What the I/O thread calls.

    def reply(self, data: bytes, keep: bool) -> None:
        """Answers from the I/O thread, which must not wait."""
        with self._lock:
            self._send(data)
            self.done(keep)

    def readable(self, now: float) -> None:
        """The socket has something to read, or its end."""
        with self._lock:
            try:
                data = self.sock.recv(_READ_SIZE)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                data = b""
                self._close()
            if self.state is State.CLOSED:
                return
            if self.state is State.LEAVING:
                if not data:
                    self._close()
                return
            if not data:
                self.gone = True
                if self.state is State.READING:
                    self._leave(now)
                return
            fresh = self._reader.idle
            self._reader.feed(data)
            if self.state is State.READING:
                self._read_on(now, fresh)

    def writable(self, now: float) -> None:
        """The socket takes more."""
        with self._lock:
            self._flush()
            self.settle(now)

    def settle(self, now: float) -> None:
        """Goes on after an application thread has left something to do."""
        with self._lock:
            if self._out:
                self.deadline = now + self._timeouts.stall
            if self.state is State.LEAVING:
                self._leave(now)
            elif self.state is not State.READING or self._out_size > _HIGH_WATER:
                return
            elif not self._keep or self.gone:
                self._leave(now)
            elif self._draining() and self._reader.idle:
                self.deadline = now + self._timeouts.grace
            else:
                self._read_on(now, True)

    def expire(self, now: float) -> None:
        """Gives up where the deadline has passed."""
        with self._lock:
            if now < self.deadline or self.state is State.CLOSED:
                return
            if self.state is State.WORKING and not self._out:
                return
            if self.state is State.READING and not self._out and not self._reader.idle:
                self._refuse(Refused(408, "Request Timeout", "the request did not come to its end"), now)
            else:
                self._close()

    def close(self) -> None:
        """Breaks the connection off."""
        with self._lock:
            self._close()

    @property
    def closed(self) -> bool:
        """Whether it is broken off, or over."""
        return self.state is State.CLOSED

    @property
    def wants_read(self) -> bool:
        """Whether the I/O thread is to wait for something to read."""
        if self.state is State.WORKING:
            return not self.gone and self._reader.buffered <= _AHEAD
        return not self.gone and self._out_size <= _HIGH_WATER

    @property
    def wants_write(self) -> bool:
        """Whether the I/O thread is to wait until the socket takes more."""
        return bool(self._out)

    # What both come to, under the lock.

    def _read_on(self, now: float, fresh: bool) -> None:
        try:
            event = self._reader.next()
            if isinstance(event, Continue):
                self._send(b"HTTP/1.1 100 Continue\r\n\r\n")
                event = self._reader.next()
        except Refused as refusal:
            logger.info("a request is refused: %s", refusal)
            self._refuse(refusal, now)
            return
        except OSError as error:
            # No room, or no descriptor: it ends this request, and others may need none.
            logger.error("the body of a request cannot be kept: %s", error)
            self._refuse(Refused(507, "Insufficient Storage", "the body cannot be kept"), now)
            return
        assert not isinstance(event, Continue)
        request = event or self._reader.under_way
        if request is not None and not self._begun:
            self._begun = True
            self._requests += 1
            if trace.enabled():
                trace.begin(self.request_name, request.method, request.target.decode("latin-1"))
        if event is None:
            if request is not None or self._out:
                self.deadline = now + self._timeouts.stall
            elif fresh:
                self.deadline = now + (self._timeouts.idle if self._reader.idle else self._timeouts.head)
            return
        self._begun = False
        if trace.enabled():
            trace.input_read(self.request_name, event.body_length)
        self.state = State.WORKING
        self.deadline = now + self._timeouts.idle
        self._keep = event.keep_alive
        self._hand_over(self, event)

    def _refuse(self, refusal: Refused, now: float) -> None:
        text = f"{refusal.detail}\n".encode("ascii")
        head = (
            f"HTTP/1.1 {refusal.status} {refusal.reason}\r\nContent-Type: text/plain\r\n"
            f"Content-Length: {len(text)}\r\nConnection: close\r\n\r\n"
        )
        self._send(head.encode("ascii") + text)
        self._leave(now)

    def _leave(self, now: float) -> None:
        """Lets the client read the last response: closing at once would take it away from under its eyes where it has
        sent something that was not read (RFC 9112 §9.6)."""
        if self.state is State.CLOSED:
            return
        self.state = State.LEAVING
        self._reader.close()
        if self._out:
            self.deadline = now + self._timeouts.stall
        elif self.gone:
            self._close()
        elif not self._left:
            self._left = True
            self.deadline = now + self._timeouts.linger
            try:
                self.sock.shutdown(socket.SHUT_WR)
            except OSError:
                self._close()

    def _send(self, data: bytes) -> None:
        self._out.append(memoryview(data))
        self._out_size += len(data)
        if len(self._out) == 1:
            self._flush()

    def _flush(self) -> None:
        while self._out:
            try:
                sent = self.sock.send(self._out[0])
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                self._close()
                return
            self._out_size -= sent
            if sent < len(self._out[0]):
                self._out[0] = self._out[0][sent:]
            else:
                self._out.popleft()
        self._lock.notify_all()

    def _close(self) -> None:
        if self.state is State.CLOSED:
            return
        self.state = State.CLOSED
        self.gone = True
        self._reader.close()
        self._out.clear()
        self._out_size = 0
        self._lock.notify_all()
        # The I/O thread takes it out of its selector before the number of the descriptor can be used again.
        self._attend(self)
