"""The command line of `bench/holding`."""

import argparse
import http.client
import os
import tempfile
import time
from pathlib import Path

from .. import bars, load, machine, peers, record
from ..certificate import certificate
from ..process import Daemon
from .hoards import CONNECTIONS, PROFILES, Apart, hoard, origin

_MIB = 1 << 20
_MEMORY_MIB = 64
# What the process needs beside the cache, and for each connection; and how far what is allocated may be from what is resident.
_BESIDE_MIB = 48
_CONNECTION = 2048
_TOLERANCE = 1.15
# What the manual states for a process at rest, beside the memory of the cache.
_AT_REST_MIB = 40
_REST_SECONDS = 12
_USUAL_CONNECTIONS = 1000
# Visitors are judged by their p99 beside that without an attack; less than a stall of the machine is no difference.
_TIMES = 3
_STALL = 0.25

_SANDARAC = """threads = 2
[[listen]]
address = "127.0.0.1:{port}"
http2 = true
[[listen]]
address = "127.0.0.1:{tls}"
[[listen.tls.certificates]]
chain = "{chain}"
key = "{key}"
[limits]
connections = 8000
[pool.app]
backends = ["http://127.0.0.1:{origin}"]
first_byte_timeout = "300s"
[pool.http2]
backends = ["h2://127.0.0.1:{relay}"]
first_byte_timeout = "300s"
[pool.quiet]
backends = ["http://127.0.0.1:{quiet}"]
[[route]]
match = "/passed"
pool = "quiet"
[[route]]
match = "/large"
pool = "http2"
cache = "pass"
[[route]]
pool = "app"
fragments = true
[cache]
memory = "{memory}MiB"
[admin]
listen = "unix:{directory}/admin"
"""

# The backend that speaks HTTP/2. It has what it sends.
_RELAY = """threads = 1
[[listen]]
address = "127.0.0.1:{relay}"
http2 = true
[pool.app]
backends = ["http://127.0.0.1:{origin}"]
first_byte_timeout = "300s"
[[route]]
pool = "app"
[cache]
memory = "1GiB"
[admin]
listen = "unix:{directory}/relay"
"""


def main(arguments=None):
    """Runs the measurement, and returns its exit status."""
    return bars.main(_run, _parse(arguments), "-holding")


