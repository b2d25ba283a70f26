"""One process that serves: alone, or as one of several workers under `dpsql.server.supervisor`.

Decides how a policy becomes a server, and how that takes another policy over. A worker does what its parent says: it
serves the text of a policy that the parent has read, so that all serve the same one, and goes when the parent is gone.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from ssl import SSLError
from typing import Final

from dpsql.commands.numbers import numbers
from dpsql.commands.reload import Current, Prepared, begin
from dpsql.commands.running import log_to_stderr
from dpsql.dp.mechanisms import DiscreteGaussian
from dpsql.dp.noise import draw
from dpsql.engine import open_engine
from dpsql.errors import BAD_PARAMETER, DpsqlError, Failed, Rejected
from dpsql.ledger.trail import AUDIT
from dpsql.pgwire.messages import CancelRequest
from dpsql.policy.load import parse
from dpsql.policy.model import Policy
from dpsql.server.doors import receive
from dpsql.server.guests import Invited
from dpsql.server.limits import Limits
from dpsql.server.link import Body, Link, open_link, refusal
from dpsql.server.listen import Peers, Server
from dpsql.server.supervisor import CANCEL_PATIENCE
from dpsql.server.tls import Certificate
from dpsql.session.ports import OwnSessions
from dpsql.session.session import Session

log = logging.getLogger(__name__)

_WARM: Final = 2
_LOOK: Final = 1.0
"""Seconds between looks at the public server."""


def audit_to(audit: Path | None) -> None:
    """The audit trail as bare lines of JSON, appended to a file or to stderr; they go nowhere else."""
    handler = logging.StreamHandler(sys.stderr) if audit is None else logging.FileHandler(audit)
    handler.setFormatter(logging.Formatter("%(message)s"))
    AUDIT.addHandler(handler)
    AUDIT.propagate = False


def open_current(policy: Policy, workers: int = 1) -> Current:
    """The engine of a policy that is put in force, with all that the first statement needs."""
    engine = open_engine(policy, workers)
    try:
        begin(engine.ledger, policy)
        draw(DiscreteGaussian(1.0), 1)
        engine.pool.warm(_WARM)
        engine.open_public()
    except BaseException:
        engine.close()
        raise
    return Current(engine, workers)


def settle() -> None:
    """Modules, catalog and public tables live as long as the process: the collector need not walk them at each turn.

    With the demo's tables, compiling a statement takes about half as long.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def certificate_of(policy: Policy) -> Certificate | None:
    """Raises Rejected for files that are no certificate and its key."""
    tls = policy.server.tls
    if tls is None:
        return None
    try:
        return Certificate(tls.cert, tls.key)
    except (OSError, SSLError, ValueError) as error:
        hint = "server.tls names a PEM certificate and its key."
        why = f"the certificate {tls.cert} cannot be used: {type(error).__name__}"
        raise Rejected(why, sqlstate=BAD_PARAMETER, hint=hint) from None


def make_server(
    engine: Current,
    address: tuple[str, int],
    limits: Limits | None = None,
    peers: Peers | None = None,
) -> Server:
    """A server for an engine, not yet listening."""

    def session(user: str, database: str, parameters: tuple[tuple[str, str], ...], sessions: OwnSessions) -> Session:
        return Session(engine, user, parameters, sessions)

    def users() -> Mapping[str, str]:
        return {name: user.password for name, user in engine.policy.users.items() if user.password is not None}

    tls = certificate_of(engine.policy)
    return Server(session, users, address, tls, limits, peers)


@dataclass(frozen=True, slots=True)
class Change:
    """A policy that may be taken over, with its certificate."""

    prepared: Prepared
    certificate: Certificate | None


def prepare(current: Current, policy: Policy) -> Change:
    """Raises Rejected or Failed if the policy cannot be taken over."""
    certificate = certificate_of(policy)
    return Change(current.prepare(policy), certificate)


async def take_over(current: Current, server: Server, change: Change) -> int:
    """Puts a prepared policy in force; how many sessions that ends."""
    leaving = await asyncio.to_thread(current.commit, change.prepared)
    server.certificate = change.certificate
    return sum(server.end(user) for user in leaving)


# --- one of several ------------------------------------------------------------------------------------------------


