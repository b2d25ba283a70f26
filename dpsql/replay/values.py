"""Values as type-tagged JSON: the one notation shared by the keys of measurements and by stored releases.

Exact and injective: two values have the same JSON only if they have the same type and are the same value, so
`1`, `True`, `1.0` and `Decimal('1.00')` stay apart. Must never coerce: a type that is not listed here (a numpy
integer, say) is refused, since it would come back as something else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from dpsql.types import Interval, Value

Json = None | bool | int | str | list["Json"]


def _float(value: float) -> str:
    return "nan" if math.isnan(value) else value.hex()


def _interval(value: Interval) -> str:
    return f"{value.months}:{value.days}:{value.micros}"


def _parse_interval(text: str) -> Interval:
    months, days, micros = text.split(":")
    return Interval(int(months), int(days), int(micros))


_TO_TEXT: Final[dict[type, tuple[str, Callable[[Any], str]]]] = {
    float: ("f", _float),
    Decimal: ("n", str),
    bytes: ("x", bytes.hex),
    date: ("d", date.isoformat),
    datetime: ("t", datetime.isoformat),
    time: ("h", time.isoformat),
    Interval: ("i", _interval),
    UUID: ("u", str),
}

_FROM_TEXT: Final[dict[str, Callable[[str], Value]]] = {
    "f": float.fromhex,
    "n": Decimal,
    "x": bytes.fromhex,
    "d": date.fromisoformat,
    "t": datetime.fromisoformat,
    "h": time.fromisoformat,
    "i": _parse_interval,
    "u": UUID,
}


def tag(value: Value) -> Json:
    """The value as JSON: null, booleans, integers and strings as they are, all others as `[tag, text]`.

    Raises TypeError for a type that is not one of `dpsql.types.Value`, subclasses included.
    """
    if value is None or type(value) in (bool, int, str):
        return value  # type: ignore[return-value]
    if type(value) not in _TO_TEXT:
        raise TypeError(f"not a value that can be stored exactly: {type(value).__name__}")
    name, to_text = _TO_TEXT[type(value)]
    return [name, to_text(value)]


def untag(json: Json) -> Value:
    """The inverse of `tag`. Raises ValueError for anything that `tag` does not make."""
    if not isinstance(json, list):
        return json
    match json:
        case [str(name), str(text)] if name in _FROM_TEXT:
            return _FROM_TEXT[name](text)
    raise ValueError("not a tagged value")
