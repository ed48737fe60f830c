"""From a whole request to the application and back (PEP 3333): the environ, and the response as bytes.

Runs in the application's thread. Where the bytes go is the business of an :class:`Output`.
"""

from __future__ import annotations

import functools
import logging
import re
import sys
import time
from email.utils import formatdate
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import unquote_to_bytes
from wsgiref.util import FileWrapper

from .http1 import Request

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication, WSGIEnvironment

logger = logging.getLogger("sandarac_worker")

_STATUS = re.compile(r"[2-5][0-9]{2}(?: [\t\x20-\x7e\x80-\xff]*)?")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_LENGTH = re.compile(r"[0-9]{1,18}")
#: Fields of the connection, which is not the application's (PEP 3333, "Other HTTP Features").
_HOP_BY_HOP = frozenset(
    ("connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade")
)


class Disconnected(Exception):
    """Nobody is there any more to send to."""


class Output(Protocol):
    """Where a response goes."""

    def write(self, data: bytes) -> None:
        """Sends, or takes to send; waits where too much is waiting already. Raises :class:`Disconnected`."""

    @property
    def last(self) -> bool:
        """Whether the connection is to be closed behind this response."""


def make_environ(request: Request, base: WSGIEnvironment) -> WSGIEnvironment:
    """The environ of a request, on top of what all requests of a connection have in common."""
    path, _, query = request.target.partition(b"?")
    environ: WSGIEnvironment = {
        **base,
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": "" if path == b"*" else unquote_to_bytes(path).decode("latin-1"),
        "QUERY_STRING": query.decode("latin-1"),
        "REQUEST_URI": request.target.decode("latin-1"),
        "SERVER_PROTOCOL": f"HTTP/1.{request.minor}",
        "wsgi.input": request.body,
    }
    for name, value in request.fields:
        key = _key(name)
        if key is None:
            continue
        text = value.decode("latin-1")
        if key in environ:
            text = f"{environ[key]}{'; ' if key == 'HTTP_COOKIE' else ', '}{text}"
        environ[key] = text
    if request.body_length:
        # A body that came in chunks is whole by now, and its length known.
        environ["CONTENT_LENGTH"] = str(request.body_length)
    if environ.get("HTTP_HOST") == "":
        # Frameworks take an empty one for a name, and refuse it.
        del environ["HTTP_HOST"]
    host, _, port = environ.get("HTTP_HOST", "").rpartition(":")
    if not host or not port.isdigit():
        host, port = environ.get("HTTP_HOST") or "localhost", "80"
    environ["SERVER_NAME"], environ["SERVER_PORT"] = host, port
    return environ


@functools.lru_cache(maxsize=512)
def _key(name: bytes) -> str | None:
    """The key of a field in the environ, ``None`` for one that has none."""
    # Two names that differ in `-` and `_` would become one key, and the one from outside might pass for the
    # other; `Proxy` would become what libraries take for the proxy to use.
    if b"_" in name or name in (b"proxy", b"transfer-encoding"):
        return None
    key = name.decode("ascii").upper().replace("-", "_")
    return key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"


def base_environ(threads: int, peer: Any) -> WSGIEnvironment:
    """What all requests of a connection have in common. ``peer`` is its address as ``accept`` gives it."""
    address, port = (str(peer[0]), str(peer[1])) if isinstance(peer, tuple) else ("", "")
    return {
        "REMOTE_ADDR": address,
        "REMOTE_PORT": port,
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": threads > 1,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        "wsgi.file_wrapper": FileWrapper,
        # The body ends where the request does, also without a length.
        "wsgi.input_terminated": True,
    }


def run(app: WSGIApplication, environ: WSGIEnvironment, output: Output) -> bool:
    """Calls the application and sends its response. True where the connection can take another request."""
    response = _Response(output, environ)
    try:
        body = app(environ, response.start_response)
        try:
            # PEP 3333: of a single block the server knows the length without being told.
            response.single = hasattr(body, "__len__") and len(cast(Any, body)) == 1
            for data in body:
                response.write(data)
            response.finish()
        finally:
            if hasattr(body, "close"):
                cast(Any, body).close()
    except Disconnected:
        return False
    except Exception:
        logger.exception("%s %s failed", environ["REQUEST_METHOD"], environ["REQUEST_URI"])
        if not response.fail():
            return False
    return response.keeps


@functools.lru_cache(maxsize=1)
def _date(second: int) -> str:
    return formatdate(second, usegmt=True)


