"""The runner: keeps N worker processes alive, each in a slot of its own.

It serves nothing itself. A worker that dies is started again, after a pause that grows while it keeps dying; on SIGHUP
workers are replaced one after another, each by a successor that already serves, so that a release that does not start
leaves the old one in service; on SIGTERM all drain.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import glob
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import Enum, auto
from queue import SimpleQueue

from . import trace
from .backoff import Backoff
from .console import announce, say
from .control import Plan
from .listener import Tcp, is_free, socket_name
from .registry import Live, Registrar, Registry
from .resume import SKILL_AGE

#: Seconds a worker has to load its application and accept.
START_TIMEOUT = 60.0
#: Seconds before a worker that died is started again: the shortest pause behind none, the longest, and the life after
#: which there is none.
RESTART = (0.5, 30.0, 10.0)
#: Seconds a worker has to write its résumé before its successor starts without.
_SAVE_TIMEOUT = 5.0
#: Seconds beyond the drain timeout before a worker that does not leave is killed.
_KILL_AFTER = 5.0


class NotStarted(Exception):
    """The runner cannot do what it is asked for."""


class _Phase(Enum):
    STARTING = auto()
    SERVING = auto()
    DRAINING = auto()


class _Process:
    """One worker process, from its start to its end."""

    def __init__(self, plan: Plan, now: float) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self.popen = subprocess.Popen(
                [sys.executable, "-m", "sandarac_worker.process", str(theirs.fileno()), plan.dump()],
                pass_fds=[theirs.fileno()],
                cwd=plan.directory,
            )
        ours.setblocking(False)
        self.control = ours
        self.phase = _Phase.STARTING
        self.started = now
        self.address = ""
        #: When it is killed if it has not gone on.
        self.deadline: float | None = now + START_TIMEOUT
        #: Whether it has closed its end.
        self.silent = False
        self._buffer = b""

    def lines(self) -> Iterable[str]:
        """What it has said since."""
        with contextlib.suppress(OSError):
            while data := self.control.recv(4096):
                self._buffer += data
            self.silent = True
        *lines, self._buffer = self._buffer.split(b"\n")
        return [line.decode("utf-8", "replace") for line in lines]

    def say(self, line: str) -> None:
        """Tells it; where it is gone, that will be seen."""
        with contextlib.suppress(OSError):
            self.control.send(f"{line}\n".encode())

    def drain(self, now: float, timeout: float) -> None:
        if self.phase is not _Phase.DRAINING:
            self.phase = _Phase.DRAINING
            self.deadline = now + timeout + _KILL_AFTER
            self.popen.send_signal(signal.SIGTERM)


class _Slot:
    """A place for a worker: a number, a socket, a résumé file."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.backoff = Backoff(*RESTART)
        self.current: _Process | None = None
        self.successor: _Process | None = None
        #: When the next one is started, where there is none.
        self.start_at: float | None = 0.0
        #: Whether the one in service has served its share and asked for a successor.
        self.spent = False
        #: Until when the one in service is given to write its résumé for its successor.
        self.saved_by: float | None = None


