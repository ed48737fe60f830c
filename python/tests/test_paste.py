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


def test_settings_that_are_none_are_refused(tmp_path: Path) -> None:
    for settings in ({"history": "many"}, {"address": "nowhere"}, {"mode": "rw"}, {"threads": "0"}):
        where = {} if "address" in settings else {"socket": f"{tmp_path}/s"}
        with pytest.raises(ValueError, match=r"."):
            server_runner(lambda environ, start: [], {}, **where, **settings)
    with pytest.raises(TypeError):
        server_runner(lambda environ, start: [], {}, nosuch="1")  # type: ignore[call-arg]
    assert os.listdir(tmp_path) == []
