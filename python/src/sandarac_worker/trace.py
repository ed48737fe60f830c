"""The trace log: one line for each step of each request, for finding out where time goes.

The lines are those of zc.resumelb, so that its tools read them::

    B 4711.3.17 2026-11-20T10:11:12.131313 GET /news?page=2
    I 4711.3.17 2026-11-20T10:11:12.131401 0
    C 4711.3.17 2026-11-20T10:11:12.131415
    A 4711.3.17 2026-11-20T10:11:12.164212 200 OK 5120
    E 4711.3.17 2026-11-20T10:11:12.164399

begin; input read, with its length in bytes; application called; application answered, with status and announced length;
end. The id is process, connection and request: all workers of a runner write to one file. It is off until
:func:`open_trace`, or until the level of the logger ``sandarac_worker.trace`` is set to ``INFO``.
"""

from __future__ import annotations

import contextlib
import datetime
import logging
import logging.handlers
import os
import sys

from .console import say

#: Where an application finds its :class:`ApplicationTrace` in the environ.
ENVIRON_KEY = "tracelog"

logger = logging.getLogger("sandarac_worker.trace")
if logger.level == logging.NOTSET:
    # An application that logs at INFO has not asked for five lines a request.
    logger.setLevel(logging.CRITICAL + 1)


class _File(logging.handlers.WatchedFileHandler):
    """Drops lines while the file cannot be opened or written, says so once, and tries again with each."""

    def __init__(self, path: str) -> None:
        super().__init__(path, delay=True)
        self._error: BaseException | None = None
        self._complained = False

    def emit(self, record: logging.LogRecord) -> None:
        self._error = None
        try:
            # Opens the file anew where it was moved away, and raises where it cannot.
            super().emit(record)
        except OSError as error:
            self._error = error
        if self._error is None:
            self._complained = False
            return
        with contextlib.suppress(OSError):
            # What it holds back goes as well: it would be in the way of whatever is opened next.
            self.close()
        if not self._complained:
            self._complained = True
            say(f"the trace log is not written: {self._error}")

    def handleError(self, record: logging.LogRecord) -> None:
        self._error = sys.exc_info()[1]


def open_trace(path: str) -> None:
    """Switches the trace log on, appending to the file ``path``, or to standard error where that is ``-``. Log rotation
    may move the file away. Lines that cannot be written are dropped."""
    handler = logging.StreamHandler() if path == "-" else _File(path)
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger.addHandler(handler)
    logger.propagate = False
    logger.setLevel(logging.INFO)


def check(path: str) -> None:
    """Whether :func:`open_trace` would write there, for who names the file. Raises ``OSError``."""
    if path != "-":
        with open(path, "a"):
            pass


def enabled() -> bool:
    """Whether anything is written."""
    return logger.isEnabledFor(logging.INFO)


def begin(request: str, method: str, url: str) -> None:
    """The head of a request was read."""
    _line("B", request, f"{method} {url}")


def input_read(request: str, length: int) -> None:
    """All of a request is there, its body of ``length`` bytes too."""
    _line("I", request, str(length))


def application_called(request: str) -> None:
    """The application begins."""
    _line("C", request)


def application_answered(request: str, status: str, length: str | None) -> None:
    """The application returned; its body may yet be made."""
    _line("A", request, f"{status} {length or '?'}")


def end(request: str) -> None:
    """The response is complete, or given up."""
    _line("E", request)


class ApplicationTrace:
    """What an application traces its own steps with: ``environ["tracelog"].log("loaded 30 objects")``."""

    __slots__ = ("_request",)

    def __init__(self, request: str) -> None:
        self._request = request

    def log(self, msg: str | None = None, code: str = "-") -> None:
        """One line, of the application's own code."""
        _line(code, self._request, msg)


def _line(code: str, request: str, message: str | None = None) -> None:
    if not enabled():
        return
    now = datetime.datetime.now().isoformat(timespec="microseconds")
    text = f"{code} {os.getpid()}.{request} {now}"
    if message is not None:
        text = f"{text} {message}"
    # One request, one line: what came from outside must not end it early.
    logger.info("%s", "".join(char if char.isprintable() else "?" for char in text))
