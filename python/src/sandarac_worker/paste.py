"""``server_runner`` of Paste Deploy, for those who come from zc.resumelb: one worker, in the process that calls it.

.. code-block:: ini

    [server:main]
    use = egg:sandarac-worker
    socket = /run/shop/worker-%(slot)s.sock
    history = 9999
    resume_file = /var/lib/shop/resume-%(slot)s.json
"""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Any

from . import trace
from .console import announce
from .listener import Tcp, tcp_listener, unix_listener
from .server import Server
from .worker import process_worker

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


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
) -> None:
    """Serves ``app`` until SIGTERM or SIGINT. All settings are text, as Paste Deploy gives them: ``socket`` is a path;
    without one, ``address`` is ``HOST:PORT``. Raises ``TypeError`` for a setting that there is not, ``ValueError`` for
    a value that is none, ``OSError`` where the address cannot be bound or the trace log not
    written."""
    worker = process_worker()
    worker.configure(
        history=int(history),
        max_skill_age=None if max_skill_age is None else int(max_skill_age),
        resume_file=resume_file,
        version=version,
    )
    if trace_log is not None:
        trace.check(trace_log)
        trace.open_trace(trace_log)
    listener = unix_listener(socket, int(mode, 8)) if socket else tcp_listener(Tcp.parse(address))
    try:
        server = Server(
            app,
            worker,
            listener.socket,
            threads=int(threads),
            drain_timeout=float(drain_timeout),
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