def _parse(arguments):
    parser = argparse.ArgumentParser(
        prog="bench/holding",
        description="Clients that make the process hold as much as they can, one profile after the other, while visitors ask for a stored page, "
        "for one that is not, and an operator for the status. The load rises at 400 connections a second.",
    )
    parser.add_argument("profiles", nargs="*", metavar="PROFILE", help=f"only these: {', '.join(PROFILES)}")
    parser.add_argument("--binary", type=Path, help="the sandarac to measure (default: the release build)")
    parser.add_argument("--seconds", type=int, default=60, help="seconds of each profile (default: %(default)s)")
    parser.add_argument("--cores", default="0,1", help="core of the proxy, core of everything else (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="where to write the results (default: bench/runs/DATE-holding.json)")
    options = parser.parse_args(arguments)
    if unknown := [profile for profile in options.profiles if profile not in PROFILES]:
        parser.error(f"no profile is called {unknown[0]}; there are {', '.join(PROFILES)}")
    options.cores = machine.two_cores(parser, options.cores)
    return options


def _run(options):
    binary = bars.binary(options, "openssl")
    run = {**record.begin(binary), "seconds": options.seconds, "profiles": {}, "bars": []}
    os.sched_setaffinity(0, {options.cores[1]})
    for profile in options.profiles or PROFILES:
        with tempfile.TemporaryDirectory(prefix="sandarac-bench-", ignore_cleanup_errors=True) as directory:
            started = []
            try:
                run["profiles"][profile] = _measure(options, binary, Path(directory), started, profile, run)
            finally:
                for apart in reversed(started):
                    apart.stop()
    return run


class _Site(bars.Proxy):
    def __init__(self, options, binary, directory, started):
        # That of the visitors has no part in the attack.
        helper, quiet = Apart(options.cores[1], origin), Apart(options.cores[1], origin)
        started += [helper, quiet]
        port, self.tls, relay = peers.free_port(), peers.free_port(), peers.free_port()
        chain, key, _ = certificate(directory)
        beside = helper.told()
        (directory / "relay.toml").write_text(_RELAY.format(relay=relay, origin=beside, directory=directory))
        started.append(Daemon([binary, "-c", directory / "relay.toml"], options.cores[1], directory / "relay.log"))
        text = _SANDARAC.format(
            port=port,
            tls=self.tls,
            chain=chain,
            key=key,
            origin=beside,
            quiet=quiet.told(),
            relay=relay,
            memory=_MEMORY_MIB,
            directory=directory,
        )
        super().__init__(binary, text, directory, options.cores[0], port, "/stored", started)

    def held(self):
        """Bytes held by class, and how long the answer took."""
        began = time.monotonic()
        held = {labels["class"]: value for labels, value in self.metrics("held_bytes") if value}
        return held, time.monotonic() - began

    def visit(self, path):
        """How long a visitor waits, on a connection of its own; `None` if it is not served."""
        began = time.monotonic()
        try:
            status = load.fetch(self.port, path)[0]
        except (OSError, http.client.HTTPException):
            return None
        return time.monotonic() - began if status == 200 else None


def _look(site, seconds, found):
    """Visits for some seconds, and adds what was seen."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found["stored"].append(site.visit("/stored"))
        found["passed"].append(site.visit("/passed"))
        if len(found["stored"]) % 20 == 0:
            held, took = site.held()
            found["admin"].append(took)
            found["held"] = max(found["held"], held, key=lambda held: sum(held.values()))
        time.sleep(0.04)


def _seen():
    return {"stored": [], "passed": [], "admin": [], "held": {}}


def _p99(waits):
    waits = sorted(wait for wait in waits if wait is not None)
    return waits[min(len(waits) - 1, len(waits) * 99 // 100)] if waits else float("inf")


def _measure(options, binary, directory, started, profile, run):
    site = _Site(options, binary, directory, started)
    before, beside = _seen(), _seen()
    _look(site, min(10, options.seconds), before)
    connections = CONNECTIONS.get(profile, _USUAL_CONNECTIONS)
    attack = Apart(options.cores[1], hoard, profile, site.tls if profile == "hello" else site.port, connections)
    try:
        _look(site, options.seconds, beside)
        steady = site.daemon.memory()["rss"] / _MIB
    finally:
        attack.stop()
    time.sleep(_REST_SECONDS)
    rest = site.daemon.memory()["rss"] / _MIB
    peak = site.daemon.memory()["peak"] / _MIB
    bound = _TOLERANCE * (_MEMORY_MIB + _BESIDE_MIB + connections * _CONNECTION / _MIB)

    def bar(what, value, met):
        bars.add(run, f"{profile}: {what}", value, met)

    bar(f"peak memory at most {bound:.0f} MiB", f"{peak:.0f} MiB", peak <= bound)
    bar(f"memory after {_REST_SECONDS} s of rest at most {_MEMORY_MIB + _AT_REST_MIB} MiB", f"{rest:.0f} MiB", rest <= _MEMORY_MIB + _AT_REST_MIB)
    result = {"connections": connections, "peak": peak, "steady": steady, "rest": rest, "held": beside["held"]}
    for kind in ("stored", "passed"):
        usual, now = _p99(before[kind]), _p99(beside[kind])
        lost = beside[kind].count(None)
        result[kind] = {"usual_p99": usual, "p99": now, "visits": len(beside[kind]), "lost": lost}
        # Where requests in progress have all memory, others that need a backend are refused.
        if kind == "stored" or profile not in ("pending", "coalesced", "late", "backends"):
            bar(f"{kind} page served", f"{lost} of {len(beside[kind])} lost", not lost)
        bar(f"p99 of the {kind} page at most {_TIMES} times", f"{usual * 1000:.0f} and {now * 1000:.0f} ms", now <= max(_TIMES * usual, _STALL))
    slowest = max(beside["admin"], default=0)
    bar("the operator answered within a second", f"{slowest:.2f} s", slowest < 1)
    held = ", ".join(f"{name} {size / _MIB:.1f}" for name, size in sorted(beside["held"].items(), key=lambda held: -held[1])[:4])
    print(
        f"{profile:10} {connections:5} connections: peak {peak:4.0f} of {bound:.0f} MiB, steady {steady:4.0f}, at rest {rest:4.0f}; held {held}; "
        f"lost {result['stored']['lost']} and {result['passed']['lost']} of {result['stored']['visits']}; "
        f"p99 {result['stored']['p99'] * 1000:.0f} and {result['passed']['p99'] * 1000:.0f} ms, admin {slowest:.2f} s",
        flush=True,
    )
    return result
