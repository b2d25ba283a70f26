"""Tables, columns and views as declared.

Decides whether a table's privacy is fully said (public, a unit column, or a path to one) and whether bounds and values
fit their types. Whether any of it is true of the backend is `dpsql.policy.resolve`'s business.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast
from zoneinfo import ZoneInfo

from dpsql.policy.document import ColumnSection, Document, PathSection, RandomizedSection, Scalar, TableSection
from dpsql.policy.model import ROW, ColumnPolicy, Table, UnitPath
from dpsql.policy.problems import Path, Problems, did_you_mean
from dpsql.policy.values import TYPE_NAMES, MisfitError, parse_type, typed
from dpsql.types import Kind, SqlType, TableName, Value

MAX_VALUES = 100_000
MAX_NAME = 63
MAX_RESPONSE_EPSILON = 20
_BOUNDED = "a number, date or timestamp"


def tables(document: Document, zone: ZoneInfo, problems: Problems) -> Mapping[str, Table]:
    if not document.tables:
        problems.add(("tables",), "is empty", "declare at least one table")
    _names([("tables", name) for name in document.tables] + [("views", name) for name in document.views], problems)
    found = {name: _table(section, name, document, zone, problems) for name, section in document.tables.items()}
    _check_sources(found, problems)
    return found


def views(document: Document, problems: Problems) -> Mapping[str, str]:
    for name, text in document.views.items():
        if not text.strip():
            problems.add(("views", name), "is empty", "write its SELECT")
    return dict(document.views)


def _names(paths: Sequence[Path], problems: Problems) -> None:
    """Names that SQL could not tell apart, or no backend could hold, are refused."""
    seen: dict[str, Path] = {}
    for path in paths:
        name = str(path[-1])
        if not name.isprintable() or not 0 < len(name.encode()) <= MAX_NAME:
            problems.add(path, "is not a name", f"use 1 to {MAX_NAME} printable characters")
        first = seen.setdefault(name.casefold(), path)
        if first != path:
            problems.add(path, f"is too much like {first[0]}.{first[-1]}", "rename one of them")


def _table(section: TableSection, name: str, document: Document, zone: ZoneInfo, problems: Problems) -> Table:
    path: Path = ("tables", name)
    _check_unit(section, path, document, problems)
    _check_bounds(section, path, document, problems)
    _names([(*path, "columns", column) for column in section.columns], problems)
    return Table(
        public=section.public,
        unit=_unit(section),
        key=_key(section, path, problems),
        max_rows=section.max_rows,
        max_groups=section.max_groups,
        max_rows_per_group=section.max_rows_per_group,
        columns={
            column: _column(declared, (*path, "columns", column), document, zone, problems)
            for column, declared in section.columns.items()
        },
        source=_source(section, path, problems),
    )


def _source(section: TableSection, path: Path, problems: Problems) -> TableName | None:
    """`schema.table`, or `table` in the backend's own schema; a list where a name has a dot in it."""
    if section.source is None:
        return None
    parts = section.source.split(".") if isinstance(section.source, str) else list(section.source)
    if not 1 <= len(parts) <= 2 or not all(parts):
        fix = "write SCHEMA.TABLE, or a list of the two where a name has a dot: [my.schema, table]"
        problems.add((*path, "source"), "is not the name of a table", fix)
        return None
    return TableName(parts[-1], parts[0] if len(parts) == 2 else None)


def _check_sources(found: Mapping[str, Table], problems: Problems) -> None:
    """Two names for one stored table are refused: what is private under one of them could be public under the other."""
    seen: dict[tuple[str, str], str] = {}
    for name, table in found.items():
        stored = table.at(name)
        schema = "" if stored.schema in ("main", "public") else stored.schema or ""
        first = seen.setdefault((schema.casefold(), stored.name.casefold()), name)
        if first != name:
            place = ("tables", name) if table.source is None else ("tables", name, "source")
            problems.add(place, f"names the same table as tables.{first}", "keep one of them")


def _unit(section: TableSection) -> str | UnitPath | None:
    unit = section.unit
    return UnitPath(unit.through, dict(unit.on)) if isinstance(unit, PathSection) else unit


def _key(section: TableSection, path: Path, problems: Problems) -> tuple[str, ...] | None:
    if section.key is None:
        return None
    key = (section.key,) if isinstance(section.key, str) else tuple(section.key)
    if not key or len(set(key)) != len(key):
        problems.add((*path, "key"), "is empty or names a column twice", "name each key column once")
    return key


