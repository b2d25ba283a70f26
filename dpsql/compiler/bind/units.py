"""Tables as sources: which column holds the privacy unit, and what is verified or enforced about a unit's rows.

The argument: a `Source` may claim `unique` or `constants` only where the backend's catalog (or the operator's check of
an immutable source) has verified it, or where the emitted SQL makes it true (`Scan.enforce_rows`: ROW_NUMBER within the
unit's own rows, so that no unit's rows decide about another's). A declaration alone gives nothing.
"""

from __future__ import annotations

from dataclasses import replace

from dpsql.compiler import domains
from dpsql.compiler.algebra import Call, Col, Domain, Expr, Filter, Join, Node, Scan
from dpsql.compiler.bind.scope import Field, Source
from dpsql.errors import Failed
from dpsql.policy.model import UnitPath
from dpsql.policy.schema import Schema, SchemaColumn, SchemaTable
from dpsql.policy.values import compared_exactly
from dpsql.types import BOOL, TEXT


def scan(table: SchemaTable, number: int, qualifier: str, schema: Schema) -> Source:
    """A declared table as a source; `number` makes its column names unique in the statement.

    Randomized columns are left out: their counts need debiasing, which `dpsql.compiler.local_model` does.
    """
    columns = tuple((c.name, _column(table, c, number)) for c in table.columns if c.randomized is None)
    fields = tuple(Field(qualifier, name, col) for name, col in columns)
    if table.public:
        unique = tuple(frozenset(f"t{number}_{n}" for n in names) for names in table.unique)
        return Source(Scan(table.name, columns, source=table.source), fields, private=False, unique=unique)
    if schema.policy.privacy.is_row:
        unit = Col(f"t{number}_row", TEXT)
        node = Scan(table.name, columns, unit=unit.name, row_unit=True, source=table.source)
        names = frozenset(col.name for _, col in columns)
        return Source(node, fields, True, unit, unique=(frozenset(),), constants=names, tables=(table.name,))
    return _private(table, columns, fields, number)


def _private(
    table: SchemaTable, columns: tuple[tuple[str, Col], ...], fields: tuple[Field, ...], number: int
) -> Source:
    by_name = dict(columns)
    if isinstance(table.unit, UnitPath):
        unique = tuple(frozenset(f"t{number}_{n}" for n in names) for names in table.unique)
        by_path = frozenset(f"t{number}_{n}" for n in table.unit.on)
        node = Scan(table.name, columns, source=table.source)
        known = (*unique, by_path)
        return Source(node, fields, True, path=table.unit, unique=unique, determines=known, tables=(table.name,))
    assert table.unit is not None
    unit = by_name[table.unit]
    enforced = table.max_rows if table.max_rows is not None and not table.one_row_per_unit else None
    determines = tuple(frozenset(f"t{number}_{n}" for n in names) for names in table.unique)
    unique = tuple(names - {unit.name} for names in determines)
    if table.one_row_per_unit or enforced == 1:
        unique = (frozenset(), *unique)
    single = frozenset() in unique
    constants = frozenset(col.name for _, col in columns) if single else frozenset({unit.name})
    node = Scan(table.name, columns, unit=unit.name, enforce_rows=enforced, source=table.source)
    units = frozenset({unit.name})
    return Source(node, fields, True, unit, units, None, unique, determines, constants, tables=(table.name,))


def _column(table: SchemaTable, column: SchemaColumn, number: int) -> Col:
    name, domain = f"t{number}_{column.name}", domains.of_column(column)
    return Col(name, column.type, domain, (table.name, column.name), row=f"t{number}")


def equality(a: Expr, b: Expr) -> Call:
    return Call("eq", (a, b), BOOL, Domain(values=(False, True)))


def attach_path(source: Source, schema: Schema, number: int) -> tuple[Source, int]:
    """Adds the parents that lead to the unit, as inner joins; children without a parent drop out.

    Every parent is unique on its key, and child and parent have types that are compared as exactly as the key was
    verified (both by `resolve`), so no row multiplies and each child row has one unit.
    """
    while source.path is not None:
        path = source.path
        parent = scan(schema.tables[path.through], number, f"{path.through}!{number}", schema)
        number += 1
        own = {c.origin[1]: c for c in _scan_columns(source.node) if c.origin and c.origin[0] == source.tables[-1]}
        keys = {c.origin[1]: c for c in _scan_columns(parent.node) if c.origin}
        pairs = [(own[child], keys[key]) for child, key in sorted(path.on.items())]
        if not all(compared_exactly(a.type, b.type) for a, b in pairs):
            raise Failed("a path is compared more coarsely than its key")
        conditions = tuple(equality(a, b) for a, b in pairs)
        node = Join("inner", source.node, parent.node, conditions)
        source = replace(
            source,
            node=node,
            unit=parent.unit,
            units=parent.units,
            path=parent.path,
            constants=source.constants | (parent.constants if parent.unit is not None else frozenset()),
            tables=(*source.tables, *parent.tables),
        )
    return source, number


def _scan_columns(node: Node) -> tuple[Col, ...]:
    """The table columns of a scan, of what it joins, or of what it is filtered to."""
    match node:
        case Scan(columns=columns):
            return tuple(col for _, col in columns)
        case Join(left=left, right=right):
            return (*_scan_columns(left), *_scan_columns(right))
        case Filter(input=inner):
            return _scan_columns(inner)
        case _:
            return ()
