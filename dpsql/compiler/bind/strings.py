"""Text functions that people write less often: INITCAP, TRANSLATE, REVERSE, REPEAT, OVERLAY, MD5, REGEXP_REPLACE.

Decides which of them a backend computes: only those that give the same characters on every one. The others exist for
texts whose values the policy and the statement tell: each value's result is computed here and chosen by CASE, so that
all backends agree; a text that is none of these values has no result.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from hashlib import md5

from sqlglot import exp

from dpsql.compiler import folding, patterns
from dpsql.compiler.algebra import Call, Case, Domain, Expr, Lit
from dpsql.compiler.bind.context import Context, Rule, boolean, constant, text
from dpsql.compiler.bind.text import count_of, joined, substring_of
from dpsql.compiler.bind.text_values import called, finite, mapped
from dpsql.compiler.parse import only, refuse
from dpsql.compiler.walk import larger_than
from dpsql.errors import TOO_COMPLEX, Rejected
from dpsql.types import TEXT

MOST_CASES = 500
"""Values of one text that are told apart in a statement."""
MOST_WRITTEN = 5000
"""Parts of an expression that is written several times, all together."""
MOST_NEW = 100
"""Characters that one place of a text may be replaced by, so that no row can make a text huge."""
_MOST_REPEATS = 20


def _by_value(inner: Expr, compute: Callable[[str], str | None]) -> Expr | None:
    """The function of each value of a text; None where its values are not known, or too many."""
    if isinstance(inner, Lit):
        return Lit(None if inner.value is None else compute(str(inner.value)), TEXT)
    values = finite(inner)
    if values is None or not 1 <= len(values) <= MOST_CASES:
        return None
    _repeated(inner, len(values))
    results = [(value, compute(str(value))) for value in values]
    branches = tuple((boolean("eq", inner, Lit(value, TEXT)), Lit(made, TEXT)) for value, made in results)
    nullable = inner.domain.nullable or any(made is None for _, made in results)
    listed = tuple(dict.fromkeys(made for _, made in results if made is not None))
    return Case(branches, None, TEXT, Domain(values=listed, nullable=nullable))


def _repeated(inner: Expr, times: int) -> None:
    """Raises Rejected 54001 where an expression written so often is too large: functions of it write it again."""
    if larger_than(inner, MOST_WRITTEN // max(times, 1)):
        raise Rejected("The statement is too complex.", sqlstate=TOO_COMPLEX, hint="Use fewer text functions.")


def _of_listed(name: str, compute: Callable[[str], str], instead: str) -> Rule:
    """A function that backends compute differently."""

    def rule(node: exp.Expr, context: Context) -> Expr:
        only(node, "expression")
        found = _by_value(text(node.this, context), compute)
        if found is None:
            raise refuse(
                f"{name} over private rows takes text whose values the policy lists, {MOST_CASES} at most",
                node,
                hint=instead,
            )
        return found

    return rule


_INITCAP = _of_listed(
    "initcap", lambda x: folding.initials(x) or "", "Write upper(left(x, 1)) || lower(substring(x, 2))."
)


def _initcap(node: exp.Expr, context: Context) -> Expr:
    """Each word's first letter upper, the others lower."""
    values = finite(text(node.this, context)) or ()
    if any(folding.initials(str(value)) is None for value in values):
        raise refuse(
            "initcap over private rows knows words of Latin, Greek, Cyrillic and Armenian letters only",
            node,
            hint="Write upper(left(x, 1)) || lower(substring(x, 2)).",
        )
    return _INITCAP(node, context)


def _translate(node: exp.Expr, context: Context) -> Expr:
    only(node, "from_", "to")
    old, new = (constant(node.args.get(key), TEXT, context) for key in ("from_", "to"))
    if old is None or new is None or len(str(old.value)) > 100 or len(str(new.value)) > 100:
        raise refuse("translate takes text and two constants of at most 100 characters over private rows", node)
    table: dict[int, str | None] = {}
    for at, c in enumerate(str(old.value)):
        table.setdefault(ord(c), str(new.value)[at : at + 1] or None)
    return called("translate", (text(node.this, context), old, new), lambda x, *_: x.translate(table))


def _md5(node: exp.Expr, context: Context) -> Expr:
    only(node)
    inner = text(node.this, context)
    if isinstance(inner, Lit):
        return Lit(None if inner.value is None else _digest(str(inner.value)), TEXT)
    return called("md5", (inner,), _digest)


