"""Conditions over private rows: comparisons, AND, OR, NOT, IN, BETWEEN, LIKE and simple regular expressions."""

from __future__ import annotations

from sqlglot import exp

from dpsql.compiler import patterns
from dpsql.compiler.algebra import Call, Case, Domain, Expr, Lit, Op
from dpsql.compiler.bind.context import (
    Context,
    Rule,
    as_type,
    bind,
    bind_condition,
    boolean,
    comparable,
    pair,
    text,
    typed,
)
from dpsql.compiler.bind.numbers import common_type
from dpsql.compiler.folding import has_unknown_case
from dpsql.compiler.parse import only, refuse, unwrap
from dpsql.errors import SYNTAX, TYPE_MISMATCH
from dpsql.types import BOOL, FLOAT4, FLOAT8, TEXT, Kind


def _comparison(op: Op) -> Rule:
    def rule(node: exp.Expr, context: Context) -> Expr:
        only(node, "expression")
        quantifier = _quantifier(node.args["expression"])
        if quantifier is not None:
            return _quantified(node, quantifier, context)
        left, right = _row(node.this), _row(node.args["expression"])
        if left is not None or right is not None:
            return _rows_compared(node, left, right, context)
        for nan, other in ((node.args["expression"], node.this), (node.this, node.args["expression"])):
            if op in ("eq", "ne") and _is_nan(nan):
                return _compared_with_nan(op, bind(other, context), node)
        a, b = pair(node.this, node.args["expression"], context)
        comparable(a, b, node)
        return boolean(op, a, b)

    return rule


def _is_nan(node: exp.Expr) -> bool:
    """'NaN'::float8, which is a value equal to itself in Postgres."""
    node = unwrap(node)
    named = isinstance(node, exp.Cast) and node.to.this in (exp.DataType.Type.DOUBLE, exp.DataType.Type.FLOAT)
    literal = unwrap(node.this) if named else None
    return isinstance(literal, exp.Literal) and literal.is_string and literal.name.strip().lower() == "nan"


def _compared_with_nan(op: Op, value: Expr, node: exp.Expr) -> Expr:
    """NaN has no value in arithmetic, so NULL there and not itself NULL."""
    if not value.type.is_float:
        raise refuse(f"a value of type {value.type} is never NaN: leave the comparison out", node)
    computed = Call("add", (value, Lit(0.0, FLOAT8)), FLOAT8, value.domain)
    is_nan = boolean("is_null", computed)
    branches = ((boolean("is_null", value), Lit(None, BOOL)),)
    return Case(branches, is_nan if op == "eq" else boolean("not", is_nan), BOOL, Domain(values=(False, True)))


def _quantifier(node: exp.Expr) -> str | None:
    """ "any" or "all", where the right side of an operator is such a list."""
    node = unwrap(node)
    if isinstance(node, exp.Any | exp.All):
        return "any" if isinstance(node, exp.Any) else "all"
    name = str(node.this).lower() if isinstance(node, exp.Anonymous) and node.expressions else ""
    return {"some": "any", "all": "all"}.get(name)


def _quantified(node: exp.Expr, quantifier: str, context: Context) -> Expr:
    """x op ANY (ARRAY[...]) or ALL: the operator for each element; = ANY is an IN list."""
    listed = unwrap(node.args["expression"])
    array = unwrap(listed.this if isinstance(listed, exp.Any | exp.All) else listed.expressions[0])
    if isinstance(array, exp.Tuple | exp.Array) and array.expressions:
        if isinstance(node, exp.EQ) and quantifier == "any":
            return _in(exp.In(this=node.this.copy(), expressions=[e.copy() for e in array.expressions]), context)
        made = []
        for element in array.expressions:
            single = node.copy()
            single.set("expression", element.copy())
            made.append(bind_condition(single, context))
        return boolean("or" if quantifier == "any" else "and", *made)
    raise refuse(
        f"{quantifier.upper()} takes ARRAY[...] of constants here",
        node,
        hint="Write x = ANY (ARRAY['a', 'b']), x IN ('a', 'b'), or x IN (SELECT ...).",
    )


def _row(node: exp.Expr) -> list[exp.Expr] | None:
    """The parts of (a, b) or ROW(a, b)."""
    node = unwrap(node)
    if isinstance(node, exp.Tuple):
        return node.expressions
    return node.expressions if isinstance(node, exp.Anonymous) and str(node.this).lower() == "row" else None


