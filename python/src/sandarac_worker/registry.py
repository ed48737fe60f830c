"""Registries where balancers find workers: ZooKeeper and etcd.

The layout is one for both, and that of zc.zk: below the path of the pool there is ``providers/NAME`` for each worker,
which goes when this runner does; and settings, a JSON object, of which ``history`` and ``max_skill_age`` are for
workers. A worker that serves and that somebody deleted is registered again, ever more slowly where that goes on.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .backoff import Backoff
from .console import say

#: Seconds without a sign of life until a registry takes the workers for dead.
LEASE = 10.0
#: Seconds between two signs of life, which also ask for the settings.
INTERVAL = 2.5
#: Seconds until another attempt after one that failed.
AGAIN = 1.0
#: Seconds before a worker that somebody deleted is registered again: the shortest pause behind none, the longest, and
#: how long it has to stay until there is none again. In a loop of deletions, a worker costs a write a minute.
RESTORE = (5.0, 60.0, 60.0)


class Unavailable(Exception):
    """A registry does not do what it is asked for; it may do so later."""


@dataclass(frozen=True)
class Live:
    """What a registry says to workers; ``None`` where it says nothing."""

    history: int | None = None
    max_skill_age: int | None = None

    @classmethod
    def read(cls, data: bytes) -> Live:
        """From a JSON object. What is none, or has no sense, says nothing."""
        try:
            settings = json.loads(data or b"{}")
        except ValueError:
            return cls()
        if not isinstance(settings, dict):
            return cls()
        return cls(_count(settings.get("history")), _count(settings.get("max_skill_age")))


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**32 else None


@dataclass(frozen=True)
class Entry:
    """A worker, as it stands in a registry."""

    name: str
    data: bytes

    @classmethod
    def of(cls, address: str) -> Entry:
        """For the address of a worker: named by it where it is ``HOST:PORT``, and by machine and path where it is a
        Unix socket, as that has slashes, and balancers of other machines had better see whose it is."""
        if address.startswith("http://"):
            return cls(address[len("http://") :], b"")
        path = address[len("unix:") :]
        name = f"{socket.gethostname()}{re.sub('[^A-Za-z0-9._-]', '-', path)}"
        return cls(name, json.dumps({"address": address}).encode())


class _Registered:
    """An entry that has been registered."""

    def __init__(self, now: float) -> None:
        self.backoff = Backoff(*RESTORE)
        self.since = now
        #: When it is registered again, where it is gone.
        self.due: float | None = None


class Registry(ABC):
    """A connection to a registry. Not shared between threads. Everything raises :class:`Unavailable`."""

    def __init__(self) -> None:
        self._registered: dict[Entry, _Registered] = {}

    def keep(self, entries: frozenset[Entry], now: float, say: Callable[[str], None]) -> Live:
        """Sees to it that exactly these of this runner are registered, for ``LEASE`` seconds more, and gives what it
        reads there; ``say`` is told which of them somebody else deleted. ``now`` is in seconds."""
        if not self.renew():
            self._registered.clear()
        for entry in self._registered.keys() - entries:
            self.remove(entry)
            del self._registered[entry]
        settings, there = self.look(list(self._registered))
        if self._registered.keys() - there and not self.renew():
            # They went with a session, or a lease, that ended just now.
            self._registered.clear()
        for entry in self._registered.keys() - there:
            self._restore(entry, now, say)
        for entry in self._registered.keys() & there:
            # What somebody else put in the place of ours is as good.
            self._registered[entry].due = None
        for entry in entries - self._registered.keys():
            self.add(entry)
            self._registered[entry] = _Registered(now)
        return Live.read(settings)

    def _restore(self, entry: Entry, now: float, say: Callable[[str], None]) -> None:
        gone = self._registered[entry]
        if gone.due is None:
            pause = gone.backoff.pause(now - gone.since)
            gone.due = now + pause
            say(f"{entry.name} was deleted, and serves: registered again in {pause:g} s")
        if gone.due <= now:
            self.add(entry)
            gone.since, gone.due = now, None

    @abstractmethod
    def renew(self) -> bool:
        """Gives a sign of life. Whether what was registered since the last one lives by it; else all of it is gone, or
        will be."""

    @abstractmethod
    def look(self, entries: list[Entry]) -> tuple[bytes, set[Entry]]:
        """The settings, empty where there are none; and which of ``entries`` are there, whoever registered them."""

    @abstractmethod
    def add(self, entry: Entry) -> None:
        """Registers a worker, in the place of what has its name already, which is of an earlier life of this runner."""

    @abstractmethod
    def remove(self, entry: Entry) -> None:
        """Deletes an entry, if it is there."""

    @abstractmethod
    def close(self) -> None:
        """Removes what is registered, if that can be done soon."""


class Registrar:
    """Keeps workers registered, in a thread of its own; calls ``on_change`` there when settings change."""

    def __init__(self, name: str, registry: Registry, on_change: Callable[[Live], None]) -> None:
        self._name = name
        self._registry = registry
        self._on_change = on_change
        self._changed = threading.Condition()
        self._entries: frozenset[Entry] = frozenset()
        self._is_new = False
        self._closing = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def keep(self, addresses: Iterable[str]) -> None:
        """From now on, workers at these addresses are registered, and no others."""
        with self._changed:
            self._entries = frozenset(map(Entry.of, addresses))
            self._is_new = True
            self._changed.notify()

    def close(self) -> None:
        """Removes them all; waits for it, but not for long."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(INTERVAL)

    def _run(self) -> None:
        live = Live()
        complaint: str | None = None
        while True:
            with self._changed:
                entries, self._is_new = self._entries, False
                if self._closing:
                    break
            pause = INTERVAL
            try:
                told = self._registry.keep(entries, time.monotonic(), self._say)
            except Exception as error:
                # Whatever it is: the workers serve, and balancers keep the list they have. Said once.
                text = str(error) if isinstance(error, Unavailable) else f"unexpected answer: {error!r}"
                if complaint != text:
                    complaint = text
                    self._say(f"workers cannot be registered: {text}")
                pause = AGAIN
            else:
                if complaint is not None:
                    complaint = None
                    self._say("workers are registered again")
                if told != live:
                    live = told
                    self._on_change(live)
            end = time.monotonic() + pause
            with self._changed:
                while not self._is_new and not self._closing and (left := end - time.monotonic()) > 0:
                    self._changed.wait(left)
        with contextlib.suppress(Exception):
            self._registry.close()

    def _say(self, text: str) -> None:
        say(f"{self._name}: {text}")
