"""gunicorn's hooks: each of its workers gets a socket of its own, in a directory that the balancer watches.

The workers of gunicorn share one socket, so a balancer before it cannot choose among them. As its configuration::

    SANDARAC_SOCKETS=/run/shop gunicorn -c python:sandarac_worker.gunicorn -k gthread --threads 1 -w 8 app:app

or, out of a configuration of your own, import ``post_fork``, ``post_worker_init`` and ``worker_exit`` from here. The
worker class has to keep connections alive: ``gthread``, with one thread, is what a résumé is meant for. ``bind`` keeps
working beside it.

``SANDARAC_SOCKETS`` and ``SANDARAC_RESUMES`` are directories of sockets (by default ``sockets``) and of résumé files
(by default none); ``SANDARAC_HISTORY``, ``SANDARAC_MAX_SKILL_AGE`` and ``SANDARAC_VERSION`` are as everywhere.
"""

from __future__ import annotations

import fcntl
import os
import signal
from types import FrameType
from typing import Any

from .asgi import AsgiMiddleware
from .listener import Listener, socket_name, unix_listener
from .worker import process_worker, settings_from
from .wsgi import WsgiMiddleware

#: Workers of one master, at most.
_MAX_SLOTS = 1024


class _Place:
    """The slot that a worker process has taken, for as long as it lives."""

    def __init__(self, lock: int, listener: Listener) -> None:
        self.lock = lock
        self.listener = listener


_place: _Place | None = None


def post_fork(server: Any, worker: Any) -> None:
    """Takes a free slot and binds its socket, which nobody sees yet."""
    global _place
    sockets = os.path.abspath(os.environ.get("SANDARAC_SOCKETS") or "sockets")
    os.makedirs(sockets, exist_ok=True)
    slot, lock = _take_slot(sockets)
    settings = settings_from(dict(os.environ))
    resumes = os.environ.get("SANDARAC_RESUMES")
    if resumes:
        os.makedirs(resumes, exist_ok=True)
        settings["resume_file"] = os.path.join(os.path.abspath(resumes), f"worker-{slot}.json")
    process_worker().configure(**settings)
    listener = unix_listener(os.path.join(sockets, socket_name(slot)))
    _place = _Place(lock, listener)
    # As gunicorn's own sockets are, so that every class of worker can work with it.
    from gunicorn.sock import UnixSocket

    worker.sockets = [
        *worker.sockets,
        UnixSocket(listener.address[len("unix:") :], worker.cfg, worker.log, fd=listener.socket.detach()),
    ]


def post_worker_init(worker: Any) -> None:
    """The application is loaded: it gets its middleware, where it has none, and the socket is shown."""
    if _place is None:
        return
    if not isinstance(worker.wsgi, (WsgiMiddleware, AsgiMiddleware)):
        worker.wsgi = WsgiMiddleware(worker.wsgi)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
        _withdraw_on(number, _place.listener)
    _place.listener.announce()


def worker_exit(server: Any, worker: Any) -> None:
    """The socket goes, where no signal has taken it already, and the résumé is written. Runs in the worker; and in the
    master for one that was killed, where there is nothing to do."""
    if _place is not None:
        _place.listener.withdraw()
        process_worker().save()


def _withdraw_on(number: int, listener: Listener) -> None:
    """Before what gunicorn does on that signal: the balancer is to turn away first."""
    before = signal.getsignal(number)

    def withdraw(number: int, frame: FrameType | None) -> None:
        listener.withdraw()
        if callable(before):
            before(number, frame)

    signal.signal(number, withdraw)


def _take_slot(directory: str) -> tuple[int, int]:
    """The lowest slot that no living process holds, and the descriptor that holds it from now on."""
    for slot in range(_MAX_SLOTS):
        lock = os.open(os.path.join(directory, f".slot-{slot}.lock"), os.O_CREAT | os.O_RDWR, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
        else:
            return slot, lock
    raise RuntimeError(f"more than {_MAX_SLOTS} workers have their sockets in {directory}")
