"""The command line of `bench/tiers`."""

import argparse
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from .. import closed_loop, instructions, load, machine, record, tools
from ..process import StartFailed
from . import fleet, hits, hung, latency, shellac
from ..line import table
from .stack import Stack

LINES = {
    "ram-hit": hits.ram_hit,
    "cold-1k": latency.cold("noise", 1024),
    "cold-30k": latency.cold("noise", 30720),
    "cold-30k-sealed": latency.cold("noise", 30720, is_sealed=True),
    "cold-30k-text": latency.cold("text", 30720),
    "tier-cpu": hits.tier_cpu("noise"),
    "tier-cpu-text": hits.tier_cpu("text"),
    "published": latency.published,
    "cold-page": fleet.cold_page,
    "working-set": fleet.working_set,
    "hung": hung.hung_server,
    "ram-file": hits.ram_file,
    "pages": shellac.pages,
}
# The share of a core that others may take before the times of a line are marked.
_NOISY = 0.15


def main(arguments=None):
    """Runs the lines. Exit status: 0 all bars met, 1 some missed, 2 it could not run."""
    options = _parse(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        run = _run(options)
    except tools.Missing as failure:
        print(failure, file=sys.stderr)
        return 2
    bars = [(name, bar) for name, line in run["lines"].items() for bar in line["bars"]]
    missed = [f"  {name}: {bar['bar']}, is {bar['value']}" for name, bar in bars if not bar["met"]]
    problems = [f"  {name}: {problem}" for name, line in run["lines"].items() for problem in line["problems"]]
    print("\n".join([f"\n{len(bars) - len(missed)} of {len(bars)} bars met", *missed, *problems]))
    print(f"kept in {record.keep(run, options.out, '-tiers')}")
    return int(bool(missed or problems))


def _parse(arguments):
    parser = argparse.ArgumentParser(
        prog="bench/tiers",
        description="Measures the shared tier with real memcached servers: beside a bare relay in C, nginx, and nodes without a "
        "tier. Servers under test have one core, memcached, the origin and the clients the other.",
        epilog=f"Lines: {', '.join(LINES)}.",
    )
    parser.add_argument("--only", default=",".join(LINES), help="comma-separated lines (default: all)")
    parser.add_argument("--binary", type=Path, help="the sandarac to measure (default: the release build)")
    parser.add_argument("--counted", type=Path, help="the sandarac whose instructions are counted, built as for bench/instructions (default: built now)")
    parser.add_argument("--cores", default="0,1", help="core of the server, core of everything else (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="where to write the results (default: bench/runs/DATE-tiers.json)")
    options = parser.parse_args(arguments)
    options.only = options.only.split(",")
    for name in options.only:
        if name not in LINES:
            parser.error(f"unknown line {name!r}; known: {', '.join(LINES)}")
    options.cores = machine.two_cores(parser, options.cores)
    return options


def _run(options):
    missing = tools.install(["cc", "memcached", "nginx", "wrk", "valgrind", "apache2", "ab"], "pages" in options.only)
    if missing & {"cc", "memcached", "wrk"}:
        raise tools.Missing("a C compiler, memcached and wrk are needed")
    binary = tools.sandarac(options.binary)
    tools.allow_descriptors()
    os.sched_setaffinity(0, {options.cores[1]})
    run = {
        **record.begin(binary),
        "lines": {},
    }
    described = run["machine"]
    print(f"{described['cpu']}, {described['cores']} cores, Linux {described['kernel']}")
    print(", ".join(f"{name} {version}" for name, version in described["versions"].items()), flush=True)
    with tempfile.TemporaryDirectory(prefix="sandarac-bench-", ignore_cleanup_errors=True) as directory:
        # Servers that change their user must be able to enter.
        Path(directory).chmod(0o755)
        stack = Stack(options.cores, binary, directory)
        for name in [name for name in LINES if name in options.only]:
            run["lines"][name] = _measure(stack, name, options)
    return run


def _measure(stack, name, options):
    # The servers of a line have ended, and are counted, when it returns.
    began, quiet = time.monotonic(), machine.Quiet(options.cores, closed_loop.own_cpu_seconds)
    try:
        result = LINES[name](stack, options)
    except (load.LoadFailed, StartFailed, instructions.NotCounted, OSError) as failure:
        print(f"\n{name} failed: {failure}", flush=True)
        return {"title": name, "rows": {}, "bars": [], "notes": [], "problems": [f"{type(failure).__name__}: {failure}"]}
    others = quiet.report()
    took = f"other programs took {others['foreign']:.0%} of a core, the hypervisor {others['steal']:.0%}"
    is_noisy = others["foreign"] + others["steal"] > _NOISY
    result.notes.append(f"{time.monotonic() - began:.0f} s; {took}{': noisy, times are worth little' if is_noisy else ''}")
    print(table(name, result), flush=True)
    return result.as_dict()
