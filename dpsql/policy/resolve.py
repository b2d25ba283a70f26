"""The policy compared with the backend: `resolve` makes the `Schema` or says all that does not fit.

Decides which declarations hold. It must never take a declaration for a fact: what it cannot find verified in
`TableFacts`, it refuses. Pure: the facts and public rows were read before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation, localcontext

from dpsql.policy.model import ColumnPolicy, Policy, Table, UnitPath
from dpsql.policy.problems import Path, Problems, did_you_mean
from dpsql.policy.schema import Schema, SchemaColumn, SchemaTable
from dpsql.policy.values import compared_exactly, family
from dpsql.types import DATE, INT8, TEXT, UUID_TYPE, Kind, Relation, SqlType, TableFacts, Value

MOST_VALUES = 10_000
"""More values of a public column are not kept: they could not be group keys."""

UNIT_TYPES: Mapping[str, SqlType] = {"integer": INT8, "text": TEXT, "uuid": UUID_TYPE, "date": DATE}
"""The canonical type of a unit, by the family of its columns."""

_UNIQUE_FIX = "add a PRIMARY KEY, or UNIQUE with NOT NULL, to it in the backend"


@dataclass(frozen=True, slots=True)
class _Against:
    """What one comparison reads, and where it reports."""

    policy: Policy
    facts: Mapping[str, TableFacts]
    problems: Problems


def resolve(policy: Policy, facts: Mapping[str, TableFacts], public_rows: Mapping[str, Relation]) -> Schema:
    """The schema that statements are compiled against. Raises `PolicyError` with all that does not fit.

    `facts` hold one entry per table found in the backend, `public_rows` one snapshot per public table.
    """
    against = _Against(policy, facts, Problems(str(policy.path), policy.lines))
    tables = {
        name: _table(name, table, against, public_rows.get(name))
        for name, table in policy.tables.items()
        if _usable(name, against)
    }
    for name, table in policy.tables.items():
        if name in tables:
            _check_key(name, table, tables[name], against)
            _check_path(name, table, tables, against)
            _check_references(name, table, tables, against)
    unit_type = _unit_type(against, tables)
    against.problems.refuse_if_any()
    return Schema(policy, _with_snapshots(tables), unit_type, nullable={name: facts[name].nullable for name in tables})


def _with_snapshots(tables: Mapping[str, SchemaTable]) -> dict[str, SchemaTable]:
    """Public columns get the values of their snapshot, and columns that reference them the same."""
    found = {name: replace(t, columns=_public_columns(t)) if t.rows is not None else t for name, t in tables.items()}
    known = {(name, c.name): c for name, t in found.items() for c in t.columns}
    return {name: replace(t, columns=tuple(_referencing(c, known) for c in t.columns)) for name, t in found.items()}


def _public_columns(table: SchemaTable) -> tuple[SchemaColumn, ...]:
    assert table.rows is not None
    places = {column.name: place for place, column in enumerate(table.rows.columns)}
    made = []
    for column in table.columns:
        place = places.get(column.name)
        stored = () if place is None else tuple(dict.fromkeys(row[place] for row in table.rows.rows))
        made.append(_with_values(column, stored))
    return tuple(made)


def _with_values(column: SchemaColumn, stored: tuple[Value, ...]) -> SchemaColumn:
    """A public column with its values, or its ends alone where there are more than can be keys.

    In the snapshot's order: a release's key may quote them, and must be the same in every process.
    """
    values = tuple(value for value in stored if value is not None and value == value)
    lower, upper = column.lower, column.upper
    if values and lower is None and upper is None and (column.type.is_number or column.type.is_time):
        lower, upper = min(values), max(values)
    few = values if len(values) <= MOST_VALUES else None
    return replace(column, lower=lower, upper=upper, values=few or None, nullable=None in stored)


def _referencing(column: SchemaColumn, known: Mapping[tuple[str, str], SchemaColumn]) -> SchemaColumn:
    parent = known.get(column.references) if column.references is not None else None
    if parent is None or column.values is not None:
        return column
    return replace(column, values=parent.values)


def unique_needed(policy: Policy) -> tuple[tuple[str, frozenset[str]], ...]:
    """The column sets (table, columns) whose uniqueness the policy leans on, for the backend to verify."""
    needed: dict[tuple[str, frozenset[str]], None] = {}
    for name, table in policy.tables.items():
        if table.key:
            needed[name, frozenset(table.key)] = None
        if table.max_rows == 1 and isinstance(table.unit, str):
            needed[name, frozenset({table.unit})] = None
        if isinstance(table.unit, UnitPath):
            needed[table.unit.through, frozenset(table.unit.on.values())] = None
    return tuple(needed)


def _usable(name: str, against: _Against) -> bool:
    found = against.facts.get(name)
    if found is None:
        source = against.policy.tables[name].source
        path: Path = ("tables", name) if source is None else ("tables", name, "source")
        what = "is no table in the backend" if source is None else f"names {source}, no table in the backend"
        fix = "create it, say where it is by `source: SCHEMA.TABLE`, or remove it"
        against.problems.add(path, what, fix if source is None else "correct the name")
        return False
    for problem in found.problems:
        against.problems.add(("tables", name), problem, "declare a plain table instead")
    return not found.problems


def _table(name: str, table: Table, against: _Against, rows: Relation | None) -> SchemaTable:
    found = against.facts[name]
    visible = _visible(name, table, against.policy, found, rows)
    _check_names(name, table, visible, against)
    privacy = against.policy.privacy
    return SchemaTable(
        name=name,
        public=table.public,
        columns=tuple(
            _column(name, column.name, column.type, table.columns.get(column.name), against)
            for column in found.columns
            if column.name in visible
        ),
        unit=table.unit,
        key=table.key,
        unique=found.unique,
        max_rows=table.max_rows,
        one_row_per_unit=_one_row(table, found, against.policy),
        max_groups=_at_most(table.max_rows, table.max_groups or privacy.max_groups),
        max_rows_per_group=_at_most(table.max_rows, table.max_rows_per_group or privacy.max_rows_per_group),
        rows=rows if table.public else None,
        source=table.source,
    )


def _one_row(table: Table, found: TableFacts, policy: Policy) -> bool:
    if table.public:
        return False
    return policy.privacy.is_row or (isinstance(table.unit, str) and frozenset({table.unit}) in found.unique)


def _at_most(limit: int | None, bound: int) -> int:
    return bound if limit is None else min(limit, bound)


def _visible(name: str, table: Table, policy: Policy, found: TableFacts, rows: Relation | None) -> set[str]:
    """Declared columns, and those that the unit, keys and paths name. Of a public table: all that can be read."""
    if table.public:
        readable = rows.columns if rows is not None else found.columns
        return {column.name for column in readable} | set(table.columns) | set(table.key or ())
    visible = {*table.columns, *(table.key or ())}
    if isinstance(table.unit, str):
        visible.add(table.unit)
    if isinstance(table.unit, UnitPath):
        visible.update(table.unit.on)
    for child in policy.tables.values():
        if isinstance(child.unit, UnitPath) and child.unit.through == name:
            visible.update(child.unit.on.values())
    return visible


def _check_names(name: str, table: Table, visible: set[str], against: _Against) -> None:
    there = {column.name for column in against.facts[name].columns}
    for missing in sorted(visible - there):
        where = _place(name, table, missing)
        what = f"names `{missing:.60}`, no column of {name} in the backend"
        against.problems.add(where, what, did_you_mean(missing, there))


def _place(name: str, table: Table, column: str) -> Path:
    """Where in the policy the column is named."""
    path: Path = ("tables", name)
    if column in table.columns:
        return (*path, "columns", column)
    if column in (table.key or ()):
        return (*path, "key")
    return (*path, "unit") if table.unit is not None else path


def _column(table: str, name: str, of: SqlType, declared: ColumnPolicy | None, against: _Against) -> SchemaColumn:
    path: Path = ("tables", table, "columns", name)
    if of.kind is Kind.UNKNOWN:
        what = "has a type, collation or generation rule in the backend that is not supported"
        against.problems.add(path, what, "remove it from the policy, or store it in a supported type")
    elif declared is not None and declared.type is not None and family(declared.type) != family(of):
        against.problems.add((*path, "type"), f"is {declared.type}, but {of} in the backend", f"write `type: {of}`")
    elif declared is not None:
        values = (
            None if declared.values is None else tuple(_stored(value, of, path, against) for value in declared.values)
        )
        lower, upper = (_stored(value, of, path, against) for value in (declared.lower, declared.upper))
        return SchemaColumn(name, of, lower, upper, values, declared.nullable, declared.references, declared.randomized)
    return SchemaColumn(name, of)


def _stored(value: Value, of: SqlType, path: Path, against: _Against) -> Value:
    """The value as the backend's column would hold it: a numeric gets the column's own number of decimals."""
    if not isinstance(value, Decimal) or of.precision is None:
        return value
    with localcontext() as context:
        context.prec = of.precision + 2
        try:
            stored = value.quantize(Decimal(1).scaleb(-(of.scale or 0)))
        except InvalidOperation:
            stored = None
    if stored is None or stored != value:
        against.problems.add(path, f"holds {value}, which a {of} column cannot", "write a value that it can hold")
    return stored


def _unique_rows(table: Table, rows: Relation | None) -> tuple[frozenset[str], ...]:
    """Whether a public table's key is unique in its snapshot: enough to name keys by it, not to bound rows by it."""
    if rows is None:
        return ()
    names = [column.name for column in rows.columns]
    if not table.key or not set(table.key) <= set(names):
        return ()
    places = [names.index(column) for column in table.key]
    keys = [tuple(row[place] for place in places) for row in rows.rows]
    whole = all(value is not None for key in keys for value in key)
    return (frozenset(table.key),) if whole and len(set(keys)) == len(keys) else ()


