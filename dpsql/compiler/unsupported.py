"""What is said to statements that dpsql never runs.

Decides words and SQLSTATE only; a verb that is not listed here is a syntax error.
"""

from __future__ import annotations

from dpsql.compiler.kinds import Unsupported
from dpsql.compiler.parse import PIVOT_HINT
from dpsql.compiler.reader import Reader
from dpsql.errors import NOT_PERMITTED, NOT_SUPPORTED

_CHANGES = frozenset(
    {
        "insert",
        "update",
        "delete",
        "merge",
        "truncate",
        "create",
        "alter",
        "drop",
        "grant",
        "revoke",
        "comment",
        "vacuum",
        "analyze",
        "analyse",
        "cluster",
        "reindex",
        "refresh",
        "lock",
        "do",
        "call",
        "import",
        "security",
        "reassign",
        "checkpoint",
        "load",
        "replace",
        "upsert",
        "rename",
    }
)
_ELSEWHERE = {
    "attach": "There is one database here; choose another one by connecting to its own dpsql.",
    "detach": "There is one database here.",
    "use": "There is one database here; names need no prefix.",
    "install": "No extension can be added.",
    "pragma": "Use SHOW and SET; SHOW ALL lists the settings.",
    "export": "Copy the answer to a question: COPY (SELECT ... GROUP BY ...) TO STDOUT.",
    "describe": "Columns, bounds and values: SELECT * FROM information_schema.columns, or \\d+ in psql.",
    "desc": "Columns, bounds and values: SELECT * FROM information_schema.columns, or \\d+ in psql.",
    "summarize": "Ask for the aggregates themselves, such as SELECT COUNT(*), AVG(x) FROM t.",
    "from": "Write SELECT ... FROM ...",
    "pivot": PIVOT_HINT,
    "unpivot": "Write SELECT ... UNION ALL SELECT ...",
}
_SELECT_HINT = "Ask with SELECT, look with SHOW and EXPLAIN."


def unsupported(reader: Reader) -> Unsupported:
    """The refusal of the statement that the reader stands before."""
    token = reader.peek()
    verb = token.text if token is not None else ""
    position = token.start + 1 if token is not None else None
    if reader.at_word(*_CHANGES):
        return Unsupported(
            verb.upper(),
            NOT_PERMITTED,
            f"{verb.upper()} is not permitted: dpsql answers questions and changes nothing",
            "Run it on the database itself, or ask with SELECT.",
            position,
        )
    if token is not None and reader.at_word(*_ELSEWHERE):
        return Unsupported(verb.upper(), NOT_SUPPORTED, f"{verb.upper()} is not supported", _ELSEWHERE[verb], position)
    error = reader.error()
    return Unsupported(verb.upper()[:63], error.sqlstate, error.message, _SELECT_HINT, error.position)
