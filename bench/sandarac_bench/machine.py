"""What the machine is, and how quiet it was while something was measured."""

import contextlib
import os
import platform
import re
import subprocess
import time
from pathlib import Path

# A sample is disturbed when the hypervisor, or other programs on the two cores, took more than this share of a core.
# 2 % of stolen time already moves a p99; foreign work of 5 % evicts caches enough to move CPU per request.
MAX_STEAL = 0.02
MAX_FOREIGN = 0.05

_TICK = 1 / os.sysconf("SC_CLK_TCK")

_VERSIONS = {
    "nginx": ["nginx", "-v"],
    "varnish": ["varnishd", "-V"],
    "haproxy": ["haproxy", "-v"],
    "apache": ["apache2", "-v"],
    "openssl": ["openssl", "version"],
    "memcached": ["memcached", "-V"],
    "wrk": ["wrk", "-v"],
    "ab": ["ab", "-V"],
    "h2o": ["h2o", "-v"],
    "nghttpx": ["nghttpx", "-v"],
    "h2load": ["h2load", "--version"],
    "cc": ["cc", "--version"],
    "rustc": ["rustc", "--version"],
}


def two_cores(parser, text):
    """The two cores of the option `--cores`. Ends the program with a message of `parser` if this process may not use them."""
    cores = [int(core) for core in text.split(",")]
    if len(cores) != 2 or not set(cores) <= os.sched_getaffinity(0):
        parser.error("--cores takes two cores this process may use")
    return cores


def describe(binary):
    """Cores, memory, kernel and the version of every program taking part."""
    cpu = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    memory = re.search(r"^MemTotal:\s*(\d+) kB", Path("/proc/meminfo").read_text(), re.M)
    versions = {name: _version(command) for name, command in _VERSIONS.items()}
    versions["sandarac"] = _version([str(binary), "--version"])
    return {
        "cores": os.cpu_count(),
        "cpu": cpu.group(1) if cpu else platform.machine(),
        "memory_mib": int(memory.group(1)) // 1024 if memory else None,
        "kernel": platform.release(),
        "versions": {name: version for name, version in versions.items() if version},
    }


def _version(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (FileNotFoundError, PermissionError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"\d+(\.\d+)+", done.stdout + done.stderr)
    return found.group(0) if found else None


class Quiet:
    """Watches the measured cores from construction on; `report` says what others took of them."""

    def __init__(self, cores, own_cpu_seconds):
        self._cores = cores
        self._own = own_cpu_seconds
        self._own_before = own_cpu_seconds()
        self._before = self._read()
        self._started = time.monotonic()

    def report(self):
        """Shares of one core lost to the hypervisor and to foreign programs, and whether that disturbs a sample."""
        elapsed = time.monotonic() - self._started
        busy, steal = (after - before for after, before in zip(self._read(), self._before))
        own = self._own() - self._own_before
        steal_share = steal / elapsed
        foreign_share = max(0.0, busy - own) / elapsed
        return {
            "steal": round(steal_share, 4),
            "foreign": round(foreign_share, 4),
            "disturbed": steal_share > MAX_STEAL or foreign_share > MAX_FOREIGN,
        }

    def _read(self):
        busy = steal = 0
        for line in Path("/proc/stat").read_text().splitlines():
            words = line.split()
            if words and words[0] in {f"cpu{core}" for core in self._cores}:
                user, nice, system, _idle, _iowait, irq, softirq, stolen = map(int, words[1:9])
                busy += user + nice + system + irq + softirq
                steal += stolen
        return busy * _TICK, steal * _TICK


@contextlib.contextmanager
def before_other_programs(result):
    """Runs what is started inside with real-time priority, if that is permitted: a tail of milliseconds is otherwise that
    of the machine's other programs. The load here leaves most of both cores to them."""
    ordinary = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        result.notes.append("without real-time priority: tails are also those of other programs")
    try:
        yield
    finally:
        os.sched_setscheduler(0, *ordinary)
