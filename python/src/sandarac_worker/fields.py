"""The three fields of the résumé protocol, and how a class is named in JSON (docs/protocols/resume.md).

Readers raise :class:`Malformed` with a named reason, and then the whole field counts for nothing: half a field is
never believed. Unknown parameters and members are passed over, so that the protocol can grow.
"""

from __future__ import annotations

import base64
import binascii
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass

from .structured import (
    BareItem,
    StructuredError,
    parse_dictionary,
    parse_item,
    parse_list,
    serialize,
)

#: The most bytes of a request class.
MAX_CLASS = 256
#: The most bytes of ``Worker-Skills``; a longer list is left out, and the balancer asks for the whole.
MAX_SKILLS_FIELD = 4096
#: The most bytes of ``Request-Class`` and of ``Worker-State`` that a reader looks at.
MAX_FIELD = 1024
#: The most bytes of a version.
MAX_VERSION = 128
#: The best score there is, in requests per second.
MAX_SCORE = 1e9
#: The worst: three digits after the point are what a Decimal has.
MIN_SCORE = 0.001
#: The greatest integer of a structured field.
MAX_INTEGER = 999_999_999_999_999

_FINGERPRINT = re.compile(r"[0-9a-f]{16}")
_INSTANCE = re.compile(r"[A-Za-z0-9_-]{1,32}")
_REVISION = re.compile(r"[1-9][0-9]{0,14}")


