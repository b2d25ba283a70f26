"""Lines that all drafts share. Decides their form only."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dpsql.policy.draft_names import quoted
from dpsql.policy.outline import Outline
from dpsql.policy.undecided import DECIDE
from dpsql.types import TableName

_URL = re.compile(r"[a-z]+:[A-Za-z0-9_./@:?=&%-]*[A-Za-z0-9_/]")
"""What YAML takes as one word without quotes."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def noted(line: str, note: str, width: int = 40) -> str:
    """The line with a comment behind it."""
    return f"{line:<{width}} # {note}" if note else line


def listed(names: tuple[str, ...]) -> str:
    """One name as a word, several as a list."""
    return quoted(names[0]) if len(names) == 1 else f"[{', '.join(map(quoted, names))}]"


def source_line(outline: Outline, table: str) -> Iterator[str]:
    """Where a table is, if its name in the policy does not say it."""
    source = outline.sources.get(table)
    if source is not None:
        yield f"    source: {source_word(source)}"


def source_word(source: TableName) -> str:
    parts = [source.name] if source.schema is None else [source.schema, source.name]
    plain = all(_NAME.fullmatch(part) for part in parts)
    return ".".join(parts) if plain else f"[{', '.join(map(quoted, parts))}]"


def advice_to_decide(file: str) -> Iterator[str]:
    yield f"# Write your answer in place of every word {DECIDE}, then run: dpsql check {file}"
    yield "# It lists the open decisions as questions. Bounds and values are public: take them from what you know of"
    yield "# the subject, never from the data. `nullable: true` stands where the schema allows NULL, which then is a"
    yield "# group of its own: one group more. Remove it where every row has a value; without it, rows with NULL are in"
    yield "# no group of that column."


def header(dataset: str, backend: str) -> Iterator[str]:
    yield ""
    yield "dpsql: 1"
    yield noted(f"dataset: {quoted(dataset)}", "its name for ever: what was spent is kept under it")
    yield f"backend: {backend if backend == DECIDE or _URL.fullmatch(backend) else quoted(backend)}"
    yield noted('epoch: "1"', "change it when the data change")
    yield ""


def contribution() -> Iterator[str]:
    yield "  # One unit counts in one answer with at most what this many groups of this many rows would add. What"
    yield "  # is beyond is scaled down, never refused; noise grows with sqrt(max_groups) * max_rows_per_group."


def budget() -> Iterator[str]:
    yield "  # The promise to those in the data, for ever and for all users together."
    yield f"  budget: {{epsilon: {DECIDE}, delta: 1e-8}}"
    yield ""


def access() -> Iterator[str]:
    yield "# Who may ask, and how much each user may learn: a part of the budget above. A statement costs `epsilon`"
    yield "# unless it names another price."
    yield "roles:"
    yield "  analyst: {budget: {epsilon: 1, delta: 1e-9}, epsilon: 0.25}"
    yield "users:"
    yield noted(f"  alice: {{role: analyst, password: {DECIDE}}}", "`dpsql password` prints what goes here, in quotes")
