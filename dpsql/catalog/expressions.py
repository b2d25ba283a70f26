"""Postgres's functions, casts and operators in a catalog query, as DuckDB and functions.sql have them.

Decides by allow-lists which of them exist. What the names stand for is said in functions.sql.
"""

from __future__ import annotations

from sqlglot import exp

from dpsql.catalog.functions import MACROS, PREFIX, words
from dpsql.catalog.routing import function_name, reg_type, relation
from dpsql.catalog.snapshot import PG_CATALOG, snapshot
from dpsql.compiler.parse import name_of
from dpsql.errors import UNDEFINED_FUNCTION, UNDEFINED_OBJECT, Rejected

_CONVERSIONS = {"array_size": "array_length"}


def expression(node: exp.Expr) -> exp.Expr:
    match node:
        case exp.Operator():
            return _operator(node)
        case exp.Collate(this=exp.Expr() as inner):
            return inner
        case exp.Cast():
            return _cast(node)
        case exp.Any() | exp.All():
            return _quantified(node)
        case exp.Anonymous() | exp.Func() if (name := function_name(node)) in MACROS or name in _CONVERSIONS:
            return _macro(node, _CONVERSIONS.get(name, name))
        case exp.Anonymous() if function_name(node) == "json_build_object":
            return _json_object(node)
        case exp.Bracket() if _column_type(node.this) in _VECTORS:
            return _from_zero(node)
        case exp.Anonymous() if function_name(node) == "generate_subscripts" and not isinstance(node.parent, exp.Table):
            return _subscripts(node)
        case exp.EQ() | exp.NEQ():
            return _compared(node)
        case exp.Bracket() if _column_type(node.this) in _VECTORS:
            return _counted_from_zero(node)
        case exp.Div():
            return _division(node)
        case exp.Column() if name_of(node.this) == "tableoid":
            return _table_oid(node)
        case _:
            return node


def _macro(node: exp.Expr, name: str) -> exp.Expr:
    if name in ("array_lower", "array_upper") and _column_type(_macro_arguments(node)[0]) in _VECTORS:
        name = name.replace("array", "vector")
    if name == "pg_partition_ancestors" and not isinstance(node.parent, exp.Table):
        name = "pg_partition_ancestors_value"
    return exp.Anonymous(this=f"{PREFIX}{name}", expressions=[item.copy() for item in _macro_arguments(node)])


def _json_object(node: exp.Anonymous) -> exp.Expr:
    """DuckDB's json_object, whose keys must be text."""
    text = exp.DataType.build("VARCHAR", dialect="duckdb")
    keys = [exp.func("COALESCE", exp.cast(key.copy(), text), exp.Literal.string("")) for key in node.expressions[::2]]
    items = [item for pair in zip(keys, node.expressions[1::2], strict=False) for item in pair]
    return exp.Anonymous(this="json_object", expressions=items)


def _compared(node: exp.EQ | exp.NEQ) -> exp.Expr:
    """A regproc column compared with 0: here such columns hold names, and '-' for none."""
    sides = (node.this, node.expression)
    called = [side.name.lower() for side in sides]
    for side, name, other in zip(sides, called, reversed(called), strict=True):
        # Of two reg values one is a number already: then both are compared as numbers.
        if (
            isinstance(side, exp.Anonymous)
            and name.startswith(f"{PREFIX}reg")
            and name.endswith("_name")
            and other.startswith(f"{PREFIX}to_reg")
        ):
            side.replace(side.expressions[0])
    if any(_column_type(side) == _REGPROC for side in sides):
        for side in sides:
            if isinstance(side, exp.Literal) and not side.is_string and side.this == "0":
                side.replace(exp.Literal.string("-"))
            elif isinstance(side, exp.Column) and name_of(side.this) == "oid" and _is_of(side, "pg_proc"):
                side.set("this", exp.to_identifier("proname"))
    return node