def _check_unit(section: TableSection, path: Path, document: Document, problems: Problems) -> None:
    by_row = document.privacy.unit == ROW
    if section.public and section.unit is not None:
        problems.add((*path, "unit"), "is set on a public table", "remove `unit:` or `public:`")
    elif by_row and section.unit is not None:
        problems.add((*path, "unit"), "is set although the privacy unit is `row`", "remove it")
    elif not section.public and not by_row and section.unit is None:
        problems.add((*path, "unit"), "is missing", "add `unit: COLUMN`, a path, or `public: true`")
    if isinstance(section.unit, PathSection):
        _check_path(section.unit, (*path, "unit"), document, problems)


def _check_path(unit: PathSection, path: Path, document: Document, problems: Problems) -> None:
    if unit.through not in document.tables:
        fix = did_you_mean(unit.through, document.tables)
        problems.add((*path, "through"), f"names `{unit.through:.60}`, no table", fix)
    elif not _ends(str(path[1]), document):
        problems.add((*path, "through"), "leads to no table with a unit column", "end the path at such a table")
    if not unit.on:
        problems.add((*path, "on"), "is empty", "write `{this table's column: the parent's column}`")
    if len(set(unit.on.values())) != len(unit.on):
        problems.add((*path, "on"), "names a parent column twice", "name each once")


def _ends(name: str, document: Document) -> bool:
    """Whether following `through` reaches a table with a unit column (or, wrongly declared, is reported elsewhere)."""
    seen: set[str] = set()
    while name not in seen and name in document.tables:
        seen.add(name)
        section = document.tables[name]
        if not isinstance(section.unit, PathSection):
            return not section.public
        name = section.unit.through
    return name not in document.tables


def _check_bounds(section: TableSection, path: Path, document: Document, problems: Problems) -> None:
    for key in ("max_rows", "max_groups", "max_rows_per_group"):
        value: int | None = getattr(section, key)
        if value is None:
            continue
        if section.public:
            problems.add((*path, key), "is set on a public table", "remove it")
        elif not 1 <= value <= 2**30:
            problems.add((*path, key), f"is {value}", "write a number from 1 to 2^30")
    groups = section.max_groups or document.privacy.max_groups or 1
    if groups * (section.max_rows_per_group or document.privacy.max_rows_per_group or 1) > 2**30:
        problems.add((*path, "max_groups"), "times max_rows_per_group is above 2^30", "lower one of them")
    cap = document.privacy.selection_cap
    if section.max_groups is not None and cap is not None and section.max_groups > cap:
        problems.add((*path, "max_groups"), f"is above selection_cap ({cap})", "lower it, or raise selection_cap")


def _column(section: ColumnSection, path: Path, document: Document, zone: ZoneInfo, problems: Problems) -> ColumnPolicy:
    of = _type(section, path, problems)
    references = _references(section, path, document, problems)
    if of is None:
        return ColumnPolicy(nullable=section.nullable, references=references)
    if section.randomized_response is not None:
        return _randomized(section, section.randomized_response, of, path, document, zone, problems)
    lower, upper = (_value(getattr(section, key), of, (*path, key), zone, problems) for key in ("lower", "upper"))
    values = _values(section, of, path, zone, problems)
    _check_interval(section, of, (lower, upper), path, problems)
    _check_inside(values, (lower, upper), path, problems)
    return ColumnPolicy(of, lower, upper, values, section.nullable, references)


def _randomized(
    section: ColumnSection,
    response: RandomizedSection,
    of: SqlType,
    path: Path,
    document: Document,
    zone: ZoneInfo,
    problems: Problems,
) -> ColumnPolicy:
    """k-ary randomized response: the values are the whole domain, so nothing else is declared beside them."""
    where = (*path, "randomized_response")
    if document.tables[str(path[1])].public:
        problems.add(where, "is set in a public table", "remove it, or give the table a unit")
    for key in ("lower", "upper", "values", "references", "nullable"):
        if getattr(section, key) not in (None, False):
            problems.add((*path, key), "is set beside `randomized_response`", "remove it: its values are the domain")
    if len(response.values) < 2:
        problems.add((*where, "values"), "has less than 2 entries", "list all values that could be answered")
    if not 0 < response.epsilon <= MAX_RESPONSE_EPSILON:
        fix = f"write the epsilon of the collection, above 0 and at most {MAX_RESPONSE_EPSILON}"
        problems.add((*where, "epsilon"), f"is {response.epsilon}", fix)
    values = _listed(response.values, of, (*where, "values"), zone, problems)
    return ColumnPolicy(of, values=values, randomized=response.epsilon)


