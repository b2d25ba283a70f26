"""The groups of a release: which combinations of its keys there are, known before any private row is read.

Decides whether the keys are public: each needs a domain, and the combinations that a row within the declared domains
can give must be few enough. Keys that depend on each other are not crossed: `to_char(d, 'Mon')` and the month of the
same day, or two columns of one public table, have the combinations that the day's values or the table's rows have.
An aggregate such as MAX whose argument has one value in each group is known as well. Privacy: all of it follows from
the policy, the public tables and the text; rows of other combinations are dropped by the emitted SQL before
contributions are bounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import product
from math import prod

from dpsql.compiler.algebra import Aggregation, Col, Expr, columns_of
from dpsql.compiler.evaluated import Known, Unknown, comparable, value_of
from dpsql.compiler.image import World, world_of
from dpsql.compiler.keys import KeyDomain, Listed, Released, WholeNumbers, key_domain, shown
from dpsql.policy.schema import SchemaTable
from dpsql.types import Kind, SqlType, Value

Place = tuple[int, ...]
"""A group: for each key, the index of its value in the key's domain."""

MOST_CODES = 2**62


@dataclass(frozen=True, slots=True)
class Groups:
    """The domains of all keys; `public`: every group is released. `places`: which there are, None for all combinations.

    `known`: the values, one for each group, of the aggregates (by index) that public data tell.
    """

    domains: tuple[KeyDomain | None, ...]
    public: bool
    places: tuple[Place, ...] | None = None
    known: Mapping[int, tuple[Value, ...]] = field(default_factory=dict)


_RECENT: dict[int, tuple[Aggregation, Groups]] = {}
"""Of the aggregations that are being planned: a price is looked for by planning again and again."""


def groups_of(aggregation: Aggregation, most: int, tables: Mapping[str, SchemaTable]) -> Groups:
    """The groups of an aggregation, at most `most` where they are public."""
    kept = _RECENT.get(id(aggregation))
    if kept is not None and kept[0] is aggregation:
        return kept[1]
    if len(_RECENT) > 100:
        _RECENT.clear()
    found = _groups(aggregation, most, tables)
    _RECENT[id(aggregation)] = aggregation, found
    return found


def _groups(aggregation: Aggregation, most: int, tables: Mapping[str, SchemaTable]) -> Groups:
    found = [key_domain(expr, most) for expr in aggregation.keys]
    domains = tuple(d for d in found if d is not None)
    if len(domains) < len(found):
        return Groups(tuple(found), public=False)
    world = world_of(aggregation.input, tables)
    parts = tuple(_part(keys, domains, aggregation, world) for keys in _clusters(domains, world))
    made = _together(domains, parts)
    size = prod(d.size for d in made.domains if d is not None) if made.places is None else len(made.places)
    return made if size <= most else Groups(made.domains, public=False)


@dataclass(frozen=True, slots=True)
class _Part:
    """Keys that depend on each other, and their combinations; `known`: by aggregate, its value in each of them."""

    keys: tuple[int, ...]
    places: tuple[Place, ...]
    known: Mapping[int, Mapping[Place, Value]] = field(default_factory=dict)


def _clusters(domains: Sequence[KeyDomain], world: World) -> list[tuple[int, ...]]:
    """The keys, those together that read columns which are tied to each other."""
    found: list[tuple[set[int], frozenset[str]]] = []
    for i, domain in enumerate(domains):
        names = world.tied(c.name for c in columns_of(world.spelled(domain.subject)))
        apart = [each for each in found if not each[1] & names]
        joined = [each for each in found if each[1] & names]
        keys = {i}.union(*(k for k, _ in joined))
        found = [*apart, (keys, names.union(*(n for _, n in joined)))]
    return [tuple(sorted(keys)) for keys, _ in found]


def _part(keys: tuple[int, ...], domains: Sequence[KeyDomain], aggregation: Aggregation, world: World) -> _Part:
    """The combinations of some keys: those of the rows that there can be, else all."""
    chosen = [domains[i] for i in keys]
    try:
        return _possible(keys, chosen, aggregation, world)
    except Unknown:
        return _Part(keys, ())


def _possible(keys: tuple[int, ...], domains: list[KeyDomain], aggregation: Aggregation, world: World) -> _Part:
    if any(isinstance(d.of, Released) for d in domains):
        raise Unknown
    subjects = tuple(world.spelled(d.subject) for d in domains)
    read = world.tied(c.name for s in subjects for c in columns_of(s))
    asked = dict(_choices(aggregation, read, world))
    if not read or (len(read) == 1 and not asked and all(isinstance(s, Col) for s in subjects)):
        raise Unknown
    places = [_places_of(d) for d in domains]
    seen: dict[Place, dict[int, set[Known]]] = {}
    for row in world.rows((*subjects, *asked.values())):
        at = tuple(p.get(value_of(s, row)) for s, p in zip(subjects, places, strict=True))
        place = tuple(i for i in at if i is not None)
        if len(place) == len(at):
            values = seen.setdefault(place, {})
            for index, argument in asked.items():
                values.setdefault(index, set()).add(value_of(argument, row))
    if not seen:
        raise Unknown
    known = {i: _only(i, seen, aggregation) for i in asked}
    return _Part(keys, tuple(sorted(seen)), {i: values for i, values in known.items() if values is not None})