def _is_of(column: exp.Column, name: str) -> bool:
    """Whether a column is qualified with a relation of this name, or its alias."""
    select, qualifier = column.find_ancestor(exp.Select), name_of(column.args.get("table"))
    tables = select.find_all(exp.Table) if select is not None else ()
    return any(name_of(table.this) == name and table.alias_or_name == qualifier for table in tables)


def _division(node: exp.Div) -> exp.Expr:
    """Of whole numbers without the rest, as in Postgres; by zero an error, where DuckDB says infinity."""
    if _is_whole(node.this) and _is_whole(node.expression):
        return exp.IntDiv(this=node.this.copy(), expression=node.expression.copy())
    divisor = exp.Anonymous(this=f"{PREFIX}nonzero", expressions=[node.expression.copy()])
    return exp.Div(this=node.this.copy(), expression=divisor)


def _is_whole(node: exp.Expr) -> bool:
    """Whether an expression is an integer, as far as its text tells."""
    match node:
        case exp.Literal():
            return not node.is_string and node.is_int
        case exp.Column():
            return _column_type(node) in _WHOLE
        case exp.Cast():
            return node.is_type(*exp.DataType.INTEGER_TYPES)
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Mod() | exp.IntDiv():
            return _is_whole(node.this) and _is_whole(node.expression)
        case exp.Paren() | exp.Neg():
            return _is_whole(node.this)
        case _:
            return isinstance(node, exp.Count | exp.Length)


_WHOLE = (20, 21, 23, 26)
_REGPROC = 24


_VECTORS = (22, 30)
"""int2vector and oidvector, which count from 0."""


def _from_zero(node: exp.Bracket) -> exp.Expr:
    index = node.expressions[0]
    # A literal stands here counted from 0 already, less one.
    literal = index.this if isinstance(index, exp.Neg) else index
    if isinstance(literal, exp.Literal) and literal.is_int:
        number = int(literal.this) * (-1 if literal is not index else 1)
        return exp.Bracket(this=node.this.copy(), expressions=[exp.Literal.number(number + 1)])
    return exp.Bracket(this=node.this.copy(), expressions=[exp.Paren(this=index.copy() + 1)])


def _subscripts(node: exp.Anonymous) -> exp.Expr:
    if node.expressions and _column_type(node.expressions[0]) in _VECTORS:
        return exp.Paren(this=exp.Sub(this=node.copy(), expression=exp.Literal.number(1)))
    return node


def _counted_from_zero(node: exp.Bracket) -> exp.Expr:
    """An element of a vector such as indkey, whose first has the number 0."""
    made = node.copy()
    one = exp.Literal.number(1)
    made.set("expressions", [exp.Add(this=exp.Paren(this=item), expression=one.copy()) for item in made.expressions])
    return made


def _column_type(node: exp.Expr) -> int | None:
    return snapshot().column_types.get(name_of(node.this)) if isinstance(node, exp.Column) else None


def _table_oid(node: exp.Column) -> exp.Expr:
    """The OID of the relation that a row comes from."""
    select = node.find_ancestor(exp.Select)
    for table in select.find_all(exp.Table) if select is not None else ():
        found = relation(table)
        if found is not None and name_of(node.args.get("table")) in ("", table.alias_or_name):
            return exp.Literal.number(found.oid)
    return node


def _macro_arguments(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Anonymous):
        return list(node.expressions)
    arguments: list[exp.Expr] = []
    for key in node.arg_types:
        value = node.args.get(key)
        if isinstance(value, exp.Expr):
            arguments.append(value)
        elif isinstance(value, list):
            arguments += [item for item in value if isinstance(item, exp.Expr)]
    return arguments


_OPERATORS: dict[str, tuple[type[exp.Binary], bool]] = {
    "~": (exp.RegexpLike, False),
    "~*": (exp.RegexpILike, False),
    "!~": (exp.RegexpLike, True),
    "!~*": (exp.RegexpILike, True),
    "~~": (exp.Like, False),
    "!~~": (exp.Like, True),
    "=": (exp.EQ, False),
    "<>": (exp.NEQ, False),
}


