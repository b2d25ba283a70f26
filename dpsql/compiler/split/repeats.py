"""How often values can stand in a public relation that is computed before a release, from the text of its query.

Decides what `fanout` knows of such a relation's rows: how many there are at most, and in which columns equal values
stand in one row only. A released query has one row for each of its keys; DISTINCT, GROUP BY and LIMIT say the rest.
What is not recognised is not known, never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from sqlglot import exp

from dpsql.compiler.bind.grouping import has_aggregates
from dpsql.compiler.fanout import UNKNOWN, repeats
from dpsql.compiler.parse import name_of
from dpsql.compiler.split.state import Split

Repeats = tuple[tuple[frozenset[int], int], ...]
"""Sets of columns, by place, and how many rows at most have equal values in them; the empty set: rows in all."""


@dataclass(frozen=True, slots=True)
class _Known:
    """Of a relation: the names of its columns, rows at most, and for sets of names how many rows share values."""

    names: tuple[str, ...]
    most: int
    shared: tuple[tuple[frozenset[str], int], ...]


def repeats_of(item: exp.Expr, state: Split, width: int) -> Repeats:
    """Of the FROM item with `width` columns."""
    known = _known(item.this if isinstance(item, exp.Subquery) else item, state)
    if len(known.names) != width:
        return ((frozenset(), known.most),)
    places = {name: place for place, name in enumerate(known.names)}
    by_place = tuple((frozenset(places[n] for n in names), most) for names, most in known.shared)
    return ((frozenset(), known.most), *by_place)


def _known(tree: exp.Expr, state: Split) -> _Known:
    match tree:
        case exp.Values():
            return _Known((), len(tree.expressions), ())
        case exp.Table():
            return _table(name_of(tree.this), state)
        case exp.Subquery() | exp.Paren():
            return _limited(tree, _known(tree.this, state))
        case exp.Union():
            sides = [_known(side, state) for side in (tree.this, tree.expression)]
            names = sides[0].names
            once = ((frozenset(names), 1),) if tree.args.get("distinct") and names else ()
            return _limited(tree, _Known(names, min(sum(s.most for s in sides), UNKNOWN), once))
        case exp.Select():
            return _limited(tree, _select(tree, state))
        case _:
            return _Known((), UNKNOWN, ())


def _limited(tree: exp.Expr, known: _Known) -> _Known:
    limit = tree.args.get("limit")
    count = limit.args.get("expression") or limit.args.get("count") if limit is not None else None
    if isinstance(count, exp.Literal) and not count.is_string and str(count.this).isdigit():
        return _Known(known.names, min(known.most, int(str(count.this))), known.shared)
    return known


def _table(name: str, state: Split) -> _Known:
    if name.startswith("_r"):
        made = state.aggregations[int(name[2:])]
        keys = frozenset(f"k{i}" for i in range(len(made.keys)))
        columns = (*sorted(keys, key=lambda k: int(k[1:])), *(f"a{i}" for i in range(len(made.aggregates))))
        return _Known(columns, UNKNOWN if keys else 1, ((keys, 1),) if keys else ())
    table = state.schema.tables.get(name)
    if table is None or not table.public:
        return _Known((), UNKNOWN, ())
    names = tuple(column.name for column in table.columns)
    shared = [(unique, 1) for unique in table.unique]
    shared += [(frozenset({name}), repeats(table, frozenset({name}))) for name in names]
    return _Known(names, repeats(table, frozenset()), tuple(shared))


def _select(tree: exp.Select, state: Split) -> _Known:
    first = tree.args.get("from_")
    items = [] if first is None else [first.this, *(join.this for join in tree.args.get("joins") or [])]
    sources = [_known(item, state) for item in items]
    most = min(prod((source.most for source in sources), start=1), UNKNOWN)
    group = tree.args.get("group")
    if group is None and has_aggregates(tree):
        return _Known(_names(tree), 1, ())
    shown = _shown(tree, sources[0] if len(sources) == 1 else None)
    names = tuple(name for name, _ in shown)
    shared: list[tuple[frozenset[str], int]] = []
    if tree.args.get("distinct") is not None and not tree.args["distinct"].args.get("on"):
        shared.append((frozenset(names), 1))
    if group is not None:
        shared += _grouped(group, shown)
    elif len(sources) == 1:
        shared += _projected(sources[0], {inner: name for name, inner in shown if inner is not None})
    return _Known(names if len(set(names)) == len(names) else (), most, tuple(shared))


def _names(tree: exp.Select) -> tuple[str, ...]:
    return tuple(e.alias_or_name or f"?{i}" for i, e in enumerate(tree.expressions))


def _shown(tree: exp.Select, source: _Known | None) -> list[tuple[str, str | None]]:
    """The columns that a query shows: name, and the column of its only source that it is, else the expression."""
    found: list[tuple[str, str | None]] = []
    for place, node in enumerate(tree.expressions):
        inner = node.unalias()
        if node.is_star:
            found += [(name, name) for name in (source.names if source is not None else ())]
        elif isinstance(inner, exp.Column):
            found.append((node.alias_or_name, name_of(inner.this)))
        else:
            found.append((node.alias_or_name or f"?{place}", None))
    return found


def _grouped(group: exp.Expr, shown: list[tuple[str, str | None]]) -> list[tuple[frozenset[str], int]]:
    """GROUP BY of plain columns, or of places or names in the SELECT list, that are all shown."""
    if any(group.args.get(key) for key in ("rollup", "cube", "grouping_sets", "all", "totals")):
        return []
    found = []
    for key in group.expressions:
        wanted = name_of(key.this) if isinstance(key, exp.Column) else None
        if isinstance(key, exp.Literal) and not key.is_string and 0 < int(str(key.this)) <= len(shown):
            found.append(shown[int(str(key.this)) - 1][0])
            continue
        name = next((name for name, inner in shown if wanted is not None and wanted in (inner, name)), None)
        if name is None:
            return []
        found.append(name)
    return [(frozenset(found), 1)]


def _projected(source: _Known, names: Mapping[str, str]) -> list[tuple[frozenset[str], int]]:
    """What is known of the source, of columns that are shown."""
    kept = [(columns, most) for columns, most in source.shared if columns <= names.keys()]
    return [(frozenset(names[column] for column in columns), most) for columns, most in kept]
