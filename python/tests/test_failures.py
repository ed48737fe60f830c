"""What fails on the machine, as on a full disk, costs a request at most, and never a worker."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import applications
from sandarac_worker.http1 import Limits
from support import Client, serving

FULL = "/dev/full"


def nowhere(**_: Any) -> Any:
    raise FileNotFoundError("no usable temporary directory")


def full(**_: Any) -> Any:
    return open(FULL, "r+b")


@pytest.mark.parametrize("make", [nowhere, full])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_cannot_be_kept_ends_its_request_alone(
    make: Callable[..., Any],
    chunked: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(tempfile, "TemporaryFile", make)
    framing, body = ("Content-Length: 900", b"x" * 900)
    if chunked:
        framing, body = "Transfer-Encoding: chunked", b"384\r\n" + body + b"\r\n0\r\n\r\n"
    with serving(applications.plain, tmp_path, limits=Limits(memory=100)) as address, Client(address) as other:
        with Client(address) as client:
            client.send(f"POST /echo HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n".encode() + body)
            response = client.read()
            assert (response.status, response.fields["connection"]) == (507, "close")
            assert client.closed()
        assert other.ask("/echo", method="POST", body=b"short").body == b"short"
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "the body of a request cannot be kept"
    ]
