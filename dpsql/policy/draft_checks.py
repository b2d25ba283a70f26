"""CHECK constraints and ENUM types -> the bounds and values that a schema already declares.

Decides what of a constraint's text a draft takes over: comparisons of one column with constants, BETWEEN, IN, and what
AND and OR make of them. All else says nothing here; it never means less. These are proposals, read from the catalog:
nothing that is enforced hangs on them, and no row is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import reduce
from typing import Literal

from dpsql.types import Kind, SqlType, TableFacts

Constant = Decimal | str
Origin = Literal["CHECK", "ENUM type"]

_TOKEN = re.compile(
    r"""\s*(?:(?P<number>\d+(?:\.\d*)?(?:[eE][-+]?\d{1,2})?)|'(?P<text>(?:[^']|'')*)'|"(?P<quoted>(?:[^"]|"")+)"
    |(?P<word>[^\W\d]\w*)|(?P<sign>::|<=|>=|<>|!=|[-+<>=(),.\[\]]))""",
    re.VERBOSE,
)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
_AFTER_TYPE = frozenset({"and", "or", "not", "between", "in", "is", "as"})


@dataclass(frozen=True, slots=True)
class Limits:
    """What a schema says of one column's values, NULL aside. `open_*`: the bound itself is excluded."""

    lower: Constant | None = None
    upper: Constant | None = None
    open_lower: bool = False
    open_upper: bool = False
    values: tuple[Constant, ...] | None = None
    origin: Origin = "CHECK"


class _Unknown(Exception):
    """A part of a constraint that says nothing here."""


@dataclass(frozen=True, slots=True)
class _Column:
    name: str


_Found = dict[str, Limits]
"""Limits by column, all of which hold. No values at all: the column is NULL."""


def limits(facts: TableFacts) -> Mapping[str, Limits]:
    """What constraints and types say, by column."""
    found: dict[str, Limits] = {}
    for text in facts.checks:
        found = _both(found, understood(text))
    return {**found, **{name: Limits(values=labels, origin="ENUM type") for name, labels in facts.enums}}


def understood(check: str) -> dict[str, Limits]:
    """The limits that one constraint sets, by column; none where its text is beyond what is read here."""
    try:
        parser = _Parser(list(_tokens(check)))
        found = parser.disjunction()
        return {name: each for name, each in found.items() if each.values != ()} if parser.ended else {}
    except (_Unknown, RecursionError):
        return {}


def words_of(found: Limits, of: SqlType) -> tuple[str | None, str | None, tuple[Constant, ...] | None]:
    """Lower and upper bound, and values, that a policy can hold for a column of this type, as YAML takes bounds."""
    values = found.values
    if values is not None and of.kind is not Kind.TEXT and not (of.is_integer and all(map(_whole, values))):
        values = None
    if not (of.is_number or of.is_time):
        return None, None, values
    return _bound(found.lower, found.open_lower, of, 1), _bound(found.upper, found.open_upper, of, -1), values


def _whole(value: Constant) -> bool:
    return isinstance(value, Decimal) and value == value.to_integral_value()


def _bound(value: Constant | None, excluded: bool, of: SqlType, step: int) -> str | None:
    """An excluded bound of a whole number is the next one; elsewhere clipping to the bound itself loses nothing."""
    if of.is_number:
        if isinstance(value, str):
            value = Decimal(value) if _NUMBER.fullmatch(value) else None
        if value is None:
            return None
        if of.is_integer:
            whole = value.to_integral_value("ROUND_CEILING" if step > 0 else "ROUND_FLOOR")
            value = whole + step if excluded and whole == value else whole
        return f"{value:f}"
    if not isinstance(value, str):
        return None
    try:
        return date.fromisoformat(value).isoformat()
    except ValueError:
        pass
    try:
        return None if of.kind is Kind.DATE else f'"{datetime.fromisoformat(value).replace(tzinfo=None)}"'
    except ValueError:
        return None


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    place, text = 0, text.rstrip()
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None or found.lastgroup is None:
            raise _Unknown
        place, kind, raw = found.end(), found.lastgroup, found[found.lastgroup]
        yield kind, raw.replace("''", "'") if kind == "text" else raw.replace('""', '"') if kind == "quoted" else raw