class Runner:
    """Runs workers by ``plan``, their sockets in ``sockets`` or on TCP where that is ``None``.

    ``resumes`` is a directory for résumé files, ``addresses`` a file that always names the workers in service, one
    address a line. They are registered in ``registries``, by name, which may tell them settings; those on TCP under the
    host ``advertise``, where it is given. Raises :class:`NotStarted`.
    """

    def __init__(
        self,
        plan: Plan,
        workers: int,
        *,
        sockets: str | None,
        resumes: str | None = None,
        addresses: str | None = None,
        registries: Mapping[str, Registry] | None = None,
        advertise: str | None = None,
    ) -> None:
        self._addresses = addresses
        self._advertise = advertise
        self._history, self._max_skill_age = plan.history, plan.max_skill_age
        #: What registries say, as it is heard from them by threads.
        self._told: SimpleQueue[tuple[str, Live]] = SimpleQueue()
        self._live: dict[str, Live] = {}
        self._wake, self._woken = socket.socketpair()
        for end in (self._wake, self._woken):
            end.setblocking(False)
        self._drain_timeout = plan.drain_timeout
        self._selector = selectors.DefaultSelector()
        self._reloads: deque[_Slot] = deque()
        self._leaving: set[_Process] = set()
        self._stopping = False
        self._ever_served = False
        self._status = 0
        try:
            if plan.trace_log is not None:
                trace.check(plan.trace_log)
            if sockets is not None:
                sockets = os.path.abspath(sockets)
                self._lock = _take_directory(sockets)
            if resumes is not None:
                resumes = os.path.abspath(resumes)
                os.makedirs(resumes, exist_ok=True)
        except OSError as error:
            raise NotStarted(str(error)) from error
        self._slots = [_Slot(_place(plan, number, sockets, resumes)) for number in range(workers)]
        self._registrars = [
            Registrar(name, registry, functools.partial(self._tell, name))
            for name, registry in (registries or {}).items()
        ]

    def run(self) -> int:
        """Runs until told to stop. Returns the exit status: 1 where the workers could not be started at all."""
        self._selector.register(self._woken, selectors.EVENT_READ, None)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        for heeded in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            # The byte on the wake-up descriptor says it all; a handler has to be there for it to be written.
            signal.signal(heeded, lambda *_: None)
        self._write_addresses()
        while True:
            now = time.monotonic()
            self._start_due(now)
            self._reload_next(now)
            self._kill_overdue(now)
            if self._stopping and not self._processes():
                for registrar in self._registrars:
                    registrar.close()
                return self._status
            for key, _ in self._selector.select(self._patience(now)):
                if key.data is None:
                    for number in self._woken.recv(4096):
                        self._signalled(number, time.monotonic())
                    self._hear_registries()
                else:
                    slot, process = key.data
                    self._hear(slot, process, time.monotonic())
            self._bury(time.monotonic())

    def _tell(self, registry: str, live: Live) -> None:
        """Called by a registrar's thread."""
        self._told.put((registry, live))
        with contextlib.suppress(BlockingIOError):
            # No signal has this number.
            self._wake.send(b"\0")

    def _hear_registries(self) -> None:
        changed = False
        while not self._told.empty():
            registry, live = self._told.get()
            self._live[registry] = live
            changed = True
        if not changed:
            return
        # What none says is as the command line has it.
        told = list(self._live.values())
        history = next((live.history for live in told if live.history), self._history)
        age = next((live.max_skill_age for live in told if live.max_skill_age), self._max_skill_age)
        say(f"workers remember {history} requests from now on")
        for slot in self._slots:
            slot.plan = replace(slot.plan, history=history, max_skill_age=age)
        for _, process in self._processes():
            process.say(f"history {history} {SKILL_AGE * history if age is None else age}")

    def _processes(self) -> list[tuple[_Slot | None, _Process]]:
        found: list[tuple[_Slot | None, _Process]] = [(None, process) for process in self._leaving]
        for slot in self._slots:
            found += [(slot, process) for process in (slot.current, slot.successor) if process is not None]
        return found

    def _patience(self, now: float) -> float | None:
        times = [slot.start_at for slot in self._slots] + [slot.saved_by for slot in self._slots]
        times += [process.deadline for _, process in self._processes()]
        due = [at for at in times if at is not None]
        return max(min(due) - now, 0.0) if due else None

    def _start(self, slot: _Slot, now: float) -> _Process | None:
        try:
            process = _Process(slot.plan, now)
        except OSError as error:
            say(f"worker {slot.plan.slot} cannot be started: {error}")
            return None
        self._selector.register(process.control, selectors.EVENT_READ, (slot, process))
        return process

    def _start_due(self, now: float) -> None:
        for slot in self._slots:
            if slot.start_at is not None and slot.start_at <= now:
                slot.current = self._start(slot, now)
                slot.start_at = None if slot.current else now + slot.backoff.pause(0.0)

    def _signalled(self, number: int, now: float) -> None:
        if number in (signal.SIGTERM, signal.SIGINT):
            self._stop(now)
        elif number == signal.SIGHUP and not self._stopping:
            say("replacing the workers one after another")
            # One whose successor is starting already may have started too early.
            self._reloads.extend([slot for slot in self._slots if slot not in self._reloads or slot.successor])

    def _stop(self, now: float) -> None:
        again, self._stopping = self._stopping, True
        self._reloads.clear()
        for slot in self._slots:
            slot.start_at = slot.saved_by = None
        for _, process in self._processes():
            process.drain(now, self._drain_timeout)
            if again:
                process.popen.kill()
        self._write_addresses()

    def _reload_next(self, now: float) -> None:
        """Brings the replacement at the head of the queue one step further."""
        while self._reloads:
            slot = self._reloads[0]
            if slot.current is None or slot.current.phase is _Phase.STARTING:
                # The one that starts next has the new code anyway.
                self._reloads.popleft().spent = False
            elif slot.successor is not None:
                return
            elif slot.plan.resume_file is not None and slot.saved_by is None:
                slot.saved_by = now + _SAVE_TIMEOUT
                slot.current.say("save")
                return
            elif slot.saved_by is not None and now < slot.saved_by:
                return
            else:
                slot.saved_by = None
                slot.successor = self._start(slot, now)
                if slot.successor is not None:
                    return
                self._give_up(slot)

    def _give_up(self, slot: _Slot) -> None:
        """A successor did not start: nor would others of the same release. Who has served its share is replaced by
        what may have started before, so that is tried all the same; and this one asks again."""
        slot.spent = False
        self._reloads = deque(other for other in self._reloads if other.spent)

    def _hear(self, slot: _Slot, process: _Process, now: float) -> None:
        for line in process.lines():
            word, _, rest = line.partition(" ")
            if word == "ready":
                self._serves(slot, process, rest, now)
            elif word == "saved" and slot.saved_by is not None:
                slot.saved_by = now
            elif word == "spent" and process is slot.current and not self._stopping:
                slot.spent = True
                if slot not in self._reloads:
                    self._reloads.append(slot)
        if process.silent and process.control in self._selector.get_map():
            self._selector.unregister(process.control)

    def _serves(self, slot: _Slot, process: _Process, address: str, now: float) -> None:
        if process.phase is not _Phase.STARTING:
            return
        process.phase, process.address, process.deadline = _Phase.SERVING, address, None
        self._ever_served = True
        old = None
        if process is slot.successor:
            old, slot.current, slot.successor = slot.current, process, None
            if self._reloads and self._reloads[0] is slot:
                self._reloads.popleft().spent = False
        self._write_addresses()
        # Only now: who has read it finds the worker in the file.
        announce(f"worker {slot.plan.slot}: {address}")
        if old is not None:
            self._leaving.add(old)
            old.say("replaced")
            old.drain(now, self._drain_timeout)

    def _kill_overdue(self, now: float) -> None:
        for slot, process in self._processes():
            if process.deadline is not None and process.deadline <= now:
                what = "does not start" if process.phase is _Phase.STARTING else "does not leave"
                say(f"worker {slot.plan.slot if slot else ''} [{process.popen.pid}] {what}: killed")
                process.popen.kill()
                process.deadline = None

    def _bury(self, now: float) -> None:
        for slot, process in self._processes():
            status = process.popen.poll()
            if status is None:
                continue
            if slot is not None:
                # Its last words may be in the pipe: that it was ready, say.
                self._hear(slot, process, now)
            if process.control in self._selector.get_map():
                self._selector.unregister(process.control)
            process.control.close()
            if slot is None or process in self._leaving:
                self._leaving.discard(process)
            elif process is slot.successor:
                slot.successor = None
                if not self._stopping:
                    say(f"the successor of worker {slot.plan.slot} {_ended(status)}: the old one stays")
                    self._give_up(slot)
            else:
                self._died(slot, process, status, now)

    def _died(self, slot: _Slot, process: _Process, status: int, now: float) -> None:
        slot.current = slot.saved_by = None
        if self._stopping:
            return
        self._write_addresses()
        if slot.plan.path is not None and slot.successor is None:
            # Nothing accepts there any more. A watcher is told at once, rather than each by failing to connect.
            with contextlib.suppress(OSError):
                os.unlink(slot.plan.path)
        if not self._ever_served:
            say(f"worker {slot.plan.slot} {_ended(status)} before any has served: giving up")
            self._status = 1
            self._stop(now)
            return
        if slot.successor is not None:
            # The one that was to replace it is the next one anyway.
            slot.current, slot.successor = slot.successor, None
            return
        pause = slot.backoff.pause(now - process.started)
        slot.start_at = now + pause
        say(f"worker {slot.plan.slot} {_ended(status)}: started again in {pause:g} s")

    def _write_addresses(self) -> None:
        serving = [slot.current for slot in self._slots if slot.current is not None and not self._stopping]
        addresses = [process.address for process in serving if process.phase is _Phase.SERVING]
        for registrar in self._registrars:
            registrar.keep(_advertised(address, self._advertise) for address in addresses)
        if self._addresses is None:
            return
        lines = [f"{address}\n" for address in addresses]
        temporary = f"{self._addresses}.{os.getpid()}.tmp"
        try:
            with open(temporary, "w", encoding="utf-8") as file:
                file.writelines(lines)
            os.replace(temporary, self._addresses)
        except OSError as error:
            say(f"the addresses cannot be written: {error}")


