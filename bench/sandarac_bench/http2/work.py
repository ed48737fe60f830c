"""Hits and passes by what they cost the server in CPU time."""

import time

from .. import peers
from ..line import Result
from .stack import CONNECTIONS, STREAMS

_BODY = 1024
# A server may be still closing connections when the client has ended.
_SETTLE_SECONDS = 0.05


def hit(over_tls, limits):
    """A hit of 1 KB. `limits` are multiples of the CPU time of others, by their names; "nginx" is the cheaper of its two ways."""

    def line(stack, options):
        names = ("sandarac", "nginx", "haproxy", "h2o") if not over_tls else ("sandarac", "nginx", "haproxy")
        where = "over TLS" if over_tls else "in clear"
        result = Result(f"HTTP/2 hit {where}, 1 KB, h2load, {CONNECTIONS} connections × {STREAMS} streams")
        with stack.servers():
            origin, found = stack.start("hit", _BODY, names, over_tls)
            _measure(stack, options, result, origin, found, over_tls, False)
        _bars(result, limits)
        return result

    return line


def forward(stack, options):
    """A pass of 1 KB to an HTTP/1.1 origin."""
    result = Result(f"HTTP/2 in clear to an HTTP/1.1 origin, pass of 1 KB, h2load, {CONNECTIONS} connections × {STREAMS} streams")
    with stack.servers():
        origin, found = stack.start("pass", _BODY, ("sandarac", "nginx", "haproxy", "nghttpx"))
        _measure(stack, options, result, origin, found, False, True)
    _bars(result, {name: 1.0 for name in ("nginx", "haproxy", "nghttpx")})
    return result


def _measure(stack, options, result, origin, found, over_tls, reaches_origin):
    """Rounds in which the servers take turns, each time in another order."""
    names = list(found)
    for turn in range(options.rounds):
        for index in range(len(names)):
            served = found[names[(index + turn) % len(names)]]
            seen = peers.requests_seen(origin)
            before = served.server.daemon.cpu_seconds()
            played = stack.load(served, _BODY, options.seconds, over_tls)
            time.sleep(_SETTLE_SECONDS)
            cpu = served.server.daemon.cpu_seconds() - before
            asked = peers.requests_seen(origin) - seen
            name = served.name
            result.check(not played["errors"], f"{name}: {played['errors']} errors")
            result.check(asked >= played["done"] if reaches_origin else not asked, f"{name}: the origin saw {asked} requests")
            result.add(name, cpu_us=cpu / max(1, played["done"]) * 1e6, per_second=played["per_second"])


def _bars(result, limits):
    """Sandarac's CPU time beside that of others."""
    for name, limit in limits.items():
        rows = [row for row in result.rows if row.split(",")[0] == name]
        if not rows:
            result.notes.append(f"without {name}")
            continue
        cheapest = min(rows, key=lambda row: result.median(row, "cpu_us"))
        ratio = result.ratio("sandarac", cheapest, "cpu_us")
        result.bar(f"CPU ≤ {limit} × that of {cheapest}", f"{ratio:.3f} ×", ratio <= limit)
