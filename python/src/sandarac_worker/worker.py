"""The state of one worker process: its instance id, its résumés, and how many requests it has in hand.

One :class:`Worker` serves all threads of a process. After a fork the child is another worker: it has another id, and
reads its résumé anew.
"""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

from .document import Document
from .fields import (
    MAX_VERSION,
    Malformed,
    RequestClass,
    read_fingerprint,
    read_integer,
    read_version,
    serialize_skills,
    write_state,
)
from .resume import HISTORY, Settings
from .resumes import Resumes, read_file, write_file

logger = logging.getLogger("sandarac_worker")

_LENGTH = re.compile("[0-9]{1,18}")

#: The response fields by which a worker speaks to balancers, in lower case.
OWN_FIELDS = frozenset(("worker-state", "worker-skills"))


@dataclass(frozen=True)
class Answer:
    """What the well-known resource says, for any server to send."""

    status: int
    reason: str
    fields: list[tuple[str, str]]
    body: bytes = b""


class Worker:
    """What one process tells balancers of itself. Safe to use from any thread.

    ``history`` and ``max_skill_age`` are in requests; ``resume_file`` is read at once, and written with every
    recomputation and by :meth:`save`; ``version`` is what pools with ``single_version`` compare; ``concurrency`` is how
    many requests the application can be working on at a time: its threads.
    """

    def __init__(
        self,
        *,
        history: int = HISTORY,
        max_skill_age: int | None = None,
        resume_file: str | None = None,
        version: str | None = None,
        concurrency: int = 1,
    ) -> None:
        self.configure(
            history=history,
            max_skill_age=max_skill_age,
            resume_file=resume_file,
            version=version,
            concurrency=concurrency,
        )
        _workers.add(self)

    def _begin_life(self) -> None:
        self.id = secrets.token_urlsafe(9)
        self._lock = threading.Lock()
        self._inflight = 0
        self._refused = 0
        self._resumes = Resumes(self._settings)
        self._saver: _Saver | None = None
        if self._resume_file is not None:
            self._load(self._resume_file)
            self._saver = _Saver(self._resume_file, self._dump)

    def configure(
        self,
        *,
        history: int = HISTORY,
        max_skill_age: int | None = None,
        resume_file: str | None = None,
        version: str | None = None,
        concurrency: int = 1,
    ) -> None:
        """Starts over with other settings, as another instance. For servers, before the first request."""
        self.version = None if version is None else read_version(version)
        #: Set by the server, where it knows.
        self.concurrency = read_integer("concurrency", concurrency, 1)
        self._settings = Settings(history, max_skill_age)
        self._resume_file = resume_file
        self._begin_life()

    def update_settings(self, history: int, max_skill_age: int | None = None) -> None:
        """Other settings from the next request on; what was earned stays."""
        with self._lock:
            self._settings.update(history, max_skill_age)

    def _load(self, path: str) -> None:
        try:
            body = read_file(path)
            if body is not None:
                self._resumes.load(body)
        except (OSError, Malformed) as error:
            # A worker without a past is as good as a new one: it is no reason not to serve.
            logger.warning("the résumé in %s is not used: %s", path, error)

    def _dump(self) -> bytes:
        with self._lock:
            return self._resumes.dump()

    @property
    def inflight(self) -> int:
        """Requests begun and not ended."""
        return self._inflight

    def begin(self) -> None:
        """A request has come in. Whoever calls this MUST call :meth:`end` once, whatever becomes of the request."""
        with self._lock:
            self._inflight += 1

    def end(self) -> None:
        """A request has left, answered or not."""
        with self._lock:
            self._inflight -= 1

    def read_class(self, value: str | None) -> RequestClass | None:
        """``Request-Class`` as it came, its lines joined by commas; ``None`` where there is none or it is malformed:
        then the request is served, and earns nothing."""
        if value is None:
            return None
        try:
            return RequestClass.parse(value)
        except Malformed as error:
            self._refused += 1
            # The first, and then ever fewer: a balancer that is wrong is wrong with every request.
            if self._refused & (self._refused - 1) == 0:
                logger.warning("Request-Class is malformed (%d so far): %s", self._refused, error)
            return None

    def earn(self, asked: RequestClass, seconds: float) -> None:
        """Counts an answered request that the application spent ``seconds`` on."""
        with self._lock:
            recomputed = self._resumes.get(asked.by).earn(asked.name, seconds)
        if recomputed and self._saver is not None:
            self._saver.save_soon()

    def fields(self, asked: RequestClass) -> list[tuple[str, str]]:
        """What a response to a request that :meth:`begin` counted says of this worker."""
        with self._lock:
            resume = self._resumes.get(asked.by)
            state = self._state(resume.revision, max(self._inflight - 1, 0))
            changes, known = None, asked.known
            if known is not None and known.rev != resume.revision and known.id == self.id:
                changes = resume.changes_since(known.rev)
        fields = [("Worker-State", state)]
        skills = serialize_skills(changes) if changes else None
        if skills is not None:
            fields.append(("Worker-Skills", skills))
        return fields

    def _state(self, revision: int, inflight: int) -> str:
        # One is what balancers assume.
        concurrency = self.concurrency if self.concurrency > 1 else None
        return write_state(self.id, revision, inflight, self.version, concurrency)

    def document(self, by: str, *, skills: bool = True) -> Document:
        """The whole résumé under the classifier with this fingerprint, or all but its skills."""
        with self._lock:
            resume = self._resumes.peek(by)
            return Document(
                self.id,
                resume.revision,
                by,
                self._inflight,
                self._settings.history,
                self.version,
                dict(resume.scores) if skills else {},
            )

    def answer(self, method: str, query: str, if_none_match: str | None) -> Answer:
        """The well-known resource. A response to HEAD has to be sent without its body."""
        if method not in ("GET", "HEAD"):
            return _problem(405, "Method Not Allowed", "GET or HEAD", [("Allow", "GET, HEAD")])
        asked = [part[3:] for part in query.split("&") if part.startswith("by=")]
        try:
            by = read_fingerprint(unquote_to_bytes(asked[0]).decode("latin-1") if len(asked) == 1 else None)
        except Malformed as error:
            return _problem(400, "Bad Request", str(error))
        head_only = method == "HEAD"
        document = self.document(by, skills=not head_only)
        state = self._state(document.rev, document.inflight)
        fields = [("ETag", document.etag), ("Worker-State", state), ("Cache-Control", "no-store")]
        if if_none_match is not None and _matches(if_none_match, document.etag):
            return Answer(304, "Not Modified", fields)
        fields.append(("Content-Type", "application/json"))
        if head_only:
            # Asked at each new connection where versions count: the length of a long résumé is not worth making it.
            return Answer(200, "OK", fields)
        body = document.serialize()
        return Answer(200, "OK", [*fields, ("Content-Length", str(len(body)))], body)

    def save(self) -> None:
        """Writes the résumé file now, where there is one."""
        if self._saver is not None:
            self._saver.save_now()

    def stop_saving(self) -> None:
        """Leaves the résumé file alone from now on: it is a successor's."""
        if self._saver is not None:
            self._saver.stop()


