"""A client of HTTP/2 (RFC 9113) over one connection, which goes on reading after GOAWAY.

The package h2 refuses frames that come after GOAWAY, although requests up to its last stream are still answered.
"""

import asyncio
import struct

import hpack

from .http1 import Truncated
from .wire import Ended, Reset, Wire

_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING, _GOAWAY, _WINDOW_UPDATE, _CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
_END_STREAM, _ACK, _END_HEADERS, _PADDED, _PRIORITY = 1, 1, 4, 8, 32
_REFUSED_STREAM = 7
_WINDOW = 1 << 30


class Repeat(Exception):
    """The server has not processed a request, which may be sent again."""


class StreamReset(Exception):
    """The server reset a stream."""


class _Stream:
    def __init__(self, take, window):
        self.take = take
        self.window = window
        self.status = self.fields = None
        self.done = asyncio.get_running_loop().create_future()


class Connection:
    def __init__(self, wire, secure):
        self.wire = wire
        self.last = None
        self._secure = secure
        self._streams = {}
        self._next = 1
        self._decoder = hpack.Decoder()
        self._window = self._initial_window = 65535
        self._window_grew = asyncio.Event()
        self._unreported = 0
        self._ending = None
        self._reader = None

    @classmethod
    async def open(cls, port, tls=None, receive_buffer=None):
        self = cls(await Wire.open(port, tls, receive_buffer), bool(tls))
        settings = struct.pack(">HIHI", 2, 0, 4, _WINDOW)
        await self.wire.send(
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
            + _frame(_SETTINGS, 0, 0, settings)
            + _frame(_WINDOW_UPDATE, 0, 0, struct.pack(">I", _WINDOW))
        )
        self._reader = asyncio.ensure_future(self._read())
        return self

    @property
    def is_usable(self):
        """Whether new requests may be sent."""
        return self.last is None and self._ending is None

    @property
    def ending(self):
        """How the connection ended, if it has."""
        return self._ending

    @property
    def is_idle(self):
        return not self._streams

    def close(self):
        if self._reader:
            self._reader.cancel()
        self.wire.close()

    async def request(self, path, take, length=None, pieces=None):
        """Sends a GET, or a POST with a body of `length` bytes. As in HTTP/1.1; returns status and fields."""
        if not self.is_usable:
            raise Repeat
        number, self._next = self._next, self._next + 2
        stream = self._streams[number] = _Stream(take, self._initial_window)
        block = (
            bytes([0x83 if pieces else 0x82, 0x87 if self._secure else 0x86])
            + _literal(b"\x04", path.encode())
            + _literal(b"\x01", b"bench.test")
        )
        if pieces:
            block += _literal(b"\x0f\x0d", str(length).encode())
        await self.wire.send(_frame(_HEADERS, _END_HEADERS | (0 if pieces else _END_STREAM), number, block))
        try:
            if pieces:
                async for piece in pieces:
                    await self._send(number, stream, piece)
                await self.wire.send(_frame(_DATA, _END_STREAM, number))
            await stream.done
            return stream.status, stream.fields
        finally:
            self._streams.pop(number, None)
            if stream.done.done() and not stream.done.cancelled():
                stream.done.exception()

    async def _send(self, number, stream, piece):
        while piece and not stream.done.done():
            size = min(len(piece), 16384, self._window, stream.window)
            if size <= 0:
                self._window_grew.clear()
                await self._window_grew.wait()
                continue
            self._window -= size
            stream.window -= size
            await self.wire.send(_frame(_DATA, 0, number, piece[:size]))
            piece = piece[size:]

    async def _read(self):
        held = b""
        try:
            while True:
                while len(held) < 9 or len(held) < 9 + int.from_bytes(held[:3], "big"):
                    held += await self.wire.receive()
                length = int.from_bytes(held[:3], "big")
                kind, flags = held[3], held[4]
                number = int.from_bytes(held[5:9], "big")
                payload, held = held[9 : 9 + length], held[9 + length :]
                await self._frame(kind, flags, number, payload)
        except (Ended, Reset) as ending:
            self._ending = ending
        except asyncio.CancelledError:
            self._ending = Ended()
            raise
        except Exception as fault:
            # What this client cannot read is raised by its requests.
            self._ending = fault
        finally:
            self._window_grew.set()
            for number, stream in list(self._streams.items()):
                self._fail(number, stream)

    def _fail(self, number, stream):
        if stream.done.done():
            return
        if self.last is not None and number > self.last:
            failure = Repeat()
        elif stream.status is not None:
            failure = Truncated()
            failure.__cause__ = self._ending
        else:
            failure = self._ending or Ended()
        stream.done.set_exception(failure)

    async def _frame(self, kind, flags, number, payload):
        stream = self._streams.get(number)
        if kind == _DATA:
            length = len(payload)
            if flags & _PADDED:
                payload = payload[1 : length - payload[0]]
            if stream and payload:
                await stream.take(payload)
            await self._report(number, length, bool(flags & _END_STREAM))
        elif kind == _HEADERS:
            if flags & _PADDED:
                payload = payload[1 : len(payload) - payload[0]]
            if flags & _PRIORITY:
                payload = payload[5:]
            assert flags & _END_HEADERS, "a head in several frames"
            fields = dict(self._decoder.decode(payload))
            status = int(fields.pop(":status", 0))
            if stream and status >= 200:
                stream.status, stream.fields = status, fields
        elif kind == _RST_STREAM and stream and not stream.done.done():
            code = int.from_bytes(payload, "big")
            stream.done.set_exception(Repeat() if code == _REFUSED_STREAM else StreamReset(code))
            self._window_grew.set()
        elif kind == _SETTINGS and not flags & _ACK:
            for at in range(0, len(payload), 6):
                name, value = struct.unpack(">HI", payload[at : at + 6])
                if name == 4:
                    for open_stream in self._streams.values():
                        open_stream.window += value - self._initial_window
                    self._initial_window = value
            self._window_grew.set()
            await self.wire.send(_frame(_SETTINGS, _ACK, 0))
        elif kind == _PING and not flags & _ACK:
            await self.wire.send(_frame(_PING, _ACK, 0, payload))
        elif kind == _GOAWAY:
            self.last = int.from_bytes(payload[:4], "big") & 0x7FFFFFFF
            for above in [above for above in self._streams if above > self.last]:
                self._fail(above, self._streams[above])
        elif kind == _WINDOW_UPDATE:
            if number == 0:
                self._window += int.from_bytes(payload, "big")
            elif stream:
                stream.window += int.from_bytes(payload, "big")
            self._window_grew.set()
        if kind in (_DATA, _HEADERS) and flags & _END_STREAM and stream and not stream.done.done():
            stream.done.set_result(None)

    async def _report(self, number, length, is_last):
        """Gives back the window of the connection; that of a stream is large enough for all of its response."""
        self._unreported += length
        if self._unreported > _WINDOW // 4:
            grown, self._unreported = self._unreported, 0
            await self.wire.send(_frame(_WINDOW_UPDATE, 0, 0, struct.pack(">I", grown)))


def _frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def _literal(name, value):
    """A field of HPACK (RFC 7541 §6.2.2) without Huffman codes; its name is in the static table, its value has less than 127 bytes."""
    return name + bytes([len(value)]) + value
