"""A source -> its `Outline`: names of tables, columns, keys and foreign keys, from the catalog alone.

Decides what a draft may know. It never reads a row of any table.
"""

from __future__ import annotations

from contextlib import closing

from dpsql.backends import Backend, open_backend
from dpsql.errors import BAD_PARAMETER, Rejected
from dpsql.policy.outline import Outline


def read_outline(url: str) -> Outline:
    """The outline of the database at `url`. Raises Rejected if it cannot be opened or has no tables."""
    with closing(open_backend(url, "UTC")) as backend:
        made = outline_of(backend)
    if not made.tables:
        where = "schema main" if url.startswith("duckdb:") else "schema public"
        raise Rejected(f"There are no tables in {where} of the source.", sqlstate=BAD_PARAMETER)
    return made


def outline_of(backend: Backend) -> Outline:
    """The outline of an open backend."""
    names, foreign_keys = backend.catalog()
    facts = backend.facts(names)
    known = {name: facts[name] for name in names if name in facts}
    return Outline(known, tuple(f for f in foreign_keys if f.table in known and f.parent in known))
