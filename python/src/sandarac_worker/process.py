"""A worker process, as the runner starts it: ``python -m sandarac_worker.process DESCRIPTOR PLAN``."""

from __future__ import annotations

import logging
import os
import signal
import sys
import traceback
from typing import Any

from . import trace
from .application import NotLoadable, is_asgi, load
from .console import say
from .control import Control, Plan
from .http1 import Limits
from .listener import Listener, Tcp, tcp_listener, unix_listener
from .server import Server
from .worker import Worker, process_worker

#: Exit statuses that the runner understands: to start the same again would fail the same.
NOT_LOADABLE = 3
NOT_BOUND = 4

logger = logging.getLogger("sandarac_worker")


def main() -> int:
    """Serves until drained."""
    control = Control(int(sys.argv[1]))
    plan = Plan.load(sys.argv[2])
    logging.basicConfig(level=logging.WARNING, format=f"worker {plan.slot} [{os.getpid()}] %(levelname)s: %(message)s")
    if plan.trace_log is not None:
        trace.open_trace(plan.trace_log)
    # An application that wraps itself gets this worker, too.
    worker = process_worker()
    worker.configure(
        history=plan.history,
        max_skill_age=plan.max_skill_age,
        resume_file=plan.resume_file,
        version=plan.version,
    )
    try:
        app = load(plan.app, plan.directory)
    except NotLoadable as error:
        say(str(error))
        return NOT_LOADABLE
    except BaseException:
        say(f"{plan.app} cannot be loaded\n{traceback.format_exc()}")
        return NOT_LOADABLE
    try:
        listener = tcp_listener(Tcp.parse(plan.bind)) if plan.path is None else unix_listener(plan.path, plan.mode)
    except OSError as error:
        say(f"{plan.path or plan.bind} cannot be bound: {error}")
        return NOT_BOUND
    try:
        asgi = plan.interface == "asgi" or (plan.interface == "auto" and is_asgi(app))
        status = (
            _serve_asgi(app, plan, worker, listener, control) if asgi else _serve(app, plan, worker, listener, control)
        )
    finally:
        listener.withdraw()
        worker.save()
    return status


def _serve(app: Any, plan: Plan, worker: Worker, listener: Listener, control: Control) -> int:
    server = Server(
        app,
        worker,
        listener.socket,
        threads=plan.threads,
        limits=Limits(body=plan.max_body) if plan.max_body else Limits(),
        max_requests=plan.max_requests,
        drain_timeout=plan.drain_timeout,
        on_drain=listener.withdraw,
        on_spent=lambda: control.say("spent"),
    )
    signal.signal(signal.SIGTERM, lambda *_: server.drain())
    # A Ctrl-C goes to all processes of the terminal; the runner says what becomes of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    control.listen(worker, server.drain)
    listener.announce()
    control.say(f"ready {listener.address}")
    server.serve()
    return 0


def _serve_asgi(app: Any, plan: Plan, worker: Worker, listener: Listener, control: Control) -> int:
    try:
        from .uvicorn import serve
    except ModuleNotFoundError as error:
        if error.name != "uvicorn":
            raise
        say("ASGI needs uvicorn: pip install 'sandarac-worker[uvicorn]'")
        return NOT_LOADABLE
    if plan.max_body:
        say("--max-body is for WSGI: uvicorn has no such limit, and an ASGI application sets its own")
        return NOT_LOADABLE
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return serve(app, plan, worker, listener, control)


if __name__ == "__main__":
    sys.exit(main())
