"""The command line of `bench/balance`."""

import argparse
import dataclasses
import random
import signal
import sys
import tempfile
from pathlib import Path

from .. import load, record, tools
from ..process import StartFailed
from . import report
from .cases import ALGORITHMS, CASES, QUICK, RIVALS, Effort
from .stack import Stack
from .workload import build_database, make_log


def main(arguments=None):
    """Runs the experiment. Exit status: 0 all bars met, 1 some missed, 2 it could not run."""
    options = _parse(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        run = _run(options)
    except (tools.Missing, load.LoadFailed, StartFailed) as failure:
        print(failure, file=sys.stderr)
        return 2
    if options.out or not options.quick:
        print(f"kept in {record.keep(run, options.out, '-balance')}")
    return int(any(not bar["met"] for case in run["cases"].values() for bar in case["bars"]))


def _parse(arguments):
    parser = argparse.ArgumentParser(
        prog="bench/balance",
        description="Plays one log of requests against eight Python workers behind each algorithm of the balancer, and counts "
        "what they load from their database.",
        epilog=f"Cases: {', '.join(CASES)}. Algorithms: {', '.join(ALGORITHMS)}.",
    )
    parser.add_argument("--quick", action="store_true", help="one round of one case, for loads per page; keeps no result unless --out")
    parser.add_argument("--cases", help="comma-separated cases (default: all; all that there is in memory, with --quick)")
    parser.add_argument("--algorithms", help="comma-separated algorithms (default: those of the case)")
    parser.add_argument("--rounds", type=int, help=f"parts of the log that are measured (default: {Effort.rounds})")
    parser.add_argument("--requests", type=int, help=f"requests in each (default: {Effort.requests})")
    parser.add_argument("--warm-up", type=int, help=f"requests before them, at least (default: {Effort.warm_up})")
    parser.add_argument("--clients", type=int, help=f"requests at a time (default: {Effort.clients})")
    parser.add_argument("--pool", default="", metavar="TOML", help="more settings for all pools: 'max_in_flight = 4'")
    parser.add_argument("--binary", type=Path, help="the sandarac to measure (default: the release build)")
    parser.add_argument("--out", type=Path, help="where to write the results (default: bench/runs/DATE-balance.json)")
    options = parser.parse_args(arguments)
    options.cases = _names(parser, options.cases or ("all" if options.quick else ",".join(CASES)), CASES)
    options.algorithms = options.algorithms and _names(parser, options.algorithms, ALGORITHMS)
    if options.quick and not options.algorithms:
        options.algorithms = RIVALS
    changes = {name: getattr(options, name) for name in ("rounds", "requests", "warm_up", "clients")}
    options.effort = dataclasses.replace(
        QUICK if options.quick else Effort(), **{name: value for name, value in changes.items() if value is not None}
    )
    return options


def _names(parser, text, known):
    found = text.split(",")
    for name in found:
        if name not in known:
            parser.error(f"unknown name {name!r}; known: {', '.join(known)}")
    return [name for name in known if name in found]


def _run(options):
    if "cc" in tools.install(["cc"], False):
        raise tools.Missing("a C compiler is needed for the player of the log")
    binary = tools.sandarac(options.binary)
    effort = options.effort
    run = {
        **record.begin(binary),
        "settings": {**dataclasses.asdict(effort), "pool": options.pool},
        "cases": {},
    }
    described = run["machine"]
    print(f"{described['cpu']}, {described['cores']} cores, Linux {described['kernel']}", flush=True)
    with tempfile.TemporaryDirectory(prefix="sandarac-bench-", ignore_cleanup_errors=True) as directory:
        directory = Path(directory)
        player = tools.compile_c("player", directory)
        build_database(effort.workload, directory / "database")
        lines, steady = make_log(effort.workload, effort.warm_up, effort.rounds * effort.requests)
        log = directory / "log"
        log.write_text("".join(f"{line}\n" for line in lines))
        print(f"{effort.workload.working_set} records; every one was asked for, and steady state begins, after {steady} requests")
        for name in options.cases:
            case = CASES[name]
            algorithms = [each for each in options.algorithms or case.algorithms if each in case.algorithms]
            results = _play(options, case, algorithms, binary, player, directory, log, lines, steady)
            found = report.bars(case, results)
            run["cases"][name] = {"title": case.title, "algorithms": results, "bars": found}
            print(report.table(f"{case.title}  [{name}]", results))
            print(report.verdicts(found), flush=True)
    return run


def _play(options, case, algorithms, binary, player, directory, log, lines, steady):
    """All algorithms of a case. They are warmed up one after the other, and measured in turns, in another order each round:
    those that wait meanwhile cost nothing but memory."""
    effort = options.effort
    stacks, rounds = {}, {name: [] for name in algorithms}
    try:
        for name in algorithms:
            settings = f"{ALGORITHMS[name]}\n{options.pool}"
            stacks[name] = Stack(directory / name.replace(" ", "-"), binary, directory / "database", case, effort, settings)
            warm = stacks[name].play(player, log, lines, 0, steady)
            _say(f"{name}: warmed up at {warm['per_second']:.0f}/s, {warm['errors']} errors")
        for number in range(effort.rounds):
            first = steady + number * effort.requests
            for name in random.Random(number).sample(algorithms, len(algorithms)):
                played = stacks[name].play(player, log, lines, first, effort.requests)
                rounds[name].append(played)
                _say(f"{name}: {played['loads_per_page']:.4f} loads/page, {played['per_second']:.0f}/s")
    finally:
        for stack in stacks.values():
            stack.close()
    return {name: report.summarise(played) for name, played in rounds.items()}


def _say(line):
    if sys.stderr.isatty():
        print(line, file=sys.stderr, flush=True)
