"""gunicorn's hooks: each of its workers gets a socket of its own, in a directory that the balancer watches.

The workers of gunicorn share one socket, so a balancer before it cannot choose among them. As its configuration::

    SANDARAC_SOCKETS=/run/shop gunicorn -c python:sandarac_worker.gunicorn -k gthread --threads 1 -w 8 app:app

or, out of a configuration of your own, import ``pre_fork``, ``post_fork``, ``post_worker_init``, ``worker_exit`` and
``child_exit`` from here. The worker class has to keep connections alive: ``gthread``, with one thread, is what a résumé
is meant for. ``bind`` keeps working beside it.

On a reload gunicorn forks the new workers and tells the old ones to leave at once, long before the new ones have loaded
the application. An old one therefore stays in service until those that were loading when it was told have done so, for
half of ``graceful_timeout`` at most. Where none is loading, its socket is gone at once; it serves on for a second, as
balancers take a moment to see that. Its résumé is written when it is told, and the new one reads it once it has loaded.

A worker that is killed cannot remove its socket. The master removes it when it learns of the death, before it forks a
worker, and when it ends. A socket stays behind only where the master is killed as well; the next master in the same
directory removes it.

``SANDARAC_SOCKETS`` and ``SANDARAC_RESUMES`` are directories of sockets (by default ``sockets``) and of résumé files
(by default none); ``SANDARAC_HISTORY``, ``SANDARAC_MAX_SKILL_AGE``, ``SANDARAC_VERSION`` and
``SANDARAC_CONCURRENCY`` (by default ``--threads``) are as everywhere.
"""

from __future__ import annotations

import _thread
import atexit
import contextlib
import itertools
import mmap
import os
import signal
import sys
import time
from enum import Enum, auto
from types import FrameType
from typing import Any

from .application import is_asgi
from .asgi import AsgiMiddleware
from .listener import Listener, socket_name, unix_listener
from .slots import MAX_SLOTS, remove_leftovers, take_slot
from .worker import process_worker, settings_from
from .wsgi import WsgiMiddleware

#: Seconds between two looks at who is still loading.
_LOOK = 0.05
#: Seconds that a balancer is given to see that a socket has come or gone: one that watches needs a twentieth, where
#: nothing else keeps it busy.
_MOMENT = 1.0
#: Which workers of this master are loading the application: a byte for each, by age. It is shared by all processes
#: forked after this import, and goes with them: what a dead master leaves behind, or another one does, is nowhere seen.
_LOADING = mmap.mmap(-1, 4 * MAX_SLOTS)
#: Seconds that the master waits at its end for workers that it has killed.
_KILLED = 5.0
#: Which worker, by age, was the last to take over each résumé; shared as well.
_TAKEN = memoryview(mmap.mmap(-1, 8 * MAX_SLOTS)).cast("Q")


class _Stage(Enum):
    STAYING = auto()
    #: Told to leave; serves on until nobody needs it.
    DEPARTING = auto()
    #: Out of sight: what the class of worker does on SIGTERM may happen.
    GONE = auto()


