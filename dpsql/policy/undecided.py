"""What a draft leaves to a person: the word `DECIDE` in place of a value, and the question that it stands for.

Decides how an open decision reads. A policy with one is refused like any other problem, all of them at once; the
questions speak of the file's own keys and types, never of data.
"""

from __future__ import annotations

from dpsql.policy.problems import Path

DECIDE = "DECIDE"
"""Only the bare word: in quotes it is text like any other."""

_PRIVACY = {
    "unit": "who or what is protected, with all its rows? Name it (`customer`); `row` only if nobody has two rows",
    "units": "roughly how many units are there? A round number is enough; it limits delta",
    "max_groups": "in how many groups of one answer (months, shops, ...) may one unit count in full? Noise grows with"
    " its square root; most units should stay below",
    "max_rows_per_group": "how many rows of one group may a unit count with in full? Noise grows with it; most units"
    " should stay below",
}
_BUDGET = {
    "epsilon": "how much may all answers together tell of one unit, for ever? No conclusion becomes more than e^epsilon"
    " times as likely by one unit's data: 1 gives 2.7 times (strong), 3 gives 20, 10 gives 22,026 (weak)",
    "delta": "how likely may that promise fail? Far below 1/units: for example 1e-8",
}
_TABLE = {
    "unit": "which column says whose row this is? Or write a path: `{through: parent, on: {column: parent's column}}`",
    "key": "which column, or list of columns, has every value once?",
}


def question(path: Path, of: str = "") -> str:
    """The question behind an open decision at `path`, in plain words; `of`: the type of the column it belongs to."""
    path = path[:-1] if isinstance(path[-1], int) else path
    last = str(path[-1])
    if len(path) > 3 and path[0] == "tables" and path[2] == "columns":
        return _column(str(path[3]), last, of)
    if "budget" in path:
        return _BUDGET.get(last, _other(last))
    if path[0] == "privacy":
        return _PRIVACY.get(last, _other(last))
    if path[0] == "tables":
        return _TABLE.get(last) or _PRIVACY.get(last, _other(last))
    if last == "backend":
        return "where are the data? Write duckdb:FILE or postgresql://USER@HOST/DATABASE"
    if last == "password":
        return "run `dpsql password` and put what it prints here in quotes; without the key: no login over the wire"
    return _other(last)


def _column(column: str, key: str, of: str) -> str:
    if key == "lower":
        end, example = ("earliest", " (write 2024-01-01)") if of.startswith(("date", "time")) else ("smallest", "")
        return f"the {end} {column} that counts as it is{example}? What lies beyond counts as the bound"
    if key == "upper":
        return (
            f"the {'latest' if of.startswith(('date', 'time')) else 'largest'}? Without both bounds: no sums, no groups"
        )
    if key == "values":
        return f"which values of {column} does everybody know? List them; without the key only frequent ones are shown"
    return _other(key)


def _other(key: str) -> str:
    return f"write the value of `{key}` that you decide on"
