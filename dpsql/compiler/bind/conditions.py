"""Conditions over private rows: comparisons, AND, OR, NOT, IN, BETWEEN, LIKE and simple regular expressions."""

from __future__ import annotations

import re

from sqlglot import exp

from dpsql.compiler.algebra import Expr, Lit, Op
from dpsql.compiler.bind.context import (
    Context,
    Rule,
    bind,
    bind_condition,
    boolean,
    comparable,
    pair,
    text,
    typed,
)
from dpsql.compiler.parse import only, refuse, unwrap
from dpsql.errors import SYNTAX, TYPE_MISMATCH
from dpsql.types import BOOL, TEXT, Kind


def _comparison(op: Op) -> Rule:
    def rule(node: exp.Expr, context: Context) -> Expr:
        only(node, "expression")
        other = unwrap(node.args["expression"])
        if isinstance(other, exp.Any) and op == "eq":
            return _any(node, other, context)
        a, b = pair(node.this, node.args["expression"], context)
        comparable(a, b, node)
        return boolean(op, a, b)

    return rule


def _any(node: exp.Expr, other: exp.Any, context: Context) -> Expr:
    """x = ANY(ARRAY[...]) is an IN list."""
    array = unwrap(other.this)
    if isinstance(array, exp.Array):
        return _in(exp.In(this=node.this.copy(), expressions=[e.copy() for e in array.expressions]), context)
    raise refuse("= ANY(...) takes ARRAY[...] of constants here", node)


def _connector(op: Op) -> Rule:
    def rule(node: exp.Expr, context: Context) -> Expr:
        only(node, "expression")
        parts, stack = [], [node]
        while stack:
            part = stack.pop()
            if type(part) is type(node):
                stack += [part.args["expression"], part.this]
            else:
                parts.append(bind_condition(part, context))
        return boolean(op, *parts)

    return rule


def _not(node: exp.Expr, context: Context) -> Expr:
    only(node)
    inner = unwrap(node.this)
    if isinstance(inner, exp.In) and inner.args.get("query") is not None:
        return _in_query(inner, context, negated=True)
    return boolean("not", bind_condition(node.this, context))


def _is(node: exp.Expr, context: Context) -> Expr:
    only(node, "expression", "negate")
    other = node.args["expression"]
    inner = bind(node.this, context)
    if isinstance(other, exp.Null):
        found = boolean("is_null", typed(inner, TEXT, node.this, context))
    elif isinstance(other, exp.Boolean):
        found = boolean("is_true" if other.this else "is_false", typed(inner, BOOL, node.this, context))
        if found.args[0].type.kind is not Kind.BOOL:
            raise refuse("IS TRUE and IS FALSE take a boolean", node, sqlstate=TYPE_MISMATCH)
    else:
        raise refuse("IS takes NULL, TRUE, FALSE or DISTINCT FROM", node)
    return boolean("not", found) if node.args.get("negate") else found


def _distinct_from(negated: bool) -> Rule:
    def rule(node: exp.Expr, context: Context) -> Expr:
        only(node, "expression")
        a, b = pair(node.this, node.args["expression"], context)
        comparable(a, b, node)
        found = boolean("distinct", a, b)
        return boolean("not", found) if negated else found

    return rule


def _between(node: exp.Expr, context: Context) -> Expr:
    only(node, "low", "high", "negate", "symmetric")
    a, low = pair(node.this, node.args["low"], context)
    b, high = pair(node.this, node.args["high"], context)
    comparable(a, low, node)
    comparable(b, high, node)
    found = boolean("and", boolean("ge", a, low), boolean("le", b, high))
    if node.args.get("symmetric"):
        found = boolean("or", found, boolean("and", boolean("ge", b, high), boolean("le", a, low)))
    return boolean("not", found) if node.args.get("negate") else found


def _in(node: exp.Expr, context: Context) -> Expr:
    assert isinstance(node, exp.In)
    only(node, "expressions", "query", "negate")
    if node.args.get("query") is not None:
        return _in_query(node, context, negated=bool(node.args.get("negate")))
    rows = unwrap(node.this)
    if isinstance(rows, exp.Tuple):
        found = _row_in(node, rows, node.args["expressions"], context)
    else:
        found = _in_list(node, bind(node.this, context), context)
    return boolean("not", found) if node.args.get("negate") else found


def _in_query(node: exp.In, context: Context, *, negated: bool) -> Expr:
    if context.membership is None:
        raise refuse("IN (SELECT ...) is not supported here", node)
    return context.membership(node.args["query"], bind(node.this, context), negated)


def _exists(node: exp.Expr, context: Context) -> Expr:
    if context.exists is None or not isinstance(node, exp.Exists):
        raise refuse("EXISTS is not supported here", node)
    return context.exists(node)


