"""Both ends make the same of the same bytes."""

from __future__ import annotations

import random
from typing import Any

import pytest

from sandarac_worker import Worker, WsgiMiddleware
from sandarac_worker.document import Document
from sandarac_worker.fields import (
    Known,
    Malformed,
    RequestClass,
    WorkerState,
    class_key,
    class_of_key,
    parse_skills,
    serialize_skills,
)
from sandarac_worker.resume import Settings
from sandarac_worker.resumes import Resumes
from support import vectors


def cases(name: str) -> Any:
    return pytest.mark.parametrize("case", vectors(name), ids=lambda case: case["name"])


def refused(case: dict[str, Any], read: Any) -> bool:
    if "refused" not in case:
        return False
    with pytest.raises(Malformed) as error:
        read()
    assert error.value.reason == case["refused"]
    return True


@cases("request-class.json")
def test_request_class(case: dict[str, Any]) -> None:
    if refused(case, lambda: RequestClass.parse(case["field"])):
        return
    means = case["means"]
    known = Known(means["known"]["id"], means["known"]["rev"]) if means["known"] else None
    meant = RequestClass(class_of_key(means["class"]), means["by"], known)
    assert RequestClass.parse(case["field"]) == meant
    assert RequestClass.parse(meant.serialize()) == meant
    assert class_key(meant.name) == means["class"]
    if case.get("canonical"):
        assert meant.serialize() == case["field"]


@cases("worker-state.json")
def test_worker_state(case: dict[str, Any]) -> None:
    if refused(case, lambda: WorkerState.parse(case["field"])):
        return
    meant = WorkerState(**case["means"])
    assert WorkerState.parse(case["field"]) == meant
    assert WorkerState.parse(meant.serialize()) == meant
    if case.get("canonical"):
        assert meant.serialize() == case["field"]


@cases("worker-skills.json")
def test_worker_skills(case: dict[str, Any]) -> None:
    if refused(case, lambda: parse_skills(case["field"])):
        return
    meant = {class_of_key(key): score for key, score in case["means"].items()}
    assert parse_skills(case["field"]) == meant
    assert parse_skills(serialize_skills(meant) or "") == meant
    if case.get("canonical"):
        assert serialize_skills(meant) == case["field"]


@cases("documents.json")
def test_document(case: dict[str, Any]) -> None:
    body = case["document"].encode("utf-8")
    if refused(case, lambda: Document.parse(body)):
        return
    means = dict(case["means"])
    means["skills"] = {class_of_key(key): score for key, score in means["skills"].items()}
    meant = Document(**means)
    assert Document.parse(body) == meant
    assert Document.parse(meant.serialize()) == meant
    if case.get("canonical"):
        assert meant.serialize() == body


@cases("sequences.json")
def test_sequence(case: dict[str, Any]) -> None:
    worker = Worker(history=case["history"], max_skill_age=case.get("max_skill_age"))
    for step in case["steps"]:
        if "request" in step:
            play(worker, step["request"])
        elif "whole" in step:
            whole = step["whole"]
            document = worker.document(whole["by"])
            skills = {class_key(name): score for name, score in document.skills.items()}
            assert (document.rev, skills) == (whole["rev"], pytest.approx(whole["skills"], rel=1e-6))
        else:
            since = step["since"]
            worker.begin()
            fields = dict(worker.fields(RequestClass(b"any", since["by"], Known(worker.id, since["known"]))))
            worker.end()
            told = parse_skills(fields.get("Worker-Skills", ""))
            assert told == pytest.approx(parse_skills(since["field"] or ""), rel=1e-6)


def play(worker: Worker, request: dict[str, Any]) -> None:
    """A request through the middleware, the time it took put in by hand."""
    asked = RequestClass(class_of_key(request["class"]), request["by"])
    status = request.get("status", 200)

    def app(environ: Any, start_response: Any) -> list[bytes]:
        start_response(f"{status} Whatever", [])
        return [b"x"]

    timed: list[float] = []
    earn = worker.earn
    worker.earn = lambda asked, seconds: timed.append(seconds)  # type: ignore[method-assign]
    try:
        environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/", "HTTP_REQUEST_CLASS": asked.serialize()}
        body = WsgiMiddleware(app, worker)(environ, lambda *_: lambda data: None)
        assert list(body) == [b"x"]
        body.close()  # type: ignore[attr-defined]
    finally:
        worker.earn = earn  # type: ignore[method-assign]
    assert len(timed) == (status < 500)
    for _ in timed:
        worker.earn(asked, request["seconds"])


def test_a_resume_read_back_is_the_one_that_was_written() -> None:
    for case in vectors("sequences.json"):
        settings = Settings(case["history"], case.get("max_skill_age"))
        first = Resumes(settings)
        for step in case["steps"]:
            if "request" in step and step["request"].get("status", 200) < 500:
                request = step["request"]
                first.get(request["by"]).earn(class_of_key(request["class"]), request["seconds"])
        second = Resumes(settings)
        second.load(first.dump())
        third = Resumes(settings)
        third.load(second.dump())
        assert second.dump() == third.dump()


def test_no_bytes_break_a_reader() -> None:
    chance = random.Random(20261121)
    readers = (
        ("request-class.json", "field", RequestClass.parse),
        ("worker-state.json", "field", WorkerState.parse),
        ("worker-skills.json", "field", parse_skills),
        ("documents.json", "document", lambda text: Document.parse(text.encode("utf-8"))),
    )
    for name, key, read in readers:
        texts = [case[key] for case in vectors(name) if 0 < len(case[key]) < 1000]
        for _ in range(3000):
            text = list(chance.choice(texts))
            for _ in range(chance.randint(1, 4)):
                at = chance.randrange(len(text) + 1)
                text[at : at + chance.randint(0, 3)] = chance.choice(' ";:,=()?@%*\\-.09aZ\u00ff\t{}[]')
            try:
                read("".join(text))  # type: ignore[operator]
            except Malformed as error:
                assert error.reason  # noqa: PT017 -- most of them are refused, some are not
