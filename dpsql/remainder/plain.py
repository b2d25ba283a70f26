"""Remainders that only name columns of one relation, as most do: what they give is known without an engine.

Decides which values an engine would give back exactly as they are; of any other it is asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Final

from dpsql.compiler.public import Remainder
from dpsql.types import Kind, Relation, Value

_ONE: Final = r't\d+\."\w+" AS c\d+'
_PLAIN: Final = re.compile(rf'SELECT ({_ONE}(?:, {_ONE})*) FROM "(\w+)" AS t\d+')
_NAME: Final = re.compile(r'\."(\w+)"')
_BELOW: Final = {Kind.INT2: 2**15, Kind.INT4: 2**31, Kind.INT8: 2**63}
"""Whole numbers of a kind are below this, and not below its negative."""
_SAME: Final = {Kind.BOOL: bool, Kind.FLOAT8: float, Kind.TEXT: str, Kind.DATE: date}


def passed_on(remainder: Remainder, inputs: Mapping[str, Relation]) -> Relation | None:
    """The answer of a remainder that gives columns of one of `inputs` as they are; None where it may do more."""
    plain = _PLAIN.fullmatch(remainder.sql)
    relation = None if plain is None else inputs.get(plain[2])
    if plain is None or relation is None:
        return None
    places = {column.name: place for place, column in enumerate(relation.columns)}
    taken = [places[name] for name in _NAME.findall(plain[1])]
    columns = [[row[place] for row in relation.rows] for place in taken]
    for place, values in zip(taken, columns, strict=True):
        kind = relation.columns[place].type.kind
        if not all(_comes_back(value, kind) for value in values):
            return None
    return Relation(remainder.columns, tuple(zip(*columns, strict=True)))


def _comes_back(value: Value, kind: Kind) -> bool:
    """Whether an engine that is given the value gives it back."""
    if kind in _BELOW:
        return value is None or (type(value) is int and -_BELOW[kind] <= value < _BELOW[kind])
    return value is None or type(value) is _SAME.get(kind)
