"""The compiler, on one screen: a statement's text and the policy in, releases with their prices and a remainder out.

Every stage is a pure function: nothing here reads data, a clock or a socket, so EXPLAIN, Describe and prices are exact,
free and the same for neighbouring databases.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

from sqlglot import exp

from dpsql.compiler.accuracy import with_epsilon
from dpsql.compiler.algebra import Lit
from dpsql.compiler.bind.joins import Numbers
from dpsql.compiler.cautions import cautions
from dpsql.compiler.clock import READS_CLOCK
from dpsql.compiler.error_bars import compiled_with_bars
from dpsql.compiler.fuel import metered
from dpsql.compiler.mistakes import explained
from dpsql.compiler.parse import parse
from dpsql.compiler.placeholders import Placeholders, as_constants, spell_out
from dpsql.compiler.plan import PlannedRelease, Terms, plan
from dpsql.compiler.probes import asks_nothing, empty_query
from dpsql.compiler.problems import detailed
from dpsql.compiler.public import Remainder, translate
from dpsql.compiler.rewrite import NO_TEXT, PublicText, public_text
from dpsql.compiler.single_units import check_groups
from dpsql.compiler.split import PENDING, Split, split
from dpsql.errors import Rejected
from dpsql.policy.schema import Schema
from dpsql.types import UNKNOWN, Column, Cost, Parameters, SqlType

__all__ = ["Compiled", "Terms", "compile_statement", "reads_clock"]


@dataclass(frozen=True, slots=True)
class Compiled:
    """A statement, ready to be answered, at the price `epsilon`.

    `releases` in an order in which each depends on earlier ones only; `derived[i]` is the remainder that makes the
    public relation `i`, read by later releases. `parameter_types` are those that Describe announces. `columns_only`: a
    probe of private rows, answered without rows. `now`: the clock's time, where the text may read it.
    `cautions`: what the answer will not tell of itself.
    """

    releases: tuple[PlannedRelease, ...]
    derived: tuple[Remainder, ...]
    derived_texts: tuple[PublicText, ...]
    remainder: Remainder
    text: PublicText
    columns: tuple[Column, ...]
    parameter_types: tuple[SqlType, ...]
    public_tables: tuple[str, ...]
    cost: Cost
    epsilon: Decimal
    columns_only: bool = False
    now: datetime | None = None
    cautions: tuple[str, ...] = ()


def compile_statement(
    text: str,
    schema: Schema,
    terms: Terms,
    tables: frozenset[str] | None = None,
    parameters: Parameters = (),
    now: datetime | None = None,
    *,
    texts: bool = False,
) -> Compiled:
    """parse -> split (which binds) -> plan -> translate. Raises `Rejected` with the reason and its position.

    `tables`: those that the user may see, None for all. A parameter of UNKNOWN type takes one from its place. `now`:
    what the clock shows over private rows (see `clock`), given where `reads_clock`; without it, it cannot be read.
    `texts`: the public parts as texts for Postgres are made as well; nothing runs them yet.
    """

    def compiled(tree: exp.Query) -> Compiled:
        return _compiled(text if texts else None, tree, schema, terms, tables, parameters, now)

    def made(read: Callable[[], exp.Query]) -> Compiled:
        with metered():
            return compiled_with_bars(read, compiled) if terms.error_bars else compiled(read())

    try:
        return made(lambda: parse(text))
    except Rejected as error:
        with suppress(Rejected):
            if any(value is not None for _, value in parameters):
                return made(lambda: as_constants(parse(text), parameters))
        raise detailed(explained(error, text), text) from None


def reads_clock(text: str, schema: Schema) -> bool:
    """Whether what the statement compiles to may hang on the time."""
    return any(READS_CLOCK.search(each) for each in (text, *schema.policy.views.values()))


def _compiled(
    text: str | None,
    asked: exp.Query,
    schema: Schema,
    terms: Terms,
    tables: frozenset[str] | None,
    parameters: Parameters,
    now: datetime | None,
) -> Compiled:
    privacy = schema.policy.privacy
    original = asked.copy()
    zone = ZoneInfo(schema.policy.timezone)
    placeholders = spell_out(asked, parameters)
    literals = tuple(Lit(value, type_) for type_, value in placeholders.scalars)
    tightened = terms.max_groups, terms.max_rows_per_group
    state = Split(schema, tables, literals, *tightened, Numbers(schema), zone, now)
    state.text = text
    state.inferred.update(placeholders.casts)
    tree = split(asked, state)
    places = [i for i, made in enumerate(state.aggregations) if made is not PENDING]
    columns = tuple(state.relations[f"_r{i}"] for i in places)
    aggregations = tuple(state.aggregations[i] for i in places)
    terms = with_epsilon(aggregations, columns, schema, terms)
    planned = plan(aggregations, columns, schema, terms)
    releases = _ordered({i: replace(p, index=i) for i, p in zip(places, planned, strict=True)}, state)
    remainder = translate(tree, state.relations, schema.policy.timezone)
    public = tuple(name for name in state.relations if name not in {f"_r{i}" for i in places})
    made = state.made if state.made is not None else tree
    if releases and asks_nothing(asked):
        made = columns_only = empty_query([(c.name, c.type) for c in remainder.columns])
        made = made.copy()
        remainder, releases = translate(columns_only, {}, schema.policy.timezone), ()
    check_groups(
        ((r, state.single_units.get(r.index)) for r in releases),
        privacy.unit,
        lambda tree: _compiled(None, tree, schema, terms, tables, parameters, now),
    )
    return Compiled(
        columns_only=state.columns_only,
        epsilon=terms.epsilon,
        releases=releases,
        derived=tuple(d.remainder for d in state.derived),
        derived_texts=tuple(d.text for d in state.derived),
        remainder=remainder,
        text=NO_TEXT if text is None else public_text(text, original, made, schema.policy.views),
        columns=remainder.columns,
        parameter_types=_parameter_types(parameters, placeholders, state),
        public_tables=public,
        cost=sum((r.cost for r in releases), Cost()),
        now=now,
        cautions=tuple(words for r in releases for words in cautions(r, state.doubts[r.index], privacy.unit)),
    )


def _ordered(releases: Mapping[int, PlannedRelease], state: Split) -> tuple[PlannedRelease, ...]:
    """Inner releases before those that read them."""
    done: dict[int, PlannedRelease] = {}
    inner = {f"_r{index}": index for index in releases}

    def visit(index: int) -> None:
        if index in done:
            return
        for derived in releases[index].aggregation.depends_on:
            for name in state.derived[derived].remainder.relations:
                if name in inner:
                    visit(inner[name])
        done[index] = releases[index]

    for index in releases:
        visit(index)
    return tuple(done.values())


def _parameter_types(parameters: Parameters, placeholders: Placeholders, state: Split) -> tuple[SqlType, ...]:
    declared = [t for t, _ in parameters] + [UNKNOWN] * (placeholders.count - len(parameters))
    return tuple(placeholders.type_of(i, state.inferred) if t == UNKNOWN else t for i, t in enumerate(declared))
