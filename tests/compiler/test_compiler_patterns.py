"""Regular expressions and SIMILAR TO written out as LIKE: the same texts match, by Postgres's own word."""

from __future__ import annotations

import psycopg
import pytest

from dpsql.compiler import patterns

REGULAR = (
    "a", "^a", "a$", "^a$", "", "a|b", "^(a|b)$", "^a|b$", "(ab|c)d", "a.b", "a.*b", "^a.+$", "[ab]c", "[a-c]$", "a?b",
    "^(ab)?c$", "a{2}", "\\d", "^\\d\\d$", "a\\.b", "a%", "_b", "\\\\", "(?:a|b)c", "^a\\$", "[.]b", "x|y|^ab$", ".",
    "[a-]",
)  # fmt: skip
SIMILAR = ("a%", "a|b", "(a|b)%", "_b", "a\\%", "[ab]c", "a?b", "a.b", "^a", "a$", "%b%", "", "ab", "(ab|c)d", "a{2}")
TEXTS = (
    "", "a", "b", "ab", "abc", "aab", "a.b", "axb", "a\nb", "A", "cd", "abd", "acb", "bc", "a%", "_b", "xb", "12", "4",
    "\\", "a$", "^a", "y", "c", "AB", "aa", "-", "é", "aéb", "a b", "ac", "0a", "%", "_",
)  # fmt: skip
UNKNOWN = (
    "a*", "(a+)+b", "a+", "[^a]", "a{2,3}", "\\w+", "a**", "(a", "a)", "[", "a|", "|a", "é", "\\b", "(?=a)", "a{300}",
    "[[:alpha:]]", "\\1", "x^a", "a$b", "^*", "[a-z][a-z][a-z]", "(^a)+",
)  # fmt: skip


@pytest.mark.parametrize("pattern", REGULAR)
def test_regular_expressions_match_what_postgres_matches(postgres_uri: str, pattern: str) -> None:
    found = patterns.of_regular(pattern)
    assert found is not None
    _same(postgres_uri, "~", pattern, found)


@pytest.mark.parametrize("pattern", SIMILAR)
def test_similar_to_matches_what_postgres_matches(postgres_uri: str, pattern: str) -> None:
    found = patterns.of_similar(pattern)
    assert found is not None
    _same(postgres_uri, "SIMILAR TO", pattern, found)


def _same(uri: str, operator: str, pattern: str, found: tuple[str, ...]) -> None:
    with psycopg.connect(uri) as connection:
        different = f"SELECT x FROM unnest(%s::text[]) AS x WHERE (x {operator} %s) IS DISTINCT FROM (x LIKE ANY (%s))"
        rows = connection.execute(different.encode(), (list(TEXTS), pattern, list(found))).fetchall()
    assert rows == []


@pytest.mark.parametrize("pattern", UNKNOWN)
def test_what_has_no_short_list_is_unknown(pattern: str) -> None:
    assert patterns.of_regular(pattern) is None


@pytest.mark.parametrize(
    ("pattern", "escape", "plain"),
    [("a!%", "!", "a\\%"), ("a!!", "!", "a!"), ("a\\%", "", "a\\\\%"), ("a%", "!", "a%"), ("a!", "!", None)],
)
def test_like_with_another_escape_character(pattern: str, escape: str, plain: str | None) -> None:
    assert patterns.with_escape(pattern, escape) == plain
