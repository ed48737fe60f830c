"""The servers of a line, and the clients that ask them."""

import array
import contextlib
import http.client
import os
import re
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from .. import load, peers, tools
from ..process import Daemon

# The host is part of the key: nodes share what is asked under the same one.
HOST = "pages.test"
# In Cache-Status of a response that came from the shared tier.
FROM_TIER = "detail=shared-tier"
# A deadline that no pause of a busy machine exceeds, for lines that are not about deadlines.
PATIENT = 'timeout = "2s"'
_PATIENCE = 15
_FILL_CLIENTS = 4


@dataclass(frozen=True)
class Log:
    """Requests in their order: the file that clients read, and the targets."""

    path: Path
    targets: list

    def __len__(self):
        return len(self.targets)


@dataclass
class Played:
    """What clients saw: answers that were right, errors, seconds, how many answers came from the shared tier, and the
    microseconds of each request in the order of the log (0: not answered)."""

    answered: int
    errors: int
    seconds: float
    from_tier: int
    micros: array.array
    complaints: str

    def percentile(self, share):
        return percentile([each for each in self.micros if each], share)


def percentile(values, share):
    """The smallest value that the share of them does not exceed; 0 of none."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * share // 100) - 1)] if ordered else 0


class Stack:
    """The servers of one line; `close` ends them. The server under test has one core, memcached, the origin and the clients
    have the other."""

    def __init__(self, cores, sandarac, directory):
        self.bench = peers.Bench(*cores, sandarac, directory)
        self.server_core, self.client_core = cores
        self._programs = {name: tools.compile_c(name, directory) for name in ("relay", "mget", "pages", "player")}
        self._servers = []
        self._logs = 0

    def close(self):
        while self._servers:
            self._servers.pop().stop()

    @contextlib.contextmanager
    def servers(self):
        """Ends the servers that are started inside."""
        try:
            yield
        finally:
            self.close()

    def stop(self, server):
        self._servers.remove(server)
        server.stop()

    def disown(self, server):
        """Leaves a server to the caller to end."""
        self._servers.remove(server)

    def adopt(self, server):
        """Takes a server that was started elsewhere, to end it with the others."""
        self._servers.append(server)
        return server

    def memcached(self, mib=1024):
        port = peers.free_port()
        command = ["memcached", "-l", "127.0.0.1", "-p", port, "-U", 0, "-m", mib, "-t", 1]
        command += ["-u", "root"] if os.geteuid() == 0 else []
        return self._start("memcached", port, command, self.client_core)

    def origin(self):
        """The origin of pages that are told apart, which counts requests."""
        directory, port = self.bench.working_directory("origin"), peers.free_port()
        return self._start("origin", port, [self._programs["pages"], port, directory / "counter"], self.client_core, directory)

    def relay(self, memcached):
        port = peers.free_port()
        return self._start("relay", port, [self._programs["relay"], port, memcached.port], self.server_core)

    def nginx(self, role, memcached=None, files=None):
        """nginx before memcached, or serving files."""
        origin = memcached and peers.Origin(memcached.port)
        return self.adopt(self.bench.start("nginx", role, origin, files))

    def node(self, origin, memcached=None, memory="256MiB", settings="", core=None, under=(), binary=None):
        """Sandarac, in front of the origin, with a shared tier in `memcached` (a server, or several) unless that is None."""
        directory, port = self.bench.working_directory("node"), peers.free_port()
        shared = ""
        if memcached:
            servers = memcached if isinstance(memcached, list) else [memcached]
            addresses = ", ".join(f'"127.0.0.1:{server.port}"' for server in servers)
            shared = f"[cache.shared]\nservers = [{addresses}]\n{settings}"
        values = {"port": port, "origin": origin.port, "shared": shared}
        configuration = peers.fill("sandarac-tier.toml", directory / "sandarac.toml", **values)
        command = [*under, binary or self.bench.sandarac, "--threads", 1, "--memory", memory]
        command += ["--admin", directory / "admin.sock", "-c", configuration]
        return self._start("node", port, command, self.server_core if core is None else core, directory)

    def secret(self):
        """The setting of a secret for entries."""
        path = self.bench.directory / "secret"
        path.write_bytes(os.urandom(32))
        return f'secret_file = "{path}"'

    def _start(self, name, port, command, core, directory=None):
        directory = directory or self.bench.working_directory(name)
        server = peers.Server(name, port, Daemon(command, core, directory / "output"), directory)
        self.adopt(server)
        peers.wait_until_listening(server)
        return server

    def log(self, targets):
        """The requests for these targets, as a log."""
        targets = list(targets)
        self._logs += 1
        path = self.bench.directory / f"log-{self._logs}"
        path.write_text("".join(f"GET {HOST} {target}\n" for target in targets))
        return Log(path, targets)

    def play(self, server, log, first=0, count=None, clients=1, seconds=60):
        """Plays a part of a log, whose every line was right, or whose complaints say what was wrong."""
        return self.play_at_once([(server, log)], first, count, clients, seconds)[0]

    def play_at_once(self, parts, first=0, count=None, clients=1, seconds=60):
        """Plays a log to each of several servers at the same time, with so many clients each."""
        started = []
        for number, (server, log) in enumerate(parts):
            times = self.bench.directory / f"times-{number}"
            part = [server.port, log.path, first, len(log) - first if count is None else count]
            started.append((self._run("player", [*part, clients, seconds, times, FROM_TIER]), times))
        return [self._played(*each, seconds) for each in started]

    def ask_memcached(self, memcached, log, first=0, count=None):
        """Asks memcached itself for a part of a log."""
        times = self.bench.directory / "times"
        part = [memcached.port, log.path, first, len(log) - first if count is None else count]
        return self._played(self._run("mget", [*part, times]), times, _PATIENCE)

    def _run(self, program, arguments):
        command = ["taskset", "-c", self.client_core, self._programs[program], *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(list(map(str, command)), **pipes)

    @staticmethod
    def _played(process, times, seconds):
        try:
            output, complaints = process.communicate(timeout=seconds + 2 * _PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            raise load.LoadFailed("the clients did not end") from None
        if process.returncode:
            raise load.LoadFailed(f"{' '.join(process.args)}: {complaints}")
        answered, errors, spent, *from_tier = output.split()
        micros = array.array("I")
        micros.frombytes(times.read_bytes())
        from_tier = int(from_tier[0]) if from_tier else 0
        return Played(int(answered), int(errors), float(spent), from_tier, micros, complaints.strip())

    def fill(self, node, memcached, log, clients=_FILL_CLIENTS):
        """Has a node fetch every page of a log, and waits until all are in memcached."""
        wanted = len(set(log.targets)) + items(memcached)
        played = self.play(node, log, clients=clients)
        if played.errors:
            raise load.LoadFailed(f"{played.errors} errors while the tier was filled: {played.complaints}")
        deadline = time.monotonic() + _PATIENCE
        while items(memcached) < wanted:
            if time.monotonic() > deadline:
                faults = ", ".join(f"{name} {metric(node, name):.0f}" for name in ("tier_fills_refused", "tier_failures", "tier_ejections"))
                raise load.LoadFailed(f"memcached has {items(memcached)} of {wanted} items; {faults}")
            time.sleep(0.02)

    @staticmethod
    def fill_raw(memcached, log, bytes_each):
        """Stores a page of that size under each target itself, for those who relay what memcached has."""
        with socket.create_connection(("127.0.0.1", memcached.port), timeout=_PATIENCE) as connection:
            for target in set(log.targets):
                mark = f"<!-- {HOST} {target} -->".encode()
                value = mark + os.urandom(bytes_each - len(mark))
                connection.sendall(b"ms %s %d q\r\n%s\r\n" % (target.encode(), len(value), value))
            connection.sendall(b"mn\r\n")
            if connection.recv(100) != b"MN\r\n":
                raise load.LoadFailed("memcached did not take the pages")

    def body(self, server, target):
        """The body and the Cache-Status of a response."""
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=_PATIENCE)
        try:
            connection.request("GET", target, headers={"Host": HOST, "Connection": "close"})
            response = connection.getresponse()
            return response.read(), response.getheader("Cache-Status", "")
        finally:
            connection.close()


def items(memcached):
    """How many items memcached has."""
    with socket.create_connection(("127.0.0.1", memcached.port), timeout=_PATIENCE) as connection:
        connection.sendall(b"stats\r\n")
        text = b""
        while not text.endswith(b"END\r\n"):
            text += connection.recv(65536)
    return int(re.search(rb"STAT curr_items (\d+)", text).group(1))


def metric(node, name):
    """The sum of a metric of a node over its labels."""
    connection = load.UnixConnection(node.directory / "admin.sock", _PATIENCE)
    try:
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
    finally:
        connection.close()
    return sum(float(value) for value in re.findall(rf"^sandarac_{name}(?:_total)?(?:{{.*}})? (\S+)$", text, re.M))
