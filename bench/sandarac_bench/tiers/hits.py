"""Hits in RAM and in the shared tier, by what they cost the server: instructions and CPU time."""

import random
import shutil
import statistics

from .. import instructions, load
from . import stack as servers
from ..line import Result

_FEW, _MANY = 500, 3000
_COUNTS = 3
_ROUNDS = 6
# A check every fifth of a second, so that some fall into a run of a second.
_CHECKING = 'local_ttl = "200ms"'
# No check while it is measured.
_NOT_CHECKING = 'local_ttl = "10m"'
_PAGE = 30720


def _sample(result, row, server, load_once):
    """Adds the figures of one load by wrk to a row."""
    before = server.daemon.cpu_seconds()
    sample = load_once()
    cpu = server.daemon.cpu_seconds() - before
    result.check(not sample["errors"], f"{row}: {sample['errors']} errors")
    requests = max(1, sample["requests"])
    result.add(row, cpu_us=cpu / requests * 1e6, per_second=sample["per_second"], p50_us=sample["p50_us"], p99_us=sample["p99_us"])


def ram_hit(stack, options):
    """A hit in RAM, with a shared tier behind it and without."""
    result = Result("hit in RAM, 1 KB: with a shared tier and without, 64 clients")
    target = "/noise/1024/0/page"
    with stack.servers():
        origin, memcached = stack.origin(), stack.memcached(64)
        nodes = {"without": stack.node(origin), "with": stack.node(origin, memcached, settings=_NOT_CHECKING)}
        expected, _ = stack.body(origin, target)
        for row, node in nodes.items():
            for _ in range(2):
                body, status = stack.body(node, target)
            result.check(body == expected, f"{row}: the body differs from the origin's")
            result.check("hit" in status and servers.FROM_TIER not in status, f"{row}: no hit in RAM but {status}")
        result.check(servers.metric(nodes["with"], "tier_fills") == 1, "the page did not enter the shared tier")
        # wrk has a host of its own, so it fills another entry.
        for node in nodes.values():
            load.wrk(stack.client_core, node.port, target, 1)
        seen = servers.peers.requests_seen(origin)
        for turn in range(_ROUNDS):
            for row in sorted(nodes, reverse=turn % 2):
                _sample(result, row, nodes[row], lambda: load.wrk(stack.client_core, nodes[row].port, target, 1))
        result.check(servers.peers.requests_seen(origin) == seen, "the origin saw requests that were to be hits")
        result.check(servers.metric(nodes["with"], "tier_checks") == 0, "copies were checked within local_ttl")
    ratio = result.ratio("with", "without", "cpu_us")
    result.notes.append(f"CPU with / without, median of the rounds: {ratio:.3f}")
    _count_instructions(stack, options, result)
    return result


def _count_instructions(stack, options, result):
    if not shutil.which("valgrind"):
        result.notes.append("instructions were not counted: valgrind is missing")
        return
    binary = options.counted or instructions.build()
    case = instructions.Case("ram-hit", "/noise/1024/0/page", host=servers.HOST)
    counts, checks = {}, 0
    with stack.servers():
        origin, memcached = stack.origin(), stack.memcached(64)
        started = []

        def start(under, **setup):
            # The instructions' harness ends it.
            server = stack.node(origin, under=under, binary=binary, **setup)
            stack.disown(server)
            started.append(server)
            return server

        setups = {
            "without": {},
            "with": {"memcached": memcached, "settings": _NOT_CHECKING},
            "with checks": {"memcached": memcached, "settings": _CHECKING},
        }
        for _ in range(_COUNTS):
            for row, setup in setups.items():
                many, few = (
                    instructions.total(lambda under: start(under, **setup), origin, case, requests)
                    for requests in (_MANY, _FEW)
                )
                counts.setdefault(row, []).append((many - few) / (_MANY - _FEW))
    for row, values in counts.items():
        for value in values:
            result.add(f"{row}, instructions", instructions=value)
    medians = {row: statistics.median(values) for row, values in counts.items()}
    ratio = medians["with"] / medians["without"]
    result.bar("instructions ≤ 1.02 × without a tier", f"{ratio:.4f}", ratio <= 1.02)
    more = medians["with checks"] - medians["with"]
    result.notes.append(f"with a check of the page and a read of the purge log each 200 ms: {more:+.0f} instructions per request")


