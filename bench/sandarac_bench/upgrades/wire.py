"""Connections of clients that note how they end: in order, by a reset, or not at all."""

import asyncio
import socket
import ssl


class Refused(Exception):
    """No connection was made."""


class Ended(Exception):
    """The server closed the connection in order, although something was due."""


class Reset(Exception):
    """The server reset the connection."""


def context(protocol):
    """A TLS context for a client that offers this protocol and verifies no certificate."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    made.set_alpn_protocols([protocol])
    return made


class Wire:
    """A TCP connection, with TLS or without.

    Data that came before a reset can be read, also after an attempt to write has failed: so an answer, or a
    GOAWAY, is seen before the reset that follows it.
    """

    def __init__(self, connection, tls):
        self._socket = connection
        self._loop = asyncio.get_running_loop()
        self._sending = asyncio.Lock()
        self._ahead = b""
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = tls and tls.wrap_bio(self._in, self._out, server_hostname="bench.test")

    @classmethod
    async def open(cls, port, tls=None, receive_buffer=None):
        connection = socket.socket()
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if receive_buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        wire = cls(connection, tls)
        try:
            try:
                await wire._loop.sock_connect(connection, ("127.0.0.1", port))
            except ConnectionRefusedError:
                raise Refused from None
            except OSError:
                raise Reset from None
            while tls:
                try:
                    wire._tls.do_handshake()
                    await wire._flush()
                    break
                except ssl.SSLWantReadError:
                    await wire._flush()
                    await wire._feed()
        except BaseException:
            connection.close()
            raise
        return wire

    async def send(self, data):
        """Sends. What goes wrong is seen by the next `receive`."""
        async with self._sending:
            if self._tls:
                try:
                    self._tls.write(data)
                except ssl.SSLError:
                    return
                data = self._out.read()
            try:
                await self._loop.sock_sendall(self._socket, data)
            except OSError:
                pass

    async def receive(self):
        """The next bytes. Raises `Ended` or `Reset` if none come."""
        if self._ahead:
            data, self._ahead = self._ahead, b""
            return data
        while True:
            if self._tls:
                try:
                    data = self._tls.read(65536)
                    if data:
                        return data
                    raise Ended
                except ssl.SSLWantReadError:
                    await self._feed()
                    continue
                except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                    raise Ended from None
            data = await self._receive()
            if not data:
                raise Ended
            return data

    def is_ended(self):
        """Whether the server has ended an idle connection; raises `Reset` if it did so by a reset."""
        try:
            data = self._socket.recv(65536)
        except BlockingIOError:
            return False
        except OSError:
            raise Reset from None
        if not self._tls:
            self._ahead += data
            return not data
        self._in.write(data) if data else self._in.write_eof()
        try:
            data = self._tls.read(65536)
            self._ahead += data
            return not data
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLError:
            return True

    def close(self):
        self._socket.close()

    async def _receive(self):
        try:
            return await self._loop.sock_recv(self._socket, 65536)
        except OSError:
            raise Reset from None

    async def _feed(self):
        data = await self._receive()
        self._in.write(data) if data else self._in.write_eof()

    async def _flush(self):
        data = self._out.read()
        if data:
            try:
                await self._loop.sock_sendall(self._socket, data)
            except OSError:
                pass
