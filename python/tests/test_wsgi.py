"""The WSGI middleware, under our server and by itself."""

from __future__ import annotations

import io
import json
import threading
from pathlib import Path
from typing import Any
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator

import pytest

import applications
from sandarac_worker import Worker, WsgiMiddleware
from sandarac_worker.fields import parse_skills
from sandarac_worker.worker import settings_from
from sandarac_worker.wsgi import COUNTED_KEY
from support import BY, OTHER_BY, PATIENCE, Client, Clock, ask, serving, wait_for


def call(app: Any, **more: Any) -> tuple[str, list[tuple[str, str]], bytes]:
    """One request without a server."""
    environ: dict[str, Any] = {}
    setup_testing_defaults(environ)
    environ.update({"QUERY_STRING": "", "HTTP_REQUEST_CLASS": f'"a";by="{BY}"', **more})
    said: list[Any] = []

    def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        said[:] = [status, headers]
        return lambda data: None

    body = app(environ, start_response)
    try:
        data = b"".join(body)
    finally:
        if hasattr(body, "close"):
            body.close()
    return said[0], said[1], data


def test_responses_tell_of_the_worker_and_requests_earn(tmp_path: Path) -> None:
    worker = Worker(version="7")
    with serving(applications.plain, tmp_path, worker) as address, Client(address) as client:
        first = client.ask("/", "www.example.com")
        assert first.fields["worker-state"] == f'id="{worker.id}", rev=1, inflight=0, version="7"'
        assert "worker-skills" not in first.fields
        second = client.ask("/", "www.example.com", known=f"{worker.id}.1")
        assert second.state["rev"] == "2"
        score = parse_skills(second.fields["worker-skills"])[b"www.example.com"]
        assert score > 0
        document = client.resume()
        assert document.fields["cache-control"] == "no-store"
        assert document.fields["content-type"] == "application/json"
        whole = json.loads(document.body)
        skills, rev = whole.pop("skills"), whole.pop("rev")
        assert whole == {"id": worker.id, "by": BY, "version": "7", "inflight": 0, "history": 9999}
        assert document.fields["etag"] == f'"{worker.id}.{rev}"'
        assert list(skills) == ["www.example.com"]


def test_a_request_without_a_class_is_served_and_earns_nothing(tmp_path: Path) -> None:
    worker = Worker()
    with serving(applications.plain, tmp_path, worker) as address, Client(address) as client:
        response = client.ask("/")
        assert (response.status, response.body) == (200, b"hello\n")
        assert "worker-state" not in response.fields
        assert client.skills() == {}


def test_the_worker_alone_speaks_for_itself() -> None:
    theirs = [
        ("Worker-State", 'id="other", rev=9, inflight=0'),
        ("worker-skills", '"a";score=1000000000.0'),
        ("X", "y"),
    ]

    def app(environ: Any, start_response: Any) -> Any:
        start_response("200 OK", theirs)
        return [b"x"]

    worker = Worker()
    _, headers, _ = call(WsgiMiddleware(app, worker))
    assert headers == [("X", "y"), ("Worker-State", f'id="{worker.id}", rev=1, inflight=0')]
    assert call(WsgiMiddleware(app, worker), HTTP_REQUEST_CLASS="none")[1] == [("X", "y")]
    assert len(theirs) == 3


@pytest.mark.parametrize(
    "field",
    ["x", '"a"', f'"a";by="{BY}", "b";by="{BY}"', f'"{"a" * 257}";by="{BY}"', f'"a";by="{BY}";known="no"', "\xff", '"'],
)
def test_a_malformed_class_is_no_class(field: str, tmp_path: Path) -> None:
    worker = Worker()
    with serving(applications.plain, tmp_path, worker) as address, Client(address) as client:
        response = client.ask("/", fields=f"Request-Class: {field}\r\n")
        assert response.status == 200
        assert "worker-state" not in response.fields
        assert client.skills() == {}


def test_two_classes_in_two_lines_are_malformed(tmp_path: Path) -> None:
    with serving(applications.plain, tmp_path) as address:
        line = f'Request-Class: "a";by="{BY}"\r\n'
        assert "worker-state" not in ask(address, "/", fields=line + line).fields


@pytest.mark.parametrize("path", ["/status/500", "/status/503", "/raise", "/break", "/exit"])
def test_failed_requests_earn_nothing(path: str, tmp_path: Path) -> None:
    worker = Worker()
    with serving(applications.plain, tmp_path, worker) as address:
        with Client(address) as client:
            client.send(f'GET {path} HTTP/1.1\r\nHost: a\r\nRequest-Class: "a";by="{BY}"\r\n\r\n'.encode())
            client.more()
        wait_for(lambda: worker.inflight == 0, "the end of the request")
        with Client(address) as client:
            assert client.skills() == {}
            assert client.ask("/status/404", "a").status == 404
            assert "a" in client.skills()


