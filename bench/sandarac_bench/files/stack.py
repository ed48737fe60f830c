"""The servers, all of one directory of files."""

import contextlib
import os
import random

from .. import load, peers
from ..process import Daemon

APACHE_THREADS = 600


class Stack:
    """Sandarac, nginx and Apache on one core, the clients on the other."""

    def __init__(self, cores, sandarac, missing, directory, sizes):
        self.bench = peers.Bench(*cores, sandarac, directory)
        self.client_core = cores[1]
        self._missing = missing
        self._files = self.bench.directory / "files"
        self._files.mkdir()
        for size in sizes:
            content = random.Random(size).choices(b"abcdefghijklmnopqrstuvwxyz", k=size)
            (self._files / f"{size}.txt").write_bytes(bytes(content))
        self._sizes = sizes
        self.servers = {}

    @contextlib.contextmanager
    def started(self):
        """Starts the servers that are installed, and checks that each sends the files. They end with the block."""
        try:
            for name, program in (("sandarac", None), ("nginx", "nginx"), ("apache", "apache2")):
                if program not in self._missing:
                    self.servers[name] = self._start(name)
                    self._check(name)
            yield
        finally:
            for server in self.servers.values():
                server.stop()

    def _start(self, name):
        if name == "nginx":
            return self.bench.start("nginx", "file", files=self._files)
        directory = self.bench.working_directory(name)
        port = peers.free_port()
        if name == "sandarac":
            command = [self.bench.sandarac, "--threads", "1", "--admin", directory / "admin.sock"]
            command += ["--listen", f"127.0.0.1:{port}", "--files", self._files]
        else:
            configuration = peers.fill(
                "apache-files.conf",
                directory / "apache.conf",
                dir=directory,
                port=port,
                files=self._files,
                threads=APACHE_THREADS,
                user_directive="User www-data\nGroup www-data" if os.geteuid() == 0 else "",
            )
            command = ["apache2", "-DFOREGROUND", "-f", configuration]
        server = peers.Server(name, port, Daemon(command, self.bench.server_core, directory / "output"), directory)
        peers.wait_until_listening(server)
        return server

    def _check(self, name):
        for size in self._sizes:
            status, fields, body = load.fetch(self.servers[name].port, f"/{size}.txt")
            wanted = (self._files / f"{size}.txt").read_bytes()
            if status != 200 or body != wanted or "etag" not in fields or "last-modified" not in fields:
                raise load.LoadFailed(f"{name}: the file of {size} bytes was answered with {status} and {len(body)} bytes")
