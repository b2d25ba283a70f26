"""The catalog as one user sees it: describes and answers queries over it.

Decides result types. It must never reach the engine or the backend.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import cast

from sqlglot import exp

from dpsql.backends import Cancel
from dpsql.catalog.activity import stopped
from dpsql.catalog.context import Context
from dpsql.catalog.database import Database
from dpsql.catalog.memory import Memory
from dpsql.catalog.missing import hinted
from dpsql.catalog.output_types import cast_type, output_types
from dpsql.catalog.rewrite import Rewritten, parameter_number, rewrite
from dpsql.catalog.routing import Route, route
from dpsql.catalog.rows import rows_for
from dpsql.catalog.snapshot import snapshot
from dpsql.compiler.parse import name_of
from dpsql.errors import Failed
from dpsql.pgwire.oids import ARRAY_OF, KIND_OF, OID_OF, VECTORS
from dpsql.pgwire.values import WireValue
from dpsql.policy.schema import Schema
from dpsql.remainder.forms import interval_of
from dpsql.types import BOOL, TEXT, Column, Description, Kind, Relation, SqlType, Value

_KINDS = {
    "BOOLEAN": Kind.BOOL,
    "TINYINT": Kind.INT2,
    "SMALLINT": Kind.INT2,
    "USMALLINT": Kind.INT4,
    "INTEGER": Kind.INT4,
    "UINTEGER": Kind.OID,
    "BIGINT": Kind.INT8,
    "UBIGINT": Kind.NUMERIC,
    "HUGEINT": Kind.INT8,
    "FLOAT": Kind.FLOAT4,
    "DOUBLE": Kind.FLOAT8,
    "DATE": Kind.DATE,
    "TIMESTAMP": Kind.TIMESTAMP,
    "INTERVAL": Kind.INTERVAL,
    "JSON": Kind.JSON,
    "VARCHAR[]": Kind.TEXT_ARRAY,
    "DOUBLE[]": Kind.FLOAT8_ARRAY,
    "FLOAT[]": Kind.FLOAT4_ARRAY,
    "BOOLEAN[]": Kind.BOOL_ARRAY,
    "SMALLINT[]": Kind.INT2_ARRAY,
    "INTEGER[]": Kind.INT4_ARRAY,
    "UINTEGER[]": Kind.OID_ARRAY,
    "BIGINT[]": Kind.INT8_ARRAY,
}
_TEXTS = frozenset((Kind.TEXT, Kind.NAME, Kind.CHAR, Kind.VARCHAR))
_INTEGERS = frozenset((Kind.INT2, Kind.INT4, Kind.INT8, Kind.OID))
_ALIKE = (
    _TEXTS,
    _INTEGERS,
    frozenset((Kind.TIMESTAMP, Kind.TIMESTAMPTZ)),
    frozenset((Kind.TEXT_ARRAY, Kind.NAME_ARRAY, Kind.CHAR_ARRAY)),
    frozenset((Kind.INT2_ARRAY, Kind.INT4_ARRAY, Kind.INT8_ARRAY, Kind.OID_ARRAY, *VECTORS)),
)
"""Types between which DuckDB's type does not tell, or tells less well than the query's text."""


WARM_AFTER = 1.0
"""Seconds."""
MOST_WARM = 4
"""Roles whose databases are made ahead: one takes some fifth of a second."""
_FIRST = "SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"


class Visible:
    """What the users of one role may see: a database, made at the first query, and the queries that it has had."""

    def __init__(self, schema: Schema, user: str) -> None:
        self._schema = schema
        self._user = user
        self._lock = threading.Lock()
        self._made: Database | None = None
        self.fixed: Memory[Rewritten] = Memory(256)

    def database(self) -> Database:
        with self._lock:
            if self._made is None:
                self._made = Database(rows_for(self._schema, self._user))
            return self._made

    def close(self) -> None:
        with self._lock:
            if self._made is not None:
                self._made.close()
                self._made = None


class Catalog:
    """One user's catalog."""

    def __init__(self, schema: Schema, user: str, visible: Visible | None = None) -> None:
        self._schema = schema
        self._user = user
        self._visible = Visible(schema, user) if visible is None else visible

    def warm(self) -> None:
        """Asks what clients ask first, and makes all that they may call."""
        context = Context(self._user, self._schema.policy.dataset)
        self.answer(_FIRST, (), context)
        self._visible.database().warm()

    def is_catalog(self, text: str) -> bool:
        """Whether the query is one for this catalog. Raises Rejected 42501 for one over both kinds of relation."""
        return route(text).route is Route.CATALOG

    def describe(self, text: str, parameter_types: tuple[SqlType | None, ...], context: Context) -> Description:
        tree = self._tree(text)
        types = _parameter_types(tree, parameter_types)
        query = self._rewritten(text, tree, context, (None,) * len(types))
        with hinted(tree, context):
            columns = self._visible.database().columns(query)
        return Description(types, _answering(query, _columns(tree, columns)))

    def answer(
        self,
        text: str,
        parameters: tuple[tuple[SqlType, WireValue], ...],
        context: Context,
        cancel: Cancel | None = None,
    ) -> Relation:
        """Raises Rejected, 57014 where `cancel` or the time limit stopped it."""
        tree = self._tree(text)
        query = self._rewritten(text, tree, context, [value for _, value in parameters])
        with hinted(tree, context):
            found = self._visible.database().run(query, self._user, cancel, context.timeout)
        rows = stopped(found.rows, query.stops, context)
        columns = _answering(query, _columns(tree, found.columns))
        return Relation(columns, tuple(tuple(map(_value, row, columns)) for row in rows))

    def _rewritten(self, text: str, tree: exp.Query, context: Context, parameters: Sequence[WireValue]) -> Rewritten:
        query = self._visible.fixed.get(text)
        if query is None:
            query = rewrite(tree, context, self._schema.policy.dataset, parameters)
            if query.fixed:
                self._visible.fixed.put(text, query)
        return query

    def close(self) -> None:
        self._visible.close()

    def _tree(self, text: str) -> exp.Query:
        tree = route(text).tree
        if tree is None:
            raise Failed("a query that is not the catalog's came to the catalog")
        return tree


