"""A catalog query in Postgres's SQL turned into one over the catalog's DuckDB tables.

Decides by allow-lists which relations, functions and types may be named. It must never let a name through that it
does not know: DuckDB sees this file's output only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from uuid import UUID

from sqlglot import exp

from dpsql.catalog.activity import ACTIVITY, Stops, activity, number, stops
from dpsql.catalog.context import Context
from dpsql.catalog.expressions import expression
from dpsql.catalog.functions import CLOCK, PLAIN, PREFIX, SESSION, STOP, words
from dpsql.catalog.missing import views
from dpsql.catalog.own import as_query
from dpsql.catalog.routing import function_name, is_cte, relation, schema_of
from dpsql.catalog.session_values import session_value
from dpsql.catalog.snapshot import OWN_SCHEMA, SCHEMAS
from dpsql.compiler.parse import name_of
from dpsql.compiler.public.names import output_name
from dpsql.errors import NOT_SUPPORTED, UNDEFINED_FUNCTION, UNDEFINED_TABLE, Rejected
from dpsql.pgwire.values import WireValue
from dpsql.types import Interval


@dataclass(frozen=True, slots=True)
class Rewritten:
    """DuckDB's SQL, and the relations that it reads.

    `fixed`: the same for every session and call. `lasting`: its rows are the same at any time. `stops`: the columns
    that stop sessions.
    """

    sql: str
    relations: frozenset[tuple[str, str]]
    fixed: bool
    lasting: bool
    stops: Stops = ()


def rewrite(tree: exp.Query, context: Context, database: str, parameters: Sequence[WireValue]) -> Rewritten:
    """Raises Rejected 42P01, 42883, 42704 or 0A000 for names that are not allowed."""
    tree = tree.copy()
    relations, fixed, lasting = _needs(tree)
    _name_outputs(tree)
    asked = stops(tree)

    def meaning(node: exp.Expr) -> exp.Expr:
        known = _unqualified(_parameter(node, parameters))
        return number(known) if function_name(known) in STOP else expression(session_value(known, context, database))

    tree = _everywhere(tree, meaning)
    tree = _everywhere(tree, lambda node: _checked(_source(node, context)))
    return Rewritten(tree.sql(dialect="duckdb"), relations, fixed, lasting, asked)


def _needs(tree: exp.Query) -> tuple[frozenset[tuple[str, str]], bool, bool]:
    """The relations that are read, and whether the query is fixed and lasting."""
    relations: set[tuple[str, str]] = set()
    fixed = lasting = True
    for node in tree.walk():
        name = function_name(node)
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier) and not is_cte(node):
            found = relation(node)
            if found is not None and (found.schema, found.name) == ACTIVITY:
                fixed = lasting = False
                continue
            fixed = fixed and found is not None
            relations |= {(found.schema, found.name)} if found is not None else set()
        elif isinstance(node, exp.Parameter) or name in SESSION:
            fixed = False
        elif name in CLOCK:
            lasting = False
    return frozenset(relations), fixed, lasting


def _everywhere(tree: exp.Query, change: Callable[[exp.Expr], exp.Expr]) -> exp.Query:
    """Each node replaced by what `change` makes of it, children before parents."""
    for node in reversed(list(tree.walk())):
        changed = change(node)
        if changed is not node:
            node.replace(changed)
    return tree


# --- names ---------------------------------------------------------------------------------------------------------


def _name_outputs(tree: exp.Query) -> None:
    """Gives every output column of every SELECT the name that Postgres gives it."""
    for call in list(tree.find_all(exp.Dot)):
        call.replace(_unqualified(call))
    for table in tree.find_all(exp.Table):
        if function_name(table.this) in SESSION and not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(_output(table.this), quoted=True)))
    for select in list(tree.find_all(exp.Select)):
        named = [
            item if item.is_star or isinstance(item, exp.Alias) else exp.alias_(item.copy(), _output(item), quoted=True)
            for item in select.expressions
        ]
        select.set("expressions", named)
    for identifier in tree.find_all(exp.Identifier):
        if not identifier.args.get("quoted"):
            identifier.set("this", name_of(identifier))
            identifier.set("quoted", True)


def _output(node: exp.Expr) -> str:
    if isinstance(node, exp.Dot):
        return name_of(node.expression)
    if isinstance(node, exp.Bracket):
        return _output(node.this)
    name = function_name(node)
    if name in SESSION:
        return "version" if name == "current_version" else name
    return output_name(node)


def _unqualified(node: exp.Expr) -> exp.Expr:
    """Functions without their schema, and columns by table and name only."""
    if isinstance(node, exp.Dot) and isinstance(node.this, exp.Identifier) and name_of(node.this) in SCHEMAS:
        called: exp.Expr = node.expression
        return called
    if isinstance(node, exp.Column) and node.args.get("db"):
        node.set("db", None)
        node.set("catalog", None)
    return node


# --- parameters ----------------------------------------------------------------------------------------------------


def _parameter(node: exp.Expr, parameters: Sequence[WireValue]) -> exp.Expr:
    if not isinstance(node, exp.Parameter):
        return node
    number = parameter_number(node)
    if not 1 <= number <= len(parameters):
        raise Rejected(f"there is no parameter ${number}", sqlstate="42P02")
    return literal(parameters[number - 1])


def parameter_number(node: exp.Parameter) -> int:
    text = str(node.this.this) if isinstance(node.this, exp.Literal) else ""
    return int(text) if text.isdecimal() and len(text) < 7 else 0


def literal(value: WireValue) -> exp.Expr:
    """A value as a literal; a string stays untyped, so that it compares with anything, as in Postgres."""
    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.Boolean(this=value)
        case int() | float() | Decimal():
            return exp.Literal.number(str(value))
        case str():
            return exp.Literal.string(value)
        case tuple():
            return exp.Array(expressions=[literal(item) for item in value])
        case date() | time() | Interval() | UUID():
            return exp.Literal.string(str(value))
        case _:
            raise Rejected("parameters of this type are not supported in catalog queries", sqlstate=NOT_SUPPORTED)


# --- sources -------------------------------------------------------------------------------------------------------


def _source(node: exp.Expr, context: Context) -> exp.Expr:
    match node:
        case exp.Table() if isinstance(node.this, exp.Identifier):
            return _view(node, context) or _table(node, context)
        case exp.Table():
            return _function_source(node)
        case exp.Unnest():
            _alias_column(node)
            return node
        case _:
            return node


def _view(node: exp.Table, context: Context) -> exp.Expr | None:
    """The user's sessions, or a view of schema dpsql, with its rows of now."""
    name = name_of(node.this)
    if (schema_of(node), name) == ACTIVITY and not is_cte(node):
        return activity(context).subquery(alias=node.alias or name)
    if schema_of(node) != OWN_SCHEMA or name not in context.views:
        return None
    return as_query(context.views[name]()).subquery(alias=node.alias or name)


