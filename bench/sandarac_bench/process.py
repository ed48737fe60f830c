"""Processes under measurement: started pinned to a core, read through /proc, ended by their own process ids."""

import os
import signal
import subprocess
import time
from pathlib import Path

_TICK = 1 / os.sysconf("SC_CLK_TCK")


class StartFailed(Exception):
    """A server ended or stayed silent instead of answering; the text says what it printed."""


class Daemon:
    """A server and all its descendants, pinned to one core.

    CPU times are seconds, memory sizes are bytes; both are summed over every live process of the tree.
    """

    def __init__(self, command, core, log_path, environment=None):
        self.command = ["taskset", "-c", str(core), *map(str, command)]
        self._log_path = Path(log_path)
        with open(log_path, "wb") as log:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, **(environment or {})},
            )

    @property
    def running(self):
        return self._process.poll() is None

    def output(self):
        """The last lines the server printed."""
        return "\n".join(self._log_path.read_text(errors="replace").splitlines()[-12:])

    def pids(self):
        """The process and its descendants, parents first."""
        found = [self._process.pid]
        for pid in found:
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                found += map(int, _read(children).split())
        return found

    def cpu_seconds(self):
        """User plus system time, threads and children that already ended included.

        utime + stime of /proc/PID/stat, read at nanosecond resolution through the process clock; only the share of
        reaped children comes from /proc, in ticks.
        """
        total = 0.0
        for pid in self.pids():
            try:
                total += time.clock_gettime(~pid << 3 | 2)
            except OSError:
                continue
            fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
            if fields:
                total += (int(fields[13]) + int(fields[14])) * _TICK
        return total

    def memory(self):
        """Resident, peak, proportional and private memory of the tree."""
        sums = {"rss": 0, "peak": 0, "pss": 0, "private": 0}
        for pid in self.pids():
            status = _kilobytes(f"/proc/{pid}/status")
            rollup = _kilobytes(f"/proc/{pid}/smaps_rollup")
            sums["rss"] += status.get("VmRSS", 0)
            sums["peak"] += status.get("VmHWM", 0)
            sums["pss"] += rollup.get("Pss", 0)
            sums["private"] += rollup.get("Private_Clean", 0) + rollup.get("Private_Dirty", 0)
        return sums

    def stop(self):
        """Asks the tree to end, then ends what is left of it."""
        pids = self.pids()
        if self.running:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                pids = self.pids()
                self._process.kill()
                self._process.wait()
        deadline = time.monotonic() + 3
        left = pids[1:]
        while left and time.monotonic() < deadline:
            left = [pid for pid in left if Path(f"/proc/{pid}").exists()]
            time.sleep(0.01)
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def _read(path):
    try:
        return Path(path).read_text()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return ""


def _kilobytes(path):
    """The `Name:  123 kB` lines of a /proc file, in bytes."""
    sizes = {}
    for line in _read(path).splitlines():
        words = line.split()
        if len(words) == 3 and words[2] == "kB":
            sizes[words[0].rstrip(":")] = int(words[1]) * 1024
    return sizes
