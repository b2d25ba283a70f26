"""Names: which column a name means, at which level of nesting. Raises 42703, 42702 and 42P01 as Postgres would."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING

from sqlglot import exp

from dpsql.compiler.public.storage import Digits
from dpsql.compiler.public.term import Loose, Term, check_size
from dpsql.errors import AMBIGUOUS_COLUMN, NOT_SUPPORTED, UNDEFINED_COLUMN, UNDEFINED_TABLE, Rejected
from dpsql.types import Column, SqlType

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Field:
    """A column that a query can see: its name, and the DuckDB text that reads it."""

    name: str
    sql: str
    type: SqlType
    digits: Digits | None = None
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """One item of FROM. `name` is None where it has no name of its own."""

    name: str | None
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """A translated query: DuckDB text whose columns are the fields, in order, named c1, c2, ..."""

    sql: str
    fields: tuple[Field, ...]
    loose: frozenset[Loose] = frozenset()
    """Columns of the queries around it that it reads."""

    def __post_init__(self) -> None:
        check_size(self.sql)


@dataclass(frozen=True, slots=True)
class Context:
    """What a whole translation shares. The counter only names things; `used` collects the relations read."""

    relations: Mapping[str, tuple[Column, ...]]
    zone: str
    subquery: Callable[[exp.Expr, Scope], Query]
    expression: Callable[[exp.Expr, Scope], Term]
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    used: dict[str, None] = field(default_factory=dict)

    def fresh(self, prefix: str) -> str:
        return f"{prefix}{next(self.numbers)}"


@dataclass(frozen=True, slots=True)
class Scope:
    """What an expression can see. `keys` maps the text of a group key to the text that stands for it afterwards.

    `clause` names the clause in errors; `merged` are the columns that USING made one, `queries` the CTEs by name
    (their `sql` is then a name).
    """

    context: Context
    level: int
    sources: tuple[Source, ...] = ()
    merged: tuple[Field, ...] = ()
    outer: Scope | None = None
    queries: Mapping[str, Query] = field(default_factory=dict)
    keys: Mapping[str, str] | None = None
    windows: Mapping[str, exp.Window] = field(default_factory=dict)
    clause: str = "SELECT"
    in_aggregate: bool = False
    correlated: set[Loose] = field(default_factory=set)
    """Collects the columns of outer queries that this one reads."""

    @property
    def zone(self) -> str:
        return self.context.zone


def name_of(identifier: exp.Expr | None) -> str:
    """An identifier as Postgres folds it."""
    if not isinstance(identifier, exp.Identifier):
        return ""
    text = str(identifier.this)
    return text if identifier.args.get("quoted") else text.lower()


def position_of(node: exp.Expr | None) -> int | None:
    """1-based offset of the leftmost token that is known of `node`."""
    if node is None:
        return None
    starts = [n.meta["start"] for n in node.walk() if n._meta and "start" in n._meta]
    return min(starts) + 1 if starts else None


def resolve(node: exp.Column, scope: Scope) -> Term:
    """The column that `node` names, in the innermost scope that has it."""
    table, name = name_of(node.args.get("table")), name_of(node.this)
    level: Scope | None = scope
    passed: list[Scope] = []
    while level is not None:
        found = _in_scope(level, table, name, node)
        if found is not None:
            loose = Loose(level.level, f"{table}.{name}" if table else name, position_of(node))
            term = keyed(Term(found.sql, found.type, found.digits, loose=frozenset((loose,))), level)
            if passed and term.sql.startswith("first("):
                text = f'column "{name}" of an outer grouped query is not supported here'
                raise Rejected(text, sqlstate=NOT_SUPPORTED, position=position_of(node))
            for each in passed:
                each.correlated.update(term.loose)
            return term
        passed.append(level)
        level = level.outer
    raise _missing(node, table, name, scope)


def _in_scope(scope: Scope, table: str, name: str, node: exp.Expr) -> Field | None:
    if not table and any(f.name == name for f in scope.merged):
        return next(f for f in scope.merged if f.name == name)
    sources = [s for s in scope.sources if not table or s.name == table]
    found = [f for s in sources for f in s.fields if f.name == name]
    if len(found) > 1:
        text = f'column reference "{name}" is ambiguous'
        raise Rejected(text, sqlstate=AMBIGUOUS_COLUMN, position=position_of(node))
    return found[0] if found else None


def _missing(node: exp.Column, table: str, name: str, scope: Scope) -> Rejected:
    known, level = set[str | None](), scope
    while True:
        known |= {s.name for s in level.sources}
        if level.outer is None:
            break
        level = level.outer
    if table and table not in known:
        text = f'missing FROM-clause entry for table "{table}"'
        return Rejected(text, sqlstate=UNDEFINED_TABLE, position=position_of(node))
    label = f"{table}.{name}" if table else f'"{name}"'
    return Rejected(f"column {label} does not exist", sqlstate=UNDEFINED_COLUMN, position=position_of(node))


def star(scope: Scope, table: str, node: exp.Expr) -> tuple[Field, ...]:
    """The fields that `*` or `table.*` stands for, in Postgres's order."""
    if table:
        sources = [s for s in scope.sources if s.name == table]
        if not sources:
            text = f'missing FROM-clause entry for table "{table}"'
            raise Rejected(text, sqlstate=UNDEFINED_TABLE, position=position_of(node))
        return tuple(f for f in sources[0].fields if not f.hidden)
    if not scope.sources:
        raise Rejected("SELECT * with no tables specified is not valid", sqlstate="42601", position=position_of(node))
    names = {f.name for f in scope.merged}
    rest = tuple(f for s in scope.sources for f in s.fields if not f.hidden and f.name not in names)
    return scope.merged + rest


def read(field: Field, scope: Scope) -> Term:
    """A column of `scope` itself, as an expression."""
    loose = Loose(scope.level, field.name, None)
    return keyed(Term(field.sql, field.type, field.digits, loose=frozenset((loose,))), scope)


def keyed(term: Term, scope: Scope) -> Term:
    """The term as what stands for it after grouping, if it is one of the group keys."""
    if scope.keys is None or scope.in_aggregate or term.sql not in scope.keys:
        return term
    loose = frozenset(each for each in term.loose if each.level != scope.level)
    return replace(term, sql=scope.keys[term.sql], loose=loose)
