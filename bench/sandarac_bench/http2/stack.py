"""The servers of a line, and the clients that connect to them."""

import contextlib
import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .. import load, peers, tools
from ..certificate import HOST, certificate

# As in the table.
CONNECTIONS, STREAMS = 64, 32
_PATIENCE = 60
_PEERS = {
    "hit": {"nginx": "proxy_cache bench; proxy_cache_lock on;", "haproxy": ("http-request cache-use bench", "http-response cache-store bench")},
    "pass": {"nginx": "", "haproxy": ("", ""), "sandarac": 'cache = "pass"'},
}


@dataclass(frozen=True)
class Served:
    """A server under test: its name in tables, the process, its ports in clear and with TLS, and what precedes the path of a
    page."""

    name: str
    server: peers.Server
    clear: int
    tls: int
    prefix: str = ""

    def url(self, body, over_tls):
        scheme, port = ("https", self.tls) if over_tls else ("http", self.clear)
        return f"{scheme}://{HOST}:{port}{self.prefix}/{body}"


class Stack:
    """The servers of one line. The server under test has one core, the origin and the clients have the other."""

    def __init__(self, cores, sandarac, missing, directory):
        self.bench = peers.Bench(*cores, sandarac, directory)
        self.attacker = tools.compile_c("http2_attack", directory)
        self.client_core = cores[1]
        self._missing = missing
        self._chain, self._key, self._pair = certificate(Path(directory))
        self._servers = []

    @contextlib.contextmanager
    def servers(self):
        """Ends the servers that are started inside."""
        try:
            yield
        finally:
            while self._servers:
                self._servers.pop().stop()

    def start(self, role, body, names, over_tls=False):
        """Starts the origin and those of the servers that are installed, as caches (role "hit") or without ("pass"), and checks that
        each answers with the bytes of the origin. Returns the origin and {name: Served}."""
        origin = self.bench.start_origin()
        self._servers.append(origin)
        _, _, page = load.fetch(origin.port, f"/{body}")
        files = self.bench.directory / "files"
        files.mkdir(exist_ok=True)
        (files / str(body)).write_bytes(page)
        found = {name: self._start(role, name, origin, files) for name in names if name not in self._missing}
        if role == "hit" and "nginx" in found:
            nginx = found["nginx"]
            found["nginx, file"] = Served("nginx, file", nginx.server, nginx.clear, nginx.tls, "/file")
        for served in found.values():
            self._check(served, origin, role, body, page, over_tls)
        return origin, found

    def _start(self, role, name, origin, files):
        clear, tls = peers.free_port(), peers.free_port()
        how = _PEERS[role].get(name, "")
        values = {"clear_port": clear, "tls_port": tls, "chain": self._chain, "key": self._key, "pair": self._pair, "files": files}
        if name == "haproxy":
            values["cache_use"], values["cache_store"] = how
        elif name == "h2o":
            values = {"user": "user: root" if os.geteuid() == 0 else ""}
        else:
            values["cache"] = how
        if name != "nginx":
            values.pop("files", None)
        server = self.bench.start(name, "http2", peers.Origin(origin.port), files, values=values)
        self._servers.append(server)
        return Served(name, server, clear if name in ("nginx", "haproxy") else server.port, tls)

    def _check(self, served, origin, role, body, page, over_tls):
        """Fetches the page twice; the second time it must come from the cache, or not, and each time by HTTP/2."""
        for _ in range(2):
            seen = peers.requests_seen(origin)
            answer = self.fetch(served, body, over_tls)
        if answer != page:
            raise load.LoadFailed(f"{served.name}: the body differs from the origin's")
        if (peers.requests_seen(origin) == seen) != (role == "hit"):
            raise load.LoadFailed(f"{served.name}: the origin was asked as it should not be")

    def fetch(self, served, body, over_tls):
        """The body of a response, by curl."""
        _, _, port = served.url(body, over_tls).split("/")[2].partition(":")
        command = ["curl", "-sS", "--fail", "-k", "--noproxy", "*", "--resolve", f"{HOST}:{port}:127.0.0.1", "--max-time", str(_PATIENCE)]
        command += ["--http2" if over_tls else "--http2-prior-knowledge", "-w", "%{stderr}%{http_version}", served.url(body, over_tls)]
        done = subprocess.run(command, capture_output=True)
        if done.returncode or done.stderr.strip() != b"2":
            raise load.LoadFailed(f"{served.name}: curl: {done.stderr.decode().strip()}")
        return done.stdout

    def load(self, served, body, seconds, over_tls=False, connections=CONNECTIONS, streams=STREAMS):
        """h2load in a closed loop: requests that succeeded and failed, and requests per second."""
        command = self._h2load(served, body, over_tls, connections, streams)
        command += ["-D", f"{seconds * 1000:.0f}ms"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + _PATIENCE)
        found = re.search(r"^requests: .* (\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout", done.stdout, re.M)
        rate = re.search(r"^finished in .*, ([\d.]+) req/s", done.stdout, re.M)
        if done.returncode or not found or not rate or "Application protocol: h2" not in done.stdout:
            raise load.LoadFailed(f"h2load: {done.stdout}{done.stderr}")
        succeeded, *failed = map(int, found.groups())
        return {"done": succeeded, "errors": sum(failed), "per_second": float(rate.group(1))}

    def paced(self, served, body, seconds, rate, connections):
        """h2load at a rate: the same, and latencies in microseconds."""
        log = self.bench.directory / "paced.tsv"
        log.unlink(missing_ok=True)
        command = self._h2load(served, body, False, connections, 1)
        command += ["-D", f"{seconds * 1000:.0f}ms", f"--rps={rate / connections:.3f}", f"--log-file={log}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + _PATIENCE)
        rows = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
        if done.returncode or not rows:
            raise load.LoadFailed(f"h2load: {done.stdout}{done.stderr}")
        taken = sorted(int(row[2]) for row in rows)
        share = lambda percent: taken[min(len(taken) - 1, len(taken) * percent // 100)]
        errors = sum(row[1] != "200" for row in rows)
        return {"done": len(rows), "errors": errors, "per_second": len(rows) / seconds, "p50_us": share(50), "p99_us": share(99), "max_us": taken[-1]}

    def _h2load(self, served, body, over_tls, connections, streams):
        command = ["taskset", "-c", str(self.client_core), "h2load", "-t", "1", "-c", str(connections), "-m", str(streams)]
        if over_tls:
            command += ["--npn-list=h2"]
        # h2load resolves no names of ours: the authority is given apart.
        return command + [f"--connect-to=127.0.0.1:{served.tls if over_tls else served.clear}", served.url(body, over_tls)]

    @contextlib.contextmanager
    def attack(self, served, kind, path, rate, connections, seconds):
        """An attacker that runs beside the block, which ends it. Gives a function that waits for its end and returns what it counted."""
        command = ["taskset", "-c", str(self.client_core), self.attacker, kind, served.clear, path, rate, connections, seconds]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen(list(map(str, command)), **pipes)

        def result():
            output, complaints = process.communicate(timeout=seconds + _PATIENCE)
            if process.returncode:
                raise load.LoadFailed(f"http2_attack: {complaints}")
            return json.loads(output)

        try:
            yield result
        finally:
            process.kill()
            process.wait()
