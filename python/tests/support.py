"""What the tests talk to servers with: HTTP read by hand, so that a fault of ours cannot hide behind itself."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandarac_worker.listener import unix_listener
from sandarac_worker.server import Server
from sandarac_worker.worker import Worker

VECTORS = Path(__file__).parents[2] / "tests" / "vectors"
HERE = Path(__file__).parent
BY = "6f1c0a92d3b4e587"
OTHER_BY = "00ffee1122334455"
#: Seconds that nothing here takes; a test that waits so long has failed.
PATIENCE = 60.0


def vectors(name: str) -> list[dict[str, Any]]:
    cases = json.loads((VECTORS / "resume" / name).read_text("utf-8"))["cases"]
    assert len(cases) > 5
    return cases


def wait_for(what: Callable[[], Any], why: str) -> Any:
    """The first true value of ``what``."""
    deadline = time.monotonic() + PATIENCE
    while not (found := what()):
        assert time.monotonic() < deadline, f"in vain waited for: {why}"
        time.sleep(0.01)
    return found


class Clock:
    """In the place of the module `time`: it goes on by what a test sleeps, and no busy machine moves it."""

    def __init__(self) -> None:
        self._now = 0.0

    def perf_counter(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += seconds


@contextlib.contextmanager
def reserved_port() -> Iterator[int]:
    """A port of 127.0.0.1 for a server that has to be told one, as one that was merely free a moment ago may be given
    to anybody meanwhile: bound and not listening, beside which a server may bind that sets SO_REUSEADDR, as all do."""
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", 0))
        yield sock.getsockname()[1]


@dataclass
class Response:
    status: int
    fields: dict[str, str]
    body: bytes
    head: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def state(self) -> dict[str, str]:
        return dict(member.strip().split("=", 1) for member in self.fields["worker-state"].split(","))


class Client:
    """One connection."""

    def __init__(self, address: str) -> None:
        if address.startswith("unix:"):
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.connect(address[5:])
        else:
            host, port = address[len("http://") :].rsplit(":", 1)
            self.sock = socket.create_connection((host, int(port)))
        self.sock.settimeout(PATIENCE)
        self.buffer = b""

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def more(self) -> bool:
        data = self.sock.recv(65536)
        self.buffer += data
        return bool(data)

    def until(self, end: bytes) -> bytes:
        while end not in self.buffer:
            assert self.more(), f"closed behind {self.buffer!r}"
        found, _, self.buffer = self.buffer.partition(end)
        return found

    def exactly(self, length: int) -> bytes:
        while len(self.buffer) < length:
            assert self.more(), f"closed {length - len(self.buffer)} bytes early"
        found, self.buffer = self.buffer[:length], self.buffer[length:]
        return found

    def rest(self) -> bytes:
        """Everything up to the end of the connection."""
        while True:
            try:
                if not self.more():
                    break
            except ConnectionResetError:
                break
        found, self.buffer = self.buffer, b""
        return found

    def closed(self) -> bool:
        """Whether the server closes, with nothing before it."""
        return self.rest() == b""

    def read(self, method: str = "GET") -> Response:
        head = self.until(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        fields: dict[str, str] = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            key = name.lower()
            assert key not in ("content-length", "transfer-encoding") or key not in fields
            fields[key] = f"{fields[key]}, {value.strip()}" if key in fields else value.strip()
        status = int(lines[0].split(" ")[1])
        body = b""
        if method != "HEAD" and status not in (204, 304) and status >= 200:
            if fields.get("transfer-encoding") == "chunked":
                while size := int(self.until(b"\r\n"), 16):
                    body += self.exactly(size)
                    assert self.exactly(2) == b"\r\n"
                assert self.exactly(2) == b"\r\n"
            elif "content-length" in fields:
                body = self.exactly(int(fields["content-length"]))
            else:
                body = self.rest()
        return Response(status, fields, body, head)

    def ask(
        self,
        target: str = "/",
        name: str | None = None,
        *,
        by: str = BY,
        known: str | None = None,
        method: str = "GET",
        body: bytes | None = None,
        fields: str = "",
    ) -> Response:
        lines = f"{method} {target} HTTP/1.1\r\nHost: www.example.com\r\n{fields}"
        if name is not None:
            lines += f'Request-Class: "{name}";by="{by}"' + (f';known="{known}"' if known else "") + "\r\n"
        if body is not None:
            lines += f"Content-Length: {len(body)}\r\n"
        self.send(lines.encode("latin-1") + b"\r\n" + (body or b""))
        return self.read(method)

    def resume(self, by: str = BY, fields: str = "") -> Response:
        return self.ask(f"/.well-known/worker-resume?by={by}", fields=fields)

    def skills(self, by: str = BY) -> dict[str, float]:
        return json.loads(self.resume(by).body)["skills"]


def ask(address: str, *arguments: Any, **more: Any) -> Response:
    with Client(address) as client:
        return client.ask(*arguments, **more)


@contextlib.contextmanager
def serving(app: Any, directory: Path, worker: Worker | None = None, **options: Any) -> Iterator[str]:
    """Our own server in a thread of this process; gives its address."""
    listener = unix_listener(str(directory / "worker-0.sock"))
    server = Server(app, worker or Worker(), listener.socket, on_drain=listener.withdraw, **options)
    thread = threading.Thread(target=server.serve)
    thread.start()
    listener.announce()
    try:
        yield listener.address
    finally:
        server.drain()
        thread.join(PATIENCE)
        assert not thread.is_alive()


class Started:
    """A process of ours, its output read in the background; ended, by its id, with the test."""

    def __init__(
        self, arguments: list[str], directory: Path, stderr: int = subprocess.STDOUT, **environment: str
    ) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, "-u", *arguments],
            cwd=directory,
            env={**os.environ, "PYTHONPATH": str(HERE), **environment},
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.popen.stdout is not None
        for line in self.popen.stdout:
            self.lines.append(line.rstrip("\n"))

    @property
    def output(self) -> str:
        return "\n".join(self.lines)

    def says(self, text: str, times: int = 1) -> None:
        def said() -> bool:
            assert self.popen.poll() is None or self.output.count(text) >= times, self.output
            return self.output.count(text) >= times

        try:
            wait_for(said, text)
        except AssertionError as error:
            raise AssertionError(f"{error}; it said:\n{self.output}") from None

    def signal(self, number: int) -> None:
        self.popen.send_signal(number)

    def ended(self) -> int:
        status = self.popen.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return status

    def close(self) -> None:
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGTERM)
            try:
                self.popen.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.popen.kill()
                self.popen.wait()
        self._reader.join(PATIENCE)


@contextlib.contextmanager
def started(
    arguments: list[str], directory: Path, stderr: int = subprocess.STDOUT, **environment: str
) -> Iterator[Started]:
    process = Started(arguments, directory, stderr, **environment)
    try:
        yield process
    finally:
        process.close()


def readable(sock: socket.socket) -> bool:
    return bool(select.select([sock], [], [], 0)[0])
