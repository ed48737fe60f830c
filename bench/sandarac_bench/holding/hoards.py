"""Clients that make a proxy hold as much as they can, and the origin that helps them. Both run in a process of their own."""

import asyncio
import logging
import multiprocessing
import os
import resource
import signal
import socket
import struct

_PIECE = b"x" * 65536
_HTML = "Content-Type: text/html\r\n"
_WEBSOCKET = (
    "Upgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)
# Bytes that the system takes for a client that reads nothing.
_RECEIVE_BUFFER = 4096
# Connections that are begun a second, so that the load rises in steps.
_BEGUN = 400


def _get(path, more=""):
    return f"GET {path} HTTP/1.1\r\nHost: hoard.test\r\n{more}\r\n".encode()


def _frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def _literal(name, value, index=0):
    """A field of HPACK (RFC 7541 §6.2) without Huffman codes, with names and values of less than 127 bytes."""
    return bytes([index, len(name)]) + name + bytes([len(value)]) + value


def _http2(requests):
    """A connection with these requests, whose responses have no window."""
    settings = struct.pack(">HI", 4, 0)
    return b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(4, 0, 0, settings) + b"".join(requests)


def _head(path, more=b""):
    return b"\x82\x86" + _literal(b":path", path) + _literal(b":authority", b"hoard.test") + more


def _amplified(number, count=100):
    """Requests whose heads name one field of 3900 bytes eight times. The first brings it into the dynamic table."""
    # 3900 is 127 and 3773, in groups of seven bits (RFC 7541 §5.1).
    long = b"\x40\x01a" + b"\x7f\xbd\x1d" + b"a" * 3900
    for at in range(count):
        path = b"/pending/%d/%d" % (number, at)
        yield _frame(1, 5, 2 * at + 1, _head(path, (long if at == 0 else b"") + b"\xbe" * 7))


def _many(path, count=100):
    return [_frame(1, 5, 2 * at + 1, _head(path)) for at in range(count)]


def _hello():
    """A ClientHello of 64 KB without its end."""
    records = [b"\x01\x00\xff\xf0\x03\x03" + b"r" * 16378] + [b"r" * 16384] * 2 + [b"r" * 14000]
    return b"".join(b"\x16\x03\x01" + struct.pack(">H", len(record)) + record for record in records)


# What a client sends, by the name of its profile and its number.
PROFILES = {
    "idle": lambda number: _get("/stored"),
    "pending": lambda number: _get(f"/pending/{number}"),
    "coalesced": lambda number: _get("/pending/all"),
    "late": lambda number: _get(f"/late/{number}"),
    "arriving": lambda number: _get(f"/arriving/{number}"),
    "page": lambda number: _get("/page"),
    "interim": lambda number: _get(f"/interim/{number}"),
    "head": lambda number: b"GET / HTTP/1.1\r\nHost: hoard.test\r\nX: " + b"x" * 30000,
    "hello": lambda number: _hello(),
    "tunnel": lambda number: _get(f"/tunnel/{number}", _WEBSOCKET) + _PIECE * 16,
    "upload": lambda number: f"POST /deaf/{number} HTTP/1.1\r\nHost: hoard.test\r\nContent-Length: 4194304\r\n\r\n".encode()
    + _PIECE * 16,
    "amplified": lambda number: _http2(_amplified(number)),
    "windows": lambda number: _http2(_many(b"/late/h2")),
    "backends": lambda number: _http2(_many(b"/large")),
    "fragments": lambda number: _http2(_many(b"/waiting")),
}

# Connections of a profile; those of HTTP/2 have a hundred streams each.
CONNECTIONS = {"amplified": 60, "windows": 60, "backends": 300, "fragments": 20, "late": 3000, "head": 3000, "pending": 2000, "coalesced": 2000}


async def _answer(reader, writer):
    """One connection of the origin."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            await _respond(head.split(b" ")[1].decode(), writer)
            await writer.drain()
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        pass
    finally:
        writer.close()


async def _respond(path, writer):
    def whole(body, fields):
        writer.write(f"HTTP/1.1 200 OK\r\n{fields}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    kind = path.split("/")[1]
    if kind == "stored":
        whole(b"stored", "Cache-Control: max-age=600\r\n" + _HTML)
    elif kind == "fragment":
        whole(b"f" * 2000, "Cache-Control: max-age=600\r\n" + _HTML)
    elif kind == "page":
        whole("".join(f'<esi:include src="/fragment/{at}"/>' for at in range(200)).encode(), "Cache-Control: max-age=600\r\n" + _HTML)
    elif kind == "waiting":
        include = '<esi:include src="/pending/page"/>'
        whole((include + "text " * 200000 + include * 19).encode(), "Cache-Control: no-store\r\n" + _HTML)
    elif kind == "arriving":
        writer.write(f"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\n{_HTML}Transfer-Encoding: chunked\r\n\r\n".encode())
        for _ in range(400):
            writer.write(b"10000\r\n" + _PIECE + b"\r\n")
            await writer.drain()
        writer.write(b"0\r\n\r\n")
    elif kind == "late":
        await asyncio.sleep(7)
        whole(_PIECE * 16, "Cache-Control: no-store\r\n")
    elif kind == "large":
        # Many wait for it, and get it at the same moment.
        await asyncio.sleep(5)
        whole(_PIECE * 16, "Cache-Control: max-age=2\r\n")
    elif kind == "interim":
        writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: <" + b"l" * 900 + b">\r\n\r\n")
        for _ in range(299):
            writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: <" + b"l" * 900 + b">\r\n\r\n")
        await asyncio.sleep(3600)
    elif kind == "tunnel":
        accept = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
        writer.write(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n{accept}\r\n".encode())
        while True:
            writer.write(_PIECE)
            await writer.drain()
    elif kind == "deaf":
        writer.transport.pause_reading()
        await asyncio.sleep(3600)
    elif kind == "pending":
        await asyncio.sleep(3600)
    else:
        whole(b"passed", "Cache-Control: no-store\r\n")


class Apart:
    """An event loop in a process of its own, on one core, which ends with this object."""

    def __init__(self, core, work, *arguments):
        self._told, tells = multiprocessing.Pipe(duplex=False)
        self._process = multiprocessing.Process(target=_run, args=(core, work, tells, *arguments), daemon=True)
        self._process.start()

    def told(self, patience=30):
        """The next thing that it tells."""
        if not self._told.poll(patience):
            raise TimeoutError("a process beside the bench tells nothing")
        return self._told.recv()

    def stop(self):
        self._process.terminate()
        self._process.join()


def _run(core, work, tells, *arguments):
    # What an event loop says of connections that are dropped says nothing of the proxy.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    os.sched_setaffinity(0, {core})
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    asyncio.run(work(tells, *arguments))


async def origin(tells):
    """An origin, which tells its port."""
    server = await asyncio.start_server(_answer, "127.0.0.1", 0, backlog=4096)
    tells.send(server.sockets[0].getsockname()[1])
    await asyncio.sleep(86400)


async def hoard(tells, profile, port, connections):
    """Clients of a profile, each of which comes back as soon as it is cut off."""
    makes = PROFILES[profile]
    tells.send(connections)
    clients = []
    for number in range(connections):
        clients.append(asyncio.ensure_future(_hoard_one(makes(number), port)))
        await asyncio.sleep(1 / _BEGUN)
    await asyncio.gather(*clients)


async def _hoard_one(request, port):
    loop = asyncio.get_running_loop()
    while True:
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
            client.setblocking(False)
            try:
                await loop.sock_connect(client, ("127.0.0.1", port))
                await loop.sock_sendall(client, request)
                while await _is_open(client):
                    await asyncio.sleep(1)
            except OSError:
                pass
        await asyncio.sleep(1)


async def _is_open(client):
    """Whether a client that reads nothing is still connected: what has come stays where it is."""
    return not client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) and client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == 1
