"""Runs the public remainder of a statement in locked in-memory DuckDBs. Sees public rows only."""

from dpsql.remainder.pool import Pool

__all__ = ["Pool"]
