"""The clients: wrk and ab for load, plain sockets for what has to be exact."""

import csv
import http.client
import json
import re
import socket
import subprocess
import tempfile
import time

from .tools import BENCH

WRK_CONNECTIONS = 64
_HOST = "127.0.0.1"


class LoadFailed(Exception):
    """The load generator itself failed; the text is what it printed."""


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self._path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def wrk(core, port, path, seconds, connections=WRK_CONNECTIONS, timeout=10):
    """`seconds` of keep-alive connections in a closed loop. Latencies are microseconds. An answer that takes longer than
    `timeout` seconds is an error."""
    command = ["taskset", "-c", str(core), "wrk", "--latency", "-t", "1", "-c", str(connections)]
    command += ["-d", f"{seconds}s", "--timeout", f"{timeout}s", "-s", str(BENCH / "wrk.lua"), f"http://{_HOST}:{port}{path}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60)
    found = re.search(r"^RESULT (.*)$", done.stdout, re.M)
    if done.returncode or not found:
        raise LoadFailed(f"wrk: {done.stdout}{done.stderr}")
    result = json.loads(found.group(1))
    elapsed = result["microseconds"] / 1e6
    return {
        "requests": result["requests"],
        "per_second": result["requests"] / elapsed,
        "bytes_per_second": result["bytes"] / elapsed,
        "p50_us": result["p50"],
        "p99_us": result["p99"],
        "errors": sum(result[kind] for kind in ("connect", "read", "write", "status", "timeout")),
    }


def paced(core, port, path, seconds, per_second):
    """`seconds` of requests at a given rate, by h2load over 64 keep-alive connections: all servers have the same to do, and
    what differs is how long each takes. Latencies are microseconds."""
    with tempfile.NamedTemporaryFile("r", suffix=".tsv") as log:
        rate = per_second / WRK_CONNECTIONS
        command = ["taskset", "-c", str(core), "h2load", "--h1", "-t", "1", "-c", str(WRK_CONNECTIONS)]
        command += ["-D", str(seconds), f"--rps={rate:.3f}", f"--log-file={log.name}", f"http://{_HOST}:{port}{path}"]
        began = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60)
        elapsed = time.monotonic() - began
        rows = [line.split() for line in log]
    if done.returncode or not rows:
        raise LoadFailed(f"h2load: {done.stdout}{done.stderr}")
    taken = sorted(int(row[2]) for row in rows)
    return {
        "requests": len(rows),
        "per_second": len(rows) / elapsed,
        "p50_us": taken[len(taken) // 2],
        "p99_us": taken[len(taken) * 99 // 100],
        "errors": sum(row[1] != "200" for row in rows),
    }


def ab(core, port, path, requests, concurrency, keep_alive, host=None):
    """A fixed number of requests by ApacheBench, which speaks HTTP/1.0. Latencies are microseconds. Without a `host`, the port
    is a part of it."""
    with tempfile.NamedTemporaryFile("r", suffix=".csv") as percentiles:
        command = ["taskset", "-c", str(core), "ab", "-q", "-s", "60", "-n", str(requests), "-c", str(concurrency)]
        command += ["-H", f"Host: {host}"] if host else []
        command += ["-k"] * keep_alive + ["-e", percentiles.name, f"http://{_HOST}:{port}{path}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900)
        if done.returncode:
            raise LoadFailed(f"ab: {done.stderr.strip()}")
        rows = list(csv.reader(percentiles))[1:]
    at = {int(float(percentage)): float(milliseconds) * 1000 for percentage, milliseconds in rows}

    def number(label):
        found = re.search(rf"^{label}:\s+([\d.]+)", done.stdout, re.M)
        return float(found.group(1)) if found else 0.0

    return {
        "requests": int(number("Complete requests")),
        "per_second": number("Requests per second"),
        "bytes_per_second": number("Transfer rate") * 1024,
        "p50_us": at[50],
        "p99_us": at[99],
        "kept_alive": int(number("Keep-Alive requests")),
        # A refusal of another length than the page counts both as failed and as not 2xx.
        "errors": int(max(number("Failed requests"), number("Non-2xx responses")) + number("Write errors"))
        + requests
        - int(number("Complete requests")),
    }


def fetch(port, path, timeout=30):
    """One GET on a connection of its own: status, fields with lower-case names, body."""
    connection = http.client.HTTPConnection(_HOST, port, timeout=timeout)
    try:
        connection.request("GET", path, headers={"Connection": "close"})
        response = connection.getresponse()
        fields = {name.lower(): value for name, value in response.getheaders()}
        return response.status, fields, response.read()
    finally:
        connection.close()


def fetch_kept_alive(port, path, requests, connections):
    """`requests` GETs spread over kept-alive connections; the set of different (status, body) seen."""
    seen = set()
    for _ in range(connections):
        connection = http.client.HTTPConnection(_HOST, port, timeout=30)
        for _ in range(requests // connections):
            connection.request("GET", path)
            response = connection.getresponse()
            seen.add((response.status, response.read()))
        connection.close()
    return seen


def ask_in_turn(port, target, count, fields, status):
    """`count` GETs, one after the other on one connection, each of which must be answered with `status`. `{n}` in the
    target stands for the number of the request."""
    connection = http.client.HTTPConnection(_HOST, port, timeout=30)
    try:
        for number in range(count):
            connection.request("GET", target.replace("{n}", str(number)), headers=fields)
            kept = connection.sock
            response = connection.getresponse()
            response.read()
            if response.status != status:
                raise LoadFailed(f"{target} was answered with {response.status} instead of {status}")
            if connection.sock is not kept:
                raise LoadFailed("the server closed a keep-alive connection")
    finally:
        connection.close()


def first_answer(port, path, deadline):
    """Asks again and again until the first whole 200 response; True if it came before `deadline` (time.monotonic)."""
    while time.monotonic() < deadline:
        try:
            if fetch(port, path, timeout=max(0.01, deadline - time.monotonic()))[0] == 200:
                return True
        except (OSError, http.client.HTTPException):
            time.sleep(0.0002)
    return False


def open_idle(port, path, count):
    """Opens `count` connections and completes one request on each; returns them open and idle."""
    request = f"GET {path} HTTP/1.1\r\nHost: {_HOST}:{port}\r\n\r\n".encode()
    connections = []
    for _ in range(count):
        connection = socket.create_connection((_HOST, port), timeout=10)
        connections.append(connection)
        connection.sendall(request)
        _read_response(connection)
    return connections


def still_open(connections):
    """How many of the connections the server has not closed meanwhile."""
    count = 0
    for connection in connections:
        connection.setblocking(False)
        try:
            count += bool(connection.recv(1))
        except BlockingIOError:
            count += 1
        except OSError:
            pass
    return count


def _read_response(connection):
    received = b""
    while b"\r\n\r\n" not in received:
        received += _receive(connection)
    head, _, body = received.partition(b"\r\n\r\n")
    length = re.search(rb"^content-length:\s*(\d+)", head, re.M | re.I)
    if not head.startswith(b"HTTP/1.1 200") or not length:
        raise LoadFailed(f"unexpected response: {head[:200]!r}")
    missing = int(length.group(1)) - len(body)
    while missing > 0:
        missing -= len(_receive(connection))


def _receive(connection):
    received = connection.recv(65536)
    if not received:
        raise LoadFailed("the server closed a keep-alive connection")
    return received
