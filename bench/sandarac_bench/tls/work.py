"""Hits and handshakes by what they cost the server in CPU time."""

import time

from .. import peers
from ..line import Result

# A server may be still closing connections when the client has seen their end.
_SETTLE_SECONDS = 0.05
# As many as wrk opens in `bench/compare`.
_CLIENTS = 64
# Handshakes at once: enough that the server never waits.
_HANDSHAKES = 16


def hit(body, limit):
    """A hit on kept connections; the bar is a multiple of the CPU time of the cheaper nginx."""

    def line(stack, options):
        result = Result(f"TLS 1.3 hit, {body // 1024} KB, {_CLIENTS} kept connections, {options.suite}, X25519")
        with stack.servers():
            origin, found = stack.start(body)
            found = stack.with_files(found, body)
            load = {"connections": _CLIENTS, "seconds": options.seconds, "suite": options.suite}
            _measure(stack, options, result, origin, found, "hits", body, load)
        _bar(result, limit)
        return result

    return line


def handshake(title, limit=None, names=("floor", "sandarac", "nginx", "haproxy"), **load):
    """Connections that end after their handshake."""

    def line(stack, options):
        result = Result(f"TLS 1.3 {title}, certificate P-256, {_HANDSHAKES} at once, {options.suite}")
        with stack.servers():
            origin, found = stack.start(1024, names)
            work = {"connections": _HANDSHAKES, "seconds": options.seconds, "suite": options.suite, **load}
            _measure(stack, options, result, origin, found, "handshakes", 1024, work)
        if limit:
            _bar(result, limit)
        else:
            ratio = result.ratio("sandarac", "floor", "cpu_us")
            result.notes.append(f"Sandarac: {ratio:.2f} × the floor")
        return result

    return line


def _measure(stack, options, result, origin, found, mode, body, load):
    """Rounds in which the servers take turns, each time in another order."""
    names = list(found)
    for turn in range(options.rounds):
        for index in range(len(names)):
            served = found[names[(index + turn) % len(names)]]
            seen = peers.requests_seen(origin)
            with stack.client(mode, served.port, served.path(body), body, **load) as client:
                before = served.server.daemon.cpu_seconds()
                played = client.work()
                time.sleep(_SETTLE_SECONDS)
                cpu = served.server.daemon.cpu_seconds() - before
            name = served.name
            result.check(not played["errors"], f"{name}: {played['errors']} errors: {played['complaints']}")
            result.check(peers.requests_seen(origin) - seen == 0, f"{name}: hits reached the origin")
            if load.get("resumed") == "yes":
                result.check(played["resumed"] == played["done"], f"{name}: {played['resumed']} of {played['done']} were resumed")
            elif mode == "handshakes":
                result.check(not played["resumed"], f"{name}: {played['resumed']} handshakes were resumed")
            _check_negotiated(result, name, played["negotiated"], load)
            result.add(
                name,
                cpu_us=cpu / max(1, played["done"]) * 1e6,
                per_second=played["per_second"],
                p50_us=played["p50_us"],
                p99_us=played["p99_us"],
            )


def _check_negotiated(result, name, negotiated, load):
    suite = {"aes128": "TLS13_AES_128_GCM_SHA256", "aes256": "TLS13_AES_256_GCM_SHA384"}[load["suite"]]
    group = "X25519MLKEM768" if load.get("group") == "hybrid" else "X25519"
    result.check(negotiated == f"{suite} {group}", f"{name}: negotiated {negotiated}")


def _bar(result, limit):
    """Sandarac's CPU time beside that of nginx, the cheaper of the two where it has two ways."""
    cheapest = min((row for row in result.rows if row.startswith("nginx")), key=lambda row: result.median(row, "cpu_us"), default=None)
    for row in result.rows:
        if cheapest and row != cheapest:
            ratio = result.ratio(row, cheapest, "cpu_us")
            if row == "sandarac":
                result.bar(f"CPU ≤ {limit} × that of {cheapest}", f"{ratio:.3f} ×", ratio <= limit)
            else:
                result.notes.append(f"{row}: {ratio:.3f} × {cheapest}")
    result.notes.append(f"Sandarac: {result.ratio('sandarac', 'floor', 'cpu_us'):.3f} × the floor")
