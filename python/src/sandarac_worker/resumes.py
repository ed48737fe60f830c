"""The résumés of a worker, one for each classifier that balancers sort by, and the file they outlive the process in."""

from __future__ import annotations

import contextlib
import glob
import json
import os
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from .document import MAX_DOCUMENT, parse_object
from .fields import MAX_INTEGER, MAX_SCORE, Malformed, class_key, class_of_key, read_fingerprint, read_score
from .resume import MIN_WEIGHT, Resume, Seed, Settings

#: Résumés kept: the classifier in use, and the one before or after it while balancers are being changed.
MAX_RESUMES = 2

#: The most bytes of a résumé file.
MAX_FILE = MAX_RESUMES * 2 * MAX_DOCUMENT

_FORMAT = "sandarac-resume-1"


class Resumes:
    """The most recently used résumés, by fingerprint of the classifier.

    Revisions never go back for a fingerprint: a new résumé begins at 1, or above whatever one that was put away has
    reached, so that no ``known`` of the past can be mistaken for one of the present.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._resumes: OrderedDict[str, Resume] = OrderedDict()
        self._put_away = 0

    def get(self, by: str) -> Resume:
        """The résumé for a fingerprint, which becomes the most recently used; an empty one where there was none."""
        resume = self._resumes.get(by)
        if resume is None:
            resume = self._add(by, {})
        else:
            self._resumes.move_to_end(by)
        return resume

    def peek(self, by: str) -> Resume:
        """The same without keeping anything: asking must not put away what is in use."""
        return self._resumes.get(by) or Resume(self.settings, self._put_away + 1)

    def _add(self, by: str, seeds: Mapping[bytes, Seed]) -> Resume:
        resume = self._resumes[by] = Resume(self.settings, self._put_away + 1, seeds)
        while len(self._resumes) > MAX_RESUMES:
            _, old = self._resumes.popitem(last=False)
            self._put_away = max(self._put_away, old.revision)
        # The one just added may have to begin above the one just put away.
        resume.revision = max(resume.revision, self._put_away + 1)
        return resume

    def dump(self) -> bytes:
        """What :meth:`load` reads: JSON, the most recently used résumé last."""
        resumes = [
            {
                "by": by,
                "skills": {
                    class_key(name): [min(requests / seconds, MAX_SCORE), requests]
                    for name, (requests, seconds) in resume.seeds()
                },
            }
            for by, resume in self._resumes.items()
        ]
        return json.dumps({"format": _FORMAT, "resumes": resumes}, separators=(",", ":")).encode("ascii")

    def load(self, body: bytes) -> None:
        """Seeds résumés out of what :meth:`dump` wrote. Raises :class:`Malformed`, and then nothing has changed.

        A skill is ``[rate, requests]``; or a rate alone, for files made by hand: then it weighs a full history, which
        is ``history`` requests that took ``history / rate`` seconds.
        """
        members = parse_object(body, MAX_FILE)
        resumes = members.get("resumes")
        if members.get("format") != _FORMAT or not isinstance(resumes, list):
            raise Malformed("format", f"not {_FORMAT}")
        seeds: dict[str, dict[bytes, Seed]] = {}
        for resume in resumes[-MAX_RESUMES:]:
            if not isinstance(resume, dict) or not isinstance(resume.get("skills"), dict):
                raise Malformed("skills", "not an object")
            seeds[read_fingerprint(resume.get("by"))] = {
                class_of_key(key): self._seed(skill) for key, skill in resume["skills"].items()
            }
        for by, skills in seeds.items():
            self._add(by, skills)

    def _seed(self, skill: Any) -> Seed:
        requests: Any = float(self.settings.history)
        rate = skill
        if isinstance(skill, list) and len(skill) == 2:
            rate, requests = skill
        if type(requests) not in (int, float) or not MIN_WEIGHT <= requests <= MAX_INTEGER:
            raise Malformed("requests", f"not a number from {MIN_WEIGHT} to {MAX_INTEGER}")
        return float(requests), requests / max(read_score(rate), 1e-6)


def read_file(path: str) -> bytes | None:
    """The bytes of a résumé file, ``None`` where there is none; bounded. Raises ``OSError`` and :class:`Malformed`."""
    _clear_abandoned(path)
    try:
        with open(path, "rb") as file:
            body = file.read(MAX_FILE + 1)
    except FileNotFoundError:
        return None
    if len(body) > MAX_FILE:
        raise Malformed("too-large", f"longer than {MAX_FILE} bytes")
    return body


def _clear_abandoned(path: str) -> None:
    """Removes what processes have left that were killed while they wrote."""
    for abandoned in glob.glob(f"{glob.escape(path)}.*.tmp"):
        writer = abandoned[len(path) + 1 : -len(".tmp")]
        if not writer.isdigit():
            continue
        try:
            os.kill(int(writer), 0)
        except ProcessLookupError:
            with contextlib.suppress(OSError):
                os.unlink(abandoned)
        except (OSError, OverflowError):
            continue


def write_file(path: str, body: bytes) -> None:
    """Replaces the file as a whole: a reader sees the old one or the new one, also after a crash. ``OSError``."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise
