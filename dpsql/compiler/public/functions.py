"""The scalar functions that may be called, with the overload that Postgres would choose for the argument types.

Each line of a table gives a signature, its result and DuckDB text; `{0}` is the first argument, cast to the type of the
signature. `pg_` functions are those of `dpsql.remainder`. What is not listed does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from dpsql.compiler.public.coerce import PREFERRED, cast, category, implicit, name_of, numeric_text
from dpsql.compiler.public.function_table import TABLE
from dpsql.compiler.public.refuse import JSON_HINT
from dpsql.compiler.public.scope import position_of
from dpsql.compiler.public.term import Term, join_terms
from dpsql.errors import UNDEFINED_FUNCTION, Rejected
from dpsql.types import Kind, SqlType

_KINDS = {
    "bool": Kind.BOOL,
    "int2": Kind.INT2,
    "int4": Kind.INT4,
    "int8": Kind.INT8,
    "numeric": Kind.NUMERIC,
    "float4": Kind.FLOAT4,
    "float8": Kind.FLOAT8,
    "text": Kind.TEXT,
    "date": Kind.DATE,
    "time": Kind.TIME,
    "timestamp": Kind.TIMESTAMP,
    "timestamptz": Kind.TIMESTAMPTZ,
    "interval": Kind.INTERVAL,
    "text[]": Kind.TEXT_ARRAY,
}


@dataclass(frozen=True, slots=True)
class Overload:
    """A signature. `template` is DuckDB text over the arguments; numerics arrive in their text form."""

    arguments: tuple[Kind, ...]
    result: Kind
    template: str

    def accepts(self, kinds: Sequence[Kind]) -> bool:
        return len(kinds) == len(self.arguments) and all(map(implicit, kinds, self.arguments))


def _parse(table: str) -> dict[str, tuple[Overload, ...]]:
    made: dict[str, list[Overload]] = {}
    for line in filter(None, map(str.strip, table.splitlines())):
        found = re.fullmatch(r"(\w+)\(([^)]*)\) -> (\S+)\s*= (.+)", line)
        if found is None:
            raise ValueError(f"function table: {line}")
        arguments = tuple(_KINDS[a.strip()] for a in found[2].split(",") if a.strip())
        made.setdefault(found[1], []).append(Overload(arguments, _KINDS[found[3]], found[4]))
    return {name: tuple(overloads) for name, overloads in made.items()}


FUNCTIONS = _parse(TABLE)


def apply(name: str, arguments: Sequence[Term], zone: str, where: exp.Expr | None) -> Term:
    """The call of a function of the table. Raises 42883 where no overload fits, 42725 where several do."""
    chosen = choose(name, FUNCTIONS.get(name, ()), [a.kind for a in arguments], where)
    pairs = zip(arguments, chosen.arguments, strict=True)
    terms = [numeric_text(cast(term, SqlType(kind), zone, where)) for term, kind in pairs]
    return join_terms(chosen.template.format(*(t.sql for t in terms), zone=zone), SqlType(chosen.result), terms)


def choose(name: str, overloads: Sequence[Overload], kinds: Sequence[Kind], where: exp.Expr | None) -> Overload:
    """Postgres's function type resolution (manual, 10.3)."""
    fitting = [o for o in overloads if o.accepts(kinds)]
    if not fitting:
        given = ", ".join(name_of(SqlType(kind)) for kind in kinds)
        hint = "No function matches the given name and argument types. You might need to add explicit type casts."
        if name == "round":
            hint = "Numbers of digits exist for numeric only: ROUND(CAST(x AS numeric), 2)."
        elif "json" in name:
            hint = JSON_HINT
        text = f"function {name}({given}) does not exist"
        raise Rejected(text, sqlstate=UNDEFINED_FUNCTION, position=position_of(where), hint=hint)
    for score in (_exact, _preferred):
        best = max(score(o, kinds) for o in fitting)
        fitting = [o for o in fitting if score(o, kinds) == best]
    if len(fitting) > 1:
        fitting = _for_unknowns(fitting, kinds)
    if len(fitting) > 1:
        given = ", ".join(name_of(SqlType(kind)) for kind in kinds)
        raise Rejected(f"function {name}({given}) is not unique", sqlstate="42725", position=position_of(where))
    return fitting[0]


def _exact(overload: Overload, kinds: Sequence[Kind]) -> int:
    return sum(a is k for a, k in zip(overload.arguments, kinds, strict=True))


def _preferred(overload: Overload, kinds: Sequence[Kind]) -> int:
    pairs = zip(overload.arguments, kinds, strict=True)
    return sum(a is k or (a in PREFERRED and k is not Kind.UNKNOWN) for a, k in pairs)


def _for_unknowns(fitting: Sequence[Overload], kinds: Sequence[Kind]) -> list[Overload]:
    """Open literals: text where some overload takes text there, else the category all agree on, its preferred type."""
    left = list(fitting)
    for index, kind in enumerate(kinds):
        if kind is not Kind.UNKNOWN:
            continue
        categories = {category(o.arguments[index]) for o in left}
        wanted = "S" if "S" in categories else next(iter(categories)) if len(categories) == 1 else None
        left = [o for o in left if wanted is None or category(o.arguments[index]) == wanted]
        preferred = [o for o in left if o.arguments[index] in PREFERRED]
        left = preferred or left
    return left
