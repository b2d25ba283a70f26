"""Values as Postgres prints them, where DuckDB prints them otherwise; and clocks of time zones."""

from __future__ import annotations

import struct
from datetime import UTC, datetime
from zoneinfo import ZoneInfo


def float8(value: float) -> str:
    """The shortest text that reads back as the same value."""
    return _shortest(value, repr(value), 15)


def float4(value: float) -> str:
    """As `float8`, for single precision."""
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if struct.pack("<f", float(text)) == struct.pack("<f", value):
            return _shortest(value, text, 6)
    return _shortest(value, repr(value), 6)


def _shortest(value: float, text: str, limit: int) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0" if text.startswith("-") else "0"
    mantissa, _, power = _scientific(text).partition("e")
    exponent = int(power)
    if -5 < exponent < limit:
        return _positional(mantissa, exponent)
    return f"{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _scientific(text: str) -> str:
    """Any decimal text as d.ddde[-]x without trailing zeros."""
    sign = "-" if text.startswith("-") else ""
    mantissa, _, power = text.lstrip("-").lower().partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    lost = len(whole + fraction) - len(digits)
    exponent = int(power or 0) + len(whole) - 1 - lost
    digits = digits.rstrip("0")
    return f"{sign}{digits[0]}{'.' if len(digits) > 1 else ''}{digits[1:]}e{exponent}"


def _positional(mantissa: str, exponent: int) -> str:
    sign = "-" if mantissa.startswith("-") else ""
    digits = mantissa.lstrip("-").replace(".", "")
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    fraction = digits[exponent + 1 :]
    return f"{sign}{whole}{'.' if fraction else ''}{fraction}"


def timestamp(value: datetime) -> str:
    text = value.strftime("%H:%M:%S") + (f".{value.microsecond:06d}".rstrip("0") if value.microsecond else "")
    return f"{value.year:04d}-{value.month:02d}-{value.day:02d} {text}"


def timestamptz(value: datetime, zone: str) -> str:
    """`value` in UTC, printed in `zone` with its offset."""
    aware = value.replace(tzinfo=UTC).astimezone(ZoneInfo(zone))
    minutes = round((aware.utcoffset() or datetime.resolution * 0).total_seconds() / 60)
    hours, rest = divmod(abs(minutes), 60)
    offset = f"{'-' if minutes < 0 else '+'}{hours:02d}{f':{rest:02d}' if rest else ''}"
    return timestamp(aware.replace(tzinfo=None)) + offset


def local(value: datetime, zone: str) -> datetime:
    """UTC to the clock of `zone`."""
    return value.replace(tzinfo=UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None)


def utc(value: datetime, zone: str) -> datetime:
    """The clock of `zone` to UTC."""
    return value.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC).replace(tzinfo=None)
