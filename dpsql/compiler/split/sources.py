"""FROM items: which table, view, WITH name or subquery a name stands for, and what its columns are called.

Decides which tables there are for this user: the others do not exist. A WITH query that is public or released is taken
apart once, however often it is named.
"""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches

from sqlglot import exp

from dpsql.compiler.algebra import Lit
from dpsql.compiler.bind.scope import ALIKE, Field, Source
from dpsql.compiler.bind.units import scan
from dpsql.compiler.local_model import COUNTS
from dpsql.compiler.parse import name_of, only, parse, refuse
from dpsql.compiler.problems import FollowUp
from dpsql.compiler.public.names import output_name
from dpsql.compiler.spelling import PLACE
from dpsql.compiler.split.series import written_out
from dpsql.compiler.split.state import CommonTable, Names, Result, Split, count
from dpsql.compiler.tables import Named, named
from dpsql.errors import UNDEFINED_TABLE, Rejected
from dpsql.policy.places import place_of
from dpsql.policy.schema import SchemaTable
from dpsql.types import UNKNOWN, Column


def item_of(item: exp.Expr, names: Names, state: Split) -> exp.Expr | Source:
    """A FROM item: private rows, or a public table expression."""
    values = written_out(item, state)
    if values is not None:
        return values
    match item:
        case exp.Table():
            return _table(item, names, state)
        case exp.Subquery():
            only(item, "alias")
            result = state.process(_joined_in_brackets(item) or item.this, names, state)
            return _aliased(result, item.args.get("alias"), item)
        case exp.Values():
            return item.copy()
        case exp.Lateral():
            raise refuse(
                "LATERAL is not supported",
                item,
                hint="Group the subquery by what ties it to the rows outside, and join it: "
                "JOIN (SELECT k, COUNT(*) AS n FROM ... GROUP BY k) AS l ON l.k = t.k",
            )
        case _:
            raise refuse(
                f"{type(item).__name__} is not supported in FROM",
                item,
                hint="FROM takes tables and views of the policy, subqueries and WITH names.",
            )


def _joined_in_brackets(item: exp.Subquery) -> exp.Select | None:
    """(a JOIN b USING (k)) AS q is a query of all its columns; without a name, a and b would still be seen."""
    joins = item.this.args.get("joins") if isinstance(item.this, exp.Table) else None
    if not joins or item.args.get("alias") is None:
        return None
    first = item.this.copy()
    first.set("joins", None)
    made = exp.Select(expressions=[exp.Star()])
    made.set("from_", exp.From(this=first))
    made.set("joins", [join.copy() for join in joins])
    return made


def _table(item: exp.Table, names: Names, state: Split) -> exp.Expr | Source:
    only(item, "alias", "db", "catalog")
    if not isinstance(item.this, exp.Identifier):
        hint = "FROM takes generate_series and unnest of constants, tables and views of the policy, and subqueries."
        raise refuse("This function is not supported in FROM.", item, sqlstate="42883", hint=hint)
    if item.this.meta.get(COUNTS):
        name = name_of(item.this)
        return _stored(state.schema.responses[name], Named(name, name), item, state)
    if item.args.get("db") is None and name_of(item.this) in names:
        return _common(item, names[name_of(item.this)], state)
    found = named(item, state.schema, state.tables)
    if found is None:
        raise _no_table(item, state)
    if found.name in state.schema.policy.views:
        return _view(found, item, state)
    return _stored(state.schema.tables[found.name], found, item, state)


def _common(item: exp.Table, common: CommonTable, state: Split) -> exp.Expr | Source:
    """A WITH name."""
    name = name_of(item.this)
    if id(common) in state.refused:
        raise FollowUp(f'"{name}" was refused')
    shared = state.shared.get(id(common))
    count(sum(isinstance(n, exp.Query) for n in shared.walk()) if shared is not None else 0, state)
    state.refused.add(id(common))
    result = shared.copy() if shared is not None else state.process(common.query.copy(), common.names, state)
    state.refused.remove(id(common))
    if isinstance(result, exp.Query) and shared is None:
        state.shared[id(common)] = result.copy()
    made = item.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name, quoted=True))
    if common.columns and not made.args.get("columns"):
        made = made.copy()
        made.set("columns", [exp.to_identifier(c, quoted=True) for c in common.columns])
    return _aliased(result, made, item)


