"""How each server is started: the command line and the configuration its best users would give it.

Every server listens on a free loopback port, has one core, writes no log, keeps connections to the origin alive and
may hold 256 MiB of objects. The reasons for single settings stand in the templates in bench/peers.
"""

import os
import random
import shutil
import socket
import string
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from . import tools
from .process import Daemon, StartFailed

TEMPLATES = tools.BENCH / "peers"
# More than the 7000 idle connections of the largest row, and a descriptor to spare for each of their fetches.
_CONNECTIONS = 8192
_DESCRIPTORS = 20000
_START_SECONDS = 30
# net.ipv4.ip_local_port_range begins at 32768.
_PORTS = (20000, 32000)
_given = set()
# Servers that cannot take part when ab, which speaks HTTP/1.0, asks for cached pages, and why.
NO_HTTP10_CACHE = {"haproxy": "never answers an HTTP/1.0 request from its cache"}
# What Varnish writes to its log for each hit, miss or pass.
_VARNISH_RECORDS = (
    "Begin End Link SessOpen SessClose ReqStart ReqMethod ReqURL ReqProtocol ReqHeader ReqUnset ReqAcct RespProtocol "
    "RespStatus RespReason RespHeader RespUnset BereqMethod BereqURL BereqProtocol BereqHeader BereqUnset BereqAcct "
    "BerespProtocol BerespStatus BerespReason BerespHeader BerespUnset BackendOpen BackendReuse BackendClose "
    "BackendStart VCL_call VCL_return VCL_use Hit HitPass HitMiss TTL Storage Filters Fetch_Body Length Timestamp"
).split()


class _Template(string.Template):
    """`@{name}`, because the configurations themselves are full of dollars and per cents."""

    delimiter = "@"


@dataclass(frozen=True)
class Origin:
    """What stands behind a server: its port, and how many connections it can work on at once (0: any number)."""

    port: int
    max_connections: int = 0


@dataclass
class Server:
    """A running server: its name in tables, its port, its process, and the directory it writes to."""

    name: str
    port: int
    daemon: Daemon
    directory: Path

    def stop(self):
        self.daemon.stop()
        shutil.rmtree(self.directory, ignore_errors=True)


class Bench:
    """What all rows share: the cores, the working directory and the programs. `server_core` runs the server under
    test, `client_core` the clients and whatever stands behind the server."""

    def __init__(self, server_core, client_core, sandarac, directory):
        self.server_core = server_core
        self.client_core = client_core
        self.sandarac = sandarac
        self.directory = Path(directory)
        self.floor = tools.compile_c("floor", directory)
        self.floor_pass = tools.compile_c("floor_pass", directory)
        self.origin = tools.compile_c("origin", directory)

    def working_directory(self, name):
        """A fresh directory that servers of any user may enter."""
        directory = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.directory))
        directory.chmod(0o755)
        return directory

    def start(self, name, role, origin=None, files=None, clients=64, under=(), values=None):
        """Starts the server `name` in `role` ("hit", "pass", "file", "tls" or "http2"), ready for `clients` requests at once, and
        waits until it accepts connections. `under` is the command of a tool that runs it, `values` are more of the values
        of its templates."""
        server = self.launch(name, role, origin, files, clients, under, values)
        try:
            wait_until_listening(server)
        except StartFailed:
            server.stop()
            raise
        return server

    def launch(self, name, role, origin=None, files=None, clients=64, under=(), values=None):
        """Like `start`, without waiting."""
        directory = self.working_directory(name)
        port = free_port()
        command = [*under, *_COMMANDS[name](self, _Setup(role, directory, port, origin, files, clients, values or {}))]
        return Server(name, port, Daemon(command, self.server_core, directory / "output"), directory)

    def start_floor(self, body, keep_alive=None):
        """The floor, answering everything with `body` bytes; `keep_alive` says what an HTTP/1.0 client is told."""
        directory = self.working_directory("floor")
        port = free_port()
        command = [self.floor, port, body] + ([] if keep_alive is None else ["keep" if keep_alive else "close"])
        server = Server("floor", port, Daemon(command, self.server_core, directory / "output"), directory)
        wait_until_listening(server)
        return server

    def start_floor_pass(self, origin):
        """The floor of pass, forwarding bytes between each client and a connection to the origin."""
        directory = self.working_directory("floor-pass")
        port = free_port()
        command = [self.floor_pass, port, origin.port]
        server = Server("floor-pass", port, Daemon(command, self.server_core, directory / "output"), directory)
        wait_until_listening(server)
        return server

    def start_origin(self):
        """The counting origin, on the core of the clients."""
        directory = self.working_directory("origin")
        port = free_port()
        command = [self.origin, port, directory / "counter"]
        server = Server("origin", port, Daemon(command, self.client_core, directory / "output"), directory)
        wait_until_listening(server)
        return server

    def start_apache(self, files, clients, environment):
        """Apache with PHP, serving `files` to `clients` at once, on the core of the clients: it is the application, not
        the server."""
        directory = self.working_directory("apache")
        port = free_port()
        configuration = fill(
            "apache.conf",
            directory / "apache.conf",
            dir=directory,
            port=port,
            files=files,
            modules=tools.php_module().parent,
            php=tools.php_module(),
            # Some processes to spare for the checks and the status page.
            processes=clients + 24,
            user_directive="User www-data\nGroup www-data" if os.geteuid() == 0 else "",
        )
        command = ["apache2", "-DFOREGROUND", "-f", configuration]
        daemon = Daemon(command, self.client_core, directory / "output", environment)
        server = Server("apache", port, daemon, directory)
        wait_until_listening(server)
        return server