_STRICT: dict[type[exp.Expr], type[exp.Expr]] = {exp.LTE: exp.LT, exp.GTE: exp.GT}


def _rows_compared(node: exp.Expr, left: list[exp.Expr] | None, right: list[exp.Expr] | None, context: Context) -> Expr:
    """(a, b) < (c, d), as Postgres compares rows: by the first parts that differ."""
    if left is None or right is None or len(left) != len(right) or not left:
        raise refuse("both sides of a comparison of rows must have the same number of parts", node, sqlstate=SYNTAX)

    def compared(kind: type[exp.Expr], i: int) -> Expr:
        return bind_condition(kind(this=left[i].copy(), expression=right[i].copy()), context)

    places = range(len(left))
    if isinstance(node, exp.EQ | exp.NEQ):
        parts = [compared(type(node), i) for i in places]
        return boolean("and" if isinstance(node, exp.EQ) else "or", *parts) if len(parts) > 1 else parts[0]
    found = compared(type(node), len(left) - 1)
    for i in reversed(places[:-1]):
        found = boolean(
            "or", compared(_STRICT.get(type(node), type(node)), i), boolean("and", compared(exp.EQ, i), found)
        )
    return found


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
        return _in_query(node, context)
    if len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Values):
        rows = [_row(each) or [each] for each in node.expressions[0].expressions]
        listed = [exp.Tuple(expressions=[p.copy() for p in r]) if len(r) > 1 else r[0].copy() for r in rows]
        return _in(exp.In(this=node.this.copy(), expressions=listed, negate=node.args.get("negate")), context)
    parts = _row(node.this)
    if parts is not None:
        found = _row_in(node, parts, node.args["expressions"], context)
    else:
        found = _in_list(node, bind(node.this, context), context)
    return boolean("not", found) if node.args.get("negate") else found


def _in_query(node: exp.In, context: Context) -> Expr:
    if context.membership is None:
        raise refuse("IN (SELECT ...) is not supported here", node)
    found = context.membership(node.args["query"], bind(node.this, context))
    return boolean("not", found) if node.args.get("negate") else found


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
    if common_type([subject.type, *(o.type for o in options)], node) == FLOAT4:
        subject, *options = (as_type(each, FLOAT4, context, node) for each in (subject, *options))
    if all(isinstance(option, Lit) for option in options):
        return boolean("in", subject, *options)
    return boolean("or", *(boolean("eq", subject, option) for option in options))


def _like(op: Op) -> Rule:
    def rule(node: exp.Expr, context: Context) -> Expr:
        only(node, "expression", "negate")
        quantifier = _quantifier(node.args["expression"])
        if quantifier is not None:
            return _quantified(node, quantifier, context)
        pattern = _pattern(node.args["expression"], context)
        if pattern is not None and _dangling_escape(pattern):
            raise refuse("LIKE pattern must not end with an escape character", node, sqlstate="22025")
        found = _liked(op, node, pattern, context)
        return boolean("not", found) if node.args.get("negate") else found

    return rule


def _check_case(op: Op, pattern: str | None, node: exp.Expr) -> None:
    if op == "ilike" and has_unknown_case(pattern or ""):
        raise refuse(
            "ILIKE knows upper and lower case of Latin, Greek, Cyrillic and Armenian letters only",
            node,
            hint="Write LIKE, with the letters as they are stored.",
        )


def _liked(op: Op, node: exp.Expr, pattern: str | None, context: Context) -> Expr:
    _check_case(op, pattern, node)
    return boolean(op, text(node.this, context), Lit(pattern, TEXT))


def _pattern(node: exp.Expr, context: Context) -> str | None:
    """A constant pattern; None where it is NULL."""
    found = typed(bind(node, context), TEXT, node, context)
    if not isinstance(found, Lit) or found.type.kind is not Kind.TEXT:
        raise refuse("a pattern must be a constant text over private rows", node)
    return None if found.value is None else str(found.value)


