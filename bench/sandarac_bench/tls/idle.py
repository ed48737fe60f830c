"""Memory of idle connections."""

import time

from ..line import Result

_WARM_UP = 200
_SETTLE_SECONDS = 1.0
_MAX_BYTES = 6 * 1024
_BODY = 1024


def idle(stack, options):
    """Resident memory per connection, idle after one request each."""
    count = options.idle
    result = Result(f"idle TLS connection, {count} idle after one request each: resident memory")
    for name in ("floor", "sandarac", "nginx", "haproxy"):
        with stack.servers():
            _, found = stack.start(_BODY, (name,))
            if name not in found:
                continue
            served = found[name]
            # Allocations that are made once are not charged to the connections.
            with stack.client("idle", served.port, served.path(_BODY), _BODY, connections=_WARM_UP):
                pass
            time.sleep(_SETTLE_SECONDS)
            before = served.server.daemon.memory()["rss"]
            with stack.client("idle", served.port, served.path(_BODY), _BODY, connections=count) as client:
                time.sleep(_SETTLE_SECONDS)
                after = served.server.daemon.memory()["rss"]
                played = client.work()
            result.check(played["done"] == count, f"{name}: {played['errors']} errors: {played['complaints']}")
            time.sleep(_SETTLE_SECONDS)
            result.add(name, bytes_each=(after - before) / count, mib=served.server.daemon.memory()["rss"] / 2**20)
    each = result.median("sandarac", "bytes_each")
    result.notes.append("MiB: resident memory after the connections have ended")
    result.bar("≤ 6 KiB", f"{each / 1024:.2f} KiB", each <= _MAX_BYTES)
    return result
