"""Reading HTTP/1.1 requests (RFC 9112): bytes in, whole requests out, and nothing that has two readings.

No sockets and no clock. What a worker behind a balancer does not need is refused rather than interpreted: whoever
can make two servers disagree on where a request ends can smuggle one past the first.
"""

from __future__ import annotations

import contextlib
import io
import ipaddress
import re
import tempfile
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import IO, Union

_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t\x20-\x7e\x80-\xff]*)")
_METHOD = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}")
_TARGET = re.compile(rb"[\x21\x22\x24-\x7e\x80-\xff]+")
_HOST = re.compile(
    rb"(?:\[(?P<ip>[0-9A-Fa-f:.]+)\]|(?:[A-Za-z0-9._~!$&'()*+;=-]|%[0-9A-Fa-f]{2})+)(?::(?P<port>[0-9]{0,5}))?"
)
_BARE_LF = re.compile(rb"(?<!\r)\n")
_VERSION = re.compile(rb"HTTP/[0-9]\.[0-9]")
_LENGTH = re.compile(rb"[0-9]{1,18}")
_SIZE = re.compile(rb"[0-9A-Fa-f]{1,15}")
_EXTENSION = re.compile(
    rb"(?:;[!#$%&'*+.^_`|~0-9A-Za-z-]+"
    rb"(?:=(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+"
    rb'|"(?:[\t\x20\x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t\x20-\x7e\x80-\xff])*"))?)*'
)

#: Fields that say what a request is, rather than what it is about.
_UNDERSTOOD = frozenset((b"host", b"transfer-encoding", b"content-length", b"connection", b"expect"))


@dataclass(frozen=True)
class Limits:
    """What a request may measure, in bytes unless it says otherwise."""

    #: The line of method, target and version.
    request_line: int = 16 * 1024
    #: The whole head, that line and all fields.
    head: int = 64 * 1024
    #: Fields of a head, in number.
    fields: int = 200
    #: The name of one.
    field_name: int = 255
    #: The body, also one that comes in chunks.
    body: int = 1024 * 1024 * 1024
    #: What of a body is kept in memory; a longer one goes to a temporary file.
    memory: int = 512 * 1024
    #: The line of a chunk's size and extensions.
    chunk_line: int = 256
    #: The extensions of all chunks of a body, which say nothing to anyone.
    extensions: int = 16 * 1024
    #: The fields behind the last chunk, which are read and thrown away.
    trailers: int = 8 * 1024
    #: Those in number.
    trailer_fields: int = 64


class Refused(Exception):
    """A request that is not served. The connection has to be closed: where the next one would begin is unknown."""

    def __init__(self, status: int, reason: str, detail: str) -> None:
        super().__init__(f"{status} {reason}: {detail}")
        self.status = status
        self.reason = reason
        self.detail = detail


def _bad(detail: str) -> Refused:
    return Refused(400, "Bad Request", detail)


@dataclass
class Request:
    """A whole request. ``body`` stands at its beginning."""

    method: str
    #: As it came, without the authority of the absolute form.
    target: bytes
    #: 0 or 1, behind ``HTTP/1.``.
    minor: int
    #: Names in lower case, values without the blanks around them.
    fields: list[tuple[bytes, bytes]]
    #: Whether the client wants to send another one over this connection.
    keep_alive: bool
    expects_continue: bool = False
    body: IO[bytes] = field(default_factory=io.BytesIO)
    body_length: int = 0


class Continue:
    """The client waits for ``100 Continue`` before it sends the body."""


Event = Union[Request, Continue]


class _State(Enum):
    HEAD = auto()
    LENGTH = auto()
    CHUNK_LINE = auto()
    CHUNK_DATA = auto()
    CHUNK_END = auto()
    TRAILERS = auto()


