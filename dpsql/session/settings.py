"""A session's settings: which names exist, what values they take, and what of them reaches the engine.

Decides by an allow-list. A setting here may tighten what the policy fixes or change how a session looks to its
client; it must never widen a limit, change what a name means, or say who the user is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import cast
from zoneinfo import ZoneInfo

from dpsql.dp.accounting import parse_amount
from dpsql.errors import BAD_PARAMETER, NOT_PERMITTED, UNDEFINED_OBJECT, Rejected
from dpsql.pgwire.parameters import PRESET
from dpsql.session.ports import Mechanism, Settings
from dpsql.types import TEXT, Column, Relation

Values = Mapping[str, str]
"""Every setting's value by its name in lower case, as SHOW prints it. Never changed in place."""

Check = Callable[[str], str]
"""Normalises a value; raises Rejected 22023 for one that is not allowed."""

OWN = "default"
"""The value of a dpsql setting that leaves the choice to the role and the policy."""

CANNOT_CHANGE = "55P02"


@dataclass(frozen=True, slots=True)
class Parameter:
    """`reported`: clients are told of each change by ParameterStatus."""

    name: str
    default: str
    check: Check
    description: str = ""
    reported: bool = False


# --- checks --------------------------------------------------------------------------------------------------------


def _bad(name: str, value: str, hint: str) -> Rejected:
    shown = value if len(value) <= 60 else value[:57] + "..."
    return Rejected(f'invalid value for parameter "{name}": "{shown}"', sqlstate=BAD_PARAMETER, hint=hint)


def _any(value: str) -> str:
    return value[:1000]


def _printable(value: str) -> str:
    """As Postgres does with application_name: ASCII, at most 63 bytes."""
    return "".join(letter if " " <= letter <= "~" else "?" for letter in value)[:63]


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


_UNITS = {
    unit: Decimal(size)
    for unit, size in {"us": "0.001", "ms": "1", "s": "1e3", "min": "6e4", "h": "36e5", "d": "864e5"}.items()
}
_DURATION = re.compile(r"([0-9]{1,10}(?:\.[0-9]{1,6})?)\s*(us|ms|s|min|h|d)?")
_MAX_MILLISECONDS = 2**31 - 1


def _duration(name: str) -> Check:
    def check(value: str) -> str:
        match = _DURATION.fullmatch(value.strip())
        milliseconds = Decimal(match[1]) * _UNITS[match[2] or "ms"] if match else Decimal(-1)
        if not 0 <= milliseconds <= _MAX_MILLISECONDS:
            raise _bad(name, value, "It is a time such as 500, 500ms, 30s or 2min; 0 turns it off.")
        return _show_duration(round(milliseconds))

    return check


def _show_duration(milliseconds: int) -> str:
    if milliseconds == 0:
        return "0"
    units = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000), ("ms", 1))
    unit, size = next((unit, size) for unit, size in units if milliseconds % size == 0)
    return f"{milliseconds // size}{unit}"


def _encoding(value: str) -> str:
    if re.sub(r"[^a-z0-9]", "", value.lower()) in ("utf8", "unicode"):
        return "UTF8"
    raise _bad("client_encoding", value, "The only encoding is UTF8.")


def _date_style(value: str) -> str:
    words = [word.strip().lower() for word in value.split(",")]
    orders = {"mdy": "MDY", "us": "MDY", "dmy": "DMY", "european": "DMY", "ymd": "YMD"}
    if not all(word == "iso" or word in orders for word in words) or len(words) > 2:
        raise _bad("DateStyle", value, "Dates are always written in ISO form.")
    order = next((orders[word] for word in words if word in orders), "MDY")
    return f"ISO, {order}"


def _time_zone(value: str) -> str:
    text = value.strip()
    if re.fullmatch(r"[+-]?[0-9]{1,2}(:?[0-9]{2})?", text):
        return text
    try:
        ZoneInfo(text)
    except (ValueError, OSError, LookupError):
        raise _bad("TimeZone", value, "It is a name such as UTC or Europe/Rome.") from None
    return text


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

_ISOLATION = ("serializable", "repeatable read", "read committed", "read uncommitted")
_LEVELS = ("debug5", "debug4", "debug3", "debug2", "debug1", "debug", "log", "info", "notice", "warning", "error")


