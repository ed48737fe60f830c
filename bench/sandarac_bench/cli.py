"""The command line: which rows and servers, how long, and where the results go."""

import argparse
import dataclasses
import json
import os
import resource
import signal
import sys
import tempfile
from pathlib import Path

from . import application, chart, closed_loop, load, machine, record, report, resident, site, tools, verdict
from .effort import QUICK, Effort
from .peers import Bench

PEERS = {"sandarac": None, "haproxy": "haproxy", "nginx": "nginx", "varnish": "varnishd"}
_CLOSED_LOOP = {row.name: row for row in closed_loop.ROWS}
_APPLICATION = {row.name: row for row in application.ROWS}
ROWS = [*_CLOSED_LOOP, *_APPLICATION, "idle", "start"]
GROUPS = {
    "floor": [row.name for row in closed_loop.ROWS if row.ab is None and not row.paced],
    "ab": [row.name for row in closed_loop.ROWS if row.ab is not None],
    "paced": [row.name for row in closed_loop.ROWS if row.paced],
    "shellac": list(_APPLICATION),
}
CHART = tools.ROOT / "docs" / "assets" / "bench.svg"


def main(arguments=None):
    """Runs the comparison. Exit status: 0 all bars met, 1 some missed, 2 it could not run."""
    options = _parse(arguments)
    if options.draw:
        return _draw(options.draw)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        run = _compare(options)
    except (tools.Missing, load.LoadFailed) as failure:
        print(failure, file=sys.stderr)
        return 2
    print(report.summary(run["rows"]))
    _keep(run, options)
    return int(any(not bar["met"] for row in run["rows"].values() for bar in row["bars"]))


