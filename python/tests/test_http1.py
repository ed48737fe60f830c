"""Reading requests: the vectors that the balancer's own codec is held to, and what is this reader's own."""

from __future__ import annotations

import random
import re

import pytest

from sandarac_worker.gateway import make_environ
from sandarac_worker.http1 import Continue, Event, Limits, Refused, Request, RequestReader
from support import VECTORS

SMALL = Limits(request_line=200, head=1000, fields=10, body=1000, memory=100, chunk_line=50, trailers=100)


def read(data: bytes, limits: Limits = SMALL, step: int | None = None) -> list[Event]:
    """All events of some bytes, fed at once or in steps."""
    reader = RequestReader(limits)
    events: list[Event] = []
    for start in range(0, len(data), step or max(len(data), 1)):
        reader.feed(data[start : start + step] if step else data)
        while event := reader.next():
            events.append(event)
    return events


def requests(data: bytes, limits: Limits = SMALL, step: int | None = None) -> list[Request]:
    return [event for event in read(data, limits, step) if isinstance(event, Request)]


def unescape(text: str) -> bytes:
    data = text.encode("latin-1")
    data = re.sub(rb"\\\{(.*?)\*(\d+)\}", lambda found: found[1] * int(found[2]), data)
    plain = {b"r": b"\r", b"n": b"\n", b"t": b"\t", b"\\": b"\\"}
    return re.sub(
        rb"\\(x[0-9A-Fa-f]{2}|.)",
        lambda found: plain.get(found[1]) or bytes([int(found[1][1:], 16)]),
        data,
    )


def smuggling() -> list[tuple[str, int, bytes]]:
    cases = []
    for block in (VECTORS / "smuggling" / "requests.txt").read_text("utf-8").split("\n## ")[1:]:
        name, refusal, _, *lines = block.split("\n")
        if name == "host-empty":
            # The balancer sends it itself, for a client of HTTP/1.0 that names no host.
            continue
        status = re.search(r" (\d{3}):", refusal)
        assert status is not None
        data = unescape("".join(lines))
        if name == "target-without-end":
            # The balancer measures the target, this reader the line.
            data += b"a" * len(" HTTP/1.1\r\n")
        # A version written oddly is none here.
        cases.append((name, 400 if name in ("version-leading-zero", "version-3") else int(status[1]), data))
    assert len(cases) > 200
    return cases


#: What the balancer is held to. A worker's own limits are wider, for the balancer adds fields.
BALANCER = Limits(request_line=8192 + len("GET  HTTP/1.1"), head=32 * 1024, fields=100)


@pytest.mark.parametrize(
    ("name", "status", "data"), smuggling(), ids=lambda part: part if isinstance(part, str) else ""
)
def test_what_the_balancer_refuses_is_refused_here(name: str, status: int, data: bytes) -> None:
    with pytest.raises(Refused) as whole:
        requests(data, BALANCER)
    with pytest.raises(Refused) as bytewise:
        requests(data, BALANCER, step=1 if len(data) < 5000 else 1000)
    assert whole.value.status == status
    assert bytewise.value.status == status


def test_a_request_is_read_whichever_way_it_comes() -> None:
    data = (
        b"\r\nPOST /a%20b?c=d HTTP/1.1\r\nHost: www.example.com:80\r\nX-Empty:\r\nX-Two: 1 \r\nx-two:\t2\r\n"
        b"Content-Length: 5\r\n\r\nhello"
        b"GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n"
    )
    for step in (None, 1, 2, 7):
        first, second = requests(data, step=step)
        assert (first.method, first.target, first.minor, first.keep_alive) == ("POST", b"/a%20b?c=d", 1, True)
        assert first.fields[1:4] == [(b"x-empty", b""), (b"x-two", b"1"), (b"x-two", b"2")]
        assert (first.body.read(), first.body_length) == (b"hello", 5)
        assert (second.keep_alive, second.body.read()) == (False, b"")


def test_chunks_become_a_body() -> None:
    data = (
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n"
        b'5;name=value;n="q\\"uoted"\r\nhello\r\n00A\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n'
        b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n"
    )
    for step in (None, 1, 3):
        first, second = requests(data, step=step)
        assert first.body.read() == b"hello0123456789"
        assert second.target == b"/next"


