"""All that a session holds between messages."""

from __future__ import annotations

from dataclasses import dataclass, field

from dpsql.pgwire.messages import BackendMessage
from dpsql.session.ports import CancelToken, Catalog, Context, Engine, OwnSessions
from dpsql.session.prepared import Portals, Statements
from dpsql.session.settings import Values, for_engine
from dpsql.session.transaction import Transaction


@dataclass(slots=True)
class State:
    """`user` is who logged in, for ever; `defaults` are the settings as the session began.

    `sessions` are all that the user has open. `block` says that several statements of one Query run as one implicit
    transaction. `pending` are notices to send.
    """

    engine: Engine
    catalog: Catalog
    user: str
    database: str
    pid: int
    defaults: Values
    transaction: Transaction
    sessions: OwnSessions
    statements: Statements = field(default_factory=Statements)
    portals: Portals = field(default_factory=Portals)
    cancel: CancelToken = field(default_factory=CancelToken)
    block: bool = False
    pending: list[BackendMessage] = field(default_factory=list)

    def context(self) -> Context:
        found = self.engine.system_relations(self.user)
        views = {name.removeprefix("dpsql."): relation for name, relation in found.items()}
        values = self.transaction.values
        timeout = for_engine(values).statement_timeout
        return Context(self.user, self.database, self.pid, values, views, timeout, self.sessions)
