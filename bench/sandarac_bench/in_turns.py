"""The command line of a measurement by requests in turns, whose results have bars."""

import argparse
import signal
import sys
from pathlib import Path

from . import machine, record, tools
from .process import StartFailed


def measure(run, arguments, name, description, rounds, requests, of):
    """Has `run` measure `of` as the command line says. Exit status: 0 the bars are met, 1 one is missed, 2 it could not run."""
    parser = argparse.ArgumentParser(prog=f"bench/{name}", description=description)
    parser.add_argument("--binary", type=Path, help="the sandarac to measure (default: the release build)")
    parser.add_argument("--rounds", type=int, default=rounds, help="rounds of a line (default: %(default)s)")
    parser.add_argument("--requests", type=int, default=requests, help=f"{of} of a sample (default: %(default)s)")
    parser.add_argument("--cores", default="0,1", help="core of the proxy, core of everything else (default: %(default)s)")
    parser.add_argument("--out", type=Path, help=f"where to write the results (default: bench/runs/DATE-{name}.json)")
    options = parser.parse_args(arguments)
    options.cores = machine.two_cores(parser, options.cores)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        results = run(options)
    except (tools.Missing, StartFailed) as failure:
        print(failure, file=sys.stderr)
        return 2
    print(f"kept in {record.keep(results, options.out, f'-{name}')}")
    return int(not all(bar["met"] for bar in results["bars"]))
