"""The numbers of a process that serves.

Decides which there are: counts of statements and releases, what the dataset's budget has left, how far the ledger's
clock is behind. No user's name, no statement, no value.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.commands.metrics import Number
from dpsql.commands.reload import Current
from dpsql.errors import DpsqlError
from dpsql.ledger.balance import dataset_balance
from dpsql.ledger.clock import SECOND
from dpsql.ledger.trail import COUNTS


def numbers(current: Current) -> list[Number]:
    """The metrics now. A ledger that cannot be read is `dpsql_ledger_up 0`, and its numbers are left out."""
    return [*COUNTS.metrics(), *_ledger(current)]


def _ledger(current: Current) -> Iterator[Number]:
    engine = current.engine
    try:
        balance = dataset_balance(engine.policy, engine.ledger.dataset_spent())
        count, behind = engine.ledger.head().count, engine.ledger.behind()
    except DpsqlError:
        yield "dpsql_ledger_up", {}, 0
        return
    yield "dpsql_ledger_up", {}, 1
    yield "dpsql_ledger_entries", {}, count
    yield "dpsql_ledger_clock_behind_seconds", {}, behind / SECOND
    yield "dpsql_dataset_epsilon_budget", {}, float(balance.budget.epsilon)
    yield "dpsql_dataset_epsilon_spent", {}, float(balance.epsilon_spent)
    yield "dpsql_dataset_epsilon_left", {}, float(balance.epsilon_left)
    yield "dpsql_dataset_delta_left", {}, float(balance.delta_left)
