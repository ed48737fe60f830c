"""Clients that take, or send, ten kilobytes a second each; a process of their own."""

import multiprocessing
import os
import socket
import time

_SECONDS = 2
_RECEIVE_BUFFER = 64 << 10
_PATIENCE = 120


class SlowClients:
    """`count` slow clients of one kind, `down` or `up`, with bodies of `size` bytes."""

    def __init__(self, core, kind, port, count, size, rate):
        self._pipe, other = multiprocessing.Pipe()
        self._process = multiprocessing.Process(
            target=_run, args=(other, core, kind, port, count, size, rate), daemon=True
        )
        self._process.start()

    def moved(self):
        """Bytes that all of them have moved so far."""
        self._pipe.send("moved")
        return self._receive()

    def finish(self):
        """Lets them go on at full speed. Returns the number of those that got a whole response."""
        self._pipe.send("finish")
        whole = self._receive()
        self._process.join()
        return whole

    def stop(self):
        self._process.kill()
        self._process.join()

    def _receive(self):
        if not self._pipe.poll(_PATIENCE):
            raise TimeoutError("the slow clients do not answer")
        return self._pipe.recv()


class _Client:
    def __init__(self, kind, port, size):
        self.kind, self.size = kind, size
        self.moved = 0
        self.is_over = False
        self.received = b""
        self.body = 0
        self.expected = None
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        self.socket.connect(("127.0.0.1", port))
        if kind == "down":
            self.left = 0
            self.socket.sendall(f"GET /{size} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        else:
            self.left = size
            self.socket.sendall(f"POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n".encode())
        self.socket.setblocking(False)

    def move(self, most):
        """Moves up to `most` bytes, as far as the socket allows. Returns whether any moved."""
        if self.is_over:
            return False
        try:
            if self.left:
                moved = self.socket.send(b"x" * min(most, self.left))
                self.left -= moved
            else:
                data = self.socket.recv(most)
                moved = len(data)
                self.is_over = not data
                self._take(data)
        except BlockingIOError:
            return False
        except OSError:
            self.is_over = True
            return False
        self.moved += moved
        return True

    def _take(self, data):
        if self.expected is None:
            self.received += data
            head, end, rest = self.received.partition(b"\r\n\r\n")
            if not end:
                return
            lines = head.lower().split(b"\r\n")
            length = [line for line in lines if line.startswith(b"content-length:")]
            self.expected = int(length[0].split(b":")[1]) if b" 200 " in lines[0] and length else -1
            data, self.received = rest, b""
        self.body += len(data)
        self.is_over |= self.body >= self.expected

    @property
    def is_whole(self):
        return self.body == self.expected == (self.size if self.kind == "down" else 2)


def _run(pipe, core, kind, port, count, size, rate):
    os.sched_setaffinity(0, {core})
    clients = [_Client(kind, port, size) for _ in range(count)]
    # A part of them has its turn at a time, so that the load is even.
    turns = 40
    started, turn = time.monotonic(), 0
    while True:
        if pipe.poll(max(0, started + turn * _SECONDS / turns - time.monotonic())):
            if pipe.recv() == "finish":
                break
            pipe.send(sum(client.moved for client in clients))
            continue
        for client in clients[turn % turns :: turns]:
            client.move(rate * _SECONDS)
        turn += 1
    deadline = time.monotonic() + _PATIENCE - 10
    while time.monotonic() < deadline and any(not client.is_over for client in clients):
        if not any([client.move(1 << 20) for client in clients]):
            time.sleep(0.01)
    pipe.send(sum(client.is_whole for client in clients))
