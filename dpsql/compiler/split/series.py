"""generate_series and unnest of constants in FROM: public lists of values, written out as VALUES.

Decides them from the statement alone: every argument is a constant, so how many rows there are is known before anything
is measured, and a key that is joined with such a list has its values for a domain.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import islice

from sqlglot import exp

from dpsql.compiler.algebra import Lit
from dpsql.compiler.bind.expr import Context, bind
from dpsql.compiler.bind.intervals import interval_of, is_interval
from dpsql.compiler.calendar import moved
from dpsql.compiler.domains import moment
from dpsql.compiler.parse import only, refuse, unwrap
from dpsql.compiler.split.state import Split
from dpsql.errors import BAD_PARAMETER, TOO_COMPLEX
from dpsql.types import TIMESTAMP, TIMESTAMPTZ, Kind, SqlType, Value

MOST_ROWS = 2000
"""Of all lists of a statement together: each row is a part of the tree that it becomes."""
_LIST = "Write the values themselves: (VALUES (1), (2)) AS v(x)."


def written_out(item: exp.Expr, state: Split) -> exp.Values | None:
    """The list that a FROM item stands for; None where it is neither of the two functions."""
    match item:
        case exp.Unnest():
            only(item, "expressions", "alias")
            array = unwrap(item.expressions[0])
            if len(item.expressions) > 1 or not isinstance(array, exp.Array) or not array.expressions:
                raise refuse("unnest in FROM takes one array of constants", item, hint=_LIST)
            return _listed([each.copy() for each in array.expressions], item, "unnest", state)
        case exp.Table(this=exp.GenerateSeries() | exp.ExplodingGenerateSeries() as call):
            only(item, "alias")
            return _listed(list(islice(_series(call, state), MOST_ROWS + 1)), item, "generate_series", state)
        case _:
            return None


def _listed(values: list[exp.Expr], item: exp.Expr, function: str, state: Split) -> exp.Values:
    """The values under the names that the item has; a function's alias names its column as well."""
    state.listed += len(values)
    if state.listed > MOST_ROWS:
        message = f"{function} in FROM gives at most {MOST_ROWS:,} rows in a statement"
        raise refuse(message, item, sqlstate=TOO_COMPLEX, hint="Take a wider step, or group by a column with bounds.")
    alias = item.args.get("alias")
    name = alias.this if alias is not None and alias.this is not None else exp.to_identifier(function)
    columns = list(alias.args.get("columns") or []) if alias is not None else []
    made = exp.TableAlias(this=name.copy(), columns=[c.copy() for c in columns or [name]])
    return exp.Values(expressions=[exp.Tuple(expressions=[value]) for value in values], alias=made)


def _series(call: exp.Expr, state: Split) -> Iterator[exp.Expr]:
    only(call, "start", "end", "step")
    context = Context((), state.parameters, state.inferred, zone=state.zone, now=state.now)
    step = call.args.get("step")
    if step is not None and is_interval(step):
        return _times(call, context, interval_of(step, context))
    start, end = (_constant(call.args[key], context) for key in ("start", "end"))
    by = 1 if step is None else _whole(_constant(step, context), call)
    return _numbers(_whole(start, call), _whole(end, call), by, call)


def _constant(node: exp.Expr, context: Context) -> Lit:
    bound = None if node.find(exp.Column, exp.Query) else bind(node, context)
    if not isinstance(bound, Lit):
        raise refuse("generate_series in FROM takes constants", node, hint=_LIST)
    return bound


def _whole(literal: Lit, node: exp.Expr) -> int:
    if not isinstance(literal.value, int) or isinstance(literal.value, bool):
        hint = (
            "Write generate_series(1, 12), or generate_series(DATE '2020-01-01', DATE '2020-01-31', '1 day'::interval)."
        )
        raise refuse("generate_series in FROM takes whole numbers, or times and an interval", node, hint=hint)
    return literal.value


def _numbers(start: int, end: int, step: int, node: exp.Expr) -> Iterator[exp.Expr]:
    _check(step != 0 and (end - start) * step >= 0, step != 0, node)
    for value in range(start, end + (1 if step > 0 else -1), step):
        number = exp.Literal.number(abs(value))
        yield number if value >= 0 else exp.Neg(this=number)


def _times(call: exp.Expr, context: Context, step: tuple[int, int, int]) -> Iterator[exp.Expr]:
    """As in Postgres, dates become timestamps with time zone."""
    literals = [_constant(call.args[key], context) for key in ("start", "end")]
    kinds = {literal.type.kind for literal in literals}
    type_ = TIMESTAMP if Kind.TIMESTAMP in kinds else TIMESTAMPTZ
    at, last = (moment(_timed(literal, type_, call, context)) for literal in literals)
    following = None if at is None else moment(moved(at, step))
    moves = following is not None and following != at
    if at is None or last is None or following is None:
        raise refuse("generate_series in FROM has no rows here", call, sqlstate=BAD_PARAMETER, hint=_LIST)
    _check(moves and (last == at or (last > at) == (following > at)), moves, call)
    return _timestamps(at, last, step, type_, up=following > at)


def _timed(literal: Lit, type_: SqlType, node: exp.Expr, context: Context) -> Value:
    return context.coerce(literal, type_, node).value if literal.type.kind is Kind.UNKNOWN else literal.value


def _timestamps(
    at: datetime, last: datetime, step: tuple[int, int, int], type_: SqlType, *, up: bool
) -> Iterator[exp.Expr]:
    """Without an end, where a step of months and days comes back to where it was: they are read up to a limit."""
    following: datetime | None = at
    written = exp.DataType.build(type_.kind.name.lower())
    while following is not None and (following <= last if up else following >= last):
        yield exp.cast(exp.Literal.string(following.isoformat(sep=" ")), written.copy())
        following = moment(moved(following, step))


def _check(has_rows: bool, moves: bool, node: exp.Expr) -> None:
    if not moves:
        raise refuse("step size cannot equal zero", node, sqlstate=BAD_PARAMETER)
    if not has_rows:
        raise refuse("generate_series in FROM has no rows here", node, sqlstate=BAD_PARAMETER, hint=_LIST)