def _view(found: Named, item: exp.Table, state: Split) -> exp.Expr | Source:
    tree = parse(state.schema.policy.views[found.name])
    alias = item.args.get("alias") or exp.TableAlias(this=exp.to_identifier(found.shown, quoted=True))
    made = _aliased(state.process(tree, {}, state), alias, item)
    return within(found.schemas, made) if isinstance(made, Source) and item.args.get("alias") is None else made


def _stored(table: SchemaTable, found: Named, item: exp.Table, state: Split) -> exp.Expr | Source:
    alias = item.args.get("alias")
    qualifier, schemas = found.shown, found.schemas
    if alias is not None and alias.this is not None:
        qualifier, schemas = name_of(alias.this), frozenset()
    if table.public:
        made = _public_table(table, qualifier, alias, state)
        made.meta[SCHEMAS] = schemas
        made.meta[PLACE] = place_of(table)
        return made
    source = scan(table, state.numbers.take(), qualifier, state.schema)
    return renamed(within(schemas, source), alias, item)


def public_fields(items: list[exp.Expr], state: Split) -> tuple[Field, ...]:
    """The columns of public FROM items, as far as they are known."""
    return tuple(
        Field(name_of(item.args["alias"].this), name, Lit(None, UNKNOWN), schemas=item.meta.get(SCHEMAS, frozenset()))
        for item in items
        if item.args.get("alias") is not None
        for name in _column_names(item, state)
    )


def _column_names(item: exp.Expr, state: Split) -> list[str]:
    renamed_ = [name_of(c) for c in item.args["alias"].args.get("columns") or []]
    if isinstance(item, exp.Table):
        return [*renamed_, *(c.name for c in state.relations[name_of(item.this)][len(renamed_) :])]
    shown = item.this.expressions if isinstance(item.this, exp.Select) else []
    return [*renamed_, *(output_name(node) for node in shown[len(renamed_) :])]


SCHEMAS = "schemas"
"""Of a public table: what may stand before its name."""


def within(schemas: frozenset[str], source: Source) -> Source:
    """The source, whose columns may be said with their table's schema."""
    return replace(source, fields=tuple(replace(f, schemas=schemas) for f in source.fields))


def _no_table(item: exp.Table, state: Split) -> Rejected:
    name = ".".join(name_of(part) for part in (item.args.get("db"), item.this) if part)
    known = (*state.schema.tables, *state.schema.policy.views)
    visible = sorted(n for n in known if state.tables is None or n in state.tables)
    close = get_close_matches(name, visible, n=1, cutoff=ALIKE)
    perhaps = f'Perhaps you meant "{close[0]}". ' if close else ""
    return refuse(
        f'relation "{name}" does not exist',
        item,
        sqlstate=UNDEFINED_TABLE,
        hint=f"{perhaps}Tables of this dataset: {', '.join(visible) or 'none'}.",
    )


def _public_table(table: SchemaTable, qualifier: str, alias: exp.Expr | None, state: Split) -> exp.Table:
    state.relations[table.name] = tuple(Column(c.name, c.type) for c in table.columns)
    made = exp.Table(this=exp.to_identifier(table.name, quoted=True))
    columns = [c.copy() for c in (alias.args.get("columns") or [])] if alias is not None else []
    made.set("alias", exp.TableAlias(this=exp.to_identifier(qualifier, quoted=True), columns=columns))
    return made


def _aliased(result: Result, alias: exp.Expr | None, item: exp.Expr) -> exp.Expr | Source:
    qualifier = name_of(alias.this) if alias is not None and alias.this is not None else ""
    if isinstance(result, Source):
        fields = tuple(replace(f, qualifier=qualifier, merged=False, schemas=frozenset()) for f in result.fields)
        return renamed(replace(result, fields=fields), alias, item)
    made = exp.Subquery(this=result)
    name = exp.to_identifier(qualifier or "unnamed_subquery", quoted=True)
    columns = [c.copy() for c in (alias.args.get("columns") or [])] if alias is not None else []
    made.set("alias", exp.TableAlias(this=name, columns=columns))
    return made


def renamed(source: Source, alias: exp.Expr | None, item: exp.Expr) -> Source:
    """Column aliases rename what is visible; each name still stands for its real column."""
    columns = [name_of(c) for c in (alias.args.get("columns") or [])] if alias is not None else []
    if not columns:
        return source
    if len(columns) > len(source.fields):
        raise refuse("more column aliases than columns", item, sqlstate="42P10")
    fields = list(source.fields)
    for index, name in enumerate(columns):
        fields[index] = replace(fields[index], name=name)
    return replace(source, fields=tuple(fields))
