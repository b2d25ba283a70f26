"""Places for clients: counted once for all workers, whoever leaves how."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import pytest

from dpsql.errors import Rejected
from dpsql.server.guests import Alone, Guests, Invited
from dpsql.server.limits import Limits
from dpsql.server.link import Body, open_link, refusal

FEW = Limits(sessions=3, user_sessions=2)


def refused(work: Callable[[], object]) -> str:
    with pytest.raises(Rejected) as caught:
        work()
    assert caught.value.sqlstate == "53300"
    return caught.value.message


def test_all_workers_share_the_places() -> None:
    guests = Guests(FEW)
    guests.admit("alice", (0, 0))
    guests.admit("alice", (1, 0))
    assert refused(lambda: guests.admit("alice", (1, 1))) == 'too many connections of user "alice"'
    guests.admit("bob", (1, 2))
    assert refused(lambda: guests.admit("carol", (0, 1))) == "sorry, too many clients already"
    for _ in range(2):
        guests.leave((1, 0))
    guests.admit("alice", (0, 2))
    refused(lambda: guests.admit("bob", (0, 3)))
    guests.forget(0)
    guests.admit("alice", (0, 0))
    guests.admit("bob", (0, 1))
    assert refused(lambda: guests.admit("bob", (0, 2))).startswith("sorry")


def test_a_process_that_serves_by_itself() -> None:
    async def work() -> None:
        places = Alone(FEW)
        first = await places.enter("alice")
        await places.enter("alice")
        with pytest.raises(Rejected):
            await places.enter("alice")
        places.leave(first)
        places.leave(first)
        await places.enter("alice")
        with pytest.raises(Rejected):
            await places.enter("alice")

    asyncio.run(work())


def test_a_worker_asks_its_parent() -> None:
    guests = Guests(FEW)

    async def answer(question: Body) -> Body:
        match question:
            case {"do": "enter", "user": "slow", "place": int(place)}:
                await asyncio.sleep(0.05)
                guests.admit("slow", (0, place))
            case {"do": "enter", "user": str(user), "place": int(place)}:
                try:
                    guests.admit(user, (0, place))
                except Rejected as error:
                    return refusal(error)
            case {"do": "leave", "place": int(place)}:
                await asyncio.sleep(0.1)
                guests.leave((0, place))
        return {}

    async def nothing(_: Body) -> Body:
        return {}

    async def work() -> None:
        here, there = socket.socketpair()
        parent, link = await open_link(there, answer), await open_link(here, nothing)
        places = Invited(link)
        taken = [await places.enter("alice") for _ in range(2)]
        with pytest.raises(Rejected) as caught:
            await places.enter("alice")
        assert (caught.value.sqlstate, caught.value.message) == ("53300", 'too many connections of user "alice"')
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await places.enter("slow")
        places.leave(taken[0])
        await asyncio.sleep(0.3)
        assert len(guests._in) == 1
        parent.close()
        await asyncio.sleep(0.05)
        with pytest.raises(Rejected):
            await places.enter("alice")
        link.close()

    asyncio.run(work())
