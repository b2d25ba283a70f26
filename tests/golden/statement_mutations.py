"""Statements that almost make sense: those of the golden cases and of clients, changed in tokens and literals.

Deterministic: the same seed gives the same statements. Not a test itself.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

TOKEN = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\$\d+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\w+|::|<=|>=|<>|!=|\|\||->>|->|\s+|.""",
    re.DOTALL,
)
EXTREMES = (
    "0", "-1", "1e400", "1e-400", ".5.", "1..2", "0x1F", "1_000", "9223372036854775807", "9223372036854775808",
    "170141183460469231731687303715884105728", "1e308", "NaN", "'NaN'", "'infinity'", "'-infinity'::float8", "''",
    "'\\'", "'x'", "E'\\x'", "E'\\u0000'", "E'\\ud800'", "U&'\\D800'", "U&'\\0000'", "U&'d!0061t' UESCAPE '!'",
    "B'01'", "X'1F'", "$1", "$0", "$99999", "$$a$$", "$x$a$x$", "NULL", "TRUE", "DEFAULT", "*", "'2020-02-30'",
    "DATE '0000-00-00'", "DATE 'infinity'", "INTERVAL '1 day'", "INTERVAL '-178000000 years'", "'\u00e4\u0130\ufb01'",
    "'\U0001f600'", "'\u202e'", "'\ud800'", "'\x00'", "\u00e9t\u00e9", "ARRAY[1,2]", "ROW(1,2)", "(1,2)",
    "CURRENT_DATE", "now()", "'" + "a" * 5_000 + "'", "1" * 400, "'{1,2}'", "'[1,2)'", "'1 day ago'",
)  # fmt: skip
WORDS = (
    "SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "OFFSET", "DISTINCT", "ALL", "IN", "NOT",
    "BETWEEN", "LIKE", "IS", "NULL", "CASE", "WHEN", "THEN", "ELSE", "END", "AS", "ON", "USING", "JOIN", "LEFT",
    "UNION",
    "EXCEPT", "OVER", "PARTITION BY", "FILTER", "WITHIN GROUP", "WITH", "VALUES", "LATERAL", "CAST", "EXTRACT", "::",
    "INTERVAL", "ROLLUP", "CUBE", "GROUPING SETS", "EXISTS", "ANY", "COUNT", "SUM", "AVG", "MIN", "MEDIAN", "DIV",
    "COALESCE", "NULLIF", "to_char", "date_trunc", "substring", "position", "round", "width_bucket", "log", "mod",
    "generate_series", "unnest", "row_number", "string_agg", "array_agg", "concat_ws", "format", "ESCAPE", "COLLATE",
    "AT TIME ZONE", "TABLESAMPLE", "FETCH FIRST", "FOR UPDATE", "INTO", "(", ")", "[", "]", ",", ";", ".", "*", "+",
    "-", "/", "%", "^", "||", "=", "<", "~", "@", "!", "#", "&", "|", "?", ":", "--", "/*", "*/", "\\", "'", '"',
)  # fmt: skip
NESTS = (
    "({})", "(SELECT {})", "NOT ({})", "-({})", "CAST(({}) AS text)", "ABS({})", "SUM({})", "CASE WHEN {} THEN 1 END",
    "COALESCE({}, 1)", "({})::int", "EXISTS (SELECT {})", "ARRAY[{}]",
)  # fmt: skip

Tokens = list[str]