def _parameters() -> tuple[Parameter, ...]:
    choice, whole, boolean = _one_of, _whole, _boolean
    ignored_flags = (
        "jit geqo enable_seqscan enable_indexscan enable_bitmapscan enable_hashjoin enable_mergejoin enable_nestloop "
        "enable_sort enable_hashagg enable_material array_nulls check_function_bodies row_security "
        "synchronize_seqscans escape_string_warning quote_all_identifiers transform_null_equals"
    )
    return (
        Parameter("dpsql.epsilon", OWN, _amount, "Price of one statement; the role's own by default."),
        Parameter(
            "dpsql.mechanism", "auto", choice("dpsql.mechanism", "auto", "laplace", "gaussian"), "Kind of noise."
        ),
        Parameter(
            "dpsql.max_groups",
            OWN,
            _bound("dpsql.max_groups"),
            "Groups that one privacy unit may add to; the policy's or less.",
        ),
        Parameter(
            "dpsql.max_rows_per_group",
            OWN,
            _bound("dpsql.max_rows_per_group"),
            "Rows of one privacy unit that count in a group; the policy's or less.",
        ),
        Parameter("dpsql.max_error", OWN, _amount, "Absolute 95 % error to aim at, instead of an epsilon."),
        Parameter(
            "dpsql.error_bars", "off", boolean("dpsql.error_bars"), "Adds each aggregate's 95 % interval as columns."
        ),
        Parameter(
            "dpsql.reuse_error",
            OWN,
            _reuse_error,
            "Most error of a derived answer, in fresh ones'.",
        ),
        Parameter(
            "dpsql.null_noise",
            OWN,
            _switch("dpsql.null_noise"),
            "Whether averages and extremes that are no more than noise are NULL; the role's own by default.",
        ),
        Parameter("dpsql.notices", "on", boolean("dpsql.notices"), "Whether each answer tells its price."),
        Parameter("statement_timeout", "0", _duration("statement_timeout"), "Longest time for a statement."),
        Parameter("application_name", "", _printable, "What the client calls itself.", reported=True),
        Parameter("client_encoding", "UTF8", _encoding, "Always UTF8.", reported=True),
        Parameter("DateStyle", "ISO, MDY", _date_style, "Dates are written in ISO form.", reported=True),
        Parameter("IntervalStyle", "postgres", choice("IntervalStyle", "postgres"), "", reported=True),
        Parameter("TimeZone", "UTC", _time_zone, "The client's time zone; answers are in UTC.", reported=True),
        Parameter("standard_conforming_strings", "on", choice("standard_conforming_strings", "on"), "", reported=True),
        Parameter("default_transaction_read_only", "off", boolean("default_transaction_read_only"), "", reported=True),
        Parameter("transaction_read_only", "off", boolean("transaction_read_only")),
        Parameter("transaction_isolation", "read committed", choice("transaction_isolation", *_ISOLATION)),
        Parameter("default_transaction_isolation", "read committed", choice("transaction_isolation", *_ISOLATION)),
        Parameter("transaction_deferrable", "off", boolean("transaction_deferrable")),
        Parameter("default_transaction_deferrable", "off", boolean("default_transaction_deferrable")),
        Parameter("client_min_messages", "notice", choice("client_min_messages", *_LEVELS)),
        Parameter("search_path", '"$user", public', _any, "Ignored: every name has one meaning."),
        Parameter("extra_float_digits", "1", whole("extra_float_digits", -15, 3), "Floats are shown exactly."),
        Parameter("bytea_output", "hex", choice("bytea_output", "hex")),
        Parameter("backslash_quote", "safe_encoding", choice("backslash_quote", "safe_encoding", "on", "off")),
        Parameter("xmloption", "content", choice("xmloption", "content", "document")),
        Parameter("synchronous_commit", "on", choice("synchronous_commit", "on", "off", "local", "remote_write")),
        Parameter(
            "plan_cache_mode", "auto", choice("plan_cache_mode", "auto", "force_generic_plan", "force_custom_plan")
        ),
        Parameter("default_table_access_method", "heap", choice("default_table_access_method", "heap")),
        Parameter("lc_messages", "C", _any),
        Parameter("lc_monetary", "C", _any),
        Parameter("lc_numeric", "C", _any),
        Parameter("lc_time", "C", _any),
        Parameter("work_mem", "4MB", _any, "Ignored."),
        Parameter("cursor_tuple_fraction", "0.1", _any, "Ignored."),
        Parameter("lock_timeout", "0", _duration("lock_timeout"), "Ignored: nothing is locked."),
        Parameter("idle_session_timeout", "0", _duration("idle_session_timeout"), "Ignored."),
        Parameter("tcp_keepalives_idle", "0", whole("tcp_keepalives_idle", 0, 2**31 - 1), "Ignored."),
        Parameter(
            "idle_in_transaction_session_timeout", "0", _duration("idle_in_transaction_session_timeout"), "Ignored."
        ),
        *(Parameter(name, "on", boolean(name), "Ignored.") for name in ignored_flags.split()),
    )


PARAMETERS: Mapping[str, Parameter] = {parameter.name.lower(): parameter for parameter in _parameters()}
_IDENTITY = ("role", "session_authorization")


# --- values --------------------------------------------------------------------------------------------------------


