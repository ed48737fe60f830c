"""The command line of `bench/fastcgi`."""

import argparse
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from .. import closed_loop, load, machine, record, tools
from ..line import Result, table
from ..process import StartFailed
from .sites import Page, Wiki
from .stack import Stack

_CLIENTS = (1, 8, 64, 512)
_NAMES = ("sandarac", "nginx")
_WITH_APACHE = (*_NAMES, "apache")
_LINES = ("page", "wiki", "wiki-cached")
# The least number of pages a second, as a share of nginx's, that counts as level: php-fpm sets it.
_LEVEL = 0.97
# Seconds that an answer may take: php-fpm makes a few dozen pages of the wiki in a second.
_PATIENCE = 120
# The share of a core that others may take before the times of a line are marked.
_NOISY = 0.15


def main(arguments=None):
    """Runs the lines. Exit status: 0 all bars met, 1 some missed, 2 it could not run."""
    options = _parse(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        run = _run(options)
    except (tools.Missing, StartFailed, load.LoadFailed) as failure:
        print(failure, file=sys.stderr)
        return 2
    bars = [(name, bar) for name, line in run["lines"].items() for bar in line["bars"]]
    missed = [f"  {name}: {bar['bar']}, is {bar['value']}" for name, bar in bars if not bar["met"]]
    problems = [f"  {name}: {problem}" for name, line in run["lines"].items() for problem in line["problems"]]
    print("\n".join([f"\n{len(bars) - len(missed)} of {len(bars)} bars met", *missed, *problems]))
    print(f"kept in {record.keep(run, options.out, '-fastcgi')}")
    return int(bool(missed or problems))


def _parse(arguments):
    parser = argparse.ArgumentParser(
        prog="bench/fastcgi",
        description="Measures pages of php-fpm through Sandarac, nginx's fastcgi_pass and Apache's mod_proxy_fcgi: CPU time of the "
        "proxy per request, and pages a second. All stand before the same php-fpm, have one core, and take turns. page: 13 bytes. "
        "wiki: the front page of MediaWiki. wiki-cached: the same, from the proxy's cache.",
    )
    parser.add_argument("--only", default=",".join(_LINES), help="lines to measure (default: %(default)s)")
    parser.add_argument("--binary", type=Path, help="the sandarac to measure (default: the release build)")
    parser.add_argument("--clients", default=",".join(map(str, _CLIENTS)), help="numbers of clients (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of a line (default: %(default)s)")
    parser.add_argument("--seconds", type=int, default=2, help="seconds of load per sample (default: %(default)s)")
    parser.add_argument("--cores", default="0,1", help="core of the proxy, core of everything else (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="where to write the results (default: bench/runs/DATE-fastcgi.json)")
    options = parser.parse_args(arguments)
    options.clients = [int(clients) for clients in options.clients.split(",")]
    options.only = options.only.split(",")
    if unknown := set(options.only) - set(_LINES):
        parser.error(f"there are no lines {', '.join(sorted(unknown))}; there are {', '.join(_LINES)}")
    options.cores = machine.two_cores(parser, options.cores)
    return options


def _run(options):
    if missing := tools.install(["wrk", "nginx", "apache2"], False):
        raise tools.Missing(f"these are needed: {' '.join(sorted(missing))}")
    binary = tools.sandarac(options.binary)
    tools.allow_descriptors()
    run = {
        **record.begin(binary),
        "lines": {},
    }
    described = run["machine"]
    print(f"{described['cpu']}, {described['cores']} cores, Linux {described['kernel']}", flush=True)
    os.sched_setaffinity(0, {options.cores[1]})
    for site, lines in ((Page, ["page"]), (Wiki, ["wiki", "wiki-cached"])):
        if lines := [line for line in lines if line in options.only]:
            run["lines"] |= _measure_site(site, lines, binary, options)
    return run


def _measure_site(site, lines, binary, options):
    """The lines of a site, before one php-fpm, for each number of clients."""
    measured = {}
    with tempfile.TemporaryDirectory(prefix="sandarac-bench-", ignore_cleanup_errors=True) as directory:
        Path(directory).chmod(0o755)
        with Stack(options.cores, binary, directory, site) as stack:
            stack.start_php()
            for line in lines:
                names = _WITH_APACHE if line == "wiki" else _NAMES
                proxies = {name: stack.start(name, caches=line == "wiki-cached") for name in names}
                for clients in options.clients:
                    measured[f"{line}-{clients}"] = _measure(line, stack, proxies, clients, options)
    return measured


def _measure(line, stack, proxies, clients, options):
    """Rounds in which the proxies take turns, each time in another order."""
    quiet = machine.Quiet(options.cores, lambda: closed_loop.own_cpu_seconds() + stack.cpu_seconds())
    result = Result(f"{stack.site.path}, {clients} kept connections")
    for turn in range(-1, options.rounds):
        for name in list(proxies) if turn % 2 else reversed(proxies):
            daemon, port = proxies[name]
            stack.settle()
            before, php_before = daemon.cpu_seconds(), stack.php_seconds()
            played = load.wrk(options.cores[1], port, stack.site.path, options.seconds, clients, timeout=_PATIENCE)
            # A proxy may still be closing connections.
            time.sleep(0.05)
            cpu, php = daemon.cpu_seconds() - before, stack.php_seconds() - php_before
            result.check(not played["errors"], f"{name}: {played['errors']} errors")
            asked_php = php > options.seconds / 10
            result.check(asked_php != (line == "wiki-cached"), f"{name}: php-fpm worked for {php:.2f} s")
            # The first turn warms up.
            if turn >= 0:
                figures = {key: played[key] for key in ("per_second", "p50_us", "p99_us")}
                result.add(name, cpu_us=cpu / max(1, played["requests"]) * 1e6, **figures)
    if line == "wiki":
        ratio = result.ratio("sandarac", "nginx", "per_second")
        result.bar("pages a second level with nginx", f"{ratio:.3f} ×", ratio >= _LEVEL)
    else:
        ratio = result.ratio("sandarac", "nginx", "cpu_us")
        result.bar("CPU ≤ that of nginx", f"{ratio:.3f} ×", ratio <= 1)
    others = quiet.report()
    if others["foreign"] + others["steal"] > _NOISY:
        result.notes.append(f"noisy: other programs took {others['foreign']:.0%} of a core, the hypervisor {others['steal']:.0%}")
    print(table(f"{line}-{clients}", result), flush=True)
    return result.as_dict()
