"""The command line: which rows and servers, how long, and where the results go."""

import argparse
import datetime
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from . import application, chart, closed_loop, load, machine, report, resident, site, tools, verdict
from .peers import Bench

PEERS = {"sandarac": None, "haproxy": "haproxy", "nginx": "nginx", "varnish": "varnishd"}
_CLOSED_LOOP = {row.name: row for row in closed_loop.ROWS}
_APPLICATION = {row.name: row for row in application.ROWS}
ROWS = [*_CLOSED_LOOP, *_APPLICATION, "idle", "start"]
GROUPS = {
    "floor": [row.name for row in closed_loop.ROWS if row.has_floor],
    "ab": [row.name for row in closed_loop.ROWS if not row.has_floor],
    "shellac": list(_APPLICATION),
}
CHART = tools.ROOT / "docs" / "assets" / "bench.svg"
RUNS = tools.BENCH / "runs"


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
    parser.add_argument("--rounds", type=int, help="rounds per row (default: 7, Shellac's pages 3)")
    parser.add_argument("--seconds", type=int, help="seconds of load per sample (default: 4)")
    parser.add_argument("--quick", action="store_true", help="one short round of everything; keeps no result unless --out")
    parser.add_argument("--binary", type=Path, help="the sandarac to measure (default: the release build)")
    parser.add_argument("--cores", default="0,1", help="core of the server, core of the clients (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="where to write the results (default: bench/runs/DATE.json)")
    parser.add_argument("--draw", type=Path, metavar="RUN", help="only draw the README's chart from a stored run")
    options = parser.parse_args(arguments)
    options.rows = _names(parser, options.rows, ROWS, {**GROUPS, "all": ROWS})
    options.servers = _names(parser, options.servers, PEERS, {})
    options.cores = [int(core) for core in options.cores.split(",")]
    if len(options.cores) != 2 or not set(options.cores) <= os.sched_getaffinity(0):
        parser.error("--cores takes two cores this process may use")
    options.rounds_given = options.rounds
    options.rounds = options.rounds or (1 if options.quick else 7)
    options.seconds = options.seconds or (1 if options.quick else 4)
    return options


def _names(parser, text, known, groups):
    found = [name for word in text.split(",") for name in groups.get(word, [word])]
    for name in found:
        if name not in known:
            parser.error(f"unknown name {name!r}; known: {', '.join([*known, *groups])}")
    return [name for name in known if name in found]


def _compare(options):
    rows, servers = _available(options)
    binary = tools.sandarac(options.binary) if "sandarac" in servers else None
    # 7000 idle connections have their other ends in this process, and children inherit the limit.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    os.sched_setaffinity(0, {options.cores[1]})
    run = {
        "date": datetime.date.today().isoformat(),
        "commit": _commit(),
        "machine": machine.describe(binary),
        "settings": {"rounds": options.rounds, "seconds": options.seconds, "cores": options.cores},
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
            title, results = _measure(bench, row, servers, options, sample_site, hard)
            bars = verdict.bars(row, results)
            run["rows"][row] = {"title": title, "servers": results, "bars": bars}
            print(report.table(row, title, results, bars), flush=True)
    return run


def _available(options):
    """The rows and servers whose programs are here or could be installed; says what is skipped."""
    rows, servers = list(options.rows), list(options.servers)
    with_php = bool(set(rows) & set(_APPLICATION))
    wanted = ["cc"] + [PEERS[name] for name in servers if PEERS[name]]
    wanted += ["wrk"] * bool(set(rows) & set(GROUPS["floor"]))
    wanted += ["ab"] * bool(set(rows) & {*GROUPS["ab"], *_APPLICATION})
    wanted += ["apache2"] * with_php
    missing = tools.install(wanted, with_php)
    if "cc" in missing:
        raise tools.Missing("a C compiler is needed for the floor and the origin")
    needs = {"wrk": GROUPS["floor"], "ab": [*GROUPS["ab"], *_APPLICATION], "apache2": _APPLICATION, "php": _APPLICATION}
    for program in sorted(missing & set(needs)):
        skipped = [row for row in rows if row in needs[program]]
        print(f"skipping {', '.join(skipped)}: {program} is missing")
        rows = [row for row in rows if row not in skipped]
    for name in [name for name in servers if PEERS[name] in missing]:
        print(f"skipping {name}: {PEERS[name]} is missing")
        servers.remove(name)
    return rows, servers


def _measure(bench, row, servers, options, sample_site, descriptors):
    def log(line):
        if sys.stderr.isatty():
            print(line, file=sys.stderr, flush=True)

    if row in _CLOSED_LOOP:
        found = _CLOSED_LOOP[row]
        return found.title, closed_loop.run(bench, found, servers, options.rounds, options.seconds, log)
    if row in _APPLICATION:
        found = _APPLICATION[row]
        # A round starts every server and the application anew and takes a minute.
        rounds = options.rounds_given or (1 if options.quick else 3)
        return found.title, application.run(bench, found, servers, rounds, sample_site, log)
    if row == "idle":
        # Some descriptors of both ends are for other things.
        connections = min(resident.IDLE_CONNECTIONS, descriptors - 500)
        return resident.IDLE_TITLE, resident.idle(bench, servers, connections, log)
    return resident.START_TITLE, resident.start(bench, servers, 3 if options.quick else None, log)


def _commit():
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=tools.ROOT, capture_output=True, text=True)
    return done.stdout.strip() or None


def _keep(run, options):
    """Stores the run; draws the chart when it is a full one with everything the chart shows."""
    path = options.out
    if path is None and not options.quick:
        RUNS.mkdir(exist_ok=True)
        path = RUNS / f"{run['date']}.json"
        number = 2
        while path.exists():
            path = RUNS / f"{run['date']}-{number}.json"
            number += 1
    if path is None:
        return
    path.write_text(json.dumps(_rounded(run), indent=1, ensure_ascii=False) + "\n")
    print(f"kept in {path}")
    if not options.quick and options.out is None and "sandarac" in options.servers:
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


def _rounded(value):
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return value
