"""Which table or view of the policy a statement names, with its schema or without, in any case of letters.

Decides by the policy and by what the user may see: the rest does not exist, and makes no name ambiguous. Two tables of
one name in two schemas are told apart by their schemas alone: none of them comes first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from dpsql.compiler.parse import name_of, refuse
from dpsql.compiler.spelling import READINGS, Fits, either, quoted
from dpsql.errors import AMBIGUOUS_COLUMN, Rejected
from dpsql.policy.places import DEFAULT, place_of
from dpsql.policy.schema import Schema, SchemaTable


@dataclass(frozen=True, slots=True)
class Named:
    """A table or view. `name`: in the policy; `shown`: without an alias; `schemas`: what may stand before that."""

    name: str
    shown: str
    schemas: frozenset[str] = frozenset()


def named(item: exp.Table, schema: Schema, visible: frozenset[str] | None) -> Named | None:
    """What the user sees under this name; 42702 where that is more than one."""
    within = item.args.get("db")
    known = [place for place in _places(schema) if visible is None or place[0] in visible]
    for fits in READINGS:
        for reading in _BY_PLACE if within is not None else _BY_NAME:
            meant = [reading(*place) for place in known]
            found = [n for at, n in meant if fits(item.this, n.shown) and (not within or _is_within(within, at, fits))]
            if len(found) > 1:
                raise _ambiguous(item, known, found)
            if found:
                return found[0]
    return None


def written_schemas(name: str) -> frozenset[str]:
    """A schema by all its names: `public` of Postgres is `main` of DuckDB."""
    return _HOME if name in _HOME else frozenset({name})


_HOME = frozenset({DEFAULT, "main"})


def _is_within(written: exp.Expr, schema: str, fits: Fits) -> bool:
    return any(fits(written, name) for name in written_schemas(schema))


def _places(schema: Schema) -> Iterator[tuple[str, str, str]]:
    """Name in the policy, schema, name in it."""
    for name in schema.policy.views:
        yield name, DEFAULT, name
    for name, table in schema.tables.items():
        place = place_of(table)
        yield name, place.schema or DEFAULT, place.name


def _placed(name: str, schema: str, real: str) -> tuple[str, Named]:
    return schema, Named(name, real, written_schemas(schema))


def _flat(name: str, schema: str, real: str) -> tuple[str, Named]:
    """By its name in the policy, which is one of the schema `public` too."""
    return DEFAULT, Named(name, name, written_schemas(schema) | _HOME)


_BY_PLACE = (_placed, _flat)
_BY_NAME = (_flat, _placed)


def _ambiguous(item: exp.Table, known: list[tuple[str, str, str]], found: list[Named]) -> Rejected:
    names = {n.name for n in found}
    hint = either(f"{quoted(schema)}.{quoted(real)}" for name, schema, real in known if name in names)
    return refuse(f'table reference "{name_of(item.this)}" is ambiguous', item, sqlstate=AMBIGUOUS_COLUMN, hint=hint)


def written(table: SchemaTable) -> str:
    """The name as a statement has to write it: with its schema where the table has that in its policy's name."""
    place = place_of(table)
    return quoted(table.name) if place.name == table.name else f"{quoted(place.schema or DEFAULT)}.{quoted(place.name)}"