def _covered(columns: frozenset[str], unique: tuple[frozenset[str], ...]) -> bool:
    """A set of columns is unique if a part of it is."""
    return any(found <= columns for found in unique)


def _check_key(name: str, table: Table, resolved: SchemaTable, against: _Against) -> None:
    known = (*resolved.unique, *_unique_rows(table, resolved.rows))
    if table.key and not _covered(frozenset(table.key), known):
        what = f"({', '.join(table.key)}) is not known to be unique"
        against.problems.add(("tables", name, "key"), what, f"{_UNIQUE_FIX}, or remove `key:`")


def _check_path(name: str, table: Table, tables: Mapping[str, SchemaTable], against: _Against) -> None:
    if not isinstance(table.unit, UnitPath) or table.unit.through not in tables:
        return
    parent, path = tables[table.unit.through], ("tables", name, "unit", "on")
    if not _covered(frozenset(table.unit.on.values()), parent.unique):
        columns = ", ".join(table.unit.on.values())
        what = f"leads to {parent.name} ({columns}), which is not known to be unique"
        against.problems.add(path, what, _UNIQUE_FIX)
    for child_name, parent_name in table.unit.on.items():
        _check_exact(tables[name], child_name, parent, parent_name, path, against)


def _check_exact(
    child: SchemaTable, child_name: str, parent: SchemaTable, parent_name: str, path: Path, against: _Against
) -> None:
    """A child must not meet two parents: its column is compared no more coarsely than the parent's key was verified."""
    pair = child.column(child_name), parent.column(parent_name)
    if pair[0] is None or pair[1] is None or compared_exactly(pair[0].type, pair[1].type):
        return
    what = f"compares {child_name} ({pair[0].type}) with {parent.name}.{parent_name} ({pair[1].type})"
    if pair[0].type == pair[1].type:
        what += ", a type in which different stored values can be taken for equal"
        fix = "store both as integer, numeric, text, uuid, date or timestamp without time zone"
    else:
        what += ", and values of two types are not compared exactly"
        fix = "give both columns one type in the backend"
    against.problems.add(path, what, fix)