def test_a_body_that_was_not_made_to_its_end_earns_nothing() -> None:
    worker = Worker()
    environ: dict[str, Any] = {"REQUEST_METHOD": "GET", "PATH_INFO": "/stream", "HTTP_REQUEST_CLASS": f'"a";by="{BY}"'}
    body = WsgiMiddleware(applications.plain, worker)(environ, lambda *_: lambda data: None)
    assert next(iter(body)) == b"0\n"
    body.close()  # type: ignore[attr-defined]
    assert (worker.inflight, worker.document(BY).skills) == (0, {})


BLOCKS: dict[str, Any] = {
    "str": ["text"],
    "tuple": ("text",),
    "mixed": [b"bytes", "text"],
    "bytearray": bytearray(b"bytes"),
    "bytes": b"bytes",
    "generator": None,
}


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("kind", BLOCKS)
def test_blocks_that_are_none_earn_nothing(kind: str, method: str, tmp_path: Path) -> None:
    def app(environ: Any, start_response: Any) -> Any:
        start_response("200 OK", [])
        return BLOCKS[kind] or iter(["text"])

    worker = Worker()
    with serving(app, tmp_path, worker) as address:
        with Client(address) as client:
            client.send(f'{method} / HTTP/1.0\r\nRequest-Class: "a";by="{BY}"\r\n\r\n'.encode())
            client.rest()
        wait_for(lambda: worker.inflight == 0, "the end of the request")
    assert worker.document(BY).skills == {}


@pytest.mark.parametrize("make", [list, iter, lambda blocks: blocks[0]], ids=["list", "iterator", "written"])
@pytest.mark.parametrize("counts", [True, False])
def test_a_body_shorter_than_announced_earns_nothing(make: Any, counts: bool) -> None:
    for length, skills in (("6", []), ("5", [b"a"]), ("x", [b"a"])):

        def app(environ: Any, start_response: Any, length: str = length) -> Any:
            write = start_response("200 OK", [("content-length", length)])
            body = make([b"he", b"llo"])
            if isinstance(body, bytes):
                write(b"hello")
                return []
            return body

        worker = Worker()
        call(WsgiMiddleware(app, worker), **({} if counts else {COUNTED_KEY: worker}))
        assert list(worker.document(BY).skills) == skills
        # To HEAD a length is that of another response.
        call(WsgiMiddleware(app, worker), REQUEST_METHOD="HEAD", HTTP_REQUEST_CLASS=f'"b";by="{BY}"')
        assert b"b" in worker.document(BY).skills


def test_a_list_is_made_before_any_of_it_is_sent() -> None:
    def app(environ: Any, start_response: Any) -> Any:
        start_response("200 OK", [])
        return [b"made"]

    worker = Worker()
    environ: dict[str, Any] = {"REQUEST_METHOD": "GET", "PATH_INFO": "/", "HTTP_REQUEST_CLASS": f'"a";by="{BY}"'}
    # Whoever asked has left.
    WsgiMiddleware(app, worker)(environ, lambda *_: lambda data: None).close()  # type: ignore[attr-defined]
    assert (worker.inflight, list(worker.document(BY).skills)) == (0, [b"a"])


def test_answers_without_a_body_earn_though_nobody_asks_for_it() -> None:
    for method, status in (("HEAD", "200 OK"), ("GET", "304 Not Modified"), ("GET", "204 No Content")):
        worker = Worker()

        def app(environ: Any, start_response: Any, status: str = status) -> Any:
            start_response(status, [])
            return iter([b""])

        environ: dict[str, Any] = {"REQUEST_METHOD": method, "PATH_INFO": "/", "HTTP_REQUEST_CLASS": f'"a";by="{BY}"'}
        WsgiMiddleware(app, worker)(environ, lambda *_: lambda data: None).close()  # type: ignore[attr-defined]
        assert list(worker.document(BY).skills) == [b"a"]


def test_time_is_the_applications_and_not_that_of_whoever_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, clock = Worker(), Clock()
    monkeypatch.setattr("sandarac_worker.wsgi.time", clock)
    ticks = iter(range(10))

    def app(environ: Any, start_response: Any) -> Any:
        clock.sleep(0.02)
        write = start_response("200 OK", [])
        write(b"slow to take")
        return (clock.sleep(0.01) or b"%d" % next(ticks) for _ in range(2))

    def slow_write(data: bytes) -> None:
        clock.sleep(0.3)

    environ: dict[str, Any] = {"REQUEST_METHOD": "GET", "PATH_INFO": "/", "HTTP_REQUEST_CLASS": f'"a";by="{BY}"'}
    body = WsgiMiddleware(app, worker)(environ, lambda *_: slow_write)
    for _ in body:
        clock.sleep(0.15)
    body.close()  # type: ignore[attr-defined]
    assert 1 / worker.document(BY).skills[b"a"] == pytest.approx(0.04, rel=1e-3)


