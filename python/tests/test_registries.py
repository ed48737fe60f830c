"""Workers that are registered in the real etcd and the real ZooKeeper, which fail and come back."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from registries import Etcd, ZooKeeper, running
from sandarac_worker.etcd import Etcd as EtcdRegistry
from sandarac_worker.registry import Entry, Live
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


def test_workers_are_in_etcd_for_as_long_as_they_serve(tmp_path: Path) -> None:
    with (
        running(Etcd(tmp_path / "etcd")) as etcd,
        started([*TCP, "--etcd", f"http://{etcd.host}/shop"], tmp_path) as runner,
    ):
        addresses = serving(runner)
        wait_for(lambda: registered(etcd) == addresses, "both workers")
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
    with (
        running(Etcd(tmp_path / "etcd")) as etcd,
        started([*TCP, "--etcd", f"http://{etcd.host}/shop"], tmp_path) as runner,
    ):
        addresses = serving(runner)
        wait_for(lambda: registered(etcd) == addresses, "both workers")
        etcd.kill()
        runner.says("etcd: workers cannot be registered")
        for address in addresses:
            assert ask(f"http://{address}", "/").status == 200
        etcd.forget()
        etcd.start()
        wait_for(lambda: registered(etcd) == addresses, "both workers again")
        runner.says("etcd: workers are registered again")


def test_workers_of_a_killed_runner_leave_etcd(tmp_path: Path) -> None:
    with (
        running(Etcd(tmp_path / "etcd")) as etcd,
        started([*TCP, "--etcd", f"http://{etcd.host}/shop"], tmp_path) as runner,
    ):
        addresses = serving(runner)
        wait_for(lambda: registered(etcd) == addresses, "both workers")
        runner.signal(signal.SIGKILL)
        wait_for(lambda: registered(etcd) == set(), "the lease to expire")


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


def test_workers_are_in_zookeeper_for_as_long_as_they_serve(tmp_path: Path) -> None:
    with running(ZooKeeper(tmp_path / "zookeeper")) as zookeeper:
        options = [*RUNNER, "--sockets", "run", "--zookeeper", f"{zookeeper.host}/shop"]
        reader = KazooClient(zookeeper.host)
        reader.start()

        def nodes() -> set[str]:
            names = reader.get_children("/shop/providers") if reader.exists("/shop/providers") else []
            return {json.loads(reader.get(f"/shop/providers/{name}")[0])["address"] for name in names}

        with started(options, tmp_path) as runner:
            addresses = {f"unix:{tmp_path}/run/worker-{slot}.sock" for slot in range(2)}
            wait_for(lambda: nodes() == addresses, "both workers")
            reader.set("/shop", b'{"history": 17}')
            wait_for(lambda: history(f"unix:{tmp_path}/run/worker-0.sock") == 17, "the history")
            zookeeper.kill()
            runner.says("ZooKeeper: workers cannot be registered")
            zookeeper.start()
            runner.says("ZooKeeper: workers are registered again")
            wait_for(lambda: nodes() == addresses, "both workers again")
            runner.signal(signal.SIGTERM)
            assert runner.ended() == 0
            wait_for(lambda: nodes() == set(), "the nodes to go")
        reader.stop()
        reader.close()


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
