"""Slots of a directory of sockets that several masters may share: the names that a worker process uses there.

Slot 3 stands for ``worker-3.sock``, and for ``.worker-3.4711``, which becomes that. The process that has locked
``.slot-3.lock`` holds the slot, and no other process creates or removes these names. The lock ends with the process,
however that ends; the sockets in the slot are leftovers then.

It is a lock of POSIX (``fcntl``), because a child does not inherit those: the helper processes of an application may
outlive a worker that is killed. A process loses such a lock when it closes the file through any descriptor, so one
that holds a slot MUST NOT call :func:`remove_leftovers`.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import re

from .listener import socket_name

#: Workers in one directory, at most.
MAX_SLOTS = 1024

_LOCK = re.compile(r"\.slot-([0-9]{1,4})\.lock")


def take_slot(directory: str) -> int:
    """The lowest slot that no living process holds, which this process holds from now on. Raises ``RuntimeError`` where
    all are taken, and ``OSError``."""
    for slot in range(MAX_SLOTS):
        # Never closed: the lock lives as long as the process.
        if _lock(directory, slot) is not None:
            return slot
    raise RuntimeError(f"more than {MAX_SLOTS} workers have their sockets in {directory}")


def remove_leftovers(directory: str) -> None:
    """Removes the sockets in slots that no living process holds. Skips what it may not read, lock or remove."""
    with contextlib.suppress(OSError):
        for name in os.listdir(directory):
            found = _LOCK.fullmatch(name)
            if found is not None:
                _empty(directory, int(found[1]))


def _empty(directory: str, slot: int) -> None:
    # Looked for first: a worker that starts passes over a slot that is locked, if only for this moment.
    if not _names(directory, slot):
        return
    with contextlib.suppress(OSError):
        lock = _lock(directory, slot)
        if lock is None:
            return
        try:
            for path in _names(directory, slot):
                with contextlib.suppress(OSError):
                    os.unlink(path)
        finally:
            os.close(lock)


def _names(directory: str, slot: int) -> list[str]:
    """The sockets of a slot, announced or not."""
    announced = socket_name(slot)
    hidden = os.path.join(glob.escape(directory), f".{announced.removesuffix('.sock')}.*")
    paths = [*glob.glob(hidden), os.path.join(directory, announced)]
    return [path for path in paths if os.path.lexists(path)]


def _lock(directory: str, slot: int) -> int | None:
    """The descriptor that holds the slot; ``None`` where another process holds it."""
    lock = os.open(os.path.join(directory, f".slot-{slot}.lock"), os.O_CREAT | os.O_RDWR, 0o644)
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock
