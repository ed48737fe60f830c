"""Structured field values (RFC 9651): what the three fields of the résumé protocol are written in.

The parsers take a whole field value, its lines joined with ``", "``, and either return it or raise
:class:`StructuredError`; they do not repair. Values are plain Python: ``int``, ``float`` (a Decimal), ``str`` (a
String), ``bytes``, ``bool``, and the classes below for what has no type of its own.
"""

from __future__ import annotations

import base64
import binascii
from typing import Union

_LOWER = frozenset("abcdefghijklmnopqrstuvwxyz")
_DIGITS = frozenset("0123456789")
_KEY_START = _LOWER | {"*"}
_KEY = _LOWER | _DIGITS | frozenset("_-.*")
_TOKEN_START = _LOWER | frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ*")
_TOKEN = _TOKEN_START | _DIGITS | frozenset("!#$%&'+-.^_`|~:/")
_BASE64 = _TOKEN_START - {"*"} | _DIGITS | frozenset("+/=")


class StructuredError(ValueError):
    """A value that is not a structured field, or not one of the type asked for."""


class Token(str):
    """A Token (RFC 9651 §3.3.4)."""

    __slots__ = ()


class Date(int):
    """A Date (RFC 9651 §3.3.7), in seconds since the epoch."""

    __slots__ = ()


class DisplayString(str):
    """A Display String (RFC 9651 §3.3.8)."""

    __slots__ = ()


BareItem = Union[bool, int, float, str, bytes, Token, Date, DisplayString]
Parameters = dict[str, BareItem]
Item = tuple[BareItem, Parameters]
InnerList = tuple[list[Item], Parameters]
Member = Union[Item, InnerList]


def parse_item(value: str) -> Item:
    """An Item (RFC 9651 §4.2.3)."""
    parser = _Parser(value)
    item = parser.item()
    parser.end()
    return item


def parse_list(value: str) -> list[Member]:
    """A List (RFC 9651 §4.2.1). An empty value is an empty list."""
    parser = _Parser(value)
    members: list[Member] = []
    while not parser.done():
        members.append(parser.member())
        if not parser.comma():
            break
    parser.end()
    return members


def parse_dictionary(value: str) -> dict[str, Member]:
    """A Dictionary (RFC 9651 §4.2.2). Of several members of one name the last counts."""
    parser = _Parser(value)
    members: dict[str, Member] = {}
    while not parser.done():
        key = parser.key()
        # As the standard has it: the last one counts, and stands at the end.
        members.pop(key, None)
        members[key] = parser.member() if parser.take("=") else (True, parser.parameters())
        if not parser.comma():
            break
    parser.end()
    return members


def serialize(value: BareItem) -> str:
    """One bare item (RFC 9651 §4.1.3.1): an Integer, a Decimal, a String of 0x20–0x7E, or a Byte Sequence.

    Raises :class:`StructuredError` for what cannot be written, and for other types, which the protocol does not send.
    """
    if isinstance(value, bytes):
        return f":{base64.b64encode(value).decode('ascii')}:"
    if isinstance(value, (bool, Token, Date, DisplayString)):
        raise StructuredError(f"not a value of the protocol: {value!r}")
    if isinstance(value, int):
        if abs(value) > 999_999_999_999_999:
            raise StructuredError("an Integer has at most 15 digits")
        return str(value)
    if isinstance(value, float):
        if not abs(value) < 999_999_999_999.9995:
            raise StructuredError("a Decimal has at most 12 digits before the point")
        # Python rounds half to even, as the standard wants it.
        whole, _, fraction = f"{value:.3f}".partition(".")
        return f"{whole}.{fraction.rstrip('0') or '0'}"
    if not (value.isascii() and value.isprintable()):
        raise StructuredError("a String holds 0x20 to 0x7E only")
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


