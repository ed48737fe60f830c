"""PEP 3333, from the application's side and from the wire's."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any
from wsgiref.validate import validator

import pytest

from support import PATIENCE, Client, serving


def exchange(app: Any, directory: Path, request: bytes = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n") -> bytes:
    """All bytes of one response, over a connection that is closed behind it."""
    with serving(app, directory) as address, Client(address) as client:
        client.send(request.replace(b"\r\nHost", b"\r\nConnection: close\r\nHost"))
        return client.rest()


def without_date(response: bytes) -> bytes:
    head, _, body = response.partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.startswith(b"Date: ")]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def answering(status: str, headers: list[tuple[str, str]], body: Any) -> Any:
    def app(environ: Any, start_response: Any) -> Any:
        start_response(status, headers)
        return body

    return app


@pytest.mark.parametrize(
    ("app", "response"),
    [
        (
            answering("200 OK", [("X-Y", "z")], [b"hello"]),
            b"HTTP/1.1 200 OK\r\nX-Y: z\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
        ),
        (answering("200", [], []), b"HTTP/1.1 200 \r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
        (
            answering("200 OK", [], [b"ab", b"", b"c"]),
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
        ),
        (
            answering("200 OK", [("content-length", "3")], iter([b"ab", b"c"])),
            b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc",
        ),
        (
            answering("204 No Content", [("Content-Length", "3")], [b"abc"]),
            b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
        ),
        (
            answering("304 Not Modified", [("Content-Length", "3")], []),
            b"HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\nConnection: close\r\n\r\n",
        ),
        # Of the connection, which is not the application's.
        (
            answering("200 OK", [("Connection", "keep-alive"), ("Transfer-Encoding", "chunked")], [b"a"]),
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\na",
        ),
        # More than announced is cut off; with less, the connection says that something is missing.
        (
            answering("200 OK", [("Content-Length", "2")], [b"a", b"bc", b"d"]),
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nab",
        ),
        (
            answering("200 OK", [("Content-Length", "3")], [b"a"]),
            b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\na",
        ),
    ],
)
def test_responses_on_the_wire(app: Any, response: bytes, tmp_path: Path) -> None:
    assert without_date(exchange(app, tmp_path)) == response


def test_what_was_announced_wrongly_closes_the_connection(tmp_path: Path) -> None:
    for body in ([b"abcd"], [b"ab"]):
        with serving(answering("200 OK", [("Content-Length", "3")], body), tmp_path) as address:
            with Client(address) as client:
                client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                assert client.rest().endswith(b"\r\n\r\n" + body[0][:3])


def test_head_has_no_body_and_no_length_that_was_made_up(tmp_path: Path) -> None:
    head = b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"
    app = answering("200 OK", [], (b"x" for _ in range(3)))
    assert without_date(exchange(app, tmp_path, head)) == b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
    app = answering("200 OK", [], [])
    assert b"Content-Length" not in exchange(app, tmp_path, head)
    app = answering("200 OK", [("Content-Length", "9")], [])
    assert b"Content-Length: 9\r\n" in exchange(app, tmp_path, head)


def test_http_1_0_gets_no_chunks(tmp_path: Path) -> None:
    response = exchange(answering("200 OK", [], [b"a", b"b"]), tmp_path, b"GET / HTTP/1.0\r\n\r\n")
    assert without_date(response) == b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nab"


FAILED = b"HTTP/1.1 500 Internal Server Error\r\nContent-Type: text/plain\r\nContent-Length: 22\r\n"


@pytest.mark.parametrize(
    "app",
    [
        answering("200 OK\r\nX: y", [], []),
        answering("100 Continue", [], []),
        answering("OK", [], []),
        answering("200 OK", [("X Y", "z")], []),
        answering("200 OK", [("X", "y\r\nZ: w")], []),
        answering("200 OK", [("X", "€")], []),
        answering("200 OK", [("X", 5)], []),  # type: ignore[list-item]
        answering("200 OK", [("Content-Length", "+3")], []),
        answering("200 OK", [("Content-Length", "3"), ("Content-Length", "4")], []),
        answering("200 OK", [], ["text"]),
        answering("200 OK", [], None),
        lambda environ, start_response: [],
        lambda environ, start_response: [b"x"],
        lambda environ, start_response: start_response("200 OK", []) and start_response("200 OK", []),
    ],
)
def test_an_application_that_breaks_the_rules_has_failed(app: Any, tmp_path: Path) -> None:
    with serving(app, tmp_path) as address, Client(address) as client:
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        response = client.read()
        assert (response.status, response.body) == (500, b"Internal Server Error\n")
        # It has failed the request, not the connection.
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert client.read().status == 500


def test_the_write_callable(tmp_path: Path) -> None:
    def app(environ: Any, start_response: Any) -> Any:
        write = start_response("200 OK", [("Content-Length", "6")])
        write(b"ab")
        write(b"cd")
        return [b"ef"]

    assert exchange(app, tmp_path).endswith(b"\r\n\r\nabcdef")


def test_an_error_before_anything_was_sent_changes_the_answer(tmp_path: Path) -> None:
    def app(environ: Any, start_response: Any) -> Any:
        start_response("200 OK", [("X", "first")])
        try:
            raise ValueError("on purpose")
        except ValueError as error:
            start_response("502 Worse", [("X", "second")], (ValueError, error, error.__traceback__))
        yield b""
        yield b"sorry"

    response = exchange(app, tmp_path)
    assert response.startswith(b"HTTP/1.1 502 Worse\r\nX: second\r\n")
    assert response.endswith(b"\r\n\r\n5\r\nsorry\r\n0\r\n\r\n")


def test_an_error_after_something_was_sent_is_raised_and_ends_the_connection(tmp_path: Path) -> None:
    raised = []

    def app(environ: Any, start_response: Any) -> Any:
        start_response("200 OK", [])
        yield b"half"
        try:
            raise ValueError("on purpose")
        except ValueError as error:
            try:
                start_response("500 No", [], (ValueError, error, error.__traceback__))
            except ValueError as again:
                raised.append(again is error)
                raise

    with serving(app, tmp_path) as address, Client(address) as client:
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert client.rest().endswith(b"\r\n\r\n4\r\nhalf\r\n")
    assert raised == [True]


def test_an_iterable_is_closed_whatever_becomes_of_it(tmp_path: Path) -> None:
    closed = []

    class Body:
        def __init__(self, parts: list[Any]) -> None:
            self.parts = iter(parts)

        def __iter__(self) -> Any:
            return self

        def __next__(self) -> Any:
            part = next(self.parts)
            if part is None:
                raise RuntimeError("on purpose")
            return part

        def close(self) -> None:
            closed.append(True)

    for parts in ([b"a"], [b"a", None], [None], ["text"]):
        exchange(answering("200 OK", [], Body(parts)), tmp_path)
    assert closed == [True] * 4


def test_blocks_are_sent_as_they_are_made(tmp_path: Path) -> None:
    import applications

    _, opened = applications.gate("blocks")

    def app(environ: Any, start_response: Any) -> Any:
        start_response("200 OK", [])
        yield b"first"
        assert opened.wait(PATIENCE)
        yield b"second"

    with serving(app, tmp_path) as address, Client(address) as client:
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert client.until(b"first\r\n").endswith(b"\r\n\r\n5\r\n")
        opened.set()
        assert client.until(b"0\r\n\r\n") == b"6\r\nsecond\r\n"


def test_files_go_through_the_wrapper(tmp_path: Path) -> None:
    data = bytes(range(256)) * 1000
    closed = []

    class File(io.BytesIO):
        def close(self) -> None:
            closed.append(True)
            super().close()

    def app(environ: Any, start_response: Any) -> Any:
        start_response("200 OK", [("Content-Length", str(len(data)))])
        return environ["wsgi.file_wrapper"](File(data), 8192)

    with serving(app, tmp_path) as address, Client(address) as client:
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert client.read().body == data
    assert closed


def seen(directory: Path, request: bytes, threads: int = 1) -> dict[str, Any]:
    environs: list[dict[str, Any]] = []

    def app(environ: Any, start_response: Any) -> Any:
        environs.append({**environ, "read": environ["wsgi.input"].read()})
        start_response("200 OK", [])
        return [b"x"]

    with serving(app, directory, threads=threads) as address, Client(address) as client:
        client.send(request)
        assert client.read().status == 200
    return environs[0]


def test_the_environ(tmp_path: Path) -> None:
    environ = seen(
        tmp_path,
        b"POST /caf%C3%A9/a%2Fb?x=%20&y HTTP/1.1\r\nHost: www.example.com:8080\r\nContent-Type: text/plain\r\n"
        b"Content-Length: 5\r\nCookie: a=1\r\nCookie: b=2\r\nAccept: x\r\nAccept: y\r\nX-Trusted: yes\r\n"
        b"X_Trusted: no\r\nProxy: evil\r\nX-Latin: caf\xe9\r\n\r\nhello",
        threads=2,
    )
    expected = {
        "REQUEST_METHOD": "POST",
        "SCRIPT_NAME": "",
        "PATH_INFO": "/cafÃ©/a/b",
        "QUERY_STRING": "x=%20&y",
        "REQUEST_URI": "/caf%C3%A9/a%2Fb?x=%20&y",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "SERVER_NAME": "www.example.com",
        "SERVER_PORT": "8080",
        "CONTENT_TYPE": "text/plain",
        "CONTENT_LENGTH": "5",
        "HTTP_HOST": "www.example.com:8080",
        "HTTP_COOKIE": "a=1; b=2",
        "HTTP_ACCEPT": "x, y",
        "HTTP_X_TRUSTED": "yes",
        "HTTP_X_LATIN": "caf\xe9",
        "REMOTE_ADDR": "",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        "read": b"hello",
    }
    assert {key: environ.get(key) for key in expected} == expected
    assert not [key for key in environ if "PROXY" in key or ("CONTENT" in key and key.startswith("HTTP"))]


def test_a_body_in_chunks_has_its_length_in_the_environ(tmp_path: Path) -> None:
    environ = seen(
        tmp_path,
        b"POST / HTTP/1.1\r\nHost: [::1]\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
    )
    assert (environ["CONTENT_LENGTH"], environ["read"]) == ("5", b"abcde")
    assert "HTTP_TRANSFER_ENCODING" not in environ
    assert (environ["SERVER_NAME"], environ["SERVER_PORT"]) == ("[::1]", "80")
    assert environ["wsgi.multithread"] is False


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS"])
def test_the_server_passes_the_validator(method: str, tmp_path: Path) -> None:
    def app(environ: Any, start_response: Any) -> Any:
        while environ["wsgi.input"].readline(10):
            pass
        environ["wsgi.errors"].flush()
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [b"ab", b"cd"]

    target = b"*" if method == "OPTIONS" else b"/x?y"
    body = b"Content-Length: 30\r\n\r\n" + b"line\n" * 6 if method == "POST" else b"\r\n"
    with serving(validator(app), tmp_path) as address, Client(address) as client:
        for _ in range(3):
            client.send(method.encode() + b" " + target + b" HTTP/1.1\r\nHost: a\r\n" + body)
            assert client.read(method).status == 200