class Catalogs:
    """The catalogs of all users, those of one role over the same database."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._lock = threading.Lock()
        self._by_role: dict[str | None, Visible] = {}
        self._closed = threading.Event()
        self._warming: threading.Thread | None = None

    def of(self, user: str) -> Catalog:
        found = self._schema.policy.users.get(user)
        role = None if found is None else found.role
        with self._lock:
            if role not in self._by_role:
                self._by_role[role] = Visible(self._schema, user)
            return Catalog(self._schema, user, self._by_role[role])

    def warm(self) -> None:
        """Makes the databases of the roles, a few at most, so that no client's first question waits for one."""
        known = {user.role: name for name, user in self._schema.policy.users.items()}
        for user in list(known.values())[:MOST_WARM]:
            if not self._closed.is_set():
                self.of(user).warm()

    def warm_soon(self) -> None:
        """The same in the background, once the first statements have had the processor."""
        self._warming = threading.Thread(target=self._warm_later, name="dpsql-catalog", daemon=True)
        self._warming.start()

    def _warm_later(self) -> None:
        if not self._closed.wait(WARM_AFTER):
            self.warm()

    def close(self) -> None:
        self._closed.set()
        if self._warming is not None:
            self._warming.join()
        with self._lock:
            for visible in self._by_role.values():
                visible.close()
            self._by_role.clear()


# --- types ---------------------------------------------------------------------------------------------------------


def _columns(tree: exp.Query, described: tuple[tuple[str, str], ...]) -> tuple[Column, ...]:
    known = [type for _, type in output_types(tree)]
    # A star over something unknown leaves no way to say which column is which.
    types = known if len(known) == len(described) else [None] * len(described)
    return tuple(Column(name, _type(duckdb, type)) for (name, duckdb), type in zip(described, types, strict=True))


def _answering(query: Rewritten, columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """Columns that stop sessions say whether they did."""
    places = {len(columns) + place for place, _ in query.stops}
    return tuple(Column(c.name, BOOL) if at in places else c for at, c in enumerate(columns))


def _type(duckdb: str, oid: int | None) -> SqlType:
    kind = Kind.NUMERIC if duckdb.startswith("DECIMAL") else _KINDS.get(duckdb, Kind.TEXT)
    asked = _OIDS.get(oid or 0)
    return SqlType(asked if asked is not None and any(kind in alike and asked in alike for alike in _ALIKE) else kind)


_OIDS = {OID_OF[kind]: kind for alike in _ALIKE for kind in alike}


def _parameter_types(tree: exp.Query, declared: tuple[SqlType | None, ...]) -> tuple[SqlType, ...]:
    nodes = {parameter_number(node): node for node in tree.find_all(exp.Parameter)}
    count = max((*nodes, len(declared)), default=0)
    return tuple((declared[at] if at < len(declared) else None) or _inferred(nodes.get(at + 1)) for at in range(count))


def _inferred(node: exp.Parameter | None) -> SqlType:
    """The type of an undeclared parameter: of the cast on it, or of the column it is compared with; else text."""
    if node is None or node.parent is None:
        return TEXT
    parent = node.parent
    if isinstance(parent, exp.Cast):
        return SqlType(KIND_OF.get(cast_type(parent) or 0, Kind.TEXT))
    listed = False
    while isinstance(parent, exp.Paren | exp.Any):
        listed = listed or isinstance(parent, exp.Any)
        if parent.parent is None:
            return TEXT
        parent = parent.parent
    other = next((item for item in parent.find_all(exp.Column)), None)
    oid = snapshot().column_types.get(name_of(other.this)) if other is not None else None
    return _list_type(oid) if listed else _scalar_type(oid)


def _scalar_type(oid: int | None) -> SqlType:
    kinds = {16: Kind.BOOL, 20: Kind.INT8, 21: Kind.INT2, 23: Kind.INT4, 26: Kind.OID}
    return SqlType(kinds.get(oid or 0, Kind.TEXT))


def _list_type(oid: int | None) -> SqlType:
    return SqlType(ARRAY_OF.get(_scalar_type(oid).kind, Kind.TEXT_ARRAY))


# --- values --------------------------------------------------------------------------------------------------------


def _without_zeros(value: Decimal) -> Decimal:
    whole = value.to_integral_value()
    return whole if value == whole else value.normalize()


def _value(value: object, column: Column) -> Value:
    """A DuckDB value as the column's type has it."""
    if column.type.kind is Kind.INTERVAL and value is not None:
        return interval_of(value)
    if isinstance(value, list):
        # An array travels as a tuple, which pgwire encodes.
        return cast(Value, tuple(value))
    if column.type.kind is Kind.TIMESTAMPTZ and isinstance(value, datetime):
        return value.replace(tzinfo=UTC)
    if column.type.kind is Kind.NUMERIC and isinstance(value, int):
        return Decimal(value)
    if isinstance(value, Decimal):
        return _without_zeros(value)
    if column.type.kind in _TEXTS and value is not None and not isinstance(value, str):
        return str(value)
    return cast(Value, value)
