"""Hints for names that do not exist where they were written, from the statement's text alone.

Decides nothing: the statement is refused already, with Postgres's own words. It looks up what was probably meant: a
name of the SELECT list in a clause that cannot see it, or a text constant in double quotes.
"""

from __future__ import annotations

import re

from sqlglot import exp

from dpsql.compiler.parse import name_of, parse, unwrap
from dpsql.errors import UNDEFINED_COLUMN, Rejected

_MISSING = re.compile(r'column "([^"]+)" does not exist')


def explained(error: Rejected, text: str) -> Rejected:
    """The refusal, and those beside it, with hints of their own where a name was misplaced."""
    missing = [
        each for each in (error, *error.others) if each.sqlstate == UNDEFINED_COLUMN and each.position is not None
    ]
    if missing:
        try:
            tree = parse(text)
        except Rejected:
            return error
        columns = {node.this.meta["start"]: node for node in tree.find_all(exp.Column) if "start" in node.this.meta}
        for each in missing:
            found = columns.get((each.position or 0) - 1)
            hint = None if found is None or not _MISSING.fullmatch(each.message) else _hint(found)
            if hint is not None:
                each.hint = hint
    return error


def _hint(column: exp.Column) -> str | None:
    select = column.find_ancestor(exp.Select)
    if column.args.get("table") or select is None:
        return None
    name = name_of(column.this)
    meant = next((e for e in select.expressions if isinstance(e, exp.Alias) and name_of(e.args["alias"]) == name), None)
    if meant is not None:
        return _of_alias(column, name, unwrap(meant.this))
    return _of_constant(column, name)


def _of_alias(column: exp.Column, name: str, meant: exp.Expr) -> str | None:
    written = meant.sql("postgres", comments=False)
    if len(written) > 200:
        return None
    aggregate = meant.find(exp.AggFunc) is not None
    match column.find_ancestor(exp.Where, exp.Having, exp.Select):
        case exp.Where() if aggregate:
            return f'"{name}" is {written} of each group, which WHERE cannot see. Write HAVING {written} ... instead.'
        case exp.Where():
            return f'"{name}" is a name of the SELECT list, which WHERE cannot see. Write {written} itself.'
        case exp.Having():
            return f'"{name}" is a name of the SELECT list, which HAVING cannot see. Write {written} itself.'
        case _:
            return (
                f'"{name}" is a name of the same SELECT list. Write {written} itself, or compute with it around a '
                f"subquery: SELECT {name}, ... FROM (SELECT {written} AS {name} ...) AS q."
            )


def _of_constant(column: exp.Column, name: str) -> str | None:
    compared = isinstance(column.parent, exp.Binary | exp.In) and isinstance(column.this, exp.Identifier)
    if compared and column.this.args.get("quoted") and column.arg_key != "this":
        shown = name.replace("'", "''")
        return f"Double quotes are for names. A text constant stands in single quotes: '{shown}'."
    return None
