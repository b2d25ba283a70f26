"""Whether a policy may be served under the terms that are in force: those that the ledger holds.

Several proxies may serve one dataset, each from its own policy file, and any of them may take over a stricter one. What
the promise is then stands in the ledger alone: a proxy that has not taken it over yet must debit nothing under terms
that promise less. It may go on under terms that promise as much or more. Decides from the two texts only; the ledger
asks within the transaction of the debit, so that no debit comes between a new policy and the look at it.
"""

from __future__ import annotations

import json

from dpsql.errors import CHANGED, Rejected
from dpsql.policy.changes import changes, terms
from dpsql.policy.model import Policy


class Superseded(Rejected):
    """Terms that promise more than this proxy's are in force. Nothing was debited. `why`: what it promises less in."""

    def __init__(self, why: str) -> None:
        super().__init__(
            "a stricter policy is in force for this dataset than the one that is served here",
            sqlstate=CHANGED,
            hint="Nothing was charged. Ask the dataset's owner to reload the policy here.",
        )
        self.why = why


def text_of(policy: Policy) -> str:
    """The terms of a policy as the ledger keeps them."""
    return json.dumps(terms(policy), sort_keys=True, separators=(",", ":"))


class Force:
    """One policy beside the terms in force. Safe to use from several threads."""

    def __init__(self, policy: Policy) -> None:
        self._own = text_of(policy)
        self._fine = self._own

    def __call__(self, held: str) -> None:
        """Raises Superseded where these terms, as the ledger holds them, promise more than the policy.

        A ledger that was never served ("") holds none. One may have moved, so its place is no promise.
        """
        if held is self._fine or held in ("", self._own):
            return
        found = changes(json.loads(held), json.loads(self._own))
        if lost := [change for change in found if change.weaker and not change.fixed]:
            raise Superseded("; ".join(map(str, lost)))
        self._fine = held
