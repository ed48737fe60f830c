"""The servers of a line, and the clients that connect to them."""

import contextlib
import http.client
import json
import ssl
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

from .. import load, peers, tools
from ..certificate import HOST, certificate
from ..process import Daemon

_PATIENCE = 60


@dataclass(frozen=True)
class Served:
    """A server under test: its name in tables, the process, the port with TLS, and what precedes the path of a page."""

    name: str
    server: peers.Server
    port: int
    prefix: str = ""

    def path(self, body):
        return f"{self.prefix}/{body}"


class Stack:
    """The servers of one line. The server under test has one core, the origin and the clients have the other."""

    def __init__(self, cores, sandarac, missing, directory):
        self.bench = peers.Bench(*cores, sandarac, directory)
        self.client_core = cores[1]
        self._missing = missing
        programs = tools.build_tls_programs()
        self._floor, self._client = programs / "tls_floor", programs / "tls_client"
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

    def start(self, body, names=("floor", "sandarac", "nginx", "haproxy")):
        """Starts the origin and those of the servers that are installed, and checks that each answers a request for `body`
        bytes with those of the origin, from its cache. Returns the origin and {name: Served}."""
        origin = self.bench.start_origin()
        self._servers.append(origin)
        _, _, page = load.fetch(origin.port, f"/{body}")
        found = {name: self._start(name, origin, body, page) for name in names if name not in self._missing}
        for served in found.values():
            self._check(served, origin, body, page)
        return origin, found

    def with_files(self, found, body):
        """The servers, and nginx again with files, which the same process serves."""
        nginx = found.get("nginx")
        if not nginx:
            return found
        return {**found, "nginx, file": Served("nginx, file", nginx.server, nginx.port, "/file")}

    def _start(self, name, origin, body, page):
        port = peers.free_port()
        if name == "floor":
            directory = self.bench.working_directory(name)
            command = [self._floor, port, body, self._chain, self._key]
            server = peers.Server(name, port, Daemon(command, self.bench.server_core, directory / "output"), directory)
            self._servers.append(server)
            peers.wait_until_listening(server)
            return Served(name, server, port)
        files = self.bench.directory / "files"
        files.mkdir(exist_ok=True)
        (files / str(body)).write_bytes(page)
        values = {"tls_port": port}
        values |= {"nginx": {"chain": self._chain, "key": self._key, "files": files}, "haproxy": {"pair": self._pair}}.get(
            name, {"chain": self._chain, "key": self._key}
        )
        server = self.bench.start(name, "tls", peers.Origin(origin.port), files, values=values)
        self._servers.append(server)
        return Served(name, server, port)

    def _check(self, served, origin, body, page):
        """Fetches the page twice; the second time it must come from the cache."""
        for _ in range(2):
            seen = peers.requests_seen(origin)
            answer = self.fetch(served.port, served.path(body))
        if len(answer) != len(page) or served.name != "floor" and answer != page:
            raise load.LoadFailed(f"{served.name}: the body differs from the origin's")
        if peers.requests_seen(origin) != seen:
            raise load.LoadFailed(f"{served.name}: a hit reached the origin")

    def fetch(self, port, path):
        """The body of a response over TLS. The certificate is verified."""
        context = ssl.create_default_context(cafile=str(self._chain))
        context.check_hostname = False
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=_PATIENCE, context=context)
        try:
            connection.request("GET", path, headers={"Host": HOST})
            response = connection.getresponse()
            if response.status != 200:
                raise load.LoadFailed(f"{path} was answered with {response.status}")
            return response.read()
        finally:
            connection.close()

    @contextlib.contextmanager
    def client(self, mode, port, path, body, **options):
        """A client whose connections have had one response each. Its process ends with the block."""
        command = ["taskset", "-c", self.client_core, self._client, mode, port, path, body]
        client = Client([*command, *(f"{name}={value}" for name, value in options.items())])
        try:
            client.wait_until_ready()
            yield client
        finally:
            client.stop()


class Client:
    """A client in a process of its own."""

    def __init__(self, command):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen(list(map(str, command)), **pipes)
        self._patience = threading.Timer(2 * _PATIENCE, self._process.kill)
        self._patience.start()

    def wait_until_ready(self):
        if self._line() != "ready":
            raise load.LoadFailed("a client printed something unexpected")

    def begin(self):
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def result(self):
        """What was measured: `done`, `errors`, `seconds` and more; see `tls-programs/src/bin/tls_client/tally.rs`."""
        result = json.loads(self._line())
        result["per_second"] = result["done"] / result["seconds"] if result["seconds"] else 0.0
        return result

    def work(self):
        """Does the work, and returns what was measured."""
        self.begin()
        return self.result()

    def stop(self):
        self._patience.cancel()
        self._process.kill()
        self._process.communicate()

    def _line(self):
        line = self._process.stdout.readline()
        if not line:
            raise load.LoadFailed(f"{' '.join(self._process.args)}: {self._process.stderr.read().strip()}")
        return line.strip()
