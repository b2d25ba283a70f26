"""A session's own settings, `dpsql.*`: which names exist, what values they take, and what of them reaches the engine.

Decides by an allow-list. All settings live in the public server's session; these it keeps as text, so they are checked
when they are set and again when they are read. A setting may tighten what the policy fixes; it must never widen a
limit, change what a name means, or say who the user is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import cast

from dpsql.dp.accounting import parse_amount
from dpsql.errors import BAD_PARAMETER, UNDEFINED_OBJECT, Rejected
from dpsql.session.ports import Mechanism, Settings

Values = Mapping[str, str]
"""Every setting's value by its name in lower case, as SHOW prints it. Never changed in place."""

Check = Callable[[str], str]
"""Normalises a value; raises Rejected 22023 for one that is not allowed."""

OWN = "default"
"""The value of a dpsql setting that leaves the choice to the role and the policy."""


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    default: str
    check: Check
    description: str


# --- checks --------------------------------------------------------------------------------------------------------


def _bad(name: str, value: str, hint: str) -> Rejected:
    shown = value if len(value) <= 60 else value[:57] + "..."
    return Rejected(f'invalid value for parameter "{name}": "{shown}"', sqlstate=BAD_PARAMETER, hint=hint)


def _boolean(name: str) -> Check:
    def check(value: str) -> str:
        word = value.strip().lower()
        if word in ("on", "true", "yes", "1", "t", "y"):
            return "on"
        if word in ("off", "false", "no", "0", "f", "n", "of"):
            return "off"
        raise _bad(name, value, "It is on or off.")

    return check


def _one_of(name: str, *allowed: str) -> Check:
    def check(value: str) -> str:
        word = value.strip().lower()
        for choice in allowed:
            if word == choice.lower():
                return choice
        raise _bad(name, value, f"Available values: {', '.join(allowed)}.")

    return check


def _whole(name: str, lowest: int, highest: int) -> Check:
    def check(value: str) -> str:
        text = value.strip()
        if not re.fullmatch(r"-?[0-9]{1,10}", text) or not lowest <= int(text) <= highest:
            raise _bad(name, value, f"It is a whole number from {lowest} to {highest}.")
        return str(int(text))

    return check


def _amount(value: str) -> str:
    return OWN if value.strip().lower() == OWN else str(parse_amount(value.strip()))


def _reuse_error(value: str) -> str:
    return "0" if value.strip().lower() in ("0", "off") else _amount(value)


def _switch(name: str) -> Check:
    boolean = _boolean(name)
    return lambda value: OWN if value.strip().lower() == OWN else boolean(value)


def _bound(name: str) -> Callable[[str], str]:
    whole = _whole(name, 1, 2**20)
    return lambda value: OWN if value.strip().lower() == OWN else whole(value)


# --- the list ------------------------------------------------------------------------------------------------------

PREFIX = "dpsql."


def _parameters() -> dict[str, Parameter]:
    made = (
        Parameter("epsilon", OWN, _amount, "Price of one statement; the role's own by default."),
        Parameter("mechanism", "auto", _one_of("dpsql.mechanism", "auto", "laplace", "gaussian"), "Kind of noise."),
        Parameter(
            "max_groups",
            OWN,
            _bound("dpsql.max_groups"),
            "Groups that one privacy unit may add to; the policy's or less.",
        ),
        Parameter(
            "max_rows_per_group",
            OWN,
            _bound("dpsql.max_rows_per_group"),
            "Rows of one privacy unit that count in a group; the policy's or less.",
        ),
        Parameter("max_error", OWN, _amount, "Absolute 95 % error to aim at, instead of an epsilon."),
        Parameter("error_bars", "off", _boolean("dpsql.error_bars"), "Adds each aggregate's 95 % interval as columns."),
        Parameter("reuse_error", OWN, _reuse_error, "Most error of a derived answer, in fresh ones'."),
        Parameter(
            "null_noise",
            OWN,
            _switch("dpsql.null_noise"),
            "Whether averages and extremes that are no more than noise are NULL; the role's own by default.",
        ),
        Parameter("notices", "on", _boolean("dpsql.notices"), "Whether each answer tells its price."),
    )
    return {PREFIX + each.name: each for each in made}