def _place(plan: Plan, number: int, sockets: str | None, resumes: str | None) -> Plan:
    """The plan of one slot."""
    placed = replace(plan, slot=number)
    if resumes is not None:
        placed = replace(placed, resume_file=os.path.join(resumes, f"worker-{number}.json"))
    if sockets is not None:
        return replace(placed, path=os.path.join(sockets, socket_name(number)))
    tcp = Tcp.parse(plan.bind)
    if tcp.port:
        tcp = Tcp(tcp.host, tcp.port + number)
        if not is_free(tcp):
            raise NotStarted(f"something listens on port {tcp.port} already")
    host = f"[{tcp.host}]" if ":" in tcp.host else tcp.host
    return replace(placed, bind=f"{host}:{tcp.port}")


def _advertised(address: str, host: str | None) -> str:
    """The address by which others reach a worker."""
    if host is None or not address.startswith("http://"):
        return address
    return f"http://{host}:{address.rpartition(':')[2]}"


def _take_directory(path: str) -> int:
    """Makes the directory of sockets this runner's own, and clears it of what a killed one has left. The descriptor
    returned holds the lock."""
    os.makedirs(path, exist_ok=True)
    lock = os.open(os.path.join(path, ".lock"), os.O_CREAT | os.O_RDWR, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        raise NotStarted(f"another runner has its sockets in {path}") from error
    for pattern in (socket_name(0).replace("0", "[0-9]*"), ".worker-*"):
        for stale in glob.glob(os.path.join(glob.escape(path), pattern)):
            os.unlink(stale)
    return lock


def _ended(status: int) -> str:
    return f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
