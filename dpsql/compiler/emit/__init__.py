"""Planned releases as backend SQL: a fixed vocabulary, quoted declared names and the emitter's own literals."""

from dpsql.compiler.emit.common import DerivedRows
from dpsql.compiler.emit.dialect import Dialect
from dpsql.compiler.emit.duckdb import DUCKDB
from dpsql.compiler.emit.histogram import emit_histogram
from dpsql.compiler.emit.postgres import POSTGRES
from dpsql.compiler.emit.release import emit

DIALECTS: dict[str, Dialect] = {"duckdb": DUCKDB, "postgres": POSTGRES}

__all__ = ["DIALECTS", "DUCKDB", "POSTGRES", "DerivedRows", "Dialect", "emit", "emit_histogram"]
