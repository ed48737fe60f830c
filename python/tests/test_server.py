"""Our server over real sockets: connections, threads, draining, and what must not happen."""

from __future__ import annotations

import json
import os
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import applications
from sandarac_worker import Worker
from sandarac_worker.connection import Timeouts
from sandarac_worker.http1 import Limits
from sandarac_worker.listener import Tcp, tcp_listener, unix_listener
from sandarac_worker.server import Server
from support import BY, PATIENCE, Client, ask, readable, serving, wait_for

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
SHORT = Timeouts(idle=0.05, head=0.05, stall=0.05, linger=0.05, grace=0.05)


def test_many_connections_share_one_application_thread(tmp_path: Path) -> None:
    threads = set()
    at_once = []
    busy = threading.Lock()

    def app(environ: Any, start_response: Any) -> Any:
        at_once.append(busy.acquire(blocking=False))
        threads.add(threading.get_ident())
        start_response("200 OK", [])
        busy.release()
        return [environ["PATH_INFO"].encode()]

    with serving(app, tmp_path) as address:
        clients = [Client(address) for _ in range(50)]
        for turn in range(4):
            for number, client in enumerate(clients):
                client.send(b"GET /%d.%d HTTP/1.1\r\nHost: a\r\n\r\n" % (turn, number))
            for number, client in enumerate(clients):
                assert client.read().body == b"/%d.%d" % (turn, number)
        for client in clients:
            client.sock.close()
    assert len(threads) == 1
    assert all(at_once)


def test_several_application_threads_work_at_the_same_time(tmp_path: Path) -> None:
    together = threading.Barrier(3)

    def app(environ: Any, start_response: Any) -> Any:
        together.wait(PATIENCE)
        start_response("200 OK", [])
        return [b"x"]

    with serving(app, tmp_path, threads=3) as address:
        clients = [Client(address) for _ in range(3)]
        for client in clients:
            client.send(GET)
        for client in clients:
            assert client.read().status == 200
            client.sock.close()


def test_requests_in_a_row_are_answered_in_order(tmp_path: Path) -> None:
    with serving(applications.plain, tmp_path) as address, Client(address) as client:
        client.send(
            b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\none"
            b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\ntwo\r\n0\r\n\r\n"
            b"GET /.well-known/worker-resume?by=%b HTTP/1.1\r\nHost: a\r\n\r\n"
            b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n" % BY.encode() + GET
        )
        assert client.read().body == b"one"
        assert client.read().body == b"two"
        assert json.loads(client.read().body)["by"] == BY
        assert client.read("HEAD").status == 200
        assert client.read().body == b"hello\n"


def test_more_requests_in_a_row_than_are_taken_in_ahead(tmp_path: Path) -> None:
    count = 4000
    with serving(applications.plain, tmp_path) as address, Client(address) as client:
        sender = threading.Thread(target=client.send, args=(GET * count,))
        sender.start()
        for _ in range(count):
            assert client.read().status == 200
        sender.join(PATIENCE)


