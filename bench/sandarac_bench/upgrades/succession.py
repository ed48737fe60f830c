"""A Sandarac and the processes that take over from it, one after the other."""

import ctypes
import http.client
import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

from .. import bars, load
from ..process import StartFailed

_PR_SET_CHILD_SUBREAPER = 36
_UPGRADE_SECONDS = 45
# More old processes than these, and the oldest has to end (docs/manual/running.md).
_MAX_OLD = 3
_SAMPLE_SECONDS = 0.05


def adopt_orphans():
    """Makes this process the parent of processes whose parent has ended, so that it can end all that it has started."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class Succession(bars.Proxy):
    """The process that serves, and those before it that have connections left."""

    def __init__(self, binary, config, directory, core, port, path, started):
        self._binary = binary
        self._directory = directory
        self.log_path = directory / "sandarac.log"
        started.append(self)
        self.pids = []
        super().__init__(binary, config, directory, core, port, path, started)
        self.pids.append(self.status()["pid"])
        self._have_to_end = set()
        # The process that an upgrade in progress has begun may serve already.
        self.upgrading = False

    @property
    def pid(self):
        return self.pids[-1]

    def status(self):
        connection = load.UnixConnection(self._admin, 10)
        try:
            connection.request("GET", "/status")
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def upgrade(self, by_signal=False):
        """Replaces the serving process, and returns how many seconds that took."""
        began = time.monotonic()
        self.upgrading = True
        try:
            if by_signal:
                os.kill(self.pid, signal.SIGUSR2)
            else:
                command = [self._binary, "upgrade", "--admin", self._admin]
                done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=_UPGRADE_SECONDS)
                if done.returncode:
                    raise StartFailed(f"`sandarac upgrade` failed: {done.stderr.strip()}\n{self.daemon.output()}")
            while True:
                pid = self._serving()
                if pid not in (None, self.pid):
                    break
                if time.monotonic() - began > _UPGRADE_SECONDS:
                    raise StartFailed(f"no process has taken over:\n{self.daemon.output()}")
                time.sleep(0.02)
            self.pids.append(pid)
        finally:
            self.upgrading = False
        self._have_to_end.update(self.old()[:-_MAX_OLD])
        return time.monotonic() - began

    def _serving(self):
        try:
            return self.status()["pid"]
        except (OSError, http.client.HTTPException, ValueError):
            return None

    def old(self):
        """The processes that have not ended, without the serving one, the oldest first."""
        return [pid for pid in self.pids[:-1] if is_alive(pid)]

    def had_to_end(self, pid):
        """Whether this process was the oldest of more than three old ones."""
        return pid in self._have_to_end

    def output(self, about):
        """The lines of the log that have these words."""
        return [line for line in self.log_path.read_text(errors="replace").splitlines() if about in line]

    def stop(self):
        for pid in self._own():
            _signal(pid, signal.SIGTERM)
        if not _within(8, lambda: not self._own()):
            for pid in self._own():
                _signal(pid, signal.SIGKILL)
            _within(5, lambda: not self._own())

    def end(self, patience):
        """Ends the serving process in order; returns how many seconds that took."""
        began = time.monotonic()
        os.kill(self.pid, signal.SIGTERM)
        if not _within(patience, lambda: not is_alive(self.pid)):
            raise StartFailed(f"the process does not end:\n{self.daemon.output()}")
        return time.monotonic() - began

    def _own(self):
        """Processes of this bench that run this configuration."""
        config = str(self._directory / "sandarac.toml").encode()
        found, left = [], [os.getpid()]
        while left:
            for children in Path(f"/proc/{left.pop()}/task").glob("*/children"):
                left += map(int, _read(children).split())
                found += map(int, _read(children).split())
        return [pid for pid in set(found) | set(self.pids) if config in _read(f"/proc/{pid}/cmdline", "rb").split(b"\0") and is_alive(pid)]


def _within(seconds, done):
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _signal(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def is_alive(pid):
    """Whether a process has not ended. One that has, and waits for its parent, is taken note of where that is this one."""
    state = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    if state[:2] == ["Z", str(os.getpid())]:
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            pass
    return bool(state) and state[0] not in "ZX"


def _read(path, mode="r"):
    try:
        with open(path, mode) as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return "" if mode == "r" else b""


def _kilobytes(path):
    words = (line.split() for line in _read(path).splitlines())
    return {line[0][:-1]: int(line[1]) * 1024 for line in words if len(line) == 3 and line[2] == "kB"}


class Memory:
    """Samples the memory of the processes of a succession from construction on, in bytes: the largest sum of what is resident (`rss`,
    and of that anonymous and shared memory), and the largest sum of proportional sizes (`pss`)."""

    def __init__(self, pids):
        self._pids = pids
        self._is_over = threading.Event()
        self.largest = {"rss": 0, "anon": 0, "shared": 0, "pss": 0}
        self.samples = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self):
        self._is_over.set()
        self._thread.join()
        return {**self.largest, "samples": self.samples}

    def _run(self):
        pause = 0
        while not self._is_over.wait(pause):
            began = time.monotonic()
            sample = {"rss": 0, "anon": 0, "shared": 0, "pss": 0}
            for pid in list(self._pids()):
                status = _kilobytes(f"/proc/{pid}/status")
                sample["rss"] += status.get("VmRSS", 0)
                sample["anon"] += status.get("RssAnon", 0)
                sample["shared"] += status.get("RssShmem", 0)
                sample["pss"] += _kilobytes(f"/proc/{pid}/smaps_rollup").get("Pss", 0)
            if sample["rss"] > self.largest["rss"]:
                self.largest.update(rss=sample["rss"], anon=sample["anon"], shared=sample["shared"])
            self.largest["pss"] = max(self.largest["pss"], sample["pss"])
            self.samples += 1
            # A look at a process with many pages takes long, and stops it meanwhile.
            took = time.monotonic() - began
            pause = max(_SAMPLE_SECONDS - took, 3 * took if took > 0.015 else 0)