def state(worker: Worker, rev: int) -> dict[str, str]:
    """What ``Worker-State`` says of a worker that has nothing to do."""
    return {"id": f'"{worker.id}"', "rev": str(rev), "inflight": "0", "version": f'"{worker.version}"'}


def test_the_whole_resume_has_an_entity_tag_and_says_who_gives_it(tmp_path: Path) -> None:
    worker = Worker(version="17")
    with serving(applications.plain, tmp_path, worker) as address, Client(address) as client:
        whole = client.resume()
        tag = whole.fields["etag"]
        assert whole.state == state(worker, 1)
        for tags in (tag, f"W/{tag}", f'"other", {tag}', "*"):
            again = client.resume(fields=f"If-None-Match: {tags}\r\n")
            assert (again.status, again.body, again.fields["etag"]) == (304, b"", tag)
            assert again.state == whole.state
        client.ask("/", "a")
        wait_for(lambda: client.resume(fields=f"If-None-Match: {tag}\r\n").status == 200, "a new résumé")
        head = client.ask(f"/.well-known/worker-resume?by={BY}", method="HEAD")
        assert (head.status, head.fields["etag"], head.state) == (200, f'"{worker.id}.2"', state(worker, 2))
        assert client.ask(f"/.well-known/worker-resume?by={BY}", method="POST", body=b"x").status == 405
        for query in ("", "?by=", "?by=xyz", f"?by={BY.upper()}", f"?by={BY}&by={BY}"):
            problem = client.ask(f"/.well-known/worker-resume{query}")
            assert (problem.status, list(json.loads(problem.body))) == (400, ["error"])
        assert client.ask(f"/.well-known/worker-resume?x=1&by={BY}&y").status == 200


def test_the_application_never_sees_the_resource() -> None:
    def app(environ: Any, start_response: Any) -> Any:
        raise AssertionError

    worker = Worker()
    for mounted in ({}, {"SCRIPT_NAME": "/.well-known", "PATH_INFO": "/worker-resume"}):
        environ = {"PATH_INFO": "/.well-known/worker-resume", "QUERY_STRING": f"by={BY}", **mounted}
        status, _, body = call(WsgiMiddleware(app, worker), **environ)
        assert (status, json.loads(body)["id"]) == ("200 OK", worker.id)


def test_balancers_are_told_what_each_of_them_does_not_know(tmp_path: Path) -> None:
    worker = Worker(history=1)
    with serving(applications.plain, tmp_path, worker) as address, Client(address) as one, Client(address) as two:
        one.ask("/", "a")
        one.ask("/", "b")
        wait_for(lambda: len(two.skills()) == 2, "both to be earned")
        behind = worker.document(BY).rev - 1
        told = two.ask("/", "c", known=f"{worker.id}.{behind}")
        assert list(parse_skills(told.fields["worker-skills"])) == [b"b"]
        told = one.ask("/", "c", known=f"{worker.id}.{behind - 1}")
        assert {b"a", b"b"} <= set(parse_skills(told.fields["worker-skills"]))
        # Of another instance, or of a revision that has not been, nothing can be told but the present state.
        for known in ("another.1", f"{worker.id}.99999"):
            told = one.ask("/", "c", known=known)
            assert "worker-state" in told.fields
            assert "worker-skills" not in told.fields


def test_a_changed_classifier_starts_afresh(tmp_path: Path) -> None:
    worker = Worker()
    with serving(applications.plain, tmp_path, worker) as address, Client(address) as client:
        for _ in range(5):
            client.ask("/", "a")
        assert client.ask("/", "a", by=OTHER_BY, known=f"{worker.id}.2").state["rev"] == "1"
        wait_for(lambda: list(client.skills(OTHER_BY)) == ["a"], "a new résumé")
        assert list(client.skills(BY)) == ["a"]


def test_what_is_in_flight_counts_over_all_balancers(tmp_path: Path) -> None:
    worker = Worker()
    inside, opened = applications.gate("inflight")
    with serving(applications.plain, tmp_path, worker) as address, Client(address) as busy, Client(address) as other:
        with Client(address) as third:
            busy.send(f'GET /gate/inflight HTTP/1.1\r\nHost: a\r\nRequest-Class: "a";by="{BY}"\r\n\r\n'.encode())
            assert inside.wait(PATIENCE)
            third.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            # The résumé is answered though the one application thread is taken.
            wait_for(lambda: json.loads(other.resume().body)["inflight"] == 2, "two in flight")
            opened.set()
            assert busy.read().state["inflight"] == "1"
            third.read()
        wait_for(lambda: worker.inflight == 0, "none in flight")
        assert other.ask("/", "a").state["inflight"] == "0"


