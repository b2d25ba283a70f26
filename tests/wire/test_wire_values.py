"""The codecs: what Postgres sends is read, and written back byte for byte, in both formats; strictness."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.errors import Rejected
from dpsql.pgwire import values
from dpsql.pgwire.oids import OID_OF, SIZE_OF
from dpsql.types import FLOAT8, INT8, NUMERIC, TEXT, Column, Interval, Kind, SqlType

JSONB = 3802


# --- against a real Postgres ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def postgres(postgres_uri: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_uri, autocommit=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


LITERALS: dict[Kind, tuple[str, ...]] = {
    Kind.BOOL: ("t", "f"),
    Kind.INT2: ("0", "-32768", "32767"),
    Kind.INT4: ("-2147483648", "2147483647"),
    Kind.INT8: ("-9223372036854775808", "9223372036854775807"),
    Kind.NUMERIC: (
        "0", "0.00", "-0.5", "1", "10000", "100000000", "123.4500", "0.00012", "-99999999.9999", "1e30", "NaN",
        "Infinity", "-Infinity", "12345678901234567890.123456789", "0.0000000000000001", "9999.9999", "-1e-10",
    ),
    Kind.FLOAT4: ("0", "-0", "1.1", "1e6", "123456", "1234567", "3.4e38", "1e-45", "NaN", "Infinity", "16777216"),
    Kind.FLOAT8: (
        "0", "-0", "0.1", "1e14", "1e15", "123456789012345", "1234567890123456", "1e-4", "1e-5", "5e-324",
        "1.7976931348623157e308", "NaN", "Infinity", "-Infinity", "9007199254740993", "100", "1.5e300", "-2.5",
    ),
    Kind.TEXT: ("", "a", "Grüße \U0001f600", "it's", "\t\n"),
    Kind.NAME: ("pg_class",),
    Kind.CHAR: ("r",),
    Kind.DATE: ("0001-01-01", "2000-01-01", "1999-12-31", "9999-12-31"),
    Kind.TIME: ("00:00:00", "12:30:00.5", "23:59:59.999999"),
    Kind.TIMESTAMP: ("0001-01-01 00:00:00", "2013-01-31 12:00:00.123", "9999-12-31 23:59:59.999999"),
    Kind.TIMESTAMPTZ: ("2013-01-31 12:00:00+02", "1900-01-01 00:00:00.000001+00"),
    Kind.INTERVAL: (
        "0", "1 day", "-1 days", "3 days 04:05:06.7", "-00:00:01", "-2 days -03:00:00", "00:00:00.000001", "90:00",
        "1 year 2 mons 3 days 04:05:06", "-1 year", "-1 mons +1 day -00:00:01", "1 mon -1 days +01:00",
        "178956970 years 6 mons 2147483647 days 2562047788:00:54.775807",
    ),
    Kind.UUID: ("12345678-9abc-def0-1234-56789abcdef0",),
    Kind.JSON: ('{"a": [1, 2.50, null]}', "1"),
    Kind.BYTEA: ("\\x00ff5c", ""),
    Kind.OID: ("0", "4294967295"),
    Kind.TEXT_ARRAY: ("{}", "{a,NULL,\"NULL\",\"\",\"b c\",\"q\\\"q\",\"\\\\\",\"{\",\",\",Grüße}"),
    Kind.INT8_ARRAY: ("{}", "{1,-2,NULL}"),
    Kind.FLOAT8_ARRAY: ("{}", "{1.5,NaN,-Infinity,NULL,1e+20}"),
}  # fmt: skip


def same(left: object, right: object) -> bool:
    """Equality in which NaN equals itself, and the type counts."""
    return type(left) is type(right) and repr(left) == repr(right)


@pytest.mark.parametrize("kind", LITERALS, ids=lambda kind: kind.value)
def test_agrees_with_postgres(postgres: psycopg.Connection[Any], kind: Kind) -> None:
    type = SqlType(kind)
    for literal in LITERALS[kind]:
        sent: dict[int, bytes] = {}
        for format in (0, 1):
            cursor = postgres.execute(f"SELECT $literal${literal}$literal$::{kind.value}", binary=bool(format))
            assert cursor.pgresult is not None
            sent[format] = cursor.pgresult.get_value(0, 0) or b""
            assert cursor.pgresult.ftype(0) == values.oid(type)
            assert cursor.pgresult.fsize(0) == values.size(type)
        read = [values.decode_value(sent[format], type, format) for format in (0, 1)]
        assert same(read[0], read[1]), literal
        assert [values.encode_value(read[0], type, format) for format in (0, 1)] == [sent[0], sent[1]], literal


def test_floats_print_as_postgres_prints_them(postgres: psycopg.Connection[Any]) -> None:
    source = random.Random(1)
    doubles = [struct.unpack("!d", source.randbytes(8))[0] for _ in range(1500)]
    doubles += [round(source.uniform(-1e17, 1e17), source.randrange(4)) for _ in range(500)]
    rows = postgres.execute(
        "SELECT x::text FROM unnest(%b::float8[]) WITH ORDINALITY AS t(x, i) ORDER BY i", (doubles,)
    )
    assert [(values.encode_value(x, FLOAT8) or b"").decode() for x in doubles] == [row[0] for row in rows]
    singles = [x for x in (struct.unpack("!f", source.randbytes(4))[0] for _ in range(1500)) if math.isfinite(x)]
    rows = postgres.execute(
        "SELECT x::float4::text FROM unnest(%b::float8[]) WITH ORDINALITY AS t(x, i) ORDER BY i", (singles,)
    )
    assert [(values.encode_value(x, SqlType(Kind.FLOAT4)) or b"").decode() for x in singles] == [row[0] for row in rows]


def test_numerics_agree_with_postgres(postgres: psycopg.Connection[Any]) -> None:
    source = random.Random(2)
    for _ in range(200):
        digits, scale = source.randrange(10 ** source.randrange(1, 40)), source.randrange(25)
        number = Decimal(digits).scaleb(-scale)
        for format in (0, 1):
            cursor = postgres.execute("SELECT %s::text::numeric", (f"{number:f}",), binary=bool(format))
            assert cursor.pgresult is not None
            sent = cursor.pgresult.get_value(0, 0)
            assert values.encode_value(number, NUMERIC, format) == sent
            assert same(values.decode_value(sent, NUMERIC, format), Decimal(f"{number:f}"))


# What Postgres accepts in a type's text, and the strict reading must too.
ACCEPTED: list[tuple[Kind, str]] = [
    (Kind.BOOL, " TRUE "), (Kind.BOOL, "no"), (Kind.BOOL, "1"), (Kind.INT4, " +5 "), (Kind.INT8, "007"),
    (Kind.NUMERIC, "1.e2"), (Kind.NUMERIC, ".5"), (Kind.NUMERIC, " -1E-2 "), (Kind.NUMERIC, "inf"),
    (Kind.FLOAT8, "-inf"), (Kind.FLOAT8, " 1e5 "), (Kind.FLOAT8, "nan"),
    (Kind.DATE, "2013-1-2"), (Kind.DATE, "2013-01-31 +02"), (Kind.DATE, "2013-01-31 12:00:00"),
    (Kind.TIMESTAMP, "2013-01-31"), (Kind.TIMESTAMP, "2013-01-31T12:30"), (Kind.TIMESTAMP, "2013-01-31 12:30:00Z"),
    (Kind.TIMESTAMP, "2013-01-31 24:00:00"), (Kind.TIMESTAMP, "2013-01-31 23:59:60"),
    (Kind.TIMESTAMP, "2013-01-31 12:30:00.1234567"), (Kind.TIMESTAMP, "2013-01-31 12:30:00+02"),
    (Kind.TIMESTAMPTZ, "2013-01-31T12:30:00.5Z"), (Kind.TIMESTAMPTZ, "2013-01-31 12:30:00+05:30"),
    (Kind.TIMESTAMPTZ, "2013-01-31 12:30:00-0330"), (Kind.TIMESTAMPTZ, "2013-01-31 12:30 UTC"),
    (Kind.TIME, "12:30"), (Kind.TIME, "12:30:00+02"),
    (Kind.INTERVAL, "90 minutes"), (Kind.INTERVAL, "-3 hours"), (Kind.INTERVAL, "1 week 2 days"),
    (Kind.INTERVAL, "P1DT2H3M4.5S"), (Kind.INTERVAL, "1.5 hours"), (Kind.INTERVAL, "1 day -02:00"),
    (Kind.INTERVAL, "1.5 months"), (Kind.INTERVAL, "1.45 years"), (Kind.INTERVAL, "2.5 weeks 1 day ago"),
    (Kind.INTERVAL, "P1Y2M3W4DT5H6M7.5S"), (Kind.INTERVAL, "P-1Y-1M"), (Kind.INTERVAL, "@ 1 year -2 mons"),
    (Kind.INTERVAL, "1 04:05"), (Kind.INTERVAL, "5"), (Kind.INTERVAL, "1 century 2 decades 1 millennium"),
    (Kind.INTERVAL, "PT90M"), (Kind.INTERVAL, "10s"), (Kind.INTERVAL, "36:00:00"),
    (Kind.UUID, "{12345678-9ABC-def0-1234-56789abcdef0}"), (Kind.UUID, "123456789abcdef0123456789abcdef0"),
    (Kind.BYTEA, "a\\\\b\\001"), (Kind.BYTEA, "\\xAB"),
    (Kind.TEXT_ARRAY, '{ a , "b" ,null}'), (Kind.INT8_ARRAY, " { 1 , 2 } "), (Kind.TEXT_ARRAY, "{a b,c\\,d}"),
]  # fmt: skip


def test_reads_what_postgres_reads(postgres: psycopg.Connection[Any]) -> None:
    for kind, text in ACCEPTED:
        cursor = postgres.execute(f"SELECT %s::text::{kind.value}", (text,), binary=True)
        assert cursor.pgresult is not None
        sent = cursor.pgresult.get_value(0, 0)
        expected = values.decode_value(sent, SqlType(kind), 1)
        assert same(values.decode_value(text.encode(), SqlType(kind)), expected), (kind, text)


REFUSED: list[tuple[Kind, str, str]] = [
    (Kind.BOOL, "2", "22P02"), (Kind.BOOL, "", "22P02"), (Kind.BOOL, "o", "22P02"),
    (Kind.INT2, "32768", "22003"), (Kind.INT4, "2147483648", "22003"), (Kind.INT8, "9223372036854775808", "22003"),
    (Kind.INT4, "1.0", "22P02"), (Kind.INT4, "", "22P02"), (Kind.INT4, "１", "22P02"), (Kind.INT4, "1 2", "22P02"),
    (Kind.NUMERIC, "1e999999", "22003"), (Kind.NUMERIC, "1..2", "22P02"), (Kind.NUMERIC, "٣", "22P02"),
    (Kind.FLOAT8, "1e400", "22003"), (Kind.FLOAT8, "1e-400", "22003"), (Kind.FLOAT8, "0x1p3", "22P02"),
    (Kind.FLOAT4, "1e39", "22003"), (Kind.FLOAT8, "infinite", "22P02"),
    (Kind.DATE, "2013-02-30", "22008"), (Kind.DATE, "hello", "22007"), (Kind.DATE, "2013-13-01", "22008"),
    (Kind.TIMESTAMP, "2013-01-31 25:00:00", "22008"), (Kind.TIMESTAMP, "2013-01-31 12:60:00", "22008"),
    (Kind.TIMESTAMP, "9999-12-31 24:00:00", "22008"), (Kind.TIMESTAMPTZ, "2013-01-31 12:00:00+99", "22008"),
    (Kind.TIMESTAMP, "", "22007"), (Kind.TIME, "noon", "22007"),
    (Kind.INTERVAL, "one day", "22007"), (Kind.INTERVAL, "", "22007"), (Kind.INTERVAL, "1 fortnight", "22007"),
    (Kind.INTERVAL, "99999999999999999999 days", "22007"), (Kind.INTERVAL, "999999999999 weeks", "22015"),
    (Kind.INTERVAL, "178956971 years", "22015"), (Kind.INTERVAL, "1 2 days", "22007"), (Kind.INTERVAL, "1:60", "22007"),
    (Kind.UUID, "123", "22P02"), (Kind.UUID, "{12345678-9abc-def0-1234-56789abcdef0", "22P02"),
    (Kind.JSON, "{", "22P02"), (Kind.JSON, "NaN", "22P02"), (Kind.JSON, "[" * 100_000, "54001"),
    (Kind.BYTEA, "\\x0", "22P02"), (Kind.BYTEA, "\\9", "22P02"),
    (Kind.TEXT_ARRAY, "a", "22P02"), (Kind.TEXT_ARRAY, "{a", "22P02"), (Kind.TEXT_ARRAY, "{a,}", "22P02"),
    (Kind.TEXT_ARRAY, "{{a}}", "22P02"), (Kind.INT8_ARRAY, "{1,x}", "22P02"), (Kind.TEXT_ARRAY, "{a}b", "22P02"),
    (Kind.OID, "-1", "22003"), (Kind.REGTYPE, "nonsense", "42704"), (Kind.TEXT, "a\0b", "22021"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "sqlstate"), REFUSED)
def test_refuses_text(kind: Kind, text: str, sqlstate: str) -> None:
    with pytest.raises(Rejected) as caught:
        values.decode_value(text.encode(), SqlType(kind))
    assert caught.value.sqlstate == sqlstate
    assert len(caught.value.message) < 300


def array(dimensions: int, oid: int, rest: bytes = b"") -> bytes:
    return struct.pack("!iiI", dimensions, 0, oid) + rest


BINARY_REFUSED: list[tuple[Kind, bytes, str]] = [
    (Kind.BOOL, b"\2", "22P03"), (Kind.BOOL, b"", "22P03"), (Kind.INT2, b"", "22P03"), (Kind.INT4, b"\0" * 8, "22P03"),
    (Kind.INT8, b"\0" * 4, "22P03"), (Kind.FLOAT8, b"\0" * 4, "22P03"), (Kind.UUID, b"\0" * 15, "22P03"),
    (Kind.NUMERIC, b"", "22P03"), (Kind.NUMERIC, struct.pack("!hhHh", 1, 0, 0, 0), "22P03"),
    (Kind.NUMERIC, struct.pack("!hhHhH", 1, 0, 0, 0, 10_000), "22P03"),
    (Kind.NUMERIC, struct.pack("!hhHhH", 1, 0, 1, 0, 1), "22P03"),
    (Kind.NUMERIC, struct.pack("!hhHh", -1, 0, 0, 0), "22P03"),
    (Kind.NUMERIC, struct.pack("!hhHhH", 1, 32767, 0, 0, 1), "22003"),
    (Kind.NUMERIC, struct.pack("!hhHhH", 1, 0, 0, -1, 1), "22003"),
    (Kind.DATE, struct.pack("!i", 2**31 - 1), "22008"), (Kind.TIMESTAMP, struct.pack("!q", -(2**63)), "22008"),
    (Kind.TIME, struct.pack("!q", 86_400_000_000), "22008"), (Kind.INTERVAL, bytes(15), "22P03"),
    (Kind.CHAR, b"ab", "22P03"),
    (Kind.TEXT, b"\xff", "22021"), (Kind.TEXT, b"\0", "22021"), (Kind.JSON, b"{", "22P02"),
    (Kind.INT8_ARRAY, b"", "22P03"), (Kind.INT8_ARRAY, array(1, 25), "22P03"), (Kind.INT8_ARRAY, array(1, 20), "22P03"),
    (Kind.INT8_ARRAY, array(2, 20), "0A000"), (Kind.INT8_ARRAY, array(0, 20, b"x"), "0A000"),
    (Kind.INT8_ARRAY, array(1, 20, struct.pack("!ii", 2**31 - 1, 1)), "22P03"),
    (Kind.INT8_ARRAY, array(1, 20, struct.pack("!iii", 1, 1, 8)), "22P03"),
    (Kind.INT8_ARRAY, array(1, 20, struct.pack("!iii4s", 1, 1, 4, b"\0" * 4)), "22P03"),
    (Kind.INT8_ARRAY, array(1, 20, struct.pack("!iii8s", 1, 1, -5, b"\0" * 8)), "22P03"),
    (Kind.INT8_ARRAY, array(1, 20, struct.pack("!iii9s", 1, 1, 8, b"\0" * 9)), "22P03"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "data", "sqlstate"), BINARY_REFUSED)
def test_refuses_bytes(kind: Kind, data: bytes, sqlstate: str) -> None:
    with pytest.raises(Rejected) as caught:
        values.decode_value(data, SqlType(kind), 1)
    assert caught.value.sqlstate == sqlstate


@given(st.sampled_from(list(Kind)), st.binary(max_size=40), st.integers(0, 1))
def test_fuzzed_parameters(kind: Kind, data: bytes, format: int) -> None:
    try:
        value = values.decode_value(data, SqlType(kind), format)
    except Rejected:
        return
    assert isinstance(values.encode_value(value, SqlType(kind), format), bytes)


# --- round trips and small things ----------------------------------------------------------------------------------

VALUES: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.INT8: st.integers(-(2**63), 2**63 - 1),
    Kind.NUMERIC: st.decimals(allow_nan=False, min_value=-(10**30), max_value=10**30, places=6),
    Kind.FLOAT8: st.floats(allow_nan=False),
    Kind.FLOAT4: st.floats(allow_nan=False, width=32),
    Kind.TEXT: st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    Kind.DATE: st.dates(),
    Kind.TIME: st.times(),
    Kind.TIMESTAMP: st.datetimes(),
    Kind.TIMESTAMPTZ: st.datetimes(timezones=st.just(UTC)),
    Kind.INTERVAL: st.builds(
        Interval,
        st.integers(-(2**31), 2**31 - 1),
        st.integers(-(2**31), 2**31 - 1),
        st.integers(-(2**63), 2**63 - 1),
    ),
    Kind.BYTEA: st.binary(),
    Kind.TEXT_ARRAY: st.lists(st.none() | st.text(st.sampled_from('aN uUlL"\\{},\n'))).map(tuple),
    Kind.INT8_ARRAY: st.lists(st.none() | st.integers(-5, 5)).map(tuple),
}


@given(st.data(), st.sampled_from(list(VALUES)), st.integers(0, 1))
def test_round_trip(data: st.DataObject, kind: Kind, format: int) -> None:
    value = data.draw(VALUES[kind])
    encoded = values.encode_value(value, SqlType(kind), format)
    assert values.decode_value(encoded, SqlType(kind), format) == value


def test_null() -> None:
    assert values.encode_value(None, INT8) is None
    assert values.decode_value(None, INT8) is None
    assert values.encoder(TEXT, 1)(None) is None


def test_whole_numbers_may_stand_for_numeric() -> None:
    assert values.encode_value(10**30, NUMERIC) == b"1" + b"0" * 30
    assert values.decode_value(values.encode_value(10**30, NUMERIC, 1), NUMERIC, 1) == 10**30


def test_declared_types_that_are_read_as_ours() -> None:
    assert values.decode_value(b"\x01[1]", JSONB, 1) == "[1]"
    assert values.decode_value(b"[1]", JSONB, 0) == "[1]"
    assert values.decode_value(b"x", 1043, 1) == "x"
    ints = array(1, 23, struct.pack("!iiiiii", 2, 1, 4, 7, 4, -7))
    assert values.decode_value(ints, 1007, 1) == (7, -7)
    for data in (b"", b"\x02[1]"):
        with pytest.raises(Rejected):
            values.decode_value(data, JSONB, 1)


def test_oids() -> None:
    for kind in set(Kind) - {Kind.VARCHAR}:  # a parameter that is declared as one is read as text
        type = SqlType(kind)
        assert values.type_of(values.oid(type)) == type
    assert values.type_of(0).kind is Kind.UNKNOWN
    with pytest.raises(Rejected) as caught:
        values.type_of(999_999)
    assert caught.value.sqlstate == "42704"


def test_oids_and_sizes_are_postgres_own(postgres: psycopg.Connection[Any]) -> None:
    for kind, oid in OID_OF.items():
        row = postgres.execute("SELECT oid::regtype::oid, typlen FROM pg_type WHERE oid = %s", (oid,)).fetchone()
        assert row == (oid, SIZE_OF.get(kind, -1))
        assert postgres.execute(f"SELECT '{kind.value}'::regtype::oid").fetchone() == (oid,)


def test_field() -> None:
    field = values.field(Column("n", SqlType(Kind.NUMERIC, 10, 2)), 1)
    assert (field.type_oid, field.type_size, field.type_modifier, field.format) == (1700, -1, 655366, 1)
    assert values.field(Column("n", NUMERIC)).type_modifier == -1


def test_formats() -> None:
    assert values.formats((), 2) == (0, 0)
    assert values.formats((1,), 2) == (1, 1)
    assert values.formats((0, 1), 2) == (0, 1)
    assert values.formats((1,), 0) == ()
    for codes, sqlstate in (((0, 1, 0), "08P01"), ((2,), "22023")):
        with pytest.raises(Rejected) as caught:
            values.formats(codes, 2)
        assert caught.value.sqlstate == sqlstate


def test_types_of_python() -> None:
    examples: list[tuple[Kind, str, object]] = [
        (Kind.DATE, "2013-01-31", date(2013, 1, 31)),
        (Kind.TIME, "12:00", time(12)),
        (Kind.TIMESTAMP, "2013-01-31 12:00", datetime(2013, 1, 31, 12)),
        (Kind.TIMESTAMPTZ, "2013-01-31 12:00+02", datetime(2013, 1, 31, 10, tzinfo=UTC)),
        (Kind.INTERVAL, "1 day 01:00", Interval(0, 1, 3_600_000_000)),
        (Kind.UUID, "12345678-9abc-def0-1234-56789abcdef0", UUID("12345678-9abc-def0-1234-56789abcdef0")),
        (Kind.REGTYPE, "integer", 23),
    ]
    for kind, text, value in examples:
        assert same(values.decode_value(text.encode(), SqlType(kind)), value)
    assert values.encode_value("integer", SqlType(Kind.REGTYPE), 1) == struct.pack("!I", 23)


def test_out_of_range_is_refused_in_binary() -> None:
    with pytest.raises(Rejected) as caught:
        values.encode_value(2**63, INT8, 1)
    assert caught.value.sqlstate == "22003"
