"""`Document` -> `Policy`: do the declarations make sense together?

Decides what may be promised at all (budgets, deltas, bounds on contributions), who may ask, and where files are. It
reports every problem; the caller must not use what it returns if there was one.
"""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path as FilePath
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dpsql.policy.access import roles, server, users
from dpsql.policy.amounts import budget
from dpsql.policy.declare import tables, views
from dpsql.policy.document import Document, PrivacySection
from dpsql.policy.model import ROW, Policy, Privacy
from dpsql.policy.problems import Problems

_DATASET = re.compile(r"[a-z0-9][a-z0-9_.-]{0,62}")
_BACKENDS = ("duckdb", "postgresql", "postgres", "spark")
_LEDGERS = ("sqlite", "postgresql", "postgres")
_FILES = ("duckdb", "sqlite")

MAX_CONTRIBUTION = 2**30
"""max_groups * max_rows_per_group beyond it would let the exact sums leave 64 bits."""


def build(document: Document, path: FilePath, problems: Problems) -> Policy:
    """The policy; problems with it are added to `problems`."""
    if not _DATASET.fullmatch(document.dataset):
        problems.add(("dataset",), f"`{document.dataset:.60}` is no dataset name", "use a-z, 0-9, _ . - (at most 63)")
    zone = _timezone(document.timezone, problems)
    privacy = _privacy(document.privacy, problems)
    declared = tables(document, zone, problems)
    return Policy(
        dataset=document.dataset,
        backend=_url(document.backend, "backend", _BACKENDS, path, problems),
        ledger=_url(document.ledger or f"sqlite:{document.dataset}.ledger", "ledger", _LEDGERS, path, problems),
        ledger_anchor=_beside(document.ledger_anchor, path) if document.ledger_anchor else None,
        privacy=privacy,
        tables=declared,
        path=path,
        epoch=document.epoch,
        timezone=document.timezone,
        views=views(document, problems),
        roles=roles(document, problems),
        users=users(document, problems),
        server=server(document.server, path, problems),
        lines=problems.lines,
    )


def _timezone(name: str, problems: Problems) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        problems.add(("timezone",), f"`{name:.60}` is not a time zone", "write for example `UTC` or `Europe/Rome`")
        return ZoneInfo("UTC")


def _url(url: str, key: str, schemes: tuple[str, ...], policy: FilePath, problems: Problems) -> str:
    """The URL with a relative file made absolute, beside the policy."""
    scheme, colon, rest = url.partition(":")
    if not colon or scheme not in schemes or not rest:
        forms = " or ".join(f"`{name}:FILE`" if name in _FILES else f"`{name}://...`" for name in schemes[:2])
        problems.add((key,), "is not a URL that exists here", f"write {forms}")
        return url
    return f"{scheme}:{_beside(rest, policy)}" if scheme in _FILES else url


def _beside(name: str, policy: FilePath) -> str:
    return str((policy.parent / FilePath(name).expanduser()).resolve())


def _privacy(section: PrivacySection, problems: Problems) -> Privacy:
    groups = _bound(section, "max_groups", problems)
    rows = _bound(section, "max_rows_per_group", problems)
    if groups * rows > MAX_CONTRIBUTION:
        problems.add(("privacy", "max_groups"), "times max_rows_per_group is above 2^30", "lower one of them")
    _whole_numbers(section, problems)
    if section.selection_cap is not None and section.selection_cap < groups:
        problems.add(("privacy", "selection_cap"), f"is below max_groups ({groups})", f"write {4 * groups} or so")
    _key_delta(section, problems)
    if not section.unit.strip():
        problems.add(("privacy", "unit"), "is empty", "name the unit, or write `row`")
    return Privacy(
        unit=section.unit,
        units=section.units,
        budget=budget(section.budget, ("privacy", "budget"), section, problems),
        max_groups=groups,
        max_rows_per_group=rows,
        max_keys=section.max_keys,
        selection_cap=section.selection_cap,
        key_delta_share=section.key_delta_share,
        key_delta=section.key_delta,
        accounting=section.accounting,
        allow_large_delta=section.allow_large_delta,
        replay=section.replay,
    )


def _bound(section: PrivacySection, key: str, problems: Problems) -> int:
    value: int | None = getattr(section, key)
    if value is None and section.unit != ROW:
        problems.add(("privacy", key), "is missing", f"add `{key}: N`, what nearly all units stay below")
    if value is not None and value < 1:
        problems.add(("privacy", key), f"is {value}", "write 1 or more")
    return value if value and value > 0 else 1


def _whole_numbers(section: PrivacySection, problems: Problems) -> None:
    if not 1 <= section.units <= 10**12:
        problems.add(("privacy", "units"), f"is {section.units}", "write about how many units there are, 1 or more")
    if not 1 <= section.max_keys <= 1_000_000:
        problems.add(("privacy", "max_keys"), f"is {section.max_keys}", "write a number from 1 to 1000000")
    if section.selection_cap is not None and section.selection_cap > 10**6:
        problems.add(("privacy", "selection_cap"), f"is {section.selection_cap}", "write at most 1000000")


def _key_delta(section: PrivacySection, problems: Problems) -> None:
    """The share is below 1 under zcdp, whose conversion needs some delta of its own."""
    share, top = section.key_delta_share, Decimal(1)
    if not 0 <= share <= top or (share == top and section.accounting == "zcdp"):
        problems.add(("privacy", "key_delta_share"), f"is {share}", "write a number from 0 to below 1")
        return
    limit = section.budget.delta * (share if section.accounting == "zcdp" else top)
    if section.key_delta is not None and not 0 < section.key_delta <= limit:
        fix = f"write a number above 0 and at most {limit}, the keys' share of the dataset's delta"
        problems.add(("privacy", "key_delta"), f"is {section.key_delta}", fix)
