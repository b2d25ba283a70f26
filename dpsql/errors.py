"""The two ways in which a statement can end without an answer.

`Rejected`: the analyst can act. Its text is built from the statement and the policy only, never from data.
`Failed`: our fault or the backend's. One fixed sentence and an incident id; the detail goes to the server's log, and
that detail must not hold data values either.
"""

from __future__ import annotations

import secrets

SYNTAX = "42601"
UNDEFINED_TABLE = "42P01"
UNDEFINED_COLUMN = "42703"
AMBIGUOUS_COLUMN = "42702"
UNDEFINED_FUNCTION = "42883"
UNDEFINED_OBJECT = "42704"
GROUPING = "42803"
TYPE_MISMATCH = "42804"
NOT_SUPPORTED = "0A000"
NOT_PERMITTED = "42501"
BAD_PARAMETER = "22023"
BAD_TEXT = "22P02"
DIVISION_BY_ZERO = "22012"
OUT_OF_RANGE = "22003"
BUDGET_EXHAUSTED = "53400"
CANCELLED = "57014"
TOO_COMPLEX = "54001"
PROTOCOL = "08P01"
BAD_PASSWORD = "28P01"
TOO_MANY_CONNECTIONS = "53300"
IN_FAILED_TRANSACTION = "25P02"
CHANGED = "40001"
INTERNAL = "58000"


class DpsqlError(Exception):
    """Base of all errors that a user may see; carries what an ErrorResponse needs."""

    def __init__(
        self,
        message: str,
        *,
        sqlstate: str,
        hint: str | None = None,
        detail: str | None = None,
        position: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.sqlstate = sqlstate
        self.hint = hint
        self.detail = detail
        self.position = position
        """1-based character offset into the statement's text, or None."""


class Rejected(DpsqlError):
    """The statement, parameter, policy or command is refused; the text says why and what to do instead.

    `others`: what else is wrong with the same statement, in the order of its text.
    """

    def __init__(
        self,
        message: str,
        *,
        sqlstate: str = NOT_SUPPORTED,
        hint: str | None = None,
        detail: str | None = None,
        position: int | None = None,
    ) -> None:
        super().__init__(message, sqlstate=sqlstate, hint=hint, detail=detail, position=position)
        self.others: tuple[Rejected, ...] = ()


class Failed(DpsqlError):
    """An internal fault. `cause` is for the operator's log; the client sees the fixed sentence and the incident."""

    def __init__(self, cause: str, *, sqlstate: str = INTERNAL) -> None:
        self.cause = cause
        self.incident = secrets.token_hex(4)
        super().__init__(
            f"The statement could not be completed (incident {self.incident}). Any budget it reserved stays spent.",
            sqlstate=sqlstate,
            hint="Ask the operator to look up the incident in the server's log.",
        )