def ram_file(stack, options):
    """A hit in RAM against nginx with the same bytes in a file."""
    result = Result("hit in RAM, with a shared tier, and nginx serving the same bytes from a file, 64 clients")
    with stack.servers():
        origin, memcached = stack.origin(), stack.memcached(64)
        node = stack.node(origin, memcached)
        sizes = {"1 KB": 1024, "30 KB": _PAGE}
        files = stack.bench.directory / "files"
        shutil.rmtree(files, ignore_errors=True)
        nginx = None
        for size in sizes.values():
            target = f"/noise/{size}/0/page"
            path = files / target[1:]
            path.parent.mkdir(parents=True)
            path.write_bytes(load.fetch(node.port, target)[2])
        if shutil.which("nginx"):
            nginx = stack.nginx("file", files=files)
        else:
            result.notes.append("skipped: nginx is missing")
        for name, size in sizes.items():
            target = f"/noise/{size}/0/page"
            rows = {f"{name}, RAM": node, **({f"{name}, nginx": nginx} if nginx else {})}
            if nginx:
                same = load.fetch(nginx.port, target)[2]
                result.check(len(same) == size, f"nginx served {len(same)} bytes instead of {size}")
            for server in rows.values():
                load.wrk(stack.client_core, server.port, target, 1)
            seen = servers.peers.requests_seen(origin)
            for turn in range(_ROUNDS):
                for row in sorted(rows, reverse=turn % 2):
                    _sample(result, row, rows[row], lambda: load.wrk(stack.client_core, rows[row].port, target, 1))
            result.check(servers.peers.requests_seen(origin) == seen, "the origin saw requests that were to be hits")
            if nginx:
                ratio = result.ratio(f"{name}, RAM", f"{name}, nginx", "cpu_us")
                result.bar(f"{name}: CPU < nginx's", f"{ratio:.2f} ×", ratio < 1)
    return result


def tier_cpu(kind):
    """The line for hits in the shared tier under load, for pages of one kind."""

    def line(stack, options):
        what = {"noise": "incompressible", "text": "compressible"}[kind]
        result = Result(f"hits in the shared tier, 30 KB, {what}, 64 clients, RAM holds 1 in 20; nginx with memcached_pass")
        pages, requests, rounds = 4000, 8000, 5
        targets = [f"/{kind}/{_PAGE}/0/{number}" for number in range(pages)]
        with stack.servers():
            origin, memcached, raw = stack.origin(), stack.memcached(), stack.memcached()
            filled = stack.log(targets)
            filler = stack.node(origin, memcached, memory="512MiB", settings=servers.PATIENT)
            stack.fill(filler, memcached, filled)
            stack.fill_raw(raw, filled, _PAGE)
            expected = stack.body(origin, targets[0])[0]
            stack.stop(filler)
            memory = f"{pages * _PAGE // 20 // 1024}KiB"
            node = stack.node(origin, memcached, memory=memory, settings=servers.PATIENT)
            rows = {"node": node, "relay": stack.relay(raw)}
            if shutil.which("nginx"):
                rows["nginx"] = stack.nginx("memcached", raw)
            else:
                result.notes.append("nginx is missing")
            body, status = stack.body(rows["node"], targets[0])
            result.check(body == expected and servers.FROM_TIER in status, f"the node answered {len(body)} bytes, {status}")
            draw = random.Random(20)
            log = stack.log(draw.choice(targets) for _ in range(requests * rounds))
            for server in rows.values():
                stack.play(server, log, 0, requests // 4, clients=64)
            seen = servers.peers.requests_seen(origin)
            for turn in range(rounds):
                for row in sorted(rows, reverse=turn % 2):
                    before = rows[row].daemon.cpu_seconds()
                    played = stack.play(rows[row], log, turn * requests, requests, clients=64)
                    cpu = rows[row].daemon.cpu_seconds() - before
                    result.check_played(row, played, 0.9 if row == "node" else None)
                    figures = {"cpu_us": cpu / max(1, played.answered) * 1e6, "per_second": played.answered / played.seconds}
                    tier = {"from_tier": played.from_tier / max(1, played.answered)} if row == "node" else {}
                    result.add(row, **figures, p50_us=played.percentile(50), p99_us=played.percentile(99), **tier)
            moved = servers.peers.requests_seen(origin) - seen
            result.check(moved == 0, f"the origin saw {moved} requests")
        if "nginx" in rows:
            ratio = result.ratio("node", "nginx", "cpu_us")
            result.bar("CPU ≤ nginx's", f"{ratio:.2f} ×", ratio <= 1)
        result.notes.append(f"CPU of the node: {result.ratio('node', 'relay', 'cpu_us'):.2f} × the relay's")
        return result

    return line