PARAMETERS: Mapping[str, Parameter] = _parameters()
DEFAULTS: Values = {name: parameter.default for name, parameter in PARAMETERS.items()}

_LEVEL = "client_min_messages"
_TIMEOUT = "statement_timeout"
READ = (
    "SELECT "
    + ", ".join(f"pg_catalog.current_setting('{name}', true)" for name in (*PARAMETERS, _LEVEL))
    + f", (SELECT setting FROM pg_catalog.pg_settings WHERE name = '{_TIMEOUT}')"
)
"""What asks the public server for a session's settings; `read` reads its row."""


ALWAYS_ON = frozenset(("standard_conforming_strings", "array_nulls"))
"""Settings of Postgres on which the meaning of a text, or of an answer's arrays, hangs."""


def read(row: bytes) -> Values:
    """The settings of a DataRow frame. Raises Rejected 22023: set_config may have given them any text."""
    values: dict[str, str] = {}
    at = 7
    for name in (*PARAMETERS, _LEVEL, _TIMEOUT):
        size = int.from_bytes(row[at : at + 4], signed=True)
        text = row[at + 4 : at + 4 + max(size, 0)].decode()
        at += 4 + max(size, 0)
        if text:
            values[name] = PARAMETERS[name].check(text) if name in PARAMETERS else text
    return values


def checked(name: str, value: str | None) -> Values:
    """The settings that SET name TO value changes here. Raises Rejected 42704 or 22023."""
    key = name.lower()
    if key == "client_encoding":
        return _encoding(value)
    if key in ALWAYS_ON:
        if value is not None and _boolean(key)(value) != "on":
            raise _bad(key, value, "It is always on: statements are read so before the public server sees them.")
        return {}
    return assign({}, key, value)


def assign(values: Values, name: str, value: str | None) -> Values:
    """The settings with one of ours changed; `value` None is the default. Raises Rejected 42704 or 22023."""
    parameter = PARAMETERS.get(name)
    if parameter is None:
        known = ", ".join(sorted(PARAMETERS))
        message = f'unrecognized configuration parameter "{name[:63]}"'
        raise Rejected(message, sqlstate=UNDEFINED_OBJECT, hint=f"dpsql's own are {known}.")
    return {**values, name: parameter.default if value is None else parameter.check(value)}


def _encoding(value: str | None) -> Values:
    """Statements are read as UTF-8: another encoding would be misread."""
    if value is None or re.sub(r"[^a-z0-9]", "", value.lower()) in ("utf8", "unicode"):
        return {}
    raise _bad("client_encoding", value, "The only encoding is UTF8.")


# --- what the engine reads -----------------------------------------------------------------------------------------

STATED = "stated."
"""Before the name of an option that repeats what the policy fixes; no setting has such a name."""
_REPEATED = ("delta", "privacy_unit_column")


def for_engine(values: Values) -> Settings:
    values = {**DEFAULTS, **values}
    milliseconds = values.get(_TIMEOUT, "0")
    return Settings(
        epsilon=_decimal(values["dpsql.epsilon"]),
        mechanism=cast(Mechanism, values["dpsql.mechanism"]),
        max_groups=_whole_or_own(values["dpsql.max_groups"]),
        max_rows_per_group=_whole_or_own(values["dpsql.max_rows_per_group"]),
        max_error=_decimal(values["dpsql.max_error"]),
        reuse_error=_decimal(values["dpsql.reuse_error"]),
        null_noise=_switch_or_own(values["dpsql.null_noise"]),
        notices=wants_notices(values),
        statement_timeout=int(milliseconds) / 1000 if milliseconds.isdecimal() and int(milliseconds) else None,
        error_bars=values["dpsql.error_bars"] == "on",
        stated=tuple((name, values[STATED + name]) for name in sorted(_REPEATED) if STATED + name in values),
    )


def wants_notices(values: Values) -> bool:
    return values.get("dpsql.notices", "on") == "on" and values.get(_LEVEL, "notice") not in ("warning", "error")


def _switch_or_own(text: str) -> bool | None:
    return None if text == OWN else text == "on"


def _whole_or_own(text: str) -> int | None:
    return None if text == OWN else int(text)


def _decimal(text: str) -> Decimal | None:
    return None if text == OWN else Decimal(text)