def _in_list(node: exp.Expr, subject: Expr, context: Context) -> Expr:
    options = []
    if not node.args["expressions"]:
        raise refuse("IN takes at least one value", node, sqlstate=SYNTAX)
    for option in node.args["expressions"]:
        bound = typed(bind(option, context), subject.type, option, context)
        comparable(subject, bound, option)
        options.append(bound)
    if all(isinstance(option, Lit) for option in options):
        return boolean("in", subject, *options)
    return boolean("or", *(boolean("eq", subject, option) for option in options))


def _like(op: Op) -> Rule:
    def rule(node: exp.Expr, context: Context) -> Expr:
        only(node, "expression", "negate")
        subject = typed(bind(node.this, context), TEXT, node.this, context)
        pattern = typed(bind(node.args["expression"], context), TEXT, node, context)
        if subject.type.kind is not Kind.TEXT or not isinstance(pattern, Lit):
            raise refuse("LIKE takes a text column and a constant pattern", node)
        text = str(pattern.value) if pattern.value is not None else ""
        if _dangling_escape(text):
            raise refuse("LIKE pattern must not end with an escape character", node, sqlstate="22025")
        if op == "ilike" and not text.isascii():
            raise refuse("ILIKE takes ASCII patterns only", node)
        found = boolean(op, subject, pattern)
        return boolean("not", found) if node.args.get("negate") else found

    return rule


def _dangling_escape(pattern: str) -> bool:
    return (len(pattern) - len(pattern.rstrip("\\"))) % 2 == 1


def _row_in(node: exp.Expr, subject: exp.Tuple, options: list[exp.Expr], context: Context) -> Expr:
    """(a, b) IN ((1, 2), ...): one of the rows is equal in every part."""
    alternatives = []
    for option in options:
        if not isinstance(option, exp.Tuple) or len(option.expressions) != len(subject.expressions):
            raise refuse("both sides of IN must have the same number of parts", node, sqlstate=SYNTAX)
        parts = zip(subject.expressions, option.expressions, strict=True)
        equal = [exp.EQ(this=a.copy(), expression=b.copy()) for a, b in parts]
        alternatives.append(boolean("and", *(bind_condition(each, context) for each in equal)))
    return boolean("or", *alternatives)


def _starts_with(node: exp.Expr, context: Context) -> Expr:
    """starts_with(x, 'prefix'), as LIKE."""
    only(node, "expression")
    prefix = typed(bind(node.args["expression"], context), TEXT, node, context)
    if not isinstance(prefix, Lit):
        raise refuse("starts_with takes a constant prefix", node)
    pattern = None if prefix.value is None else _escaped(str(prefix.value)) + "%"
    return boolean("like", text(node.this, context), Lit(pattern, TEXT))


def _escaped(word: str) -> str:
    """Literal text inside a LIKE pattern."""
    return re.sub(r"([\\%_])", r"\\\1", word)


_SIMPLE = re.compile(r"(\^?)((?:[A-Za-z0-9 _%@#,:;<>=!/'\"&~-]|\\[.$^*+?()|\[\]{}/-])*)(\$?)")


def _regular(op: Op) -> Rule:
    """x ~ 'pattern' of plain characters, perhaps anchored with ^ and $, as LIKE."""

    def rule(node: exp.Expr, context: Context) -> Expr:
        only(node, "expression")
        pattern = typed(bind(node.args["expression"], context), TEXT, node, context)
        word = pattern.value if isinstance(pattern, Lit) else None
        found = _SIMPLE.fullmatch(word) if isinstance(word, str) and word.isascii() else None
        if found is None:
            raise refuse(
                "regular expressions over private rows may only be plain characters between ^ and $",
                node,
                hint="Write LIKE 'a%' or ILIKE, joined by OR where there are several.",
            )
        before, body, after = found.groups()
        like = _escaped(re.sub(r"\\(.)", r"\1", body))
        made = ("" if before else "%") + like + ("" if after else "%")
        return boolean(op, text(node.this, context), Lit(made, TEXT))

    return rule


CONDITIONS: dict[type[exp.Expr], Rule] = {
    exp.And: _connector("and"),
    exp.Or: _connector("or"),
    exp.Not: _not,
    exp.EQ: _comparison("eq"),
    exp.NEQ: _comparison("ne"),
    exp.LT: _comparison("lt"),
    exp.LTE: _comparison("le"),
    exp.GT: _comparison("gt"),
    exp.GTE: _comparison("ge"),
    exp.Is: _is,
    exp.NullSafeEQ: _distinct_from(negated=True),
    exp.NullSafeNEQ: _distinct_from(negated=False),
    exp.Between: _between,
    exp.In: _in,
    exp.Exists: _exists,
    exp.Like: _like("like"),
    exp.ILike: _like("ilike"),
    exp.StartsWith: _starts_with,
    exp.RegexpLike: _regular("like"),
    exp.RegexpILike: _regular("ilike"),
}
