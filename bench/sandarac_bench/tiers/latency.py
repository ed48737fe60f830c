"""How long single requests take: of hits in the shared tier, and of the published case."""

from . import stack as servers
from ..line import Result

_RAM = {1024: "1MiB", 30720: "12MiB"}


def cold(kind, size, is_sealed=False):
    """The line for hits in the shared tier by a node that has none of the pages in RAM: each page is asked for once. Entries
    have a checksum, or are sealed with a secret."""

    def line(stack, options):
        rounds, each = 8, 500
        what = {"noise": "incompressible", "text": "compressible"}[kind]
        what += ", sealed with a secret" if is_sealed else ""
        result = Result(f"hit in the shared tier, cold RAM, {size // 1024} KB, {what}, one client")
        settings = servers.PATIENT + ("\n" + stack.secret() if is_sealed else "")
        targets = [f"/{kind}/{size}/0/{number}" for number in range((rounds + 1) * each)]
        with stack.servers():
            origin, memcached, raw = stack.origin(), stack.memcached(), stack.memcached()
            log = stack.log(targets)
            filler = stack.node(origin, memcached, memory="512MiB", settings=settings)
            stack.fill(filler, memcached, log)
            stack.fill_raw(raw, log, size)
            stack.stop(filler)
            # Full after the first turn, as RAM is after a day: then new objects take the place of old ones.
            node, relay = stack.node(origin, memcached, memory=_RAM[size], settings=settings), stack.relay(raw)
            seen = servers.peers.requests_seen(origin)
            asked = {
                "node": lambda first: stack.play(node, log, first, each),
                "relay": lambda first: stack.play(relay, log, first, each),
                "mg": lambda first: stack.ask_memcached(raw, log, first, each),
            }
            for turn in range(rounds + 1):
                for row in sorted(asked, reverse=turn % 2):
                    before = node.daemon.cpu_seconds() if row == "node" else relay.daemon.cpu_seconds()
                    played = asked[row](turn * each)
                    after = node.daemon.cpu_seconds() if row == "node" else relay.daemon.cpu_seconds()
                    result.check_played(row, played, 1.0 if row == "node" else None)
                    # The first turn only warms up.
                    if turn:
                        cpu = {} if row == "mg" else {"cpu_us": (after - before) / each * 1e6}
                        result.add(row, **cpu, p50_us=played.percentile(50), p99_us=played.percentile(99))
            moved = servers.peers.requests_seen(origin) - seen
            result.check(moved == 0, f"the origin saw {moved} requests")
            expected, _ = stack.body(origin, targets[0])
            for is_again in (False, True):
                body, status = stack.body(node, targets[0])
                result.check(body == expected, "the body differs from the origin's")
                result.check((servers.FROM_TIER in status) != is_again, f"RAM does not do what the line is about: {status}")
        ratio = result.ratio("node", "relay", "p50_us")
        result.bar("p50 ≤ 1.25 × the relay's", f"{ratio:.2f} ×", ratio <= 1.25)
        result.notes.append(f"p50 of the node: {result.ratio('node', 'mg', 'p50_us'):.2f} × a direct mg")
        return result

    return line


def published(stack, options):
    """The published case: a page of 780 ms at the origin, through the shared tier, and from RAM."""
    result = Result("a page of 780 ms, 30 KB: at the origin, from the shared tier (cold RAM), from RAM; 1 and 5 clients")
    rounds, each, page = 6, 100, "/text/30720/780/"
    with stack.servers():
        origin, memcached = stack.origin(), stack.memcached()
        log = stack.log(f"{page}{number}" for number in range(2 * rounds * each))
        filler = stack.node(origin, memcached, memory="512MiB", settings=servers.PATIENT)
        # They wait for the origin most of the time.
        stack.fill(filler, memcached, log, clients=200)
        stack.stop(filler)
        node = stack.node(origin, memcached, memory="512MiB", settings=servers.PATIENT)
        misses = stack.log(f"{page}miss-{number}" for number in range(2 * rounds))
        for turn in range(rounds):
            for number, clients in enumerate((1, 5)):
                first = (2 * turn + number) * each
                seen = servers.peers.requests_seen(origin)
                for row, share in (("shared tier", 1.0), ("RAM", None)):
                    played = stack.play(node, log, first, each, clients=clients)
                    result.check_played(row, played, share)
                    result.check(row != "RAM" or not played.from_tier, "what was to be hits in RAM came from the shared tier")
                    _add(result, f"{row}, {clients}", played)
                result.check(servers.peers.requests_seen(origin) == seen, "the origin saw requests that were to be hits")
            if turn < 2:
                played = stack.play(node, misses, turn, 1)
                result.check_played("origin", played)
                _add(result, "origin, 1", played)
    origin_p50 = result.median("origin, 1", "p50_us")
    for row, published_ms in (("shared tier, 1", 13.9), ("RAM, 1", 4.0)):
        mine = origin_p50 / result.median(row, "p50_us")
        result.bar(f"{row} client: ≥ {778 / published_ms:.0f} × faster than the origin", f"{mine:.0f} ×", mine >= 778 / published_ms)
    tiered, remote = (result.median(f"{row}, 5", "p95_us") for row in ("RAM", "shared tier"))
    result.bar("5 clients: p95 of RAM ≤ of the shared tier", f"{tiered:.0f} and {remote:.0f} µs", tiered <= remote)
    step = result.median("shared tier, 1", "p50_us") / result.median("RAM, 1", "p50_us")
    result.notes.append(f"shared tier / RAM, 1 client: {step:.1f} (published: 3.5)")
    return result


def _add(result, row, played):
    result.add(row, p50_us=played.percentile(50), p95_us=played.percentile(95), max_us=max(played.micros))