def _table(node: exp.Table, context: Context) -> exp.Expr:
    if is_cte(node):
        return node
    found = relation(node)
    if found is None:
        name = name_of(node.this)
        hint = views(context) if schema_of(node) == OWN_SCHEMA else None
        raise Rejected(f'relation "{name[:63]}" does not exist', sqlstate=UNDEFINED_TABLE, hint=hint)
    node.set("db", exp.to_identifier(SCHEMAS[found.schema]))
    node.set("catalog", None)
    return node


def _function_source(node: exp.Table) -> exp.Expr:
    """A function in FROM: one that gives rows stays, a scalar one becomes a SELECT of one row."""
    node.set("db", None)
    node.set("ordinality", None)
    name = function_name(node.this)
    if name in _ROW_FUNCTIONS:
        _alias_column(node)
        return node
    column = _alias_name(node) or name.removeprefix(PREFIX) or "current_schema"
    query = exp.select(exp.alias_(node.this.copy(), column, quoted=True)).subquery()
    query.set("alias", exp.TableAlias(this=exp.to_identifier(column, quoted=True)))
    return query


_ROW_FUNCTIONS = words(
    "generate_series exploding_generate_series unnest explode generate_subscripts pgf_pg_partition_ancestors "
    "pgf_pg_partition_tree pgf_pg_get_keywords"
)


def _alias_name(node: exp.Expr) -> str | None:
    alias = node.args.get("alias")
    return name_of(alias.this) if isinstance(alias, exp.TableAlias) and alias.this is not None else None


def _alias_column(node: exp.Expr) -> None:
    """`unnest(x) AS a`: in Postgres `a` names the column as well."""
    alias = node.args.get("alias")
    name = _alias_name(node)
    if isinstance(alias, exp.TableAlias) and name is not None and not alias.args.get("columns"):
        alias.set("columns", [exp.to_identifier(name, quoted=True)])


def _checked(node: exp.Expr) -> exp.Expr:
    """Refuses functions that no list knows."""
    if isinstance(node, exp.Func) and not isinstance(node, exp.Connector | exp.Binary):
        name = function_name(node)
        if name not in PLAIN and not name.startswith(PREFIX):
            raise Rejected(f"function {name[:63]} does not exist", sqlstate=UNDEFINED_FUNCTION)
    if isinstance(node, exp.Command | exp.DDL | exp.DML | exp.Lateral | exp.Pivot | exp.TableSample):
        raise Rejected("this catalog query is not supported", sqlstate=NOT_SUPPORTED)
    return node
