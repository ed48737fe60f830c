"""Stalls of the machine, which clients of any server would notice."""

import asyncio
import time

_PAUSE = 0.01


async def heartbeat(tells, longest):
    """Keeps the longest stall in seconds in the shared number `longest`, which others may set back: how much longer than asked
    for a process on this core has slept."""
    tells.send(None)
    while True:
        began = time.monotonic()
        # Not the event loop's own clock: it adds steps of its own.
        time.sleep(_PAUSE)
        longest.value = max(longest.value, time.monotonic() - began - _PAUSE)
        await asyncio.sleep(0)
