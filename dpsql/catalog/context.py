"""What a catalog query may ask about the session that asks, and what is known of a query before it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dpsql.types import Column, SqlType


@dataclass(frozen=True, slots=True)
class Context:
    """`settings` by lower-case name, as SHOW prints them."""

    user: str
    database: str
    pid: int = 0
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Description:
    """What a query takes and returns, found without running it."""

    parameter_types: tuple[SqlType, ...]
    columns: tuple[Column, ...]
