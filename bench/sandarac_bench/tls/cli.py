"""The command line of `bench/tls`."""

import argparse
import datetime
import os
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path

from .. import closed_loop, load, machine, record, tools
from ..line import table
from ..process import StartFailed
from .attack import attack
from .idle import idle
from .stack import Stack
from .work import handshake, hit

LINES = {
    "hit-1k": hit(1024, 0.65),
    "hit-100k": hit(102400, 0.55),
    "handshake": handshake("handshake, X25519", 0.65),
    "resumed": handshake("handshake resumed by a ticket, X25519", 0.9, resumed="yes"),
    # OpenSSL has the group since 3.5.
    "hybrid": handshake("handshake, X25519MLKEM768", names=("floor", "sandarac"), group="hybrid"),
    "idle": idle,
    "attack": attack,
}
_DESCRIPTORS = 20000
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
    print(f"kept in {record.keep(run, options.out, '-tls')}")
    return int(bool(missed or problems))


def _parse(arguments):
    parser = argparse.ArgumentParser(
        prog="bench/tls",
        description="Measures TLS to clients beside a bare rustls responder, nginx and HAProxy: CPU time of the server per "
        "request and per handshake, memory of idle connections, and a victim's tail while another client makes handshakes.",
        epilog=f"Lines: {', '.join(LINES)}.",
    )
    parser.add_argument("--only", default=",".join(LINES), help="comma-separated lines (default: all)")
    parser.add_argument("--binary", type=Path, help="the sandarac to measure (default: the release build)")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of a line (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=2, help="seconds of load per sample (default: %(default)s)")
    parser.add_argument("--idle", type=int, default=5000, help="idle connections (default: %(default)s)")
    parser.add_argument("--suite", choices=("aes128", "aes256"), default="aes128", help="the suite, with GCM (default: %(default)s)")
    parser.add_argument("--cores", default="0,1", help="core of the server, core of everything else (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="where to write the results (default: bench/runs/DATE-tls.json)")
    options = parser.parse_args(arguments)
    options.only = options.only.split(",")
    for name in options.only:
        if name not in LINES:
            parser.error(f"unknown line {name!r}; known: {', '.join(LINES)}")
    options.cores = [int(core) for core in options.cores.split(",")]
    if len(options.cores) != 2 or not set(options.cores) <= os.sched_getaffinity(0):
        parser.error("--cores takes two cores this process may use")
    return options


def _run(options):
    missing = tools.install(["cc", "openssl", "nginx", "haproxy"], False)
    if missing & {"cc", "openssl"}:
        raise tools.Missing("a C compiler and openssl are needed")
    binary = tools.sandarac(options.binary)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, _DESCRIPTORS), hard))
    run = {
        "date": datetime.date.today().isoformat(),
        "commit": record.commit(),
        "machine": machine.describe(binary),
        "lines": {},
    }
    described = run["machine"]
    print(f"{described['cpu']}, {described['cores']} cores, Linux {described['kernel']}")
    print(", ".join(f"{name} {version}" for name, version in described["versions"].items()), flush=True)
    with tempfile.TemporaryDirectory(prefix="sandarac-bench-", ignore_cleanup_errors=True) as directory:
        # Servers that change their user must be able to enter.
        Path(directory).chmod(0o755)
        stack = Stack(options.cores, binary, missing, directory)
        os.sched_setaffinity(0, {options.cores[1]})
        for name in [name for name in LINES if name in options.only]:
            run["lines"][name] = _measure(stack, name, options)
    return run


def _measure(stack, name, options):
    # The servers of a line have ended, and are counted, when it returns.
    began, quiet = time.monotonic(), machine.Quiet(options.cores, closed_loop.own_cpu_seconds)
    try:
        result = LINES[name](stack, options)
    except (load.LoadFailed, StartFailed, OSError) as failure:
        print(f"\n{name} failed: {failure}", flush=True)
        return {"title": name, "rows": {}, "bars": [], "notes": [], "problems": [f"{type(failure).__name__}: {failure}"]}
    others = quiet.report()
    took = f"other programs took {others['foreign']:.0%} of a core, the hypervisor {others['steal']:.0%}"
    is_noisy = others["foreign"] + others["steal"] > _NOISY
    result.notes.append(f"{time.monotonic() - began:.0f} s; {took}{': noisy, times are worth little' if is_noisy else ''}")
    print(table(name, result), flush=True)
    return result.as_dict()
