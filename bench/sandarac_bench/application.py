"""Shellac's three pages: an application in Apache with PHP, alone and with each server before it.

The application shares the core of the client in every line, also when it stands alone, so that a server before it is
an addition and not a second application core. Apache and the server start anew for every sample: connections left by
one server would occupy the processes of Apache for the next.
"""

import http.client
import re
import subprocess
import time
from dataclasses import dataclass

from . import load, peers
from .closed_loop import medians, own_cpu_seconds
from .machine import Quiet

_EXACT_REQUESTS = 20
_WARM_UP_REQUESTS = 200
# The most requests at once that servers which can queue give to the application: enough to keep its core busy.
_APACHE_CONNECTIONS = 128
_FAILURES = (peers.StartFailed, load.LoadFailed, subprocess.TimeoutExpired, http.client.HTTPException, OSError)
# Shellac's published comparison; HAProxy runs beside it and does not decide.
RIVALS = ("apache", "varnish", "nginx")


@dataclass(frozen=True)
class Row:
    """One page in one role: `kind` is "pass" (as proxy) or "hit" (as cache)."""

    name: str
    page: str
    kind: str
    path: str
    marker: bytes

    def title(self, effort):
        role = "proxy" if self.kind == "pass" else "cache"
        return f"{self.page}, as {role}, ab -k -n {effort.page_requests} -c {effort.page_clients}"


PAGES = [
    ("static", "static page", "/static.html", b"A static page"),
    ("light", "light dynamic page", "/light.php", b"Calendar of 2026"),
    ("heavy", "heavy dynamic page, 50 queries", "/article.php?id=250", b"<!-- 50 queries -->"),
]
ROWS = [
    Row(f"{name}-{role}", page, kind, path, marker)
    for role, kind in (("proxy", "pass"), ("cache", "hit"))
    for name, page, path, marker in PAGES
]


def run(bench, row, names, effort, site, log):
    """Measures one row; returns {server: result} like `closed_loop.run`. `site` is what `site.build` returned."""
    excluded = peers.NO_HTTP10_CACHE if row.kind == "hit" else {}
    results = {name: {"left_out": excluded[name]} for name in names if name in excluded}
    names = ["apache", *(name for name in names if name not in excluded)]
    results.update({name: {"rounds": [], "problems": []} for name in names})
    for turn in range(effort.page_rounds):
        for index in range(len(names)):
            name = names[(index + turn) % len(names)]
            try:
                sample = _sample(bench, row, name, effort, site)
            except _FAILURES as failure:
                results[name]["problems"].append(f"{type(failure).__name__}: {failure}")
                continue
            results[name]["problems"] += sample.pop("problems")
            results[name]["rounds"].append(sample)
        log(f"  round {turn + 1} of {effort.page_rounds}")
    for name in names:
        _summarise(results[name])
    return results


def _sample(bench, row, name, effort, site):
    files, database = site
    apache = bench.start_apache(files, effort.page_clients, {"BENCH_DATABASE": str(database)})
    front = apache
    try:
        if name != "apache":
            origin = peers.Origin(apache.port, _APACHE_CONNECTIONS)
            front = bench.start(name, row.kind, origin, clients=effort.page_clients)
        problems = _check(row, front, apache)
        load.ab(bench.client_core, front.port, row.path, _WARM_UP_REQUESTS, 10, True)
        daemons = {apache.daemon, front.daemon}
        quiet = Quiet(
            (bench.server_core, bench.client_core),
            lambda: own_cpu_seconds() + sum(daemon.cpu_seconds() for daemon in daemons),
        )
        cpu_before = front.daemon.cpu_seconds()
        sample = load.ab(bench.client_core, front.port, row.path, effort.page_requests, effort.page_clients, True)
        application = apache.daemon.memory()["pss"]
        sample["cpu_us"] = (front.daemon.cpu_seconds() - cpu_before) / max(1, sample["requests"]) * 1e6
        sample.update(quiet.report())
        # Apache's processes share most of their memory, so its part is proportional; nothing else here forks so much.
        sample["peak_mib"] = (application if front is apache else front.daemon.memory()["peak"]) / 2**20
        sample["whole_mib"] = sample["peak_mib"] + (0 if front is apache else application / 2**20)
        sample["problems"] = problems
        return sample
    finally:
        for server in {id(server): server for server in (front, apache)}.values():
            server.stop()


def _check(row, front, apache):
    """The page is the application's, byte for byte, and the application is asked as often as the role says."""
    status, _, body = load.fetch(apache.port, row.path)
    problems = []
    if status != 200 or row.marker not in body:
        return [f"Apache answers {row.path} with {status}, without {row.marker.decode()!r}"]
    if front is apache:
        return problems
    load.fetch(front.port, row.path)
    counter = _AccessCounter(apache.port)
    before = counter.settled()
    seen = load.fetch_kept_alive(front.port, row.path, _EXACT_REQUESTS, 2)
    moved = counter.settled() - before
    if seen != {(200, body)}:
        problems.append(f"answers differ from Apache's: {len(seen)} kinds")
    wanted = _EXACT_REQUESTS if row.kind == "pass" else 0
    if moved != wanted:
        problems.append(f"Apache saw {moved} of {_EXACT_REQUESTS} requests instead of {wanted}")
    return problems


class _AccessCounter:
    """Requests Apache has completed, by its status page, whose own accesses are taken off."""

    def __init__(self, port):
        self._port = port
        self._looks = 0

    def settled(self):
        """The count once it stands still: Apache counts a request after answering it."""
        last = None
        while (found := self._look()) != last:
            last = found
            time.sleep(0.05)
        return found

    def _look(self):
        _, _, body = load.fetch(self._port, "/server-status?auto")
        self._looks += 1
        return int(re.search(rb"^Total Accesses: (\d+)", body, re.M).group(1)) - self._looks


def _summarise(result):
    rounds = result["rounds"]
    if not rounds:
        return
    for sample in rounds:
        sample["discarded"] = sample["disturbed"]
    kept = [sample for sample in rounds if not sample["discarded"]]
    result["kept_rounds"] = len(kept)
    result["median"] = medians(kept or rounds)
    result["errors"] = sum(sample["errors"] for sample in rounds)
    result["peak_mib"] = result["median"]["peak_mib"]
    result["problems"] = sorted(set(result["problems"]))