def initial(fixed: Mapping[str, str], user: str) -> Values:
    """The settings of a new session; `fixed` are the server's own, and may give another default to a known one."""
    values = {name: parameter.default for name, parameter in PARAMETERS.items()}
    values |= {name.lower(): value for name, value in {**PRESET, **fixed}.items()}
    return values | {"session_authorization": user, "role": "none", "is_superuser": "off"}


def assign(values: Values, name: str, value: str | None, defaults: Values) -> Values:
    """The settings with one changed; `value` None is the default. Raises Rejected 42704, 22023, 42501 or 55P02."""
    key = canonical(name)
    if key in _IDENTITY:
        return _keep_identity(values, key, value)
    parameter = PARAMETERS.get(key)
    if parameter is not None:
        text = defaults[key] if value is None else parameter.check(value)
        return {**values, key: text}
    if key in values:
        raise Rejected(f'parameter "{key}" cannot be changed', sqlstate=CANNOT_CHANGE)
    raise unknown(name)


def _keep_identity(values: Values, key: str, value: str | None) -> Values:
    """SET ROLE and SET SESSION AUTHORIZATION succeed where they change nothing."""
    own = (None, "none", "default", values["session_authorization"])
    if value not in own:
        raise Rejected(
            f'permission denied to set {key.replace("_", " ")} "{value}"',
            sqlstate=NOT_PERMITTED,
            hint="Connect as that user; who asks is decided by the login alone.",
        )
    return values


def canonical(name: str) -> str:
    return name.lower()


def unknown(name: str) -> Rejected:
    known = sorted(key for key in PARAMETERS if key.startswith("dpsql."))
    hint = f"dpsql's own are {', '.join(known)}." if name.lower().startswith("dpsql") else "SHOW ALL lists them."
    return Rejected(f'unrecognized configuration parameter "{name[:63]}"', sqlstate=UNDEFINED_OBJECT, hint=hint)


def show(values: Values, name: str) -> Relation:
    """The rows of SHOW. Raises Rejected 42704."""
    key = canonical(name)
    if key not in values:
        raise unknown(name)
    return Relation((Column(_label(key), TEXT),), ((values[key],),))


def show_all(values: Values) -> Relation:
    columns = tuple(Column(name, TEXT) for name in ("name", "setting", "description"))
    described = {key: PARAMETERS[key].description if key in PARAMETERS else "" for key in values}
    return Relation(columns, tuple((_label(key), values[key], described[key]) for key in sorted(values)))


def show_columns(name: str) -> tuple[Column, ...]:
    """The columns that SHOW will return, without its values."""
    if canonical(name) == "all":
        return show_all({}).columns
    return (Column(_label(canonical(name)), TEXT),)


def _label(key: str) -> str:
    return PARAMETERS[key].name if key in PARAMETERS else key


def reported(values: Values) -> dict[str, str]:
    """What clients are told by ParameterStatus, as it is now."""
    names = {key: parameter.name for key, parameter in PARAMETERS.items() if parameter.reported}
    names |= {key: key for key in _REPORTED_FIXED}
    return {name: values[key] for key, name in names.items() if key in values}


_REPORTED_FIXED = (
    "server_version",
    "server_version_num",
    "server_encoding",
    "integer_datetimes",
    "is_superuser",
    "session_authorization",
    "in_hot_standby",
)


# --- what the engine reads -----------------------------------------------------------------------------------------


STATED = "stated."
"""Before the name of an option that repeats what the policy fixes; no setting has such a name."""
_REPEATED = ("delta", "privacy_unit_column")


def for_engine(values: Values) -> Settings:
    timeout = values["statement_timeout"]
    return Settings(
        epsilon=_decimal(values["dpsql.epsilon"]),
        mechanism=cast(Mechanism, values["dpsql.mechanism"]),
        max_groups=_whole_or_own(values["dpsql.max_groups"]),
        max_rows_per_group=_whole_or_own(values["dpsql.max_rows_per_group"]),
        max_error=_decimal(values["dpsql.max_error"]),
        reuse_error=_decimal(values["dpsql.reuse_error"]),
        null_noise=_switch_or_own(values["dpsql.null_noise"]),
        notices=wants_notices(values),
        statement_timeout=None if timeout == "0" else _seconds(timeout),
        error_bars=values["dpsql.error_bars"] == "on",
        stated=tuple((name, values[STATED + name]) for name in sorted(_REPEATED) if STATED + name in values),
    )


def wants_notices(values: Values) -> bool:
    return values["dpsql.notices"] == "on" and values["client_min_messages"] not in ("warning", "error")


def _switch_or_own(text: str) -> bool | None:
    return None if text == OWN else text == "on"


def _whole_or_own(text: str) -> int | None:
    return None if text == OWN else int(text)


def _decimal(text: str) -> Decimal | None:
    return None if text == OWN else Decimal(text)


def _seconds(text: str) -> float:
    match = _DURATION.fullmatch(text)
    return float(Decimal(match[1]) * _UNITS[match[2] or "ms"] / 1000) if match else 0.0