def fill(template, path, **values):
    """Writes a template with its values filled in; returns the path written."""
    text = (TEMPLATES / template).read_text()
    Path(path).write_text(_Template(text).substitute({name: str(value) for name, value in values.items()}))
    return path


def free_port():
    """A port nobody listens on, below those the kernel gives to clients: else a waiting `connect` might meet itself."""
    while True:
        port = random.randrange(*_PORTS)
        with socket.socket() as listener:
            # Connections of an earlier server on it may linger.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in _given:
            _given.add(port)
            return port


def wait_until_listening(server):
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if not server.daemon.running:
            break
        try:
            socket.create_connection(("127.0.0.1", server.port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.01)
    raise StartFailed(f"{server.name} did not start: {' '.join(server.daemon.command)}\n{server.daemon.output()}")


def requests_seen(origin):
    """How many requests the counting origin has answered."""
    return int.from_bytes((origin.directory / "counter").read_bytes(), "little")


@dataclass(frozen=True)
class _Setup:
    """What a server is started with."""

    role: str
    directory: Path
    port: int
    origin: Origin
    files: Path
    clients: int
    values: dict


def _nginx(bench, setup):
    name = f"nginx-{setup.role}.conf"
    fill(name, setup.directory / name, **setup.values)
    configuration = fill(
        "nginx.conf",
        setup.directory / "nginx.conf",
        dir=setup.directory,
        port=setup.port,
        role=name,
        # The file server has no origin, but the common part names one: the discard port, where nobody listens.
        origin=setup.origin.port if setup.origin else 9,
        files=setup.files or setup.directory,
        connections=_CONNECTIONS,
        descriptors=_DESCRIPTORS,
        # The workers of a master started by root are www-data by default, who may not enter a private TMPDIR.
        user_directive="user root;" if os.geteuid() == 0 else "",
    )
    return ["nginx", "-p", setup.directory, "-c", configuration, "-e", "stderr"]


def _haproxy(bench, setup):
    most = setup.origin.max_connections
    common = fill(
        "haproxy.cfg",
        setup.directory / "haproxy.cfg",
        origin=setup.origin.port,
        connections=_CONNECTIONS,
        server_options=f"maxconn {most}" if most else "",
    )
    name = f"haproxy-{setup.role}.cfg"
    own = fill(name, setup.directory / name, port=setup.port, **setup.values)
    return ["haproxy", "-db", "-q", "-f", common, "-f", own]


def _varnish(bench, setup):
    rules = fill(f"varnish-{setup.role}.vcl", setup.directory / f"{setup.role}.vcl", origin=setup.origin.port)
    pools = 2
    parameters = {
        "thread_pools": pools,
        # Each request takes a thread and its fetch another; those that find none while threads are made are dropped.
        "thread_pool_min": max(100, 2 * setup.clients // pools + 20),
        # The default of 5 s would close the idle connections of the bench.
        "timeout_idle": 600,
        # The default of 1024 is too short for 1000 clients arriving at once beside those being accepted.
        "listen_depth": 4096,
        # The shared-memory log cannot be switched off as a whole, only record by record; no other server logs here.
        "vsl_mask": ",".join(f"-{record}" for record in _VARNISH_RECORDS),
    }
    command = ["varnishd", "-F", "-j", "none", "-T", "none", "-n", setup.directory / "varnish"]
    command += ["-a", f"127.0.0.1:{setup.port}", "-f", rules, "-s", "malloc,256m"]
    return command + [word for name, value in parameters.items() for word in ("-p", f"{name}={value}")]


def _sandarac(bench, setup):
    command = [bench.sandarac, "--threads", "1", "--memory", "256MiB", "--admin", setup.directory / "admin.sock"]
    if setup.role == "hit":
        # As on the README's first screen: no file, no tuning.
        return command + ["--listen", f"127.0.0.1:{setup.port}", "--backend", f"http://127.0.0.1:{setup.origin.port}"]
    most = setup.origin.max_connections
    name = f"sandarac-{setup.role}.toml"
    configuration = fill(
        name,
        setup.directory / name,
        port=setup.port,
        origin=setup.origin.port,
        pool_options=f"max_in_flight = {most}" if most else "",
        **setup.values,
    )
    return command + ["-c", configuration]


def _h2o(bench, setup):
    name = f"h2o-{setup.role}.conf"
    own = fill(name, setup.directory / name, dir=setup.directory, port=setup.port, files=setup.files, **setup.values)
    return ["h2o", "-m", "worker", "-c", own]


def _nghttpx(bench, setup):
    command = ["nghttpx", "--conf=/dev/null", f"--frontend=127.0.0.1,{setup.port};no-tls", "--workers=1"]
    command += [f"--backend=127.0.0.1,{setup.origin.port}", "--accesslog-file=", "--errorlog-file=/dev/null"]
    # The defaults (3 minutes, and 2 seconds to the origin) would close idle connections.
    return command + ["--frontend-http2-read-timeout=600s", "--backend-keep-alive-timeout=600s"]


_COMMANDS = {
    "sandarac": _sandarac,
    "haproxy": _haproxy,
    "nginx": _nginx,
    "varnish": _varnish,
    "h2o": _h2o,
    "nghttpx": _nghttpx,
}