def test_a_long_body_goes_to_a_file() -> None:
    length = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\n" + b"x" * 900
    chunks = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + b"64\r\n%b\r\n" % (b"x" * 100) * 9
    for data in (length, chunks + b"0\r\n\r\n"):
        (request,) = requests(data, step=33)
        assert request.body.fileno() >= 0
        assert request.body.read() == b"x" * 900
        request.body.close()


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET /" + b"x" * 200 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414),
        (b"GET /" + b"x" * 300, 414),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 1000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 1000, 431),
        (b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 10 + b"\r\n", 431),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n", 413),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1f4\r\n" + b"x" * 500 + b"\r\n1f5\r\n", 413),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;" + b"x" * 60 + b"\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;" + b"x" * 60, 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: " + b"x" * 100, 431),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: y\r\n" * 30, 431),
        (b"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET a HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET http:/// HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /#x HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
    ],
)
def test_what_goes_beyond_is_refused(data: bytes, status: int) -> None:
    for step in (None, 1):
        with pytest.raises(Refused) as refused:
            requests(data, step=step)
        assert refused.value.status == status


def test_an_unended_stream_of_bytes_is_refused_before_it_fills_memory() -> None:
    for start in (b"", b"GET / HTTP/1.1\r\n", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"):
        reader = RequestReader(SMALL)
        reader.feed(start)
        assert reader.next() is None

        def feed(reader: RequestReader = reader) -> None:
            for _ in range(2000):
                reader.feed(b"1")
                reader.next()

        with pytest.raises(Refused):
            feed()


def test_the_absolute_form_names_the_host() -> None:
    (request,) = requests(b"GET http://real/path?q HTTP/1.1\r\nHost: other\r\n\r\n")
    assert (request.target, request.fields) == (b"/path?q", [(b"host", b"real")])
    (request,) = requests(b"GET HTTPS://real:443?q HTTP/1.1\r\nHost: other\r\n\r\n")
    assert request.target == b"/?q"
    (request,) = requests(b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n")
    assert request.target == b"*"


def test_who_waits_for_a_word_before_the_body_gets_it() -> None:
    head = b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 5\r\n\r\n"
    reader = RequestReader(SMALL)
    reader.feed(head)
    assert isinstance(reader.next(), Continue)
    assert reader.next() is None
    reader.feed(b"hello")
    request = reader.next()
    assert isinstance(request, Request)
    assert request.body.read() == b"hello"
    # Not who does not wait, nor who has nothing to send, nor HTTP/1.0, which knows no such thing.
    old = b"POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"
    assert [type(event) for event in read(head + b"h")] == []
    assert [type(event) for event in read(head.replace(b"5", b"0"))] == [Request]
    assert [type(event) for event in read(old)] == []


def test_http_1_0_is_answered_once() -> None:
    (request,) = requests(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
    assert (request.minor, request.keep_alive) == (0, False)


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_an_empty_host_is_none(version: bytes) -> None:
    (request,) = requests(b"GET / HTTP/%b\r\nHost: \r\n\r\n" % version)
    assert request.fields == [(b"host", b"")]
    environ = make_environ(request, {})
    assert "HTTP_HOST" not in environ
    assert (environ["SERVER_NAME"], environ["SERVER_PORT"]) == ("localhost", "80")


def test_no_bytes_are_read_in_two_ways_or_break_the_reader() -> None:
    chance = random.Random(20261121)
    cases = [data for _, _, data in smuggling() if len(data) < 2000]
    for _ in range(4000):
        data = bytearray(chance.choice(cases))
        for _ in range(chance.randint(0, 3)):
            at = chance.randrange(len(data))
            data[at : at + chance.randint(0, 2)] = chance.choice(
                (b"", b"\r", b"\n", b"\r\n", b":", b" ", b"0", b"\xff", b"a")
            )
        assert outcome(bytes(data), None) == outcome(bytes(data), chance.randint(1, 9))


def outcome(data: bytes, step: int | None) -> list[object]:
    """What was read of some bytes up to a refusal, and which that is."""
    reader = RequestReader(SMALL)
    read: list[object] = []
    try:
        for start in range(0, len(data), step or max(len(data), 1)):
            reader.feed(data[start : start + step] if step else data)
            while event := reader.next():
                if isinstance(event, Request):
                    read.append((event.method, event.target, event.fields, event.body.read()))
    except Refused:
        read.append("refused")
    return read
