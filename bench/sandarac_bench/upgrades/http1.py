"""A client of HTTP/1.1 over one connection."""

from .wire import Ended, Wire


class Truncated(Exception):
    """A response broke off; the cause is `Ended` or `Reset`."""


class Connection:
    def __init__(self, wire):
        self.wire = wire
        self._held = b""

    @classmethod
    async def open(cls, port, tls=None, receive_buffer=None):
        return cls(await Wire.open(port, tls, receive_buffer))

    def close(self):
        self.wire.close()

    async def request(self, head, take, pieces=None):
        """Sends a request with this head, and the body that an asynchronous iterator gives. The body of the response goes to
        `take`, a coroutine function. Returns status, fields, and whether the connection can be used again."""
        await self.wire.send(head)
        if pieces:
            async for piece in pieces:
                await self.wire.send(piece)
        while b"\r\n\r\n" not in self._held:
            try:
                self._held += await self.wire.receive()
            except Ended as ended:
                if self._held:
                    raise Truncated from ended
                raise
        text, _, self._held = self._held.partition(b"\r\n\r\n")
        lines = text.decode("latin-1").split("\r\n")
        status = int(lines[0].split(" ")[1])
        fields = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
        if status != 101:
            try:
                await self._body(fields, take)
            except Exception as failure:
                raise Truncated from failure
        return status, fields, "close" not in fields.get("connection", "")

    async def _body(self, fields, take):
        if "chunked" not in fields.get("transfer-encoding", ""):
            return await self._exactly(int(fields.get("content-length", 0)), take)
        while True:
            while b"\r\n" not in self._held:
                self._held += await self.wire.receive()
            size, _, self._held = self._held.partition(b"\r\n")
            size = int(size.split(b";")[0], 16)
            await self._exactly(size, take)
            while len(self._held) < 2:
                self._held += await self.wire.receive()
            self._held = self._held[2:]
            if not size:
                return

    async def _exactly(self, missing, take):
        while missing:
            piece, self._held = (self._held or await self.wire.receive()), b""
            piece, self._held = piece[:missing], piece[missing:]
            missing -= len(piece)
            await take(piece)

    async def exactly(self, length):
        """So many bytes of a tunnel."""
        while len(self._held) < length:
            self._held += await self.wire.receive()
        data, self._held = self._held[:length], self._held[length:]
        return data
