"""What sqlglot's Postgres grammar is taught before anything is parsed, and plain forms of the trees it makes.

Decides spelling only: what other systems write with a syntax of its own becomes the node that Postgres has for it, or a
call by name that the binder knows. Bounds of contributions, as ZetaSQL writes them (`ANON_SUM(x CLAMPED BETWEEN 0 AND
9)`, `SUM(x, contribution_bounds_per_group => (0, 9))`), stay on the aggregate as its argument `bounds`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from sqlglot import exp
from sqlglot.parsers.postgres import PostgresParser

from dpsql.errors import SYNTAX, Rejected

UNITS = ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "ISOWEEK", "MONTH", "QUARTER", "YEAR",
         "ISOYEAR", "DECADE")  # fmt: skip
_BOUNDED = {
    "SUM": exp.Sum, "AVG": exp.Avg, "VAR_POP": exp.VariancePop, "VAR_SAMP": exp.Variance, "VARIANCE": exp.Variance,
    "STDDEV_POP": exp.StddevPop, "STDDEV_SAMP": exp.StddevSamp, "STDDEV": exp.Stddev,
}  # fmt: skip
_ANON = {
    "ANON_COUNT": exp.Count, "ANON_SUM": exp.Sum, "ANON_AVG": exp.Avg, "ANON_VAR_POP": exp.VariancePop,
    "ANON_STDDEV_POP": exp.StddevPop,
}  # fmt: skip
CLAMPED = "clamped"
CALLED = "called"
"""Marks a call by the name that its class does not tell: VAR_SAMP and VARIANCE are one, but two names of columns."""


def _clamped_arguments(parser: Any) -> list[exp.Expr]:
    """The arguments of a call; behind the last one perhaps CLAMPED BETWEEN a AND b."""
    found: list[exp.Expr] = parser._parse_csv(parser._parse_lambda)
    if parser._match_text_seq("CLAMPED", "BETWEEN"):
        low = parser._parse_bitwise()
        parser._match_text_seq("AND")
        pair = exp.Tuple(expressions=[low, parser._parse_bitwise()])
        found.append(exp.Kwarg(this=exp.Var(this=CLAMPED), expression=pair))
    return found


def _aggregate(name: str, parser: Any) -> exp.Expr:
    """SUM(x), ANON_SUM(x), ...: the aggregate itself, as every one is private here, with its bounds."""
    return _call(name, _clamped_arguments(parser))


def _call(name: str, arguments: list[exp.Expr]) -> exp.Expr:
    kind = _ANON.get(name) or _BOUNDED.get(name)
    plain = [each for each in arguments if not isinstance(each, exp.Kwarg)]
    bounds = [each for each in arguments if isinstance(each, exp.Kwarg)]
    if kind is None or len(plain) != 1 or len(bounds) > 1:
        return exp.Anonymous(this=name, expressions=arguments)
    made = kind(this=plain[0])
    if name == "VAR_SAMP":
        made.meta[CALLED] = name.lower()
    if kind is exp.Count:
        made.set("big_int", True)
    if bounds:
        made.set("bounds", bounds[0])
    return made


def _percentile(name: str, arguments: list[exp.Expr]) -> exp.Expr:
    """PERCENTILE_CONT(x, 0.5) as BigQuery writes it; PERCENTILE_CONT(0.5) is Postgres's own."""
    if len(arguments) > 1 and not isinstance(arguments[-1], exp.Kwarg):
        return exp.Anonymous(this=name.replace("PERCENTILE", "QUANTILE"), expressions=arguments)
    if len(arguments) > 2:
        made = exp.Anonymous(this=name.replace("PERCENTILE", "QUANTILE"), expressions=arguments[:-1])
        made.set("bounds", arguments[-1])
        return made
    kind = exp.PercentileCont if name.endswith("CONT") else exp.PercentileDisc
    return kind.from_arg_list(arguments)


