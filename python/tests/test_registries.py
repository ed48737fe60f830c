"""Workers that are registered in the real etcd and the real ZooKeeper, which fail and come back."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from registries import Etcd, ZooKeeper, running
from sandarac_worker.etcd import Etcd as EtcdRegistry
from sandarac_worker.registry import Entry, Live, Registry
from support import Client, Started, ask, started, wait_for

RUNNER = ["-m", "sandarac_worker", "applications:plain", "--workers", "2"]
TCP = [*RUNNER, "--bind", "127.0.0.1:0"]


def serving(runner: Started) -> set[str]:
    """The addresses of both workers, without the scheme."""
    runner.says("worker 0: http://", 1)
    runner.says("worker 1: http://", 1)
    return {line.rpartition("http://")[2] for line in runner.lines if re.match(r"worker \d: ", line)}


def registered(etcd: Etcd) -> set[str]:
    return set(etcd.below("/shop/providers"))


def history(address: str) -> Any:
    with Client(address) as client:
        return json.loads(client.resume().body)["history"]


@contextlib.contextmanager
def suspended(runner: Started) -> Iterator[None]:
    runner.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        runner.signal(signal.SIGCONT)


@contextlib.contextmanager
def in_etcd(tmp_path: Path) -> Iterator[tuple[Etcd, Started, set[str]]]:
    """An etcd, and a runner whose workers are in it, with their addresses."""
    with (
        running(Etcd(tmp_path / "etcd")) as etcd,
        started([*TCP, "--etcd", f"http://{etcd.host}/shop"], tmp_path) as runner,
    ):
        addresses = serving(runner)
        wait_for(lambda: registered(etcd) == addresses, "both workers")
        yield etcd, runner, addresses


def test_workers_are_in_etcd_for_as_long_as_they_serve(tmp_path: Path) -> None:
    with in_etcd(tmp_path) as (etcd, runner, addresses):
        first = sorted(addresses)[0]
        killed = int(ask(f"http://{first}", "/pid").text)
        os.kill(killed, signal.SIGKILL)
        wait_for(lambda: len(registered(etcd)) == 2 and first not in registered(etcd), "another in its place")
        runner.signal(signal.SIGTERM)
        assert runner.ended() == 0
        wait_for(lambda: registered(etcd) == set(), "the workers to go")


def test_workers_take_their_history_from_etcd(tmp_path: Path) -> None:
    with (
        running(Etcd(tmp_path / "etcd")) as etcd,
        started([*TCP, "--etcd", f"http://{etcd.host}/shop"], tmp_path) as runner,
    ):
        address = f"http://{sorted(serving(runner))[0]}"
        assert history(address) == 9999
        etcd.put("/shop/settings", '{"history": 17, "variance": 3}')
        wait_for(lambda: history(address) == 17, "the history")
        # A worker that starts later has it, too.
        runner.signal(signal.SIGHUP)
        runner.says("worker 1: http://", 2)
        successor = [line for line in runner.lines if line.startswith("worker 1: ")][-1].partition(": ")[2]
        assert history(successor) == 17
        etcd.put("/shop/settings", '{"history": "many"}')
        wait_for(lambda: history(successor) == 9999, "what was configured")


def test_workers_are_registered_anew_with_an_etcd_that_forgot_them(tmp_path: Path) -> None:
    with in_etcd(tmp_path) as (etcd, runner, addresses):
        etcd.kill()
        runner.says("etcd: workers cannot be registered")
        for address in addresses:
            assert ask(f"http://{address}", "/").status == 200
        etcd.forget()
        etcd.start()
        wait_for(lambda: registered(etcd) == addresses, "both workers again")
        runner.says("etcd: workers are registered again")


def test_workers_of_a_killed_runner_leave_etcd(tmp_path: Path) -> None:
    with in_etcd(tmp_path) as (etcd, runner, _):
        runner.signal(signal.SIGKILL)
        wait_for(lambda: registered(etcd) == set(), "the lease to expire")


def test_workers_that_somebody_deletes_from_etcd_are_in_it_again(tmp_path: Path) -> None:
    with in_etcd(tmp_path) as (etcd, runner, addresses):
        first, second = sorted(addresses)
        etcd.delete(f"/shop/providers/{first}")
        runner.says(f"etcd: {first} was deleted, and serves: registered again in 0 s")
        wait_for(lambda: registered(etcd) == addresses, "both workers again")
        # What stands in its place is left alone.
        etcd.put(f"/shop/providers/{second}", f"http://{second} 3")
        etcd.put("/shop/settings", '{"history": 17}')
        runner.says("workers remember 17 requests")
        assert etcd.below("/shop/providers")[second] == f"http://{second} 3"
        assert runner.output.count("was deleted") == 1
        # Nor does it outlive the worker.
        runner.signal(signal.SIGTERM)
        assert runner.ended() == 0
        wait_for(lambda: registered(etcd) == set(), "the workers to go")


def test_workers_of_a_runner_that_was_suspended_are_in_etcd_again(tmp_path: Path) -> None:
    with in_etcd(tmp_path) as (etcd, runner, addresses):
        with suspended(runner):
            wait_for(lambda: registered(etcd) == set(), "the lease to expire")
        wait_for(lambda: registered(etcd) == addresses, "both workers again")
        # Nobody deleted them.
        assert "was deleted" not in runner.output


def test_a_user_stays_let_in_when_tokens_expire(tmp_path: Path) -> None:
    with running(Etcd(tmp_path / "etcd")) as etcd:
        etcd.call("auth/user/add", {"name": "root", "password": "secret"})
        etcd.call("auth/role/add", {"name": "root"})
        etcd.call("auth/user/grant", {"user": "root", "role": "root"})
        etcd.call("auth/enable", {})
        options = [*TCP, "--etcd", f"http://root@{etcd.host}/shop"]
        with started(options, tmp_path, SANDARAC_ETCD_PASSWORD="secret") as runner:
            addresses = serving(runner)
            # Longer than a lease, and than a token: they are there because they are kept alive.
            time.sleep(12)
            token = etcd.call("auth/authenticate", {"name": "root", "password": "secret"})["token"]
            wait_for(lambda: set(etcd.below("/shop/providers", token)) == addresses, "both workers still")
            complaints = [line for line in runner.lines if "cannot be registered" in line]
            # That etcd is late on a busy machine is another matter.
            assert [line for line in complaints if "timed out" not in line] == []


@contextlib.contextmanager
def reader(zookeeper: ZooKeeper) -> Iterator[Any]:
    """Somebody else's session."""
    client = KazooClient(zookeeper.host)
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()


