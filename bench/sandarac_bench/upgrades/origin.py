"""The origin: bodies of `bodies.py`, checksums of uploads, and WebSockets that echo."""

import asyncio
import zlib

from .bodies import Body

_CHUNK = 65536


async def origin(tells, stored):
    """Tells its port. Counts the requests for objects that may be stored in the shared number `stored`."""

    async def answer(reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                method, path = head.split(" ", 2)[:2]
                if method == "POST":
                    await _checksum(head, reader, writer)
                elif path == "/echo":
                    return await _echo(reader, writer)
                else:
                    if path.startswith("/stored/"):
                        with stored.get_lock():
                            stored.value += 1
                    await _page(path, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=4096)
    tells.send(server.sockets[0].getsockname()[1])
    await asyncio.sleep(86400)


async def _page(path, writer):
    body = Body(path)
    lifetime = "max-age=86400" if path.startswith("/stored/") else "no-store"
    # Every second pass is chunked, because its end is recognised in another way.
    chunked = path.startswith("/pass/") and path[-1] in "13579"
    framing = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {body.size}"
    writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nCache-Control: {lifetime}\r\n{framing}\r\n\r\n".encode())
    for begin in range(0, body.size, _CHUNK):
        part = body.part(begin, min(body.size, begin + _CHUNK))
        writer.write(b"%x\r\n%b\r\n" % (len(part), part) if chunked else part)
        await writer.drain()
    if chunked:
        writer.write(b"0\r\n\r\n")


async def _checksum(head, reader, writer):
    """Answers an upload with its checksum. Its length has to be announced."""
    missing = next(int(line[15:]) for line in head.lower().split("\r\n") if line.startswith("content-length:"))
    checksum = 0
    while missing:
        piece = await reader.read(min(missing, _CHUNK))
        if not piece:
            raise asyncio.IncompleteReadError(b"", missing)
        missing -= len(piece)
        checksum = zlib.crc32(piece, checksum)
    writer.write(b"HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 8\r\n\r\n%08x" % checksum)


async def _echo(reader, writer):
    """Answers each message of a WebSocket with itself. Messages have less than 126 bytes."""
    writer.write(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
        b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
    )
    while True:
        kind, length = await reader.readexactly(2)
        mask = await reader.readexactly(4)
        data = await reader.readexactly(length & 127)
        writer.write(bytes([kind, len(data)]) + bytes(byte ^ mask[at % 4] for at, byte in enumerate(data)))
        if kind & 15 == 8:
            return
