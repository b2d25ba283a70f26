"""The key of a measurement: equal for equal measurements, different for any two that differ.

Decides how a canonical plan and its surroundings (policy and public-data fingerprint, epoch, parameters, ids of inner
releases) become 64 hex digits. What belongs to the parts is the caller's choice; the noise drawn never depends on the
key. Equal spelling is all it sees: whether two plans mean the same is settled before, by making them canonical.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence, Set
from enum import Enum
from fractions import Fraction
from pathlib import PurePath

from dpsql.replay.values import Json, tag

_DOMAIN = b"dpsql measurement 1\n"


def fingerprint(parts: object) -> str:
    """SHA-256, in hex, of the canonical JSON of `parts`; injective up to collisions of SHA-256.

    `parts` may nest mappings, sequences, sets, frozen dataclasses, enums, fractions and `dpsql.types.Value`s. The
    order of a mapping or set does not count, nor do fields that do not count in comparisons (positions in the text);
    a list and a tuple are the same. Raises TypeError for anything else.
    """
    return hashlib.sha256(_DOMAIN + _text(_canonical(parts)).encode("ascii")).hexdigest()


def _canonical(part: object) -> Json:
    """`part` as JSON, every container as a list that begins with its own tag."""
    match part:
        case Enum():
            return ["enum", type(part).__qualname__, part.name]
        case Fraction():
            return ["fraction", part.numerator, part.denominator]
        case PurePath():
            return ["path", str(part)]
        case Mapping():
            return ["map", *_sorted([_canonical(key), _canonical(value)] for key, value in part.items())]
        case Set():
            return ["set", *_sorted(_canonical(item) for item in part)]
        case Sequence() if not isinstance(part, (str, bytes, bytearray, range, memoryview)):
            return ["list", *(_canonical(item) for item in part)]
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        return ["data", type(part).__qualname__, *_fields(part)]
    return tag(part)  # type: ignore[arg-type]  # tag refuses what is not a value


def _fields(part: object) -> list[Json]:
    names = [field.name for field in dataclasses.fields(part) if field.compare]  # type: ignore[arg-type]
    return [[name, _canonical(getattr(part, name))] for name in names]


def _sorted(items: Iterable[Json]) -> list[Json]:
    return sorted(items, key=_text)


def _text(json_value: Json) -> str:
    return json.dumps(json_value, separators=(",", ":"), allow_nan=False)
