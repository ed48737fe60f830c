"""Eight workers behind a balancer of their own, with a database of their own."""

import array
import dataclasses
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

from .. import machine, peers, tools
from ..load import LoadFailed, UnixConnection
from ..process import Daemon, StartFailed
from . import application
from .cases import WORKERS

_START_SECONDS = 60


class Stack:
    """One algorithm in one case: running workers, running balancer. `close` ends them."""

    def __init__(self, directory, binary, database, case, effort, settings):
        self._directory = Path(directory)
        self._effort = effort
        self._directory.mkdir()
        # Changes are part of the log, and each algorithm gets all of it.
        shutil.copy(database, self._directory / "database")
        self._sockets = [self._directory / f"worker-{number}.sock" for number in range(WORKERS)]
        self._port = peers.free_port()
        self._daemons = []
        try:
            self._workers = self._start_workers(case)
            self._balancer = self._start_balancer(binary, settings)
            for path, slowness in zip(self._sockets, case.slowness):
                _ask(path, "POST", f"/-/slowness?{slowness}")
        except Exception:
            self.close()
            raise

    def _start_workers(self, case):
        environment = {
            "PYTHONPATH": os.pathsep.join([str(tools.ROOT / "python" / "src"), str(tools.BENCH)]),
            # So that all runs meet the same collisions in dictionaries.
            "PYTHONHASHSEED": "0",
            application.DATABASE: str(self._directory / "database"),
            application.ROUND_TRIP: str(case.round_trip),
            application.CAPACITY: str(case.capacity(self._effort.workload)),
            application.CORE: str(case.core),
            application.WORKLOAD: json.dumps(dataclasses.asdict(self._effort.workload)),
        }
        command = [sys.executable, "-m", "sandarac_worker", f"{application.__name__}:Application()"]
        command += ["--workers", WORKERS, "--sockets", self._directory]
        workers = self._start("workers", command, environment)
        deadline = time.monotonic() + _START_SECONDS
        for path in self._sockets:
            while not _answers(path):
                if time.monotonic() > deadline or not workers.running:
                    raise StartFailed(f"the workers did not start:\n{workers.output()}")
                time.sleep(0.02)
        return workers

    def _start_balancer(self, binary, settings):
        backends = ", ".join(f'"unix:{path}"' for path in self._sockets)
        configuration = self._directory / "sandarac.toml"
        configuration.write_text(
            f'[[listen]]\naddress = "127.0.0.1:{self._port}"\n\n'
            f"[pool.sites]\nbackends = [{backends}]\n{settings}\n\n"
            '[[route]]\npool = "sites"\ncache = "pass"\n'
        )
        # Several run at a time, and each has an admin interface of its own.
        command = [binary, "-c", configuration, "--admin", self._directory / "admin.sock"]
        balancer = self._start("balancer", command)
        peers.wait_until_listening(peers.Server("sandarac", self._port, balancer, self._directory))
        return balancer

    def _start(self, name, command, environment=None):
        cores = ",".join(map(str, sorted(os.sched_getaffinity(0))))
        daemon = Daemon(command, cores, self._directory / f"{name}.log", environment)
        self._daemons.append(daemon)
        return daemon

    def play(self, player, log, lines, first, count):
        """Plays a part of the log, which is in the file `log` and in `lines`; returns the figures of it."""
        before, cpu_before = self._states(), self._cpu()
        others = machine.Quiet(sorted(os.sched_getaffinity(0)), self._own_cpu)
        times = self._directory / "times"
        command = [player, self._port, log, first, count, self._effort.clients, self._effort.seconds, times]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=self._effort.seconds + 90)
        if done.returncode:
            raise LoadFailed(f"player: {done.stderr}{self._balancer.output()}")
        others = others.report()
        answered, errors, seconds = done.stdout.split()
        after, cpu_after = self._states(), self._cpu()
        worked = [b["worked"] - a["worked"] for a, b in zip(before, after)]
        pages = sum(b["pages"] - a["pages"] for a, b in zip(before, after))
        loads = sum(b["loads"] - a["loads"] for a, b in zip(before, after))
        page_times = _times_of_pages(times, lines, first, count)
        workers_cpu, balancer_cpu = (b - a for a, b in zip(cpu_before, cpu_after))
        return {
            "requests": int(answered),
            "errors": int(errors),
            "problems": done.stderr.splitlines(),
            "loads_per_page": loads / max(pages, 1),
            "per_second": int(answered) / float(seconds),
            "p50_ms": _quantile(page_times, 0.5) / 1000,
            "p99_ms": _quantile(page_times, 0.99) / 1000,
            "worker_cpu_ms": 1000 * workers_cpu / max(int(answered), 1),
            "balancer_cpu_ms": 1000 * balancer_cpu / max(int(answered), 1),
            "others": others["steal"] + others["foreign"],
            "overlap": _overlap([state["cached"] for state in after]),
            "fairness": _fairness(worked),
            "pages_of_workers": [b["pages"] - a["pages"] for a, b in zip(before, after)],
            "seconds_of_workers": worked,
            "loads_of_workers": [b["loads"] - a["loads"] for a, b in zip(before, after)],
        }

    def _states(self):
        return [_ask(path, "GET", "/-/state") for path in self._sockets]

    def _cpu(self):
        return self._workers.cpu_seconds(), self._balancer.cpu_seconds()

    def _own_cpu(self):
        of_player = resource.getrusage(resource.RUSAGE_CHILDREN)
        return sum(self._cpu()) + of_player.ru_utime + of_player.ru_stime

    def close(self):
        for daemon in reversed(self._daemons):
            daemon.stop()
        shutil.rmtree(self._directory, ignore_errors=True)


def _ask(path, method, target):
    """Asks a worker on its own socket."""
    connection = UnixConnection(path, _START_SECONDS)
    try:
        connection.request(method, target)
        response = connection.getresponse()
        body = response.read()
    finally:
        connection.close()
    if response.status != 200:
        raise LoadFailed(f"{method} {target} of a worker: {response.status}")
    return json.loads(body)


def _answers(path):
    try:
        _ask(path, "GET", "/-/state")
    except OSError:
        return False
    return True


def _times_of_pages(path, lines, first, count):
    """The microseconds that pages took, sorted; writes are other work."""
    times = array.array("I", path.read_bytes())
    pages = (time for time, line in zip(times, lines[first : first + count]) if time and line.startswith("GET"))
    return sorted(pages)


def _quantile(ordered, share):
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered else 0.0


def _overlap(caches):
    """The share of the records held that more than one holds."""
    holders = {}
    for cache in caches:
        for record in cache:
            holders[record] = holders.get(record, 0) + 1
    return sum(count > 1 for count in holders.values()) / max(len(holders), 1)


def _fairness(values):
    """Jain's index: 1 if all worked as much, 1 / n if only one did."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0