class _Place:
    """The slot that a worker process has taken, for as long as it lives. ``graceful_timeout`` is in seconds."""

    def __init__(self, age: int, listener: Listener, graceful_timeout: float) -> None:
        self._age = age
        self.listener = listener
        self._graceful_timeout = graceful_timeout
        self._handlers: dict[int, Any] = {}
        self._stage = _Stage.STAYING

    def heed_signals(self) -> None:
        """Puts the withdrawal before what the class of worker does on the signals that end it. To be called again once
        that may have set handlers of its own."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            before = signal.getsignal(number)
            if before is None or before is not self._handlers.get(number):
                self._handlers[number] = self._handler(before)
                signal.signal(number, self._handlers[number])

    def _handler(self, before: Any) -> Any:
        # An event loop with a handler of its own hears of the signal past this one: nothing postpones that.
        heard_elsewhere = getattr(before, "__name__", "") == "_sighandler_noop"

        def leave(number: int, frame: FrameType | None) -> None:
            if number == signal.SIGTERM and not heard_elsewhere and self._stage is not _Stage.GONE:
                self._depart()
                return
            self.listener.withdraw()
            if callable(before):
                before(number, frame)
            elif before == signal.SIG_DFL:
                # uvicorn raises it again when it is done. It is no reason not to write the résumé.
                sys.exit(0)

        return leave

    def _depart(self) -> None:
        # Some releases of gunicorn repeat themselves every second.
        if self._stage is _Stage.STAYING:
            self._stage = _Stage.DEPARTING
            # Whoever is forked from now on comes in this worker's place, and is none of its successors.
            successors = [age for age, loading in enumerate(_LOADING[:]) if loading]
            # Not `threading`: this may have interrupted it, with its lock held.
            _thread.start_new_thread(self._go, (successors,))

    def _go(self, successors: list[int]) -> None:
        """Leaves as soon as nobody needs this worker any more, while it serves on."""
        # Its successor reads it as soon as the application is loaded.
        _save(self._age)
        moment = min(_MOMENT, self._graceful_timeout / 10)
        if successors:
            until = time.monotonic() + self._graceful_timeout / 2
            while any(_LOADING[age] for age in successors) and time.monotonic() < until:
                time.sleep(_LOOK)
            _save(self._age)
            time.sleep(moment)
        self.listener.withdraw()
        # Who has connected by now did so in good faith.
        time.sleep(moment)
        self._stage = _Stage.GONE
        os.kill(os.getpid(), signal.SIGTERM)


_place: _Place | None = None
#: Which résumé file each worker has, by its age. The master decides, and each worker has it by its fork.
_resumes: dict[int, int] = {}
#: The directories that the workers of this master have had their sockets in. The master removes leftovers there.
_directories: set[str] = set()
#: The process id of the master that removes leftovers at its end.
_master = 0


def pre_fork(server: Any, worker: Any) -> None:
    """Notes that the worker loads, before anyone can be told to make room for it; and which résumé will be its own.
    Removes sockets of workers that are dead. Runs in the master."""
    global _master
    _set_loading(worker, True)
    _directories.add(_sockets())
    _remove_leftovers()
    if _master != os.getpid():
        _master = os.getpid()
        # Not the hook `on_exit`: gunicorn does not call it where a second worker fails while it stops for the first.
        atexit.register(_end, server, _master)
    living = sorted(other.age for other in server.WORKERS.values())
    _assign_resume(worker.age, living, server.num_workers)


def post_fork(server: Any, worker: Any) -> None:
    """Takes a free slot and binds its socket, which nobody sees yet."""
    global _place
    if worker.age not in _resumes:
        raise RuntimeError("the configuration of gunicorn has to import pre_fork from sandarac_worker.gunicorn, too")
    sockets = _sockets()
    os.makedirs(sockets, exist_ok=True)
    listener = unix_listener(os.path.join(sockets, socket_name(take_slot(sockets))))
    _place = _Place(worker.age, listener, worker.cfg.graceful_timeout)
    # As gunicorn's own sockets are, so that every class of worker can work with it.
    from gunicorn.sock import UnixSocket

    worker.sockets = [
        *worker.sockets,
        UnixSocket(listener.address[len("unix:") :], worker.cfg, worker.log, fd=listener.socket.detach()),
    ]
    leave = worker.handle_exit

    def handle_exit(number: int, frame: FrameType | None) -> None:
        # Told to leave while it loads: it will not serve, so nobody is to wait for it.
        _set_loading(worker, False)
        leave(number, frame)

    worker.handle_exit = handle_exit


def post_worker_init(worker: Any) -> None:
    """The application is loaded: it gets its middleware, where it has none. The socket is shown with the worker's first
    sign of life, which it gives when it serves: an ASGI application may have more to do before."""
    if _place is None:
        return
    place = _place
    settings = settings_from(dict(os.environ))
    resumes = os.environ.get("SANDARAC_RESUMES")
    if resumes:
        os.makedirs(resumes, exist_ok=True)
        settings["resume_file"] = os.path.join(os.path.abspath(resumes), f"worker-{_resumes[worker.age]}.json")
    # Of a class of worker that has neither threads nor an event loop, the environment says it.
    settings.setdefault("concurrency", worker.cfg.threads)
    # Not before: whom it replaces has been told to leave by now, and has written its résumé.
    _TAKEN[_resumes[worker.age]] = worker.age
    process_worker().configure(**settings)
    if not isinstance(worker.wsgi, (WsgiMiddleware, AsgiMiddleware)):
        worker.wsgi = AsgiMiddleware(worker.wsgi) if is_asgi(worker.wsgi) else WsgiMiddleware(worker.wsgi)
    place.heed_signals()
    notify = worker.notify

    def serves() -> None:
        worker.notify = notify
        place.heed_signals()
        place.listener.announce()
        _set_loading(worker, False)
        notify()

    worker.notify = serves


def worker_exit(server: Any, worker: Any) -> None:
    """The socket goes, where no signal has taken it already, and the résumé is written. Runs in the worker; and in the
    master for one that was killed, where only the socket can be removed."""
    _set_loading(worker, False)
    if _place is None:
        # Also in a worker that failed before it had a place: what it has made goes, and it ends.
        _remove_leftovers()
    else:
        # One more must not come between the worker and its résumé.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _place.listener.withdraw()
        _save(worker.age)


def child_exit(server: Any, worker: Any) -> None:
    """A worker that was killed while it loaded is not waited for; its socket is removed. Runs in the master."""
    _set_loading(worker, False)
    _remove_leftovers()


def _end(server: Any, master: int) -> None:
    """Removes the sockets of workers that gunicorn has killed because they did not end in time."""
    # A worker inherits this by its fork, and removes its own socket.
    if os.getpid() != master:
        return
    until = time.monotonic() + _KILLED
    for pid in list(server.WORKERS):
        # A worker holds its slot until it is dead, and gunicorn does not wait for that.
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(pid, os.WNOHANG) == (0, 0) and time.monotonic() < until:
                time.sleep(_LOOK)
    _remove_leftovers()


def _remove_leftovers() -> None:
    for directory in _directories:
        remove_leftovers(directory)


def _sockets() -> str:
    """The directory of sockets for workers that start now."""
    return os.path.abspath(os.environ.get("SANDARAC_SOCKETS") or "sockets")


def _set_loading(worker: Any, loading: bool) -> None:
    _LOADING[worker.age % len(_LOADING)] = loading


def _save(age: int) -> None:
    """Writes this worker's résumé, unless a successor has taken it over: what that has learnt since is not undone."""
    if _TAKEN[_resumes[age]] != age:
        process_worker().stop_saving()
    process_worker().save()


def _assign_resume(age: int, living: list[int], wanted: int) -> None:
    """Gives a new worker the résumé of the one that it replaces; or the first that no living worker has. ``living`` are
    ages, oldest first."""
    for gone in _resumes.keys() - living:
        del _resumes[gone]
    # By number, the age of the youngest: there may be older ones that are about to end.
    youngest = {_resumes[other]: other for other in living if other in _resumes}
    if len(living) >= wanted and youngest:
        # So many live on a reload alone, until the old ones are told to leave.
        _resumes[age] = min(youngest, key=youngest.__getitem__)
    else:
        _resumes[age] = next(number for number in itertools.count() if number not in youngest)