def nodes(reader: Any) -> dict[str, str]:
    """The nodes of workers in ZooKeeper, by their addresses."""
    # The session of who looks expires too, where ZooKeeper is away for long on a busy machine.
    look = reader.retry
    names = look(reader.get_children, "/shop/providers") if look(reader.exists, "/shop/providers") else []
    found = {}
    for name in names:
        # A node may go at any time.
        with contextlib.suppress(NoNodeError):
            found[json.loads(look(reader.get, f"/shop/providers/{name}")[0])["address"]] = f"/shop/providers/{name}"
    return found


def sockets(directory: Path) -> set[str]:
    return {f"unix:{directory}/run/worker-{slot}.sock" for slot in range(2)}


@contextlib.contextmanager
def in_zookeeper(tmp_path: Path) -> Iterator[tuple[ZooKeeper, Any, Started, set[str]]]:
    """A ZooKeeper, somebody else's session, and a runner whose workers are in it, with their addresses."""
    with running(ZooKeeper(tmp_path / "zookeeper")) as zookeeper, reader(zookeeper) as other:
        options = [*RUNNER, "--sockets", "run", "--zookeeper", f"{zookeeper.host}/shop"]
        with started(options, tmp_path) as runner:
            addresses = sockets(tmp_path)
            wait_for(lambda: nodes(other).keys() == addresses, "both workers")
            yield zookeeper, other, runner, addresses


def test_workers_are_in_zookeeper_for_as_long_as_they_serve(tmp_path: Path) -> None:
    with in_zookeeper(tmp_path) as (zookeeper, other, runner, addresses):
        other.set("/shop", b'{"history": 17}')
        wait_for(lambda: history(f"unix:{tmp_path}/run/worker-0.sock") == 17, "the history")
        zookeeper.kill()
        runner.says("ZooKeeper: workers cannot be registered")
        zookeeper.start()
        runner.says("ZooKeeper: workers are registered again")
        wait_for(lambda: nodes(other).keys() == addresses, "both workers again")
        runner.signal(signal.SIGTERM)
        assert runner.ended() == 0
        wait_for(lambda: nodes(other) == {}, "the nodes to go")


def test_workers_that_somebody_deletes_from_zookeeper_are_in_it_again(tmp_path: Path) -> None:
    with in_zookeeper(tmp_path) as (_, other, runner, addresses):
        first = nodes(other)[min(addresses)]
        other.delete(first)
        runner.says("worker-0.sock was deleted, and serves: registered again in 0 s")
        wait_for(lambda: nodes(other).keys() == addresses, "both workers again")
        # It goes with the runner's session, as it did.
        assert other.exists(first).ephemeralOwner != 0
        other.delete("/shop", recursive=True)
        runner.says("worker-0.sock was deleted, and serves: registered again in", 2)
        runner.says("worker-1.sock was deleted, and serves: registered again in 0 s")
        wait_for(lambda: nodes(other).keys() == addresses, "both workers, and what is above them")
        runner.signal(signal.SIGTERM)
        assert runner.ended() == 0
        wait_for(lambda: nodes(other) == {}, "the nodes to go")


