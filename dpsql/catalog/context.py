"""What a catalog query may ask about the session that asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Context:
    """`settings` by lower-case name, as SHOW prints them."""

    user: str
    database: str
    pid: int = 0
    settings: Mapping[str, str] = field(default_factory=dict)
