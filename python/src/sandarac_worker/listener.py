"""The socket of a worker, and how balancers get to see it.

In a directory of sockets a name means: here something accepts. So a socket is made under a name that balancers pass
over (``.worker-3.4711``), renamed to ``worker-3.sock`` once its worker serves, and removed first when it stops.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
from dataclasses import dataclass

_TCP = re.compile(r"(?:(?P<host>[A-Za-z0-9.-]*)|\[(?P<ip>[0-9A-Fa-f:.]+)\]):(?P<port>[0-9]{1,5})")
#: Connections that may wait to be accepted.
BACKLOG = 1024


@dataclass(frozen=True)
class Tcp:
    """A host and a port, 0 for any that is free."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Tcp:
        """``HOST:PORT`` or ``[IPV6]:PORT``; raises ``ValueError``."""
        found = _TCP.fullmatch(text)
        if found is None or int(found["port"]) > 65535:
            raise ValueError(f"not HOST:PORT: {text}")
        return cls(found["ip"] or found["host"] or "0.0.0.0", int(found["port"]))


class Listener:
    """A bound, listening socket; ``address`` is what the balancer's configuration calls it."""

    def __init__(
        self, sock: socket.socket, address: str, temporary: str | None = None, path: str | None = None
    ) -> None:
        self.socket = sock
        self.address = address
        self._temporary = temporary
        self._path = path
        self._inode = os.stat(temporary).st_ino if temporary else 0

    def announce(self) -> None:
        """Lets balancers see it. Raises ``OSError``."""
        if self._temporary is not None and self._path is not None:
            # In place of one that a dead worker has left, or that its predecessor still serves.
            os.rename(self._temporary, self._path)
            self._temporary = None

    def withdraw(self) -> None:
        """Takes it out of sight, unless a successor has its place by now. Once: while the socket is open, nothing else
        has its inode, but later that may be a successor's. So it has to come before the socket is closed."""
        paths = (self._temporary, self._path)
        self._temporary = self._path = None
        for path in paths:
            if path is not None:
                with contextlib.suppress(OSError):
                    if os.stat(path).st_ino == self._inode:
                        os.unlink(path)


def unix_listener(path: str, mode: int = 0o660) -> Listener:
    """A Unix socket that :meth:`Listener.announce` makes appear as ``path``. Raises ``OSError``."""
    path = os.path.abspath(path)
    directory, name = os.path.split(path)
    temporary = os.path.join(directory, f".{name.removesuffix('.sock')}.{os.getpid()}")
    if len(os.fsencode(temporary)) > 107:
        raise OSError(f"the path of a Unix socket has at most 107 bytes: {temporary}")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.bind(temporary)
        # Before it listens: nobody may connect who is not meant to.
        os.chmod(temporary, mode)
        sock.listen(BACKLOG)
    except OSError:
        sock.close()
        raise
    return Listener(sock, f"unix:{path}", temporary, path)


def tcp_listener(tcp: Tcp) -> Listener:
    """A TCP socket, its address with the port really bound. Raises ``OSError``."""
    info = socket.getaddrinfo(tcp.host, tcp.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    sock = socket.socket(info[0], socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if tcp.port:
            # A successor binds the same port while its predecessor still serves; the runner has made sure before that
            # nobody else is there.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind(info[4])
        sock.listen(BACKLOG)
    except OSError:
        sock.close()
        raise
    host, port = sock.getsockname()[:2]
    return Listener(sock, f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")


def is_free(tcp: Tcp) -> bool:
    """Whether nothing listens there."""
    info = socket.getaddrinfo(tcp.host, tcp.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    with socket.socket(info[0], socket.SOCK_STREAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(info[4])
        except OSError:
            return False
        return True


def socket_name(slot: int) -> str:
    """The file name of the socket of worker number ``slot``."""
    return f"worker-{slot}.sock"
