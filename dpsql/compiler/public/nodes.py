"""sqlglot's nodes back to Postgres's function names and argument order: the list of functions that may be called.

sqlglot folds spellings (`date_part` and EXTRACT, `strpos` and POSITION) into one class; where the difference shows in
an output name, the length of the name as written tells them apart. An argument that is not listed is refused.
"""

from __future__ import annotations

from sqlglot import exp

from dpsql.compiler.public.refuse import only

_NODES: dict[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    exp.Abs: ("abs", ("this",)),
    exp.Ceil: ("ceil", ("this",)),
    exp.Floor: ("floor", ("this",)),
    exp.Round: ("round", ("this", "decimals")),
    exp.Trunc: ("trunc", ("this", "decimals")),
    exp.Sign: ("sign", ("this",)),
    exp.Sqrt: ("sqrt", ("this",)),
    exp.Cbrt: ("cbrt", ("this",)),
    exp.Exp: ("exp", ("this",)),
    exp.Ln: ("ln", ("this",)),
    exp.Log: ("log", ("this", "expression")),
    exp.Pow: ("power", ("this", "expression")),
    exp.Mod: ("mod", ("this", "expression")),
    exp.Lower: ("lower", ("this",)),
    exp.Upper: ("upper", ("this",)),
    exp.Length: ("length", ("this",)),
    exp.Left: ("left", ("this", "expression")),
    exp.Right: ("right", ("this", "expression")),
    exp.Substring: ("substring", ("this", "start", "length")),
    exp.StrPosition: ("strpos", ("this", "substr")),
    exp.Replace: ("replace", ("this", "expression", "replacement")),
    exp.SplitPart: ("split_part", ("this", "delimiter", "part_index")),
    exp.WidthBucket: ("width_bucket", ("this", "min_value", "max_value", "num_buckets")),
}


def function_of(node: exp.Expr) -> tuple[str, tuple[exp.Expr, ...]] | None:
    """Postgres's name and arguments of a plain function call; None if the node is none."""
    if isinstance(node, exp.Anonymous):
        only(node, "this", "expressions")
        return str(node.this).lower(), tuple(node.expressions)
    found = _NODES.get(type(node))
    if found is None:
        return None
    name, arguments = found
    only(node, *arguments)
    return name, tuple(node.args[a] for a in arguments if node.args.get(a) is not None)


def function_name(node: exp.Expr) -> str:
    """The name of an output column that is this call; empty if it is none."""
    found = _NODES.get(type(node))
    if found is not None:
        return found[0]
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    return _AGGREGATES.get(type(node), "")


_AGGREGATES: dict[type[exp.Expr], str] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.GroupConcat: "string_agg",
    exp.Coalesce: "coalesce",
    exp.Nullif: "nullif",
    exp.Greatest: "greatest",
    exp.Least: "least",
    exp.RowNumber: "row_number",
    exp.Rank: "rank",
}
