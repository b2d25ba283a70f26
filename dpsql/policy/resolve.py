"""The policy compared with the backend: `resolve` makes the `Schema` or says all that does not fit.

Decides which declarations hold. It must never take a declaration for a fact: what it cannot find verified in
`TableFacts`, it refuses. Pure: the facts and public rows were read before.
"""

from __future__ import annotations

from dpsql.policy.schema import Schema, SchemaColumn, SchemaTable

__all__ = ["Schema", "SchemaColumn", "SchemaTable"]