def _anonymous_choice(name: str, parser: Any) -> exp.Expr:
    arguments = _clamped_arguments(parser)
    if name == "ANON_QUANTILES":
        return exp.Anonymous(this=name, expressions=arguments)
    return _percentile(name.removeprefix("ANON_"), arguments)


def _is_unit(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and not node.args.get("table") and node.name.upper() in UNITS


def _named(name: str, arguments: list[exp.Expr]) -> exp.Expr:
    """A call by name, its arguments as written; the unit of time, first or else last of three, becomes a literal."""
    plain = list(arguments)
    if len(plain) == 3 and not isinstance(plain[0], exp.Literal):
        place = next((i for i in (0, 2) if _is_unit(plain[i])), None)
        if place is not None:
            plain[place] = exp.Literal.string(plain[place].name.lower())
    return exp.Anonymous(this=name, expressions=plain)


def _date_trunc(known: Callable[..., exp.Expr], arguments: list[exp.Expr]) -> exp.Expr:
    """DATE_TRUNC('month', x), and DATE_TRUNC(x, MONTH) as BigQuery writes it."""
    if len(arguments) == 2 and _is_unit(arguments[1]) and not isinstance(arguments[0], exp.Literal):
        arguments = [exp.Literal.string(arguments[1].name.lower()), arguments[0]]
    return known(arguments)


def teach() -> None:
    """Adds the spellings to sqlglot's Postgres parser, once."""
    PostgresParser.FUNCTION_PARSERS |= {name: partial(_aggregate, name) for name in (*_ANON, *_BOUNDED)}
    PostgresParser.FUNCTIONS |= {name: partial(_percentile, name) for name in ("PERCENTILE_CONT", "PERCENTILE_DISC")}
    PostgresParser.FUNCTIONS |= {name: partial(_named, name.lower()) for name in ("DATE_DIFF", "DATEDIFF", "DATEADD")}
    PostgresParser.FUNCTIONS["TIMESTAMP_DIFF"] = partial(_named, "date_diff")
    PostgresParser.FUNCTIONS["DATE_TRUNC"] = partial(_date_trunc, PostgresParser.FUNCTIONS["DATE_TRUNC"])
    for name in ("ANON_QUANTILES", "ANON_PERCENTILE_CONT", "ANON_PERCENTILE_DISC"):
        PostgresParser.FUNCTION_PARSERS[name] = partial(_anonymous_choice, name)


def plain(tree: exp.Expr) -> exp.Expr:
    """The tree with every spelling of a string as the same literal; changed in place."""
    for node in list(tree.find_all(exp.RawString, exp.ByteString, exp.UnicodeString, exp.National)):
        escape = node.args.get("escape")
        sign = escape.name if isinstance(escape, exp.Expr) else "\\"
        text = str(node.this) if not isinstance(node, exp.UnicodeString) else _unicode(str(node.this), sign)
        made = exp.Literal.string(text)
        made.meta.update(node.meta)
        if node is tree:
            return made
        node.replace(made)
    return tree


_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def _unicode(text: str, sign: str) -> str:
    r"""U&'d\0061t': each \XXXX or \+XXXXXX as its character; UESCAPE names another sign than the backslash.

    Raises Rejected 42601 for a code that is none.
    """
    code = re.compile(rf"{re.escape(sign)}({re.escape(sign)}|[0-9A-Fa-f]{{4}}|\+[0-9A-Fa-f]{{6}})")
    made = code.sub(lambda found: sign if found[1] == sign else _character(int(found[1].lstrip("+"), 16)), text)
    made = _PAIR.sub(lambda found: found[0].encode("utf-16", "surrogatepass").decode("utf-16"), made)
    if any("\ud800" <= letter <= "\udfff" for letter in made):
        raise Rejected("invalid Unicode surrogate pair", sqlstate=SYNTAX)
    return made


def _character(code: int) -> str:
    if not 0 < code <= 0x10FFFF:
        raise Rejected("invalid Unicode escape value", sqlstate=SYNTAX)
    return chr(code)
