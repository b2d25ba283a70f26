"""Upper and lower case of letters: one table for all backends.

Decides which letters have two cases: ASCII and the Latin, Greek, Cyrillic and Armenian letters of RANGES, each by its
simple mapping in Unicode (one character to one), as Postgres maps them under a UTF-8 collation. DuckDB and Postgres's
providers have tables of different ages and languages (of ß, İ, titlecase digraphs, a final sigma by its place), so no
backend's own folding of such letters is used. What is not in the table has no case, here and in what is emitted.
"""

from __future__ import annotations

from collections.abc import Callable

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
_TABLES = {
    "upper": str.maketrans(UPPER | {chr(c): chr(c - 32) for c in range(97, 123)}),
    "lower": str.maketrans(LOWER | {chr(c): chr(c + 32) for c in range(65, 91)}),
}
_KNOWN = frozenset(UPPER) | frozenset(LOWER) | frozenset("ßŉǰΐΰև")


def upper(text: str) -> str:
    return text.translate(_TABLES["upper"])


def lower(text: str) -> str:
    return text.translate(_TABLES["lower"])


def is_known(character: str) -> bool:
    """Whether backends agree on what it is: ASCII, or a letter of the table."""
    return character.isascii() or character in _KNOWN
