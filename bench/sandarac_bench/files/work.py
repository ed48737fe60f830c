"""One cell: files of one size, fetched by a number of clients, by what they cost the server in CPU time."""

import json
import re
import subprocess
import time

from .. import load, tools
from ..line import Result

# A server may be still closing connections when the client has seen their end.
_SETTLE_SECONDS = 0.05
# No cell may cost more than this multiple of nginx.
MAX_RATIO = 1.05


def cell(body, clients, kept):
    """A cell of the table."""

    def line(stack, options):
        how = "kept" if kept else "a connection for each request"
        result = Result(f"file of {body} bytes, {clients} clients, {how}")
        names = list(stack.servers)
        for turn in range(options.rounds):
            for index in range(len(names)):
                name = names[(index + turn) % len(names)]
                server = stack.servers[name]
                before = server.daemon.cpu_seconds()
                played = _wrk(stack.client_core, server.port, f"/{body}.txt", clients, kept, options.seconds)
                time.sleep(_SETTLE_SECONDS)
                cpu = server.daemon.cpu_seconds() - before
                result.check(not played["errors"], f"{name}: {played['errors']} errors")
                result.add(
                    name,
                    cpu_us=cpu / max(1, played["requests"]) * 1e6,
                    per_second=played["per_second"],
                    p50_us=played["p50_us"],
                    p99_us=played["p99_us"],
                )
        if "nginx" in result.rows:
            ratio = result.ratio("sandarac", "nginx", "cpu_us")
            result.bar(f"CPU ≤ {MAX_RATIO} × nginx", f"{ratio:.3f} ×", ratio <= MAX_RATIO)
        return result

    return line


def _wrk(core, port, path, clients, kept, seconds):
    """A closed loop of `clients` connections. Latencies are microseconds."""
    command = ["taskset", "-c", str(core), "wrk", "--latency", "-t", "1", "-c", str(clients), "-d", f"{seconds}s"]
    command += ["--timeout", "10s", "-s", str(tools.BENCH / "wrk.lua")]
    command += [] if kept else ["-H", "Connection: close"]
    command += [f"http://127.0.0.1:{port}{path}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60)
    found = re.search(r"^RESULT (.*)$", done.stdout, re.M)
    if done.returncode or not found:
        raise load.LoadFailed(f"wrk: {done.stdout}{done.stderr}")
    result = json.loads(found.group(1))
    # Without keep-alive, wrk counts the end of a connection as no error; a refused or late one is.
    kinds = ("connect", "write", "status", "timeout") + (("read",) if kept else ())
    return {
        "requests": result["requests"],
        "per_second": result["requests"] / (result["microseconds"] / 1e6),
        "p50_us": result["p50"],
        "p99_us": result["p99"],
        "errors": sum(result[kind] for kind in kinds),
    }
