"""The functions that a catalog query may call.

Decides by two lists: functions that mean the same in DuckDB, and those that functions.sql defines, and what each of
those needs before it can be made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PREFIX = "pgf_"
"""Begins the names of the macros in functions.sql, so that none is taken for a function of DuckDB's own."""

_NAMED = re.compile(rf"\b(?:{PREFIX}|pgc\.)\w+")


@dataclass(frozen=True, slots=True)
class Definition:
    """A macro, or a view that macros read. `needs` are the names of others, `relations` what it reads of pg_catalog."""

    sql: str
    needs: tuple[str, ...]
    relations: frozenset[str]


def _definitions() -> Mapping[str, Definition]:
    text = files("dpsql.catalog").joinpath("functions.sql").read_text(encoding="utf-8")
    statements = re.findall(r"^CREATE .*?(?:;$|\Z)", text, re.MULTILINE | re.DOTALL)
    named = {match[0]: statement for statement in statements if (match := _NAMED.search(statement)) is not None}
    made = {}
    for name, statement in named.items():
        found = dict.fromkeys(_NAMED.findall(statement))
        needs = tuple(other for other in found if other in named and other != name)
        tables = (each for each in found if each.startswith("pgc.") and each not in named)
        made[name] = Definition(statement, needs, frozenset(each.removeprefix("pgc.") for each in tables))
    return made


DEFINITIONS = _definitions()
"""By name: `pgf_...` for macros, `pgc.z_...` for views."""

MACROS = frozenset(name.removeprefix(PREFIX) for name in DEFINITIONS if name.startswith(PREFIX))

PLAIN = words(
    "count min max sum avg array_agg group_concat listagg string_agg logical_and logical_or bool_and bool_or coalesce "
    "nullif greatest least lower upper trim ltrim rtrim length char_length substring replace concat concat_ws unnest "
    "explode generate_series exploding_generate_series generate_subscripts row_number rank dense_rank cast try_cast "
    "case if exists any all array str_position position split_part left right now current_timestamp current_date and "
    "or xor not regexp_like regexp_i_like like_any abs round floor ceil mod extract date_part chr ascii lag lead "
    "first_value last_value md5 json_object"
)
"""Functions that mean the same in DuckDB."""

SESSION = words(
    "version current_version current_user session_user user current_role current_catalog current_database "
    "current_schema current_schemas current_setting set_config pg_backend_pid"
)
"""Functions that say something of the session."""

STOP = words("pg_cancel_backend pg_terminate_backend")
"""Functions that stop a session; see `activity`."""

CLOCK = words("now current_timestamp current_date")
"""Functions that say another thing at another time."""


def called(sql: str) -> tuple[str, ...]:
    """The definitions that a rewritten query calls; a few more where a text in it looks like one."""
    return tuple(name for name in dict.fromkeys(_NAMED.findall(sql.lower())) if name in DEFINITIONS)