def test_workers_of_a_runner_that_was_suspended_are_in_zookeeper_again(tmp_path: Path) -> None:
    with in_zookeeper(tmp_path) as (_, other, runner, addresses):
        with suspended(runner):
            wait_for(lambda: nodes(other) == {}, "the session to expire")
        wait_for(lambda: nodes(other).keys() == addresses, "both workers again")
        assert "was deleted" not in runner.output


class Kept(Registry):
    """A registry in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.there: set[Entry] = set()
        #: What the next signs of life are answered with, before all are well received.
        self.signs: list[bool] = []
        self.added: list[float] = []
        self.now = 0.0
        self.lines: list[str] = []

    def at(self, now: float, *entries: Entry) -> None:
        self.now = now
        self.keep(frozenset(entries), now, self.lines.append)

    def renew(self) -> bool:
        return not self.signs or self.signs.pop(0)

    def look(self, entries: list[Entry]) -> tuple[bytes, set[Entry]]:
        return b"", self.there & set(entries)

    def add(self, entry: Entry) -> None:
        self.added.append(self.now)
        self.there.add(entry)

    def remove(self, entry: Entry) -> None:
        self.there.discard(entry)

    def close(self) -> None:
        pass


def test_a_worker_that_is_deleted_for_ever_is_registered_once_a_minute() -> None:
    registry, entry = Kept(), Entry("a:1", b"")
    for second in range(3600):
        registry.at(second, entry)
        registry.there.clear()
    assert registry.added[:6] == [0, 1, 7, 18, 39, 80]
    assert len(registry.added) < 66
    assert len(registry.lines) <= len(registry.added)
    assert registry.lines[1] == "a:1 was deleted, and serves: registered again in 5 s"
    # When that is over, all is as it was.
    for second in range(3600, 3800):
        registry.at(second, entry)
    registry.there.clear()
    registry.at(3800, entry)
    assert registry.there == {entry}


def test_a_worker_that_drains_is_not_registered_again() -> None:
    registry, one, other = Kept(), Entry("a:1", b""), Entry("a:2", b"")
    registry.at(0, one, other)
    for second in (10, 20):
        registry.there.clear()
        registry.at(second, one, other)
    # Its time comes when it serves no more.
    registry.at(30, other)
    assert registry.there == {other}
    registry.signs = [False]
    registry.there.clear()
    registry.at(40)
    assert registry.there == set()


@pytest.mark.parametrize("signs", [[False], [True, False]], ids=["before", "meanwhile"])
def test_the_end_of_a_session_is_no_deletion(signs: list[bool]) -> None:
    registry, entry = Kept(), Entry("a:1", b"")
    registry.at(0, entry)
    for second in (1, 2, 3):
        registry.there.clear()
        registry.signs = list(signs)
        registry.at(second, entry)
        assert registry.there == {entry}
    assert registry.lines == []


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--etcd", "https://127.0.0.1:2379/shop"], "not http://"),
        (["--etcd", "http://127.0.0.1:2379"], "not http://"),
        (["--zookeeper", "127.0.0.1:2181"], "not HOST:PORT"),
        (["--zookeeper", "/shop"], "not HOST:PORT"),
        (["--etcd", "http://127.0.0.1:2379/shop", "--bind", "0.0.0.0:0"], "--advertise has to say"),
    ],
)
def test_registries_that_cannot_be_are_refused(tmp_path: Path, options: list[str], complaint: str) -> None:
    with started([*RUNNER, *options], tmp_path) as runner:
        runner.says(complaint)
        assert runner.ended() == 2


def test_entries_have_names_that_both_registries_take() -> None:
    assert Entry.of("http://10.0.0.1:8000") == Entry("10.0.0.1:8000", b"")
    entry = Entry.of("unix:/run/shop/worker-0.sock")
    assert entry.name.endswith("-run-shop-worker-0.sock")
    assert "/" not in entry.name
    assert json.loads(entry.data) == {"address": "unix:/run/shop/worker-0.sock"}


def test_settings_without_sense_say_nothing() -> None:
    assert Live.read(b'{"history": 17, "max_skill_age": 99, "variance": 3}') == Live(17, 99)
    for data in (b"", b"[]", b"history", b"\xff", b'{"history": 0, "max_skill_age": -1}', b'{"history": true}'):
        assert Live.read(data) == Live()


def test_a_url_of_etcd_has_hosts_a_prefix_and_perhaps_a_user() -> None:
    registry = EtcdRegistry("http://me@a:1,b:2/shops/one/", {"SANDARAC_ETCD_PASSWORD": "x"})
    assert (registry._endpoints, registry._prefix, registry._user) == (["a:1", "b:2"], "/shops/one", "me")