def _digest(value: str) -> str:
    return md5(value.encode(), usedforsecurity=False).hexdigest()


def _repeat(node: exp.Expr, context: Context) -> Expr:
    """repeat(x, n) of a constant n, as x || x || ..."""
    only(node, "times")
    times = count_of(node.args.get("times"), context, 0)
    if times is None or times > _MOST_REPEATS:
        raise refuse(f"repeat takes text and a constant number of at most {_MOST_REPEATS} over private rows", node)
    inner = text(node.this, context)
    _repeated(inner, times)
    if not times:
        return substring_of(inner, 1, 0)
    return _of_one(joined((inner,) * times), inner, lambda x: x * times)


def _of_one(made: Expr, inner: Expr, compute: Callable[[str], str]) -> Expr:
    """A text joined of parts of one text, with the values that follow from it."""
    if not isinstance(made, Call):
        return made
    return replace(made, domain=replace(made.domain, values=mapped((inner,), compute)))


def _overlay(node: exp.Expr, context: Context) -> Expr:
    """overlay(x PLACING y FROM start FOR length), as left part || y || right part."""
    only(node, "expression", "from_", "for_")
    new = constant(node.args.get("expression"), TEXT, context)
    start = count_of(node.args.get("from_"), context, 0)
    length = count_of(node.args.get("for_"), context, len(str(new.value)) if new is not None else 0)
    if new is None or not start or length is None:
        raise refuse("overlay takes text, a constant text, a constant start of at least 1 and a constant length", node)
    inner, before, after = text(node.this, context), start - 1, start - 1 + length
    _repeated(inner, 3)
    parts = (substring_of(inner, 1, before), new, substring_of(inner, after + 1, None))
    return _of_one(joined(parts), inner, lambda x: x[:before] + str(new.value) + x[after:])


_SPECIAL = re.compile(r"[.^$*+?()\[\]{}|\\]")


def _regexp_replace(node: exp.Expr, context: Context) -> Expr:
    """regexp_replace(x, pattern, new[, 'g']): plain text as REPLACE, else of listed values."""
    only(node, "expression", "replacement", "modifiers", "single_replace")
    pattern, new = (constant(node.args.get(key), TEXT, context) for key in ("expression", "replacement"))
    given = node.args.get("modifiers")
    flags = "" if given is None else str(getattr(constant(given, TEXT, context), "value", "?"))
    inner = text(node.this, context)
    if pattern is None or new is None or flags not in ("", "g") or "\\" in str(new.value) or not pattern.value:
        raise refuse(
            "regexp_replace over private rows takes a constant pattern, a constant text without \\ and the flag 'g'",
            node,
            hint=_REPLACE,
        )
    if len(str(new.value)) > MOST_NEW:
        raise refuse(f"regexp_replace takes a text of at most {MOST_NEW} characters over private rows", node)
    word, plain = str(pattern.value), not _SPECIAL.search(str(pattern.value))
    if plain and flags == "g":
        return called("replace", (inner, pattern, new), str.replace)
    # Without repetition, so that no text makes the search long: it is done here.
    known = plain or (patterns.of_regular(word) is not None and not re.search(r"[*+?{|$]", word))
    times = 0 if flags == "g" else 1
    compiled = re.compile(re.escape(word) if plain else word, re.ASCII | re.DOTALL) if known else None
    made = _by_value(inner, lambda x: compiled.sub(lambda _: str(new.value), x, times)) if compiled else None
    if made is None:
        raise refuse("this pattern cannot be replaced over private rows", node, hint=_REPLACE)
    return made


_REPLACE = (
    "Plain text in all places: regexp_replace(x, 'a', 'b', 'g') or replace(x, 'a', 'b'). Characters: "
    "translate(x, '0123456789', ''). Parts: split_part(x, ' ', 1), substring(x, 1, 3)."
)


STRING_RULES: dict[type[exp.Expr], Rule] = {
    exp.Initcap: _initcap,
    exp.Reverse: _of_listed("reverse", lambda x: x[::-1], "The last characters: right(x, 3)."),
    exp.Translate: _translate,
    exp.MD5: _md5,
    exp.Repeat: _repeat,
    exp.Overlay: _overlay,
    exp.RegexpReplace: _regexp_replace,
}
