"""Memory of idle connections."""

import socket
import ssl
import time

from ..certificate import HOST
from ..line import Result
from ..load import LoadFailed

_WARM_UP = 200
_SETTLE_SECONDS = 1.0
_MAX_BYTES = 8 * 1024
_BODY = 1024
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _SETTINGS, _GOAWAY = 0, 1, 4, 7
_END_STREAM, _ACK, _END_HEADERS = 1, 1, 4


def idle(stack, options):
    """Resident memory per connection over TLS, idle after one request each."""
    result = Result(f"idle HTTP/2 connection over TLS, {options.idle} idle after one request each: resident memory")
    for name in ("sandarac", "nginx", "haproxy"):
        with stack.servers():
            _, found = stack.start("hit", _BODY, (name,), over_tls=True)
            if name not in found:
                continue
            served = found[name]
            # Allocations that are made once are not charged to the connections.
            _end(_open(served, _WARM_UP))
            time.sleep(_SETTLE_SECONDS)
            before = served.server.daemon.memory()["rss"]
            held = _open(served, options.idle)
            time.sleep(_SETTLE_SECONDS)
            after = served.server.daemon.memory()["rss"]
            ended = sum(_has_ended(connection) for connection in held)
            result.check(not ended, f"{name}: {ended} connections had ended")
            _end(held)
            time.sleep(_SETTLE_SECONDS)
            result.add(name, bytes_each=(after - before) / options.idle, mib=served.server.daemon.memory()["rss"] / 2**20)
    each = result.median("sandarac", "bytes_each")
    result.notes.append("MiB: resident memory after the connections have ended")
    result.bar("≤ 8 KiB", f"{each / 1024:.2f} KiB", each <= _MAX_BYTES)
    return result


def _open(served, count):
    """Connections that have had one response each, and have acknowledged the server's settings."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols(["h2"])
    return [_ask(context, served) for _ in range(count)]


def _ask(context, served):
    connection = context.wrap_socket(socket.create_connection(("127.0.0.1", served.tls), timeout=10), server_hostname=HOST)
    # A literal without Huffman coding for the path and the authority (RFC 7541, Appendix A).
    path = f"{served.prefix}/{_BODY}".encode()
    block = b"\x82\x87" + bytes([0x04, len(path)]) + path + bytes([0x01, len(HOST)]) + HOST.encode()
    head = _frame(_HEADERS, _END_STREAM | _END_HEADERS, 1, block)
    connection.sendall(_PREFACE + _frame(_SETTINGS, 0, 0, b"") + head)
    received, ended = b"", False
    while not ended:
        more = connection.recv(65536)
        if not more:
            raise LoadFailed("the server closed a connection without a response")
        received += more
        while len(received) >= 9 and len(received) >= 9 + int.from_bytes(received[:3], "big"):
            length, kind, flags, stream = int.from_bytes(received[:3], "big"), received[3], received[4], received[5:9]
            received = received[9 + length :]
            if kind == _SETTINGS and not flags & _ACK:
                connection.sendall(_frame(_SETTINGS, _ACK, 0, b""))
            if kind == _GOAWAY:
                raise LoadFailed("the server ended a connection without a response")
            ended |= kind in (_DATA, _HEADERS) and bool(flags & _END_STREAM) and stream == b"\0\0\0\1"
    return connection


def _frame(kind, flags, stream, payload):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def _has_ended(connection):
    connection.setblocking(False)
    try:
        return not connection.recv(1)
    except (ssl.SSLWantReadError, BlockingIOError):
        return False
    except OSError:
        return True


def _end(connections):
    for connection in connections:
        connection.close()