def _operator(node: exp.Operator) -> exp.Expr:
    name = str(node.args["operator"]).lower().removeprefix(f"{PG_CATALOG}.")
    if name not in _OPERATORS:
        raise Rejected(f"operator {name} is not supported in catalog queries", sqlstate=UNDEFINED_FUNCTION)
    kind, negated = _OPERATORS[name]
    found = kind(this=node.this.copy(), expression=node.expression.copy())
    return exp.not_(found) if negated else found


_TYPES = {
    "name": "VARCHAR",
    "char": "VARCHAR",
    '"char"': "VARCHAR",
    "oid": "UINTEGER",
    "xid": "UINTEGER",
    "int2vector": "SMALLINT[]",
    "oidvector": "UINTEGER[]",
    "json": "JSON",
    "jsonb": "JSON",
    "tid": "VARCHAR",
    "cstring": "VARCHAR",
}
_KNOWN_TYPES = words(
    "text varchar bpchar character int integer smallint bigint int2 int4 int8 boolean bool real float4 float8 double "
    "precision numeric decimal date timestamp timestamptz uuid interval"
)


def _cast(node: exp.Cast) -> exp.Expr:
    reg = reg_type(node)
    if reg is not None:
        return _to_reg(node, reg)
    text = node.args["to"].sql(dialect="postgres").lower().removeprefix(f"{PG_CATALOG}.").replace('"', "")
    base, brackets, _ = text.partition("[")
    base = base.partition("(")[0].strip()
    if base == "regtype":
        return exp.Anonymous(this=f"{PREFIX}regtype_names", expressions=[node.this.copy()])
    if base in _TYPES:
        kind = _TYPES[base] + ("[]" if brackets else "")
        return exp.cast(node.this.copy(), exp.DataType.build(kind, dialect="duckdb"))
    if not all(word in _KNOWN_TYPES for word in base.split()):
        raise Rejected(f'type "{base[:63]}" does not exist', sqlstate=UNDEFINED_OBJECT)
    if brackets and isinstance(node.this, exp.Literal):
        return exp.cast(_array(str(node.this.this)), exp.DataType.build(f"{base}[]", dialect="postgres"))
    return node


def _to_reg(node: exp.Cast, reg: str) -> exp.Expr:
    """Text to an OID by look-up; an OID to the name it shows as."""
    inner = node.this
    while isinstance(inner, exp.Paren):
        inner = inner.this
    as_oid = isinstance(node.parent, exp.Cast) and "oid" in node.parent.args["to"].sql().lower()
    is_text = isinstance(inner, exp.Literal | exp.DPipe | exp.Concat) and not (
        isinstance(inner, exp.Literal) and not inner.is_string
    )
    shows_name = isinstance(node.parent, exp.Cast) and not as_oid
    if reg == "regproc":
        return exp.Anonymous(this=f"{PREFIX}regproc_name", expressions=[inner.copy()])
    if reg in ("regclass", "regtype", "regnamespace") and (as_oid or is_text) and not shows_name:
        return exp.Anonymous(this=f"pgf_to_{reg}", expressions=[inner.copy()])
    if is_text:
        looked_up = exp.Anonymous(this=f"pgf_to_{reg}", expressions=[inner.copy()])
        return exp.Anonymous(this=f"{PREFIX}{reg}_name", expressions=[looked_up])
    return exp.Anonymous(this=f"{PREFIX}{reg}_name", expressions=[inner.copy()])


def _quantified(node: exp.Any | exp.All) -> exp.Expr:
    """`= ANY ('{a,b}')` with the literal as an array."""
    inner = node.this
    while isinstance(inner, exp.Paren):
        inner = inner.this
    if isinstance(inner, exp.Literal) and inner.is_string:
        node.set("this", exp.Paren(this=_array(str(inner.this))))
    return node


def _array(text: str) -> exp.Expr:
    """Postgres's array literal of simple elements."""
    inner = text.strip().removeprefix("{").removesuffix("}")
    items = [item.strip().strip('"') for item in inner.split(",")] if inner else []
    return exp.Array(expressions=[exp.Literal.string(item) for item in items])
