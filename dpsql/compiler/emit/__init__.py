"""Planned releases as backend SQL: a fixed vocabulary, quoted declared names and the emitter's own literals."""

from dataclasses import replace

from dpsql.compiler.emit.common import DerivedRows
from dpsql.compiler.emit.dialect import Dialect
from dpsql.compiler.emit.duckdb import DUCKDB
from dpsql.compiler.emit.histogram import emit_histogram
from dpsql.compiler.emit.postgres import POSTGRES
from dpsql.compiler.emit.release import emit


def dialect_of(name: str, folding: str | None) -> Dialect:
    """The dialect of a backend; `folding`: its collation for changing the case of letters, if it needs one."""
    return replace(DIALECTS[name], folding=folding)


DIALECTS: dict[str, Dialect] = {"duckdb": DUCKDB, "postgres": POSTGRES}

__all__ = ["DIALECTS", "DUCKDB", "POSTGRES", "DerivedRows", "Dialect", "dialect_of", "emit", "emit_histogram"]
