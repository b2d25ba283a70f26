"""SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (...): what a statement may say of its own privacy, in BigQuery's words.

Decides by allow-list. `epsilon` and `max_groups_contributed` (`kappa`) are the session's settings for one statement.
What the policy fixes may be repeated where it says the same or less: a delta no smaller than the one that epsilon is
read at, and the column that holds the privacy unit. Everything else is refused with what stands for it here.
"""

from __future__ import annotations

from dpsql.errors import Rejected
from dpsql.session.settings import OWN, STATED, Values, assign

_SETTINGS = {"epsilon": "dpsql.epsilon", "max_groups_contributed": "dpsql.max_groups", "kappa": "dpsql.max_groups"}
_HAVING = "Write HAVING COUNT(DISTINCT unit column) >= 20; private keys have a threshold anyway."
_INSTEAD = {
    "max_rows_contributed": "SET dpsql.max_rows_per_group bounds rows; max_groups_contributed bounds groups.",
    "k_threshold": _HAVING,
    "min_privacy_units_per_group": _HAVING,
    "group_selection_strategy": "Keys that the policy does not list are chosen by a noisy threshold; "
    "those of a public table: JOIN it.",
}


def with_options(values: Values, options: tuple[tuple[str, str], ...]) -> Values:
    """The settings for one statement. Raises Rejected 0A000 or 22023. `asking` compares the repeated ones."""
    for name, value in options:
        match name:
            case "delta" | "privacy_unit_column":
                values = {**values, STATED + name: value}
            case _ if name in _SETTINGS:
                values = assign(values, _SETTINGS[name], value, values)
                if name == "epsilon":
                    values = {**values, "dpsql.max_error": OWN}
            case _:
                raise Rejected(
                    f'option "{name}" is not supported',
                    hint=_INSTEAD.get(
                        name, "Options are epsilon, max_groups_contributed, delta and privacy_unit_column."
                    ),
                )
    return values
