"""What a session asks of the engine, as SQL for the public server: columns before, rows once.

Decides how each kind of statement is described, and what stands for it when it runs. It reads a session's settings from
text alone, and must never talk to either server.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from dpsql.compiler import kinds
from dpsql.compiler.kinds import Statement
from dpsql.errors import NOT_PERMITTED, UNDEFINED_OBJECT, Rejected
from dpsql.pgwire import values as wire
from dpsql.session import settings
from dpsql.session.options import with_options
from dpsql.session.ports import CancelToken, Engine, WireParameters
from dpsql.session.relation import as_literals, as_parameters, hollow, name, stand_in, type_name
from dpsql.session.settings import Values
from dpsql.types import TEXT, UNKNOWN, Again, Column, Kind, Relation, Settings, SqlType

_COPY_HINT = "COPY (SELECT ... GROUP BY ...) TO STDOUT copies the answer to a question."
_UNKNOWN_STATEMENT = "26000"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A statement of the engine's, and the `text` that the public server gets in its place until it runs.

    `source`: the client's own text. `oids`: of its parameters. `foreign`: Postgres found the types, and what the engine
    answers is cast to them.
    """

    statement: Statement
    text: str
    source: str = ""
    types: tuple[SqlType, ...] = ()
    oids: tuple[int, ...] = ()
    columns: tuple[Column, ...] = ()
    foreign: bool = False


@dataclass(frozen=True, slots=True)
class Bound:
    """A prepared statement with its parameters, not yet run. `formats`: those of its columns."""

    prepared: Prepared
    parameters: WireParameters = ()
    formats: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Ran:
    """What the public server is to execute for a statement that the engine has answered. `verb`: its tag's.

    `columns`: those of its rows, None where it has none.
    """

    sql: str
    values: tuple[bytes, ...] = ()
    notices: tuple[str, ...] = ()
    verb: str = ""
    again: Again | None = None
    columns: tuple[Column, ...] | None = None


class Asking:
    """Of one user. `known` finds what PREPARE or Parse has named."""

    def __init__(self, engine: Engine, user: str, known: Callable[[str], Prepared | None]) -> None:
        self._engine = engine
        self._user = user
        self._known = known

    def describe(
        self, statement: Statement, text: str, oids: tuple[int, ...], values: Values, cancel: CancelToken
    ) -> Prepared:
        """Runs nothing, costs nothing. `text` is the whole statement's. Raises what the statement's refusal raises."""
        return replace(self._described(statement, text, oids, values, cancel), source=text)

    def _described(
        self, statement: Statement, text: str, oids: tuple[int, ...], values: Values, cancel: CancelToken
    ) -> Prepared:
        match statement:
            case kinds.Select():
                return self._query(statement, statement, oids, values, cancel)
            case kinds.CopyOut(query):
                try:
                    return self._query(statement, query, oids, values, cancel, lambda made: _around(text, query, made))
                except Rejected as error:
                    if error.sqlstate == NOT_PERMITTED:
                        error.hint = f"{error.hint or ''} {_COPY_HINT}".strip()
                    raise
            case kinds.Declare(query=query):
                return self._query(statement, query, oids, values, cancel, lambda made: _around(text, query, made))
            case kinds.Prepare():
                return self._prepare(statement, values, cancel)
            case kinds.Explain(query, format):
                types = self._query(statement, query, oids, values, cancel)
                columns = plan_columns(format)
                return replace(types, text=stand_in(columns), columns=columns)
            case kinds.Show():
                columns = self._engine.budget(self._user).columns
                return Prepared(statement, stand_in(columns), columns=columns)
            case kinds.ExecutePrepared(called):
                columns = self._executable(called).columns
                return Prepared(statement, stand_in(columns), columns=columns)
            case kinds.Unsupported():
                raise statement.error()
            case _:
                raise Rejected(f"{type(statement).__name__} cannot be prepared")

    def trial(self, prepared: Prepared) -> tuple[str, ...]:
        """What is run before anything is debited, to see that the public server will take the answer in this form."""
        match prepared.statement:
            case kinds.CopyOut(query):
                return (_around(prepared.source, query, hollow(prepared.columns)),)
            case kinds.Declare(cursor, query):
                return (_around(prepared.source, query, hollow(prepared.columns)), f"CLOSE {name(cursor)}")
            case _:
                return ()

    def check(self, bound: Bound, values: Values, cancel: CancelToken) -> None:
        """Raises what is wrong with a statement once its parameters are known."""
        statement = bound.prepared.statement
        if isinstance(statement, kinds.Select | kinds.Explain | kinds.CopyOut | kinds.Declare) and bound.parameters:
            query = statement if isinstance(statement, kinds.Select) else statement.query
            asked = self._settings(query, values)
            self._engine.check(self._user, query.text, query.offset, asked, bound.parameters, cancel)

    def run(self, bound: Bound, text: str, values: Values, cancel: CancelToken, cast: bool = False) -> Ran:
        """Answers; what it debits stays debited. `text` is the whole statement's."""
        statement, parameters = bound.prepared.statement, bound.parameters
        match statement:
            case kinds.Select():
                relation, notices, again = self._answer(statement, parameters, values, cancel)
                return _ran(relation, "SELECT", notices, again, bound.prepared.columns if cast else None)
            case kinds.CopyOut(query) | kinds.Declare(query=query):
                relation, notices, _ = self._answer(query, parameters, values, cancel)
                return Ran(_around(text, query, as_literals(relation)), (), notices)
            case kinds.Explain(query, format):
                found = self._engine.explain(
                    self._user, query.text, query.offset, self._settings(query, values), parameters, format, cancel
                )
                return _ran(Relation(plan_columns(format), found.rows), "EXPLAIN")
            case kinds.Show():
                return _ran(self._engine.budget(self._user), "SHOW")
            case kinds.ExecutePrepared(called, arguments):
                prepared = self._executable(called)
                given = _arguments(called, prepared, arguments)
                return self.run(Bound(prepared, given), "", values, cancel)
            case _:
                return Ran(bound.prepared.text)

    def _query(
        self,
        whole: Statement,
        query: kinds.Select,
        oids: tuple[int, ...],
        values: Values,
        cancel: CancelToken,
        around: Callable[[str], str] = str,
    ) -> Prepared:
        declared = tuple(_declared(oid) for oid in oids)
        asked = self._settings(query, values)
        found = self._engine.describe(self._user, query.text, query.offset, asked, declared, cancel)
        announced = tuple(
            oids[at] if at < len(oids) and declared[at] is not None else wire.oid(type)
            for at, type in enumerate(found.parameter_types)
        )
        return Prepared(whole, around(stand_in(found.columns)), "", found.parameter_types, announced, found.columns)

    def _prepare(self, statement: kinds.Prepare, values: Values, cancel: CancelToken) -> Prepared:
        oids = tuple(type_oid(type) for type in statement.types)
        made = self._query(statement.query, statement.query, oids, values, cancel)
        types = ", ".join(map(type_name, made.types))
        text = f"PREPARE {name(statement.name)}{f' ({types})' if types else ''} AS {made.text}"
        return Prepared(statement, text, "", made.types, made.oids, made.columns)

    def _answer(
        self, query: kinds.Select, parameters: WireParameters, values: Values, cancel: CancelToken
    ) -> tuple[Relation, tuple[str, ...], Again | None]:
        asked = self._settings(query, values)
        answer = self._engine.answer(self._user, query.text, query.offset, asked, parameters, cancel)
        if settings.wants_notices(values):
            return answer.relation, answer.notices, answer.again
        return answer.relation, (), answer.again and replace(answer.again, notices=())

    def _settings(self, query: kinds.Select, values: Values) -> Settings:
        return settings.for_engine(with_options(values, query.options))

    def _executable(self, called: str) -> Prepared:
        prepared = self._known(called)
        if prepared is None:
            raise Rejected(f'prepared statement "{called}" does not exist', sqlstate=_UNKNOWN_STATEMENT)
        if isinstance(prepared.statement, kinds.Prepare):
            return replace(prepared, statement=prepared.statement.query)
        if not isinstance(prepared.statement, kinds.Select):
            raise Rejected(f'prepared statement "{called}" is not a query', hint="Send the command itself.")
        return prepared


