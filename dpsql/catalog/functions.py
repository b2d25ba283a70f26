"""The functions that a catalog query may call.

Decides by two lists: functions that mean the same in DuckDB, and those that functions.sql defines.
"""

from __future__ import annotations

import re
from importlib.resources import files


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PREFIX = "pgf_"
"""Begins the names of the macros in functions.sql, so that none is taken for a function of DuckDB's own."""

DEFINITIONS = files("dpsql.catalog").joinpath("functions.sql").read_text(encoding="utf-8")

READ_BY_FUNCTIONS = frozenset(("pg_catalog", name) for name in re.findall(r"\bpgc\.(pg_\w+)", DEFINITIONS))
"""Relations that the definitions read."""

MACROS = frozenset(re.findall(rf"^CREATE MACRO {PREFIX}(\w+)", DEFINITIONS, re.MULTILINE))

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

CLOCK = words("now current_timestamp current_date")
"""Functions that say another thing at another time."""
