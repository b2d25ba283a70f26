"""Compiling ends: by steps that hang on the text alone, by a deadline, by a cancel; and users take turns at it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from decimal import Decimal

import pytest
from compiler_mini import mini_engine

from dpsql.compiler import Terms, compile_statement, formats, fuel, keys
from dpsql.compiler.bind import text_values
from dpsql.compiler.split import query
from dpsql.engine import Engine
from dpsql.errors import Rejected
from dpsql.session.ports import CancelToken
from dpsql.turns import Turns
from dpsql.types import Settings

TERMS = Terms(Decimal(1), Decimal("1e-7"))
SCHEMA = (
    "CREATE TABLE people(uid INTEGER, age INTEGER, born DATE); CREATE TABLE lists AS SELECT range AS x FROM range(5)"
)
POLICY = """
  people:
    unit: uid
    max_rows: 1
    columns:
      age: {type: integer, lower: 0, upper: 9999}
      born: {type: date, lower: 1990-01-01, upper: 2014-12-31}
  lists: {public: true, key: x}
"""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with mini_engine(tmp_path_factory.mktemp("fuel"), SCHEMA, POLICY) as made:
        yield made


def joined(count: int, how: str) -> str:
    names = [f"people p{i}" for i in range(count)]
    if how == "comma":
        equal = " AND ".join(f"p{i}.uid = p0.uid" for i in range(1, count))
        return f"SELECT COUNT(*) FROM {', '.join(names)} WHERE {equal}"
    if how == "public":
        return "SELECT * FROM lists l0" + "".join(f" NATURAL JOIN lists l{i}" for i in range(1, count))
    tail = {"natural": "", "using": " USING (uid)", "on": " ON p{0}.uid = p{1}.uid"}[how]
    word = "NATURAL JOIN" if how == "natural" else "JOIN"
    joins = (f" {word} {name}{tail.format(i, i - 1)}" for i, name in enumerate(names) if i)
    return f"SELECT COUNT(*) FROM people p0{''.join(joins)}"


def grouped(key: str, count: int) -> str:
    return f"SELECT COUNT(*) FROM people GROUP BY {', '.join(key.format(i) for i in range(1, count))}"


def filtered(condition: str, count: int) -> str:
    return f"SELECT COUNT(*) FROM people WHERE {' OR '.join(condition.format(i) for i in range(count))}"


PRODUCTS = {
    "a format": f"SELECT to_char(born, '{'YYYY-MM-DD ' * 4_500}'), COUNT(*) FROM people GROUP BY 1",
    "a padded format": f"SELECT to_char(born, '{'FMDay ' * 9_000}'), COUNT(*) FROM people GROUP BY 1",
    "formats": filtered("to_char(born, 'DDD {0}') = '{0}'", 300),
    "sums": grouped("age + {}", 150),
    "buckets": grouped("FLOOR(age / {0}) * {0}", 400),
    "days": grouped("date_trunc('day', born) + INTERVAL '{} day'", 400),
    "texts": grouped("CAST(age + {} AS text) || 'x'", 400),
    "cased": filtered("upper(CAST(age AS text)) = '{}'", 400),
}


@pytest.mark.parametrize("text", PRODUCTS.values(), ids=PRODUCTS)
def test_products_of_text_and_domain_are_bounded(engine: Engine, text: str) -> None:
    """They took minutes. The limit is far above a second's work of this machine, whoever else is at work on it."""
    start = time.process_time()
    with suppress(Rejected):
        compile_statement(text, engine.schema, TERMS)
    assert time.process_time() - start < 4


@pytest.mark.parametrize("how", ["comma", "natural", "using", "on", "public"])
def test_joins_are_few_and_quick(engine: Engine, how: str) -> None:
    start = time.process_time()
    compile_statement(joined(64, how), engine.schema, TERMS)
    assert time.process_time() - start < 3
    with pytest.raises(Rejected) as refusal:
        compile_statement(joined(65, how), engine.schema, TERMS)
    assert (refusal.value.sqlstate, refusal.value.message) == ("54001", "FROM has more than 64 tables")
    with pytest.raises(Rejected):
        compile_statement(joined(384, how), engine.schema, TERMS)
    assert time.process_time() - start < 6


def _small(key: str) -> str:
    return f"SELECT {key}, COUNT(*) FROM people GROUP BY 1"


