"""The command line of `bench/slow-clients`."""

import argparse
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

from .. import load, machine, peers, record, tools
from ..process import Daemon, StartFailed
from .clients import SlowClients

_WORKERS = 4
_PAGE = 5 << 20
_RATE = 10_000
_MEMORY_MIB = 256
# What the manual states beyond the memory of the cache, and what it states for each client.
_BESIDE_MIB = 24
_CLIENT_MIB = 0.25
_KEPT = 0.95
_PATIENCE = 120

_SANDARAC = """threads = 1
[[listen]]
address = "127.0.0.1:{port}"
[pool.app]
backends = ["http://127.0.0.1:{origin}"]
max_in_flight = {workers}
[[route]]
pool = "app"
cache = "pass"
gather = true
[cache]
memory = "{memory}MiB"
[spool]
directory = "{directory}"
[admin]
listen = "unix:{directory}/admin"
"""


def main(arguments=None):
    """Runs the measurement. Exit status: 0 all bars met, 1 some missed, 2 it could not run."""
    options = _parse(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        run = _run(options)
    except (tools.Missing, StartFailed, load.LoadFailed, TimeoutError) as failure:
        print(failure, file=sys.stderr)
        return 2
    missed = [bar["bar"] for bar in run["bars"] if not bar["met"]]
    for bar in run["bars"]:
        print(f"{'met   ' if bar['met'] else 'MISSED'} {bar['bar']}: {bar['value']}")
    print(f"kept in {record.keep(run, options.out, '-slow-clients')}")
    return int(bool(missed))


def _parse(arguments):
    parser = argparse.ArgumentParser(
        prog="bench/slow-clients",
        description="Fast clients ask for 1 KB past the cache, alone, beside clients that take pages of 5 MB at 10 KB/s, and beside clients "
        "that send as much at that pace. The pool has four places.",
    )
    parser.add_argument("--binary", type=Path, help="the sandarac to measure (default: the release build)")
    parser.add_argument("--clients", type=int, default=500, help="slow clients (default: %(default)s)")
    parser.add_argument("--seconds", type=int, default=8, help="seconds of a sample of the fast ones (default: %(default)s)")
    parser.add_argument("--samples", type=int, default=3, help="samples beside each kind (default: %(default)s)")
    parser.add_argument("--slow-for", type=int, default=45, help="seconds that clients are slow at least (default: %(default)s)")
    parser.add_argument("--cores", default="0,1", help="core of the proxy, core of everything else (default: %(default)s)")
    parser.add_argument("--directory", type=Path, help="where bodies wait (default: one in /var/tmp)")
    parser.add_argument("--out", type=Path, help="where to write the results (default: bench/runs/DATE-slow-clients.json)")
    options = parser.parse_args(arguments)
    options.cores = machine.two_cores(parser, options.cores)
    return options


def _run(options):
    if missing := tools.install(["wrk", "cc"], False):
        raise tools.Missing(f"these are needed: {' '.join(sorted(missing))}")
    binary = tools.sandarac(options.binary)
    tools.allow_descriptors()
    run = {
        **record.begin(binary),
        "clients": options.clients,
        "samples": [],
        "bars": [],
    }
    within = options.directory or "/var/tmp"
    with tempfile.TemporaryDirectory(prefix="sandarac-bench-", dir=within, ignore_cleanup_errors=True) as directory:
        os.sched_setaffinity(0, {options.cores[1]})
        started = []
        try:
            _measure(options, binary, Path(directory), started, run)
        finally:
            for daemon in reversed(started):
                daemon.stop()
    return run


class _Site:
    def __init__(self, options, binary, directory, started):
        self.cores = options.cores
        origin, self.port = peers.free_port(), peers.free_port()
        program = tools.compile_c("origin", directory)
        started.append(Daemon([program, origin, directory / "counter"], self.cores[1], directory / "origin.log"))
        text = _SANDARAC.format(
            port=self.port, origin=origin, workers=_WORKERS, memory=_MEMORY_MIB, directory=directory
        )
        (directory / "sandarac.toml").write_text(text)
        self.daemon = Daemon([binary, "-c", directory / "sandarac.toml"], self.cores[0], directory / "sandarac.log")
        started.append(self.daemon)
        self._admin = directory / "admin"
        _wait("the proxy", self._answers)

    def _answers(self):
        if not self.daemon.running:
            raise StartFailed(self.daemon.output())
        try:
            return load.fetch(self.port, "/1000")[0] == 200
        except OSError:
            return False

    def stat(self, name):
        """The sum of the metrics of this name."""
        connection = load.UnixConnection(self._admin, 10)
        connection.request("GET", "/stats")
        metrics = json.loads(connection.getresponse().read())["metrics"]
        connection.close()
        return sum(metric["value"] for metric in metrics if metric["name"] == name)

    def fast(self, seconds):
        """Requests a second of fast clients."""
        played = load.wrk(self.cores[1], self.port, "/1000", seconds)
        if played["errors"]:
            raise load.LoadFailed(f"{played['errors']} errors of fast clients")
        return played["per_second"]


def _measure(options, binary, directory, started, run):
    site = _Site(options, binary, directory, started)
    site.fast(2)
    alone = [site.fast(options.seconds) for _ in range(options.samples)]
    for kind, counter in (("down", "responses_spooled"), ("up", "spool_memory_bytes")):
        began, cut = time.monotonic(), site.stat("clients_slow")
        slow = SlowClients(options.cores[1], kind, site.port, options.clients, _PAGE, _RATE)
        try:
            least = options.clients if kind == "down" else 1
            _wait(
                "the slow clients",
                lambda: site.stat(counter) >= least and site.stat("backend_in_flight") == 0,
            )
            settled = time.monotonic() - began
            beside = [site.fast(options.seconds) for _ in range(options.samples)]
            held = {name: site.stat(name) for name in ("spool_memory_bytes", "spool_disk_bytes")}
            time.sleep(max(0, began + options.slow_for - time.monotonic()))
            pace = slow.moved() / options.clients / (time.monotonic() - began)
            whole = slow.finish()
        finally:
            slow.stop()
        _wait("the spool to be empty", lambda: site.stat("spool_memory_bytes") + site.stat("spool_disk_bytes") == 0)
        after = [site.fast(options.seconds) for _ in range(options.samples)]
        usual, share = statistics.median(alone + after), statistics.median(beside) / statistics.median(alone + after)
        alone = after
        run["samples"].append(
            {"kind": kind, "usual": usual, "beside": beside, "settled_s": settled, "pace": pace, **held}
        )
        print(
            f"{kind}: settled after {settled:.1f} s; {pace / 1000:.1f} KB/s each; {held['spool_memory_bytes'] / 2**20:.0f} MiB in memory, "
            f"{held['spool_disk_bytes'] / 2**20:.0f} MiB in files; fast ones alone {usual:.0f}/s",
            flush=True,
        )
        cut = site.stat("clients_slow") - cut
        _bar(run, f"{kind}: fast clients keep {_KEPT:.0%} of their throughput", f"{share:.1%}", share >= _KEPT)
        _bar(run, f"{kind}: none is cut off, all bodies are whole", f"{cut} cut, {whole} whole", not cut and whole == options.clients)
    peak = site.daemon.memory()["peak"] / 2**20
    most = _MEMORY_MIB + _BESIDE_MIB + options.clients * _CLIENT_MIB
    _bar(run, f"peak memory at most {most:.0f} MiB", f"{peak:.0f} MiB", peak <= most)


def _bar(run, bar, value, met):
    run["bars"].append({"bar": bar, "value": value, "met": bool(met)})


def _wait(what, done):
    deadline = time.monotonic() + _PATIENCE
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited in vain for {what}")
        time.sleep(0.1)
