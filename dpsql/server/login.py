"""From a new connection to a user who has proved who they are. Decides nothing that a password does not.

Plain text is for this machine only. The first packets may ask for encryption, or be a CancelRequest instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from dpsql.errors import Rejected
from dpsql.pgwire import auth
from dpsql.pgwire import messages as m
from dpsql.pgwire.connection import Connection
from dpsql.server.channel import Channel
from dpsql.server.limits import Limits
from dpsql.server.ports import Users
from dpsql.server.tls import Certificate, Tls

INVALID_AUTHORIZATION = "28000"

E = TypeVar("E", bound=m.FrontendMessage)


class GoneError(ConnectionError):
    """The client has left, or has been silent for too long."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who logged in, and what their StartupMessage asks for. `user` is proved."""

    user: str
    database: str
    parameters: tuple[tuple[str, str], ...]


class Login:
    """One connection's way in."""

    def __init__(self, channel: Channel, connection: Connection, certificate: Certificate | None) -> None:
        self._channel = channel
        self._connection = connection
        self._certificate = certificate
        self._tls: Tls | None = None

    async def open(self, limits: Limits) -> m.Startup | m.CancelRequest:
        """The packet that says what the client wants. Raises GoneError, and Rejected for a break of the protocol."""
        async with _deadline(limits.startup):
            while True:
                match packet := await self._event():
                    case m.SSLRequest():
                        await self._encrypt()
                    case m.GSSENCRequest():
                        self._feed()
                        self._channel.write(self._connection.send_encryption(False))
                    case m.Startup() | m.CancelRequest():
                        return packet
                    case _:
                        raise AssertionError(packet)

    async def prove(self, startup: m.Startup, users: Users, limits: Limits) -> Identity:
        """SCRAM. Raises GoneError, and Rejected: 28P01 for a failed proof, 28000 where none may be tried."""
        identity = self._claim(startup)
        self._negotiate(startup)
        try:
            async with _deadline(limits.auth):
                await self._scram(identity.user, users)
        except Rejected:
            # Guessing is slowed down by the wait, and by the place among the pending that it holds.
            await asyncio.sleep(limits.failure)
            raise
        return identity

    def _claim(self, startup: m.Startup) -> Identity:
        if self._tls is None and not self._channel.local:
            raise Rejected(
                "connections from other machines must be encrypted",
                sqlstate=INVALID_AUTHORIZATION,
                hint="Connect with sslmode=require.",
            )
        user = startup.get("user")
        if not user:
            raise Rejected("no user name specified in startup packet", sqlstate=INVALID_AUTHORIZATION)
        parameters = tuple(pair for pair in startup.parameters if not pair[0].startswith("_pq_."))
        return Identity(user, startup.get("database") or user, parameters)

    def _negotiate(self, startup: m.Startup) -> None:
        unknown = tuple(name for name, _ in startup.parameters if name.startswith("_pq_."))
        if startup.version[1] > 0 or unknown:
            self._send(m.NegotiateProtocolVersion(0, unknown))

    async def _scram(self, user: str, users: Users) -> None:
        verifiers = users()
        binding = None if self._tls is None else self._tls.binding
        scram = auth.Scram(user, verifiers.get(user), auth.mock_key(verifiers.values()), binding)
        self._send(scram.mechanisms)
        self._send(scram.challenge(await self._expect(m.SaslInitial)))
        self._send(scram.verdict(await self._expect(m.SaslResponse)))
        self._send(m.AuthenticationOk())

    async def _encrypt(self) -> None:
        """Answers an SSLRequest; see Channel.start_tls for why nothing is awaited in between."""
        self._feed()
        answer = self._connection.send_encryption(self._certificate is not None)
        if self._certificate is None:
            self._channel.write(answer)
            return
        self._tls = self._certificate.current()
        try:
            await self._channel.start_tls(answer, self._tls.context)
        except OSError:
            raise GoneError from None

    async def _expect(self, kind: type[E]) -> E:
        event = await self._event()
        assert isinstance(event, kind)
        return event

    async def _event(self) -> m.FrontendMessage:
        while (event := self._connection.next_event()) is None:
            data = await self._channel.read()
            if not data:
                raise GoneError
            self._connection.receive(data)
        return event

    def _feed(self) -> None:
        """Shows the connection all that has come in, so that it can judge bytes that came too early."""
        self._connection.receive(self._channel.take())

    def _send(self, message: m.BackendMessage) -> None:
        self._channel.write(self._connection.send(message))


@asynccontextmanager
async def _deadline(seconds: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise GoneError from None
