"""A client that makes handshakes as fast as it is allowed to, and one that is served beside it."""

import statistics
import time

from ..line import Result
from ..machine import before_other_programs

_BODY = 1024
_VICTIM_CONNECTIONS = 16
# The victim's share of what the server answers at full speed.
_PACE = 0.2
_HANDSHAKES = 500
# The attack goes on while the victim is measured, and begins before.
_LEAD_SECONDS = 0.3
_MAX_MORE_US = 3000
# What the process may keep: freed pages that the allocator returns later.
_MAX_LEFT_MIB = 2
_SETTLE_SECONDS = 12


def attack(stack, options):
    """The victim's tail without and with an attacker, over plain connections and over TLS."""
    result = Result(f"{_HANDSHAKES} handshakes a second by one attacker; a victim at {_PACE:.0%} of capacity, 1 KB hits")
    with before_other_programs(result), stack.servers():
        _, found = stack.start(_BODY, ("sandarac",))
        served = found["sandarac"]
        daemon = served.server.daemon
        for kind, port in (("plain", served.server.port), ("TLS", served.port)):
            victim = {"connections": _VICTIM_CONNECTIONS, "plain": "yes" if kind == "plain" else "no"}
            with stack.client("hits", port, served.path(_BODY), _BODY, seconds=1, **victim) as client:
                rate = round(client.work()["per_second"] * _PACE)
            victim |= {"rate": rate, "seconds": options.seconds}
            # The first attack makes the allocations that are made once.
            _attacked(stack, options, served, port, victim)
            before = daemon.memory()["rss"]
            for _ in range(options.rounds):
                with stack.client("hits", port, served.path(_BODY), _BODY, **victim) as client:
                    _add(result, f"{kind}, undisturbed", client.work())
                played, attacker = _attacked(stack, options, served, port, victim)
                result.check(not attacker["errors"], f"attacker: {attacker['complaints']}")
                _add(result, f"{kind}, attacked", played, attacker["per_second"])
            deadline = time.monotonic() + _SETTLE_SECONDS
            left = _MAX_LEFT_MIB + 1
            while left > _MAX_LEFT_MIB and time.monotonic() < deadline:
                time.sleep(0.2)
                left = (daemon.memory()["rss"] - before) / 2**20
            more = _more(result, kind)
            result.bar(f"{kind}: p99 ≤ undisturbed + 3 ms", f"{more / 1000:+.2f} ms", more <= _MAX_MORE_US)
            result.bar(f"{kind}: memory back afterwards, within {_MAX_LEFT_MIB} MiB", f"{left:+.1f} MiB", left <= _MAX_LEFT_MIB)
            result.notes.append(f"{kind}: the victim makes {rate} requests a second")
    return result


def _attacked(stack, options, served, port, victim):
    """What the victim and the attacker measured."""
    seconds = options.seconds + 2 * _LEAD_SECONDS
    attacker = {"connections": 256, "rate": _HANDSHAKES, "seconds": seconds}
    with (
        stack.client("handshakes", served.port, served.path(_BODY), _BODY, **attacker) as attacking,
        stack.client("hits", port, served.path(_BODY), _BODY, **victim) as client,
    ):
        attacking.begin()
        time.sleep(_LEAD_SECONDS)
        played = client.work()
        return played, attacking.result()


def _add(result, row, played, handshakes=0.0):
    result.check(not played["errors"], f"{row}: {played['complaints']}")
    figures = {name: played[name] for name in ("per_second", "p50_us", "p99_us", "max_us")}
    result.add(row, **figures, handshakes_per_second=handshakes)


def _more(result, kind):
    """How much longer the victim's p99 is in an attack, as the median over the rounds."""
    pairs = zip(result.rows[f"{kind}, attacked"], result.rows[f"{kind}, undisturbed"])
    return statistics.median(attacked["p99_us"] - alone["p99_us"] for attacked, alone in pairs)
