"""Where a statement goes: to the public server as it is, or to the engine.

Decides from the tokens, and where they name something private, from the resolved names of the parsed query. In doubt a
statement goes to the public server unchanged: nothing private is in it, and rights are the wall there. What must not
run there at all, for rights cannot forbid it, is refused by its kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from dpsql.compiler import kinds, statements
from dpsql.compiler.kinds import Statement
from dpsql.compiler.relations import named
from dpsql.compiler.tokens import Token, TokenKind
from dpsql.errors import Rejected
from dpsql.public.place import Names

OWN_SCHEMA = "dpsql"


@dataclass(frozen=True, slots=True)
class Passed:
    """A statement for the public server. `private`: it names what may not be read there."""

    private: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """A statement for the engine, or one that the session answers itself."""

    statement: Statement


@dataclass(frozen=True, slots=True)
class Filled:
    """A query that reads relations which the ledger fills: (start, end, relation, needs a name) of each, in order."""

    places: tuple[tuple[int, int, str, bool], ...]


Route = Passed | Asked | Filled


@dataclass(frozen=True, slots=True)
class Part:
    """One statement of a text, from `start` to `end`."""

    start: int
    end: int
    statement: Statement
    route: Route


@lru_cache(maxsize=1024)
def routed(text: str, names: Names) -> tuple[Part, ...] | None:
    """The statements of a text with their routes; None for a text that is for the public server as a whole."""
    try:
        parts = statements.parts(text)
    except Rejected:
        return None
    made = tuple(
        Part(tokens[0].start, tokens[-1].end, statement, _route(statement, tokens, text, names))
        for statement, tokens in parts
        if tokens
    )
    return made or None


def unreadable(text: str) -> Rejected | None:
    """Why a text cannot be taken apart: it is too long, too deep, or no SQL."""
    try:
        statements.parts(text)
    except Rejected as error:
        return error
    return None


def _route(statement: Statement, tokens: tuple[Token, ...], text: str, names: Names) -> Route:
    match statement:
        case kinds.Select(options=options) if options:
            return Asked(statement)
        case kinds.Select():
            return _query(statement, statement, tokens, names)
        case (
            kinds.Explain(query) | kinds.Declare(query=query) | kinds.CopyOut(query=query) | kinds.Prepare(query=query)
        ):
            return _query(statement, query, tokens, names)
        case kinds.Show("dpsql.budget") | kinds.ExecutePrepared() | kinds.Listening("LISTEN" | "NOTIFY"):
            return Asked(statement)
        case kinds.Set(name) if name.lower().startswith(f"{OWN_SCHEMA}.") or name.lower() in _READ_HERE:
            return Asked(statement)
        case kinds.Unsupported() if statement.verb not in _READ_BY_POSTGRES:
            return Asked(statement)
        case _:
            return Passed()


_READ_HERE = frozenset(("client_encoding", "standard_conforming_strings", "array_nulls"))
"""Settings on which it hangs how a text is read, here and there."""
_READ_BY_POSTGRES = frozenset(
    (
        *("SELECT", "WITH", "VALUES", "TABLE", "(", "EXPLAIN", "PREPARE", "EXECUTE"),
        *("DECLARE", "FETCH", "MOVE", "CLOSE"),
        *("BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE"),
        *("SET", "SHOW", "RESET", "DISCARD", "DEALLOCATE", "UNLISTEN", "COPY"),
    )
)
"""Statements that Postgres reads better than we do: what is wrong with them, it says."""


def _query(whole: Statement, query: kinds.Select, tokens: tuple[Token, ...], names: Names) -> Route:
    words = {t.text.lower() for t in tokens if t.kind in (TokenKind.WORD, TokenKind.QUOTED)}
    if OWN_SCHEMA not in words and words.isdisjoint(names.private):
        return Passed()
    try:
        found = named(query.text)
    except Rejected:
        return Passed(private=True)
    if any(each.name.lower() in names.private and each.schema not in _ELSEWHERE for each in found):
        return Asked(whole)
    own = [each for each in found if each.schema == OWN_SCHEMA and each.name in names.filled]
    places = [(query.offset + each.start, query.offset + each.end, each.name, not each.has_alias) for each in own]
    return Filled(tuple(places)) if places else Passed()


_ELSEWHERE = ("pg_catalog", "information_schema", OWN_SCHEMA)
"""Schemas in which nothing is private."""


def filled(text: str, route: Filled, relations: Mapping[str, str]) -> str:
    """The text with each place taken by a query."""
    for start, end, table, nameless in reversed(route.places):
        alias = f" AS {table}" if nameless else ""
        text = f"{text[:start]}({relations[table]}){alias}{text[end:]}"
    return text
