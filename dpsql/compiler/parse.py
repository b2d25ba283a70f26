"""Text to one sqlglot query tree, and the few questions about raw nodes that every later stage asks.

The text has been classified and its size checked by `statements`. Comments are dropped here; nothing the client wrote
is ever sent on: trees are only read.
"""

from __future__ import annotations

import logging
import re
from itertools import pairwise

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.parsers.postgres import PostgresParser

from dpsql.compiler import grammar
from dpsql.compiler.tokens import TokenKind, scan
from dpsql.errors import NOT_SUPPORTED, SYNTAX, TOO_COMPLEX, Rejected

MAX_HEIGHT = 150

logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
# sqlglot would drop the clock of '2 days 03:04:05', and read date_part as EXTRACT, which has another type.
exp.INTERVAL_STRING_RE = re.compile(r"\A\s*(-?[0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z]+)\s*\Z")
PostgresParser.FUNCTION_PARSERS.pop("DATE_PART", None)
PostgresParser.FUNCTIONS |= {
    "EVERY": exp.LogicalAnd.from_arg_list,
    "VAR": exp.Variance.from_arg_list,
    "STD": exp.Stddev.from_arg_list,
}
grammar.teach()


def parse(text: str) -> exp.Query:
    """One query; raises `Rejected` 42601 with the position of the first syntax error."""
    _check_strings(text)
    try:
        trees = sqlglot.parse(_readable(text), read="postgres")
    except SqlglotError as error:
        raise _syntax_error(error, text) from None
    except RecursionError:
        raise Rejected(f"The statement is nested more than {MAX_HEIGHT} levels deep.", sqlstate=TOO_COMPLEX) from None
    except (AssertionError, AttributeError, LookupError, TypeError, ValueError):  # sqlglot's own, of what it half reads
        raise Rejected("The statement cannot be read.", sqlstate=SYNTAX, hint=_PLAINER) from None
    found = [tree for tree in trees if tree is not None]
    if len(found) != 1:
        raise Rejected("One statement is expected here.", sqlstate=SYNTAX)
    tree = found[0]
    _check_height(tree)
    _check_comparisons(tree)
    _check_whole(tree)
    tree = grammar.plain(tree)
    while isinstance(tree, exp.Subquery | exp.Paren) and not tree.args.get("alias") and _is_bare(tree):
        tree = tree.this
    if not isinstance(tree, exp.Query):
        raise Rejected(
            "Only SELECT statements are answered.",
            sqlstate=NOT_SUPPORTED,
            hint="Write SELECT ... FROM ...; data and definitions cannot be changed through this proxy.",
        )
    return tree


_PLAINER = "Write it more plainly, with each interval as INTERVAL '1 day' and function arguments by position."
_TIGHT_PARAMETER = re.compile(r"\$[0-9]+[^\s$]*\$")


def _readable(text: str) -> str:
    """The text with parameters as `@1`, which sqlglot reads alike: it takes `$1,$` for the start of a string."""
    if _TIGHT_PARAMETER.search(text) is None:
        return text
    letters = list(text)
    for token in scan(text).tokens:
        if token.kind is TokenKind.PARAMETER:
            letters[token.start] = "@"
    return "".join(letters)


def _check_strings(text: str) -> None:
    """Two strings beside each other are one only across a line end; sqlglot joins all."""
    if text.count("'") < 4:
        return
    tokens = scan(text).tokens
    for one, next_ in pairwise(tokens):
        if one.kind is next_.kind is TokenKind.STRING and "\n" not in text[one.end : next_.start]:
            near = text[next_.start : next_.end][:40]
            raise Rejected(f'syntax error at or near "{near}"', sqlstate=SYNTAX, position=next_.start + 1)


def _check_height(tree: exp.Expr) -> None:
    """Every stage recurses over the tree, so its height is bounded here; a chain of AND or OR counts once."""
    stack = [(tree, 0)]
    while stack:
        node, height = stack.pop()
        if height > MAX_HEIGHT:
            raise Rejected(
                f"The statement is nested more than {MAX_HEIGHT} levels deep.",
                sqlstate=TOO_COMPLEX,
                hint="A long sum counts one level a term: put parts of it into a subquery.",
                position=position(node),
            )
        chained = type(node) if isinstance(node, exp.Connector) else None
        for child in node.iter_expressions():
            stack.append((child, height if type(child) is chained else height + 1))


_NUMBER = re.compile(r"[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?")


def _check_whole(tree: exp.Expr) -> None:
    """sqlglot reads calls without the arguments that they must have, IN without a list, and nothing as an argument."""
    for node in tree.walk():
        empty = isinstance(node, exp.In) and len([v for v in node.args.values() if v]) < 2
        nothing = isinstance(node, exp.Order) and node.this is None and isinstance(node.parent, exp.AggFunc)
        if isinstance(node, exp.Literal) and not node.is_string and _NUMBER.fullmatch(str(node.this)) is None:
            raise refuse(f'syntax error at or near "{str(node.this)[:60]}"', node, sqlstate=SYNTAX)
        lacking = any(node.args.get(key) in (None, []) for key, needed in node.arg_types.items() if needed)
        holes = any(None in value for value in node.args.values() if isinstance(value, list))
        if lacking or holes or empty or nothing:
            at = node if position(node) is not None else node.parent or node
            name = node.sql_name() if isinstance(node, exp.Func) else node.key
            raise refuse(f"{name.upper()} lacks an argument", at, sqlstate=SYNTAX)


