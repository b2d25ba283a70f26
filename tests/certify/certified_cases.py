"""Compiled releases to certify and to forge: golden cases, named and random statements over hostile policies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from compiler_cases import cases
from compiler_replay import compiled_on
from compiler_sites import Site
from golden_cases import compiled_case, duckdb_backend, files, schema_of

from dpsql.certify import Unproven
from dpsql.certify.check import certify
from dpsql.compiler import Compiled
from dpsql.compiler.plan import PlannedRelease
from dpsql.errors import Rejected
from dpsql.policy.schema import Schema


@dataclass(frozen=True, slots=True)
class Planned:
    """A release with the schema that it was planned for; `name` says where it comes from."""

    name: str
    release: PlannedRelease
    schema: Schema


def refused(planned: PlannedRelease, schema: Schema) -> bool:
    return isinstance(certify(planned, schema), Unproven)


def gaps(compiled: Compiled, schema: Schema) -> list[str]:
    """Why which releases have no certificate."""
    found = (certify(each, schema) for each in compiled.releases)
    return [each.reason for each in found if isinstance(each, Unproven)]


@cache
def golden() -> tuple[Planned, ...]:
    return tuple(_golden())


def _golden() -> Iterator[Planned]:
    for file in files():
        for case in file.cases:
            schema = schema_of(case.policy, duckdb_backend())
            try:
                compiled = compiled_case(case, schema)
            except Rejected:
                continue
            for release in compiled.releases:
                yield Planned(f"{case.file}: {case.title}", release, schema)


def named(site: Site) -> Iterator[Planned]:
    for name, statement in cases().items():
        try:
            compiled = compiled_on(site, statement)
        except Rejected:
            continue
        for release in compiled.releases:
            yield Planned(f"{site.world.name}: {name}", release, site.schema)
