"""``server_runner`` of Paste Deploy, for those who come from zc.resumelb: one worker, in the process that calls it.

.. code-block:: ini

    [server:main]
    use = egg:sandarac-worker
    socket = /run/shop/worker-%(slot)s.sock
    history = 9999
    resume_file = /var/lib/shop/resume-%(slot)s.json
"""

from __future__ import annotations

import difflib
import inspect
import signal
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from . import trace
from .console import announce
from .listener import Tcp, tcp_listener, unix_listener
from .server import Server
from .worker import process_worker, read_count, read_setting

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

_Value = TypeVar("_Value")

#: Settings that zc.resumelb has under another name.
_OLD_NAMES = {"tracelog": "trace_log"}


def server_runner(
    app: WSGIApplication,
    global_conf: dict[str, Any] | None = None,
    *,
    socket: str | None = None,
    address: str = "127.0.0.1:0",
    mode: str = "660",
    history: str = "9999",
    max_skill_age: str | None = None,
    resume_file: str | None = None,
    threads: str = "1",
    version: str | None = None,
    trace_log: str | None = None,
    drain_timeout: str = "30",
    **unknown: str,
) -> None:
    """Serves ``app`` until SIGTERM or SIGINT. All settings are text, as Paste Deploy gives them: ``socket`` is a path;
    without one, ``address`` is ``HOST:PORT``. Raises ``ValueError`` for a setting that there is not and for
    a value that is none, ``OSError`` where the address cannot be bound or the trace log not written."""
    where = (global_conf or {}).get("__file__") or "Paste Deploy"
    where = f"{where}: server of egg:sandarac-worker"
    if unknown:
        raise ValueError(f"{where}: {'; '.join(map(_not_a_setting, unknown))}")

    def read(name: str, value: str, kind: Callable[[str], _Value], wanted: str) -> _Value:
        try:
            return kind(value)
        except ValueError:
            raise ValueError(f"{where}: {name} = {value}: not {wanted}") from None

    given = {"history": history, "max_skill_age": max_skill_age, "resume_file": resume_file, "version": version}
    settings = {
        name: read_setting(name, value, f"{where}: {name}") for name, value in given.items() if value is not None
    }
    thread_count = read("threads", threads, read_count, "a number of threads, at least 1")
    drain_seconds = read("drain_timeout", drain_timeout, _seconds, "a number of seconds from 0 to 86400, such as 30")
    permissions = read("mode", mode, _permissions, "permissions in octal, such as 660")
    tcp = None if socket else read("address", address, Tcp.parse, "HOST:PORT, such as 127.0.0.1:8000")
    worker = process_worker()
    worker.configure(**settings)
    if trace_log is not None:
        trace.check(trace_log)
        trace.open_trace(trace_log)
    listener = tcp_listener(tcp) if tcp else unix_listener(cast(str, socket), permissions)
    try:
        server = Server(
            app,
            worker,
            listener.socket,
            threads=thread_count,
            drain_timeout=drain_seconds,
            on_drain=listener.withdraw,
        )
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: server.drain())
        listener.announce()
        announce(f"worker: {listener.address}")
        server.serve()
    finally:
        listener.withdraw()
        worker.save()


def _not_a_setting(name: str) -> str:
    """What is wrong with a setting that there is not, and which one may be meant."""
    meant = _OLD_NAMES.get(name) or next(iter(difflib.get_close_matches(name, _SETTINGS, n=1)), None)
    if meant is not None:
        return f"there is no setting {name}; use {meant}"
    return f"there is no setting {name}; there are {', '.join(_SETTINGS)}"


def _seconds(text: str) -> float:
    number = float(text)
    if not 0 <= number <= 86400:
        raise ValueError(text)
    return number


def _permissions(text: str) -> int:
    number = int(text, 8)
    if not 0 <= number <= 0o777:
        raise ValueError(text)
    return number


#: All settings there are, in the order of the signature.
_SETTINGS = [
    parameter.name
    for parameter in inspect.signature(server_runner).parameters.values()
    if parameter.kind is inspect.Parameter.KEYWORD_ONLY
]