class _Parser:
    """Reads a constraint as both engines print them."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self._tokens = tokens
        self._place = 0

    @property
    def ended(self) -> bool:
        return self._place == len(self._tokens)

    def _peek(self, *words: str) -> bool:
        kind, text = self._tokens[self._place] if not self.ended else ("", "")
        return kind in ("word", "sign") and text.lower() in words

    def _take(self, *words: str) -> bool:
        self._place += (found := self._peek(*words))
        return found

    def _need(self, word: str) -> None:
        if not self._take(word):
            raise _Unknown

    def disjunction(self) -> _Found:
        branches = [self._conjunction()]
        while self._take("or"):
            branches.append(self._conjunction())
        return reduce(_either, branches)

    def _conjunction(self) -> _Found:
        found = self._term()
        while self._take("and"):
            found = _both(found, self._term())
        return found

    def _term(self) -> _Found:
        start = self._place
        if self._take("("):
            try:
                found = self.disjunction()
                self._need(")")
                if self.ended or self._peek(")", "and", "or"):
                    return found
            except _Unknown:
                pass
            self._place = start
        return self._comparison()

    def _comparison(self) -> _Found:
        left = self._operand()
        if self._take("is"):
            negated = self._take("not")
            self._need("null")
            return {} if negated else _of(left, Limits(values=()))
        if self._take("between"):
            lower = self._constant()
            self._need("and")
            return _of(left, Limits(lower, self._constant()))
        if self._take("in"):
            return _of(left, Limits(values=self._list("(", ")")))
        for sign in ("<=", ">=", "<", ">", "="):
            if self._take(sign):
                if sign == "=" and self._take("any"):
                    return _of(left, Limits(values=self._array()))
                return _compared(left, sign, self._operand())
        raise _Unknown

    def _array(self) -> tuple[Constant, ...]:
        self._need("(")
        if self._take("("):
            self._place -= 1
            found = self._array()
        else:
            self._need("array")
            found = self._list("[", "]")
        self._cast()
        self._need(")")
        self._cast()
        return found

    def _list(self, opening: str, closing: str) -> tuple[Constant, ...]:
        self._need(opening)
        found = [self._constant()]
        while self._take(","):
            found.append(self._constant())
        self._need(closing)
        return tuple(found)

    def _constant(self) -> Constant:
        found = self._operand()
        if isinstance(found, _Column):
            raise _Unknown
        return found

    def _operand(self) -> Constant | _Column:
        if self._take("("):
            found = self._operand()
            self._need(")")
        elif self._take("cast"):
            self._need("(")
            found = self._operand()
            self._need("as")
            self._type()
            self._need(")")
        elif self._take("-"):
            of = self._constant()
            if not isinstance(of, Decimal):
                raise _Unknown
            found = -of
        else:
            found = self._plain()
        self._cast()
        return found

    def _plain(self) -> Constant | _Column:
        if self.ended:
            raise _Unknown
        kind, text = self._tokens[self._place]
        self._place += 1
        if kind == "number":
            return Decimal(text)
        if kind == "text":
            return text
        if kind == "quoted" or (kind == "word" and text.lower() not in _AFTER_TYPE):
            if self._peek("(", ".") or (kind == "word" and not self.ended and self._tokens[self._place][0] == "text"):
                raise _Unknown
            return _Column(text)
        raise _Unknown

    def _cast(self) -> None:
        while self._take("::"):
            self._type()

    def _type(self) -> None:
        start = self._place
        while not self.ended and (self._tokens[self._place][0] in ("word", "quoted") or self._peek(".")):
            if self._peek(*_AFTER_TYPE):
                break
            self._place += 1
        if self._place == start:
            raise _Unknown
        if self._take("("):
            while not self._take(")"):
                self._constant()
                self._take(",")
        while self._take("["):
            self._need("]")


def _of(left: Constant | _Column, found: Limits) -> dict[str, Limits]:
    if not isinstance(left, _Column):
        raise _Unknown
    return {left.name: found}


def _compared(left: Constant | _Column, sign: str, right: Constant | _Column) -> dict[str, Limits]:
    if isinstance(right, _Column):
        left, right, sign = right, left, _FLIPPED[sign]
    if not isinstance(left, _Column) or isinstance(right, _Column):
        raise _Unknown
    match sign:
        case "=":
            return {left.name: Limits(values=(right,))}
        case ">" | ">=":
            return {left.name: Limits(lower=right, open_lower=sign == ">")}
        case _:
            return {left.name: Limits(upper=right, open_upper=sign == "<")}


def _both(a: Mapping[str, Limits], b: Mapping[str, Limits]) -> dict[str, Limits]:
    """All of it holds: of two bounds the first is kept, since either is a true one."""
    return {
        name: _and(a[name], b[name]) if name in a and name in b else (a.get(name) or b[name]) for name in {**a, **b}
    }


def _and(a: Limits, b: Limits) -> Limits:
    lower = (a.lower, a.open_lower) if a.lower is not None else (b.lower, b.open_lower)
    upper = (a.upper, a.open_upper) if a.upper is not None else (b.upper, b.open_upper)
    values = a.values if a.values is not None else b.values
    return Limits(lower[0], upper[0], lower[1], upper[1], values)


def _either(a: Mapping[str, Limits], b: Mapping[str, Limits]) -> dict[str, Limits]:
    """One of the two holds: lists of values of one column are joined; where one side says NULL, the other counts."""
    found = {}
    for name in a.keys() & b.keys():
        mine, theirs = a[name].values, b[name].values
        if () in (mine, theirs):
            found[name] = a[name] if theirs == () else b[name]
        elif mine is not None and theirs is not None:
            found[name] = Limits(values=tuple(dict.fromkeys((*mine, *theirs))))
    return found