@dataclass
class Mutator:
    """Changes statements of a corpus."""

    corpus: tuple[str, ...]
    random: random.Random
    _read: list[Tokens] = field(init=False)

    def __post_init__(self) -> None:
        self._read = [TOKEN.findall(text) for text in self.corpus]

    def statements(self, count: int) -> Iterator[str]:
        for _ in range(count):
            yield self.statement()

    def statement(self) -> str:
        """A statement with one to four changes, mostly one."""
        made = list(self.random.choice(self._read))
        for _ in range(self.random.choice((1, 1, 1, 1, 1, 2, 3, 4))):
            self.random.choice(_CHANGES)(self, made)
        return "".join(_apart(made))

    def place(self, tokens: Tokens, *, word: bool = False) -> int:
        """Of a token that is no space; of a name or literal (keywords are in capitals), where there is one."""
        places = [i for i, t in enumerate(tokens) if (_is_atom(t) if word else t.strip())]
        if not tokens:
            tokens.append(" ")
        return self.random.choice(places or [0])

    def span(self, tokens: Tokens) -> slice:
        """A run of tokens whose brackets match, mostly: a word with the arguments behind it, a bracket, a few words."""
        start = end = self.place(tokens, word=self.random.random() < 0.8)
        if self.random.random() < 0.1:
            return slice(start, start + self.random.randint(1, 12))
        for _ in range(self.random.choice((1, 1, 1, 2, 5))):
            end = _after(tokens, end)
        return slice(start, end) if tokens[start] not in ")]" else slice(start, start)


def _apart(tokens: Tokens) -> Iterator[str]:
    """Words that have come together stay words."""
    before = " "
    for token in filter(None, tokens):
        if before[-1].isalnum() and token[0].isalnum():
            yield " "
        yield token
        before = token


def _is_atom(token: str) -> bool:
    return (token[:1].isalnum() and not token.isupper()) or token[:1] in ("'", '"', "$", "_")


def _after(tokens: Tokens, at: int) -> int:
    """The end of what begins here: of one token, or of all to the closing bracket."""
    depth = 0
    while at < len(tokens):
        depth += (tokens[at] in ("(", "[")) - (tokens[at] in (")", "]"))
        if depth < 0:
            return at
        at += 1
        if depth == 0 and (at == len(tokens) or tokens[at] not in ("(", "[")):
            return at
    return at


def _delete(m: Mutator, tokens: Tokens) -> None:
    del tokens[m.span(tokens)]


def _swap(m: Mutator, tokens: Tokens) -> None:
    a, b = m.place(tokens, word=True), m.place(tokens, word=True)
    tokens[a], tokens[b] = tokens[b], tokens[a]


def _duplicate(m: Mutator, tokens: Tokens) -> None:
    found = m.span(tokens)
    tokens[found.start : found.start] = [*tokens[found], m.random.choice(("", " ", ", ", " AND "))]


def _splice(m: Mutator, tokens: Tokens) -> None:
    other = m.random.choice(m._read)
    found, part = m.span(tokens), other[m.span(other)]
    tokens[found if m.random.random() < 0.8 else slice(found.start, found.start)] = part


def _name(m: Mutator, tokens: Tokens) -> None:
    """Another word of some statement in a word's place."""
    other = m.random.choice(m._read)
    tokens[m.place(tokens, word=True)] = other[m.place(other, word=True)]


def _literal(m: Mutator, tokens: Tokens) -> None:
    tokens[m.place(tokens, word=True)] = m.random.choice(EXTREMES)


def _word(m: Mutator, tokens: Tokens) -> None:
    at = m.place(tokens)
    tokens[at : at + m.random.choice((0, 1))] = [" ", m.random.choice(WORDS), " "]


def _nest(m: Mutator, tokens: Tokens) -> None:
    found = m.span(tokens)
    inner = "".join(tokens[found])
    for _ in range(m.random.choice((1, 1, 2, 20))):
        inner = (
            m.random.choice(NESTS).format(inner.replace("{", "{{").replace("}", "}}")) if "{" not in inner else inner
        )
    tokens[found] = [inner]


_CHANGES: tuple[Callable[[Mutator, Tokens], None], ...] = (
    _delete, _swap, _swap, _duplicate, _splice, _splice, _name, _name, _literal, _literal, _word, _nest,
)  # fmt: skip


def client_statements(text: str) -> tuple[str, ...]:
    """The statements of a file in which each ends with a semicolon at the end of a line."""
    parts = re.split(r";[ \t]*$", re.sub(r"^--[^\n]*$", "", text, flags=re.MULTILINE), flags=re.MULTILINE)
    return tuple(part.strip() for part in parts if part.strip())
