"""The command line of `bench/upgrades`."""

import argparse
import multiprocessing
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from .. import bars, machine, peers, record, tools
from ..certificate import certificate
from ..holding.hoards import Apart
from ..process import Daemon
from .origin import origin
from .stalls import heartbeat
from .succession import Succession, adopt_orphans

_ROWS = ("traffic", "hit-ratio", "snapshot")
_TRAFFIC_MIB = 512

_SANDARAC = """threads = 2
[[listen]]
address = "127.0.0.1:{port}"
http2 = true
[[listen]]
address = "127.0.0.1:{tls}"
[[listen.tls.certificates]]
chain = "{chain}"
key = "{key}"
[pool.app]
backends = ["http://127.0.0.1:{origin}"]
[[route]]
pool = "app"
[cache]
memory = "{memory}MiB"
{snapshot}
[timeouts]
drain = "10s"
[spool]
directory = "{directory}"
[admin]
listen = "unix:{directory}/admin"
"""


def main(arguments=None):
    """Runs the measurement, and returns its exit status."""
    return bars.main(_run, _parse(arguments), "-upgrades")


def _parse(arguments):
    parser = argparse.ArgumentParser(
        prog="bench/upgrades",
        description="What clients notice of upgrades, and what the next process knows of the cache: upgrades in a row under clients of every "
        "kind, the hit ratio after an upgrade, and a restart with a snapshot.",
    )
    parser.add_argument("--binary", type=Path, help="the sandarac to measure (default: the release build)")
    parser.add_argument("--upgrades", type=int, default=20, help="upgrades in the row traffic (default: %(default)s)")
    parser.add_argument("--clients", type=int, default=64, help="clients in the row traffic, without the slow ones (default: %(default)s)")
    parser.add_argument("--size", type=int, default=1024, metavar="MIB", help="objects in the other rows (default: %(default)s)")
    parser.add_argument("--rows", default=",".join(_ROWS), help="only these, with commas (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="4 upgrades, 16 clients, 64 MiB: does it all work?")
    parser.add_argument("--cores", default="0,1", help="core of the proxy, core of everything else (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="where to write the results (default: bench/runs/DATE-upgrades.json)")
    options = parser.parse_args(arguments)
    options.cores = machine.two_cores(parser, options.cores)
    options.rows = options.rows.split(",")
    if unknown := [row for row in options.rows if row not in _ROWS]:
        parser.error(f"no row is called {unknown[0]}; there are {', '.join(_ROWS)}")
    if min(options.upgrades, options.clients) < 1 or options.size < 16:
        parser.error("there must be an upgrade, a client and 16 MiB at least")
    if options.quick:
        options.upgrades, options.clients, options.size = min(4, options.upgrades), min(16, options.clients), min(64, options.size)
    return options


def _run(options):
    binary = bars.binary(options, "openssl")
    adopt_orphans()
    _add_packages()
    run = {
        **record.begin(binary),
        "upgrades": options.upgrades,
        "clients": options.clients,
        "size_mib": options.size,
        "rows": {},
        "bars": [],
    }
    os.sched_setaffinity(0, {options.cores[1]})
    for row in options.rows:
        with tempfile.TemporaryDirectory(prefix="sandarac-bench-", ignore_cleanup_errors=True) as directory:
            started = []
            try:
                run["rows"][row] = _measure(options, row, binary, Path(directory), started, run)
            finally:
                for one in reversed(started):
                    one.stop()
    return run


def _measure(options, row, binary, directory, started, run):
    # It needs packages that `_add_packages` has found.
    from . import warmth

    stored = multiprocessing.Value("Q")
    behind = Apart(options.cores[1], origin, stored)
    started.append(behind)
    port, tls = peers.free_port(), peers.free_port()
    chain, key, _ = certificate(directory)
    text = _SANDARAC.format(
        port=port,
        tls=tls,
        chain=chain,
        key=key,
        origin=behind.told(),
        memory=_TRAFFIC_MIB if row == "traffic" else warmth.limit_mib(options),
        snapshot=f'snapshot = "{directory}/cache"' if row == "snapshot" else "",
        directory=directory,
    )
    site = Succession(binary, text, directory, options.cores[0], port, "/pass/100/0", started)
    site.tls = tls
    stall = multiprocessing.Value("d")
    started.append(Apart(options.cores[0], heartbeat, stall))
    try:
        return _row(options, row, site, run, stored, binary, started)
    finally:
        print(f"the machine stalled for up to {stall.value:.2f} s on the core of the proxy", flush=True)


def _row(options, row, site, run, stored, binary, started):
    from . import traffic, warmth

    if row == "traffic":
        return traffic.measure(options, site, run)
    if row == "hit-ratio":
        return warmth.hit_ratio(options, site, run, stored)

    def restart():
        site.log_path = site.log_path.with_name("restarted.log")
        daemon = Daemon([binary, "-c", site.log_path.with_name("sandarac.toml")], options.cores[0], site.log_path)
        started.append(daemon)
        return daemon

    return warmth.snapshot(options, site, run, restart)


def _add_packages():
    """Makes the packages of `requirements.txt` importable: from an environment of their own, which is made where it is missing or
    out of date."""
    environment = tools.ROOT / "target" / "bench-upgrades"
    requirements = Path(__file__).with_name("requirements.txt")
    wanted = f"{requirements.read_text()}{environment}\n{sys.version}\n"
    mark = environment / "made-for"
    if not mark.exists() or mark.read_text() != wanted:
        print(f"making {environment}", flush=True)
        environment.parent.mkdir(exist_ok=True)
        ways = (["-m", "venv", "--clear"], ["-m", "virtualenv", "--clear", "-q"])
        if not any(subprocess.run([sys.executable, *way, environment], capture_output=True).returncode == 0 for way in ways):
            raise tools.Missing("neither venv nor virtualenv works: apt install python3-venv, or pip install virtualenv")
        pip = [environment / "bin/pip", "install", "-q", "--disable-pip-version-check", "-r", requirements]
        done = subprocess.run(pip, capture_output=True, text=True)
        if done.returncode:
            raise tools.Missing(f"pip does not install {requirements}:\n{done.stderr}")
        mark.write_text(wanted)
    version = ".".join(platform.python_version_tuple()[:2])
    sys.path.append(str(environment / f"lib/python{version}/site-packages"))
