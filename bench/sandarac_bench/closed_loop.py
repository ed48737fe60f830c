"""The rows of one kind of request over and over: hits and passes by wrk, bursts of connections by ab, and both at one
rate for all by h2load.

All servers of a row run at once and take turns, so that what changes on the machine meets them alike; only one is
loaded at a time. The floor takes part in every round, and CPU time is compared with the floor of the same round; in
the rows of passes so does the floor of pass, which forwards each request to the origin without reading it.
"""

import http.client
import resource
import statistics
import subprocess
import time
from dataclasses import dataclass

from . import load, peers
from .effort import Effort
from .machine import Quiet

# Requests of the check that a pass row passes: enough connections that pooling shows, few enough to take no time.
_EXACT_REQUESTS = 240
_EXACT_CONNECTIONS = 8
WARM_UP = Effort(seconds=1, ab_requests=5000, ab_clients=100)
# The rate of a paced row, as a share of what the slowest server does at full speed: none is near its limit.
_PACE = 0.4
# Each figure that is a multiple of the CPU time of a floor, and the floor's name.
_FLOORS = {"ratio": "floor", "pass_ratio": "floor-pass"}
# A sample the machine disturbed is taken again so often before it is marked.
_RETRIES = 1


@dataclass(frozen=True)
class Row:
    """One line of the issue's table. `kind` is "hit" or "pass"; `ab` is None for wrk, else whether it sends -k."""

    name: str
    kind: str
    body: int
    ab: object = None
    from_file: bool = False
    # Whether all servers get requests at one rate instead of as many as each can answer.
    paced: bool = False

    @property
    def path(self):
        return f"/{self.body}"

    def clients(self, effort):
        return load.WRK_CONNECTIONS if self.ab is None else effort.ab_clients

    def title(self, effort):
        what = "pass to an HTTP/1.1 origin" if self.kind == "pass" else "hit"
        if self.ab is None:
            rate = f" at one rate for all, {_PACE:.0%} of the slowest's" if self.paced else ""
            return f"{what}, {self.body // 1024} KB, {load.WRK_CONNECTIONS} keep-alive clients{rate}"
        keep_alive = " -k" if self.ab else ""
        return f"{what}, {self.body // 1024} KB, ab{keep_alive} -n {effort.ab_requests} -c {effort.ab_clients}"


ROWS = [
    Row("hit-1k", "hit", 1024),
    Row("pass-1k", "pass", 1024),
    Row("hit-100k", "hit", 102400, from_file=True),
    Row("hit-1m", "hit", 1 << 20, from_file=True),
    Row("ab-close", "hit", 1024, ab=False),
    Row("ab-keep", "hit", 1024, ab=True),
    Row("hit-1k-paced", "hit", 1024, paced=True),
    Row("pass-1k-paced", "pass", 1024, paced=True),
    Row("hit-100k-paced", "hit", 102400, from_file=True, paced=True),
]


def run(bench, row, names, effort, log):
    """Measures one row; returns {server: result}, where a result has `rounds`, `median`, `peak_mib` and `problems`,
    or `left_out`, the reason why the server takes no part."""
    origin = bench.start_origin()
    servers = []
    excluded = {} if row.ab is None else peers.NO_HTTP10_CACHE
    results = {name: {"left_out": excluded[name]} for name in names if name in excluded}
    names = [name for name in names if name not in excluded]
    try:
        _, _, body = load.fetch(origin.port, row.path)
        servers = _start(bench, row, names, origin, body, effort, results, log)
        for server in servers:
            result = results[server.name] = {"rounds": [], "problems": []}
            if server.name != "floor":
                result["problems"] += _check(row, server, origin, body)
        # A server that fails under load takes no part in later rounds.
        warm = [_try(results, server, lambda: _load(bench, row, server, WARM_UP)) for server in servers]
        standing = [server for server, sample in zip(servers, warm) if sample]
        rate = _PACE * min((sample["per_second"] for sample in warm if sample), default=0) if row.paced else None
        for turn in range(effort.rounds):
            for index in range(len(standing)):
                server = standing[(index + turn) % len(standing)]
                sample = _try(results, server, lambda: _sample(bench, row, server, origin, servers, effort, rate))
                if sample:
                    results[server.name]["problems"] += sample.pop("problems")
                    results[server.name]["rounds"].append(sample)
            standing = [server for server in standing if len(results[server.name]["rounds"]) == turn + 1]
            log(f"  round {turn + 1} of {effort.rounds}")
        for server in servers:
            results[server.name]["peak_mib"] = server.daemon.memory()["peak"] / 2**20
    finally:
        for server in [*servers, origin]:
            server.stop()
    for result in results.values():
        if result.get("rounds"):
            _summarise(result, {figure: results[name] for figure, name in _FLOORS.items() if name in results})
    return results


def _try(results, server, work):
    """What `work` returns; None, and a problem of the server's, where the load generator gave up."""
    try:
        return work()
    except (load.LoadFailed, subprocess.TimeoutExpired) as failure:
        results[server.name]["problems"].append(str(failure))
        return None