def _escape(node: exp.Expr, context: Context) -> Expr:
    """x LIKE pattern ESCAPE 'c', and SIMILAR TO with one."""
    only(node, "expression")
    like, character = unwrap(node.this), _pattern(node.args["expression"], context)
    negated = isinstance(like, exp.Not)
    like = unwrap(like.this) if negated else like
    if character is None or len(character) > 1:
        raise refuse("invalid escape string: it must be empty or one character", node, sqlstate="22025")
    if isinstance(like, exp.SimilarTo):
        found = _similar(like, context, character)
    elif isinstance(like, exp.Like | exp.ILike):
        pattern = _pattern(like.args["expression"], context)
        plain = None if pattern is None else patterns.with_escape(pattern, character)
        if pattern is not None and plain is None:
            raise refuse("LIKE pattern must not end with an escape character", node, sqlstate="22025")
        found = _liked("ilike" if isinstance(like, exp.ILike) else "like", like, plain, context)
    else:
        raise refuse("ESCAPE belongs to LIKE or SIMILAR TO", node, sqlstate=SYNTAX)
    return boolean("not", found) if negated else found


def _similar(node: exp.Expr, context: Context, escape: str = "\\") -> Expr:
    """x SIMILAR TO pattern, written out as LIKE."""
    only(node, "expression")
    pattern = _pattern(node.args["expression"], context)
    return _any_of("like", node, pattern, None if pattern is None else patterns.of_similar(pattern, escape), context)


def _any_of(op: Op, node: exp.Expr, pattern: str | None, made: tuple[str, ...] | None, context: Context) -> Expr:
    """Whether the text is like one of these patterns; NULL where the pattern is."""
    if pattern is None:
        return boolean(op, text(node.this, context), Lit(None, TEXT))
    if made is None:
        raise refuse(
            "this pattern is no short list of LIKE patterns, so it is not available over private rows",
            node,
            hint="Plain text, ^, $, ., .*, ?, {n}, [abc], \\d and alternatives (a|b) are known. "
            "Others: LIKE 'a%' OR ..., left, right, split_part, LENGTH.",
        )
    subject = text(node.this, context)
    for each in made:
        _check_case(op, each, node)
    if op == "like" and not any(set(each) & set("\\%_") for each in made):
        return boolean("in", subject, *(Lit(each, TEXT) for each in made))
    found = [boolean(op, subject, Lit(each, TEXT)) for each in made]
    return boolean("or", *found) if len(found) > 1 else found[0]


def _dangling_escape(pattern: str) -> bool:
    return (len(pattern) - len(pattern.rstrip("\\"))) % 2 == 1


def _row_in(node: exp.Expr, subject: list[exp.Expr], options: list[exp.Expr], context: Context) -> Expr:
    """(a, b) IN ((1, 2), ...): one of the rows is equal in every part."""
    alternatives = []
    for option in options:
        row = _row(option)
        if row is None or len(row) != len(subject):
            raise refuse("both sides of IN must have the same number of parts", node, sqlstate=SYNTAX)
        parts = zip(subject, row, strict=True)
        equal = [exp.EQ(this=a.copy(), expression=b.copy()) for a, b in parts]
        alternatives.append(boolean("and", *(bind_condition(each, context) for each in equal)))
    return boolean("or", *alternatives)


def _starts_with(node: exp.Expr, context: Context) -> Expr:
    """starts_with(x, 'prefix'), as LIKE."""
    only(node, "expression")
    prefix = _pattern(node.args["expression"], context)
    return boolean(
        "like", text(node.this, context), Lit(None if prefix is None else patterns.escaped(prefix) + "%", TEXT)
    )


def _ends_with(node: exp.Expr, context: Context) -> Expr:
    """ends_with(x, 'suffix'), as LIKE."""
    only(node, "expression")
    suffix = _pattern(node.args["expression"], context)
    return boolean(
        "like", text(node.this, context), Lit(None if suffix is None else "%" + patterns.escaped(suffix), TEXT)
    )


def _contains(node: exp.Expr, context: Context) -> Expr:
    """contains(x, 'word'), as LIKE."""
    only(node, "expression", "json_scope")
    word = _pattern(node.args["expression"], context)
    like = None if word is None else f"%{patterns.escaped(word)}%"
    return boolean("like", text(node.this, context), Lit(like, TEXT))


def _regular(op: Op) -> Rule:
    """x ~ 'pattern', written out as LIKE; see `patterns`."""

    def rule(node: exp.Expr, context: Context) -> Expr:
        only(node, "expression")
        pattern = _pattern(node.args["expression"], context)
        return _any_of(op, node, pattern, None if pattern is None else patterns.of_regular(pattern), context)

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
    exp.Escape: _escape,
    exp.SimilarTo: _similar,
    exp.StartsWith: _starts_with,
    exp.EndsWith: _ends_with,
    exp.Contains: _contains,
    exp.RegexpLike: _regular("like"),
    exp.RegexpILike: _regular("ilike"),
}
