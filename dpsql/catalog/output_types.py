"""The types that Postgres gives to the output columns of a catalog query, as far as they follow from the text.

DuckDB's types say less: a name, a "char" and a text are all VARCHAR there. Decides types only; None is left to DuckDB.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from dpsql.catalog.functions import words
from dpsql.catalog.routing import function_name, reg_type, relation
from dpsql.compiler.parse import name_of
from dpsql.compiler.public.names import output_name
from dpsql.pgwire.oids import ARRAY_OF, ELEMENT, KIND_OF, OID_OF

BOOL, CHAR, NAME, INT8, INT2, INT4, TEXT, OID, VARCHAR = 16, 18, 19, 20, 21, 23, 25, 26, 1043

DOMAINS = {13226: NAME, 13224: VARCHAR, 13234: VARCHAR, 13221: INT4, 13232: 1184}
"""information_schema's domains, which are announced as the types below them."""

_NAMES = words(
    "pg_get_userbyid pg_encoding_to_char current_schema current_database current_catalog current_user session_user "
    "user current_role"
)
_TYPES = {
    "name": NAME, "char": CHAR, "oid": OID, "text": TEXT, "varchar": VARCHAR, "character varying": VARCHAR,
    "bool": BOOL, "boolean": BOOL, "int": INT4, "int4": INT4, "integer": INT4, "smallint": INT2, "bigint": INT8,
    "text[]": 1009, "varchar[]": 1009, "name[]": 1003, "oid[]": 1028, "smallint[]": 1005, "int[]": 1007,
    "integer[]": 1007, "bigint[]": 1016, "oidvector": 30, "int2vector": 22,
}  # fmt: skip
_FIRST_ARGUMENT = (
    exp.Order,
    exp.Coalesce,
    exp.Nullif,
    exp.Paren,
    exp.Alias,
    exp.Collate,
    exp.Filter,
    exp.Ordered,
    exp.Distinct,
)

Columns = tuple[tuple[str, int | None], ...]
Scope = Mapping[str, Columns]


def output_types(tree: exp.Query) -> Columns:
    """Name and type of each output column."""
    return _query(tree, {}, {})


def _query(node: exp.Expr, common: Scope, outer: Scope) -> Columns:
    common = {**common, **_common(node, common)}
    match node:
        case exp.Subquery() | exp.Paren():
            return _query(node.this, common, outer)
        case exp.SetOperation():
            left, right = (_query(side, common, outer) for side in (node.this, node.expression))
            return tuple(
                (name, type if type is not None else other)
                for (name, type), (_, other) in zip(left, right, strict=False)
            )
        case exp.Select():
            return _select(node, common, outer)
        case _:
            return ()


def _common(node: exp.Expr, common: Scope) -> Scope:
    """What the WITH of a query defines."""
    with_ = node.args.get("with_")
    found: dict[str, Columns] = {}
    for cte in with_.expressions if isinstance(with_, exp.With) else ():
        query = cte.this.this if isinstance(cte.this, exp.SetOperation) else cte.this
        found[name_of(cte.args["alias"].this)] = _aliased(_query(query, {**common, **found}, {}), cte.args["alias"])
    return found


def _aliased(columns: Columns, alias: exp.Expr | None) -> Columns:
    names = [name_of(item) for item in (alias.args.get("columns") or ())] if alias is not None else []
    return (*zip(names, (type for _, type in columns), strict=False), *columns[len(names) :])


# --- sources -------------------------------------------------------------------------------------------------------


def _select(select: exp.Select, common: Scope, outer: Scope) -> Columns:
    own = {_named(item): _source(item, common) for item in _sources(select.args.get("from_"), select)}
    scope = {**outer, **own}
    found: list[tuple[str, int | None]] = []
    for item in select.expressions:
        if item.is_star:
            found += _star(item, own)
        else:
            found.append((output_name(item), _type(item, scope, common)))
    return tuple(found)


def _sources(first: exp.Expr | None, joined: exp.Expr) -> list[exp.Expr]:
    """What FROM names, out of parentheses around joins."""
    items = [first.this] if first is not None else []
    items += [join.this for join in joined.args.get("joins") or ()]
    found: list[exp.Expr] = []
    for item in items:
        inside = item.this if isinstance(item, exp.Subquery | exp.Paren) and not item.alias else None
        nested = isinstance(inside, exp.Table | exp.Subquery | exp.Paren)
        found += _sources(item, inside) if inside is not None and nested else [item]
    return found


