"""Every hint that says what to write is taken at its word: what it suggests compiles."""

from __future__ import annotations

import re
from collections.abc import Iterator

import golden_cases as golden
import pytest
from golden_cases import Case

from dpsql.compiler import compile_statement
from dpsql.compiler.bind import scope
from dpsql.errors import Rejected
from dpsql.policy.schema import Schema

MORE = (
    "SELECT COUNT(*) FROM items i JOIN orders o ON i.i_qty = o.o_total",
    "SELECT COUNT(*) FROM items a JOIN items b ON a.i_shop = b.i_shop",
    "SELECT COUNT(*) FROM people p JOIN visits v ON p.city = v.shop",
    "SELECT COUNT(*) FROM items i WHERE EXISTS (SELECT 1 FROM items j WHERE j.i_shop = i.i_shop)",
    "SELECT COUNT(*) FROM items WHERE EXISTS (SELECT 1 FROM items j WHERE j.i_shop = items.i_shop)",
    "SELECT COUNT(*) FROM orders o WHERE EXISTS (SELECT 1 FROM items j WHERE j.i_qty = o.o_total)",
    "SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM visits w WHERE w.shop = p.city)",
    "SELECT COUNT(*) FROM people p WHERE p.salary > (SELECT AVG(salary) FROM people q WHERE q.city = p.city)",
    "SELECT COUNT(*) FROM items i WHERE i_qty > (SELECT AVG(i_qty) FROM items j WHERE j.i_shop = i.i_shop)",
    "SELECT AVG((SELECT COUNT(*) FROM visits w WHERE w.uid = p.uid)) FROM people p",
    "SELECT COUNT(*) FROM people WHERE ages > 3",
    "SELECT COUNT(*) FROM peopel",
    "SELECT COUNT(*), salry FROM people",
    "SELECT age, COUNT(*) FROM people",
    "SELECT BOOL_OR(active) FROM people",
)
"""Beside the golden refusals."""


def schema_of(policy: str) -> Schema:
    return golden.schema_of(policy, golden.duckdb_backend())


def refused() -> Iterator[tuple[Case, str]]:
    """The golden refusals, and those of `MORE`, by their case (for its policy and settings) and statement."""
    files = golden.files()
    for file in files:
        for case in file.cases:
            if "```refused\n" in case.text:
                yield case, golden.terms(case)[1]
    case = next(file for file in files if file.path.stem == "joins").cases[0]
    yield from ((case, text) for text in MORE)


def error_of(case: Case, text: str) -> Rejected | None:
    try:
        compile_statement(text, schema_of(case.policy), golden.terms(case)[0], now=golden.NOW)
    except Rejected as error:
        return error
    return None


def suggested(text: str, error: Rejected) -> Iterator[str]:
    """The statements that a refusal's hint says to write; what has placeholders (`x`, `...`) is a form, not one."""
    hint = error.hint or ""
    for found in re.finditer(r"SELECT [^;]*? FROM \w+[^;]*?(?=;|$|\.$)", hint):
        if (
            "..." not in found[0]
            and "dpsql.columns" not in found[0]
            and "per_unit" not in found[0]
            and not hint[: found.start()].endswith("JOIN (")
        ):
            yield found[0]
    if (found_ := re.search(r"the same \w+: add (.+) to its WHERE\.$", hint)) is not None:
        word = "AND" if " WHERE " in text[text.rindex("SELECT ") :] else "WHERE"
        yield re.sub(r"\)(?=[^)]*$)", f" {word} {found_[1]})", text)
    if (found_ := re.search(r"to the join condition, as in (.+)\.$", hint)) is not None and " ON " in text:
        yield text.replace(" ON ", f" ON {found_[1]} AND ", 1)
    if (found_ := re.search(r"(?:Release it once and join it|join that): (JOIN \(.+)$", hint)) is not None:
        first = re.search(r" FROM (\w+ (?:AS )?(?!WHERE)\w+)(?= WHERE|$| GROUP| JOIN)", _outside(text))
        if first is not None:
            yield f"SELECT COUNT(*) FROM {first[1]} {found_[1]}"
    if (found_ := re.search(r'Perhaps you meant "(\w+)"', hint)) is not None and error.position is not None:
        at = error.position - 1
        yield text[:at] + re.sub(r"^(\w+\.)?\"?\w+\"?", lambda m: (m[1] or "") + found_[1], text[at:])


def _outside(text: str) -> str:
    """The statement without what stands in brackets."""
    while (shorter := re.sub(r"\([^()]*\)", "", text)) != text:
        text = shorter
    return text


def broken() -> list[tuple[str, str, str]]:
    """(statement, suggestion, what it meets) of all suggestions that are no way on."""
    found = []
    for case, text in refused():
        error = error_of(case, text)
        for better in suggested(text, error) if error is not None else ():
            met = error_of(case, better)
            named = 'meant "' in (error.hint or "") if error is not None else False
            if met is not None and (not named or met.message == (error.message if error else "")):
                found.append((text, better, met.message))
    return found


def test_every_suggestion_compiles() -> None:
    assert broken() == []


def test_enough_hints_are_tried() -> None:
    tried = [better for case, text in refused() if (e := error_of(case, text)) for better in suggested(text, e)]
    assert len(tried) >= 25


def hint_of(text: str) -> str:
    case = next(file for file in golden.files() if file.path.stem == "joins").cases[0]
    error = error_of(case, text)
    assert error is not None
    return error.hint or ""


def test_names_that_are_not_alike_are_not_suggested(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "SELECT COUNT(*) FROM people WHERE scared > 1"
    assert "Perhaps" not in hint_of("SELECT COUNT(*) FROM people WHERE first_name = 'x'")
    assert "Perhaps" in hint_of("SELECT COUNT(*) FROM people WHERE ages > 1")
    monkeypatch.setattr(scope, "ALIKE", 0.1)
    assert "Perhaps" in hint_of(text)


def test_mutant_the_table_for_its_alias(monkeypatch: pytest.MonkeyPatch) -> None:
    """A condition that names what is not in scope is noticed."""
    monkeypatch.setattr("dpsql.compiler.bind.subqueries._by_alias", lambda condition, *_: condition)
    assert broken() != []


def test_mutant_a_name_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsql.compiler.bind.ties._equal", lambda mine, theirs: f"t.{mine[0]} = {theirs[0]}")
    assert broken() != []


@pytest.mark.parametrize("field", ["year", "quarter", "month", "week", "day"])
def test_fields_by_name_over_released_rows(field: str) -> None:
    case = next(file for file in golden.files() if file.path.stem == "joins").cases[0]
    inner = "SELECT joined AS k, COUNT(*) AS n FROM people GROUP BY 1"
    assert error_of(case, f"SELECT {field}(k), n FROM ({inner}) q") is None
