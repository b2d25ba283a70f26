"""sqlglot's nodes back to Postgres's function names and argument order.

sqlglot folds spellings (`strpos` and POSITION, `ceil` and `ceiling`) into one class; where the difference shows in an
output name, the length of the name as written tells them apart. An argument that is not listed is refused. What a
name means, and whether it exists at all, is decided elsewhere.
"""

from __future__ import annotations

from sqlglot import exp

from dpsql.compiler.grammar import CALLED
from dpsql.compiler.public.refuse import only

_NODES: dict[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    exp.Abs: ("abs", ("this",)),
    exp.Acos: ("acos", ("this",)),
    exp.Ascii: ("ascii", ("this",)),
    exp.Asin: ("asin", ("this",)),
    exp.Atan: ("atan", ("this",)),
    exp.Atan2: ("atan2", ("this", "expression")),
    exp.Cbrt: ("cbrt", ("this",)),
    exp.Ceil: ("ceil", ("this",)),
    exp.Cos: ("cos", ("this",)),
    exp.Degrees: ("degrees", ("this",)),
    exp.Exp: ("exp", ("this",)),
    exp.Floor: ("floor", ("this",)),
    exp.Hex: ("to_hex", ("this",)),
    exp.Initcap: ("initcap", ("this",)),
    exp.Left: ("left", ("this", "expression")),
    exp.Length: ("length", ("this",)),
    exp.Ln: ("ln", ("this",)),
    exp.Log: ("log", ("this", "expression")),
    exp.Lower: ("lower", ("this",)),
    exp.MD5: ("md5", ("this",)),
    exp.Mod: ("mod", ("this", "expression")),
    exp.Overlay: ("overlay", ("this", "expression", "from_", "for_")),
    exp.Pi: ("pi", ()),
    exp.Pow: ("power", ("this", "expression")),
    exp.Radians: ("radians", ("this",)),
    exp.RegexpReplace: ("regexp_replace", ("this", "expression", "replacement", "modifiers")),
    exp.Repeat: ("repeat", ("this", "times")),
    exp.Replace: ("replace", ("this", "expression", "replacement")),
    exp.Reverse: ("reverse", ("this",)),
    exp.Right: ("right", ("this", "expression")),
    exp.Round: ("round", ("this", "decimals")),
    exp.Sign: ("sign", ("this",)),
    exp.Sin: ("sin", ("this",)),
    exp.SplitPart: ("split_part", ("this", "delimiter", "part_index")),
    exp.Sqrt: ("sqrt", ("this",)),
    exp.StartsWith: ("starts_with", ("this", "expression")),
    exp.StrPosition: ("strpos", ("this", "substr")),
    exp.Substring: ("substring", ("this", "start", "length")),
    exp.Tan: ("tan", ("this",)),
    exp.TimestampFromParts: ("make_timestamp", ("year", "month", "day", "hour", "min", "sec")),
    exp.Translate: ("translate", ("this", "from_", "to")),
    exp.Trunc: ("trunc", ("this", "decimals")),
    exp.Upper: ("upper", ("this",)),
    exp.UnixToTime: ("to_timestamp", ("this",)),
    exp.WidthBucket: ("width_bucket", ("this", "min_value", "max_value", "num_buckets")),
}

_FLAGS: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Initcap: ("expression",),
    exp.RegexpReplace: ("single_replace",),
}
"""Arguments that sqlglot adds by itself."""

