"""What the ledger is asked for in its tests: any key at any price, as if it were certified."""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.certify import Certificate
from dpsql.dp.privacy import Event
from dpsql.ledger import Ask
from dpsql.ledger.room import LEAST
from dpsql.types import Cost


def paid(key: str, cost: Cost, events: Sequence[Event] = (), room: int = LEAST) -> Ask:
    return Ask(key, Certificate("r0", cost), tuple(events), room=room)