def _places_of(domain: KeyDomain) -> dict[Known, int]:
    """The index of each value of a key's subject."""
    match domain.of:
        case WholeNumbers(first=first, count=count):
            found: list[Known] = [comparable(first + i) for i in range(count)]
        case Listed(values=values):
            found = [comparable(v) for v in values]
        case Released():
            raise Unknown
    return {**{value: i for i, value in enumerate(found)}, **({None: len(found)} if domain.nullable else {})}


def _choices(aggregation: Aggregation, read: frozenset[str], world: World) -> Iterator[tuple[int, Expr]]:
    """The arguments of aggregates that choose one of their values, where they read the same rows as the keys."""
    for index, aggregate in enumerate(aggregation.aggregates):
        if aggregate.argument is None or aggregate.condition is not None or aggregate.end is not None:
            continue
        argument = world.spelled(aggregate.argument)
        names = {c.name for c in columns_of(argument)}
        if aggregate.kind in ("min", "max", "mode", "quantile_disc") and names and names <= read:
            yield index, argument


def _only(index: int, seen: Mapping[Place, Mapping[int, set[Known]]], made: Aggregation) -> dict[Place, Value] | None:
    """The aggregate's value in each group, where every row there can be has the same."""
    type_ = made.aggregates[index].type
    if any(len(values[index]) > 1 for values in seen.values()):
        return None
    return {place: _shown(next(iter(values[index])), type_) for place, values in seen.items()}


def _shown(value: Known, type_: SqlType) -> Value:
    return value.date() if isinstance(value, datetime) and type_.kind is Kind.DATE else shown(value, type_)


def _together(domains: tuple[KeyDomain, ...], parts: tuple[_Part, ...]) -> Groups:
    """All combinations of the parts, over domains that hold no value that no group has."""
    used: list[list[int]] = [list(range(d.size)) for d in domains]
    for part in parts:
        for at, key in enumerate(part.keys):
            used[key] = sorted({place[at] for place in part.places}) if part.places else used[key]
    trimmed = tuple(_restricted(d, kept) for d, kept in zip(domains, used, strict=True))
    full = all(not p.places or len(p.places) == prod(len(used[k]) for k in p.keys) for p in parts)
    known = any(p.known for p in parts)
    released = any(isinstance(d.of, Released) for d in domains)
    if (full and not known) or released or prod(d.size for d in trimmed) > MOST_CODES or not domains:
        return Groups(trimmed, public=True)
    renamed = [{old: new for new, old in enumerate(kept)} for kept in used]
    spots = [_Part(p.keys, p.places or tuple(product(*(used[k] for k in p.keys)))) for p in parts]
    if prod(len(s.places) for s in spots) > _MOST_GROUPS:
        return Groups(trimmed, public=True)
    ordered: list[tuple[Place, tuple[Place, ...]]] = []
    for combination in product(*(s.places for s in spots)):
        index = {
            k: renamed[k][i]
            for s, place in zip(spots, combination, strict=True)
            for k, i in zip(s.keys, place, strict=True)
        }
        ordered.append((tuple(index[k] for k in range(len(domains))), combination))
    ordered.sort()
    values = {
        i: tuple(found[combination[at]] for _, combination in ordered)
        for at, part in enumerate(parts)
        for i, found in part.known.items()
    }
    return Groups(trimmed, True, None if full else tuple(place for place, _ in ordered), values)


_MOST_GROUPS = 1_000_000


def _restricted(domain: KeyDomain, kept: list[int]) -> KeyDomain:
    """The domain of the values at these indices."""
    if len(kept) == domain.size:
        return domain
    count = domain.size - domain.nullable
    values = [i for i in kept if i < count]
    nullable = domain.nullable and count in kept
    image = None if domain.image is None else tuple(domain.image[i] for i in values)
    match domain.of:
        case WholeNumbers(first=first) if values == list(range(values[0], values[-1] + 1) if values else ()):
            of: WholeNumbers | Listed | Released = WholeNumbers(first + (values[0] if values else 0), len(values))
        case WholeNumbers(first=first):
            of = Listed(tuple(first + i for i in values))
        case Listed(values=listed):
            of = Listed(tuple(listed[i] for i in values))
        case Released():
            return domain
    return replace(domain, of=of, nullable=nullable, image=image)
