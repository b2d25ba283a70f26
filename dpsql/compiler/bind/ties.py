"""What would prove that two private relations are of one unit, as a condition to write: for hints.

Decides the words only, from the statement and the policy; `proofs` decides what is proven. Columns are spelled as the
statement can name them where it shows them, else by their table.
"""

from __future__ import annotations

from dpsql.compiler.algebra import Col
from dpsql.compiler.bind.proofs import path_of
from dpsql.compiler.bind.scope import Source
from dpsql.policy.model import UnitPath
from dpsql.policy.schema import Schema


def tie(left: Source, right: Source, schema: Schema) -> tuple[str, str] | None:
    """A table to add to FROM ("" for none) and the condition; None where no short one is known."""
    if not left.tables or not right.tables:
        return None
    up, down = path_of(left.tables[0], schema), path_of(right.tables[0], schema)
    if up is not None and down is not None and up.through == down.through:
        return "", _beside(left, right, up, down)
    for child, parent, path in ((right, left, down), (left, right, up)):
        if path is not None and path.through in parent.tables and _shows_whole(parent, path):
            return "", _along(child, parent, path)
    if up is None and down is None:
        units = _of_unit(left, schema), _of_unit(right, schema)
        return ("", _equal(*units)) if all(units) else None
    child, other, path = (left, right, up) if up is not None else (right, left, down)
    return None if path is None else _over_parent(child, other, path, schema)


def added_up(left: Source, right: Source, condition: str, schema: Schema) -> str | None:
    """For two children of one parent of which each may have many rows: the right one grouped, joined by `condition`."""
    names = left.tables[0], right.tables[0]
    paths = [path_of(name, schema) for name in names]
    keyed = (set(key) <= set(p.on) for n, p in zip(names, paths, strict=True) if p for key in schema.tables[n].unique)
    if paths[0] is None or paths[1] is None or paths[0].through != paths[1].through or any(keyed):
        return None
    columns = ", ".join(paths[1].on)
    pairs = (pair.split(" = ") for pair in condition.split(" AND "))
    equal = " AND ".join(f"added.{theirs.rpartition('.')[2]} = {mine}" for mine, theirs in pairs)
    return f"JOIN (SELECT {columns}, COUNT(*) AS n FROM {names[1]} GROUP BY {columns}) AS added ON {equal}"


def _shows_whole(parent: Source, path: UnitPath) -> bool:
    """Whether one row of the parent has its key in scope; what an inner SELECT list hides is."""
    rows = _rows_of(parent, path.through)
    return not rows or any(set(path.on.values()) <= names.keys() for names in rows)


def _along(child: Source, parent: Source, path: UnitPath) -> str:
    mine = _spelled(child, child.tables[0], tuple(path.on))
    return _equal(mine, _spelled(parent, path.through, tuple(path.on.values())))


def _beside(left: Source, right: Source, up: UnitPath, beside: UnitPath) -> str:
    theirs = {key: column for column, key in beside.on.items()}
    mine = _spelled(left, left.tables[0], tuple(up.on))
    return _equal(mine, _spelled(right, right.tables[0], tuple(theirs.get(key, key) for key in up.on.values())))


def _over_parent(child: Source, other: Source, path: UnitPath, schema: Schema) -> tuple[str, str] | None:
    """The parent joined as well, and its unit compared."""
    unit = schema.tables[path.through].unit
    theirs = _of_unit(other, schema)
    if not isinstance(unit, str) or not theirs:
        return None
    names = tuple(f"{path.through}.{key}" for key in path.on.values())
    first = _equal(_spelled(child, child.tables[0], tuple(path.on)), names)
    return path.through, f"{first} AND {_equal((f'{path.through}.{unit}',), theirs)}"


def _of_unit(source: Source, schema: Schema) -> tuple[str, ...]:
    """The unit's column; none where it is not in scope, or not the table's own."""
    table, unit = source.tables[0], schema.tables[source.tables[0]].unit
    rows = _rows_of(source, table)
    if not isinstance(unit, str) or (rows and not any(unit in names for names in rows)):
        return ()
    return _spelled(source, table, (unit,))


def _equal(mine: tuple[str, ...], theirs: tuple[str, ...]) -> str:
    return " AND ".join(f"{a} = {b}" for a, b in zip(mine, theirs, strict=True))


def _spelled(source: Source, table: str, columns: tuple[str, ...]) -> tuple[str, ...]:
    """Columns of one row of a table, as visible fields if all of them are."""
    whole: dict[str, str] = next((n for n in _rows_of(source, table) if set(columns) <= n.keys()), {})
    return tuple(whole.get(column, f"{table}.{column}") for column in columns)


def _rows_of(source: Source, table: str) -> list[dict[str, str]]:
    """The visible columns of each row of a table, as they are written."""
    rows: dict[str | None, dict[str, str]] = {}
    for field in source.fields:
        if isinstance(field.expr, Col) and field.expr.origin is not None and field.expr.origin[0] == table:
            name = f"{field.qualifier}.{field.name}" if field.qualifier else field.name
            rows.setdefault(field.expr.row, {}).setdefault(field.expr.origin[1], name)
    return list(rows.values())
