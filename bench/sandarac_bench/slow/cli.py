"""The command line of `bench/slow-clients`."""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

from .. import bars, load, machine, peers, record, tools
from ..process import Daemon
from .clients import SlowClients

_WORKERS = 4
_PAGE = 5 << 20
_RATE = 10_000
_MEMORY_MIB = 256
# What the manual states beyond the memory of the cache, and what it states for each client.
_BESIDE_MIB = 24
_CLIENT_MIB = 0.25
_KEPT = 0.95

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
    """Runs the measurement, and returns its exit status."""
    return bars.main(_run, _parse(arguments), "-slow-clients")


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
    binary = bars.binary(options, "wrk", "cc")
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


class _Site(bars.Proxy):
    def __init__(self, options, binary, directory, started):
        self.cores = options.cores
        origin, port = peers.free_port(), peers.free_port()
        program = tools.compile_c("origin", directory)
        started.append(Daemon([program, origin, directory / "counter"], self.cores[1], directory / "origin.log"))
        text = _SANDARAC.format(port=port, origin=origin, workers=_WORKERS, memory=_MEMORY_MIB, directory=directory)
        super().__init__(binary, text, directory, self.cores[0], port, "/1000", started)

    def stat(self, name):
        """The sum of the metrics of this name."""
        return sum(value for _, value in self.metrics(name))

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
            bars.wait(
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
        bars.wait("the spool to be empty", lambda: site.stat("spool_memory_bytes") + site.stat("spool_disk_bytes") == 0)
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
        bars.add(run, f"{kind}: fast clients keep {_KEPT:.0%} of their throughput", f"{share:.1%}", share >= _KEPT)
        bars.add(run, f"{kind}: none is cut off, all bodies are whole", f"{cut} cut, {whole} whole", not cut and whole == options.clients)
    peak = site.daemon.memory()["peak"] / 2**20
    most = _MEMORY_MIB + _BESIDE_MIB + options.clients * _CLIENT_MIB
    bars.add(run, f"peak memory at most {most:.0f} MiB", f"{peak:.0f} MiB", peak <= most)
