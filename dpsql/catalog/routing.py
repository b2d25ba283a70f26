"""Which relations a query names, and so who answers it: the catalog or the engine.

Decides by the resolved names of the parsed query, never by its text. A query that names both kinds is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, unique
from functools import cache, lru_cache

from sqlglot import exp

from dpsql.catalog.functions import MACROS, SESSION, STOP, words
from dpsql.catalog.own import COLUMNS
from dpsql.catalog.snapshot import PG_CATALOG, SCHEMAS, CatalogRelation, snapshot
from dpsql.compiler.parse import name_of, parse
from dpsql.compiler.tokens import scan
from dpsql.errors import NOT_PERMITTED, Rejected


@unique
class Route(Enum):
    CATALOG = "catalog"
    ENGINE = "engine"


@dataclass(frozen=True, slots=True)
class Routed:
    route: Route
    tree: exp.Query | None = None


_OID_ARRAYS = re.compile(r"::\s*(oid|regclass|regtype|regproc)\s*\[\s*\]", re.IGNORECASE)
"""Casts that sqlglot reads only where their type has a schema."""
_WORD = re.compile(r"\w+")


@lru_cache(maxsize=512)
def route(text: str) -> Routed:
    """Where a query belongs. What does not parse is left to the engine, which says why.

    Raises Rejected 42501 for a query over both catalog and other tables.
    """
    if _telling().isdisjoint(_WORD.findall(text.lower())):
        return Routed(Route.ENGINE)
    tree = _parsed(_OID_ARRAYS.sub(r"::pg_catalog.\1[]", text))
    if tree is None:
        return Routed(Route.ENGINE)
    named = [table for table in tree.find_all(exp.Table) if _is_named(table) and not is_cte(table)]
    catalog = [table for table in named if relation(table) is not None or schema_of(table) in SCHEMAS]
    if catalog and len(catalog) < len(named):
        raise Rejected(
            "a query cannot read the catalog and other tables together",
            sqlstate=NOT_PERMITTED,
            hint="Ask them one after the other.",
        )
    if catalog or (not named and _asks_session(tree)):
        return Routed(Route.CATALOG, tree)
    return Routed(Route.ENGINE)


@cache
def _telling() -> frozenset[str]:
    """A query that is the catalog's, or names a relation of it, has one of these words, however it is quoted."""
    relations = frozenset(name for schema, name in snapshot().relations if schema == PG_CATALOG)
    return relations | SCHEMAS.keys() | SESSION | MACROS | STOP | _REG_TYPES


def _parsed(text: str) -> exp.Query | None:
    try:
        return parse(text)
    except Rejected:
        pass
    try:
        named = _named_by_keywords(text)
        return parse(named) if named != text else None
    except Rejected:
        return None


def _named_by_keywords(text: str) -> str:
    """The text with columns named by a keyword in quotes: Postgres takes any word after AS, Metabase names some so."""
    tokens = scan(text).tokens
    for before, token, after in reversed(list(zip(tokens, tokens[1:], tokens[2:], strict=False))):
        named = before.is_word("as") and token.is_word("select", "insert", "update", "delete")
        if named and (after.is_symbol(",") or after.is_word("from")):
            text = f'{text[: token.start]}"{token.text}"{text[token.end :]}'
    return text


def _is_named(table: exp.Table) -> bool:
    return isinstance(table.this, exp.Identifier)


def is_cte(table: exp.Table) -> bool:
    """Whether an unqualified name is that of a WITH query in whose reach the table stands."""
    if table.args.get("db"):
        return False
    name = name_of(table.this)
    node: exp.Expr | None = table
    while node is not None:
        with_ = node.args.get("with_")
        if isinstance(with_, exp.With) and any(name_of(cte.args["alias"].this) == name for cte in with_.expressions):
            return True
        node = node.parent
    return False


def schema_of(table: exp.Table) -> str | None:
    """The schema as written, or pg_catalog for an unqualified name of one of its relations, as in Postgres."""
    schema = table.args.get("db")
    if schema is not None:
        return name_of(schema)
    return PG_CATALOG if (PG_CATALOG, name_of(table.this)) in snapshot().relations else None


def relation(table: exp.Table) -> CatalogRelation | None:
    """The catalog's relation that a table names, None if it is none."""
    key = (schema_of(table) or "", name_of(table.this))
    return COLUMNS if key == (COLUMNS.schema, COLUMNS.name) else snapshot().relations.get(key)


def _asks_session(tree: exp.Query) -> bool:
    """Whether a query without any table calls a function of the session or of the catalog."""
    return any(function_name(node) in SESSION | MACROS | STOP for node in tree.find_all(exp.Func, exp.Column, exp.Cast))


_REG_TYPES = words("regclass regtype regproc regnamespace regrole")


def function_name(node: exp.Expr) -> str:
    """A function's name in lower case, '' for another node. Casts to the reg types count as functions too."""
    match node:
        case exp.Anonymous():
            return str(node.this).lower()
        case exp.Cast():
            return "to_regtype" if reg_type(node) else "cast"
        case exp.Func():
            return node.sql_names()[0].lower()
        case exp.Column() if not node.args.get("table") and not node.this.args.get("quoted"):
            name = name_of(node.this)
            return name if name in ("user", "current_role", "current_catalog") else ""
        case _:
            return ""


def reg_type(cast: exp.Cast) -> str | None:
    """`regclass` and the like, if that is what the cast makes."""
    kind = cast.args["to"]
    text = kind.sql(dialect="postgres").lower().replace('"', "").removeprefix(f"{PG_CATALOG}.")
    return text if text in _REG_TYPES else None