MUTANTS: dict[str, tuple[object, str, str]] = {
    "formats are free": (formats, "spend", _small(f"to_char(born, '{'YYYY-MM-DD ' * 3}')")),
    "texts are free": (text_values, "spend", _small("upper(lower(CAST(age AS text)))")),
    "keys are free": (keys, "spend", _small("age + 1")),
    "any number of tables": (query, "few", joined(65, "on")),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_noticed(engine: Engine, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Each place that works through a domain draws from the tank: without it, a statement passes that must not."""
    module, attribute, text = MUTANTS[name]
    monkeypatch.setattr(fuel, "MOST_STEPS", _steps(engine, text) - 1 if attribute == "spend" else fuel.MOST_STEPS)
    with pytest.raises(Rejected) as refusal:
        compile_statement(text, engine.schema, TERMS)
    assert refusal.value.sqlstate == "54001"
    monkeypatch.setattr(module, attribute, lambda _=1: None)
    compile_statement(text, engine.schema, TERMS)


def _steps(engine: Engine, text: str) -> int:
    with fuel.metered():
        compile_statement(text, engine.schema, TERMS)
        return fuel.spent()


# --- those who wait ---------------------------------------------------------------------------------------------------


@pytest.fixture
def endless(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> str:
    """A statement that would be compiled for minutes."""
    monkeypatch.setattr(fuel, "MOST_STEPS", 10**12)
    return f"SELECT to_char(born, '{'YYYY-MM-DD ' * 4_500} {time.monotonic()}'), COUNT(*) FROM people GROUP BY 1"


Ask = Callable[[Engine, str, Settings, CancelToken], object]
ASKED: dict[str, Ask] = {
    "answer": lambda engine, text, settings, cancel: engine.answer("ann", text, 0, settings, (), cancel),
    "explain": lambda engine, text, settings, cancel: engine.explain("ann", text, 0, settings, (), "text", cancel),
    "describe": lambda engine, text, settings, cancel: engine.describe("ann", text, 0, settings, (), cancel),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_statement_timeout_ends_compiling(engine: Engine, endless: str, ask: Ask) -> None:
    start = time.monotonic()
    with pytest.raises(Rejected, match="statement timeout") as refusal:
        ask(engine, endless, Settings(statement_timeout=0.2), CancelToken())
    assert refusal.value.sqlstate == "57014"
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_a_cancel_ends_compiling(engine: Engine, endless: str, ask: Ask) -> None:
    cancel = CancelToken()
    timer = threading.Timer(0.2, cancel.cancel)
    start = time.monotonic()
    timer.start()
    with pytest.raises(Rejected, match="user request"):
        ask(engine, endless, Settings(), cancel)
    timer.join()
    assert time.monotonic() - start < 5


def test_mutant_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the tank does not ask whether to go on, nothing ends before it is empty."""
    stopped = Rejected("stopped")

    def stop() -> None:
        raise stopped

    def work() -> None:
        with fuel.metered(stop):
            for _ in range(2_000):
                fuel.spend()

    with pytest.raises(Rejected, match="stopped"):
        work()
    monkeypatch.setattr(fuel.Tank, "look", lambda tank: None)
    work()


def test_others_do_not_wait_behind_a_pile(engine: Engine, endless: str) -> None:
    """Thirty of one user's statements wait; what another asks is compiled at once, known or not."""
    cancel = CancelToken()

    def pile() -> None:
        with pytest.raises(Rejected):
            engine.explain("ann", endless, 0, Settings(), (), "text", cancel)

    threads = [threading.Thread(target=pile) for _ in range(30)]
    for thread in threads:
        thread.start()
    try:
        start = time.monotonic()
        engine.explain(
            "bob", f"SELECT COUNT(*) FROM people WHERE age > {time.time_ns() % 9000}", 0, Settings(), (), "text", cancel
        )
        assert time.monotonic() - start < 3
    finally:
        cancel.cancel()
        for thread in threads:
            thread.join(10)


def served(turns: Turns) -> list[str]:
    """In what order users get their turns who came as a, a, a, b, c, a while another one had the only turn."""
    order: list[str] = []
    threads = []

    def take(user: str) -> None:
        with turns.turn(user, lambda: None):
            order.append(user)

    with turns.turn("first", lambda: None):
        for user in ("a", "a", "a", "b", "c", "a"):
            threads.append(threading.Thread(target=take, args=(user,)))
            threads[-1].start()
            while sum(map(len, turns._waiting.values())) < len(threads):
                time.sleep(0.001)
    for thread in threads:
        thread.join()
    return order


def test_turns_go_round() -> None:
    assert served(Turns(1)) == ["a", "b", "c", "a", "a", "a"]


def test_mutant_first_come_first_served() -> None:
    """Kept in one queue for all, those who came early have all turns before others have one."""

    class OneQueue(Turns):
        def _wait(self, user: str, check: Callable[[], None]) -> None:
            super()._wait("everybody", check)
            self._busy.remove("everybody")
            self._busy.add(user)

    assert served(OneQueue(1)) == ["a", "a", "a", "b", "c", "a"]


def test_a_user_has_one_turn_at_a_time() -> None:
    turns, inside = Turns(2), threading.Event()

    def second() -> None:
        with turns.turn("a", lambda: None):
            inside.set()

    with turns.turn("a", lambda: None):
        thread = threading.Thread(target=second)
        thread.start()
        with turns.turn("b", lambda: None):
            assert not inside.wait(0.3)
    thread.join()
    assert inside.is_set()
    assert not turns._waiting


def test_who_gives_up_leaves_the_queue() -> None:
    turns = Turns(1)

    def impatient() -> None:
        raise Rejected("gone")

    with turns.turn("a", lambda: None):
        with pytest.raises(Rejected, match="gone"), turns.turn("b", impatient):
            raise AssertionError
        assert not turns._waiting
    with turns.turn("b", impatient):
        pass