class Malformed(ValueError):
    """Something of the protocol that cannot be believed. ``reason`` is its name in logs and vectors."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason


@dataclass(frozen=True)
class Known:
    """Which résumé a balancer holds: of which instance, and which revision of it."""

    id: str
    rev: int

    def __str__(self) -> str:
        return f"{self.id}.{self.rev}"

    @classmethod
    def parse(cls, text: str) -> Known:
        """``<instance>.<revision>``; raises :class:`Malformed`."""
        instance, _, revision = text.partition(".")
        if not _INSTANCE.fullmatch(instance) or not _REVISION.fullmatch(revision):
            raise Malformed("known", "not <instance>.<revision>")
        return cls(instance, int(revision))


@dataclass(frozen=True)
class RequestClass:
    """``Request-Class``: what a balancer says of a request."""

    name: bytes
    #: The fingerprint of the classifier, 16 hexadecimal digits.
    by: str
    known: Known | None = None

    @classmethod
    # A balancer says the same with most requests of a class, and reading it takes longer than all else about it.
    @functools.lru_cache(maxsize=1024)
    def parse(cls, value: str) -> RequestClass:
        """From a field value; raises :class:`Malformed`."""
        _bounded(value, MAX_FIELD)
        try:
            item, parameters = parse_item(value)
        except StructuredError as error:
            raise Malformed("syntax", str(error)) from error
        known = parameters.get("known")
        if known is not None and type(known) is not str:
            raise Malformed("known", "not a String")
        return cls(
            read_class(item),
            read_fingerprint(parameters.get("by")),
            None if known is None else Known.parse(known),
        )

    def serialize(self) -> str:
        """The field value; raises :class:`Malformed` for what a reader would refuse."""
        value = f"{write_class(self.name)};by={serialize(read_fingerprint(self.by))}"
        return value if self.known is None else f'{value};known="{self.known}"'


@dataclass(frozen=True)
class WorkerState:
    """``Worker-State``: what a worker says of itself with every response."""

    id: str
    rev: int
    inflight: int
    version: str | None = None
    concurrency: int | None = None

    @classmethod
    def parse(cls, value: str) -> WorkerState:
        """From a field value; raises :class:`Malformed`."""
        _bounded(value, MAX_FIELD)
        try:
            members = parse_dictionary(value)
        except StructuredError as error:
            raise Malformed("syntax", str(error)) from error
        found: dict[str, BareItem] = {}
        for key in ("id", "rev", "inflight", "concurrency", "version"):
            if key in members:
                item, _ = members[key]
                if isinstance(item, list):
                    raise Malformed(key, "an inner list")
                found[key] = item
        return cls(
            read_instance(found.get("id")),
            read_integer("rev", found.get("rev"), 1),
            read_integer("inflight", found.get("inflight"), 0),
            read_version(found["version"]) if "version" in found else None,
            read_integer("concurrency", found["concurrency"], 1) if "concurrency" in found else None,
        )

    def serialize(self) -> str:
        """The field value."""
        return write_state(self.id, self.rev, self.inflight, self.version, self.concurrency)


def write_state(
    instance: str, revision: int, inflight: int, version: str | None, concurrency: int | None = None
) -> str:
    """The value of ``Worker-State``."""
    value = f'id="{instance}", rev={revision}, inflight={inflight}'
    if concurrency is not None:
        value = f"{value}, concurrency={concurrency}"
    return value if version is None else f"{value}, version={serialize(version)}"


def parse_skills(value: str) -> dict[bytes, float]:
    """``Worker-Skills``: changed scores by class, 0 for a class that was dropped; raises :class:`Malformed`.

    Of several members for one class the last counts.
    """
    _bounded(value, MAX_SKILLS_FIELD)
    try:
        members = parse_list(value)
    except StructuredError as error:
        raise Malformed("syntax", str(error)) from error
    skills: dict[bytes, float] = {}
    for item, parameters in members:
        if isinstance(item, list):
            raise Malformed("class", "an inner list")
        score = parameters.get("score")
        dropped = type(score) in (int, float) and score == 0
        skills[read_class(item)] = 0.0 if dropped else read_score(score)
    return skills


def serialize_skills(skills: Mapping[bytes, float]) -> str | None:
    """The field value, ``None`` where it would be empty or longer than :data:`MAX_SKILLS_FIELD`."""
    members: list[str] = []
    size = -2
    for name, score in skills.items():
        written = f"{write_class(name)};score={serialize(score) if score else '0'}"
        size += len(written) + 2
        if size > MAX_SKILLS_FIELD:
            return None
        members.append(written)
    return ", ".join(members) or None


def read_class(item: object) -> bytes:
    """A class out of a bare item."""
    if type(item) is str:
        name = item.encode("ascii")
    elif type(item) is bytes:
        name = item
    else:
        raise Malformed("class", "neither a String nor a Byte Sequence")
    if len(name) > MAX_CLASS:
        raise Malformed("class", f"longer than {MAX_CLASS} bytes")
    return name


def write_class(name: bytes) -> str:
    """A class as a bare item: a String where all of it is 0x20 to 0x7E, else a Byte Sequence."""
    if len(name) > MAX_CLASS:
        raise Malformed("class", f"longer than {MAX_CLASS} bytes")
    return serialize(name.decode("ascii") if _is_text(name) else name)


def class_key(name: bytes) -> str:
    """A class as a member name in JSON: itself, or ``:base64:`` where it is no text or could be taken for that."""
    if _is_text(name) and not name.startswith(b":"):
        return name.decode("ascii")
    return f":{base64.b64encode(name).decode('ascii')}:"


def class_of_key(key: str) -> bytes:
    """The class of a member name in JSON; raises :class:`Malformed`."""
    if key.startswith(":"):
        if len(key) < 2 or not key.endswith(":"):
            raise Malformed("class", "not :base64:")
        try:
            name = base64.b64decode(key[1:-1].encode("ascii"), validate=True)
        except (binascii.Error, UnicodeEncodeError) as error:
            raise Malformed("class", "not :base64:") from error
    else:
        if any(not " " <= char <= "~" for char in key):
            raise Malformed("class", "bytes other than 0x20 to 0x7E are written as :base64:")
        name = key.encode("ascii")
    return read_class(name)


def read_fingerprint(item: object) -> str:
    """A fingerprint out of a bare item or JSON value."""
    if type(item) is not str or not _FINGERPRINT.fullmatch(item):
        raise Malformed("by", "not 16 hexadecimal digits")
    return item


def read_instance(item: object) -> str:
    """An instance id out of a bare item or JSON value."""
    if type(item) is not str or not _INSTANCE.fullmatch(item):
        raise Malformed("id", "not 1 to 32 letters, digits, - or _")
    return item


def read_integer(name: str, item: object, least: int) -> int:
    """An integer from ``least`` to :data:`MAX_INTEGER`; what is wrong is named after the member."""
    if type(item) is not int or not least <= item <= MAX_INTEGER:
        raise Malformed(name, f"not an integer from {least}")
    return item


def read_version(item: object) -> str:
    """A version: 1 to :data:`MAX_VERSION` bytes of 0x20 to 0x7E."""
    if type(item) is not str or not 1 <= len(item) <= MAX_VERSION or any(not " " <= char <= "~" for char in item):
        raise Malformed("version", f"not 1 to {MAX_VERSION} bytes of 0x20 to 0x7E")
    return item


def read_score(item: object) -> float:
    """A score in requests per second, above 0 and at most :data:`MAX_SCORE`."""
    if type(item) not in (int, float) or not 0 < item <= MAX_SCORE:  # type: ignore[operator]
        raise Malformed("score", "not a number above 0 and at most 1e9")
    return float(item)  # type: ignore[arg-type]


def _bounded(value: str, limit: int) -> None:
    if len(value) > limit:
        raise Malformed("too-large", f"longer than {limit} bytes")


def _is_text(name: bytes) -> bool:
    return name.isascii() and name.decode("ascii").isprintable()
