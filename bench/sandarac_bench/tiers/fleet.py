"""Four nodes: what the origin is asked for."""

import random

from . import stack as servers
from ..line import Result

_NODES = 4


def _nodes(stack, origin, memcached, **setup):
    cores = (stack.server_core, stack.client_core)
    return [stack.node(origin, memcached, core=cores[number % 2], **setup) for number in range(_NODES)]


def cold_page(stack, options):
    """Every client of four nodes asks for one page that nobody has."""
    result = Result("four nodes, 64 clients each, all at once for one cold page")
    clients = 64
    with stack.servers():
        origin, memcached = stack.origin(), stack.memcached(64)
        nodes = _nodes(stack, origin, memcached)
        for node in nodes:
            stack.body(node, "/text/1024/0/warm")
        for kind, delay, turns in (("text", 300, 4), ("text", 3000, 1), ("private", 300, 2)):
            row = f"{delay} ms" if kind == "text" else f"uncacheable, {delay} ms"
            for turn in range(turns):
                log = stack.log([f"/{kind}/30720/{delay}/{turn}"] * clients)
                seen = servers.peers.requests_seen(origin)
                first = stack.play_at_once([(node, log) for node in nodes], clients=clients)
                _add(result, row, first, servers.peers.requests_seen(origin) - seen)
                if kind == "private":
                    again = stack.play_at_once([(node, log) for node in nodes], clients=clients)
                    _add(result, "… again", again, servers.peers.requests_seen(origin) - seen - len(nodes) * clients)
    for row in ("300 ms", "3000 ms"):
        most = max(sample["origin_requests"] for sample in result.rows[row])
        result.bar(f"{row}: 1 request to the origin", f"{most}", most == 1)
    longest = max(sample["max_us"] for sample in result.rows["… again"]) / 1000
    result.bar("uncacheable: no wait after the first; max ≤ 300 + 100 ms", f"{longest:.0f} ms", longest <= 400)
    return result


def _add(result, row, parts, origin_requests):
    for played in parts:
        result.check_played(row, played)
    micros = [each for played in parts for each in played.micros]
    p50, p99 = (servers.percentile(micros, share) for share in (50, 99))
    result.add(row, origin_requests=origin_requests, p50_us=p50, p99_us=p99, max_us=max(micros))


def working_set(stack, options):
    """A working set of four times the RAM of a node, with the tier and without."""
    result = Result("four nodes, working set 4 × the RAM of a node, Zipf 0.9, 20 requests per object: requests to the origin")
    objects, size, per_object = 2048, 16384, 20
    draw = random.Random(9)
    weights = [1 / (rank + 1) ** 0.9 for rank in range(objects)]
    drawn = draw.choices(range(objects), weights, k=objects * per_object)
    parts = [drawn[number::_NODES] for number in range(_NODES)]
    memory = f"{objects * size // 4 // 1024}KiB"
    for row in ("without", "with"):
        with stack.servers():
            origin = stack.origin()
            memcached = stack.memcached() if row == "with" else None
            nodes = _nodes(stack, origin, memcached, memory=memory, settings=servers.PATIENT)
            logs = [stack.log(f"/noise/{size}/0/{number}" for number in part) for part in parts]
            played = stack.play_at_once(list(zip(nodes, logs)), clients=4)
            for each in played:
                result.check_played(row, each)
            asked = servers.peers.requests_seen(origin)
            answered = sum(each.answered for each in played)
            from_tier = sum(each.from_tier for each in played) / max(1, answered)
            result.check(answered == len(drawn), f"{row}: {answered} of {len(drawn)} answers")
            result.add(row, origin_requests=asked, per_object=asked / len(set(drawn)), from_tier=from_tier)
            if memcached:
                result.check(servers.items(memcached) >= len(set(drawn)), "memcached does not hold the set")
    ratio = result.ratio("with", "without", "origin_requests")
    result.bar("requests to the origin ≤ 0.35 × without a tier", f"{ratio:.3f} ×", ratio <= 0.35)
    return result
