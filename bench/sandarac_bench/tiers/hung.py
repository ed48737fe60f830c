"""A memcached server that stops and does not answer."""

import os
import signal
import time

from . import stack as servers
from ..line import Result

_DEADLINE_MS = 50
# What a request takes beside the deadline on a busy machine.
_SLACK_MS = 15
_HOT = 50
# An ejected server is tried again after 1 s, and twice that each further time.
_RETURN_SECONDS = 10


def hung_server(stack, options):
    """Hits in RAM and misses while the server is stopped, and before, in turns."""
    result = Result("a hung server (SIGSTOP): hits in RAM by 16 clients, local_ttl 1 s; shared misses by one")
    rounds, seconds = 3, 2
    with stack.servers():
        origin, memcached = stack.origin(), stack.memcached(64)
        node = stack.node(origin, memcached, settings='local_ttl = "1s"')
        hot = stack.log(f"/noise/1024/0/hot-{number % _HOT}" for number in range(600_000))
        misses = stack.log(f"/noise/1024/0/cold-{number}" for number in range(2000 * rounds))
        stack.play(node, hot, 0, 20 * _HOT, clients=16)

        def hits(row):
            seen = servers.peers.requests_seen(origin)
            played = stack.play(node, hot, clients=16, seconds=seconds)
            result.check_played(row, played)
            result.check(played.seconds >= seconds, f"{row}: the log ended after {played.seconds:.1f} s, within local_ttl")
            result.check(servers.peers.requests_seen(origin) == seen, f"{row}: the origin saw requests")
            result.add(row, **_figures(played), per_second=played.answered / played.seconds)

        def miss(row, first, count):
            played = stack.play(node, misses, first, count)
            result.check_played(row, played)
            late = sum(each > _DEADLINE_MS * 500 for each in played.micros)
            result.add(row, **_figures(played), late=late)

        for turn in range(rounds):
            hits("hits, before")
            miss("misses, before", 2000 * turn, 500)
            pid = memcached.daemon.pids()[0]
            os.kill(pid, signal.SIGSTOP)
            try:
                miss("misses, stopped", 2000 * turn + 500, 100)
                result.check(servers.metric(node, "tier_ejected") == 1, "the server was not ejected")
                hits("hits, stopped")
                miss("misses, ejected", 2000 * turn + 600, 1000)
                result.check(servers.metric(node, "tier_ejected") == 1, "the server came back while it was stopped")
            finally:
                os.kill(pid, signal.SIGCONT)
            deadline = time.monotonic() + _RETURN_SECONDS
            while servers.metric(node, "tier_ejected") and time.monotonic() < deadline:
                time.sleep(0.05)
            result.check(not servers.metric(node, "tier_ejected"), "the server did not come back")
    before, stopped = (result.median(f"hits, {when}", "p99_us") for when in ("before", "stopped"))
    ratio = result.ratio("hits, stopped", "hits, before", "p99_us")
    # Single rounds of the same work differ by more.
    result.bar("p99 of hits in RAM unchanged (≤ 1.25 ×)", f"{ratio:.2f} × ({before:.0f} and {stopped:.0f} µs)", ratio <= 1.25)
    longest = max(sample["max_us"] for sample in result.rows["misses, stopped"]) / 1000
    most = _DEADLINE_MS + _SLACK_MS
    result.bar(f"misses: at most one deadline ({_DEADLINE_MS} ms, and {_SLACK_MS} of the machine)", f"{longest:.1f} ms", longest <= most)
    waited = [int(sample["late"]) for sample in result.rows["misses, stopped"]]
    result.notes.append(f"misses that waited until the server was ejected, by round: {waited}")
    late = sum(sample["late"] for sample in result.rows["misses, ejected"])
    result.bar("none waits after ejection", f"{late:.0f} waited", late == 0)
    return result


def _figures(played):
    return {"p50_us": played.percentile(50), "p99_us": played.percentile(99), "max_us": max(played.micros)}
