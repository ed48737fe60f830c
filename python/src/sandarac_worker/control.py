"""What a runner and its workers say to each other, over a socket pair that the worker inherits: lines of UTF-8.

==========  =============  ==========================================================
who         says           means
==========  =============  ==========================================================
worker      ready ADDRESS  it accepts there
worker      spent          it has served its share of requests, once more, and wants a successor
runner      save           write the résumé file: a successor is about to read it
worker      saved          it is written
runner      replaced       do not write it again: it is the successor's now
runner      history N M    remember N requests, and drop skills after M, from now on
==========  =============  ==========================================================

The end of the stream says to a worker that its runner is gone: then it drains, for nobody would restart it.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass

from .worker import Worker


@dataclass(frozen=True)
class Plan:
    """What a worker process is to be, as the runner passes it on: JSON in its last argument."""

    app: str
    slot: int
    directory: str
    #: A path to bind, or ``None`` for TCP.
    path: str | None = None
    mode: int = 0o660
    #: ``HOST:PORT`` to bind where there is no path.
    bind: str = ""
    #: ``wsgi``, ``asgi`` or ``auto``.
    interface: str = "auto"
    threads: int = 1
    history: int = 9999
    max_skill_age: int | None = None
    resume_file: str | None = None
    version: str | None = None
    trace_log: str | None = None
    max_requests: int = 0
    max_body: int = 0
    drain_timeout: float = 30.0

    def dump(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def load(cls, text: str) -> Plan:
        """From JSON."""
        return cls(**json.loads(text))


class Control:
    """The worker's end."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)

    def say(self, line: str) -> None:
        """Tells the runner; it not being there is noticed elsewhere."""
        with contextlib.suppress(OSError):
            self._socket.sendall(f"{line}\n".encode())

    def listen(self, worker: Worker, on_end: Callable[[], None]) -> None:
        """Does what the runner says, and calls ``on_end`` when it is gone; in a thread of its own."""
        threading.Thread(target=self._listen, args=(worker, on_end), name="control", daemon=True).start()

    def _listen(self, worker: Worker, on_end: Callable[[], None]) -> None:
        with self._socket.makefile("r", encoding="utf-8") as lines, contextlib.suppress(OSError):
            for line in lines:
                if line == "save\n":
                    worker.save()
                    self.say("saved")
                elif line == "replaced\n":
                    worker.stop_saving()
                elif line.startswith("history "):
                    _, history, max_skill_age = line.split()
                    worker.update_settings(int(history), int(max_skill_age))
        on_end()
