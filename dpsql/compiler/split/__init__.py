"""A statement taken apart into private aggregations and the public remainder over their results."""

from dpsql.compiler.split.private import PENDING
from dpsql.compiler.split.query import split
from dpsql.compiler.split.state import Split

__all__ = ["PENDING", "Split", "split"]