def _type(section: ColumnSection, path: Path, problems: Problems) -> SqlType | None:
    if section.type is None:
        given = [k for k in ("lower", "upper", "values", "randomized_response") if getattr(section, k) is not None]
        if given:
            problems.add((*path, "type"), f"is missing, and `{given[0]}` needs it", "add for example `type: integer`")
        return None
    of = parse_type(section.type)
    if of is None:
        problems.add((*path, "type"), f"`{section.type:.60}` is no type here", did_you_mean(section.type, TYPE_NAMES))
    return of


def _value(raw: object, of: SqlType, path: Path, zone: ZoneInfo, problems: Problems) -> Value:
    if raw is None:
        return None
    try:
        return typed(raw, of, zone)
    except MisfitError as error:
        problems.add(path, f"`{raw!s:.60}` is not of type {of}", str(error))
        return None


def _values(
    section: ColumnSection, of: SqlType, path: Path, zone: ZoneInfo, problems: Problems
) -> tuple[Value, ...] | None:
    if section.values is None:
        return None
    where = (*path, "values")
    if of.kind is Kind.BOOL:
        problems.add(where, "is set on a boolean, whose values are known", "remove it")
    return _listed(section.values, of, where, zone, problems)


def _listed(given: Sequence[Scalar], of: SqlType, where: Path, zone: ZoneInfo, problems: Problems) -> tuple[Value, ...]:
    if not 1 <= len(given) <= MAX_VALUES:
        problems.add(where, f"has {len(given)} entries", f"list 1 to {MAX_VALUES} values")
    found = tuple(_value(raw, of, (*where, index), zone, problems) for index, raw in enumerate(given))
    for index in _repeated(found):
        problems.add((*where, index), f"`{given[index]!s:.60}` stands twice", "list each value once")
    return found


def _repeated(values: tuple[Value, ...]) -> Iterator[int]:
    seen: set[Value] = set()
    for index, value in enumerate(values):
        if value is not None and value in seen:
            yield index
        seen.add(value)


def _check_interval(
    section: ColumnSection, of: SqlType, bounds: tuple[Value, Value], path: Path, problems: Problems
) -> None:
    for key, other in (("lower", "upper"), ("upper", "lower")):
        if getattr(section, key) is None and getattr(section, other) is not None:
            problems.add((*path, key), f"is missing, and `{other}` is there", f"add `{key}:` too")
    if section.lower is not None and not (of.is_number or of.is_time):
        problems.add((*path, "lower"), f"is set on a {of} column", f"only {_BOUNDED} has bounds; remove it")
    elif None not in bounds and _ordered(bounds[0]) > _ordered(bounds[1]):
        problems.add((*path, "lower"), f"is above upper ({section.lower} > {section.upper})", "swap or correct them")


def _ordered(value: Value) -> float:
    """Bounds of one column have one type, so comparing them is sound; the cast tells the type checker so."""
    return cast(float, value)


def _check_inside(
    values: tuple[Value, ...] | None, bounds: tuple[Value, Value], path: Path, problems: Problems
) -> None:
    if values is None or None in bounds:
        return
    low, high = _ordered(bounds[0]), _ordered(bounds[1])
    for index, value in enumerate(values):
        if value is not None and not low <= _ordered(value) <= high:
            problems.add((*path, "values", index), f"`{value!s:.60}` is outside the bounds", "remove it or widen them")


def _references(section: ColumnSection, path: Path, document: Document, problems: Problems) -> tuple[str, str] | None:
    if section.references is None:
        return None
    where = (*path, "references")
    table, dot, column = section.references.rpartition(".")
    target = document.tables.get(table)
    if not dot or not column or target is None:
        problems.add(
            where, f"`{section.references:.60}` names no table's column", did_you_mean(table, _public(document))
        )
    elif not target.public or target.key not in (column, [column]):
        problems.add(where, "is not the key of a public table", f"add `public: true, key: {column}` to {table}")
    if section.values is not None:
        problems.add(where, "is set beside `values`", "keep one of them: each is the column's domain")
    return table, column


def _public(document: Document) -> list[str]:
    return [f"{name}.{section.key}" for name, section in document.tables.items() if section.public and section.key]
