"""Replies given again: which turns are kept, that they are the same bytes, and what makes them forgotten."""

from __future__ import annotations

import pytest
from session_fakes import FakeEngine

from dpsql.pgwire import messages as m
from dpsql.pgwire.encode import encode
from dpsql.session.memory import MAX_REPLY
from dpsql.session.session import Session

ASKED = b"the bytes of the turn"


class Asking:
    """A session that is asked turns as the server does it."""

    def __init__(self) -> None:
        self.engine = FakeEngine()
        self.session = Session(self.engine, "alice")

    def __del__(self) -> None:
        self.session.close()

    def turn(self, *events: m.SessionMessage, asked: bytes = ASKED) -> bytes:
        sent = b"".join(encode(reply) for event in events for reply in self.session.handle(event))
        self.session.remember(asked)
        return sent

    def query(self, text: str, asked: bytes = ASKED) -> bytes:
        return self.turn(m.Query(text), asked=asked)


def extended(text: str, name: str = "") -> tuple[m.SessionMessage, ...]:
    return (m.Parse(name, text, ()), *bound(name))


def bound(name: str) -> tuple[m.SessionMessage, ...]:
    return (m.Bind("", name, (), (), (1,)), m.Describe("P", ""), m.Execute("", 0), m.Sync())


def test_a_query_is_given_again() -> None:
    asking = Asking()
    sent = asking.query("SELECT known FROM t")
    again = asking.session.recall(ASKED)
    assert again is not None
    assert again.endswith(sent[-20:])
    assert b"replay" in again
    assert b"price 1" not in again
    assert len(asking.engine.calls) == 1
    assert asking.engine.recalls == ["SELECT known FROM t"]


def test_extended_turns_are_given_again_with_their_unnamed_statement() -> None:
    asking = Asking()
    asking.turn(*extended("SELECT known FROM t"))
    asking.query("SELECT fresh FROM t", asked=b"other")
    assert asking.session.recall(ASKED) is not None
    assert asking.turn(*bound("")).startswith(encode(m.BindComplete()))
    assert [text for text, _, _ in asking.engine.calls] == [
        "SELECT known FROM t",
        "SELECT fresh FROM t",
        "SELECT known FROM t",
    ]


def test_named_statements_are_given_again_until_one_changes() -> None:
    asking = Asking()
    asking.turn(m.Parse("s", "SELECT known FROM t", ()), m.Sync(), asked=b"parse")
    assert asking.session.recall(b"parse") is None
    asking.turn(*bound("s"))
    assert asking.session.recall(ASKED) is not None
    asking.turn(m.Close("S", "s"), m.Sync(), asked=b"close")
    assert asking.session.recall(ASKED) is None


@pytest.mark.parametrize("text", ["SET dpsql.epsilon = 0.5", "SET dpsql.notices = off", "BEGIN", "DISCARD ALL"])
def test_commands_make_all_forgotten(text: str) -> None:
    asking = Asking()
    asking.query("SELECT known FROM t")
    asking.query(text, asked=b"command")
    assert asking.session.recall(ASKED) is None
    assert asking.session.recall(b"command") is None


@pytest.mark.parametrize(
    "text",
    [
        "SELECT fresh FROM t",
        "SELECT missing FROM t",
        "SELECT known FROM t; SELECT known FROM t",
        "SELECT version()",
        "COPY (SELECT known FROM t) TO STDOUT",
        "EXPLAIN SELECT known FROM t",
        "SHOW TimeZone",
        "",
    ],
)
def test_what_is_not_kept(text: str) -> None:
    asking = Asking()
    asking.query(text)
    assert asking.session.recall(ASKED) is None


def test_nothing_is_kept_inside_of_a_transaction() -> None:
    asking = Asking()
    asking.query("SELECT known FROM t")
    asking.query("SELECT known FROM t", asked=b"")
    asking.query("BEGIN", asked=b"begin")
    asking.query("SELECT known FROM t")
    assert asking.session.recall(ASKED) is None
    asking.query("ROLLBACK", asked=b"rollback")
    assert asking.session.recall(ASKED) is None


def test_turns_that_came_in_pieces_or_together_are_not_kept() -> None:
    asking = Asking()
    first, *rest = extended("SELECT known FROM t")
    asking.turn(first, asked=b"piece")
    asking.turn(*rest)
    assert asking.session.recall(ASKED) is None
    asking.turn(m.Query("SELECT known FROM t"), m.Query("SELECT known FROM t"))
    assert asking.session.recall(ASKED) is None
    asking.query("SELECT known FROM t", asked=b"")
    assert asking.session.recall(b"") is None


def test_portals_with_row_limits_and_borrowed_statements_are_not_kept() -> None:
    asking = Asking()
    asking.turn(m.Parse("", "SELECT known FROM t", ()), m.Bind("", "", (), (), ()), m.Execute("", 1), m.Sync())
    assert asking.session.recall(ASKED) is None
    asking.turn(m.Parse("", "SELECT known FROM t", ()), m.Sync(), asked=b"parse")
    asking.turn(*bound(""))
    assert asking.session.recall(ASKED) is None


def test_another_policy_ends_it() -> None:
    asking = Asking()
    asking.query("SELECT known FROM t")
    asking.engine.serial = 2
    assert asking.session.recall(ASKED) is None


def test_what_is_kept_is_bounded() -> None:
    asking = Asking()
    for number in range(200):
        asking.query("SELECT known FROM t", asked=b"%d" % number)
    assert sum(asking.session.recall(b"%d" % number) is not None for number in range(200)) == 64
    big = Asking()
    big.engine.rows = big.engine.rows * 20_000
    big.query("SELECT known FROM t")
    assert big.session.recall(ASKED) is None


def test_a_long_answer_is_not_gathered() -> None:
    """What comes after the limit is neither held nor encoded a second time: the event loop would stand still."""
    asking = Asking()
    asking.engine.rows = tuple((f"city{n}" * 100, n) for n in range(1_000))
    sent = asking.query("SELECT known FROM t")
    assert len(sent) > MAX_REPLY
    assert asking.session._memory._turn.size < 2 * MAX_REPLY + 300_000
    assert not asking.session._memory._turn.lasting
    assert asking.session.recall(ASKED) is None
