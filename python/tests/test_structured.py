"""Structured fields beyond what the vectors hold."""

from __future__ import annotations

import pytest

from sandarac_worker.structured import (
    BareItem,
    Date,
    DisplayString,
    StructuredError,
    Token,
    parse_dictionary,
    parse_item,
    parse_list,
    serialize,
)


def test_every_kind_of_item_is_read() -> None:
    values = '1, -2.5, "a\\"b", tok/en:x, :AP8=:, ?0, @-5, %"f%c3%bc", (1 "x");q, *t'
    members = parse_list(values)
    assert [item for item, _ in members[:8]] == [1, -2.5, 'a"b', "tok/en:x", b"\0\xff", False, -5, "fü"]
    kinds = [type(item) for item, _ in members[:8]]
    assert kinds == [int, float, str, Token, bytes, bool, Date, DisplayString]
    assert members[8] == ([(1, {}), ("x", {})], {"q": True})


def test_a_dictionary_keeps_the_last_of_a_name() -> None:
    assert list(parse_dictionary("a=1, b;x=2, a=3").items()) == [("b", (True, {"x": 2})), ("a", (3, {}))]


@pytest.mark.parametrize(
    "value",
    ["1,", "1 2", "(1", "(1,2)", "()x", '"a', "1.", "1.2345", "-", "--1", ":a:b", "?2", "@1.5", '%"%C3%BC"', '%"%c3"',
     "é", "a;=1", "a; ;b", "1;", "A=1;B", "1000000000000000", "1000000000000.0", ":a:", '%"', "%a", "(1 2", "\t1"],
)  # fmt: skip
def test_what_is_no_list_is_refused(value: str) -> None:
    with pytest.raises(StructuredError):
        parse_list(value)


@pytest.mark.parametrize(
    ("value", "written"),
    [(1, "1"), (-1, "-1"), (1.0, "1.0"), (0.0015, "0.002"), (2.5, "2.5"), (1e9, "1000000000.0"),
     ('a"\\', '"a\\"\\\\"'), (b"\0", ":AA==:"), (b"", "::")],
)  # fmt: skip
def test_items_are_written(value: BareItem, written: str) -> None:
    assert serialize(value) == written
    read, _ = parse_item(written)
    assert read == (pytest.approx(value, abs=0.001) if isinstance(value, float) else value)


@pytest.mark.parametrize("value", ["é", "\n", 10**15, 1e12, float("nan"), float("inf"), True, Token("a")])
def test_what_cannot_be_written_is_refused(value: BareItem) -> None:
    with pytest.raises(StructuredError):
        serialize(value)
