"""SmartNoise SQL's metadata -> a draft of a policy.

Decides what each of its keys becomes here, and says in comments what has no counterpart. A draft never promises more
than the metadata did: where the two systems bound contributions differently, a person decides.

The format: https://docs.smartnoise.org/sql/metadata.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from dpsql.policy.draft import Source
from dpsql.policy.draft_names import holds_people, quoted, thing
from dpsql.policy.draft_text import access, advice_to_decide, budget, contribution, header, noted, source_word
from dpsql.policy.model import ROW
from dpsql.policy.problems import Path, Problems
from dpsql.policy.source import Data, read
from dpsql.policy.undecided import DECIDE
from dpsql.types import TableName

_OPTIONS = frozenset(
    {"max_ids", "row_privacy", "rows", "rows_exact", "sample_max_ids", "censor_dims", "clamp_counts", "clamp_columns"}
    | {"use_dpsu", "dpsu"}
)
_OWN = frozenset({"", "main", "public"})
_TYPES = {
    "int": "integer",
    "integer": "integer",
    "float": "double",
    "string": "text",
    "str": "text",
    "boolean": "boolean",
    "bool": "boolean",
    "datetime": "timestamp",
    "date": "date",
}
_COLUMN = frozenset(
    {
        "type",
        "name",
        "private_id",
        "lower",
        "upper",
        "nullable",
        "missing_value",
        "sensitivity",
        "cardinality",
        "bounded",
    }
)

Section = Mapping[str, Data]


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of the metadata. `units`: its private_id columns. `named`: its name here, where that is another."""

    schema: str
    name: str
    options: Section
    columns: Mapping[str, Section]
    units: tuple[str, ...]
    named: str = ""

    @property
    def by_row(self) -> bool:
        return self.options.get("row_privacy") is True

    @property
    def rows(self) -> int | None:
        found = self.options.get("rows")
        return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None

    @property
    def max_ids(self) -> int:
        found = self.options.get("max_ids", 1)
        return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else 1

    @property
    def usable(self) -> bool:
        return self.by_row or bool(self.units)


def convert(text: str, source: Source) -> str:
    """The draft. Raises PolicyError with all that is not SmartNoise metadata in the text."""
    problems = Problems(source.given)
    data = read(text, problems)
    tables = tuple(_tables(data, problems))
    if not tables and not problems.found:
        fix = "expected database: {schema: {table: {column: {type: ...}}}}"
        problems.add((), "describes no tables", fix)
    problems.refuse_if_any()
    parts = (_head(source), _privacy(tables), _all(tables), access())
    return "".join(f"{line}\n" for part in parts for line in part)


def _tables(data: Data, problems: Problems) -> Iterator[_Table]:
    for database, schemas in _map(data, (), problems).items():
        for schema, tables in _map(schemas, (database,), problems).items():
            if schema == "engine" and isinstance(tables, str):
                continue
            for table, section in _map(tables, (database, schema), problems).items():
                yield _table(schema, table, _map(section, (database, schema, table), problems), problems, database)


def _table(schema: str, name: str, section: Section, problems: Problems, database: str) -> _Table:
    path: Path = (database, schema, name)
    columns = {
        _name(column): _map(value, (*path, column), problems)
        for column, value in section.items()
        if column not in _OPTIONS
    }
    units = tuple(column for column, found in columns.items() if found.get("private_id") is True)
    return _Table(schema, _name(name), {k: v for k, v in section.items() if k in _OPTIONS}, columns, units)


def _map(data: Data, path: Path, problems: Problems) -> Section:
    if isinstance(data, dict):
        return data
    problems.add(path, "must be a map of keys", "see the metadata format of SmartNoise SQL")
    return {}


def _name(text: str) -> str:
    """Without the quotes that SmartNoise keeps around special names."""
    for opening, closing in ('""', "``", "[]"):
        if len(text) > 2 and text.startswith(opening) and text.endswith(closing):
            return text[1:-1]
    return text


def _head(source: Source) -> Iterator[str]:
    yield f"# A draft of a policy, converted by `dpsql import smartnoise` from {quoted(source.given)}."
    yield "# What has no counterpart here stands in comments."
    yield "#"
    yield from advice_to_decide(source.file)
    yield from header(source.dataset, source.backend)


def _privacy(tables: tuple[_Table, ...]) -> Iterator[str]:
    usable = [table for table in tables if table.usable]
    by_row = [table for table in usable if table.by_row]
    yield "privacy:"
    if by_row and len(by_row) < len(usable):
        yield "  # row_privacy is set on some tables and private_id on others; here one unit holds for all tables."
        yield f"  unit: {DECIDE}"
    elif by_row:
        yield noted(f"  unit: {ROW}", "row_privacy: right only if nobody has two rows in any table")
    else:
        yield f"  unit: {_unit_name(usable)}"
    yield _units(usable)
    if not (by_row and len(by_row) == len(usable)):
        yield from contribution()
        yield from _contribution(max((table.max_ids for table in usable), default=1))
    yield "  # SmartNoise takes epsilon and delta of each session from the caller; here the policy holds them."
    yield from budget()


def _unit_name(tables: list[_Table]) -> str:
    columns = {table.units[0].lower(): table.units[0] for table in tables}
    if len(columns) != 1:
        return DECIDE
    name = thing(next(iter(columns.values())))
    return quoted(name.removesuffix("_id") if len(name) > 3 else "person" if holds_people(name) else name)


