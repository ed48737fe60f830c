"""Paste Deploy starts it out of an .ini file, as zc.resumelb was started."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from sandarac_worker.paste import server_runner
from support import Client, started, wait_for

INI = """
[app:main]
paste.app_factory = paste_app:make

[server:main]
use = egg:sandarac-worker
socket = %(here)s/worker-0.sock
history = 100
max_skill_age = 1000
resume_file = %(here)s/resume.json
threads = 2
version = 7
trace_log = %(here)s/trace.log
"""

SERVE = """
import sys
from paste.deploy import loadapp, loadserver

uri = f"config:{sys.argv[1]}"
loadserver(uri)(loadapp(uri))
"""


def test_a_server_out_of_an_ini_file(tmp_path: Path) -> None:
    (tmp_path / "paste_app.py").write_text("import applications\ndef make(conf):\n    return applications.plain\n")
    ini = tmp_path / "site.ini"
    ini.write_text(INI)
    with started(["-c", SERVE, str(ini)], tmp_path) as paste:
        paste.says(f"worker: unix:{tmp_path}/worker-0.sock")
        with Client(f"unix:{tmp_path}/worker-0.sock") as client:
            assert client.ask("/", "a").state["version"] == '"7"'
            wait_for(lambda: list(client.skills()) == ["a"], "the request to be earned")
            assert b'"history":100' in client.resume().body
        paste.signal(signal.SIGTERM)
        assert paste.ended() == 0
    assert not (tmp_path / "worker-0.sock").exists()
    assert b'"a"' in (tmp_path / "resume.json").read_bytes()
    assert (tmp_path / "trace.log").read_text().startswith(f"B {paste.popen.pid}.1.1 ")


def refusal(**settings: str) -> str:
    with pytest.raises(ValueError, match=r".") as error:
        server_runner(lambda environ, start: [], {"__file__": "/etc/shop.ini"}, **settings)
    text = str(error.value)
    start = "/etc/shop.ini: server of egg:sandarac-worker: "
    assert text.startswith(start)
    return text[len(start) :]


def test_a_value_that_is_none_is_refused_with_its_place_and_what_is_wanted(tmp_path: Path) -> None:
    wanted = {
        "history = many": "a number of requests, at least 1, such as 9999",
        "history = 0": "a number of requests, at least 1, such as 9999",
        "max_skill_age = banana": "a number of requests, at least 1; leave it out for 10 × history",
        "threads = 0": "a number of threads, at least 1",
        "threads = 2.5": "a number of threads, at least 1",
        "drain_timeout = soon": "a number of seconds from 0 to 86400, such as 30",
        "drain_timeout = nan": "a number of seconds from 0 to 86400, such as 30",
        "mode = rw": "permissions in octal, such as 660",
        "mode = 7777": "permissions in octal, such as 660",
        "version = é": "1 to 128 characters of ASCII, none of them a control character",
    }
    for setting, instead in wanted.items():
        name, value = setting.split(" = ")
        assert refusal(socket=f"{tmp_path}/s", **{name: value}) == f"{setting}: not {instead}"
    assert refusal(address="nowhere") == "address = nowhere: not HOST:PORT, such as 127.0.0.1:8000"
    assert os.listdir(tmp_path) == []


def test_a_setting_that_there_is_not_is_refused_with_the_one_to_use() -> None:
    # As zc.resumelb calls it.
    assert refusal(tracelog="trace.log") == "there is no setting tracelog; use trace_log"
    assert refusal(max_skil_age="1000") == "there is no setting max_skil_age; use max_skill_age"
    assert refusal(nosuch="1") == (
        "there is no setting nosuch; there are socket, address, mode, history, max_skill_age, resume_file, threads, "
        "version, trace_log, drain_timeout"
    )


def test_paste_deploy_shows_the_refusal(tmp_path: Path) -> None:
    (tmp_path / "paste_app.py").write_text("import applications\ndef make(conf):\n    return applications.plain\n")
    ini = tmp_path / "site.ini"
    for old, new, refused in (
        ("max_skill_age = 1000", "max_skill_age = banana", "max_skill_age = banana: not a number of requests"),
        ("trace_log", "tracelog", "there is no setting tracelog; use trace_log"),
    ):
        ini.write_text(INI.replace(old, new))
        with started(["-c", SERVE, str(ini)], tmp_path) as paste:
            assert paste.ended() == 1
            assert f"ValueError: {ini}: server of egg:sandarac-worker: {refused}" in paste.lines[-1]
    assert not (tmp_path / "worker-0.sock").exists()