def _named(item: exp.Expr) -> str:
    alias = item.args.get("alias")
    return name_of(alias.this) if isinstance(alias, exp.TableAlias) and alias.this else name_of(item.this)


def _star(item: exp.Expr, own: Scope) -> Columns:
    table = name_of(item.args.get("table")) if isinstance(item, exp.Column) else ""
    if table:
        return own.get(table, ())
    return tuple(column for columns in own.values() for column in columns)


def _source(item: exp.Expr, common: Scope) -> Columns:
    alias = item.args.get("alias")
    match item:
        case exp.Table() if isinstance(item.this, exp.Identifier):
            found = relation(item)
            name = name_of(item.this)
            if not item.args.get("db") and name in common:
                return _aliased(common[name], alias)
            columns = found.columns if found is not None else ()
            return _aliased(tuple((c.name, DOMAINS.get(c.type_oid, c.type_oid)) for c in columns), alias)
        case exp.Table() | exp.Unnest():
            inner = item.this if isinstance(item, exp.Table) else item
            return _aliased(((item.alias or function_name(inner), _type(inner, {}, common)),), alias)
        case _:
            return _aliased(_query(item, common, {}), alias)


# --- expressions ---------------------------------------------------------------------------------------------------


def _type(node: exp.Expr, scope: Scope, common: Scope) -> int | None:
    match node:
        case exp.Column():
            return _column(node, scope)
        case exp.Subquery() | exp.Select():
            found = _query(node, common, scope)
            return found[0][1] if found else None
        case exp.Dot(this=exp.Identifier()):
            return _type(node.expression, scope, common)
        case exp.Dot():
            return {"n": INT4, "x": INT2}.get(name_of(node.expression))
        case exp.Bracket():
            return _element(_type(node.this, scope, common))
        case exp.Cast():
            return cast_type(node)
        case exp.Case():
            return _case(node, scope, common)
        case exp.Array() | exp.ArrayAgg():
            inner = node.expressions[0] if isinstance(node, exp.Array) and node.expressions else node.this
            return _array(_type(inner, scope, common)) if isinstance(inner, exp.Expr) else None
        case exp.Explode() | exp.Unnest():
            inner = node.this if isinstance(node, exp.Explode) else node.expressions[0]
            return _element(_type(inner, scope, common))
        case exp.Literal(is_string=True):
            return TEXT
        case _ if isinstance(node, _FIRST_ARGUMENT):
            inner = node.expressions[0] if isinstance(node, exp.Distinct) else node.this
            return _type(inner, scope, common)
        case _:
            return _function(node)


def _function(node: exp.Expr) -> int | None:
    name = function_name(node)
    if name == "current_schemas":
        return OID_OF[ARRAY_OF[KIND_OF[NAME]]]
    if name in ("generate_series", "exploding_generate_series"):
        return INT4
    return NAME if name in _NAMES else None


def _column(node: exp.Column, scope: Scope) -> int | None:
    if function_name(node):
        return NAME
    name, table = name_of(node.this), name_of(node.args.get("table"))
    columns = scope.get(table, ()) if table else tuple(column for found in scope.values() for column in found)
    return next((type for known, type in reversed(columns) if known == name), None)


def cast_type(node: exp.Cast) -> int | None:
    """The type that a cast makes; the reg types, which here are names, are text."""
    if reg_type(node) is not None:
        return TEXT
    text = node.args["to"].sql(dialect="postgres").lower().removeprefix("pg_catalog.").replace('"', "")
    return _TYPES.get(text.partition("(")[0])


def _case(node: exp.Case, scope: Scope, common: Scope) -> int | None:
    branches = [branch.args["true"] for branch in node.args["ifs"]]
    results: Sequence[exp.Expr] = [*branches, *([node.args["default"]] if node.args.get("default") else [])]
    types = {_type(result, scope, common) for result in results if not isinstance(result, exp.Null)}
    if types <= {TEXT, NAME, VARCHAR, CHAR} and len(types) > 1:
        return next((_type(r, scope, common) for r in results if not isinstance(r, exp.Literal | exp.Null)), TEXT)
    return types.pop() if len(types) == 1 else None


def _array(element: int | None) -> int | None:
    array = ARRAY_OF.get(KIND_OF[element]) if element in KIND_OF else None
    return OID_OF[array] if array is not None else None


def _element(array: int | None) -> int | None:
    element = ELEMENT.get(KIND_OF[array]) if array in KIND_OF else None
    return OID_OF[element] if element is not None else None
