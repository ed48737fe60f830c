"""What a server costs without load: memory of idle connections, and time from start to first answer."""

import statistics
import time

from . import load, peers

# Connections opened and closed before the first look, so that one-time allocations are not charged to the idle ones.
_WARM_UP_CONNECTIONS = 200
_SETTLE_SECONDS = 1.0
_BODY = 1024
_PATH = f"/{_BODY}"
_START_DEADLINE = 30


def idle_title(effort):
    return f"idle keep-alive connection, {effort.idle_connections} idle after one request each"


def start_title(effort):
    return f"start to first answer, {effort.starts} starts"


def idle(bench, names, effort, log):
    """Bytes of process memory per idle connection: {server: {"median": {"rss", "pss", "private"}, "problems"}}."""
    results = {}
    origin = bench.start_origin()
    try:
        for name in names:
            results[name] = {"rounds": [], "problems": []}
            try:
                results[name]["median"] = _idle(bench, name, origin, effort.idle_connections, results[name]["problems"])
            except (peers.StartFailed, load.LoadFailed, OSError) as failure:
                results[name]["problems"].append(f"{type(failure).__name__}: {failure}")
            log(f"  {name}")
    finally:
        origin.stop()
    return results


def _idle(bench, name, origin, connections, problems):
    server = bench.start(name, "hit", peers.Origin(origin.port))
    held = []
    try:
        for connection in load.open_idle(server.port, _PATH, _WARM_UP_CONNECTIONS):
            connection.close()
        time.sleep(_SETTLE_SECONDS)
        before = server.daemon.memory()
        held = load.open_idle(server.port, _PATH, connections)
        time.sleep(_SETTLE_SECONDS)
        after = server.daemon.memory()
        alive = load.still_open(held)
        if alive < connections:
            problems.append(f"closed {connections - alive} of {connections} idle connections")
        return {kind: (after[kind] - before[kind]) / connections for kind in ("rss", "pss", "private")}
    finally:
        for connection in held:
            connection.close()
        server.stop()


def start(bench, names, effort, log):
    """Milliseconds from starting the program to the first whole response fetched through it."""
    results = {name: {"rounds": [], "problems": []} for name in names}
    origin = bench.start_origin()
    try:
        for turn in range(effort.starts):
            for index in range(len(names)):
                name = names[(index + turn) % len(names)]
                began = time.monotonic()
                server = bench.launch(name, "hit", peers.Origin(origin.port))
                answered = load.first_answer(server.port, _PATH, began + _START_DEADLINE)
                elapsed = time.monotonic() - began
                server.stop()
                if answered:
                    results[name]["rounds"].append({"milliseconds": elapsed * 1000})
                else:
                    results[name]["problems"].append(f"no answer within {_START_DEADLINE} s")
        log(f"  {effort.starts} starts of each")
    finally:
        origin.stop()
    for result in results.values():
        if result["rounds"]:
            result["median"] = {"milliseconds": statistics.median(sample["milliseconds"] for sample in result["rounds"])}
    return results
