"""dpsql: a PostgreSQL-protocol proxy that answers aggregate SQL with differential privacy."""

from importlib.metadata import version

__version__ = version("dpsql")
