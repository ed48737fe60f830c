"""Instructions of the whole server per request, under valgrind, of one binary or of two side by side.

One client asks over one kept-alive connection, and waits for each response. A run of few requests is subtracted from a
run of many, which cancels start-up, the filling of the cache and the shutdown. Other threads than the core's are in
the count: they add what they do with time, which is little beside thousands of requests.
"""

import argparse
import http.client
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from . import load, peers, tools

# Enough that the upkeep of a second or so under valgrind is well below one per cent.
FEW, MANY = 1000, 5000
ROUNDS = 3
# A change of inlining in an untouched function moves a count by about one per cent.
TOLERANCE = 0.02
_TARGET = tools.ROOT / "target" / "valgrind"
# rustix's own backend ends a process under valgrind when it looks for the vDSO; its libc backend does not.
_BUILD = ["cargo", "build", "--release", "-p", "sandarac-server", "--target-dir", str(_TARGET)]
_BUILD += ["--config", 'build.rustflags = ["--cfg", "rustix_use_libc"]']
_VALGRIND = ["valgrind", "--tool=cachegrind", "--cache-sim=no"]


class NotCounted(Exception):
    """The server did not end as it should, or answered something else; the text says what."""


@dataclass(frozen=True)
class Case:
    """One kind of request. `{n}` in the target stands for the number of the request; the host chooses the route, and
    `forwarded` says that each request reaches the origin."""

    name: str
    target: str
    host: str = "cache.test"
    fields: dict = field(default_factory=dict)
    status: int = 200
    forwarded: bool = False


# What a browser sends.
_CODINGS = {"Accept-Encoding": "gzip, deflate, br, zstd"}

# The sixteen fields of a page that Chrome loads, with those of http.client.
_CHROME = _CODINGS | {
    "Connection": "keep-alive",
    "Cache-Control": "max-age=0",
    "sec-ch-ua": '"Chromium";v="140", "Not=A?Brand";v="24", "Google Chrome";v="140"',
    "sec-ch-ua-mobile": "?0",
    "sec-ch-ua-platform": '"Linux"',
    "Upgrade-Insecure-Requests": "1",
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8",
    "Sec-Fetch-Site": "none",
    "Sec-Fetch-Mode": "navigate",
    "Sec-Fetch-User": "?1",
    "Sec-Fetch-Dest": "document",
    "Accept-Language": "de-DE,de;q=0.9,en-US;q=0.8,en;q=0.7",
    "Priority": "u=0, i",
}

CASES = [
    Case("hit-1k", "/1024"),
    Case("hit-chrome", "/1024", fields=_CHROME),
    Case("hit-100k", "/102400"),
    # The bar: at most a tenth more than the same request and response with `Vary: Accept-Encoding`.
    Case("hit-vary", "/1024", host="vary.test", fields=_CODINGS),
    Case("hit-coded", "/1024", host="compress.test", fields=_CODINGS),
    Case("miss-1k", "/1024?{n}", forwarded=True),
    Case("pass-1k", "/1024", host="pass.test", forwarded=True),
    Case("pass-100k", "/102400", host="pass.test", forwarded=True),
    Case("not-modified", "/1024", fields={"If-None-Match": '"6b014f8c-400"'}, status=304),
    Case("range-1k", "/102400", fields={"Range": "bytes=1000-2023"}, status=206),
    Case("answer", "/", host="answer.test"),
    Case("redirect", "/", host="redirect.test", status=308),
]