def test_many_threads_lose_no_count() -> None:
    worker = Worker(history=100_000)
    app = WsgiMiddleware(applications.plain, worker)

    def run() -> None:
        for number in range(300):
            environ: dict[str, Any] = {
                "REQUEST_METHOD": "GET",
                "PATH_INFO": "/raise" if number % 3 == 0 else "/",
                "HTTP_REQUEST_CLASS": f'"{number % 7}";by="{BY}"',
            }
            try:
                body = app(environ, lambda *_: lambda data: None)
            except RuntimeError:
                continue
            list(body)
            body.close()  # type: ignore[attr-defined]

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert worker.inflight == 0
    assert worker._resumes.get(BY)._generation == 8 * 200
    assert len(worker.document(BY).skills) == 7


def test_one_request_through_two_middlewares_is_earned_once() -> None:
    worker = Worker(history=1)
    inner = WsgiMiddleware(applications.plain, worker)
    _, headers, _ = call(WsgiMiddleware(inner, worker))
    assert [name for name, _ in headers].count("Worker-State") == 1
    assert worker._resumes.get(BY)._generation == 1
    assert worker.inflight == 0


def test_what_passes_through_is_valid_wsgi() -> None:
    def app(environ: Any, start_response: Any) -> Any:
        environ["wsgi.input"].read(10)
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [b"hello"]

    status, headers, body = call(
        validator(WsgiMiddleware(validator(app), Worker())),
        **{"wsgi.input": io.BytesIO(b""), "wsgi.errors": io.StringIO()},
    )
    assert (status, body) == ("200 OK", b"hello")
    assert [name for name, _ in headers] == ["Content-Type", "Worker-State"]


def test_the_length_of_a_list_is_seen_through_the_middleware() -> None:
    worker = Worker()
    environ: dict[str, Any] = {"REQUEST_METHOD": "GET", "PATH_INFO": "/"}
    body = WsgiMiddleware(applications.plain, worker)(environ, lambda *_: lambda data: None)
    assert len(body) == 1  # type: ignore[arg-type]
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/stream"}
    assert not hasattr(WsgiMiddleware(applications.plain, worker)(environ, lambda *_: lambda data: None), "__len__")


def test_a_worker_says_how_many_requests_it_works_on(tmp_path: Path) -> None:
    for threads, said in ((1, None), (4, "4")):
        directory = tmp_path / str(threads)
        directory.mkdir()
        with serving(applications.plain, directory, threads=threads) as address, Client(address) as client:
            assert client.ask("/", "a").state.get("concurrency") == said
            assert client.resume().state.get("concurrency") == said


@pytest.mark.parametrize("make", [applications.flask, applications.django], ids=["flask", "django"])
def test_real_frameworks(make: Any, tmp_path: Path) -> None:
    worker = Worker(history=1, max_skill_age=100)
    with serving(make(), tmp_path, worker, threads=2) as address, Client(address) as client:
        assert client.ask("/", "www.example.com").text == "www.example.com GET 0"
        assert client.ask("/", "www.example.com", method="POST", body=b"x" * 1000).text == "www.example.com POST 1000"
        streamed = client.ask("/stream", "other")
        assert (streamed.text, streamed.fields["transfer-encoding"]) == ("ab", "chunked")
        assert client.ask("/", "third", method="HEAD").body == b""
        assert client.ask("/fail", "failing").status == 500
        assert client.ask("/missing", "missing").status == 404
        wait_for(lambda: set(client.skills()) == {"www.example.com", "other", "third", "missing"}, "all to be earned")


def test_a_setting_of_the_environment_that_is_none_is_refused_with_its_variable_and_what_is_wanted() -> None:
    wanted = {
        "SANDARAC_HISTORY = 1e4": "a number of requests, at least 1, such as 9999",
        "SANDARAC_MAX_SKILL_AGE = banana": "a number of requests, at least 1; leave it out for 10 × history",
        "SANDARAC_VERSION = é": "1 to 128 characters of ASCII, none of them a control character",
    }
    for setting, instead in wanted.items():
        with pytest.raises(ValueError, match=r".") as error:
            settings_from(dict([setting.split(" = ")]))
        assert str(error.value) == f"{setting}: not {instead}"
    given = {"SANDARAC_HISTORY": "100", "SANDARAC_MAX_SKILL_AGE": "", "SANDARAC_RESUME_FILE": "r", "PATH": "/bin"}
    assert settings_from(given) == {"history": 100, "resume_file": "r"}
