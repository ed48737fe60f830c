"""Clients that send what costs more to handle than to send, and one that is served beside them."""

import statistics
import time
from dataclasses import dataclass

from ..line import Result
from ..machine import before_other_programs

_BODY = 1024
_VICTIM_CONNECTIONS = 16
# The victim's share of what the server answers at full speed.
_PACE = 0.2
# The attack goes on while the victim is measured, and begins before.
_LEAD_SECONDS = 0.3
_MAX_MORE_US = 3000
# What the process may keep: freed pages that the allocator returns later.
_MAX_LEFT_MIB = 4
_SETTLE_SECONDS = 12


@dataclass(frozen=True)
class Attack:
    """`rate` is of units in a second (see `bench/http2_attack.c`), on all `connections` together. The path is not stored."""

    kind: str
    rate: int
    connections: int = 16
    path: str = f"/{_BODY}"


ATTACKS = [
    Attack("rapid-reset", 5000),
    Attack("made-you-reset", 5000),
    Attack("continuation", 20000),
    Attack("settings", 20000),
    Attack("ping", 20000),
    Attack("empty-frame", 20000),
    Attack("window-update", 20000),
    Attack("priority-update", 20000),
    Attack("hpack-bomb", 500),
    # 64 connections hold 100 streams each, whose responses have 100 KB.
    Attack("zero-window", 3000, 64, "/102400"),
    # The first stream of each connection is given no window, the others get their responses.
    Attack("slow-stream", 2000, 16, "/1024"),
    # 50 of 100 KB each.
    Attack("half-upload", 500),
]


def attacks(stack, options):
    """The victim's tail without and with each attacker."""
    result = Result(f"attacks; a victim at {_PACE:.0%} of capacity, {_VICTIM_CONNECTIONS} connections in clear, hits of 1 KB")
    with before_other_programs(result), stack.servers():
        _, found = stack.start("hit", _BODY, ("sandarac",))
        served = found["sandarac"]
        rate = round(stack.load(served, _BODY, 1, connections=_VICTIM_CONNECTIONS, streams=1)["per_second"] * _PACE)
        result.notes.append(f"the victim makes {rate} requests a second")
        for attack in ATTACKS:
            if not options.attacks or attack.kind in options.attacks:
                _measure(stack, options, result, served, attack, rate)
    return result


def _measure(stack, options, result, served, attack, rate):
    daemon = served.server.daemon
    # The first attack makes the allocations that are made once.
    first = daemon.memory()["rss"]
    _attacked(stack, options, served, attack, rate)
    _settled(daemon, first)
    before = daemon.memory()["rss"]
    held, ends = 0, {}
    rounds = []
    for _ in range(options.attack_rounds):
        alone = stack.paced(served, _BODY, options.seconds, rate, _VICTIM_CONNECTIONS)
        beside, attacker, peak = _attacked(stack, options, served, attack, rate)
        held = max(held, peak - before)
        for name, count in attacker["ends"].items():
            ends[name] = ends.get(name, 0) + count
        expected = rate * options.seconds
        for row, played in ((f"{attack.kind}: undisturbed", alone), (f"{attack.kind}: attacked", beside)):
            result.check(not played["errors"], f"{row}: {played['errors']} errors")
            result.check(played["done"] >= 0.95 * expected, f"{row}: {played['done']} of {expected:.0f} requests were answered")
            result.add(row, **{name: played[name] for name in ("per_second", "p50_us", "p99_us", "max_us")})
        rounds.append((alone, beside, attacker))
    left = _settled(daemon, before) / 2**20
    more = statistics.median(beside["p99_us"] - alone["p99_us"] for alone, beside, _ in rounds)
    sent = statistics.median(attacker["units"] / attacker["seconds"] for _, _, attacker in rounds)
    told = ", ".join(f"{name} {count}" for name, count in sorted(ends.items())) or "none"
    own = statistics.median(attacker["p99_us"] for _, _, attacker in rounds)
    others = f"; the attacker's other streams: p99 {own / 1000:.2f} ms" if own else ""
    result.notes.append(f"{attack.kind}: {sent:.0f} a second of {attack.rate}; connections ended: {told}; {held / 2**20:.1f} MiB held{others}")
    result.bar(f"{attack.kind}: p99 ≤ undisturbed + 3 ms", f"{more / 1000:+.2f} ms", more <= _MAX_MORE_US)
    result.bar(f"{attack.kind}: memory back afterwards, within {_MAX_LEFT_MIB} MiB", f"{left:+.1f} MiB", left <= _MAX_LEFT_MIB)


def _attacked(stack, options, served, attack, rate):
    """What the victim and the attacker measured, and the memory towards the end of the attack."""
    seconds = options.seconds + 2 * _LEAD_SECONDS
    with stack.attack(served, attack.kind, attack.path, attack.rate, attack.connections, seconds) as attacker:
        time.sleep(_LEAD_SECONDS)
        played = stack.paced(served, _BODY, options.seconds, rate, _VICTIM_CONNECTIONS)
        memory = served.server.daemon.memory()["rss"]
        return played, attacker(), memory


def _settled(daemon, before):
    """The memory that is left above `before`, once it stays below the limit or some time has passed."""
    deadline = time.monotonic() + _SETTLE_SECONDS
    while True:
        left = daemon.memory()["rss"] - before
        if left <= _MAX_LEFT_MIB * 2**20 or time.monotonic() > deadline:
            return left
        time.sleep(0.2)
