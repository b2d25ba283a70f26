"""Statements that almost make sense: refused with a reason or answered, in a second, and never debited for nothing.

The same seeds give the same statements. `FUZZ` in the environment asks for more of them, from `FUZZ_SEED` on.
"""

from __future__ import annotations

import os
import random
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import golden_cases as golden
import pytest
from statement_mutations import Mutator, client_statements

from dpsql.compiler import compile_statement, fuel, kinds
from dpsql.compiler.emit import DIALECTS, emit, emit_histogram
from dpsql.compiler.statements import split
from dpsql.engine import Engine, open_engine
from dpsql.errors import Rejected
from dpsql.ledger import init_ledger
from dpsql.pgwire import messages as m
from dpsql.pgwire.backend import messages
from dpsql.policy.load import parse as load
from dpsql.policy.schema import Schema
from dpsql.session.session import Session
from dpsql.types import Reservation

TESTS = Path(__file__).parent.parent
MORE, SEED = int(os.environ.get("FUZZ", "0")), int(os.environ.get("FUZZ_SEED", "1"))


def corpora() -> dict[str, tuple[str, ...]]:
    """The golden statements by policy; the first policy's take those of clients with them."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for file in golden.files():
        for case in file.cases:
            found[case.policy].append(golden.terms(case)[1])
    first = next(iter(found))
    for path in (TESTS / "session/client_queries.sql", TESTS / "superset/statements.sql"):
        found[first] += client_statements(path.read_text(encoding="utf-8"))
    return {policy: tuple(statements) for policy, statements in found.items()}


def mutated(count: int, seed: int) -> Iterator[tuple[str, str]]:
    """(policy, statement), all policies alike."""
    known = corpora()
    for number, (policy, statements) in enumerate(known.items()):
        made = Mutator(statements, random.Random(f"{seed}/{number}"))
        for text in made.statements(count // len(known)):
            yield policy, text


def compiled(text: str, schema: Schema) -> None:
    """All of a text, up to the SQL of every backend. Raises Rejected, or what must not be raised."""
    with fuel.metered():
        for statement in split(text):
            query = getattr(statement, "query", statement)
            if isinstance(query, kinds.Select):
                made = compile_statement(query.text, schema, golden.terms(CASE)[0], now=golden.NOW)
                for dialect in DIALECTS.values():
                    for release in made.releases:
                        if release.has_cells:
                            emit(release, dialect, {})
                        for histogram in release.histograms:
                            emit_histogram(release, histogram, dialect, {})


CASE = golden.files()[0].cases[0]


def fault(text: str, schema: Schema) -> str | None:
    """What is wrong with how a text ends, if anything is."""
    start = time.process_time()
    try:
        compiled(text, schema)
    except Rejected as error:
        if not re.fullmatch("[0-9A-Z]{5}", error.sqlstate) or error.sqlstate in ("58000", "XX000"):
            return error.sqlstate
    except RecursionError:
        pass  # `prepare` refuses what is nested too deeply for a stage
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    took = time.process_time() - start
    return f"{took:.1f} s" if took > 3 else None


def faults(count: int, seed: int) -> list[tuple[str, str]]:
    made = ((fault(text, golden.schema_of(p, golden.duckdb_backend())), text) for p, text in mutated(count, seed))
    return [(wrong, text) for wrong, text in made if wrong is not None]


def test_compiling_ends_in_a_plan_or_a_reason() -> None:
    assert faults(MORE or 2_500, SEED) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 104))
def test_compiling_ends_in_a_plan_or_a_reason_many_times(seed: int) -> None:
    assert faults(25_000, seed) == []


KINDS = (
    "SELECT DIV(age) FROM people",
    "SELECT initcap() AS city, md5(city) AS code, COUNT(*) FROM people GROUP BY 1, 2",
    "SELECT COUNT(*) FROM people WHERE age IN ",
    "SELECT AVG(CASE WHEN age > 50 THEN 1 ELSE 0 END IN ) AS share FROM people",
    "SELECT SUM(ORDER BY age) FROM people",
    "SELECT REGR_SLOPE(age, ) FROM people",
    "SELECT COUNT(*) FROM people WHERE joined > date() - interval '1 hour'",
    "SELECT ANON_SUM(age CLAMPED BETWEEN 0 AND ) FROM people",
    "SELECT ANON_SUM(age CLAMPED BETWEEN  AND 10) FROM people",
    "SELECT .5., COUNT(*) FROM people",
    "SELECT APPROX_QUANTILES(age, 0) FROM people",
    "SELECT FORMAT_DATE('\u00e4 %Y', joined), COUNT(*) FROM people GROUP BY 1",
    "SELECT DATE(joined), COUNT(*) FROM people GROUP BY DATE()",
    "SELECT COUNT(*) FROM people WHERE city <> ALL ()",
    "SELECT COUNT(*) FROM people WHERE joined > TO_TIMESTAMP('2020', 'YYYY YYYY')",
    "SELECT COUNT(*) FROM people WHERE TRY_CAST(note AS numeric((SELECT 1))) > 1",
    "SELECT COUNT(*) FROM people WHERE city = ANY ('\ud800')",
)


@pytest.mark.parametrize("text", KINDS)
def test_half_a_call_is_a_syntax_error(text: str) -> None:
    with pytest.raises(Rejected) as refusal:
        compiled(text, golden.schema_of(CASE.policy, golden.duckdb_backend()))
    assert refusal.value.sqlstate in ("42601", "42883", "0A000", "22007", "22023")


# --- through the engine -----------------------------------------------------------------------------------------------


@dataclass
class World:
    """A session over the golden rows, and how many reservations its last message made."""

    engine: Engine
    session: Session
    reserved: list[Reservation] = field(default_factory=list)

    def ask(self, text: str) -> list[m.BackendMessage]:
        self.reserved.clear()
        told = list(messages(self.session.handle(m.Query(text))))
        if told[-1] != m.ReadyForQuery("I"):
            list(self.session.handle(m.Query("ROLLBACK")))
        return told

    def error(self, text: str) -> tuple[str, int]:
        """The SQLSTATE that a text ends in, and the debits it made; one statement."""
        errors = [each.sqlstate for each in self.ask(text) if isinstance(each, m.ErrorResponse)]
        return errors[0] if errors else "", len(self.reserved)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("fuzz")
    with closing(duckdb.connect(str(folder / "golden.duckdb"))) as connection:
        connection.execute((golden.HERE / "data.sql").read_text(encoding="utf-8"))
    text = re.sub(r"budget: \{epsilon: [^}]*\}", "budget: {epsilon: 4000, delta: 1e-6}", POLICY)
    text = text.replace("duckdb:golden.duckdb", f"duckdb:{folder}/golden.duckdb")
    policy = load(f"{text}\nledger: sqlite:{folder}/golden.ledger\n{USERS}", folder / "golden.yaml")
    init_ledger(policy.ledger, policy.dataset)
    with closing(open_engine(policy)) as engine, closing(Session(engine, "ann")) as session:
        made = World(engine, session)
        watch(engine, made.reserved)
        yield made


POLICY = max(corpora(), key=lambda policy: len(corpora()[policy]))
USERS = """
roles: {analyst: {budget: {epsilon: 3000, delta: 1e-7}, epsilon: 1, max_epsilon: 3000}}
users: {ann: {role: analyst}}
"""


def watch(engine: Engine, reserved: list[Reservation]) -> None:
    """Every reservation that the ledger gives is noted."""
    ledger: Any = engine.ledger
    real = ledger.reserve

    def reserve(*arguments: Any, **more: Any) -> Any:
        given = real(*arguments, **more)
        reserved.extend(each for each in given if isinstance(each, Reservation))
        return given

    ledger.reserve = reserve


DATA_DEPENDENT = ("22003", "22012", "21000")
"""What only the released numbers may decide, as a division by a count."""


def debited_for_nothing(world: World, count: int, seed: int) -> list[tuple[str, str]]:
    made = Mutator(corpora()[POLICY], random.Random(seed))
    wrong = []
    for text in made.statements(count):
        if ";" in text or not text.isprintable():
            continue
        error, debits = world.error(text)
        if error == "58000" or (error and debits and error not in DATA_DEPENDENT):
            wrong.append((error, text))
    return wrong


def test_no_debit_without_an_answer(world: World) -> None:
    assert debited_for_nothing(world, MORE or 200, SEED) == []


@pytest.mark.slow
def test_no_debit_without_an_answer_many_times(world: World) -> None:
    assert debited_for_nothing(world, 10_000, 7) == []


CERTAIN = {
    "SELECT COUNT(*) FROM people WHERE age > $1": "42P02",
    "EXPLAIN SELECT COUNT(*) FROM people WHERE age > $1": "42P02",
    "SELECT COUNT(*), $1 FROM people": "42P02",
    "SELECT COUNT(*), U&'\\D800' FROM people": "42601",
    "SELECT COUNT(*), U&'\\DC00\\D800' FROM people": "42601",
    "SELECT COUNT(*), U&'\\0000' FROM people": "42601",
    "SELECT .5.": "42601",
    "SELECT COUNT(*), 1 / 0 FROM people": "22012",
    "SELECT COUNT(*), ('a' || 'b')::int FROM people": "22P02",
    "SELECT COUNT(*), ('a' || 'b')::interval FROM people": "22007",
    "SELECT INTERVAL '1 day' AS what, COUNT(*) FROM people UNION ALL SELECT 'orders', COUNT(*) FROM people": "22007",
}


@pytest.mark.parametrize("text", CERTAIN)
def test_what_the_text_makes_fail_is_not_debited(world: World, text: str) -> None:
    assert world.error(text) == (CERTAIN[text], 0)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT city, COUNT(*) / NULLIF(COUNT(*), 0), COALESCE(city, 'none') FROM people GROUP BY 1",
        "SELECT 10 / (COUNT(*) - 1) FROM (SELECT city, COUNT(*) AS n FROM people GROUP BY city) q",
        "SELECT COALESCE(age, 0) / (age + 1), COUNT(*) FROM people WHERE age < 20 GROUP BY age",
        "SELECT COUNT(*), U&'\\D83D\\DE00' FROM people",
    ],
)
def test_what_may_succeed_is_tried_on_the_true_rows(world: World, text: str) -> None:
    assert world.error(text)[0] == ""


def _whole_as_before(_tree: object) -> None:
    """Calls without their arguments were let through."""


def _unicode_as_before(text: str) -> str:
    return re.sub(r"\\([0-9A-F]{4})", lambda found: chr(int(found[1], 16)), text)


Change = tuple[str, str, Callable[..., object], str]
MUTANTS: dict[str, Change] = {
    "parameters are NULL": (
        "dpsql.engine",
        "require_given",
        lambda *_: None,
        "SELECT COUNT(*) FROM people WHERE age > $1 + 1",
    ),
    "no trial": (
        "dpsql.prepare",
        "tried",
        lambda *_: None,
        "SELECT COUNT(*), ('a' || 'c')::interval FROM people WHERE age > 41",
    ),
    "half calls": ("dpsql.compiler.parse", "_check_whole", _whole_as_before, "SELECT COUNT(*), .6. FROM people"),
    "lone surrogates": (
        "dpsql.compiler.grammar",
        "_unicode",
        _unicode_as_before,
        "SELECT COUNT(*), U&'\\D801' FROM people WHERE age > 42",
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_noticed(world: World, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Without each, the statement is debited for nothing, or for what it did not say, or ends as a fault."""
    module, attribute, change, text = MUTANTS[name]
    state, debits = world.error(text)
    assert (state[:2] in ("22", "42"), debits) == (True, 0)
    monkeypatch.setattr(sys.modules[module], attribute, change)
    state, debits = world.error(text + " ")
    assert debits == 1 or state == "58000"
