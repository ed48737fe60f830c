"""The real ZooKeeper and etcd, as processes of their own that may be killed and started again."""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support import PATIENCE, reserved_port, wait_for

_ZOOKEEPER_JAR = "/usr/share/java/zookeeper.jar"


class _Process:
    """A server in ``directory``."""

    package: str

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self.directory = directory
        self.held = contextlib.ExitStack()
        self.port = self.held.enter_context(reserved_port())
        self.popen: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        raise NotImplementedError

    def serves(self) -> bool:
        raise NotImplementedError

    def start(self) -> None:
        command = self.command()
        assert shutil.which(command[0]), f"{command[0]} is missing: apt install {self.package}"
        with open(self.directory / "log", "ab") as log:
            self.popen = subprocess.Popen(command, cwd=self.directory, stdout=log, stderr=log)
        wait_for(self._answers, f"{self.package} to serve")

    def _answers(self) -> bool:
        assert self.popen is not None
        assert self.popen.poll() is None, (self.directory / "log").read_text()
        with contextlib.suppress(OSError, ValueError):
            return self.serves()
        return False

    def kill(self) -> None:
        if self.popen is not None:
            self.popen.kill()
            self.popen.wait()
            self.popen = None


class Etcd(_Process):
    package = "etcd-server"

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.peers = self.held.enter_context(reserved_port())

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        client, peers = f"http://{self.host}", f"http://127.0.0.1:{self.peers}"
        urls = ["--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peers]
        cluster = ["--initial-advertise-peer-urls", peers, "--initial-cluster", f"alone={peers}"]
        tokens = ["--auth-token", "simple", "--auth-token-ttl", "2"]
        return ["etcd", "--name", "alone", "--data-dir", "data", "--log-level", "warn", *urls, *cluster, *tokens]

    def serves(self) -> bool:
        return "leader" in self.call("maintenance/status", {})

    def forget(self) -> None:
        """Everything; while it does not run."""
        shutil.rmtree(self.directory / "data")

    def call(self, method: str, message: dict[str, Any], token: str = "") -> dict[str, Any]:
        url = f"http://{self.host}/v3/{method}"
        request = urllib.request.Request(url, json.dumps(message).encode(), {"Authorization": token} if token else {})
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            answer: dict[str, Any] = json.loads(response.read())
        return answer

    def put(self, key: str, value: str) -> None:
        self.call("kv/put", {"key": encode(key), "value": encode(value)})

    def delete(self, key: str) -> None:
        self.call("kv/deleterange", {"key": encode(key)})

    def below(self, prefix: str, token: str = "") -> dict[str, str]:
        """What is below a prefix."""
        answer = self.call("kv/range", {"key": encode(f"{prefix}/"), "range_end": encode(f"{prefix}0")}, token)
        pairs = [(decode(pair["key"]), decode(pair.get("value", ""))) for pair in answer.get("kvs", [])]
        return {key[len(prefix) + 1 :]: value for key, value in pairs}


class ZooKeeper(_Process):
    package = "zookeeper"

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        assert Path(_ZOOKEEPER_JAR).exists(), f"{_ZOOKEEPER_JAR} is missing: apt install zookeeper"
        lines = ["dataDir=data", "clientPortAddress=127.0.0.1", f"clientPort={self.port}", "tickTime=200"]
        lines += ["maxSessionTimeout=60000", "admin.enableServer=false", "4lw.commands.whitelist=*"]
        (self.directory / "zoo.cfg").write_text("\n".join([*lines, ""]))
        options = ["-Xmx64m", "-XX:TieredStopAtLevel=1", "-Dzookeeper.forceSync=no", "-cp", _ZOOKEEPER_JAR]
        return ["java", *options, "org.apache.zookeeper.server.quorum.QuorumPeerMain", "zoo.cfg"]

    def serves(self) -> bool:
        with socket.create_connection(("127.0.0.1", self.port), timeout=0.2) as sock:
            sock.sendall(b"srvr")
            return b"standalone" in sock.recv(4096)


@contextlib.contextmanager
def running(server: Any) -> Iterator[Any]:
    """The server, for as long as the test takes."""
    with server.held:
        try:
            server.start()
            yield server
        finally:
            server.kill()


def encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def decode(text: str) -> str:
    return base64.b64decode(text).decode()
