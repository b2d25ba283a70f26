"""A text split into its statements, each classified from its tokens alone.

Decides what kind of thing is asked, by allowing: what is not recognised is `Unsupported`, with the reason and what to
do instead. It must never decide whether a SELECT is permitted (that is the binder's task), and never hand on a text
that still holds comments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

from dpsql.compiler import kinds, nesting, queries
from dpsql.compiler.kinds import Statement, Unsupported
from dpsql.compiler.reader import Reader
from dpsql.compiler.tokens import Token, scan
from dpsql.compiler.unsupported import unsupported
from dpsql.errors import SYNTAX, Rejected


def split(text: str) -> tuple[Statement, ...]:
    """The statements of a text, in order; one `Empty` if there are none.

    Raises Rejected 54001 for a text over the limits and 42601 for one that has no tokens' structure: then no part of
    it may be run. A single statement that is malformed or refused is an `Unsupported` among the others.
    """
    return _known(text) if len(text) <= _LONGEST_KNOWN else _split(text)


_LONGEST_KNOWN = 4096
"""Characters of a text that is remembered; with the number of them it bounds what they take."""


@lru_cache(maxsize=512)
def _known(text: str) -> tuple[Statement, ...]:
    return _split(text)


def _split(text: str) -> tuple[Statement, ...]:
    return tuple(statement for statement, _ in parts(text)) or (kinds.Empty(),)


def parts(text: str) -> tuple[tuple[Statement, tuple[Token, ...]], ...]:
    """The statements with their tokens; raises as `split` does."""
    scanned = scan(text)
    nesting.check(scanned.tokens)
    return tuple((_classify(Reader(scanned.plain, tokens)), tokens) for tokens in _parts(scanned.tokens))


def _parts(tokens: tuple[Token, ...]) -> Iterator[tuple[Token, ...]]:
    """The tokens between semicolons; empty parts are skipped."""
    part: list[Token] = []
    depth = 0
    for token in tokens:
        if token.is_symbol("(", "["):
            depth += 1
        elif token.is_symbol(")", "]"):
            depth -= 1
        if not token.is_symbol(";"):
            part.append(token)
        elif depth:
            raise Rejected('syntax error at or near ";"', sqlstate=SYNTAX, position=token.start + 1)
        elif part:
            yield tuple(part)
            part = []
    if part:
        yield tuple(part)


def _classify(reader: Reader) -> Statement:
    first = reader.peek()
    verb = first.text if first is not None else ""
    try:
        if reader.at_query():
            return queries.select(reader)
        rule = _RULES.get(verb) if reader.at_word(verb) else None
        if rule is None:
            return unsupported(reader)
        return rule(reader)
    except Rejected as error:
        return Unsupported(verb.upper(), error.sqlstate, error.message, error.hint, error.position)


# --- transactions --------------------------------------------------------------------------------------------------

_MODES = (
    ("isolation", "level", "serializable"),
    ("isolation", "level", "repeatable", "read"),
    ("isolation", "level", "read", "committed"),
    ("isolation", "level", "read", "uncommitted"),
    ("read", "only"),
    ("read", "write"),
    ("not", "deferrable"),
    ("deferrable",),
)


def _modes(reader: Reader) -> None:
    """Transaction modes up to the end; all are accepted, as every statement reads one snapshot anyway."""
    while not reader.at_end():
        reader.accept_symbol(",")
        if not any(reader.accept(*mode) for mode in _MODES):
            raise reader.error()


def _begin(reader: Reader) -> Statement:
    reader.take()
    reader.accept_any("work", "transaction")
    _modes(reader)
    return kinds.Begin("BEGIN")


def _start(reader: Reader) -> Statement:
    reader.expect("start", "transaction")
    _modes(reader)
    return kinds.Begin("START TRANSACTION")


def _chain(reader: Reader) -> None:
    reader.accept_any("work", "transaction")
    if reader.accept("and", "chain"):
        raise Rejected("AND CHAIN is not supported", hint="Write BEGIN after it.")
    reader.accept("and", "no", "chain")
    reader.end()


def _commit(reader: Reader) -> Statement:
    reader.take()
    _chain(reader)
    return kinds.Commit()


def _rollback(reader: Reader) -> Statement:
    reader.take()
    reader.accept_any("work", "transaction")
    if reader.accept("to"):
        reader.accept("savepoint")
        return kinds.RollbackTo(reader.last_name())
    _chain(reader)
    return kinds.Rollback()


def _savepoint(reader: Reader) -> Statement:
    reader.take()
    return kinds.Savepoint(reader.last_name())


def _release(reader: Reader) -> Statement:
    reader.take()
    reader.accept("savepoint")
    return kinds.ReleaseSavepoint(reader.last_name())


# --- settings ------------------------------------------------------------------------------------------------------


def _set(reader: Reader) -> Statement:
    reader.take()
    local = reader.accept("local")
    if not local and reader.accept("session", "characteristics", "as", "transaction"):
        _modes(reader)
        return kinds.SetCharacteristics()
    if not local and not reader.at("session", "authorization"):
        reader.accept("session")
    if reader.accept_any("transaction", "constraints"):
        reader.rest()
        return kinds.SetCharacteristics()
    return kinds.Set(*_assignment(reader), local)


def _assignment(reader: Reader) -> tuple[str, str | None]:
    """(name, value) of a SET; the forms without a name are given theirs."""
    special = (
        (("time", "zone"), "timezone"),
        (("names",), "client_encoding"),
        (("schema",), "search_path"),
        (("session", "authorization"), "session_authorization"),
        (("role",), "role"),
    )
    for words, name in special:
        if reader.at(*words) and not reader.at(*words, symbol="=") and not reader.at(*words, "to"):
            reader.expect(*words)
            return name, _value(reader)
    name = reader.dotted_name()
    if not reader.accept_symbol("=") and not reader.accept("to"):
        raise reader.error()
    return name, _value(reader)


def _value(reader: Reader) -> str | None:
    if reader.accept("default"):
        reader.end()
        return None
    if reader.accept("interval"):
        value = reader.literal()
        reader.accept("hour", "to", "minute")
        reader.end()
        return value
    values = [reader.setting_value()]
    while reader.accept_symbol(","):
        values.append(reader.setting_value())
    reader.end()
    return ", ".join(values)


def _named_setting(reader: Reader) -> str:
    for words, name in (
        (("time", "zone"), "timezone"),
        (("transaction", "isolation", "level"), "transaction_isolation"),
        (("session", "authorization"), "session_authorization"),
    ):
        if reader.accept(*words):
            reader.end()
            return name
    name = reader.dotted_name()
    reader.end()
    return name


def _show(reader: Reader) -> Statement:
    reader.take()
    return kinds.Show(_named_setting(reader))


def _reset(reader: Reader) -> Statement:
    reader.take()
    return kinds.Reset(_named_setting(reader))


def _discard(reader: Reader) -> Statement:
    reader.take()
    if reader.accept("all"):
        reader.end()
        return kinds.Discard("ALL")
    if reader.accept("plans"):
        reader.end()
        return kinds.Discard("PLANS")
    if reader.accept("sequences"):
        reader.end()
        return kinds.Discard("SEQUENCES")
    if reader.accept_any("temp", "temporary"):
        reader.end()
        return kinds.Discard("TEMP")
    raise reader.error()


def _deallocate(reader: Reader) -> Statement:
    reader.take()
    reader.accept("prepare")
    if reader.accept("all"):
        reader.end()
        return kinds.Deallocate(None)
    return kinds.Deallocate(reader.last_name())


def _listen(reader: Reader) -> Statement:
    reader.take()
    reader.last_name()
    return kinds.Listening("LISTEN")


def _unlisten(reader: Reader) -> Statement:
    reader.take()
    if not reader.accept_symbol("*"):
        reader.name()
    reader.end()
    return kinds.Listening("UNLISTEN")


def _notify(reader: Reader) -> Statement:
    reader.take()
    reader.name()
    if reader.accept_symbol(","):
        reader.literal()
    reader.end()
    return kinds.Listening("NOTIFY")


_RULES: dict[str, Callable[[Reader], Statement]] = {
    "begin": _begin,
    "start": _start,
    "commit": _commit,
    "end": _commit,
    "rollback": _rollback,
    "abort": _rollback,
    "savepoint": _savepoint,
    "release": _release,
    "set": _set,
    "show": _show,
    "reset": _reset,
    "discard": _discard,
    "deallocate": _deallocate,
    "listen": _listen,
    "unlisten": _unlisten,
    "notify": _notify,
    "explain": queries.explain,
    "prepare": queries.prepare,
    "execute": queries.execute,
    "declare": queries.declare,
    "fetch": queries.fetch,
    "move": queries.fetch,
    "close": queries.close,
    "copy": queries.copy,
}
