"""The command line of `bench/files`."""

import argparse
import math
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from .. import closed_loop, load, machine, record, tools
from ..line import table
from ..process import StartFailed
from .stack import Stack
from .work import MAX_RATIO, cell

SIZES = (13, 102400, 1048576)
CLIENTS = (1, 16, 64, 512)
CELLS = {
    f"{size}-{clients}-{'kept' if kept else 'close'}": cell(size, clients, kept)
    for size in SIZES
    for kept in (True, False)
    for clients in CLIENTS
}
_MAX_MEAN = 0.85


def main(arguments=None):
    """Runs the cells. Exit status: 0 all bars met, 1 some missed, 2 it could not run."""
    options = _parse(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        run = _run(options)
    except (tools.Missing, StartFailed, load.LoadFailed) as failure:
        print(failure, file=sys.stderr)
        return 2
    bars = [(name, bar) for name, line in run["lines"].items() for bar in line["bars"]] + [("all", run["mean"])]
    missed = [f"  {name}: {bar['bar']}, is {bar['value']}" for name, bar in bars if not bar["met"]]
    problems = [f"  {name}: {problem}" for name, line in run["lines"].items() for problem in line["problems"]]
    print("\n".join([f"\n{len(bars) - len(missed)} of {len(bars)} bars met", *missed, *problems]))
    print(f"kept in {record.keep(run, options.out, '-files')}")
    return int(bool(missed or problems))


def _parse(arguments):
    parser = argparse.ArgumentParser(
        prog="bench/files",
        description="Measures files beside nginx with open_file_cache and Apache: CPU time of the server per request.",
        epilog=f"Cells: {', '.join(CELLS)}.",
    )
    parser.add_argument("--only", default=",".join(CELLS), help="comma-separated cells (default: all)")
    parser.add_argument("--binary", type=Path, help="the sandarac to measure (default: the release build)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of a cell (default: %(default)s)")
    parser.add_argument("--seconds", type=int, default=1, help="seconds of load per sample (default: %(default)s)")
    parser.add_argument("--cores", default="0,1", help="core of the server, core of the clients (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="where to write the results (default: bench/runs/DATE-files.json)")
    options = parser.parse_args(arguments)
    options.only = options.only.split(",")
    for name in options.only:
        if name not in CELLS:
            parser.error(f"there is no cell {name}")
    options.cores = machine.two_cores(parser, options.cores)
    return options


def _run(options):
    missing = tools.install(["nginx", "apache2", "wrk", "cc"], with_php=False)
    if missing & {"wrk", "cc"}:
        raise tools.Missing(f"missing: {', '.join(sorted(missing))}")
    binary = tools.sandarac(options.binary)
    run = record.begin(binary) | {"rounds": options.rounds, "seconds": options.seconds, "lines": {}}
    began, quiet = time.monotonic(), machine.Quiet(options.cores, closed_loop.own_cpu_seconds)
    with tempfile.TemporaryDirectory(prefix="sandarac-bench-") as directory:
        os.chmod(directory, 0o755)
        stack = Stack(options.cores, binary, missing, directory, SIZES)
        with stack.started():
            for name in options.only:
                result = CELLS[name](stack, options)
                print(table(name, result), flush=True)
                run["lines"][name] = result.as_dict()
                run["lines"][name]["ratios"] = {
                    row: result.ratio(row, "nginx", "cpu_us") for row in result.rows if "nginx" in result.rows
                }
    others = quiet.report()
    run["others"] = {"steal": others["steal"], "foreign_and_servers": others["foreign"]}
    run["took_seconds"] = time.monotonic() - began
    run["mean"] = _mean(run["lines"].values())
    print(f"\nSandarac, geometric mean of all cells: {run['mean']['value']} nginx; no cell may be above {MAX_RATIO} ×")
    return run


def _mean(lines):
    ratios = [line["ratios"]["sandarac"] for line in lines if "sandarac" in line["ratios"]]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else 0.0
    return {"bar": f"geometric mean ≤ {_MAX_MEAN} × nginx", "value": f"{mean:.3f} ×", "met": 0 < mean <= _MAX_MEAN}