def main(arguments=None):
    """Counts and prints. Exit status: 0, 1 if the binary takes more than the one it is compared with, 2 it could not run."""
    options = _parse(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        if not shutil.which("valgrind"):
            raise tools.Missing("valgrind is missing: install the Debian package valgrind")
        return int(_compare(options))
    except (tools.Missing, NotCounted, peers.StartFailed) as failure:
        print(failure, file=sys.stderr)
        return 2


def _parse(arguments):
    parser = argparse.ArgumentParser(
        prog="bench/instructions",
        description="Counts the instructions per request of the whole server under valgrind, of one binary or of two side by side.",
        epilog="Build a binary for --against, in a worktree of the other commit, with: "
        "RUSTFLAGS='--cfg rustix_use_libc' cargo build --release -p sandarac-server",
    )
    parser.add_argument("--binary", type=Path, help="the sandarac to measure (default: built for this, in target/valgrind)")
    parser.add_argument("--against", type=Path, metavar="BINARY", help="an older sandarac to compare it with")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each count is made (default: %(default)s)")
    parser.add_argument("--requests", type=int, default=MANY, help=f"requests of a run, above {FEW} (default: %(default)s)")
    parser.add_argument("--profiles", type=Path, metavar="DIRECTORY", help="keep what cg_annotate and cg_diff read of each long run")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"only these: {', '.join(case.name for case in CASES)}")
    options = parser.parse_args(arguments)
    unknown = set(options.cases) - {case.name for case in CASES}
    if unknown:
        parser.error(f"no case {', '.join(sorted(unknown))}")
    if options.requests <= FEW:
        parser.error(f"--requests must be above {FEW}")
    options.cases = [case for case in CASES if not options.cases or case.name in options.cases]
    return options


def _compare(options):
    """Prints the table; says whether any case takes more than it may."""
    binaries = {"new": tools.sandarac(options.binary or build())}
    if options.against:
        binaries = {"old": tools.sandarac(options.against), **binaries}
    if options.profiles:
        options.profiles.mkdir(parents=True, exist_ok=True)
    print(f"{'case':<14}{'':>2}" + "".join(f"{name:>9}  spread" for name in binaries) + "   ratio" * bool(options.against))
    worse = False
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(prefix="sandarac-bench-", ignore_cleanup_errors=True) as directory:
        bench = peers.Bench(cores[0], cores[-1], None, directory)
        for case in options.cases:
            counts = {name: [] for name in binaries}
            for _ in range(options.rounds):
                for name, binary in binaries.items():
                    bench.sandarac = binary
                    profile = options.profiles and options.profiles / f"{case.name}-{name}.cachegrind"
                    counts[name].append(_per_request(bench, case, options.requests, profile))
            medians = {name: statistics.median(each) for name, each in counts.items()}
            line = f"{case.name:<16}"
            for name, each in counts.items():
                line += f"{medians[name]:>9.0f}{(max(each) - min(each)) / medians[name]:>8.2%}"
            if options.against:
                ratio = medians["new"] / medians["old"]
                worse |= ratio > 1 + TOLERANCE
                line += f"{ratio:>8.3f}{'  WORSE' * (ratio > 1 + TOLERANCE)}"
            print(line, flush=True)
    return worse


def build():
    """The sandarac to count, built now unless it is up to date."""
    done = subprocess.run(_BUILD, cwd=tools.ROOT)
    if done.returncode:
        raise tools.Missing("sandarac did not build; name a binary with --binary")
    return _TARGET / "release" / "sandarac"


def _per_request(bench, case, many, profile):
    return (_total(bench, case, many, profile) - _total(bench, case, FEW, None)) / (many - FEW)


def _total(bench, case, requests, profile):
    origin = bench.start_origin()
    try:
        return total(
            lambda under: bench.start("sandarac", "instructions", peers.Origin(origin.port), under=under),
            origin,
            case,
            requests,
            profile,
        )
    finally:
        origin.stop()


def total(start, origin, case, requests, profile=None):
    """Instructions of a server, from start to end, that answers so many requests. `start` takes the command of a tool, and
    starts the server under it; `origin` is the counting one behind it."""
    seen = peers.requests_seen(origin)
    try:
        server = start([*_VALGRIND, f"--cachegrind-out-file={profile or os.devnull}"])
        try:
            load.ask_in_turn(server.port, case.target, requests, {"Host": case.host, **case.fields}, case.status)
            seen = peers.requests_seen(origin) - seen
            server.daemon.stop()
            output = server.daemon.output()
        finally:
            server.stop()
    except (OSError, http.client.HTTPException, load.LoadFailed) as failure:
        hint = "; was it built with --cfg rustix_use_libc?" if isinstance(failure, OSError) else ""
        raise NotCounted(f"{case.name}: {type(failure).__name__}: {failure}{hint}") from failure
    if seen != requests if case.forwarded else seen > 1:
        raise NotCounted(f"{case.name}: the origin saw {seen} of {requests} requests")
    found = re.search(r"I +refs: +([\d,]+)", output)
    if not found:
        raise NotCounted(f"{case.name}: the server did not end as it should:\n{output}")
    return int(found.group(1).replace(",", ""))
