"""The whole résumé as JSON: what ``GET /.well-known/worker-resume`` answers with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from .fields import (
    Malformed,
    class_key,
    class_of_key,
    read_fingerprint,
    read_instance,
    read_integer,
    read_score,
    read_version,
)

#: Where a worker is asked for it, ``?by=<fingerprint>`` behind.
WELL_KNOWN = "/.well-known/worker-resume"
#: The most classes of a résumé.
MAX_CLASSES = 100_000
#: The most bytes of a document: 100 000 classes of 256 bytes in base64 fit.
MAX_DOCUMENT = 40 * 1024 * 1024


@dataclass(frozen=True)
class Document:
    """One worker's résumé under one classifier."""

    id: str
    rev: int
    by: str
    inflight: int
    history: int
    version: str | None = None
    #: Requests per second by class.
    skills: Mapping[bytes, float] = field(default_factory=dict)

    @property
    def etag(self) -> str:
        """The entity tag: what a balancer will say in ``known``, quoted."""
        return f'"{self.id}.{self.rev}"'

    def serialize(self) -> bytes:
        """The JSON, in ASCII."""
        members: dict[str, Any] = {"id": self.id, "rev": self.rev, "by": self.by}
        if self.version is not None:
            members["version"] = self.version
        members["inflight"] = self.inflight
        members["history"] = self.history
        members["skills"] = {class_key(name): score for name, score in self.skills.items()}
        return json.dumps(members, separators=(",", ":"), allow_nan=False).encode("ascii")

    @classmethod
    def parse(cls, body: bytes) -> Document:
        """From JSON; raises :class:`Malformed`. Unknown members are passed over."""
        members = parse_object(body)
        skills = members.get("skills")
        if not isinstance(skills, dict):
            raise Malformed("skills", "not an object")
        if len(skills) > MAX_CLASSES:
            raise Malformed("too-many", f"more than {MAX_CLASSES} classes")
        return cls(
            read_instance(members.get("id")),
            read_integer("rev", members.get("rev"), 1),
            read_fingerprint(members.get("by")),
            read_integer("inflight", members.get("inflight"), 0),
            read_integer("history", members.get("history"), 1),
            read_version(members["version"]) if "version" in members else None,
            {class_of_key(key): read_score(score) for key, score in skills.items()},
        )


def parse_object(body: bytes, limit: int = MAX_DOCUMENT) -> dict[str, Any]:
    """A JSON object of bounded size, without the ``NaN`` and ``Infinity`` that Python would let pass."""
    if len(body) > limit:
        raise Malformed("too-large", f"longer than {limit} bytes")
    try:
        members = json.loads(body.decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise Malformed("syntax", str(error)) from error
    if not isinstance(members, dict):
        raise Malformed("syntax", "not an object")
    return members


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
