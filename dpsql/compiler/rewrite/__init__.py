"""The public remainder of a statement as text for Postgres.

Each private aggregation has become a relation; what is not rewritten is the client's own text, never printed from the
tree. Every text is read again and must say what the tree says: a text that is spliced wrongly is printed from the tree
as a whole, and one that is printed wrongly is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from dpsql.compiler.rewrite.check import says
from dpsql.compiler.rewrite.lists import gathered
from dpsql.compiler.rewrite.printing import printed
from dpsql.compiler.rewrite.spans import UNLIKE, as_query, placed
from dpsql.compiler.rewrite.writer import Writer
from dpsql.errors import NOT_SUPPORTED, Rejected

__all__ = ["PublicText", "inner_text", "public_text"]

_RELEASE = re.compile(r"_r([0-9]+)")
_MARK = '"<relation '
"""What is replaced later, wherever it stands: so it must not stand in a literal or a comment of the client's."""


@dataclass(frozen=True, slots=True)
class PublicText:
    """`text` reads release N as `"<relation N>" AS "_rN"`; `relations` are the N it reads. `spliced`: not printed."""

    text: str
    relations: tuple[int, ...]
    spliced: bool

    def over(self, sources: Mapping[int, str]) -> str:
        """The text over queries that give the releases' rows. No text of a client's holds the marks: see `_MARK`."""
        text = self.text
        for number in self.relations:
            text = text.replace(f'"<relation {number}>" AS ', f"({sources[number]}) AS ")
        return text


NO_TEXT = PublicText("", (), spliced=False)
"""Where none was asked for."""


def public_text(text: str, asked: exp.Query, made: exp.Query, views: Mapping[str, str]) -> PublicText:
    """`made` is what `split` made of the tree `asked` of `text`. Raises Rejected."""
    tree = gathered(made.copy())
    if _MARK in text:
        raise Rejected(f"The text holds {_MARK}, which stands for released rows here.", sqlstate=NOT_SUPPORTED)
    try:
        found = placed(text)
        return _checked(Writer(found, views).query(asked, tree, found.whole, {}), tree, made)
    except UNLIKE:
        return _printed(made)


def inner_text(text: str, asked: exp.Query | None, made: exp.Query, views: Mapping[str, str]) -> PublicText:
    """The same for a query somewhere in the text, `asked` as far as it is known."""
    tree = gathered(made.copy())
    try:
        if asked is None:
            return _printed(made)
        found, wanted = placed(text), gathered(asked.copy())
        span = found.find(wanted, found.whole, as_query)
        return _checked(Writer(found, views).query(wanted, tree, span, {}), tree, made)
    except UNLIKE:
        return _printed(made)


def _checked(written: str, tree: exp.Query, made: exp.Query) -> PublicText:
    return PublicText(written, _relations(made), spliced=True) if says(written, tree) else _printed(made)


def _printed(made: exp.Query) -> PublicText:
    tree = gathered(made.copy())
    written = printed(tree)
    if not says(written, tree):
        hint = "Write what stands around the aggregates more plainly, or compute it in your program."
        raise Rejected("A part of the statement cannot be written for Postgres.", sqlstate=NOT_SUPPORTED, hint=hint)
    return PublicText(written, _relations(made), spliced=False)


def _relations(made: exp.Query) -> tuple[int, ...]:
    found = (_RELEASE.fullmatch(table.name) for table in made.find_all(exp.Table))
    return tuple(sorted({int(each[1]) for each in found if each is not None}))
