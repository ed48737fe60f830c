"""The rows `hit-ratio` and `snapshot`: what the next process knows of the cache of the last one."""

import asyncio
import random
import threading
import time

from .. import bars, load
from . import http1
from .bodies import Comparison
from .succession import Memory

_MIB = 1 << 20
_CLIENTS = 20
_PER_SECOND = 500
_BEFORE_SECONDS = 5
_AFTER_SECONDS = 10
# What the manual states for a process, beside the memory of the cache.
_BESIDE_MIB = 40
_KEPT = 0.95
_KEPT_AFTER = 5
_FIRST_ANSWER_SECONDS = 0.5
_BACK_SECONDS = 10
_BACK = 0.99
_PATIENCE = 120


def paths(mib):
    """Objects of so many MiB together: an eighth of the bytes in objects of 1 MiB, the rest in such of 4 to 64 KiB."""
    drawn, left, made = random.Random(1), mib * _MIB, []
    for number in range(mib // 8):
        made.append(f"/stored/{_MIB}/{number}")
    left -= len(made) * _MIB
    while left > 0:
        size = drawn.randrange(4 << 10, 64 << 10)
        made.append(f"/stored/{size}/{len(made)}")
        left -= size
    return made


class _Failed(Exception):
    pass


async def _get(connection, path):
    """Whether it was a hit."""
    compared = Comparison(path)

    async def take(piece):
        compared.take(piece)

    head = f"GET {path} HTTP/1.1\r\nHost: bench.test\r\n\r\n".encode()
    status, fields, keep = await asyncio.wait_for(connection.request(head, take), _PATIENCE)
    if status != 200 or not compared.is_right or not compared.is_whole:
        raise _Failed(f"{path}: status {status}, {compared.received} bytes")
    return "; hit" in fields.get("cache-status", ""), keep


def fill(site, wanted):
    """Asks once for each object; returns how many seconds that took."""

    async def work():
        left = list(wanted)
        await asyncio.gather(*(one(left) for _ in range(_CLIENTS)))

    async def one(left):
        connection = await http1.Connection.open(site.port)
        while left:
            _, keep = await _get(connection, left.pop())
            if not keep:
                connection.close()
                connection = await http1.Connection.open(site.port)
        connection.close()

    began = time.monotonic()
    asyncio.run(work())
    return time.monotonic() - began


class _Stream:
    """A stream of requests at a steady rate: how many there were, how many were hits, and how many reached the origin."""

    def __init__(self, site, wanted, stored):
        self._site, self._wanted, self._stored = site, wanted, stored
        self.failures = []
        # The longest wait of a request since this was set to 0.
        self.slowest = 0.0
        self._requests = self._hits = 0
        self._before = stored.value
        self._is_over = False
        self._clients = []

    def begin(self):
        self._clients = [asyncio.ensure_future(self._one(at)) for at in range(_CLIENTS)]

    async def end(self):
        self._is_over = True
        await asyncio.gather(*self._clients)

    def counts(self):
        """Requests, hits, and requests at the origin."""
        return self._requests, self._hits, self._stored.value - self._before

    async def watch(self, seconds):
        """What is counted in each of so many seconds from now."""
        rows, began = [], time.monotonic()
        for second in range(seconds):
            before = self.counts()
            await asyncio.sleep(max(0, began + second + 1 - time.monotonic()))
            rows.append(_since(before, self.counts()))
        return rows

    async def _one(self, at):
        pause = _CLIENTS / _PER_SECOND
        due = time.monotonic() + pause * at / _CLIENTS
        connection = None
        while not self._is_over:
            await asyncio.sleep(max(0, due - time.monotonic()))
            due = max(due + pause, time.monotonic() - 5 * pause)
            path, asked = random.choice(self._wanted), time.monotonic()
            try:
                connection = connection or await http1.Connection.open(self._site.port)
                hit, keep = await _get(connection, path)
                self._requests += 1
                self.slowest = max(self.slowest, time.monotonic() - asked)
                self._hits += hit
            except Exception as failure:
                self.failures.append(f"{path}: {type(failure).__name__} {failure}")
                keep = False
            if not keep and connection:
                connection = connection.close()
        if connection:
            connection.close()


def _since(before, now):
    return [after - earlier for after, earlier in zip(now, before)]


def _ratio(rows):
    """The share of requests that did not reach the origin."""
    requests = sum(row[0] for row in rows)
    return 1 - sum(row[2] for row in rows) / requests if requests else 0.0


def limit_mib(options):
    return options.size * 13 // 10


def hit_ratio(options, site, run, stored):
    """Adds its bars to the run; returns what it has found."""
    wanted = paths(options.size)
    filling = fill(site, wanted)
    held = site.status()["cache"]
    print(
        f"hit-ratio: {len(wanted)} objects of {options.size} MiB in {filling:.0f} s; stored {held['objects']}, {held['used_bytes'] / _MIB:.0f} MiB",
        flush=True,
    )
    stream = _Stream(site, wanted, stored)
    marks = {}

    async def work():
        stream.begin()
        memory = Memory(lambda: site.pids)
        before = await stream.watch(_BEFORE_SECONDS)
        marks["memory"] = memory.stop()["pss"]
        marks["slowest"], stream.slowest = stream.slowest, 0.0
        memory = Memory(lambda: site.pids)
        counts = stream.counts()
        marks["upgrade"] = await asyncio.get_running_loop().run_in_executor(None, site.upgrade)
        during = _since(counts, stream.counts())
        coming = asyncio.get_running_loop().run_in_executor(None, _come_over, site, time.monotonic())
        after = await stream.watch(_AFTER_SECONDS)
        marks["moved"] = await coming
        await stream.end()
        return before, during, after, memory.stop()

    before, during, after, memory = asyncio.run(work())
    usual, kept = _ratio(before), _ratio(after[_KEPT_AFTER:])
    least = min(_ratio([row]) for row in after[_KEPT_AFTER:])
    by_second = " ".join(f"{_ratio([row]) * 100:.1f}" for row in after)
    moved = marks["moved"]
    status = site.status()["cache"]
    limit = limit_mib(options)
    bound = limit + 2 * _BESIDE_MIB
    print(
        f"hit ratio in %: {usual * 100:.1f} before, then by second {by_second}; requests a second {' '.join(str(row[0]) for row in after)}\n"
        f"the upgrade took {marks['upgrade']:.2f} s, {during[0]} requests; the move {f'{moved:.1f} s more' if moved is not None else 'did not end'}: "
        f"{' '.join(site.output('has come over')[-1:]) or 'no line about it'}\n"
        f"now {status['objects']} objects; the slowest request took {marks['slowest'] * 1000:.0f} ms before, "
        f"{stream.slowest * 1000:.0f} ms since\n"
        f"both processes at most {memory['rss'] / _MIB:.0f} MiB resident ({memory['anon'] / _MIB:.0f} anonymous, "
        f"{memory['shared'] / _MIB:.0f} shared), {memory['pss'] / _MIB:.0f} proportional "
        f"({marks['memory'] / _MIB:.0f} before the upgrade), limit {limit}; {memory['samples']} samples",
        flush=True,
    )
    for failure in stream.failures[:6]:
        print(f"    {failure}")
    bars.add(
        run,
        f"hit-ratio: from second {_KEPT_AFTER} on at least {_KEPT} of before, in each second",
        f"{least / usual if usual else 0:.3f}, together {kept / usual if usual else 0:.3f}",
        usual > 0.9 and least >= _KEPT * usual,
    )
    bars.add(run, "hit-ratio: no request failed", str(len(stream.failures)), not stream.failures)
    bars.add(run, f"hit-ratio: both processes at most {bound} MiB", f"{memory['pss'] / _MIB:.0f} MiB", memory["pss"] <= bound * _MIB)
    requests, hits, at_origin = stream.counts()
    reached = requests - at_origin
    # A request that waits for the fetch of another one does not reach the origin, and is no hit.
    bars.add(
        run,
        "hit-ratio: Cache-Status agrees with the origin within 1 %",
        f"{hits} and {reached} of {requests}",
        abs(hits - reached) <= max(20, reached / 100),
    )
    return {
        "objects": len(wanted),
        "before": before,
        "during": during,
        "after": after,
        "upgrade_seconds": marks["upgrade"],
        "move_seconds": moved,
        "memory": memory,
        "memory_before": marks["memory"],
        "slowest": [marks["slowest"], stream.slowest],
        "failures": stream.failures[:20],
    }


def _come_over(site, since):
    """Seconds until the log says that the cache has moved, or None."""
    while time.monotonic() - since < _PATIENCE:
        if any(str(site.pids[-2]) in line for line in site.output("has come over")):
            return time.monotonic() - since
        time.sleep(0.05)
    return None


def snapshot(options, site, run, restart):
    """Adds its bars to the run; returns what it has found. `restart` starts the next process, and returns its Daemon."""
    wanted = paths(options.size)
    filling = fill(site, wanted)
    held = site.status()["cache"]["objects"]
    print(f"snapshot: {len(wanted)} objects of {options.size} MiB in {filling:.0f} s; stored {held}", flush=True)
    memory = Memory(lambda: site.pids)
    ended = site.end(_PATIENCE)
    saving = memory.stop()
    saved = site.output("the cache is")
    began = time.monotonic()
    daemon = restart()
    first = threading.Event()
    answered = []

    def ask():
        if load.first_answer(site.port, "/pass/100/0", began + _PATIENCE):
            answered.append(time.monotonic() - began)
        first.set()

    threading.Thread(target=ask, daemon=True).start()
    first.wait(_PATIENCE + 5)
    site.pids.append(site.status()["pid"])
    memory = Memory(lambda: site.pids[-1:])
    back = None
    while back is None and time.monotonic() - began < _PATIENCE:
        if site.status()["cache"]["objects"] >= _BACK * held:
            back = time.monotonic() - began
        else:
            time.sleep(0.05)
    objects = site.status()["cache"]["objects"]
    bars.wait("the snapshot to be read", lambda: site.output("is back from") or site.output("the cache is empty"))
    reading = memory.stop()
    peak = daemon.memory()["peak"]
    for line in saved + site.output("the cache is"):
        print(f"    {line}")
    limit = limit_mib(options)
    bound = limit + _BESIDE_MIB
    print(
        f"the end took {ended:.1f} s; the first answer came after {answered[0] if answered else float('nan'):.3f} s, "
        f"{'99 % of the objects' if back else 'NOT all objects'} after {back if back else float('nan'):.1f} s ({objects} of {held}); "
        f"memory at most {saving['pss'] / _MIB:.0f} MiB while it was saved, {peak / _MIB:.0f} since the start (limit {limit})",
        flush=True,
    )
    bars.add(
        run,
        f"snapshot: the first answer within {_FIRST_ANSWER_SECONDS} s of the start",
        f"{answered[0]:.3f} s" if answered else "none",
        answered and answered[0] <= _FIRST_ANSWER_SECONDS,
    )
    bars.add(
        run,
        f"snapshot: {_BACK * 100:.0f} % of the objects back within {_BACK_SECONDS} s",
        f"{back:.1f} s" if back else f"{objects} of {held}",
        back is not None and back <= _BACK_SECONDS,
    )
    bars.add(
        run, f"snapshot: memory at most {bound} MiB while it is saved", f"{saving['pss'] / _MIB:.0f} MiB", saving["pss"] <= bound * _MIB
    )
    bars.add(run, f"snapshot: memory at most {bound} MiB from the start", f"{peak / _MIB:.0f} MiB", peak <= bound * _MIB)
    return {"objects": held, "end": ended, "first": answered[:1], "back": back, "saving": saving, "reading": reading, "peak": peak}