def _ran(
    relation: Relation,
    verb: str,
    notices: tuple[str, ...] = (),
    again: Again | None = None,
    announced: tuple[Column, ...] | None = None,
) -> Ran:
    """`announced`: the columns that were described, where another than the engine did it."""
    columns = relation.columns if announced is None or len(announced) != len(relation.columns) else announced
    sql, arrays = as_parameters(relation, columns)
    return Ran(sql, arrays, notices, verb, again, columns)


def plan_columns(format: Literal["text", "json"]) -> tuple[Column, ...]:
    return (Column("QUERY PLAN", SqlType(Kind.JSON) if format == "json" else TEXT),)


def _around(text: str, query: kinds.Select, made: str) -> str:
    """The whole statement with another query in the place of its own."""
    start = query.offset
    return text[:start] + made + text[start + len(query.text.rstrip()) :]


def _declared(oid: int) -> SqlType | None:
    if oid == 0:
        return None
    type = wire.type_of(oid)
    return None if type == UNKNOWN else type


_TYPE_WORDS = {
    "int": Kind.INT4,
    "int2": Kind.INT2,
    "int4": Kind.INT4,
    "int8": Kind.INT8,
    "bool": Kind.BOOL,
    "decimal": Kind.NUMERIC,
    "float": Kind.FLOAT8,
    "float4": Kind.FLOAT4,
    "float8": Kind.FLOAT8,
    "varchar": Kind.TEXT,
    "character varying": Kind.TEXT,
    "char": Kind.TEXT,
    "bpchar": Kind.TEXT,
    "timestamp without time zone": Kind.TIMESTAMP,
    "timestamp with time zone": Kind.TIMESTAMPTZ,
    "time without time zone": Kind.TIME,
    "jsonb": Kind.JSON,
} | {kind.value: kind for kind in Kind}


def type_oid(word: str) -> int:
    """The OID of a type by its name in PREPARE; 0 for `unknown`."""
    if word == "unknown":
        return 0
    if word not in _TYPE_WORDS:
        raise Rejected(f'type "{word[:63]}" does not exist', sqlstate=UNDEFINED_OBJECT)
    return wire.oid(SqlType(_TYPE_WORDS[word]))


def _arguments(called: str, prepared: Prepared, texts: tuple[str | None, ...]) -> WireParameters:
    """The arguments of EXECUTE, read like text parameters."""
    if len(texts) != len(prepared.types):
        raise Rejected(
            f'wrong number of parameters for prepared statement "{called}"',
            sqlstate="42601",
            detail=f"Expected {len(prepared.types)} parameters but got {len(texts)}.",
        )
    return tuple(
        (type, wire.decode_value(None if text is None else text.encode(), type))
        for type, text in zip(prepared.types, texts, strict=True)
    )