class _Saver:
    """Writes the résumé file from a thread of its own, so that no request waits for the disk."""

    def __init__(self, path: str, dump: Callable[[], bytes]) -> None:
        self._path = path
        self._dump = dump
        self._writing = threading.Lock()
        self._wanted = threading.Event()
        self._thread: threading.Thread | None = None
        self._over = False

    def save_soon(self) -> None:
        self._wanted.set()
        # Not before it is needed: a thread started before a fork would be missing after it.
        if self._thread is None:
            with self._writing:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="sandarac-resume", daemon=True)
                    self._thread.start()

    def _run(self) -> None:
        while True:
            self._wanted.wait()
            self.save_now()

    def stop(self) -> None:
        with self._writing:
            self._over = True

    def save_now(self) -> None:
        with self._writing:
            self._wanted.clear()
            if self._over:
                return
            try:
                write_file(self._path, self._dump())
            except OSError as error:
                logger.warning("the résumé cannot be written: %s", error)


def _problem(status: int, reason: str, detail: str, fields: list[tuple[str, str]] | None = None) -> Answer:
    body = json.dumps({"error": detail}).encode("ascii")
    return Answer(
        status,
        reason,
        [*(fields or []), ("Content-Type", "application/json"), ("Content-Length", str(len(body)))],
        body,
    )


