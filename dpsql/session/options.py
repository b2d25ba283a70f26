"""SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (...): what a statement may say of its own privacy, in BigQuery's words.

Decides by allow-list. `epsilon`, `max_error`, `max_rows_per_group` and `max_groups_contributed` (also `max_groups`,
`kappa`) are the session's settings for one statement; an epsilon stands instead of the session's max_error.
What the policy fixes may be repeated where it says the same or less: a delta no smaller than the one that epsilon is
read at, and the column that holds the privacy unit. Everything else is refused with what stands for it here.
"""

from __future__ import annotations

from dpsql.errors import BAD_PARAMETER, Rejected
from dpsql.session.settings import OWN, STATED, Values, assign

_SETTINGS = {
    "epsilon": "dpsql.epsilon",
    "max_error": "dpsql.max_error",
    "max_groups_contributed": "dpsql.max_groups",
    "max_groups": "dpsql.max_groups",
    "kappa": "dpsql.max_groups",
    "max_rows_per_group": "dpsql.max_rows_per_group",
}
_ALL = "epsilon, max_error, max_groups_contributed, max_rows_per_group, delta and privacy_unit_column"
_HAVING = "Write HAVING COUNT(DISTINCT unit column) >= 20; private keys have a threshold anyway."
_INSTEAD = {
    "max_rows_contributed": "max_rows_per_group bounds the rows of a group; max_groups_contributed the groups.",
    "k_threshold": _HAVING,
    "min_privacy_units_per_group": _HAVING,
    "group_selection_strategy": "Keys that the policy does not list are chosen by a noisy threshold; "
    "those of a public table: JOIN it.",
}


def with_options(values: Values, options: tuple[tuple[str, str], ...]) -> Values:
    """The settings for one statement. Raises Rejected 0A000 or 22023. `asking` compares the repeated ones."""
    if {"epsilon", "max_error"} <= {name for name, _ in options}:
        raise Rejected(
            "epsilon and max_error exclude each other: one gives the price, the other finds it",
            sqlstate=BAD_PARAMETER,
            hint="Name one of them.",
        )
    for name, value in options:
        match name:
            case "delta" | "privacy_unit_column":
                values = {**values, STATED + name: value}
            case _ if name in _SETTINGS:
                values = assign(values, _SETTINGS[name], value)
                if name == "epsilon":
                    values = {**values, "dpsql.max_error": OWN}
            case _:
                raise Rejected(
                    f'option "{name}" is not supported',
                    hint=_INSTEAD.get(name, f"Options are {_ALL}."),
                )
    return values
