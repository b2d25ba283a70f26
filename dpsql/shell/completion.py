"""What may stand at the cursor: tables behind FROM, their columns elsewhere, declared values inside quotes.

Decides from tokens alone, so it works on half a statement. It offers only what exists here: the tables and columns that
the user may name, the functions that are answered, the shell's own commands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from dpsql.compiler.public.functions import FUNCTIONS
from dpsql.compiler.tokens import Token, TokenKind, scan
from dpsql.errors import Rejected
from dpsql.session.settings import PARAMETERS
from dpsql.shell.commands import COMMANDS, SETTABLE
from dpsql.shell.state import State
from dpsql.shell.tables import Table

_KEYWORDS = """
SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT OFFSET JOIN LEFT INNER CROSS ON USING AS AND OR NOT IN IS NULL BETWEEN
LIKE ILIKE EXISTS CASE WHEN THEN ELSE END CAST DISTINCT UNION ALL WITH FILTER WITHIN OVER PARTITION ASC DESC NULLS FIRST
LAST ROLLUP CUBE GROUPING SETS INTERVAL DATE TIMESTAMP TRUE FALSE EXPLAIN SHOW SET RESET
"""
_AGGREGATES = """
count sum avg variance var_pop var_samp stddev stddev_pop stddev_samp covar_pop covar_samp corr min max median mode
percentile_cont percentile_disc
"""
KEYWORDS = tuple(_KEYWORDS.split())
AGGREGATES = tuple(_AGGREGATES.split())
ERROR_BARS = ("dp_stddev", "dp_interval_low", "dp_interval_high")
WINDOWS = ("rank", "dense_rank", "row_number", "lag", "lead", "first_value", "last_value", "ntile", "percent_rank")
OTHER_FUNCTIONS = ("coalesce", "nullif", "least", "greatest", "date_trunc", "extract", "date_part")
_FUNCTIONS = sorted({*AGGREGATES, *ERROR_BARS, *WINDOWS, *OTHER_FUNCTIONS, *FUNCTIONS})

_WORD = re.compile(r"[\w$]*\Z")
_DOTTED = re.compile(r"(\w+)\.[\w$]*\Z")
_VALUE = re.compile(r"""(\w+)\s*(?:=|<>|!=|\bIN\s*\((?:\s*'[^']*'\s*,)*)\s*'([^']*)\Z""", re.IGNORECASE)
_SETTING = re.compile(r"^\s*(?:SET|SHOW|RESET)\s+[\w.]*\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Offer:
    """One thing that may be written, and what it is."""

    text: str
    meta: str


class ShellCompleter(Completer):
    """Reads the tables of the state at each call, so that a new connection is seen."""

    def __init__(self, state: State) -> None:
        self._state = state

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        before, after = document.text_before_cursor, document.text_after_cursor
        for offer, length in offers(self._state.tables, before, after):
            yield Completion(offer.text, start_position=-length, display_meta=offer.meta)


def offers(tables: Sequence[Table], before: str, after: str = "") -> Iterator[tuple[Offer, int]]:
    """What may replace the last characters before the cursor, and how many of them."""
    if before.lstrip().startswith("\\"):
        yield from _command_offers(tables, before.lstrip())
        return
    if _SETTING.match(before):
        word = re.split(r"\s", before)[-1]
        yield from _starting(word, (Offer(n, p.description) for n, p in PARAMETERS.items() if n.startswith("dpsql.")))
        return
    value = _VALUE.search(before)
    if value is not None and before.count("'") % 2:
        yield from _starting(value[2], _values(tables, value[1]))
        return
    try:
        tokens = scan(before).tokens
    except Rejected:
        return  # inside a string, a quoted name or a comment
    try:
        all_tokens = tokens + scan(after).tokens
    except Rejected:
        all_tokens = tokens
    yield from _sql_offers(tables, before, tokens, all_tokens)


def _sql_offers(
    tables: Sequence[Table], before: str, tokens: tuple[Token, ...], everything: tuple[Token, ...]
) -> Iterator[tuple[Offer, int]]:
    named = _named_tables(everything, tables)
    if (dotted := _DOTTED.search(before)) is not None:
        word = before[dotted.end(1) + 1 :]
        found = [named[dotted[1].lower()]] if dotted[1].lower() in named else []
        yield from _starting(word, _columns(found))
        return
    matched = _WORD.search(before)
    word = matched[0] if matched is not None else ""
    previous = tokens[:-1] if word and tokens else tokens
    if _wants_table(previous):
        yield from _starting(word, (Offer(t.name, "public table" if t.public else "private table") for t in tables))
        return
    if not word:
        return
    known = list(dict.fromkeys(named.values())) or list(tables)
    yield from _starting(word, _columns(known))
    yield from _starting(word, (Offer(a, "") for a in named if a not in {t.name for t in tables}))
    yield from _starting(word, (Offer(f"{name}(", _function_kind(name)) for name in _FUNCTIONS))
    upper = word.isupper()
    keywords = (Offer(k if upper else k.lower(), "") for k in KEYWORDS)
    yield from _starting(word, keywords)


def _function_kind(name: str) -> str:
    if name in AGGREGATES:
        return "aggregate"
    if name in ERROR_BARS:
        return "error bar"
    return "window function" if name in WINDOWS else "function"


def _starting(word: str, found: Iterable[Offer]) -> Iterator[tuple[Offer, int]]:
    for offer in found:
        if offer.text.lower().startswith(word.lower()) and offer.text != word:
            yield offer, len(word)


def _columns(tables: Sequence[Table]) -> Iterator[Offer]:
    seen: set[str] = set()
    for table in tables:
        for field in table.fields:
            if field.name not in seen:
                seen.add(field.name)
                meta = field.type + (f", {field.bounds}" if field.bounds else "")
                yield Offer(_quoted(field.name), meta if len(meta) <= 40 else meta[:39] + "…")


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[a-z_][a-z0-9_$]*", name) else '"' + name.replace('"', '""') + '"'


def _values(tables: Sequence[Table], column: str) -> Iterator[Offer]:
    seen: set[str] = set()
    for table in tables:
        for field in table.fields:
            if field.name == column.lower() and field.values is not None:
                for value in field.values.split(", "):
                    if value not in seen and value != "...":
                        seen.add(value)
                        yield Offer(value, f"value of {field.name}")


# --- from tokens ---------------------------------------------------------------------------------------------------


def _wants_table(tokens: tuple[Token, ...]) -> bool:
    """Behind FROM or JOIN, or behind a comma of a FROM clause."""
    if not tokens:
        return False
    if tokens[-1].is_word("from", "join"):
        return True
    if not tokens[-1].is_symbol(","):
        return False
    depth = 0
    for token in reversed(tokens):
        if token.is_symbol(")"):
            depth += 1
        elif token.is_symbol("("):
            depth -= 1
            if depth < 0:
                return False
        elif depth == 0 and token.is_word("from"):
            return True
        elif depth == 0 and token.is_word("select", "where", "group", "order", "having", "on", "by"):
            return False
    return False


def _named_tables(tokens: tuple[Token, ...], tables: Sequence[Table]) -> dict[str, Table]:
    """The tables of the FROM clauses, by alias or name."""
    by_name = {table.name: table for table in tables}
    found: dict[str, Table] = {}
    for at, token in enumerate(tokens):
        table = by_name.get(token.text) if token.kind in (TokenKind.WORD, TokenKind.QUOTED) else None
        if table is None or not (_wants_table(tokens[:at])):
            continue
        rest = tokens[at + 1 : at + 3]
        if rest and rest[0].is_word("as"):
            rest = rest[1:]
        is_alias = rest and rest[0].kind is TokenKind.WORD and rest[0].text.upper() not in KEYWORDS
        found[rest[0].text if is_alias else table.name] = table
    return found


def _command_offers(tables: Sequence[Table], before: str) -> Iterator[tuple[Offer, int]]:
    name, blank, rest = before[1:].partition(" ")
    if not blank:
        yield from _starting(before, (Offer(f"\\{n}", c.meaning) for n, c in COMMANDS.items()))
        return
    word = rest.split(" ")[-1]
    match name:
        case "d":
            yield from _starting(word, (Offer(t.name, "") for t in tables))
        case "confirm" | "timing":
            yield from _starting(word, (Offer(w, "") for w in ("on", "off")))
        case "x":
            yield from _starting(word, (Offer(w, "") for w in ("auto", "on", "off")))
        case "set":
            yield from _starting(word, (Offer(w, "") for w in SETTABLE))
        case "explain":
            yield from offers(tables, rest)
        case _:
            return