def _parse(arguments):
    parser = argparse.ArgumentParser(
        prog="bench/compare",
        description="Measures Sandarac beside nginx, Varnish, HAProxy and Apache on this machine: CPU time per request as a "
        "multiple of a bare epoll responder, latency, memory and start-up, each server on one core, the clients on another.",
        epilog=f"Rows: {', '.join(ROWS)}; groups: {', '.join(GROUPS)}, all.",
    )
    parser.add_argument("--rows", default="all", help="comma-separated rows or groups (default: all)")
    parser.add_argument("--servers", default=",".join(PEERS), help="comma-separated servers (default: %(default)s)")
    parser.add_argument("--rounds", type=int, help=f"rounds per row (default: {Effort.rounds}, of the pages {Effort.page_rounds})")
    parser.add_argument("--seconds", type=int, help=f"seconds of load per sample (default: {Effort.seconds})")
    parser.add_argument("--quick", action="store_true", help="one round of little load, to see that everything works; keeps no result unless --out")
    parser.add_argument("--binary", type=Path, help="the sandarac to measure (default: the release build)")
    parser.add_argument("--cores", default="0,1", help="core of the server, core of the clients (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="where to write the results (default: bench/runs/DATE.json)")
    parser.add_argument("--draw", type=Path, metavar="RUN", help="only draw the README's chart from a stored run")
    options = parser.parse_args(arguments)
    options.rows = _names(parser, options.rows, ROWS, {**GROUPS, "all": ROWS})
    options.servers = _names(parser, options.servers, PEERS, {})
    options.cores = machine.two_cores(parser, options.cores)
    options.effort = _effort(options)
    return options


def _effort(options):
    changes = {}
    if options.rounds:
        changes.update(rounds=options.rounds, page_rounds=options.rounds)
    if options.seconds:
        changes.update(seconds=options.seconds)
    return dataclasses.replace(QUICK if options.quick else Effort(), **changes)


def _names(parser, text, known, groups):
    found = [name for word in text.split(",") for name in groups.get(word, [word])]
    for name in found:
        if name not in known:
            parser.error(f"unknown name {name!r}; known: {', '.join([*known, *groups])}")
    return [name for name in known if name in found]


def _compare(options):
    rows, servers = _available(options)
    binary = tools.sandarac(options.binary) if "sandarac" in servers else None
    _raise_descriptor_limit(options.effort.idle_connections)
    os.sched_setaffinity(0, {options.cores[1]})
    run = {
        **record.begin(binary),
        "settings": {**dataclasses.asdict(options.effort), "cores": options.cores},
        "rows": {},
    }
    described = run["machine"]
    print(f"{described['cpu']}, {described['cores']} cores, Linux {described['kernel']}")
    print(", ".join(f"{name} {version}" for name, version in described["versions"].items()), flush=True)
    with tempfile.TemporaryDirectory(prefix="sandarac-bench-", ignore_cleanup_errors=True) as directory:
        # Servers that change their user must be able to enter.
        Path(directory).chmod(0o755)
        bench = Bench(*options.cores, binary, directory)
        sample_site = site.build(Path(directory)) if set(rows) & set(_APPLICATION) else None
        for row in rows:
            title, results = _measure(bench, row, servers, options.effort, sample_site)
            bars = verdict.bars(row, results)
            aims = verdict.aims(row, results)
            run["rows"][row] = {"title": title, "servers": results, "bars": bars, "aims": aims}
            print(report.table(row, title, results, bars, aims), flush=True)
    return run


def _raise_descriptor_limit(connections):
    """The other ends of the idle connections are in this process, and the servers inherit its limit."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard < connections + 500:
        raise tools.Missing(f"{connections} idle connections need a descriptor limit above {connections + 500}, not {hard}")


def _available(options):
    """The rows and servers whose programs are here or could be installed; says what is skipped."""
    rows, servers = list(options.rows), list(options.servers)
    with_php = bool(set(rows) & set(_APPLICATION))
    wanted = ["cc"] + [PEERS[name] for name in servers if PEERS[name]]
    # A paced row begins with a look at how much each server can do.
    wanted += ["wrk"] * bool(set(rows) & {*GROUPS["floor"], *GROUPS["paced"]})
    wanted += ["h2load"] * bool(set(rows) & set(GROUPS["paced"]))
    wanted += ["ab"] * bool(set(rows) & {*GROUPS["ab"], *_APPLICATION})
    wanted += ["apache2"] * with_php
    missing = tools.install(wanted, with_php)
    if "cc" in missing:
        raise tools.Missing("a C compiler is needed for the floor and the origin")
    needs = {"wrk": [*GROUPS["floor"], *GROUPS["paced"]], "h2load": GROUPS["paced"], "ab": [*GROUPS["ab"], *_APPLICATION], "apache2": _APPLICATION, "php": _APPLICATION}
    for program in sorted(missing & set(needs)):
        skipped = [row for row in rows if row in needs[program]]
        print(f"skipping {', '.join(skipped)}: {program} is missing")
        rows = [row for row in rows if row not in skipped]
    for name in [name for name in servers if PEERS[name] in missing]:
        print(f"skipping {name}: {PEERS[name]} is missing")
        servers.remove(name)
    return rows, servers


def _measure(bench, row, servers, effort, sample_site):
    def log(line):
        if sys.stderr.isatty():
            print(line, file=sys.stderr, flush=True)

    if row in _CLOSED_LOOP:
        found = _CLOSED_LOOP[row]
        return found.title(effort), closed_loop.run(bench, found, servers, effort, log)
    if row in _APPLICATION:
        found = _APPLICATION[row]
        return found.title(effort), application.run(bench, found, servers, effort, sample_site, log)
    if row == "idle":
        return resident.idle_title(effort), resident.idle(bench, servers, effort, log)
    return resident.start_title(effort), resident.start(bench, servers, effort, log)


def _keep(run, options):
    """Stores the run; draws the chart when it has what the chart shows, measured on a quiet machine."""
    if options.quick and options.out is None:
        return
    path = record.keep(run, options.out)
    print(f"kept in {path}")
    charted = [result for row in GROUPS["floor"] for result in run["rows"].get(row, {"servers": {}})["servers"].values()]
    quiet = charted and all(result.get("kept_rounds", 1) for result in charted)
    if quiet and not options.quick and options.out is None and "sandarac" in options.servers:
        _draw(path)


def _draw(path):
    drawing = chart.svg(json.loads(Path(path).read_text()))
    if drawing is None:
        print(f"no chart: {path} lacks the rows {', '.join(GROUPS['floor'])}")
        return 2
    CHART.parent.mkdir(parents=True, exist_ok=True)
    CHART.write_text(drawing)
    print(f"drawn: {CHART}")
    return 0
