"""What a new policy changes, for whom, and whether it promises less than the old one.

Pure. A policy's terms are a flat mapping of texts: what the ledger keeps of a policy, and all that is compared here.
Must never hold a password's verifier. A change that weakens what was promised needs the operator's word, so a doubt
counts as weaker.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from typing import Final

from dpsql.policy.model import Budget, ColumnPolicy, Policy, Role, Table

Terms = Mapping[str, str]

_NONE: Final = "none"
_WINDOWS: Final = (_NONE, "year", "quarter", "month", "week", "day")
"""From the strictest on: a budget that begins again more often allows more."""
_RESPONSE: Final = ", randomized response of epsilon "
_COLUMN: Final = ("type", "lower", "upper", "values", "nullable", "references", "randomized_response")
_FIXED: Final = ("dataset", "ledger", "ledger_anchor")
"""What cannot change while the ledger is open."""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference. `weaker`: the new policy promises less, or nobody can tell. `fixed`: it cannot be reloaded."""

    what: str
    whom: str
    weaker: bool = False
    fixed: bool = False

    def __str__(self) -> str:
        mark = "cannot change: " if self.fixed else ("weaker: " if self.weaker else "")
        return f"{mark}{self.what}" + (f" ({self.whom})" if self.whom else "")


def terms(policy: Policy) -> Terms:
    """What a policy promises and allows, as texts by name; no password, no address."""
    found = {
        "dataset": policy.dataset,
        "ledger": sha256(policy.ledger.encode()).hexdigest()[:16],
        "ledger_anchor": policy.ledger_anchor or _NONE,
        "epoch": policy.epoch,
        "timezone": policy.timezone,
        "log_text": str(policy.server.log_text),
    }
    privacy = policy.privacy
    for name in ("unit", "units", "max_groups", "max_rows_per_group", "max_keys", "selection_cap", "key_delta_share"):
        found[f"privacy.{name}"] = _text(getattr(privacy, name))
    for name in ("key_delta", "accounting", "allow_large_delta", "replay"):
        found[f"privacy.{name}"] = _text(getattr(privacy, name))
    found |= _budget("privacy.budget", privacy.budget)
    for name, table in policy.tables.items():
        found |= _table(f"tables.{_dotless(name)}", table)
    found |= {f"views.{name}": text for name, text in policy.views.items()}
    for name, role in policy.roles.items():
        found |= _role(f"roles.{_dotless(name)}", role)
    return found | {f"users.{name}": user.role for name, user in policy.users.items()}


def _dotless(name: str) -> str:
    """A table's or a role's name as one part of a term's: what stands behind a dot tells what the term is."""
    return name.replace("%", "%25").replace(".", "%2E")


def _text(value: object) -> str:
    if value is None:
        return _NONE
    return f"{value.normalize():f}" if isinstance(value, Decimal) else str(value)


def _budget(name: str, budget: Budget | None) -> dict[str, str]:
    if budget is None:
        return {f"{name}.epsilon": "0", f"{name}.delta": "0"}
    return {f"{name}.epsilon": _text(budget.epsilon), f"{name}.delta": _text(budget.delta)}


def _table(name: str, table: Table) -> dict[str, str]:
    found = {name: "public" if table.public else f"private, unit {_text(table.unit)}"}
    for part in ("key", "max_rows", "max_groups", "max_rows_per_group"):
        found[f"{name}.{part}"] = _text(getattr(table, part))
    return found | {f"{name}.columns.{column}": _column(declared) for column, declared in table.columns.items()}


def _column(declared: ColumnPolicy) -> str:
    parts = (declared.type, declared.lower, declared.upper, declared.values, declared.nullable, declared.references)
    text = ", ".join(_text(part) for part in parts)
    return text if declared.randomized is None else f"{text}{_RESPONSE}{declared.randomized}"


def _role(name: str, role: Role) -> dict[str, str]:
    return {
        **_budget(f"{name}.budget", role.budget),
        f"{name}.window": _text(role.window),
        f"{name}.shared": str(role.shared),
        f"{name}.epsilon": _text(role.epsilon),
        f"{name}.max_epsilon": _text(role.max_epsilon),
        f"{name}.tables": "all" if role.tables is None else " ".join(sorted(role.tables)),
        f"{name}.owner": str(role.owner),
        **({} if role.reuse_error is None else {f"{name}.reuse_error": str(role.reuse_error)}),
    }


