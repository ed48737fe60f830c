"""The résumé by itself: bookkeeping without a clock."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from sandarac_worker import Worker
from sandarac_worker.fields import Malformed, RequestClass
from sandarac_worker.resume import MAX_CHANGE_SETS, MAX_CHANGES, Resume, Settings
from sandarac_worker.resumes import Resumes, write_file
from support import BY, OTHER_BY, wait_for


def test_a_score_is_requests_per_second_over_recent_requests() -> None:
    resume = Resume(Settings(100))
    for _ in range(1000):
        resume.earn(b"a", 0.5)
    assert resume.scores == {b"a": 2.0}
    # A tenth of the history is not enough to forget, twice the history is.
    for _ in range(10):
        resume.earn(b"a", 0.01)
    assert resume.scores[b"a"] < 3
    for _ in range(190):
        resume.earn(b"a", 0.01)
    # The decayed mean: e⁻² of the old half seconds, the rest hundredths.
    assert resume.scores[b"a"] == pytest.approx(1 / (0.134 * 0.5 + 0.866 * 0.01), rel=0.01)


def test_more_classes_than_allowed_put_away_the_least_recently_used() -> None:
    resume = Resume(Settings(1, 10_000), max_classes=3)
    for name in (b"a", b"b", b"c", b"a", b"d"):
        resume.earn(name, 0.5)
    assert set(resume.scores) == {b"a", b"c", b"d"}
    assert resume.changes_since(4) == {b"b": 0.0, b"d": 2.0}


def test_a_class_is_dropped_that_was_not_seen_in_so_many_requests() -> None:
    for age in (1, 2, 3):
        resume = Resume(Settings(1, age))
        names = [b"a", b"b", b"c", b"d"]
        for name in names:
            resume.earn(name, 0.5)
        assert sorted(resume.scores) == names[-age:]


def test_a_class_for_every_request_does_not_grow_without_bound() -> None:
    resume = Resume(Settings(1_000_000), max_classes=50)
    for number in range(100_000):
        resume.earn(b"%d" % number, 0.5)
    assert len(resume._records) == 50
    assert len(resume._scores) + len(resume._touched) <= 150
    assert sum(len(changes) for changes in resume._changes) <= MAX_CHANGES


def test_change_sets_are_kept_for_a_while_only() -> None:
    resume = Resume(Settings(1, 1_000_000))
    for number in range(100):
        resume.earn(b"a", 1.0 + number % 2)
    assert resume.revision == 101
    assert resume.changes_since(101) == {}
    assert resume.changes_since(101 - MAX_CHANGE_SETS) == {b"a": 0.5}
    assert resume.changes_since(100 - MAX_CHANGE_SETS) is None
    assert resume.changes_since(102) is None


def test_a_change_too_large_to_tell_is_not_kept() -> None:
    resume = Resume(Settings(2000))
    for number in range(2000):
        resume.earn(b"%d" % number, 0.5)
    assert resume.changes_since(resume.revision - 1) is None
    for _ in range(2000):
        resume.earn(b"a", 0.5)
    assert resume.changes_since(resume.revision - 1) == {b"a": 2.0}


def test_settings_that_are_none_are_refused() -> None:
    for history, age in ((0, None), (-1, None), (10, 0)):
        with pytest.raises(ValueError, match="at least 1"):
            Settings(history, age)
    settings = Settings(10)
    with pytest.raises(ValueError, match="history"):
        settings.update(0)
    assert (settings.history, settings.max_skill_age) == (10, 100)
    settings.update(20)
    assert (settings.history, settings.max_skill_age) == (20, 200)


def test_what_is_read_back_weighs_what_it_weighed() -> None:
    # zc.resumelb gave a class read back `history` requests in the time of one: its score stayed inflated for long.
    before = Resumes(Settings(100))
    for _ in range(500):
        before.get(BY).earn(b"a", 0.5)
        before.get(BY).earn(b"b", 0.25)
    after = Resumes(Settings(100))
    after.load(before.dump())
    assert after.get(BY).scores == pytest.approx(before.get(BY).scores, rel=0.01)
    for resumes in (before, after):
        for _ in range(100):
            resumes.get(BY).earn(b"a", 0.125)
    assert after.get(BY).scores == pytest.approx(before.get(BY).scores, rel=0.05)


def test_a_rate_alone_weighs_a_full_history() -> None:
    resumes = Resumes(Settings(100))
    skills = {"a": 4.0, ":/w==:": [8.0, 1_000_000]}
    resumes.load(json.dumps({"format": "sandarac-resume-1", "resumes": [{"by": BY, "skills": skills}]}).encode())
    resume = resumes.get(BY)
    assert (resume.revision, resume.scores) == (1, {b"a": 4.0, b"\xff": 8.0})
    seeds = dict(resume.seeds())
    assert seeds[b"a"] == (100.0, 25.0)
    # Nor does anything weigh more than that, whatever the file says.
    assert seeds[b"\xff"] == (100.0, 12.5)


def test_the_file_keeps_the_resumes_of_both_classifiers() -> None:
    before = Resumes(Settings(10))
    before.get(BY).earn(b"a", 0.5)
    before.get(OTHER_BY).earn(b"b", 0.25)
    after = Resumes(Settings(10))
    after.load(before.dump())
    assert after.peek(BY).scores == {b"a": 2.0}
    assert after.peek(OTHER_BY).scores == {b"b": 4.0}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b"{}",
        b'{"format":"sandarac-resume-2","resumes":[]}',
        b'{"format":"sandarac-resume-1","resumes":{}}',
        b'{"format":"sandarac-resume-1","resumes":[1]}',
        b'{"format":"sandarac-resume-1","resumes":[{"by":"x","skills":{}}]}',
        b'{"format":"sandarac-resume-1","resumes":[{"by":"6f1c0a92d3b4e587","skills":{"a":-1}}]}',
        b'{"format":"sandarac-resume-1","resumes":[{"by":"6f1c0a92d3b4e587","skills":{"a":NaN}}]}',
        b'{"format":"sandarac-resume-1","resumes":[{"by":"6f1c0a92d3b4e587","skills":{"a":[1,0]}}]}',
        b'{"format":"sandarac-resume-1","resumes":[{"by":"6f1c0a92d3b4e587","skills":{"a":[1,1e999]}}]}',
        b'{"format":"sandarac-resume-1","resumes":[{"by":"6f1c0a92d3b4e587","skills":{"a":[1]}}]}',
        b'{"format":"sandarac-resume-1","resumes":[{"by":"6f1c0a92d3b4e587","skills":{"a":[1e9,1e-320]}}]}',
        b'{"format":"sandarac-resume-1","resumes":[{"by":"6f1c0a92d3b4e587","skills":{"a":[1,1%b]}}]}' % (b"0" * 400),
        b'{"format":"sandarac-resume-1","resumes":[{"by":"6f1c0a92d3b4e587","skills":{"a":1%b}}]}' % (b"0" * 400),
        b'{"format":"sandarac-resume-1","resumes":[{"by":"6f1c0a92d3b4e587","skills":{":a":1}}]}',
        b"\x80\x04\x95 marshal of old",
    ],
)
def test_a_file_that_is_none_is_not_used(body: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(Malformed):
        Resumes(Settings()).load(body)
    path = tmp_path / "resume.json"
    path.write_bytes(body)
    worker = Worker(resume_file=str(path))
    assert worker.document(BY).skills == {}
    assert "is not used" in caplog.text


def test_a_worker_writes_its_file_as_a_whole_and_reads_it_back(tmp_path: Path) -> None:
    path = tmp_path / "resume.json"
    first = Worker(resume_file=str(path))
    first.earn(RequestClass(b"a", BY), 0.5)
    wait_for(lambda: path.exists() and b'"a"' in path.read_bytes(), "the file")
    second = Worker(resume_file=str(path))
    assert second.id != first.id
    assert second.document(BY).skills == {b"a": 2.0}
    assert second.document(BY).rev == 1
    first.earn(RequestClass(b"b", BY), 0.5)
    first.stop_saving()
    path.unlink()
    first.save()
    first.earn(RequestClass(b"c", BY), 0.5)
    first.earn(RequestClass(b"d", BY), 0.5)
    first.save()
    assert not path.exists()
    assert [name for name in os.listdir(tmp_path) if name.endswith(".tmp")] == []


def test_a_file_that_cannot_be_written_is_told_and_leaves_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(OSError, match="directory"):
        write_file(str(tmp_path), b"x")
    assert os.listdir(tmp_path) == []
    worker = Worker(resume_file=str(tmp_path / "missing" / "resume.json"))
    worker.earn(RequestClass(b"a", BY), 0.5)
    worker.save()
    assert "cannot be written" in caplog.text
    assert worker.document(BY).skills == {b"a": 2.0}


def test_what_a_killed_writer_has_left_is_cleared_and_what_another_writes_is_not(tmp_path: Path) -> None:
    path = tmp_path / "resume.json"
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    kept = [f"resume.json.{os.getpid()}.tmp", "resume.json.x.tmp"]
    for name in (*kept, f"resume.json.{child}.tmp"):
        (tmp_path / name).touch()
    Worker(resume_file=str(path))
    assert sorted(os.listdir(tmp_path)) == sorted(kept)


def test_asking_for_a_resume_puts_none_away() -> None:
    resumes = Resumes(Settings())
    resumes.get(BY).earn(b"a", 0.5)
    for number in range(100):
        assert resumes.peek(f"{number:016x}").scores == {}
    assert resumes.get(BY).scores == {b"a": 2.0}


def test_revisions_of_an_instance_never_go_back() -> None:
    resumes = Resumes(Settings(1, 1000))
    told: dict[tuple[str, int], dict[bytes, float]] = {}
    latest: dict[str, int] = {}
    for number in range(60):
        by = f"{number * number % 5:016x}"
        resumes.get(by).earn(b"a", 1.0 + number % 2)
        for old in {by, *latest}:
            resume = resumes.peek(old)
            assert resume.revision >= latest.get(old, 1)
            # One revision, one résumé.
            assert told.setdefault((old, resume.revision), dict(resume.scores)) == resume.scores
            latest[old] = resume.revision
    assert len(latest) == 3


def test_a_forked_process_is_another_worker() -> None:
    worker = Worker()
    worker.begin()
    worker.earn(RequestClass(b"a", BY), 0.5)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, f"{worker.id} {worker.inflight} {len(worker.document(BY).skills)}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    said = os.read(read, 1000).decode().split()
    os.close(read)
    os.close(write)
    assert said[0] != worker.id
    assert said[1:] == ["0", "0"]


def test_other_settings_count_from_the_next_request_on() -> None:
    worker = Worker(history=2)
    worker.update_settings(1)
    worker.earn(RequestClass(b"a", BY), 0.5)
    assert worker.document(BY).history == 1
    worker.earn(RequestClass(b"a", BY), 0.25)
    assert worker.document(BY).skills == {b"a": 4.0}
    with pytest.raises(ValueError, match="history"):
        worker.update_settings(0)


@pytest.mark.parametrize("version", ["", "v" * 129, "a\nb", "é"])
def test_a_version_that_cannot_be_announced_is_refused(version: str) -> None:
    with pytest.raises(Malformed):
        Worker(version=version)
