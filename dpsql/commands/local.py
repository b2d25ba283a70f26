"""A session without a socket: statements in, results out, through the same code that serves the wire."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dpsql.engine import open_engine
from dpsql.errors import UNDEFINED_OBJECT, Rejected
from dpsql.pgwire import messages as wire
from dpsql.pgwire.values import WireValue, decode_value, type_of
from dpsql.policy.load import load
from dpsql.session.session import Session


@dataclass(frozen=True, slots=True)
class Result:
    """One statement's outcome: its columns and rows (none for SET and the like), its tag and its notices."""

    columns: tuple[str, ...]
    rows: tuple[tuple[WireValue, ...], ...]
    tag: str
    notices: tuple[str, ...]


@contextmanager
def open_session(policy: Path, user: str, settings: tuple[tuple[str, str], ...] = ()) -> Iterator[Session]:
    """A session of `user` over the policy's own backend and ledger. The command line is trusted: no password."""
    loaded = load(policy)
    if user not in loaded.users:
        known = ", ".join(loaded.users)
        raise Rejected(f"there is no user {user!r} in {policy}", sqlstate=UNDEFINED_OBJECT, hint=f"Users: {known}.")
    engine = open_engine(loaded)
    try:
        yield Session(engine, user, loaded.dataset, settings)
    finally:
        engine.close()


def run(session: Session, text: str) -> Iterator[Result]:
    """All results of the text's statements. Raises Rejected with the first error's text, hint and position."""
    fields: tuple[wire.Field, ...] = ()
    rows: list[tuple[WireValue, ...]] = []
    notices: list[str] = []
    for message in session.handle(wire.Query(text)):
        match message:
            case wire.RowDescription(fields=found):
                fields = found
            case wire.DataRow(values=values):
                rows.append(tuple(_decoded(v, f) for v, f in zip(values, fields, strict=True)))
            case wire.NoticeResponse():
                notices.append(message.message)
            case wire.CommandComplete(tag=tag):
                yield Result(tuple(f.name for f in fields), tuple(rows), tag, tuple(notices))
                fields, rows, notices = (), [], []
            case wire.ErrorResponse():
                raise Rejected(
                    message.message,
                    sqlstate=message.sqlstate,
                    hint=message.hint,
                    detail=message.detail,
                    position=message.position,
                )
            case _:
                continue
    if notices:
        yield Result((), (), "", tuple(notices))


def _decoded(value: bytes | None, field: wire.Field) -> WireValue:
    return None if value is None else decode_value(value, type_of(field.type_oid), field.format)
