"""to_char: the templates of Postgres's formatting.c that statements use. What is unknown is refused, not guessed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Decimal

from dpsql.errors import Rejected
from dpsql.remainder.numeric import rescale
from dpsql.remainder.text_forms import local

_MONTHS = tuple(date(2000, month, 1).strftime("%B") for month in range(1, 13))
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]

_TEMPLATE = re.compile(
    r'"([^"]*)"|(FM|TM)?(HH24|HH12|HH|MI|SSSSS|SSSS|SS|MS|US|FF[1-6]|AM|PM|am|pm|A\.M\.|P\.M\.|a\.m\.|p\.m\.|Y,YYY|YYYY|'
    r"YYY|YY|Y|IYYY|IYY|IY|IDDD|IW|ID|I|MONTH|Month|month|MON|Mon|mon|MM|DAY|Day|day|DY|Dy|dy|DDD|DD|D|WW|W|CC|J|Q|RM|"
    r"hh24|hh12|hh|mi|ss|ms|us|yyyy|yyy|yy|y|iyyy|iyy|iy|iddd|iw|id|mm|ddd|dd|d|ww|w|cc|j|q|TZ|OF)(TH|th)?|(FM)|(.)",
    re.DOTALL,
)


def timestamp(value: datetime, pattern: str, zone: str | None) -> str:
    """to_char(timestamp[tz], text); `zone` is given for timestamptz, whose value is in UTC."""
    clock = value if zone is None else local(value, zone)
    made, fill = [], True
    for quoted, prefix, code, suffix, bare, other in _TEMPLATE.findall(pattern):
        if code:
            text = _field(clock, code, fill and prefix != "FM")
            made.append(text + _ordinal(text, suffix))
        elif bare:
            fill = not fill
        else:
            made.append(quoted or other)
    return "".join(made)


def _ordinal(text: str, suffix: str) -> str:
    if not suffix:
        return ""
    last = text[-1]
    teen = len(text) > 1 and text[-2] == "1"
    word = {"1": "st", "2": "nd", "3": "rd"}.get(last, "th") if not teen else "th"
    return word.upper() if suffix == "TH" else word


def _field(clock: datetime, code: str, fill: bool) -> str:
    names = _names(clock, code, fill)
    if names is not None:
        return names
    number, width = _number(clock, code.upper())
    return f"{number:0{width}d}" if fill else str(number)


def _names(clock: datetime, code: str, fill: bool) -> str | None:
    """Words: padded to nine characters where Postgres does."""
    month, day = _MONTHS[clock.month - 1], _DAYS[clock.weekday()]
    word = {"MONTH": month, "DAY": day, "MON": month[:3], "DY": day[:3]}.get(code.upper())
    if word is not None:
        cased = word.upper() if code.isupper() else word.lower() if code.islower() else word
        return cased.ljust(9) if (fill and len(code) > 3) or (fill and code.upper() == "DAY") else cased
    if code.upper() in ("AM", "PM", "A.M.", "P.M."):
        half = "pm" if clock.hour >= 12 else "am"
        half = f"{half[0]}.m." if "." in code else half
        return half.upper() if code.isupper() else half
    if code in ("TZ", "OF"):
        raise Rejected(f'format code "{code}" is not supported here', sqlstate="0A000")
    if code == "RM":
        roman = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"][clock.month - 1]
        return roman.ljust(4) if fill else roman
    return f"{clock.year:,}" if code == "Y,YYY" else None


def _number(clock: datetime, code: str) -> tuple[int, int]:
    """Value and width of a numeric field."""
    iso = clock.isocalendar()
    second = clock.hour * 3600 + clock.minute * 60 + clock.second
    day = clock.timetuple().tm_yday
    fields = {
        "HH24": (clock.hour, 2),
        "HH12": ((clock.hour + 11) % 12 + 1, 2),
        "HH": ((clock.hour + 11) % 12 + 1, 2),
        "MI": (clock.minute, 2),
        "SS": (clock.second, 2),
        "SSSS": (second, 1),
        "SSSSS": (second, 1),
        "MS": (clock.microsecond // 1000, 3),
        "US": (clock.microsecond, 6),
        "YYYY": (clock.year, 4),
        "YYY": (clock.year % 1000, 3),
        "YY": (clock.year % 100, 2),
        "Y": (clock.year % 10, 1),
        "IYYY": (iso.year, 4),
        "IYY": (iso.year % 1000, 3),
        "IY": (iso.year % 100, 2),
        "I": (iso.year % 10, 1),
        "MM": (clock.month, 2),
        "DDD": (day, 3),
        "DD": (clock.day, 2),
        "D": (iso.weekday % 7 + 1, 1),
        "ID": (iso.weekday, 1),
        "IDDD": ((iso.week - 1) * 7 + iso.weekday, 3),
        "IW": (iso.week, 2),
        "WW": ((day - 1) // 7 + 1, 2),
        "W": ((clock.day - 1) // 7 + 1, 1),
        "CC": ((clock.year + 99) // 100, 2),
        "J": (clock.toordinal() + 1721425, 1),
        "Q": ((clock.month + 2) // 3, 1),
    }
    if code.startswith("FF"):
        return clock.microsecond // 10 ** (6 - int(code[2])), int(code[2])
    return fields[code]


_NUMBER = re.compile(r"(FM)?(S|MI|PL|SG)?([09,G]*)([.D]?)([09]*)(S|MI|PL|SG|PR)?(%?)", re.IGNORECASE)


def number(value: Decimal, pattern: str) -> str:
    """to_char(numeric, text): 9 0 . , D G S MI FM PR, with a literal % at the end."""
    return _number_text(pattern, lambda places: rescale(value, places, ROUND_HALF_UP))


def float_number(value: float, pattern: str) -> str:
    """to_char(double precision, text): rounded from the binary value, 15 digits in all."""
    if not math.isfinite(value):
        return number(Decimal(value), pattern)
    whole = len(f"{abs(value):.0f}")
    return _number_text(pattern, lambda places: _padded(value, places, min(places, max(15 - whole, 0))))


def _padded(value: float, places: int, known: int) -> Decimal:
    return rescale(Decimal(f"{value:.{known}f}"), places)


def _number_text(pattern: str, rounded_to: Callable[[int], Decimal]) -> str:
    found = _NUMBER.fullmatch(pattern.strip())
    if found is None or (found[2] and found[6]):
        raise Rejected(f'number format "{pattern}" is not supported here', sqlstate="0A000")
    fill, places = not found[1], len(found[5])
    rounded = rounded_to(places)
    body = _digits(abs(rounded), found[3].upper(), bool(found[4]), found[5], fill)
    sign = (found[2] or found[6] or "").upper()
    return _signed(body, rounded < 0, sign, bool(found[2]), fill) + found[7]


def _digits(value: Decimal, whole: str, point: bool, fraction: str, fill: bool) -> str:
    """The digits without sign, leading blanks as in the template."""
    slots = whole.replace(",", "").replace("G", "")
    text = f"{value:f}" if value.is_finite() else "#"
    integer, _, decimals = text.partition(".")
    integer = "" if integer == "0" and slots else integer
    if len(integer) > len(slots) or not value.is_finite():
        return "".join("#" if c in "09" else "," for c in whole) + ("." if point else "") + "#" * len(fraction)
    first = slots.find("0")
    zeros = len(slots) - first if first >= 0 else 0
    if not integer and zeros == 0 and not (fraction and point):
        integer = "0" if slots else ""
    integer = integer.zfill(zeros) if zeros > len(integer) else integer
    left = _grouped(integer.rjust(len(slots)), whole)
    if not fill:
        left = left.strip()
        last = fraction.rfind("0") + 1
        decimals = decimals[:last] + decimals[last:].rstrip("0")
    return left + ("." if point else "") + decimals


def _grouped(integer: str, whole: str) -> str:
    made, at = [], 0
    for slot in whole:
        if slot in ",G":
            made.append("," if integer[:at].strip() else " ")
        else:
            made.append(integer[at])
            at += 1
    return "".join(made)


def _signed(body: str, negative: bool, sign: str, leading: bool, fill: bool) -> str:
    if sign == "PR":
        return f"<{body.strip()}>".rjust(len(body) + 2) if negative else (f" {body} " if fill else body)
    mark = "-" if negative else {"S": "+", "SG": "+", "PL": "+"}.get(sign, " " if fill else "")
    if sign == "PL" and negative:
        mark = "-"
    if not sign or (sign == "S" and leading):
        stripped = body.lstrip(" ")
        return " " * (len(body) - len(stripped)) + (mark or "") + stripped
    return mark + body if leading else body + mark
