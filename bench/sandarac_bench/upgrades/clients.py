"""The clients of `traffic`: each tells apart all the ways in which a request can fail."""

import asyncio
import random
import time
import zlib

from . import http1, http2
from .bodies import Comparison
from .wire import Ended, Refused, Reset, context

_PATIENCE = 30
_STORED = 400
_DOWNLOAD = 24 << 20
_UPLOAD = 4 << 20
_UPLOAD_SECONDS = 7
_WEBSOCKET = (
    b"GET /echo HTTP/1.1\r\nHost: bench.test\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)

# Failures, each with a bar of zero.
FAILURES = {
    "failed": "an unexpected status, a stream that was reset, no answer within 30 s, or a new connection that was closed unanswered",
    "refused": "no connection",
    "reset": "the connection was reset",
    "raced": "closed in order as the request went out",
    "closed": "closed in order while idle, without notice",
    "truncated": "a body broke off",
    "wrong": "a body of other bytes",
}


class Tally:
    """What the clients of one kind have seen. `details` has the first failures: when they were, and what they were."""

    def __init__(self, clock):
        self.requests = self.repeated = self.moved = self.cut = 0
        # The longest wait of a request, in seconds, with that for its connection.
        self.slowest = 0.0
        self.failures = dict.fromkeys(FAILURES, 0)
        self.details = []
        self._clock = clock

    def answered(self, since):
        self.slowest = max(self.slowest, time.monotonic() - since)

    def failed(self, kind, what):
        self.failures[kind] += 1
        if len(self.details) < 20:
            self.details.append(f"{self._clock()}: {kind}: {what}")


class Failed(Exception):
    """An answer is not the one that was due."""


def _classify(tally, failure, is_reused, what):
    """Notes a failure. `is_reused` says that the connection has answered a request before."""
    cause = failure.__cause__
    if isinstance(failure, Refused):
        kind = "refused"
    elif isinstance(failure, Reset) or isinstance(cause, Reset):
        kind = "reset"
    elif isinstance(failure, http1.Truncated):
        kind = "truncated"
    elif isinstance(failure, Ended):
        kind = "raced" if is_reused else "failed"
    else:
        kind = "failed"
    tally.failed(kind, f"{what}: {type(failure).__name__} {failure}{f' after {cause!r}' if cause else ''}")


class Clients:
    """All clients of one run. They go on until `stop`, and then end their last requests."""

    def __init__(self, site, clock):
        self._site = site
        self._over = asyncio.Event()
        self._clock = clock
        self.tallies = {}
        self._tasks = []
        self._tls = {protocol: context(protocol) for protocol in ("h2", "http/1.1")}
        self._paths = [f"/stored/{(1 + at % 64) * 1024}/{at}" for at in range(_STORED)]
        self._passes = 0

    def begin(self, clients, downloads, download_seconds):
        for at in range(clients):
            # A quarter of each kind rests between requests, so that connections are idle when an upgrade comes.
            rests = at // 6 % 4 == 3
            if at % 3 == 0:
                self._start("HTTP/1.1", self._http1, False, rests)
            elif at % 3 == 1:
                self._start("HTTP/1.1 over TLS", self._http1, True, rests)
            else:
                self._start("HTTP/2 over TLS" if at % 6 == 2 else "HTTP/2", self._http2, at % 6 == 2, rests)
        for at in range(downloads):
            self._start("downloads", self._downloads, at, download_seconds)
        for at in range(4):
            self._start("uploads", self._uploads, at)
        for at in range(2):
            self._start("WebSockets", self._websocket, at % 2 == 1)

    def check(self):
        """Raises what a client was not made for."""
        for task in self._tasks:
            if task.done():
                task.result()

    async def stop(self, patience):
        self._over.set()
        _, late = await asyncio.wait(self._tasks, timeout=patience)
        for task in late:
            task.cancel()
        self.check()
        return len(late)

    def _start(self, kind, client, *arguments):
        tally = self.tallies.setdefault(kind, Tally(self._clock))
        self._tasks.append(asyncio.ensure_future(client(tally, *arguments)))

    def _port(self, secure):
        return self._site.tls if secure else self._site.port

    def _path(self):
        if random.random() < 0.7:
            return random.choice(self._paths)
        self._passes += 1
        return f"/pass/{random.choice((500, 2000, 20000, 100000))}/{self._passes}"

    async def _sleep(self, seconds):
        """Sleeps, but not beyond the end."""
        try:
            await asyncio.wait_for(self._over.wait(), seconds)
        except asyncio.TimeoutError:
            pass

    # Requests one after the other.

    async def _http1(self, tally, secure, rests):
        connection = None
        reused = False
        while not self._over.is_set():
            path, asked = self._path(), time.monotonic()
            try:
                if connection and connection.wire.is_ended():
                    tally.failed("closed", path)
                    connection = connection.close()
                if not connection:
                    reused = False
                    connection = await asyncio.wait_for(
                        http1.Connection.open(self._port(secure), self._tls["http/1.1"] if secure else None), _PATIENCE
                    )
                tally.requests += 1
                keep = await asyncio.wait_for(_get(tally, connection, path), _PATIENCE)
                tally.answered(asked)
                reused = True
                if not keep:
                    tally.moved += 1
                    connection = connection.close()
            except (Refused, Reset, Ended, Failed, http1.Truncated, asyncio.TimeoutError) as failure:
                _classify(tally, failure, reused, path)
                connection = connection and connection.close()
                await self._sleep(0.05)
            if rests:
                await self._sleep(random.uniform(0, 2.5))
        if connection:
            connection.close()

    async def _http2(self, tally, secure, rests):
        """Four requests at a time on one connection. After GOAWAY, others go to a new one."""
        current = None
        opening = asyncio.Lock()

        async def connection():
            nonlocal current
            async with opening:
                if current and not current.is_usable:
                    if current.last is None:
                        kind = "reset" if isinstance(current.ending, Reset) else "closed"
                        # Requests that were under way are counted for themselves.
                        if current.is_idle:
                            tally.failed(kind, "a connection without requests")
                    else:
                        tally.moved += 1
                        left[:] = [old for old in left if not _close_ended(old)] + [current]
                    current = None
                if not current:
                    current = await asyncio.wait_for(
                        http2.Connection.open(self._port(secure), self._tls["h2"] if secure else None), _PATIENCE
                    )
                return current

        async def one_at_a_time():
            while not self._over.is_set():
                path, asked = self._path(), time.monotonic()
                used = None
                tally.requests += 1
                try:
                    while True:
                        used = await connection()
                        try:
                            await asyncio.wait_for(_get2(tally, used, path), _PATIENCE)
                            tally.answered(asked)
                            break
                        except http2.Repeat:
                            tally.repeated += 1
                except (Refused, Reset, Ended, Failed, http1.Truncated, http2.StreamReset, asyncio.TimeoutError) as failure:
                    _classify(tally, failure, used is not None, path)
                    await self._sleep(0.05)
                if rests:
                    await self._sleep(random.uniform(0, 2.5))

        left = []
        await asyncio.gather(*(one_at_a_time() for _ in range(4)))
        for connection_left in left + [current] * bool(current):
            connection_left.close()

    # Slow ones.

    async def _downloads(self, tally, number, seconds):
        """One large body after the other, each for so many seconds: of every five, two come over HTTP/2, and two over TLS."""
        await self._sleep(random.uniform(0, seconds))
        secure, is_http2 = number % 5 in (1, 3), number % 5 in (2, 3)
        turn = 0
        while not self._over.is_set():
            turn += 1
            # A hit, and every second time a pass: chunked for odd numbers.
            path = f"/stored/{_DOWNLOAD}/{number}" if turn % 2 else f"/pass/{_DOWNLOAD}/{number}-{turn + number % 2}"
            compared, began = Comparison(path), time.monotonic()

            async def take(piece):
                compared.take(piece)
                due = began + seconds * compared.received / _DOWNLOAD
                await asyncio.sleep(max(0, due - time.monotonic()))

            async def ask(connection):
                if is_http2:
                    status, _ = await asyncio.wait_for(connection.request(path, take), seconds + _PATIENCE)
                else:
                    status, _, _ = await asyncio.wait_for(connection.request(_head("GET", path), take), seconds + _PATIENCE)
                _judge(tally, status, compared, path)

            await self._alone(tally, is_http2, secure, ask, lambda: f"{path}, {compared.received} bytes,", 1 << 18)

    async def _uploads(self, tally, number):
        """One large body after the other, each in pieces over several seconds. Over HTTP/1.1 and HTTP/2, in clear and over TLS."""
        secure, is_http2 = number % 2 == 1, number >= 2
        data = random.Random(number).randbytes(_UPLOAD)
        expected = b"%08x" % zlib.crc32(data)

        async def pieces():
            for begin in range(0, _UPLOAD, 65536):
                yield data[begin : begin + 65536]
                await asyncio.sleep(_UPLOAD_SECONDS * 65536 / _UPLOAD)

        while not self._over.is_set():
            answer = bytearray()

            async def take(piece):
                answer.extend(piece)

            async def ask(connection):
                if is_http2:
                    status, _ = await asyncio.wait_for(connection.request("/upload", take, _UPLOAD, pieces()), _UPLOAD_SECONDS + _PATIENCE)
                else:
                    head = _head("POST", "/upload", f"Content-Length: {_UPLOAD}\r\n")
                    status, _, _ = await asyncio.wait_for(connection.request(head, take, pieces()), _UPLOAD_SECONDS + _PATIENCE)
                if status != 200:
                    raise Failed(f"status {status}")
                if answer != expected:
                    tally.failed("wrong", f"an upload: {bytes(answer)!r} instead of {expected!r}")

            await self._alone(tally, is_http2, secure, ask, lambda: "an upload")

    async def _alone(self, tally, is_http2, secure, ask, about, receive_buffer=None):
        """One request on a connection of its own. `about` says in a failure what it was."""
        tally.requests += 1
        connection, began = None, time.monotonic()
        try:
            connection = await self._open(is_http2, secure, receive_buffer)
            await ask(connection)
        except http2.Repeat:
            tally.repeated += 1
        except (Refused, Reset, Ended, Failed, http1.Truncated, http2.StreamReset, asyncio.TimeoutError) as failure:
            _classify(tally, failure, False, f"{about()} after {time.monotonic() - began:.1f} s")
            await self._sleep(0.05)
        if connection:
            connection.close()

    async def _open(self, is_http2, secure, receive_buffer=None):
        protocol = "h2" if is_http2 else "http/1.1"
        kind = http2.Connection if is_http2 else http1.Connection
        return await asyncio.wait_for(kind.open(self._port(secure), self._tls[protocol] if secure else None, receive_buffer), _PATIENCE)

    async def _websocket(self, tally, secure):
        """Messages that are echoed. A WebSocket may be cut if its process is the oldest of more than three old ones."""
        while not self._over.is_set():
            connection, opened, holders, count = None, time.monotonic(), set(), 0
            try:
                connection = await self._open(False, secure)
                holders.add(self._site.pid)
                status, _, _ = await asyncio.wait_for(connection.request(_WEBSOCKET, None), _PATIENCE)
                while self._site.upgrading:
                    await asyncio.sleep(0.01)
                holders.add(self._site.pid)
                if status != 101:
                    raise Failed(f"status {status}")
                while not self._over.is_set():
                    count += 1
                    tally.requests += 1
                    message = b"message %8d" % count
                    sent = time.monotonic()
                    await connection.wire.send(bytes([0x82, 0x80 | len(message)]) + b"\0\0\0\0" + message)
                    frame = await asyncio.wait_for(connection.exactly(2 + len(message)), _PATIENCE)
                    tally.answered(sent)
                    if frame[2:] != message:
                        tally.failed("wrong", f"message {count}: {frame!r}")
                        break
                    await asyncio.sleep(0.1)
            except (Refused, Reset, Ended, Failed, http1.Truncated, asyncio.TimeoutError) as failure:
                if any(self._site.had_to_end(pid) for pid in holders):
                    tally.cut += 1
                else:
                    what = f"message {count} of a WebSocket of process {holders}, {time.monotonic() - opened:.1f} s old"
                    _classify(tally, failure, count > 1, what)
                await self._sleep(0.05)
            if connection:
                connection.close()


def _close_ended(connection):
    """Closes a connection that the server has ended, and returns whether it has."""
    if connection.ending:
        connection.close()
    return bool(connection.ending)


def _head(method, path, fields=""):
    return f"{method} {path} HTTP/1.1\r\nHost: bench.test\r\n{fields}\r\n".encode()


async def _get(tally, connection, path):
    compared = Comparison(path)

    async def take(piece):
        compared.take(piece)

    status, _, keep = await connection.request(_head("GET", path), take)
    _judge(tally, status, compared, path)
    return keep


async def _get2(tally, connection, path):
    compared = Comparison(path)

    async def take(piece):
        compared.take(piece)

    status, _ = await connection.request(path, take)
    _judge(tally, status, compared, path)


def _judge(tally, status, compared, path):
    if status != 200:
        raise Failed(f"status {status}")
    if not compared.is_right:
        tally.failed("wrong", path)
    elif not compared.is_whole:
        tally.failed("truncated", f"{path}, {compared.received} bytes")