_OTHER_NAMES: dict[type[exp.Expr], str] = {
    exp.ApproxQuantile: "approx_quantile",
    exp.Avg: "avg",
    exp.Coalesce: "coalesce",
    exp.Concat: "concat",
    exp.ConcatWs: "concat_ws",
    exp.Corr: "corr",
    exp.Count: "count",
    exp.CovarPop: "covar_pop",
    exp.CovarSamp: "covar_samp",
    exp.CumeDist: "cume_dist",
    exp.CurrentDate: "current_date",
    exp.CurrentTimestamp: "current_timestamp",
    exp.DateBin: "date_bin",
    exp.DenseRank: "dense_rank",
    exp.Extract: "extract",
    exp.FirstValue: "first_value",
    exp.Greatest: "greatest",
    exp.Grouping: "grouping",
    exp.GroupConcat: "string_agg",
    exp.Lag: "lag",
    exp.LastValue: "last_value",
    exp.Lead: "lead",
    exp.Least: "least",
    exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or",
    exp.Max: "max",
    exp.Median: "median",
    exp.Min: "min",
    exp.Mode: "mode",
    exp.NthValue: "nth_value",
    exp.Ntile: "ntile",
    exp.Nullif: "nullif",
    exp.PercentileCont: "percentile_cont",
    exp.PercentileDisc: "percentile_disc",
    exp.PercentRank: "percent_rank",
    exp.Quantile: "quantile",
    exp.Rank: "rank",
    exp.RegrSlope: "regr_slope",
    exp.RegrIntercept: "regr_intercept",
    exp.RegrR2: "regr_r2",
    exp.RegrCount: "regr_count",
    exp.RegrAvgx: "regr_avgx",
    exp.RegrAvgy: "regr_avgy",
    exp.RegrSxx: "regr_sxx",
    exp.RegrSyy: "regr_syy",
    exp.RegrSxy: "regr_sxy",
    exp.ApproxDistinct: "approx_count_distinct",
    exp.CountIf: "count_if",
    exp.RowNumber: "row_number",
    exp.Stddev: "stddev",
    exp.StddevPop: "stddev_pop",
    exp.StddevSamp: "stddev_samp",
    exp.StrToDate: "to_date",
    exp.StrToTime: "to_timestamp",
    exp.Sum: "sum",
    exp.TimestampTrunc: "date_trunc",
    exp.TimeToStr: "to_char",
    exp.Variance: "variance",
    exp.VariancePop: "var_pop",
}

_SPELLINGS = {
    ("ceil", 7): "ceiling",
    ("power", 3): "pow",
    ("substring", 6): "substr",
    ("length", 11): "char_length",
    ("length", 16): "character_length",
    ("current_timestamp", 3): "now",
    ("variance", 8): "variance",
    ("variance", 7): "var_samp",
    ("stddev", 11): "stddev_samp",
    ("log", 5): "log10",
    ("bool_and", 5): "every",
    ("variance", 3): "var",
    ("stddev", 3): "std",
}
_OPERATORS = (exp.Mod, exp.Pow, exp.Sqrt, exp.Cbrt)


def written_length(node: exp.Expr) -> int | None:
    """Length of the function's name as written; None for operators and special syntax."""
    meta = node._meta or {}
    return meta["end"] - meta["start"] + 1 if "start" in meta and "end" in meta else None


def function_of(node: exp.Expr) -> tuple[str, tuple[exp.Expr, ...]] | None:
    """Postgres's name and arguments of a plain function call; None if the node is none."""
    if isinstance(node, exp.Anonymous):
        only(node, "this", "expressions")
        return str(node.this).lower(), tuple(node.expressions)
    if isinstance(node, exp.Trim):
        only(node, "this", "expression", "position")
        return trim_name(node), tuple(a for a in (node.this, node.args.get("expression")) if a is not None)
    if isinstance(node, exp.Pad):
        only(node, "this", "expression", "fill_pattern", "is_left")
        padded = (node.this, node.expression, node.args.get("fill_pattern"))
        return "lpad" if node.args.get("is_left") else "rpad", tuple(a for a in padded if a is not None)
    if isinstance(node, exp.Chr):
        only(node, "expressions")
        return "chr", tuple(node.expressions)
    found = _NODES.get(type(node))
    if found is None:
        return None
    name, arguments = found
    only(node, *arguments, *_FLAGS.get(type(node), ()))
    return name, tuple(node.args[a] for a in arguments if node.args.get(a) is not None)


def trim_name(node: exp.Expr) -> str:
    return {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or ""), "btrim")


def function_name(node: exp.Expr) -> str:
    """The name of an output column that is this call; empty if it is none."""
    length = written_length(node)
    if CALLED in node.meta:
        return str(node.meta[CALLED])
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    if isinstance(node, _OPERATORS) and length is None:
        return ""
    if isinstance(node, exp.StrPosition):
        return "strpos" if length else "position"
    if isinstance(node, exp.Trim):
        return trim_name(node)
    if isinstance(node, exp.Pad):
        return "lpad" if node.args.get("is_left") else "rpad"
    if isinstance(node, exp.Chr):
        return "chr"
    name = _NODES[type(node)][0] if type(node) in _NODES else _OTHER_NAMES.get(type(node), "")
    return _SPELLINGS.get((name, length or 0), name)
