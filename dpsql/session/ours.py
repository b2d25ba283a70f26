"""A session's own statements at the public server: what they are made of, and what is checked around them.

Decides how SQL of ours is read, bound and forgotten there without a client seeing it. It must never decide what is
asked.
"""

from __future__ import annotations

import re
from typing import Final

from dpsql.compiler import kinds
from dpsql.compiler.kinds import Statement
from dpsql.errors import IN_FAILED_TRANSACTION, PROTOCOL, Rejected
from dpsql.pgwire import frontend
from dpsql.pgwire import messages as wire
from dpsql.pgwire.backend import decoded as decoded_frames
from dpsql.pgwire.encode import encode
from dpsql.pgwire.values import decode_value, formats, type_of
from dpsql.session import replies
from dpsql.session.asked import Prepared, Ran
from dpsql.session.ports import WireParameters
from dpsql.session.relation import stand_in
from dpsql.session.route import Asked, Part
from dpsql.session.upstream import Exchange, Expected, fields
from dpsql.types import Column

OURS: Final = "_dpsql"
"""The name of statements and portals that are ours, and gone before the client's next message."""

CLOSED = frontend.close(wire.Close("S", OURS)) + frontend.close(wire.Close("P", OURS))
"""Before what is ours, for an error may have left it; and behind it, so that no client sees it."""


def closed() -> tuple[Expected, Expected]:
    return Expected(b"3", shown=False), Expected(b"3", shown=False)


def ours(
    ran: Ran, portal: str = OURS, formats: tuple[int, ...] = (), error: Exchange | None = None
) -> tuple[bytes, tuple[Expected, ...]]:
    """A statement of ours, read and bound to a portal, with answers that nobody sees."""
    data = (
        CLOSED
        + frontend.parse(wire.Parse(OURS, ran.sql))
        + frontend.close(wire.Close("P", portal))
        + frontend.bind(wire.Bind(portal, OURS, (), ran.values, formats))
    )
    answers = (Expected(ends, shown=False, error=error) for ends in (b"1", b"3", b"2"))
    return data, (*closed(), *answers)


def instead(error: Exception) -> Exchange:
    """Tells `error` in the place of an error; but not of a transaction that had failed before."""

    def exchanged(frame: bytes) -> bytes:
        return frame if fields(frame).get("C") == IN_FAILED_TRANSACTION else encode(replies.error(error))

    return exchanged


def may_be_judged_later(part: Part) -> bool:
    """Whether a refusal may hang on parameters of which only the types are known."""
    return isinstance(part.statement, kinds.Select) and _PARAMETER.search(part.statement.text) is not None


_PARAMETER = re.compile(r"\$[0-9]")


def foreign(statement: Statement, text: str, parameters: bytes, row: bytes) -> Prepared:
    """A statement with the types that Postgres has found. Raises Rejected for a type that does not exist here."""
    (described,), (shown,) = tuple(decoded_frames(parameters)), tuple(decoded_frames(row))
    assert isinstance(described, wire.ParameterDescription)
    assert isinstance(shown, wire.RowDescription)
    types = tuple(type_of(oid) for oid in described.types)
    columns = tuple(Column(field.name, type_of(field.type_oid)) for field in shown.fields)
    return Prepared(statement, stand_in(columns), text, types, described.types, columns, foreign=True)


def check_shape(prepared: Prepared, ran: Ran) -> None:
    """What was announced is what is sent: a client decodes by the announced types."""
    if ran.columns is not None and ran.columns != prepared.columns:
        raise Rejected("cached plan must not change result type", hint="Prepare the statement again.")


def require_transaction(part: Part, status: bytes) -> None:
    """A cursor ends with its transaction; ours would begin one by itself."""
    statement = part.statement
    if isinstance(statement, kinds.Declare) and isinstance(part.route, Asked) and not statement.hold and status == b"I":
        raise Rejected("DECLARE CURSOR can only be used in transaction blocks", sqlstate="25P01", hint="BEGIN first.")


def told(notices: tuple[str, ...]) -> bytes:
    return b"".join(encode(replies.notice(text)) for text in notices)


def decoded(event: wire.Bind, prepared: Prepared) -> WireParameters:
    """The parameters' values. Raises Rejected for bytes that are no value of the type."""
    if len(event.parameters) != len(prepared.types):
        raise Rejected(
            f"bind message supplies {len(event.parameters)} parameters, "
            f'but prepared statement "{event.statement}" requires {len(prepared.types)}',
            sqlstate=PROTOCOL,
        )
    codes = formats(event.parameter_formats, len(event.parameters))
    given = zip(event.parameters, prepared.types, prepared.oids, codes, strict=True)
    return tuple((type, decode_value(data, oid or type, code)) for data, type, oid, code in given)
