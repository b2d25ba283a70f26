"""The socket's side of the proxy: accepts clients, logs them in, and carries bytes between them and their sessions.

Decides who is served when, by limits and deadlines. It must never read a statement, and must never wait for one
client while another could be served: statements run in worker threads, writing waits without holding one.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import traceback
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import cast

from dpsql.errors import DpsqlError, Failed, Rejected
from dpsql.ledger import trail
from dpsql.pgwire import messages as m
from dpsql.pgwire.connection import Connection
from dpsql.server.cancel import CancelKeys, number_of
from dpsql.server.channel import Channel
from dpsql.server.guests import Alone
from dpsql.server.limits import Limits, Seats
from dpsql.server.login import GoneError, Identity, Login
from dpsql.server.ports import Places, SessionFactory, SessionLike, Users
from dpsql.server.roster import Ask, Mine, Roster
from dpsql.server.tls import Certificate
from dpsql.server.workers import Inbox, Turn, Workers

IDLE_TIMEOUT = "57P05"
SHUTDOWN = "57P01"
_BACKLOG = 512
_LINGER = 2.0
"""Seconds for a client to take its last bytes."""

_log = logging.getLogger(__name__)


Forward = Callable[[m.CancelRequest], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Peers:
    """What a worker among several has to do with the others.

    `number` is its own; `forward` takes the CancelRequests that are for another one, `ask` asks of the sessions that a
    user has in all of them, `left` is called for each client that has gone.
    """

    number: int
    places: Places
    forward: Forward
    ask: Ask
    left: Callable[[], None]


class Server:
    """A proxy: `start` it to listen, or `adopt` clients that another process let in; `stop` it in the same event loop.

    `address` tells where it listens.
    """

    def __init__(
        self,
        session_factory: SessionFactory,
        users: Users,
        listen: tuple[str, int],
        tls: Certificate | None = None,
        limits: Limits | None = None,
        peers: Peers | None = None,
    ) -> None:
        self._session_factory = session_factory
        self._users = users
        self._listen = listen
        self.certificate = tls
        """What new connections are encrypted with; may be replaced at any time."""
        self._limits = Limits() if limits is None else limits
        self._workers = Workers(self._limits.workers)
        self.roster = Roster(self._workers.cancel)
        """The sessions that are open here."""
        self._keys = CancelKeys(0 if peers is None else peers.number)
        self._peers = peers
        self._places: Places = Alone(self._limits) if peers is None else peers.places
        self._pending = Seats(self._limits.pending)
        self._clients: set[asyncio.Task[None]] = set()
        self._by_user: dict[str, set[asyncio.Task[None]]] = {}
        self._socket: asyncio.Server | None = None

    @property
    def address(self) -> tuple[str, int]:
        """Host and port, the real one if port 0 was asked for."""
        assert self._socket is not None
        host, port = self._socket.sockets[0].getsockname()[:2]
        return host, port

    async def start(self) -> None:
        """Listens. Raises OSError if the address cannot be had."""
        host, port = self._listen
        make_channel = partial(Channel, self._accept)
        self._socket = await asyncio.get_running_loop().create_server(make_channel, host, port, backlog=_BACKLOG)

    def adopt(self, client: socket.socket) -> None:
        """Serves a client that has been accepted elsewhere."""
        opening = asyncio.get_running_loop().create_task(self._open(client))
        self._clients.add(opening)
        opening.add_done_callback(self._clients.discard)

    async def _open(self, client: socket.socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(partial(Channel, self._accept), client)
        except OSError:
            client.close()
            self._gone()

    async def stop(self) -> None:
        """Says goodbye to all clients, cancels what runs, and returns when all have been let go."""
        if self._socket is not None:
            self._socket.close()
        while self._clients:
            for client in self._clients:
                client.cancel()
            await asyncio.gather(*self._clients, return_exceptions=True)
        self._workers.stop()
        if self._socket is not None:
            await self._socket.wait_closed()

    def end(self, user: str) -> int:
        """Ends a user's sessions at once, cancelling what runs; how many there were."""
        sessions = self._by_user.get(user, set())
        for session in sessions:
            session.cancel("the policy no longer allows this session")
        return len(sessions)

    def _accept(self, channel: Channel) -> None:
        client = asyncio.get_running_loop().create_task(self._serve(channel))
        self._clients.add(client)
        client.add_done_callback(self._clients.discard)
        client.add_done_callback(lambda _: self._gone())

    def _gone(self) -> None:
        if self._peers is not None:
            self._peers.left()

    async def _serve(self, channel: Channel) -> None:
        """One connection, from its first byte to its last, and every way in which it can end."""
        connection = Connection(self._limits.max_message)
        try:
            await self._converse(channel, connection)
        except GoneError:
            pass
        except Rejected as error:
            _last_words(channel, connection, error)
        except asyncio.CancelledError as cancelled:
            why = cancelled.args[0] if cancelled.args else "shutdown"
            _last_words(channel, connection, Rejected(f"terminating connection: {why}", sqlstate=SHUTDOWN))
        except Exception as error:
            _last_words(channel, connection, _incident(error))
        finally:
            await _part(channel)

    async def _converse(self, channel: Channel, connection: Connection) -> None:
        login = Login(channel, connection, self.certificate)
        with self._pending.seat():
            packet = await login.open(self._limits)
            if isinstance(packet, m.CancelRequest):
                await self._cancel(packet)
                return
            with self._refused(packet.get("user")):
                identity = await login.prove(packet, self._users, self._limits)
        with self._refused(identity.user):
            place = await self._places.enter(identity.user)
        try:
            with self._known(identity.user):
                with self._refused(identity.user):
                    if identity.user not in self._users():
                        raise Rejected("the policy no longer allows this session", sqlstate=SHUTDOWN)
                with trail.session(identity.user):
                    await self._session(channel, connection, identity)
        finally:
            self._places.leave(place)

    @contextmanager
    def _refused(self, user: str | None) -> Iterator[None]:
        """The audit trail's line of a login that fails in the block; a name that nobody has is not repeated there."""
        try:
            yield
        except Rejected as error:
            trail.login_refused(user if user in self._users() else None, error.sqlstate)
            raise

    @contextmanager
    def _known(self, user: str) -> Iterator[None]:
        """For as long as the block runs, this task is one of the user's sessions."""
        task = cast("asyncio.Task[None]", asyncio.current_task())
        mine = self._by_user.setdefault(user, set())
        mine.add(task)
        try:
            yield
        finally:
            mine.discard(task)
            if not mine:
                self._by_user.pop(user, None)

    async def _cancel(self, request: m.CancelRequest) -> None:
        if self._peers is not None and number_of(request.pid) != self._peers.number:
            await self._peers.forward(request)
        else:
            await self.cancel(request)

    async def cancel(self, request: m.CancelRequest) -> None:
        """Cancels what the session with these keys does; with wrong keys, nothing."""
        session = self._keys.find(request)
        if session is not None:
            await self._workers.cancel(session)

    async def _session(self, channel: Channel, connection: Connection, identity: Identity) -> None:
        mine = Mine(self.roster, identity.user, None if self._peers is None else self._peers.ask)
        make = partial(self._session_factory, identity.user, identity.database, identity.parameters, mine)
        session = await self._workers.open(make)
        keys = self._keys.open(session)
        try:
            greeting = (*session.greeting(), keys, m.ReadyForQuery("I"))
            channel.write(b"".join(map(connection.send, greeting)))
            inbox = Inbox(connection, session)
            task = cast("asyncio.Task[None]", asyncio.current_task())
            with self.roster.entered(identity.user, session, task):
                while (event := await self._next(channel, inbox)) is not None:
                    await self._answer(channel, Turn(connection, session, event), session, identity.user)
                    inbox.answered()
        finally:
            self._keys.revoke(keys)
            self._workers.close_soon(session)

    async def _next(self, channel: Channel, inbox: Inbox) -> m.SessionMessage | None:
        """The next message; None at the end of the conversation. Raises GoneError, and Rejected when time is up."""
        connection, clock = inbox.connection, asyncio.get_running_loop().time
        deadline, begun = clock() + self._limits.idle, False
        channel.known = inbox.known
        try:
            while (event := connection.next_event()) is None and not connection.closed:
                if connection.in_message and not begun:
                    deadline, begun = clock() + self._limits.message, True
                inbox.receive(await self._data(channel, deadline, begun))
        finally:
            channel.known = None
        return None if isinstance(event, m.Terminate) else cast(m.SessionMessage | None, event)

    async def _data(self, channel: Channel, deadline: float, begun: bool) -> bytes:
        """What comes next; answers that were known meanwhile put the deadline of a client that is silent off."""
        while True:
            try:
                return await _read(channel, deadline)
            except Rejected:
                active = channel.answered + self._limits.idle
                if begun or active <= deadline:
                    raise
                deadline = active

    async def _answer(self, channel: Channel, turn: Turn, session: SessionLike, user: str) -> None:
        """Runs a turn and sends what it gives; a client that leaves cancels it."""

        def abandon() -> None:
            turn.abandon()
            self._workers.cancel_soon(session)

        channel.when_lost = abandon
        try:
            while not turn.finished:
                channel.write(await self._workers.run(partial(turn.portion, self._limits.portion), user))
                await self._written(channel, turn)
        except asyncio.CancelledError:
            abandon()
            raise
        finally:
            channel.when_lost = None

    async def _written(self, channel: Channel, turn: Turn) -> None:
        """Waits for the client to read. Raises GoneError if it does not."""
        if not channel.full:
            return
        try:
            async with asyncio.timeout(self._limits.write):
                await channel.drain()
        except (TimeoutError, ConnectionResetError):
            turn.close()
            channel.abort()
            raise GoneError from None


async def _read(channel: Channel, deadline: float) -> bytes:
    try:
        async with asyncio.timeout_at(deadline):
            data = await channel.read()
    except TimeoutError:
        raise Rejected("terminating connection due to idle-session timeout", sqlstate=IDLE_TIMEOUT) from None
    if not data:
        raise GoneError
    return data


def _last_words(channel: Channel, connection: Connection, error: DpsqlError) -> None:
    channel.write(connection.send(m.error_response(error, "FATAL")))


async def _part(channel: Channel) -> None:
    """Closes; a client that does not take its last bytes is cut off."""
    channel.close()
    try:
        async with asyncio.timeout(_LINGER):
            await channel.lost.wait()
    except TimeoutError:
        channel.abort()


def _incident(error: Exception) -> Failed:
    """Logs where it happened, never what the exception says: its text may quote data."""
    failed = error if isinstance(error, Failed) else Failed(type(error).__name__)
    trace = "".join(traceback.format_tb(error.__traceback__))
    _log.error("incident %s: %s\n%s", failed.incident, failed.cause, trace)
    return failed