def _start(bench, row, names, origin, body, effort, results, log):
    servers = [bench.start_floor(row.body, row.ab)]
    backend = peers.Origin(origin.port)
    try:
        if row.kind == "pass":
            servers.append(bench.start_floor_pass(backend))
        for name in names:
            try:
                servers.append(bench.start(name, row.kind, backend, clients=row.clients(effort)))
            except peers.StartFailed as failure:
                log(f"  {failure}")
                results[name] = {"rounds": [], "problems": [str(failure)]}
        if row.from_file and "nginx" in names:
            (bench.directory / "files").mkdir(exist_ok=True)
            (bench.directory / "files" / row.path[1:]).write_bytes(body)
            server = bench.start("nginx", "file", files=bench.directory / "files")
            server.name = "nginx-file"
            servers.append(server)
    except BaseException:
        for server in servers:
            server.stop()
        raise
    return servers


def _check(row, server, origin, body):
    """Whether the server does what the row says, exactly: bodies byte for byte, and requests seen by the origin."""
    try:
        return _differences(row, server, origin, body)
    except (OSError, http.client.HTTPException) as failure:
        return [f"it could not be checked: {type(failure).__name__}: {failure}"]


def _differences(row, server, origin, body):
    problems = []
    # The first requests may fill the cache; a second on each of the server's threads must find it filled.
    load.fetch_kept_alive(server.port, row.path, 2 * _EXACT_CONNECTIONS, _EXACT_CONNECTIONS)
    before = peers.requests_seen(origin)
    seen = load.fetch_kept_alive(server.port, row.path, _EXACT_REQUESTS, _EXACT_CONNECTIONS)
    moved = peers.requests_seen(origin) - before
    if seen != {(200, body)}:
        statuses = sorted({status for status, _ in seen})
        problems.append(f"answers differ from the origin's: {len(seen)} kinds, status {statuses}")
    wanted = _EXACT_REQUESTS if row.kind == "pass" else 0
    if moved != wanted:
        problems.append(f"the origin saw {moved} of {_EXACT_REQUESTS} requests instead of {wanted}")
    return problems


def _load(bench, row, server, effort, rate=None):
    if rate:
        return load.paced(bench.client_core, server.port, row.path, effort.seconds, rate)
    if row.ab is None:
        return load.wrk(bench.client_core, server.port, row.path, effort.seconds)
    return load.ab(bench.client_core, server.port, row.path, effort.ab_requests, effort.ab_clients, row.ab)


def _sample(bench, row, server, origin, servers, effort, rate):
    for _ in range(1 + _RETRIES):
        sample = _sample_once(bench, row, server, origin, servers, effort, rate)
        if not sample["disturbed"]:
            break
    return sample


def _sample_once(bench, row, server, origin, servers, effort, rate):
    quiet = Quiet(
        (bench.server_core, bench.client_core),
        lambda: own_cpu_seconds() + sum(other.daemon.cpu_seconds() for other in [*servers, origin]),
    )
    cpu_before = server.daemon.cpu_seconds()
    seen_before = peers.requests_seen(origin)
    sample = _load(bench, row, server, effort, rate)
    # The server may still be closing ab's connections.
    time.sleep(0.05)
    cpu = server.daemon.cpu_seconds() - cpu_before
    sample["cpu_us"] = cpu / sample["requests"] * 1e6 if sample["requests"] else 0.0
    sample.update(quiet.report())
    moved = peers.requests_seen(origin) - seen_before
    sample["problems"] = _miscounts(row, server, sample, moved)
    return sample


def _miscounts(row, server, sample, moved):
    if row.kind == "hit" and moved:
        return [f"the origin saw {moved} requests during a round of hits"]
    # wrk stops with at most one request of each connection under way.
    most = sample["requests"] + load.WRK_CONNECTIONS
    if row.kind == "pass" and server.name != "floor" and not sample["requests"] <= moved <= most:
        return [f"the origin saw {moved} requests where the clients had {sample['requests']} answers"]
    if row.ab and sample["kept_alive"] < sample["requests"]:
        return [f"only {sample['kept_alive']} of {sample['requests']} requests were on kept-alive connections"]
    return []


def own_cpu_seconds():
    """CPU time of the bench itself and of the clients it has waited for."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _summarise(result, floors):
    """Adds the ratios to the floors of each round, and the median of each figure over the undisturbed rounds."""
    rounds = result["rounds"]
    for turn, sample in enumerate(rounds):
        partners = {figure: floor["rounds"][turn] for figure, floor in floors.items() if turn < len(floor["rounds"])}
        for figure, partner in partners.items():
            if partner["cpu_us"]:
                sample[figure] = sample["cpu_us"] / partner["cpu_us"]
        sample["discarded"] = sample["disturbed"] or any(partner["disturbed"] for partner in partners.values())
    kept = [sample for sample in rounds if not sample["discarded"]]
    result["kept_rounds"] = len(kept)
    result["median"] = medians(kept or rounds)
    result["errors"] = sum(sample["errors"] for sample in rounds)
    result["problems"] = sorted(set(result["problems"]))


def medians(samples):
    """The median of every numeric figure of the samples."""
    names = [name for name, value in samples[0].items() if not isinstance(value, bool)]
    return {name: statistics.median(sample[name] for sample in samples) for name in names if name in samples[-1]}
