"""Roles, users and the server's settings.

Decides who may log in, what they may ask and at which price, and how the proxy listens. A password stands here only as
a verifier, and no message may repeat it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path as FilePath

from dpsql.errors import Rejected
from dpsql.pgwire.auth import ITERATIONS, parse_verifier
from dpsql.policy import amounts
from dpsql.policy.document import Document, RoleSection, ServerSection, UserSection
from dpsql.policy.model import Budget, Role, Server, Tls, User
from dpsql.policy.problems import Path, Problems, did_you_mean

_LISTEN = re.compile(r"(\[[0-9a-fA-F:.%a-z]+\]|[^:\s]+):([0-9]{1,5})")
MAX_FACTOR = 1000
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*(ms|s|min|h)?")
_SECONDS = {"ms": Decimal("0.001"), "s": Decimal(1), "min": Decimal(60), "h": Decimal(3600)}


def roles(document: Document, problems: Problems) -> Mapping[str, Role]:
    return {name: _role(section, name, document, problems) for name, section in document.roles.items()}


def _role(section: RoleSection, name: str, document: Document, problems: Problems) -> Role:
    path: Path = ("roles", name)
    total = _budget(section, path, document, problems)
    _prices(section, path, problems)
    _least(section, total, path, document, problems)
    for key in ("window", "shared"):
        if getattr(section, key) and total is None:
            problems.add((*path, key), "is set without a budget", "add `budget:` to the role or remove it")
    known = {*document.tables, *document.views}
    for index, table in enumerate(section.tables or ()):
        if table not in known:
            problems.add((*path, "tables", index), f"names `{table:.60}`, no table", did_you_mean(table, known))
    allowed = None if section.tables is None else tuple(section.tables)
    return Role(
        total,
        section.window,
        section.shared,
        section.epsilon,
        section.max_epsilon,
        allowed,
        section.owner,
        section.reuse_error,
        section.null_noise,
    )


def _budget(section: RoleSection, path: Path, document: Document, problems: Problems) -> Budget | None:
    if section.budget is None:
        return None
    return amounts.budget(section.budget, (*path, "budget"), document.privacy, problems)


def _prices(section: RoleSection, path: Path, problems: Problems) -> None:
    """The default price must be payable, or no plain statement of the role could ever be answered."""
    amounts.epsilon(section.epsilon, (*path, "epsilon"), problems)
    limits = {"max_epsilon": section.max_epsilon, "budget.epsilon": section.budget.epsilon if section.budget else None}
    if section.max_epsilon is not None:
        amounts.epsilon(section.max_epsilon, (*path, "max_epsilon"), problems)
    if section.reuse_error is not None and not (section.reuse_error == 0 or 1 <= section.reuse_error <= MAX_FACTOR):
        fix = f"write off, or a number from 1 to {MAX_FACTOR}"
        problems.add((*path, "reuse_error"), f"is {section.reuse_error}", fix)
    for key, limit in limits.items():
        if limit is not None and section.epsilon > limit:
            problems.add((*path, "epsilon"), f"is {section.epsilon}, above {key} ({limit})", "lower it")


def _least(section: RoleSection, total: Budget | None, path: Path, document: Document, problems: Problems) -> None:
    """Nor may a price be below the least that a statement may cost."""
    least = amounts.least_price(total, document.privacy) if total is not None else None
    for key, price in (("epsilon", section.epsilon), ("max_epsilon", section.max_epsilon)):
        if least is not None and price is not None and 0 < price < least:
            what = f"is {price}, below {least:f}, a millionth of the budget: the least that a statement may cost"
            problems.add((*path, key), what, f"raise it to {least:f} or more")


def users(document: Document, problems: Problems) -> Mapping[str, User]:
    _alike(document.users, problems)
    return {name: _user(section, name, document, problems) for name, section in document.users.items()}


def _user(section: UserSection, name: str, document: Document, problems: Problems) -> User:
    path: Path = ("users", name)
    if not plain_name(name):
        problems.add(path, "is not a user name", "use at most 63 letters, digits and punctuation, no spaces")
    if section.role not in document.roles:
        fix = did_you_mean(section.role, document.roles)
        problems.add((*path, "role"), f"names `{section.role:.60}`, no role", fix)
    if section.password is not None and not is_verifier(section.password):
        fix = "run `dpsql password` and put what it prints here in quotes"
        problems.add((*path, "password"), "is not a SCRAM-SHA-256 verifier", fix)
    return User(section.role, section.password)


def plain_name(name: str) -> bool:
    """Printable, without blanks, of one spelling: no invisible or compatibility characters."""
    return (
        0 < len(name.encode()) <= 63
        and unicodedata.normalize("NFKC", name) == name
        and all(unicodedata.category(character)[0] not in "CZ" for character in name)
    )


def _alike(names: Mapping[str, object], problems: Problems) -> None:
    """Two users that a reader would take for one are refused."""
    seen: dict[str, str] = {}
    for name in names:
        first = seen.setdefault(unicodedata.normalize("NFKC", name).casefold(), name)
        if first != name:
            problems.add(("users", name), f"differs from `{first}` only in case or form", "rename one of them")


def is_verifier(text: str) -> bool:
    """Whether Postgres could have written it, with no fewer iterations than Postgres would use."""
    try:
        return parse_verifier(text).iterations >= ITERATIONS
    except Rejected:
        return False


def server(section: ServerSection, policy: FilePath, problems: Problems) -> Server:
    found = _LISTEN.fullmatch(section.listen)
    if found is None or not 0 <= int(found[2]) <= 65535:
        problems.add(("server", "listen"), f"is `{section.listen:.60}`", "write HOST:PORT, for example 127.0.0.1:6432")
    host, port = (found[1].strip("[]"), int(found[2])) if found else ("127.0.0.1", 6432)
    tls = Tls(_file(section.tls.cert, policy), _file(section.tls.key, policy)) if section.tls else None
    return Server(
        host=host,
        port=port,
        tls=tls,
        statement_timeout=_duration(section.statement_timeout, "statement_timeout", (1, 86_400_000), problems),
        time_slot=_duration(section.time_slot, "time_slot", (0, 600_000), problems),
        log_text=section.log_text,
        public=_public(section.public, problems),
    )


def _public(url: str | None, problems: Problems) -> str | None:
    if url is not None and not url.startswith(("postgresql://", "postgres://")):
        problems.add(("server", "public"), "is no URL of a Postgres", "write postgresql://USER@HOST:PORT")
    return url


def _file(name: str, policy: FilePath) -> FilePath:
    return (policy.parent / FilePath(name).expanduser()).resolve()


def _duration(text: str, key: str, limits: tuple[int, int], problems: Problems) -> float:
    """Seconds; `limits` are milliseconds. A number without unit is seconds."""
    found = _DURATION.fullmatch(text.strip())
    seconds = Decimal(found[1]) * _SECONDS[found[2] or "s"] if found else Decimal(-1)
    if not limits[0] <= seconds * 1000 <= limits[1]:
        fix = f"write a time from {limits[0]}ms to {limits[1] // 1000}s, for example `60s` or `250ms`"
        problems.add(("server", key), f"is `{text:.60}`", fix)
        return 60.0
    return float(seconds)
