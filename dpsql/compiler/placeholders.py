"""What the text says of its parameters before anything is bound: lists are spelled out, casts name types.

`x = ANY($1)` becomes `x IN ($2, $3)`, with one parameter for each element: a list has no other meaning here, and its
elements are checked like any constant. Decides shapes only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from sqlglot import exp

from dpsql.compiler.bind.expr import parameter_index
from dpsql.compiler.bind.numbers import sql_type
from dpsql.compiler.parse import refuse, unwrap
from dpsql.errors import TOO_COMPLEX, Rejected
from dpsql.pgwire.oids import ARRAY_OF, ELEMENT
from dpsql.pgwire.text import decode, encoder
from dpsql.types import INTERVAL, TEXT, UNKNOWN, Kind, Parameters, SqlType, Value

MAX_ELEMENTS = 1_000
SPELLED = "spelled"
"""Marks a list that was spelled out; its value is what stood behind the comparison's sign."""

Scalars = tuple[tuple[SqlType, Value], ...]


@dataclass(frozen=True, slots=True)
class Placeholders:
    """The parameters as scalars: those of the statement, `count`, then the elements of lists.

    `stands_for`: by a list's position, that of the element whose type tells the list's. `casts`: types by position.
    """

    count: int
    scalars: Scalars
    stands_for: Mapping[int, int]
    casts: Mapping[int, SqlType]

    def type_of(self, position: int, inferred: Mapping[int, SqlType]) -> SqlType:
        """The type to announce for a parameter of the statement that declared none."""
        if position in self.stands_for:
            element = inferred.get(self.stands_for[position], TEXT).kind
            return SqlType(ARRAY_OF.get(element, Kind.TEXT_ARRAY))
        return inferred.get(position, TEXT)


def spell_out(tree: exp.Query, parameters: Parameters) -> Placeholders:
    """Changes the tree in place. Raises Rejected 54001 for a list that is too long."""
    count = max([len(parameters), *(parameter_index(node) + 1 for node in tree.find_all(exp.Parameter))])
    padded: Parameters = (*parameters, *((UNKNOWN, None),) * (count - len(parameters)))
    elements: list[tuple[SqlType, Value]] = []
    stands_for: dict[int, int] = {}
    for node in list(tree.find_all(exp.EQ, exp.NEQ)):
        array = _array(node)
        if array is not None:
            items = _items(array, padded)
            if isinstance(array, exp.Parameter):
                stands_for[parameter_index(array)] = count + len(elements)
            made = _membership(node, count + len(elements), items)
            made.meta[SPELLED] = node.expression.copy()
            node.replace(made)
            elements += items
    scalars = tuple((type, None if isinstance(value, tuple) else value) for type, value in padded)
    casts = _casts(tree, len(parameters), padded) if count else {}
    return Placeholders(count, (*scalars, *elements), stands_for, casts)


def as_constants(tree: exp.Query, parameters: Parameters) -> exp.Query:
    """The query with parameters that are no list as the constants they are, for places that take constants only.

    Values are written by type, quoted by the tree: no parameter's text is ever read as SQL.
    """
    for node in list(tree.find_all(exp.Parameter)):
        index = parameter_index(node)
        type, value = parameters[index] if index < len(parameters) else (UNKNOWN, ())
        if isinstance(value, tuple):
            continue
        around = node.parent if isinstance(node.parent, exp.Cast) else None
        if (
            around is not None
            and type.is_integer
            and value is not None
            and sql_type(around.args["to"], around).is_integer
        ):
            around.replace(_constant(type, value))
        else:
            node.replace(_constant(type, value, cast=around is None))
    return tree


def _constant(type: SqlType, value: Value, *, cast: bool = True) -> exp.Expr:
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int) or (isinstance(value, Decimal) and value.is_finite()):
        number = exp.Literal.number(f"{abs(value):f}" if isinstance(value, Decimal) else str(abs(value)))
        return exp.Neg(this=number) if value < 0 else number
    if isinstance(value, str):
        return exp.Literal.string(value)
    text = exp.Literal.string(encoder(type.kind)(value).decode())
    return text if not cast or type.kind in (Kind.TEXT, Kind.UNKNOWN) else exp.cast(text, str(type), dialect="postgres")


def _array(node: exp.Expr) -> exp.Expr | None:
    """The array of `= ANY (...)` or `<> ALL (...)` if it is a parameter or a literal."""
    quantified = node.expression
    if isinstance(node, exp.EQ) and isinstance(quantified, exp.Any):
        array = unwrap(quantified.this)
    elif isinstance(node, exp.NEQ) and isinstance(quantified, exp.Anonymous) and quantified.name.upper() == "ALL":
        array = unwrap(quantified.expressions[0]) if len(quantified.expressions) == 1 else quantified
    else:
        return None
    while isinstance(array, exp.Cast):
        array = unwrap(array.this)
    return array if isinstance(array, exp.Parameter) or (isinstance(array, exp.Literal) and array.is_string) else None


def _items(array: exp.Expr, parameters: Parameters) -> list[tuple[SqlType, Value]]:
    """The elements with their type; one that is not known where the list is NULL, or not known yet."""
    if isinstance(array, exp.Parameter):
        type, value = parameters[parameter_index(array)]
        element = SqlType(ELEMENT[type.kind]) if type.kind in ELEMENT else UNKNOWN
        if type.kind is Kind.UNKNOWN or value is None:
            return [(element if type.kind in ELEMENT else UNKNOWN, None)]
    else:
        element, value = UNKNOWN, decode(str(array.this).encode(), Kind.TEXT_ARRAY)
    items = value if isinstance(value, tuple) else ()
    if len(items) > MAX_ELEMENTS:
        raise Rejected(f"a list may have {MAX_ELEMENTS} elements, not {len(items)}", sqlstate=TOO_COMPLEX)
    return [(element, item) for item in items]


def _membership(node: exp.Expr, first: int, items: list[tuple[SqlType, Value]]) -> exp.Expr:
    negated = isinstance(node, exp.NEQ)
    if not items:
        return exp.Boolean(this=negated)
    numbers = range(first + 1, first + len(items) + 1)
    listed = exp.In(
        this=node.this.copy(),
        expressions=[exp.Parameter(this=exp.Literal.number(number)) for number in numbers],
    )
    return exp.Not(this=listed) if negated else listed


def _casts(tree: exp.Query, declared: int, parameters: Parameters) -> dict[int, SqlType]:
    """The types that `$1::type` gives to parameters of none."""
    found: dict[int, SqlType] = {}
    for node in tree.find_all(exp.Cast):
        inner = unwrap(node.this)
        if isinstance(inner, exp.Parameter):
            index = parameter_index(inner)
            if node.args["to"].this is exp.DType.ARRAY:
                raise refuse("a list can only be asked by = ANY ($1) or <> ALL ($1)", node)
            if index >= declared or (index < len(parameters) and parameters[index][0].kind is Kind.UNKNOWN):
                interval = node.args["to"].this is exp.DType.INTERVAL
                found[index] = INTERVAL if interval else sql_type(node.args["to"], node)
    return found
