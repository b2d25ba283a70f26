"""What is said of a column or a view that a catalog query names and that is not there: the names that are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches

from sqlglot import exp

from dpsql.catalog.context import Context
from dpsql.catalog.own import COLUMNS
from dpsql.catalog.routing import is_cte, relation, schema_of
from dpsql.catalog.snapshot import OWN_SCHEMA
from dpsql.compiler.parse import name_of
from dpsql.errors import UNDEFINED_COLUMN, Rejected


@contextmanager
def hinted(tree: exp.Query, context: Context) -> Iterator[None]:
    """A refusal for a missing column in the block lists the columns of what the query reads."""
    try:
        yield
    except Rejected as error:
        if error.sqlstate == UNDEFINED_COLUMN and error.hint is None:
            error.hint = _columns(error.message.split('"')[1], tree, context)
        raise


def views(context: Context) -> str:
    """The hint for a view of schema dpsql that is not there."""
    return f"Views of schema {OWN_SCHEMA}: {', '.join(sorted((COLUMNS.name, *context.views)))}."


def _columns(name: str, tree: exp.Query, context: Context) -> str | None:
    found = {}
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier) and not is_cte(table):
            found[name_of(table.this)] = _names(table, context)
    known = [column for columns in found.values() for column in columns]
    close = get_close_matches(name.lower(), known, n=1, cutoff=0.7)
    perhaps = f'Perhaps you meant "{close[0]}". ' if close else ""
    listed = " ".join(f"Columns of {table}: {', '.join(columns)}." for table, columns in found.items() if columns)
    return (perhaps + listed)[:_LONGEST].strip() or None


_LONGEST = 1000
"""Characters."""


def _names(table: exp.Table, context: Context) -> list[str]:
    view = context.views.get(name_of(table.this)) if schema_of(table) == OWN_SCHEMA else None
    if view is not None:
        return [column.name for column in view().columns]
    found = relation(table)
    return [] if found is None else [column.name for column in found.columns]