class _Parser:
    """A cursor over one value (RFC 9651 §4.2)."""

    def __init__(self, value: str) -> None:
        self.text = value.strip(" ")
        self.at = 0

    def done(self) -> bool:
        return self.at >= len(self.text)

    def end(self) -> None:
        if not self.done():
            raise StructuredError(f"unexpected characters at {self.at}")

    def peek(self) -> str:
        return self.text[self.at] if self.at < len(self.text) else ""

    def take(self, char: str) -> bool:
        if self.peek() == char:
            self.at += 1
            return True
        return False

    def run(self, allowed: frozenset[str]) -> str:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] in allowed:
            self.at += 1
        return self.text[start : self.at]

    def skip(self, blanks: str) -> None:
        while self.at < len(self.text) and self.text[self.at] in blanks:
            self.at += 1

    def comma(self) -> bool:
        """Whether another member follows; a comma with nothing behind it is an error."""
        self.skip(" \t")
        if self.done():
            return False
        if not self.take(","):
            raise StructuredError(f"a comma is missing at {self.at}")
        self.skip(" \t")
        if self.done():
            raise StructuredError("a comma with nothing behind it")
        return True

    def key(self) -> str:
        if self.peek() not in _KEY_START:
            raise StructuredError(f"not a key at {self.at}")
        return self.run(_KEY)

    def parameters(self) -> Parameters:
        found: Parameters = {}
        while self.take(";"):
            self.skip(" ")
            key = self.key()
            found.pop(key, None)
            found[key] = self.bare() if self.take("=") else True
        return found

    def item(self) -> Item:
        return self.bare(), self.parameters()

    def member(self) -> Member:
        if not self.take("("):
            return self.item()
        items: list[Item] = []
        while True:
            self.skip(" ")
            if self.take(")"):
                return items, self.parameters()
            items.append(self.item())
            if self.peek() not in (" ", ")"):
                raise StructuredError(f"an inner list is not closed at {self.at}")

    def bare(self) -> BareItem:
        char = self.peek()
        if char == '"':
            return self.string()
        if char == "-" or char in _DIGITS:
            return self.number()
        if char == ":":
            return self.binary()
        if char == "?":
            return self.boolean()
        if char == "@":
            return self.date()
        if char == "%":
            return self.display_string()
        if char in _TOKEN_START:
            return Token(self.run(_TOKEN))
        raise StructuredError(f"not an item at {self.at}")

    def string(self) -> str:
        self.at += 1
        chars: list[str] = []
        while not self.done():
            char = self.text[self.at]
            self.at += 1
            if char == '"':
                return "".join(chars)
            if char == "\\":
                char = self.peek()
                self.at += 1
                if char not in ('"', "\\"):
                    raise StructuredError("a backslash before what needs none")
            elif not " " <= char <= "~":
                raise StructuredError("a String holds 0x20 to 0x7E only")
            chars.append(char)
        raise StructuredError("a String is not closed")

    def number(self) -> int | float:
        sign = -1 if self.take("-") else 1
        whole = self.run(_DIGITS)
        if not whole:
            raise StructuredError(f"a number without digits at {self.at}")
        if not self.take("."):
            if len(whole) > 15:
                raise StructuredError("an Integer has at most 15 digits")
            return sign * int(whole)
        fraction = self.run(_DIGITS)
        if len(whole) > 12 or not 1 <= len(fraction) <= 3:
            raise StructuredError("a Decimal has at most 12 digits before the point and one to three after it")
        return sign * float(f"{whole}.{fraction}")

    def binary(self) -> bytes:
        self.at += 1
        text = self.run(_BASE64)
        if not self.take(":"):
            raise StructuredError("a Byte Sequence is not closed")
        try:
            # Missing padding is forgiven, as the standard advises; whatever else is wrong is not.
            return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
        except binascii.Error as error:
            raise StructuredError("not base64") from error

    def boolean(self) -> bool:
        self.at += 1
        if self.take("1"):
            return True
        if self.take("0"):
            return False
        raise StructuredError("a Boolean is ?0 or ?1")

    def date(self) -> Date:
        self.at += 1
        number = self.number() if self.peek() == "-" or self.peek() in _DIGITS else None
        if not isinstance(number, int):
            raise StructuredError("a Date is a whole number")
        return Date(number)

    def display_string(self) -> DisplayString:
        self.at += 1
        if not self.take('"'):
            raise StructuredError('a Display String begins with %"')
        octets = bytearray()
        while not self.done():
            char = self.text[self.at]
            self.at += 1
            if char == '"':
                try:
                    return DisplayString(octets.decode("utf-8"))
                except UnicodeDecodeError as error:
                    raise StructuredError("a Display String is not UTF-8") from error
            if char == "%":
                digits = self.text[self.at : self.at + 2]
                self.at += 2
                if len(digits) != 2 or any(digit not in "0123456789abcdef" for digit in digits):
                    raise StructuredError("a Display String has two lower-case digits after %")
                octets.append(int(digits, 16))
            elif " " <= char <= "~":
                octets.append(ord(char))
            else:
                raise StructuredError("a Display String holds 0x20 to 0x7E only")
        raise StructuredError("a Display String is not closed")