class _Worker:
    """What a worker answers its parent, in turn: `start`, then `prepare` before `commit` or `abandon`, and the rest."""

    def __init__(self, over: socket.socket) -> None:
        self._over = over
        self._server: Server | None = None
        self._current: Current | None = None
        self._change: Change | None = None
        self._link: Link | None = None
        self._keeping: asyncio.Task[None] | None = None
        self.stopped = asyncio.Event()

    async def work(self, control: socket.socket) -> None:
        """Serves until it is told to stop, or the parent is gone."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self.stopped.set)
        for number in (signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, lambda: None)  # the parent says what they mean
        self._link = await open_link(control, self._answer)
        self._link.reading.add_done_callback(lambda _: self.stopped.set())
        await self.stopped.wait()
        if self._keeping is not None:
            self._keeping.cancel()
        if self._server is not None:
            await self._server.stop()
        if self._current is not None:
            await asyncio.to_thread(self._current.close)

    async def _answer(self, question: Body) -> Body:
        try:
            return await self._done(question)
        except DpsqlError as error:
            return refusal(error)
        except Exception as error:
            log.error("%s", type(error).__name__)
            return refusal(Failed(type(error).__name__))

    async def _done(self, question: Body) -> Body:
        match question:
            case {"do": "start"}:
                await self._start(question)
            case {"do": "prepare", "policy": str(text), "path": str(path)}:
                await self._abandon()
                self._change = await asyncio.to_thread(lambda: prepare(self._serving, parse(text, Path(path))))
            case {"do": "commit"}:
                return {"ended": await self._commit()}
            case {"do": "abandon"}:
                await self._abandon()
            case {"do": "metrics"}:
                return {"numbers": await asyncio.to_thread(numbers, self._serving)}
            case {"do": "cancel", "pid": int(pid), "secret": str(secret)} if self._server is not None:
                await self._server.cancel(CancelRequest(pid, bytes.fromhex(secret)))
            case {"do": "stop", "user": str(user), "pid": int(pid), "end": bool(end)} if self._server is not None:
                return {"stopped": await self._server.roster.stop(user, pid, end=end)}
        return {}

    @property
    def _serving(self) -> Current:
        if self._current is None:
            raise Failed("the worker does not serve yet")
        return self._current

    async def _start(self, question: Body) -> None:
        number, workers, audit = question["number"], question["workers"], question["audit"]
        assert isinstance(number, int)
        assert isinstance(workers, int)
        log_to_stderr()
        audit_to(None if audit is None else Path(str(audit)))
        policy = parse(str(question["policy"]), Path(str(question["path"])))
        self._current = await asyncio.to_thread(open_current, policy, workers)
        assert self._link is not None
        limits = Limits()
        limits = replace(limits, pending=-(-limits.pending // workers))
        peers = Peers(number, Invited(self._link), self._forward, self._ask, self._left)
        self._server = make_server(self._current, ("", 0), limits, peers)
        self._keeping = asyncio.create_task(self._keep_public()) if number >= workers else None
        settle()
        receive(self._over, self._server.adopt, self.stopped.set)

    async def _keep_public(self) -> None:
        """Starts the public server again whenever it has ended; the workers find it."""
        while True:
            await asyncio.sleep(_LOOK)
            with suppress(DpsqlError):
                await asyncio.to_thread(self._serving.engine.open_public)

    async def _commit(self) -> int:
        change, self._change = self._change, None
        if change is None or self._server is None:
            raise Failed("nothing was prepared")
        try:
            return await take_over(self._serving, self._server, change)
        except BaseException as error:
            # The others serve the new policy: this one must not go on with the old. It is started again with it.
            log.error("the policy was not taken over: %s", type(error).__name__)
            self.stopped.set()
            raise

    async def _abandon(self) -> None:
        change, self._change = self._change, None
        if change is not None:
            await asyncio.to_thread(self._serving.abandon, change.prepared)

    async def _forward(self, request: CancelRequest) -> None:
        if self._link is not None:
            question: Body = {"do": "cancel", "pid": request.pid, "secret": request.secret.hex()}
            with suppress(ConnectionError, TimeoutError):
                await self._link.ask(question, 2 * CANCEL_PATIENCE)

    async def _ask(self, question: Body) -> Body:
        """What the parent says; nothing if it is gone."""
        if self._link is not None:
            with suppress(ConnectionError, TimeoutError):
                return await self._link.ask(question, 2 * CANCEL_PATIENCE)
        return {}

    def _left(self) -> None:
        if self._link is not None:
            self._link.tell({"do": "left"})


def main() -> None:
    """A worker's whole life. Its two arguments are the descriptors of its ends, for questions and for clients."""
    control, over = (socket.socket(fileno=int(descriptor)) for descriptor in sys.argv[1:3])
    asyncio.run(_work(control, over))


async def _work(control: socket.socket, over: socket.socket) -> None:
    await _Worker(over).work(control)
