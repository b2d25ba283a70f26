"""Where the parts of a query stand in its text.

sqlglot places names and literals only. What a larger part spans is searched among the ranges of whole tokens around its
names, the shortest first, and a range is taken only if it reads as exactly that part: never guessed. Clauses are found
by the words that Postgres reserves for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from dpsql.compiler.parse import parse
from dpsql.compiler.tokens import Token, scan
from dpsql.errors import Rejected

Span = tuple[int, int]
"""The first token and the one after the last."""
Read = Callable[[str], object]

_MOST_TRIES = 80
_LEFT, _RIGHT = 12, 60


class NoSpan(Exception):
    """Where a part stands cannot be told; what is around it is printed instead."""


UNLIKE = (NoSpan, LookupError, StopIteration, ValueError)
"""What a text gives that is not shaped as its tree says: a clause or a column less."""


def as_expression(text: str) -> object:
    return parse(f"SELECT {text}").expressions[0]


def as_query(text: str) -> object:
    return parse(text)


def as_item(text: str) -> object:
    """An item of FROM."""
    return parse(f"SELECT * FROM {text}").args["from_"].this


@dataclass(frozen=True, slots=True)
class Text:
    """A text with its tokens; `depths[i]` brackets are open before token i."""

    text: str
    tokens: tuple[Token, ...]
    depths: tuple[int, ...]

    @property
    def whole(self) -> Span:
        return 0, len(self.tokens)

    def slice(self, span: Span) -> str:
        return self.text[self.tokens[span[0]].start : self.tokens[span[1] - 1].end] if span[0] < span[1] else ""

    def closing(self, at: int) -> int:
        """The token that closes the bracket at `at`."""
        return next(i for i in range(at + 1, len(self.tokens)) if self.depths[i + 1] == self.depths[at])

    def top(self, span: Span) -> Iterator[int]:
        """The tokens outside of brackets that open in the span."""
        floor = self.depths[span[0]] if span[0] < span[1] else 0
        return (i for i in range(*span) if self.depths[i] == floor and not self.tokens[i].is_symbol(")"))

    def balanced(self, span: Span) -> bool:
        start, end = span
        floor = self.depths[start]
        return self.depths[end] == floor and min(self.depths[start : end + 1]) == floor

    def find(self, node: exp.Expr, within: Span, read: Read = as_expression) -> Span:
        """The span of a part. Raises NoSpan."""
        first, last = self._named(node, within)
        for tries, span in enumerate(self._around(first, last, within)):
            if tries > _MOST_TRIES:
                break
            if _reads(self.slice(span), node, read):
                return span
        raise NoSpan

    def _named(self, node: exp.Expr, within: Span) -> Span:
        """The tokens of the first and the last name or literal of a part."""
        placed = [n.meta for n in node.walk() if "start" in n.meta]
        if not placed:
            raise NoSpan
        start, end = min(m["start"] for m in placed), max(m["end"] for m in placed)
        inside = [i for i in range(*within) if self.tokens[i].start <= end and self.tokens[i].end > start]
        if not inside:
            raise NoSpan
        return inside[0], inside[-1]

    def _around(self, first: int, last: int, within: Span) -> list[Span]:
        starts = range(max(within[0], first - _LEFT), first + 1)
        ends = range(last + 1, min(within[1], last + _RIGHT) + 1)
        found = [(s, e) for s in starts for e in ends if self.balanced((s, e))]
        return sorted(found, key=lambda span: span[1] - span[0])


def _reads(text: str, node: exp.Expr, read: Read) -> bool:
    try:
        return read(text) == node
    except (Rejected, AttributeError, IndexError):
        return False


def placed(text: str) -> Text:
    tokens = scan(text).tokens
    while tokens and tokens[-1].is_symbol(";"):
        tokens = tokens[:-1]
    depths = [0]
    for token in tokens:
        step = 1 if token.is_symbol("(", "[") else -1 if token.is_symbol(")", "]") else 0
        depths.append(depths[-1] + step)
    return Text(text, tokens, tuple(depths))


_CLAUSES = ("from", "where", "group", "having", "window", "qualify", "order", "limit", "offset", "fetch", "for")


def clauses(text: Text, span: Span) -> dict[str, Span]:
    """The clauses of one SELECT, each with the word that begins it; `select` holds the list of columns."""
    starts = [("select", span[0])]
    for at in text.top(span):
        word = text.tokens[at].text
        if at > span[0] and text.tokens[at].is_word(*_CLAUSES) and not _is_inside(text, at):
            starts.append((word, at))
    if not text.tokens[span[0]].is_word("select") or len({word for word, _ in starts}) < len(starts):
        raise NoSpan
    ends = [at for _, at in starts[1:]] + [span[1]]
    return {word: (at, end) for (word, at), end in zip(starts, ends, strict=True)}


def _is_inside(text: Text, at: int) -> bool:
    """IS DISTINCT FROM, a column called so, a name behind AS or a dot."""
    before = text.tokens[at - 1]
    after = text.tokens[at + 1] if at + 1 < len(text.tokens) else None
    if before.is_symbol(".") or before.is_word("as"):
        return True
    if text.tokens[at].is_word("from"):
        return before.is_word("distinct")
    return text.tokens[at].is_word("group", "order") and (after is None or not after.is_word("by"))


def listed(text: Text, span: Span) -> list[Span]:
    """The parts of a list, between commas."""
    edges = [i for i in text.top(span) if text.tokens[i].is_symbol(",")]
    return list(zip([span[0], *(i + 1 for i in edges)], [*edges, span[1]], strict=True))
