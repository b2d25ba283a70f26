"""Releases come back byte for byte, and keys of measurements are equal only for equal measurements."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from itertools import chain
from pathlib import Path
from uuid import UUID

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.replay.key import fingerprint
from dpsql.replay.store import from_bytes, to_bytes
from dpsql.types import Interval, Release, Value


def unfolded(value: datetime) -> datetime:
    """SQL knows no fold."""
    return value.replace(fold=0)


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.decimals(allow_nan=False),
    st.text(),
    st.binary(),
    st.dates(),
    st.datetimes().map(unfolded),
    st.datetimes(timezones=st.just(UTC)).map(unfolded),
    st.times().map(lambda value: value.replace(fold=0)),
    st.builds(Interval, st.integers(), st.integers(), st.integers()),
    st.uuids(),
)
RELEASES = st.builds(
    Release,
    key=st.text(alphabet="0123456789abcdef", min_size=64, max_size=64),
    keys=st.lists(st.lists(VALUES, max_size=4).map(tuple), max_size=4).map(tuple),
    cells=st.lists(st.lists(st.integers(), max_size=4).map(tuple), max_size=4).map(tuple),
)


def same(left: Value, right: Value) -> bool:
    """Equal, of one type, and alike in what equality overlooks: zeros' signs, trailing zeros, offsets."""
    return type(left) is type(right) and repr(left) == repr(right)


@given(RELEASES)
def test_round_trip(release: Release) -> None:
    data = to_bytes(release)
    back = from_bytes(data)
    assert back == release
    assert all(map(same, chain(*release.keys), chain(*back.keys)))
    assert to_bytes(back) == data


def test_nan_comes_back() -> None:
    back = from_bytes(to_bytes(Release("k", ((math.nan, Decimal("NaN")),), ())))
    assert math.isnan(back.keys[0][0])  # type: ignore[arg-type]
    assert back.keys[0][1].is_nan()  # type: ignore[union-attr]


@pytest.mark.parametrize("cell", [True, 1.0, numpy.int64(1), "1", None])
def test_only_plain_integers_are_cells(cell: int) -> None:
    with pytest.raises(TypeError):
        to_bytes(Release("k", (), ((cell,),)))


@pytest.mark.parametrize("value", [numpy.int64(1), numpy.float64(1), [1], object()])
def test_only_known_types_are_keys(value: Value) -> None:
    with pytest.raises(TypeError):
        to_bytes(Release("k", ((value,),), ()))


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"keys": [[["f", "zero"]]]},
        {"keys": [[["z", "1"]]]},
        {"keys": [[["f"]]]},
        {"keys": [[["n", "one"]]]},
        {"cells": [[1.5]]},
        {"cells": [[True]]},
        {"cells": 7},
    ],
)
def test_other_bytes_are_no_release(change: dict[str, object]) -> None:
    document = json.loads(to_bytes(Release("k", ((1,),), ((2,),))))
    with pytest.raises(ValueError, match="not a stored release"):
        from_bytes(json.dumps(document | change).encode())
    for data in (b"", b"{}", b"[1]", b"\xff", b"null"):
        with pytest.raises(ValueError, match="not a stored release"):
            from_bytes(data)


class Color(Enum):
    RED = 1
    BLUE = 2


class Other(Enum):
    RED = 1


@dataclass(frozen=True)
class Scan:
    table: str
    columns: tuple[str, ...] = ()
    position: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Join:
    table: str
    columns: tuple[str, ...] = ()


APART: list[object] = [
    None, True, False, 0, 1, -1, 0.0, -0.0, 1.0, "1", "", "None", b"1", Decimal(1), Decimal("1.0"), Fraction(1), [],
    [[]], {}, frozenset(), [1, 2], [2, 1], ["1", "2"], [1, [2]], ["list", 1, 2], ["f", "0x0.0p+0"], {"a": 1},
    {"a": [1]}, {1: "a"}, frozenset({1, 2}), frozenset({"1", "2"}), date(2026, 1, 1), datetime(2026, 1, 1),
    datetime(2026, 1, 1, tzinfo=UTC), time(0), Interval(), UUID(int=0), Color.RED, Color.BLUE, Other.RED, Scan("a"),
    Join("a"), Scan("a", ("b",)), Scan("ab"), Path("a"), "a",
]  # fmt: skip


def test_different_parts_have_different_keys() -> None:
    keys = {fingerprint(part): part for part in APART}
    assert len(keys) == len(APART)
    assert all(len(key) == 64 for key in keys)


def test_equal_parts_have_equal_keys() -> None:
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    assert fingerprint(frozenset("abc")) == fingerprint(frozenset("cab"))
    assert fingerprint((1, (2,))) == fingerprint([1, [2]])
    assert fingerprint(Scan("a", ("b",), position=3)) == fingerprint(Scan("a", ("b",), position=70))
    assert fingerprint(math.nan) == fingerprint(-math.nan)


def test_the_key_is_a_fixed_function() -> None:
    """Stored releases are found by it, also by later versions."""
    parts = {"plan": Scan("flights", ("dep_delay",)), "epoch": "2013", "lower": Decimal("-30"), "at": date(2013, 1, 1)}
    assert fingerprint(parts) == fingerprint(dict(reversed(parts.items())))
    assert fingerprint(parts) == "897bb483210efe87f9d1f5dc3a5f743a1a11135076e7fc64b1fcd1bceb31233d"


@given(VALUES, VALUES)
def test_values_have_one_key_each(left: Value, right: Value) -> None:
    assert (fingerprint([left]) == fingerprint([right])) == same(left, right)


@pytest.mark.parametrize("part", [object(), int, 1j, range(3), numpy.int64(1), bytearray(b"1"), iter([])])
def test_what_is_no_value_has_no_key(part: object) -> None:
    with pytest.raises(TypeError):
        fingerprint({"part": part})
