"""What a catalog query may ask about the session that asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dpsql.types import Relation


@dataclass(frozen=True, slots=True)
class Context:
    """`settings` by lower-case name, as SHOW prints them; `timeout` in seconds.

    `views` of schema dpsql are asked for at each query.
    """

    user: str
    database: str
    pid: int = 0
    settings: Mapping[str, str] = field(default_factory=dict)
    views: Mapping[str, Callable[[], Relation]] = field(default_factory=dict)
    timeout: float | None = None
