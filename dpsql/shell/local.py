"""A connection without a socket: statements go through the same session code that serves the wire.

The command line is trusted: who may read the policy and the ledger needs no password.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from dpsql.engine import Engine, open_engine
from dpsql.errors import UNDEFINED_OBJECT, Rejected
from dpsql.pgwire import messages as wire
from dpsql.pgwire.backend import messages
from dpsql.pgwire.values import WireValue, decode_value, type_of
from dpsql.policy.load import load
from dpsql.session.session import Session
from dpsql.shell.results import Result
from dpsql.types import SqlType


@contextmanager
def open_session(policy: Path, user: str, settings: tuple[tuple[str, str], ...] = ()) -> Iterator[Session]:
    """A session of `user` over the policy's own backend and ledger."""
    engine, _ = _opened(policy, user)
    try:
        with closing(Session(engine, user, settings)) as session:
            yield session
    finally:
        engine.close()


def _opened(policy: Path, user: str | None) -> tuple[Engine, str]:
    loaded = load(policy)
    if user not in loaded.users:
        known = ", ".join(loaded.users)
        raise Rejected(f"there is no user {user!r} in {policy}", sqlstate=UNDEFINED_OBJECT, hint=f"Users: {known}.")
    return open_engine(loaded), loaded.dataset


class Local:
    """The shell's connection to a policy. Raises what opening the policy, its backend and its ledger raise."""

    def __init__(self, policy: Path, user: str | None) -> None:
        self.user = user or _only_user(policy)
        self._engine, self.dataset = _opened(policy, self.user)
        self._session = Session(self._engine, self.user)

    def run(self, statement: str) -> Result:
        results = tuple(run(self._session, statement))  # to the end: a session that is left amid its answer is lost
        return results[0] if results else Result((), (), "", ())

    def cancel(self) -> None:
        self._session.cancel()

    def reopen(self) -> None:
        self._session.close()
        self._session = Session(self._engine, self.user)

    def close(self) -> None:
        self._session.close()
        self._engine.close()


def _only_user(policy: Path) -> str:
    """The one user who can ask something, where there is no choice."""
    loaded = load(policy)
    names = [name for name, user in loaded.users.items() if loaded.roles[user.role].budget is not None]
    if len(names) != 1:
        known = ", ".join(loaded.users)
        raise Rejected("Say as whom: --user NAME.", sqlstate=UNDEFINED_OBJECT, hint=f"Users of the policy: {known}.")
    return names[0]


def run(session: Session, text: str) -> Iterator[Result]:
    """All results of the text's statements. Raises Rejected with the first error's text, hint and position."""
    fields: tuple[wire.Field, ...] = ()
    types: tuple[SqlType, ...] = ()
    rows: list[tuple[WireValue, ...]] = []
    notices: list[str] = []
    copied = b""
    error: Rejected | None = None
    for message in messages(session.handle(wire.Query(text))):
        match message:
            case wire.RowDescription(fields=found):
                fields, types = found, tuple(type_of(f.type_oid) for f in found)
            case wire.DataRow(values=values):
                rows.append(tuple(_decoded(v, f) for v, f in zip(values, fields, strict=True)))
            case wire.CopyData(data=data):
                copied += data
            case wire.NoticeResponse():
                notices.append(message.message)
            case wire.CommandComplete(tag=tag):
                yield Result(tuple(f.name for f in fields), tuple(rows), tag, tuple(notices), types, copied)
                fields, types, rows, notices, copied = (), (), [], [], b""
            case wire.ErrorResponse():
                error = Rejected(
                    message.message,
                    sqlstate=message.sqlstate,
                    hint=message.hint,
                    detail=message.detail,
                    position=message.position,
                )
            case _:
                continue
    if error is not None:
        raise error
    if notices:
        yield Result((), (), "", tuple(notices))


def _decoded(value: bytes | None, field: wire.Field) -> WireValue:
    return None if value is None else decode_value(value, type_of(field.type_oid), field.format)