def changes(old: Terms, new: Terms) -> tuple[Change, ...]:
    """All differences, those that weaken a promise first."""
    found = [_change(name, old, new) for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    return tuple(sorted(found, key=lambda change: (not change.fixed, not change.weaker)))


def _change(name: str, old: Terms, new: Terms) -> Change:
    before, after = old.get(name), new.get(name)
    return Change(
        f"{name}: {_difference(name, before, after)}",
        _whom(name, old, new),
        _is_weaker(name, before, after, old, new),
        name in _FIXED,
    )


def _difference(name: str, before: str | None, after: str | None) -> str:
    """Both texts; of a column's declaration, only the parts that differ."""
    if not name.startswith("tables.") or ".columns." not in name:
        return f"{_short(before)} -> {_short(after)}"
    was, now = _parts(before), _parts(after)
    if was is None or now is None:
        return f"{_declared(before, was)} -> {_declared(after, now)}"
    parts = [f"{part} {_short(was[part])} -> {_short(now[part])}" for part in was if was[part] != now[part]]
    return ", ".join(parts)


def _parts(text: str | None) -> Mapping[str, str] | None:
    """A column's declaration by part, as `_column` put them together; None if it is none."""
    plain, _, randomized = (text or "").partition(_RESPONSE)
    front = plain.split(", ", 3)
    back = front[-1].rsplit(", ", 2)
    if len(front) != 4 or len(back) != 3:
        return None
    return dict(zip(_COLUMN, (*front[:3], *back, randomized or _NONE), strict=True))


def _declared(text: str | None, parts: Mapping[str, str] | None) -> str:
    if parts is None:
        return _short(text)
    said = (f"{part} {_short(value)}" for part, value in parts.items() if value not in (_NONE, "False"))
    return ", ".join(said) or "declared"


def _short(value: str | None) -> str:
    return "absent" if value is None else f"{value:.80}"


def _whom(name: str, old: Terms, new: Terms) -> str:
    section, _, rest = name.partition(".")
    if section == "roles":
        role = rest.rpartition(".")[0].removesuffix(".budget")
        users = sorted(
            {key[6:] for terms in (old, new) for key in terms if key[:6] == "users." and _dotless(terms[key]) == role}
        )
        return ", ".join(users) or "nobody yet"
    return "" if section == "users" else "everybody"


def _is_weaker(name: str, before: str | None, after: str | None, old: Terms, new: Terms) -> bool:
    section, _, part = name.partition(".")
    if section == "users":
        return _account_changes(before, after, old, new)
    if section == "tables":
        return _exposes(name, before, after)
    if section == "roles":
        return _allows_more(part.partition(".")[2], before, after)
    if part in ("budget.epsilon", "budget.delta"):
        return _number(after) > _number(before)
    if name in ("privacy.unit", "timezone", *_FIXED):
        return True
    pairs = {"privacy.accounting": "zcdp", "privacy.replay": "shared", "log_text": "True"}
    return after == pairs.get(name) or (name == "privacy.allow_large_delta" and after == "True")


def _account_changes(before: str | None, after: str | None, old: Terms, new: Terms) -> bool:
    """A user known before whose new role counts their spending in another account, or allows more."""
    if before is None or after is None:
        return False
    was, now = f"roles.{_dotless(before)}", f"roles.{_dotless(after)}"
    shared = {old.get(f"{was}.shared"), new.get(f"{now}.shared")} != {"False"}
    pairs = {part: (old.get(f"{was}.{part}"), new.get(f"{now}.{part}")) for part in _RIGHTS}
    more = any(one != other and _allows_more(part, one, other) for part, (one, other) in pairs.items())
    return shared or more or new.get(f"{now}.window") != old.get(f"{was}.window")


def _exposes(name: str, before: str | None, after: str | None) -> bool:
    """A table that becomes public is answered exactly, and a randomized column's counts are free.

    Another unit protects somebody else.
    """
    if after is None:
        return False
    if name.count(".") > 1:
        return _RESPONSE in after
    return after == "public" or before is not None


_RIGHTS: Final = ("budget.epsilon", "budget.delta", "max_epsilon", "tables", "owner")


def _allows_more(part: str, before: str | None, after: str | None) -> bool:
    match part:
        case "budget.epsilon" | "budget.delta":
            return before is not None and _number(after) > _number(before)
        case "max_epsilon":
            return before is not None and _cap(after) > _cap(before)
        case "window":
            return before is not None and after is not None and _WINDOWS.index(after) > _WINDOWS.index(before)
        case "shared":
            return before == "True" and after == "False"
        case "owner":
            return after == "True"
        case "tables":
            return before is not None and after is not None and not _within(after, before)
        case _:
            return False


def _within(after: str, before: str) -> bool:
    return before == "all" or (after != "all" and set(after.split()) <= set(before.split()))


def _number(text: str | None) -> Decimal:
    return Decimal(0) if text in (None, _NONE) else Decimal(text or 0)


def _cap(text: str | None) -> Decimal:
    return Decimal("Infinity") if text in (None, _NONE) else _number(text)


def refusal(found: tuple[Change, ...], accepted: bool) -> str | None:
    """Why a policy with these changes may not replace the one in force, or None."""
    if fixed := [change for change in found if change.fixed]:
        return f"{fixed[0].what}: stop the server, and start it with the new policy"
    if not accepted and any(change.weaker for change in found):
        return "it promises less than the policy in force"
    return None


def leaving(old: Policy, new: Policy) -> Iterator[str]:
    """Users whose sessions must end: removed, locked, or with another role or password."""
    for name, user in old.users.items():
        if new.users.get(name) != user:
            yield name