def _units(tables: list[_Table]) -> str:
    """Where a unit has one row, there are as many units as rows."""
    single = [table.rows for table in tables if table.rows is not None and (table.by_row or table.max_ids == 1)]
    if single:
        return noted(f"  units: {max(single)}", "from `rows`: a unit has one row there")
    return noted(f"  units: {DECIDE}", "roughly how many there are; `rows` counts rows")


def _contribution(most: int) -> Iterator[str]:
    if most == 1:
        yield noted("  max_groups: 1", "max_ids was 1")
        yield "  max_rows_per_group: 1"
        return
    yield f"  # max_ids was {most}, the rows of a unit in all; more were dropped at random, here they are scaled down."
    yield f"  max_groups: {DECIDE}"
    yield f"  max_rows_per_group: {most}"


def _all(tables: tuple[_Table, ...]) -> Iterator[str]:
    yield "tables:"
    most = max((table.max_ids for table in tables if table.usable), default=1)
    seen: set[str] = set()
    for table in tables:
        name = quoted(table.name)
        if table.usable and table.name.casefold() in seen:
            table = replace(table, named=f"{table.schema}_{table.name}")
        if table.named and table.named.casefold() in seen:
            yield f"  # {name} of schema {quoted(table.schema)} is left out: it stands twice."
        elif not table.usable:
            yield f"  # {name} is left out: it has neither private_id nor row_privacy, so nothing could be asked of it."
            yield f"  # If it is nobody's data, add the line: {name}: {{public: true}}"
        else:
            yield from _one(table, most)
        seen.add((table.named or table.name).casefold())
        yield ""


def _one(table: _Table, most: int) -> Iterator[str]:
    yield f"  {quoted(table.named or table.name)}:"
    if table.named or table.schema not in _OWN:
        source = source_word(TableName(table.name, table.schema))
        yield noted(f"    source: {source}", "remove it where the backend has the table in main or public")
    if not table.by_row:
        if len(table.units) > 1:
            yield f"    # private_id on {', '.join(map(quoted, table.units))}: here a unit is one column."
        yield f"    unit: {quoted(table.units[0]) if len(table.units) == 1 else DECIDE}"
        if table.max_ids == 1:
            yield noted("    max_rows: 1", "max_ids: verified, or made true by the proxy")
        elif table.max_ids < most:
            yield noted(f"    max_rows_per_group: {table.max_ids}", "max_ids")
    yield from (f"    # {note}" for note in _notes(table))
    lines = [
        line for name, column in table.columns.items() if name not in table.units for line in _column(name, column)
    ]
    if any(not line.startswith("#") for line in lines):
        yield "    columns:"
    yield from (f"      {line}" for line in lines)


def _notes(table: _Table) -> Iterator[str]:
    options = table.options
    if options.get("sample_max_ids") is False:
        yield "sample_max_ids: false has no counterpart: a unit's rows are always bounded."
    if options.get("clamp_columns") is False:
        yield "clamp_columns: false has no counterpart: values are always clipped to lower and upper."
    if options.get("clamp_counts") is True:
        yield "clamp_counts: true has no counterpart: write greatest(count(*), 0), which costs nothing."
    if options.get("censor_dims") is False:
        yield "censor_dims: false has no counterpart: list the `values` of a column to have all its groups shown."
    if options.get("use_dpsu") is True or options.get("dpsu") is True:
        yield "use_dpsu has no counterpart: groups without declared values are selected by a noisy count of units."
    if table.rows is not None:
        yield f"rows: {table.rows} has no counterpart: counts are always noisy."


def _column(name: str, column: Section) -> Iterator[str]:
    of = column.get("type")
    kind = _TYPES.get(of.lower()) if isinstance(of, str) else None
    if kind is None:
        yield f"# {quoted(name)} is left out: its type is " + (quoted(of) if isinstance(of, str) else "missing")
        return
    bounds = [(key, column[key]) for key in ("lower", "upper") if column.get(key) is not None]
    words = "".join(f", {key}: {_number(value)}" for key, value in bounds if kind in ("integer", "double"))
    notes = [*_column_notes(column, kind)]
    yield noted(f"{quoted(name)}: {{type: {kind}{words}}}", "; ".join(notes), 50)


def _number(value: Data) -> str:
    """A bound as it is written; whatever is no number is for a person to decide."""
    return str(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else DECIDE


def _column_notes(column: Section, kind: str) -> Iterator[str]:
    bounds = [key for key in ("lower", "upper") if column.get(key) is not None]
    if kind in ("integer", "double") and not bounds:
        yield "without lower and upper: for filters and counts"
    if kind == "timestamp":
        yield "or date; with lower and upper its periods are public groups"
    if column.get("cardinality") is not None and kind != "boolean":
        yield f"cardinality {_number(column['cardinality'])}: list `values` if they are public"
    if column.get("missing_value") is not None:
        yield "missing_value: write coalesce(...) in the statement"
    if column.get("sensitivity") is not None:
        yield "sensitivity has no counterpart: it follows from lower and upper"
    for key in sorted(set(column) - _COLUMN):
        yield f"{quoted(key)} is unknown"