_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


def _check_comparisons(tree: exp.Expr) -> None:
    """Comparisons do not chain: `1 < 2 = TRUE` is no SQL of Postgres, though sqlglot reads it."""
    for node in tree.find_all(*_COMPARISONS):
        for side in (node.this, node.args.get("expression")):
            if isinstance(side, _COMPARISONS):
                hint = "Comparisons do not chain: write (a < b) = c, or a < b AND b < c."
                raise refuse("syntax error: a comparison of comparisons", side, sqlstate=SYNTAX, hint=hint)


def _is_bare(tree: exp.Expr) -> bool:
    return all(not value for key, value in tree.args.items() if key != "this")


def _syntax_error(error: SqlglotError, text: str) -> Rejected:
    first = (getattr(error, "errors", None) or [{}])[0]
    line, column = first.get("line"), first.get("col")
    position = None
    if isinstance(line, int) and isinstance(column, int):
        starts = [0, *(i + 1 for i, c in enumerate(text) if c == "\n")]
        if line <= len(starts):
            position = min(starts[line - 1] + max(column - len(first.get("highlight") or "") + 1, 1), len(text) + 1)
    near = first.get("highlight")
    message = f'syntax error at or near "{near}"' if near else "syntax error"
    top = re.search(r"\bselect\s+top\s*\(?\s*(\d+)", text, re.IGNORECASE)
    hint = f"Write LIMIT {top[1]} at the end." if top is not None else None
    if re.search(r"\border\s+by\b[^()]*\busing\s*[<>~]", text, re.IGNORECASE):
        hint = "Write ORDER BY x for USING <, and ORDER BY x DESC for USING >."
    return Rejected(message, sqlstate=SYNTAX, position=position, hint=hint)


def name_of(identifier: exp.Expr | str | None) -> str:
    """An identifier as Postgres reads it: folded to lower case unless quoted."""
    if isinstance(identifier, exp.Identifier):
        text = str(identifier.this)
        return text if identifier.args.get("quoted") else text.lower()
    return "" if identifier is None else str(identifier)


def position(node: exp.Expr) -> int | None:
    """1-based offset of the first character of a node that the tokenizer has placed."""
    starts = [n.meta["start"] for n in node.walk() if "start" in n.meta]
    return min(starts) + 1 if starts else None


def refuse(message: str, node: exp.Expr, *, sqlstate: str = NOT_SUPPORTED, hint: str | None = None) -> Rejected:
    """A refusal that points at the node."""
    return Rejected(message, sqlstate=sqlstate, hint=hint, position=position(node))


PIVOT_HINT = "One column for each value: AVG(x) FILTER (WHERE k = 'a') AS a, AVG(x) FILTER (WHERE k = 'b') AS b ..."
_INSTEAD: dict[tuple[type[exp.Expr], str], str] = {
    (exp.Table, "sample"): "Chance cannot choose rows here. Ask of all rows: the answer's noise is known.",
    (exp.Table, "only"): "Leave ONLY out: the rows of all parts of a table are asked.",
    (
        exp.Distinct,
        "on",
    ): "Which row of a group comes first is no aggregate. Write GROUP BY with MIN(x) or MAX(x); over GROUP BY, "
    "DISTINCT ON works.",
    (exp.Star, "except_"): "Name the columns that you want.",
    **{(kind, "pivots"): PIVOT_HINT for kind in (exp.Table, exp.Subquery)},
}
_WORDS = {"on": "DISTINCT ON", "pivots": "PIVOT", "sample": "TABLESAMPLE"}


def only(node: exp.Expr, *allowed: str) -> None:
    """Refuses a node that carries an argument its caller does not read: nothing is silently ignored."""
    for key, value in node.args.items():
        if value and key not in allowed and key not in ("this", "_type"):
            word = _WORDS.get(key) or key.strip("_").replace("_", " ").upper()
            raise refuse(f"{word} is not supported here.", node, hint=_INSTEAD.get((type(node), key)))


def written(node: exp.Expr) -> str:
    """A construct by the name that the client wrote, or would write in Postgres."""
    try:
        text = node.sql("postgres", comments=False)
    except (AttributeError, LookupError, TypeError, ValueError):  # sqlglot's own, of a call without arguments
        return node.key
    call = re.match(r"[A-Za-z_][A-Za-z0-9_]*(?=\()", text)
    return call[0].lower() if call else f'"{text[:60]}"'


def unwrap(node: exp.Expr) -> exp.Expr:
    """Without redundant parentheses."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node