class RequestReader:
    """Reads the requests of one connection, one after the other."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._buffer = bytearray()
        self._state = _State.HEAD
        #: How far the buffer was searched for the end that the state waits for.
        self._searched = 0
        #: Bytes missing of the body, or of the chunk.
        self._missing = 0
        self._extensions = 0
        self._trailer_fields = 0
        self._request: Request | None = None
        self._blank_skipped = False
        self._asked = False

    @property
    def buffered(self) -> int:
        """Bytes fed and not yet part of a request."""
        return len(self._buffer)

    @property
    def idle(self) -> bool:
        """Whether nothing of a next request has come."""
        return self._state is _State.HEAD and not self._buffer

    @property
    def under_way(self) -> Request | None:
        """The request whose head was read and whose body has not come to its end."""
        return self._request

    def feed(self, data: bytes) -> None:
        """Takes what came; :meth:`next` says what it amounts to. The caller bounds what it feeds before asking."""
        self._buffer += data

    def next(self) -> Event | None:
        """The next event, ``None`` where more has to come first. Raises :class:`Refused`, or ``OSError`` where there is
        no temporary file for a long body; and is of no use then."""
        while True:
            if self._state is _State.HEAD:
                head = self._take_head()
                if head is None:
                    return None
                self._begin(head)
            request = self._request
            assert request is not None
            if request.expects_continue and not self._asked:
                self._asked = True
                # Whoever sends the body unasked waits for no word.
                if not self._buffer and not (self._state is _State.LENGTH and not self._missing):
                    return Continue()
            if not self._advance(request):
                return None
            if self._request is None:
                return request

    def _take_head(self) -> bytes | None:
        if not self._blank_skipped and self._buffer.startswith(b"\r\n"):
            # One empty line before a request is forgiven (RFC 9112 §2.2).
            del self._buffer[:2]
            self._blank_skipped = True
        end = self._buffer.find(b"\r\n\r\n", max(self._searched - 3, 0))
        size = len(self._buffer) if end < 0 else end + 4
        if size > self._limits.head:
            line = self._buffer.find(b"\r\n", 0, self._limits.request_line + 2)
            if line < 0:
                raise Refused(414, "URI Too Long", "the request line is too long")
            raise Refused(431, "Request Header Fields Too Large", "the head is too large")
        if end < 0:
            line = self._buffer.find(b"\r\n")
            if line > self._limits.request_line or (line < 0 and len(self._buffer) > self._limits.request_line + 1):
                raise Refused(414, "URI Too Long", "the request line is too long")
            # What can only become a refusal is refused before it can make anyone wait.
            if _BARE_LF.search(self._buffer, self._searched):
                raise _bad("a line ends in a bare LF")
            self._searched = len(self._buffer)
            return None
        head = bytes(self._buffer[:end])
        del self._buffer[: end + 4]
        self._searched = 0
        self._blank_skipped = False
        return head

    def _begin(self, head: bytes) -> None:
        self._asked = False
        self._extensions = self._trailer_fields = 0
        self._request, framing = _parse_head(head, self._limits)
        if framing is None:
            self._state = _State.CHUNK_LINE
        else:
            self._state, self._missing = _State.LENGTH, framing

    def _advance(self, request: Request) -> bool:
        """Takes one step in the body. False where more has to come first; a whole request leaves ``_request`` empty."""
        state = self._state
        if state in (_State.LENGTH, _State.CHUNK_DATA):
            if self._missing:
                if not self._buffer:
                    return False
                part = bytes(self._buffer[: self._missing])
                del self._buffer[: len(part)]
                self._missing -= len(part)
                self._append(request, part)
            elif state is _State.LENGTH:
                self._finish(request)
            else:
                self._state = _State.CHUNK_END
            return True
        if state is _State.CHUNK_END:
            if not b"\r\n".startswith(bytes(self._buffer[:2])):
                raise _bad("a chunk is not of the size it says")
            if len(self._buffer) < 2:
                return False
            del self._buffer[:2]
            self._state = _State.CHUNK_LINE
            return True
        return self._chunk_line(request) if state is _State.CHUNK_LINE else self._trailers(request)

    def _chunk_line(self, request: Request) -> bool:
        line = self._line(self._limits.chunk_line, _bad("the line of a chunk is too long"))
        if line is None:
            return False
        size = _SIZE.match(line)
        if size is None:
            raise _bad("a chunk has no size")
        if not _EXTENSION.fullmatch(line, size.end()):
            raise _bad("a chunk has something else than its size and extensions")
        self._extensions += len(line) - size.end()
        if self._extensions > self._limits.extensions:
            raise _bad("the chunks have more extensions than anyone needs")
        self._missing = int(size.group(), 16)
        if request.body_length + self._missing > self._limits.body:
            raise Refused(413, "Content Too Large", "the body is too large")
        if self._missing:
            self._state = _State.CHUNK_DATA
        else:
            self._state, self._missing = _State.TRAILERS, self._limits.trailers
        return True

    def _trailers(self, request: Request) -> bool:
        too_large = Refused(431, "Request Header Fields Too Large", "the trailer section is too large")
        line = self._line(self._missing, too_large)
        if line is None:
            return False
        self._missing -= len(line) + 2
        if line:
            self._trailer_fields += 1
            if self._trailer_fields > self._limits.trailer_fields:
                raise too_large
            _parse_field(line, self._limits)
        else:
            self._finish(request)
        return True

    def _line(self, limit: int, too_long: Refused) -> bytes | None:
        end = self._buffer.find(b"\n", self._searched)
        if end < 0 and len(self._buffer) <= limit + 1:
            self._searched = len(self._buffer)
            return None
        self._searched = 0
        if end < 0 or end > limit + 1:
            raise too_long
        line = bytes(self._buffer[:end])
        if not line.endswith(b"\r") or b"\r" in line[:-1]:
            raise _bad("a line ends in something else than CR LF")
        del self._buffer[: end + 1]
        return line[:-1]

    def _append(self, request: Request, part: bytes) -> None:
        if request.body_length <= self._limits.memory < request.body_length + len(part):
            assert isinstance(request.body, io.BytesIO)
            spilled = tempfile.TemporaryFile(prefix="sandarac-")  # noqa: SIM115 -- closed with the request
            spilled.write(request.body.getvalue())
            request.body = spilled
        request.body.write(part)
        request.body_length += len(part)

    def _finish(self, request: Request) -> None:
        request.body.seek(0)
        self._request = None
        self._state = _State.HEAD
        self._searched = 0

    def close(self) -> None:
        """Lets go of a half-read body."""
        if self._request is not None:
            # What could not be written before cannot be now.
            with contextlib.suppress(OSError):
                self._request.body.close()


def _parse_head(head: bytes, limits: Limits) -> tuple[Request, int | None]:
    """The request, and the length of its body: ``None`` where it comes in chunks."""
    lines = head.split(b"\r\n")
    rest = head.replace(b"\r\n", b"")
    if b"\r" in rest or b"\n" in rest:
        raise _bad("a bare CR or LF")
    if len(lines[0]) > limits.request_line:
        raise Refused(414, "URI Too Long", "the request line is too long")
    if len(lines) - 1 > limits.fields:
        raise Refused(431, "Request Header Fields Too Large", "there are too many fields")
    method, target, minor = _parse_request_line(lines[0])
    fields = [_parse_field(line, limits) for line in lines[1:]]
    found: dict[bytes, list[bytes]] = {}
    for name, value in fields:
        if name in _UNDERSTOOD:
            found.setdefault(name, []).append(value)
    hosts = found.get(b"host", [])
    if len(hosts) > 1 or (minor == 1 and not hosts):
        raise _bad("not exactly one Host")
    # One that is empty says that there is none (RFC 9112 §3.2): a balancer puts it into what came as HTTP/1.0 without.
    if hosts and hosts[0] and not _is_host(hosts[0]):
        raise _bad("Host is not a host")
    target, authority = _origin_form(method, target)
    if authority is not None:
        # The absolute form says it better (RFC 9112 §3.2.2).
        fields = [(b"host", authority), *(pair for pair in fields if pair[0] != b"host")]
    framing = _framing(found.get(b"transfer-encoding", []), found.get(b"content-length", []), minor, limits)
    options = {option.strip().lower() for value in found.get(b"connection", ()) for option in value.split(b",")}
    expectations = found.get(b"expect", ())
    if any(value.lower() != b"100-continue" for value in expectations):
        raise Refused(417, "Expectation Failed", "an expectation other than 100-continue")
    keep_alive = minor == 1 and b"close" not in options
    request = Request(method.decode("ascii"), target, minor, fields, keep_alive, minor == 1 and bool(expectations))
    return request, framing


def _parse_request_line(line: bytes) -> tuple[bytes, bytes, int]:
    parts = line.split(b" ")
    if len(parts) != 3 or not _METHOD.fullmatch(parts[0]) or not _TARGET.fullmatch(parts[1]):
        raise _bad("the request line is not method, target and version")
    method, target, version = parts
    if version not in (b"HTTP/1.1", b"HTTP/1.0"):
        if not _VERSION.fullmatch(version):
            raise _bad("the version is none")
        raise Refused(505, "HTTP Version Not Supported", "neither HTTP/1.1 nor HTTP/1.0")
    return method, target, version[-1] - ord("0")


def _parse_field(line: bytes, limits: Limits) -> tuple[bytes, bytes]:
    found = _FIELD.match(line)
    if found is None:
        raise _bad("a field has no name, a folded line, or blanks before the colon")
    name, value = found.groups()
    if len(name) > limits.field_name:
        raise Refused(431, "Request Header Fields Too Large", "the name of a field is too long")
    if found.end() != len(line):
        raise _bad("a field value holds control characters")
    name, trimmed = name.lower(), value.strip(b" \t")
    if name == b"transfer-encoding" and value.lstrip(b" ") != trimmed:
        # Not every server takes a tab, or a blank behind it, for nothing; one that does not sees no chunks.
        raise _bad("Transfer-Encoding with blanks")
    return name, trimmed


def _is_host(value: bytes) -> bool:
    found = _HOST.fullmatch(value)
    if found is None or int(found["port"] or 0) > 65535:
        return False
    if found["ip"] is None:
        return True
    try:
        ipaddress.IPv6Address(found["ip"].decode("ascii"))
    except ValueError:
        return False
    return True


def _origin_form(method: bytes, target: bytes) -> tuple[bytes, bytes | None]:
    if target.startswith(b"/") or (target == b"*" and method == b"OPTIONS"):
        return target, None
    absolute = re.fullmatch(rb"(?i:https?)://([^/?]+)(.*)", target)
    if absolute is None or method == b"CONNECT" or not _is_host(absolute[1]):
        raise _bad("the target is neither a path nor a URI")
    path = absolute[2]
    return (path if path.startswith(b"/") else b"/" + path), absolute[1]


def _framing(codings: list[bytes], lengths: list[bytes], minor: int, limits: Limits) -> int | None:
    if codings:
        if lengths:
            raise _bad("both Transfer-Encoding and Content-Length")
        if minor == 0:
            raise _bad("Transfer-Encoding in HTTP/1.0")
        listed = [part.strip(b" \t").lower() for part in codings[0].split(b",")]
        if b"chunked" not in listed[:-1] and all(_TOKEN.fullmatch(part) for part in listed) and listed != [b"chunked"]:
            raise Refused(501, "Not Implemented", "a transfer coding other than chunked")
        if len(codings) > 1 or codings[0].lower() != b"chunked":
            raise _bad("Transfer-Encoding is not chunked, once")
        return None
    if not lengths:
        return 0
    if len(lengths) > 1 or not _LENGTH.fullmatch(lengths[0]):
        raise _bad("Content-Length is not one number")
    length = int(lengths[0])
    if length > limits.body:
        raise Refused(413, "Content Too Large", "the body is too large")
    return length
