"""Texts read as numbers and dates, and EXP, as SQL that no row can make fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpsql.compiler.algebra import LARGEST_EXPONENT, LEAST_EXPONENT, Call
from dpsql.types import Kind

if TYPE_CHECKING:
    from dpsql.compiler.emit.common import Emitter

_DAY = (
    "(([1-9][0-9]{3})-((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)"
    "|([1-9][0-9](0[48]|[2468][048]|[13579][26])|([2468][048]|[13579][26])00)-02-29)"
)
"""A day of the calendar, from the year 1000 on."""
_FORMS = {
    "text_to_int": "[+-]?[0-9]{1,18}",
    "text_to_float": "[+-]?([0-9]{1,15}([.][0-9]{0,15})?|[.][0-9]{1,15})",
    "text_to_date": _DAY,
    "text_to_timestamp": _DAY + "([ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?)?",
}


def parsed(emitter: Emitter, call: Call) -> str:
    """A text as a number or date, NULL where it does not have the form: the cast never meets what it could fail on.

    The cast's argument is the guarded text, so no optimizer can put the cast before the guard. The forms hold plain
    ASCII without classes, so that both engines' regular expressions match the same texts, in linear time.
    """
    x, form = emitter.value(call.args[0]), _FORMS[call.op]
    if emitter.dialect.name == "postgres":
        matches = f"{x} ~ '^ *({form}) *$'"
    else:
        matches = f"REGEXP_FULL_MATCH({x}, ' *({form}) *')"
    type_name = {"text_to_int": "BIGINT", "text_to_float": emitter.dialect.double}.get(call.op, call.op[8:].upper())
    made = f"CAST(CASE WHEN {matches} THEN TRIM({x}) END AS {type_name})"
    limit = {Kind.INT2: 2**15, Kind.INT4: 2**31}.get(call.type.kind)
    return made if limit is None else f"(CASE WHEN {made} >= {-limit} AND {made} < {limit} THEN {made} END)"


def exponential(emitter: Emitter, call: Call) -> str:
    """e^x between about 10^-30 and 10^15, the reach of floats."""
    x = emitter.as_double(call.args[0])
    low, high = emitter.double(LEAST_EXPONENT), emitter.double(LARGEST_EXPONENT)
    return f"EXP(CASE WHEN {x} > {high} THEN {high} WHEN {x} < {low} THEN {low} ELSE {x} END)"