def _matches(if_none_match: str, etag: str) -> bool:
    """RFC 9110 §13.1.2, by weak comparison."""
    tags = [tag.strip() for tag in if_none_match.split(",")]
    return "*" in tags or etag in (tag[2:] if tag.startswith("W/") else tag for tag in tags)


_workers: weakref.WeakSet[Worker] = weakref.WeakSet()

_process_worker: Worker | None = None
_process_lock = threading.Lock()


def _after_fork() -> None:
    global _process_lock
    _process_lock = threading.Lock()
    for worker in list(_workers):
        worker._begin_life()


os.register_at_fork(after_in_child=_after_fork)


def process_worker() -> Worker:
    """The worker that this process is: what middleware uses that was given none. Made on first use, with the settings
    of the environment: ``SANDARAC_HISTORY``, ``SANDARAC_MAX_SKILL_AGE``, ``SANDARAC_RESUME_FILE``,
    ``SANDARAC_VERSION`` and ``SANDARAC_CONCURRENCY``.
    """
    global _process_worker
    with _process_lock:
        if _process_worker is None:
            _process_worker = Worker(**settings_from(dict(os.environ)))
        return _process_worker


class Middleware:
    """What the middlewares of WSGI and ASGI share. Where no worker is given, it is that of the process."""

    def __init__(self, worker: Worker | None) -> None:
        self._worker = worker

    @property
    def worker(self) -> Worker:
        """Whose résumé this is."""
        if self._worker is None:
            self._worker = process_worker()
        return self._worker


def length_of(announced: str | None) -> int:
    """The bytes of a response that a ``Content-Length`` announces: 0 where there is none, or no length."""
    return int(announced) if announced and _LENGTH.fullmatch(announced) else 0


def settings_from(environment: dict[str, str]) -> dict[str, Any]:
    """Settings of :class:`Worker` out of environment variables. Raises ``ValueError`` for a value that is none, naming
    its variable."""
    settings: dict[str, Any] = {}
    for name in ("history", "max_skill_age", "resume_file", "version", "concurrency"):
        variable = f"SANDARAC_{name.upper()}"
        value = environment.get(variable)
        if value:
            settings[name] = read_setting(name, value, variable)
    return settings


def read_setting(name: str, text: str, place: str) -> Any:
    """The setting ``name`` of :class:`Worker` as it is written at ``place``, a variable or a line of a file. Raises
    ``ValueError``, which names the place and what is wanted there."""
    kind, wanted = _SETTINGS.get(name, (str, ""))
    try:
        return kind(text)
    except ValueError:
        raise ValueError(f"{place} = {text}: not {wanted}") from None


def read_count(text: str) -> int:
    """A whole number, 1 or more. Raises ``ValueError``."""
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


#: How settings that are not any text are read, and what they are instead of what cannot be read.
_SETTINGS: dict[str, tuple[Callable[[str], Any], str]] = {
    "history": (read_count, "a number of requests, at least 1, such as 9999"),
    "max_skill_age": (read_count, "a number of requests, at least 1; leave it out for 10 × history"),
    "concurrency": (read_count, "a number of requests, at least 1, such as 4"),
    "version": (read_version, f"1 to {MAX_VERSION} characters of ASCII, none of them a control character"),
}
