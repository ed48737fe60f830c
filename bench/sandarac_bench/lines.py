"""The command line of a bench that consists of lines: its usual options, the run, and the summary."""

import argparse
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from . import closed_loop, load, machine, record, tools
from .line import table
from .process import StartFailed

# The share of a core that others may take before the times of a line are marked.
_NOISY = 0.15


def parser(prog, description, names, kind):
    """A parser with the options that all such benches have. `kind` is the end of the name of a run."""
    made = argparse.ArgumentParser(prog=prog, description=description, epilog=f"Lines: {', '.join(names)}.")
    made.add_argument("--only", default=",".join(names), help="comma-separated lines (default: all)")
    made.add_argument("--binary", type=Path, help="the sandarac to measure (default: the release build)")
    made.add_argument("--rounds", type=int, default=7, help="rounds of a line (default: %(default)s)")
    made.add_argument("--seconds", type=float, default=2, help="seconds of load per sample (default: %(default)s)")
    made.add_argument("--idle", type=int, default=5000, help="idle connections (default: %(default)s)")
    made.add_argument("--cores", default="0,1", help="core of the server, core of everything else (default: %(default)s)")
    made.add_argument("--out", type=Path, help=f"where to write the results (default: bench/runs/DATE{kind}.json)")
    return made


def options(made, names, arguments):
    """The options, checked."""
    found = made.parse_args(arguments)
    found.only = found.only.split(",")
    for name in found.only:
        if name not in names:
            made.error(f"unknown line {name!r}; known: {', '.join(names)}")
    found.cores = machine.two_cores(made, found.cores)
    return found


def main(given, lines, kind, programs, needed, make_stack):
    """Runs the lines. `programs` are installed if they are missing, those of `needed` must be there. `make_stack` takes the cores,
    the binary, the programs that are missing, and a directory. Exit status: 0 all bars met, 1 some missed, 2 it could not run."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        run = _run(given, lines, programs, needed, make_stack)
    except tools.Missing as failure:
        print(failure, file=sys.stderr)
        return 2
    bars = [(name, bar) for name, line in run["lines"].items() for bar in line["bars"]]
    missed = [f"  {name}: {bar['bar']}, is {bar['value']}" for name, bar in bars if not bar["met"]]
    problems = [f"  {name}: {problem}" for name, line in run["lines"].items() for problem in line["problems"]]
    print("\n".join([f"\n{len(bars) - len(missed)} of {len(bars)} bars met", *missed, *problems]))
    print(f"kept in {record.keep(run, given.out, kind)}")
    return int(bool(missed or problems))


def _run(given, lines, programs, needed, make_stack):
    missing = tools.install(programs, False)
    if missing & needed:
        raise tools.Missing(f"needed, and missing: {', '.join(sorted(missing & needed))}")
    binary = tools.sandarac(given.binary)
    tools.allow_descriptors()
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
        stack = make_stack(given.cores, binary, missing, directory)
        os.sched_setaffinity(0, {given.cores[1]})
        for name in [name for name in lines if name in given.only]:
            run["lines"][name] = _measure(stack, name, lines[name], given)
    return run


def _measure(stack, name, line, given):
    # The servers of a line have ended, and are counted, when it returns.
    began, quiet = time.monotonic(), machine.Quiet(given.cores, closed_loop.own_cpu_seconds)
    try:
        result = line(stack, given)
    except (load.LoadFailed, StartFailed, OSError) as failure:
        print(f"\n{name} failed: {failure}", flush=True)
        return {"title": name, "rows": {}, "bars": [], "notes": [], "problems": [f"{type(failure).__name__}: {failure}"]}
    others = quiet.report()
    took = f"other programs took {others['foreign']:.0%} of a core, the hypervisor {others['steal']:.0%}"
    is_noisy = others["foreign"] + others["steal"] > _NOISY
    result.notes.append(f"{time.monotonic() - began:.0f} s; {took}{': noisy, times are worth little' if is_noisy else ''}")
    print(table(name, result), flush=True)
    return result.as_dict()