def _check_references(name: str, table: Table, tables: Mapping[str, SchemaTable], against: _Against) -> None:
    for column, declared in table.columns.items():
        if declared.references and declared.references[0] in tables:
            parent = tables[declared.references[0]]
            path = ("tables", name, "columns", column, "references")
            _check_family(tables[name], column, parent, declared.references[1], path, against)


def _check_family(
    child: SchemaTable, child_name: str, parent: SchemaTable, parent_name: str, path: Path, against: _Against
) -> None:
    pair = child.column(child_name), parent.column(parent_name)
    if pair[0] is None or pair[1] is None or family(pair[0].type) == family(pair[1].type):
        return
    what = f"compares {child_name} ({pair[0].type}) with {parent.name}.{parent_name} ({pair[1].type})"
    against.problems.add(path, what, "give both columns one type in the backend")


def _unit_type(against: _Against, tables: Mapping[str, SchemaTable]) -> SqlType | None:
    """The canonical type of the unit; its columns must all be of one family that can be compared exactly."""
    families: dict[str, str] = {}
    for name, table in tables.items():
        column = table.column(table.unit) if isinstance(table.unit, str) else None
        if column is None:
            continue
        kind = family(column.type)
        if kind not in UNIT_TYPES:
            what = f"is of type {column.type}, by which units cannot be told apart safely"
            against.problems.add(("tables", name, "unit"), what, "use an integer, text, uuid or date column")
        families.setdefault(kind, name)
    if len(families) > 1:
        kinds = ", ".join(f"{kind} in {name}" for kind, name in families.items())
        against.problems.add(("privacy", "unit"), f"has different types ({kinds})", "use columns of one type")
    return next((UNIT_TYPES[kind] for kind in families if kind in UNIT_TYPES), None)
