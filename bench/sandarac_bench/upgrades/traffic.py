"""The row `traffic`: upgrades in a row under clients of every kind."""

import asyncio
import time

from .. import bars
from .clients import FAILURES, Clients

_INTERVAL = 4
_DOWNLOADS = 10
_DOWNLOAD_SECONDS = 11
_BEFORE = 3
_END_PATIENCE = 60
# Old processes without connections may still be busy with their cache.
_OLD_PATIENCE = 20


def measure(options, site, run):
    """Adds its bars to the run; returns what it has found."""
    return asyncio.run(_measure(options, site, run))


async def _measure(options, site, run):
    began = time.monotonic()
    upgraded = [None]

    def clock():
        now = time.monotonic()
        since = f"{now - upgraded[0]:+.2f} s from upgrade {len(site.pids)}" if site.upgrading else "before any upgrade"
        if not site.upgrading and upgraded[0]:
            since = f"{now - upgraded[0]:.2f} s after upgrade {len(site.pids) - 1}"
        return f"{now - began:.1f} s, {since}"

    clients = Clients(site, clock)
    clients.begin(options.clients, _DOWNLOADS, _DOWNLOAD_SECONDS)
    await asyncio.sleep(_BEFORE)
    took, old = [], []
    try:
        for number in range(options.upgrades):
            clients.check()
            due = time.monotonic() + _INTERVAL
            upgraded[0] = time.monotonic()
            # By command and by signal in turns.
            took.append(await asyncio.get_running_loop().run_in_executor(None, site.upgrade, number % 2 == 1))
            upgraded[0] = time.monotonic()
            old.append(len(site.old()))
            await asyncio.sleep(max(0, due - time.monotonic()))
        await asyncio.sleep(_BEFORE)
    finally:
        late = await clients.stop(_END_PATIENCE)
    elapsed = time.monotonic() - began
    waited = time.monotonic()
    while site.old() and time.monotonic() - waited < _OLD_PATIENCE:
        await asyncio.sleep(0.1)
    left = len(site.old())
    _print(clients, elapsed)
    print(
        f"{options.upgrades} upgrades of {min(took):.2f} to {max(took):.2f} s; at most {max(old)} old processes; "
        f"{'all' if not left else 'NOT all'} had ended {time.monotonic() - waited:.1f} s after the last client; "
        f"{clients.tallies['WebSockets'].cut} WebSockets of the oldest of more than three were cut"
    )
    for tally in clients.tallies.values():
        for detail in tally.details[:6]:
            print(f"    {detail}")
    totals = {kind: sum(tally.failures[kind] for tally in clients.tallies.values()) for kind in FAILURES}
    requests = sum(tally.requests for tally in clients.tallies.values())
    for kind, text in FAILURES.items():
        bars.add(run, f"traffic: 0 {kind} ({text})", f"{totals[kind]} of {requests}", totals[kind] == 0)
    for kind in ("downloads", "uploads", "WebSockets"):
        tally = clients.tallies[kind]
        failures = sum(tally.failures.values())
        bars.add(run, f"traffic: all {kind} whole", f"{failures} failures of {tally.requests}", failures == 0)
    bars.add(
        run, "traffic: all clients ended, and so did old processes", f"{late} clients and {left} processes left", not late and not left
    )
    return {
        "seconds": elapsed,
        "upgrade_seconds": took,
        "old": old,
        "clients": {
            kind: {
                "requests": tally.requests,
                "repeated": tally.repeated,
                "moved": tally.moved,
                "cut": tally.cut,
                "slowest": tally.slowest,
                **tally.failures,
                "details": tally.details,
            }
            for kind, tally in clients.tallies.items()
        },
    }


def _print(clients, elapsed):
    columns = ["requests", "a second", "slowest ms", "moved", "repeated", *FAILURES]
    print(f"{'':18}" + "".join(f"{column:>11}" for column in columns))
    for kind, tally in sorted(clients.tallies.items()):
        cells = [
            tally.requests,
            round(tally.requests / elapsed),
            round(tally.slowest * 1000),
            tally.moved,
            tally.repeated,
            *tally.failures.values(),
        ]
        print(f"{kind:18}" + "".join(f"{cell:11}" for cell in cells), flush=True)