class _Response:
    """One response, from ``start_response`` to its last byte."""

    def __init__(self, output: Output, environ: WSGIEnvironment) -> None:
        self._output = output
        self._head_only = environ["REQUEST_METHOD"] == "HEAD"
        self._old = environ["SERVER_PROTOCOL"] == "HTTP/1.0"
        self._status: str | None = None
        self._fields: list[tuple[str, str]] = []
        #: Bytes of the body that were announced, and those not yet given.
        self._length: int | None = None
        self._left = 0
        self._sent = False
        self._bodiless = False
        self._chunked = False
        self._whole = True
        self._closes = False
        self.single = False

    @property
    def keeps(self) -> bool:
        """Whether the client can tell where this response ended, and was not told to expect the end."""
        return self._sent and self._whole and not self._closes

    def start_response(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        if exc_info:
            try:
                if self._sent:
                    raise exc_info[1].with_traceback(exc_info[2])
            finally:
                exc_info = None
        elif self._status is not None:
            raise RuntimeError("start_response was called twice without exc_info")
        if not isinstance(status, str) or not _STATUS.fullmatch(status):
            raise ValueError(f"not a status: {status!r}")
        fields = []
        length = None
        for name, value in headers:
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise ValueError(f"not a field name: {name!r}")
            if not isinstance(value, str) or not _VALUE.fullmatch(value):
                raise ValueError(f"not a value for {name}: {value!r}")
            lower = name.lower()
            if lower == "content-length":
                if not _LENGTH.fullmatch(value) or length not in (None, int(value)):
                    raise ValueError(f"not a length: {value!r}")
                length = int(value)
            elif lower not in _HOP_BY_HOP:
                fields.append((name, value))
        self._status, self._fields, self._length = status, fields, length
        return self.write

    def write(self, data: bytes) -> None:
        if not isinstance(data, bytes):
            raise TypeError(f"a block of the body is bytes, not {type(data).__name__}")
        # An empty block is no block: the status may yet change.
        if not data:
            return
        head = b"" if self._sent else self._head(len(data) if self.single else None)
        if self._bodiless:
            data = b""
        elif self._chunked:
            data = b"%x\r\n%b\r\n" % (len(data), data)
        elif self._length is not None:
            if len(data) > self._left:
                logger.error("the application gives more than the %d bytes it announced", self._length)
                self._whole = False
                data = data[: self._left]
            self._left -= len(data)
        if head or data:
            self._output.write(head + data)

    def finish(self) -> None:
        """The application has given all it has."""
        if not self._sent:
            self._output.write(self._head(0))
        elif self._chunked:
            self._output.write(b"0\r\n\r\n")
        if self._left and not self._bodiless:
            logger.error("the application announced %d bytes and gives %d less", self._length, self._left)
            self._whole = False

    def fail(self) -> bool:
        """The application broke. Says so where nothing was said yet; else only the connection can say it."""
        if self._sent:
            return False
        text = b"Internal Server Error\n"
        self._status = "500 Internal Server Error"
        self._fields = [("Content-Type", "text/plain")]
        self._length = len(text)
        try:
            head = self._head(None)
            self._output.write(head if self._bodiless else head + text)
        except Disconnected:
            return False
        return True

    def _head(self, known: int | None) -> bytes:
        """The head; ``known`` is the length of the whole body where the server can tell it."""
        if self._status is None:
            raise RuntimeError("the application did not call start_response")
        self._sent = True
        status = self._status[:3]
        self._bodiless = self._head_only or status in ("204", "304")
        self._closes = self._old or self._output.last
        if self._length is None and not self._bodiless:
            self._length = known
        # To HEAD and in a 304 a length is that of another response, which only the application knows.
        length = None if status == "204" else self._length
        self._left = length or 0
        lines = [f"HTTP/1.1 {self._status if len(self._status) > 3 else status + ' '}\r\n"]
        names = set()
        for name, value in self._fields:
            names.add(name.lower())
            lines.append(f"{name}: {value}\r\n")
        if length is not None:
            lines.append(f"Content-Length: {length}\r\n")
        elif not self._bodiless:
            if self._old:
                self._closes = True
            else:
                self._chunked = True
                lines.append("Transfer-Encoding: chunked\r\n")
        if "date" not in names:
            lines.append(f"Date: {_date(int(time.time()))}\r\n")
        if self._closes:
            lines.append("Connection: close\r\n")
        lines.append("\r\n")
        return "".join(lines).encode("latin-1")
