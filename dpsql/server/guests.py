"""How many clients may be in, in all and of one user: the count that all workers of a proxy share.

Decides who may come in. Where several processes serve, their parent counts, and a worker asks it about each login; what
a worker has let in is let go with it. It must never tell a client more than that there is no place.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import count
from typing import Final

from dpsql.errors import TOO_MANY_CONNECTIONS, Rejected
from dpsql.server.limits import Limits
from dpsql.server.link import Link

_PATIENCE: Final = 10.0
"""Seconds for the parent to answer: it does nothing else for long."""
_FULL: Final = "sorry, too many clients already"


Place = tuple[int, int]
"""A worker's number, and the number that it gave the place."""


class Guests:
    """Those who are in; used by one event loop's thread only."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._in: dict[Place, str] = {}
        self._by_user: Counter[str] = Counter()

    def admit(self, user: str, place: Place) -> None:
        """Raises Rejected 53300 if there is none left."""
        if len(self._in) >= self._limits.sessions:
            raise Rejected(_FULL, sqlstate=TOO_MANY_CONNECTIONS)
        if self._by_user[user] >= self._limits.user_sessions:
            raise Rejected(f'too many connections of user "{user}"', sqlstate=TOO_MANY_CONNECTIONS)
        self._in[place] = user
        self._by_user[user] += 1

    def leave(self, place: Place) -> None:
        """Frees a place, if anyone has it."""
        user = self._in.pop(place, None)
        if user is not None:
            self._by_user[user] -= 1

    def forget(self, worker: int) -> None:
        """Frees all places of a worker that is gone."""
        for place in [place for place in self._in if place[0] == worker]:
            self.leave(place)


class Alone:
    """The places of a process that serves by itself."""

    def __init__(self, limits: Limits) -> None:
        self._guests = Guests(limits)
        self._numbers = count()

    async def enter(self, user: str) -> int:
        number = next(self._numbers)
        self._guests.admit(user, (0, number))
        return number

    def leave(self, place: int) -> None:
        self._guests.leave((0, place))


class Invited:
    """The places of all workers, as one of them asks the parent for them."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._numbers = count()

    async def enter(self, user: str) -> int:
        number = next(self._numbers)
        try:
            answer = await self._link.ask({"do": "enter", "user": user, "place": number}, _PATIENCE)
        except (ConnectionError, TimeoutError):
            self.leave(number)
            raise Rejected(_FULL, sqlstate=TOO_MANY_CONNECTIONS) from None
        except asyncio.CancelledError:
            self.leave(number)
            raise
        if "refused" in answer:
            raise Rejected(str(answer["refused"]), sqlstate=TOO_MANY_CONNECTIONS)
        return number

    def leave(self, place: int) -> None:
        """The parent hears it after the question, so a place that nobody waited for is free again."""
        self._link.tell({"do": "leave", "place": place})
