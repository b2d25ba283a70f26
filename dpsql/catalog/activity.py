"""The sessions that the asking user has open: pg_stat_activity, and pg_cancel_backend and pg_terminate_backend.

Decides that nobody sees or stops another user's session: the view holds the asker's own, and a number that is not one
of them is refused in the same words whether somebody has it or not. A session is stopped after the query has run, once
however many rows of its answer name it; so both functions may only be columns of the outermost SELECT.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from dpsql.catalog.context import Context
from dpsql.catalog.functions import STOP
from dpsql.catalog.routing import function_name
from dpsql.catalog.rows import oid_of
from dpsql.catalog.snapshot import PG_CATALOG, snapshot
from dpsql.errors import NOT_PERMITTED, NOT_SUPPORTED, UNDEFINED_FUNCTION, Rejected

ACTIVITY = (PG_CATALOG, "pg_stat_activity")

Stops = tuple[tuple[int, bool], ...]
"""For each output column that stops sessions: its place, counted from the last one, and whether it ends them."""


def activity(context: Context) -> exp.Query:
    """The view's rows of now, as a query."""
    rows = [
        {
            "datid": oid_of("database", context.database),
            "datname": context.database,
            "pid": each.pid,
            "usesysid": oid_of("role", context.user),
            "usename": context.user,
            "application_name": each.application,
            "backend_start": each.since.isoformat(sep=" "),
            "state": "active" if each.active else "idle",
            "query": "",
            "backend_type": "client backend",
        }
        for each in context.sessions.seen()
    ]
    columns = snapshot().relations[ACTIVITY].columns
    typed = [[_cell(row.get(column.name), column.duckdb_type) for column in columns] for row in rows or [{}]]
    names = [column.name for column in columns]
    query = exp.select(*(exp.column(name, quoted=True) for name in names)).from_(
        exp.values([tuple(row) for row in typed], alias="own", columns=names)
    )
    return query if rows else query.where(exp.false())


def _cell(value: object, duckdb_type: str) -> exp.Expr:
    literal = exp.Null() if value is None else exp.Literal.string(str(value))
    return exp.cast(literal, exp.DataType.build(duckdb_type, dialect="duckdb"))


def stops(tree: exp.Query) -> Stops:
    """Which output columns stop sessions. Raises Rejected where a function that does stands anywhere else."""
    calls = [node for node in tree.find_all(exp.Func) if function_name(node) in STOP]
    if not calls:
        return ()
    outputs = list(tree.expressions) if isinstance(tree, exp.Select) else []
    found = []
    for at, output in enumerate(outputs):
        call = output.unalias()
        if function_name(call) in STOP and not any(later.is_star for later in outputs[at:]):
            found.append((at - len(outputs), function_name(call) == "pg_terminate_backend"))
    if len(found) < len(calls):
        name = function_name(calls[0])
        raise Rejected(
            f"{name} may only be a column of the outermost SELECT",
            sqlstate=NOT_SUPPORTED,
            hint=f"Write SELECT {name}(pid) FROM pg_stat_activity WHERE ...",
        )
    return tuple(found)


def number(call: exp.Expr) -> exp.Expr:
    """What is computed in the place of such a call: the number of the session."""
    given = call.expressions
    if not 1 <= len(given) <= (2 if function_name(call) == "pg_terminate_backend" else 1):
        message = f"function {function_name(call)} takes the number of a session"
        raise Rejected(message, sqlstate=UNDEFINED_FUNCTION, hint="pg_backend_pid() and pg_stat_activity have it.")
    return exp.cast(given[0].copy(), exp.DataType.build("INT"))


def stopped(rows: Iterable[Sequence[object]], asked: Stops, context: Context) -> list[tuple[object, ...]]:
    """The rows with the sessions stopped that they name. Raises Rejected 42501 at one that is not the asker's own."""
    answered = []
    done: set[tuple[int, bool]] = set()
    for row in rows:
        cells = list(row)
        for place, end in asked:
            pid = cells[place]
            if isinstance(pid, int):
                if (pid, end) not in done and not context.sessions.stop(pid, end=end):
                    raise Rejected(
                        f"you have no session {pid}",
                        sqlstate=NOT_PERMITTED,
                        hint="SELECT pid FROM pg_stat_activity lists your sessions; nobody may stop another user's.",
                    )
                done.add((pid, end))
                cells[place] = True
        answered.append(tuple(cells))
    return answered
