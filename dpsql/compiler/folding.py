"""Upper and lower case of letters: one table for all backends.

Decides which letters have two cases: ASCII and the Latin, Greek, Cyrillic and Armenian letters of RANGES, each by its
simple mapping in Unicode (one character to one), as Postgres maps them under a UTF-8 collation. DuckDB and Postgres's
providers have tables of different ages and languages (of ß, İ, titlecase digraphs, a final sigma by its place), so no
backend's own folding of such letters is used. What is not in the table has no case, here and in what is emitted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal
from unicodedata import category

RANGES = (
    (0x00C0, 0x0180), (0x01CD, 0x01DD), (0x01DE, 0x01F0), (0x01F8, 0x0220), (0x0222, 0x0234), (0x0386, 0x0400),
    (0x0400, 0x0530), (0x0531, 0x0587), (0x1E00, 0x1E96), (0x1EA0, 0x1F00),
)  # fmt: skip
"""Unchanged since Unicode 5.1: every supported Python has the same mappings there."""


def _mapped(change: Callable[[str], str]) -> dict[str, str]:
    letters = (chr(code) for first, end in RANGES for code in range(first, end))
    return {letter: change(letter) for letter in letters if len(change(letter)) == 1 and change(letter) != letter}


UPPER = _mapped(str.upper) | {"µ": "Μ"}
LOWER = _mapped(str.lower) | {"İ": "i"}
_TABLES: dict[str, dict[int, str]] = {
    "upper": {ord(a): b for a, b in ({chr(c): chr(c - 32) for c in range(97, 123)} | UPPER).items()},
    "lower": {ord(a): b for a, b in ({chr(c): chr(c + 32) for c in range(65, 91)} | LOWER).items()},
}
_KNOWN = frozenset(UPPER) | frozenset(LOWER) | frozenset("ßŉǰΐΰև")


_CASELESS = ((0x00A0, 0x00B5), (0x00B6, 0x00C0), (0x2010, 0x2070), (0x20A0, 0x20C0), (0x3040, 0x3100), (0x4E00, 0xA000))
"""Signs, kana and Chinese characters, of which nobody says that they have two cases."""


def agreed_by_duckdb() -> tuple[tuple[int, int], ...]:
    """Where DuckDB's own functions do what the table does: all but ß, of which its upper case is another letter."""
    sharp, (first, end) = ord("ß"), RANGES[0]
    return ((0x01, 0x80), *_CASELESS, (first, sharp), (sharp + 1, end), *RANGES[1:])


def pairs(op: Literal["lower", "upper"]) -> dict[str, str]:
    """Each letter that changes, and what it becomes."""
    return {chr(letter): other for letter, other in _TABLES[op].items()}


def upper(text: str) -> str:
    return text.translate(_TABLES["upper"])


def lower(text: str) -> str:
    return text.translate(_TABLES["lower"])


def initials(text: str) -> str | None:
    """INITCAP: each word's first letter upper, the others lower; None for letters of unknown case."""
    if not all(c.isascii() or c in _KNOWN or category(c)[0] in "PSZ" for c in text):
        return None
    words = "".join(c if c.isalnum() else " " for c in text)
    return "".join(upper(c) if at == 0 or words[at - 1] == " " else lower(c) for at, c in enumerate(text))


def has_unknown_case(text: str) -> bool:
    """Whether it holds a letter of two cases that the table does not know."""
    return any(c not in _KNOWN and not c.isascii() and c.lower() != c.upper() for c in text)