def test_the_word_before_the_body(tmp_path: Path) -> None:
    with serving(applications.plain, tmp_path, limits=Limits(body=10)) as address:
        with Client(address) as client:
            client.send(b"POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
            assert client.read().status == 100
            client.send(b"hello")
            assert client.read().body == b"hello"
        with Client(address) as client:
            client.send(b"POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 50\r\n\r\n")
            assert client.read().status == 413
            assert client.closed()


@pytest.mark.parametrize("size", [0, 1, 70_000, 3_000_000])
def test_bodies_of_any_size(size: int, tmp_path: Path) -> None:
    body = os.urandom(size)
    with serving(applications.plain, tmp_path) as address, Client(address) as client:
        client.sock.settimeout(PATIENCE)
        sender = threading.Thread(
            target=client.send, args=(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%b" % (size, body),)
        )
        sender.start()
        assert client.read().body == body
        sender.join(PATIENCE)


def test_what_is_malformed_is_refused_and_closed_while_others_are_served(tmp_path: Path) -> None:
    with serving(applications.plain, tmp_path) as address, Client(address) as other:
        for bad in (
            b"nonsense\r\n\r\n",
            b"GET / HTTP/1.1\r\n\r\n",
            b"GET / HTTP/1.1\nHost: a\n\n",
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ):
            with Client(address) as client:
                # What is sent behind it must not be taken for a request.
                client.send(bad + GET * 3)
                response = client.read()
                assert response.status in (400, 505)
                assert response.fields["connection"] == "close"
                assert client.closed()
            assert other.ask("/").status == 200


def test_a_refused_second_request_does_not_harm_the_first(tmp_path: Path) -> None:
    with serving(applications.plain, tmp_path) as address, Client(address) as client:
        client.send(GET + b"GET / HTTP/1.1\r\n\r\n")
        assert client.read().body == b"hello\n"
        assert client.read().status == 400
        assert client.closed()


def test_a_client_that_leaves_midway_leaves_nothing_behind(tmp_path: Path) -> None:
    worker = Worker()
    inside, opened = applications.gate("leaves")
    with serving(applications.plain, tmp_path, worker) as address, Client(address) as other:
        gone = Client(address)
        gone.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf")
        gone.sock.close()
        # One in hand, one that waits: the second is not begun once its client has left.
        first, second = Client(address), Client(address)
        first.send(b"GET /gate/leaves HTTP/1.1\r\nHost: a\r\n\r\n")
        assert inside.wait(PATIENCE)
        second.send(f'GET / HTTP/1.1\r\nHost: a\r\nRequest-Class: "never";by="{BY}"\r\n\r\n'.encode())
        wait_for(lambda: worker.inflight == 2, "both to be in flight")
        first.sock.close()
        second.sock.close()
        assert other.resume().status == 200
        opened.set()
        wait_for(lambda: worker.inflight == 0, "none in flight")
        assert other.ask("/", "a").status == 200
        assert set(worker.document(BY).skills) <= {b"a"}


def test_an_application_waits_for_a_slow_client_and_gives_up_on_a_stuck_one(tmp_path: Path) -> None:
    worker = Worker()
    with serving(applications.plain, tmp_path, worker) as address, Client(address) as client:
        client.send(b"GET /large/200 HTTP/1.1\r\nHost: a\r\n\r\n")
        client.until(b"\r\n\r\n")
        client.buffer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + client.buffer
        assert worker.inflight == 1
        assert len(client.read().body) == 200 * 65536
        wait_for(lambda: worker.inflight == 0, "its end")
    with serving(applications.plain, tmp_path, worker, timeouts=Timeouts(stall=0.1)) as address:
        with Client(address) as client:
            client.send(b"GET /large/2000 HTTP/1.1\r\nHost: a\r\n\r\n")
            wait_for(lambda: worker.inflight == 1, "its begin")
            wait_for(lambda: worker.inflight == 0, "the server to give up")
            assert ask(address, "/").status == 200


def test_who_says_nothing_is_closed_and_who_stops_halfway_is_told(tmp_path: Path) -> None:
    with serving(applications.plain, tmp_path, timeouts=SHORT) as address:
        with Client(address) as idle, Client(address) as slow, Client(address) as body:
            slow.send(b"GET / HTTP/1.1\r\nHo")
            body.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nx")
            assert idle.closed()
            assert slow.read().status == 408
            assert slow.closed()
            assert body.read().status == 408
            assert body.closed()


def test_a_slow_application_outlives_the_idle_timeout(tmp_path: Path) -> None:
    inside, opened = applications.gate("slow")
    with serving(applications.plain, tmp_path, timeouts=SHORT) as address:
        with Client(address) as client, Client(address) as watcher:
            client.send(b"GET /gate/slow HTTP/1.1\r\nHost: a\r\n\r\n")
            assert inside.wait(PATIENCE)
            # The server has swept by the time that it has closed this one.
            assert watcher.closed()
            opened.set()
            assert client.read().status == 200


def test_more_connections_than_allowed_wait_their_turn(tmp_path: Path) -> None:
    with serving(applications.plain, tmp_path, max_connections=2) as address:
        one, two, three = Client(address), Client(address), Client(address)
        assert (one.ask("/").status, two.ask("/").status) == (200, 200)
        three.send(GET)
        assert one.ask("/").status == 200
        assert not readable(three.sock)
        two.sock.close()
        assert three.read().status == 200
        one.sock.close()
        three.sock.close()


def test_draining_ends_what_is_in_flight_and_takes_no_more(tmp_path: Path) -> None:
    listener = unix_listener(str(tmp_path / "worker-0.sock"))
    worker = Worker()
    server = Server(applications.plain, worker, listener.socket, on_drain=listener.withdraw)
    listener.announce()
    thread = threading.Thread(target=server.serve)
    thread.start()
    inside, opened = applications.gate("drain")
    with Client(listener.address) as busy, Client(listener.address) as waiting, Client(listener.address) as idle:
        assert idle.ask("/").status == 200
        busy.send(b"GET /gate/drain HTTP/1.1\r\nHost: a\r\n\r\n")
        assert inside.wait(PATIENCE)
        waiting.send(GET)
        wait_for(lambda: worker.inflight == 2, "both to be in flight")
        server.drain()
        wait_for(lambda: not (tmp_path / "worker-0.sock").exists(), "the socket to go")
        # One that was under way to this worker is still answered, and told that it is the last.
        opened.set()
        for client in (busy, waiting):
            response = client.read()
            assert (response.status, response.fields["connection"]) == (200, "close")
            assert client.closed()
        assert idle.closed()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert worker.inflight == 0


def test_a_request_that_crosses_with_the_drain_is_served(tmp_path: Path) -> None:
    listener = unix_listener(str(tmp_path / "worker-0.sock"))
    server = Server(applications.plain, Worker(), listener.socket, on_drain=listener.withdraw)
    listener.announce()
    # Connected before the server accepts at all, and drained before it has begun.
    with Client(listener.address) as client:
        client.send(GET)
        server.drain()
        thread = threading.Thread(target=server.serve)
        thread.start()
        assert client.read().fields["connection"] == "close"
        assert client.closed()
        client.sock.close()
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_a_connection_that_was_not_told_of_the_drain_is_not_closed_before_it_is(tmp_path: Path) -> None:
    inside, opened = applications.gate("half")

    def halves(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterator[bytes]:
        start_response("200 OK", [("Content-Length", "2")])
        yield b"a"
        inside.set()
        assert opened.wait(PATIENCE)
        yield b"b"

    listener = unix_listener(str(tmp_path / "worker-0.sock"))
    server = Server(halves, Worker(), listener.socket, timeouts=Timeouts(grace=PATIENCE), on_drain=listener.withdraw)
    listener.announce()
    thread = threading.Thread(target=server.serve)
    thread.start()
    with Client(listener.address) as client:
        client.send(GET)
        assert inside.wait(PATIENCE)
        # Its head has left already.
        server.drain()
        opened.set()
        assert "connection" not in client.read().fields
        told = time.monotonic() + 0.3
        while time.monotonic() < told:
            assert not readable(client.sock)
            time.sleep(0.01)
        response = client.ask("/")
        assert (response.status, response.fields["connection"]) == (200, "close")
        assert client.closed()
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_draining_does_not_wait_for_ever(tmp_path: Path) -> None:
    inside, opened = applications.gate("stuck")
    listener = unix_listener(str(tmp_path / "worker-0.sock"))
    server = Server(applications.plain, Worker(), listener.socket, drain_timeout=0.1)
    listener.announce()
    thread = threading.Thread(target=server.serve)
    thread.start()
    with Client(listener.address) as client:
        client.send(b"GET /gate/stuck HTTP/1.1\r\nHost: a\r\n\r\n")
        assert inside.wait(PATIENCE)
        server.drain()
        assert client.closed()
        opened.set()
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_an_application_is_not_cut_off_because_its_client_has_left(tmp_path: Path) -> None:
    done = []

    def app(environ: Any, start_response: Any) -> Any:
        body = applications.plain(environ, start_response)
        done.append(True)
        return body

    inside, opened = applications.gate("committing")
    listener = unix_listener(str(tmp_path / "worker-0.sock"))
    server = Server(app, Worker(), listener.socket)
    listener.announce()
    thread = threading.Thread(target=server.serve)
    thread.start()
    with Client(listener.address) as client:
        client.send(b"POST /gate/committing HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
        assert inside.wait(PATIENCE)
    server.drain()
    wait_for(lambda: listener.socket.fileno() < 0, "the drain to begin")
    assert thread.is_alive()
    opened.set()
    thread.join(PATIENCE)
    assert done == [True]


def test_a_socket_is_seen_when_it_accepts_and_gone_when_it_does_not(tmp_path: Path) -> None:
    path = tmp_path / "worker-3.sock"
    listener = unix_listener(str(path), 0o600)
    assert [name for name in os.listdir(tmp_path) if not name.startswith(".")] == []
    listener.announce()
    assert os.listdir(tmp_path) == ["worker-3.sock"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    # A successor takes the place; the predecessor must not take it away again.
    successor = unix_listener(str(path))
    successor.announce()
    listener.withdraw()
    assert path.exists()
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
    successor.withdraw()
    assert os.listdir(tmp_path) == []
    for one in (listener, successor):
        one.socket.close()


def test_a_socket_is_withdrawn_once_as_its_inode_may_be_a_successor_s_later(tmp_path: Path) -> None:
    path = tmp_path / "worker-0.sock"
    listener = unix_listener(str(path))
    listener.announce()
    # A name of its inode keeps it from going, and stands for the socket that is given the same number next.
    os.link(path, tmp_path / "same-inode")
    listener.withdraw()
    listener.socket.close()
    os.link(tmp_path / "same-inode", path)
    listener.withdraw()
    assert path.exists()


def test_a_server_that_breaks_is_out_of_sight_before_its_socket_is_closed(tmp_path: Path) -> None:
    listener = unix_listener(str(tmp_path / "worker-0.sock"))
    open_then = []

    def withdraw() -> None:
        open_then.append(listener.socket.fileno() >= 0)
        listener.withdraw()

    def breaks(environ: Any, start_response: Any) -> Any:
        raise AssertionError

    server = Server(breaks, Worker(), listener.socket, max_requests=1, on_drain=withdraw, on_spent=lambda: 1 // 0)
    listener.announce()
    with Client(listener.address) as client:
        client.send(GET)
        with pytest.raises(ZeroDivisionError):
            server.serve()
    assert open_then == [True]
    assert os.listdir(tmp_path) == []


def test_a_path_that_is_too_long_for_a_socket_is_named(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    with pytest.raises(OSError, match="107 bytes"):
        unix_listener(str(deep / "worker-0.sock"))


def test_tcp_addresses() -> None:
    assert Tcp.parse("127.0.0.1:0") == Tcp("127.0.0.1", 0)
    assert Tcp.parse("[::1]:80") == Tcp("::1", 80)
    assert Tcp.parse(":8000") == Tcp("0.0.0.0", 8000)
    for text in ("", "8000", "a:b", "a:65536", "::1:80", "[::1]", "http://a:80"):
        with pytest.raises(ValueError, match="HOST:PORT"):
            Tcp.parse(text)
    listener = tcp_listener(Tcp("127.0.0.1", 0))
    with listener.socket:
        assert listener.address == f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
