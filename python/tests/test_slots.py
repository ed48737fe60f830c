"""Slots: a lock for each, and the sockets that a dead process leaves in one."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

from sandarac_worker.slots import remove_leftovers
from support import started

#: Takes a slot, and leaves sockets in it.
HOLDER = """
import os, signal, socket
from sandarac_worker.slots import take_slot
slot = take_slot("run")
for name in (f"worker-{slot}.sock", f".worker-{slot}.{os.getpid()}"):
    socket.socket(socket.AF_UNIX).bind(os.path.join("run", name))
print(f"slot {slot} is taken")
signal.pause()
"""


def test_only_slots_that_no_process_holds_are_cleared(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    directory.mkdir()
    with started(["-c", HOLDER], tmp_path) as first:
        first.says("slot 0 is taken")
        with started(["-c", HOLDER], tmp_path) as second:
            second.says("slot 1 is taken")
            # Not of a slot that a process ever held.
            others = {".worker-10.4711", "worker-10.sock", "worker-1.sock.old"}
            for name in others:
                socket.socket(socket.AF_UNIX).bind(str(directory / name))
            locks = {".slot-0.lock", ".slot-1.lock"}
            names = [
                {f"worker-{slot}.sock", f".worker-{slot}.{process.popen.pid}"}
                for slot, process in enumerate((first, second))
            ]
            remove_leftovers(str(directory))
            assert set(os.listdir(directory)) == {*locks, *others, *names[0], *names[1]}
            second.signal(signal.SIGKILL)
            second.ended()
            remove_leftovers(str(directory))
            assert set(os.listdir(directory)) == {*locks, *others, *names[0]}
        with started(["-c", HOLDER], tmp_path) as third:
            third.says("slot 1 is taken")
    remove_leftovers(str(directory))
    assert set(os.listdir(directory)) == {*locks, *others}
    remove_leftovers(str(tmp_path / "nowhere"))
