"""Statements that are or hold a query: SELECT in all its forms, EXPLAIN, PREPARE, DECLARE, FETCH, COPY.

Decides where the query's text begins and ends, which options stand around it, and that it does not write. It must
never judge what the query reads.
"""

from __future__ import annotations

from typing import Literal

from dpsql.compiler import kinds
from dpsql.compiler.kinds import Select, Statement
from dpsql.compiler.reader import Reader
from dpsql.compiler.tokens import Token
from dpsql.errors import BAD_PARAMETER, NOT_PERMITTED, NOT_SUPPORTED, SYNTAX, Rejected

_READ_ONLY_HINT = "dpsql answers questions and changes nothing; run this on the database itself."
_COPY_HINT = "Copy the answer to a question: COPY (SELECT ... GROUP BY ...) TO STDOUT."


def select(reader: Reader) -> Statement:
    return _query(reader.text, reader.rest())


def explain(reader: Reader) -> Statement:
    reader.take()
    format: Literal["text", "json"] = "text"
    if reader.at_symbol("(") and not reader.at_query():
        format = _explain_options(Reader(reader.text, reader.inside()))
    else:
        if reader.at_word("analyze", "analyse"):
            raise _no_analyze(reader.take())
        reader.accept("verbose")
        if reader.at_word("analyze", "analyse"):
            raise _no_analyze(reader.take())
    return kinds.Explain(_rest_as_query(reader, "EXPLAIN"), format)


def _no_analyze(token: Token) -> Rejected:
    return Rejected(
        "EXPLAIN ANALYZE is refused: its timings and row counts would tell of the data",
        sqlstate=NOT_PERMITTED,
        hint="EXPLAIN without ANALYZE shows releases, noise and price, and costs nothing.",
        position=token.start + 1,
    )


def _explain_options(options: Reader) -> Literal["text", "json"]:
    format = "text"
    while not options.at_end():
        token = options.peek()
        name = options.name().lower()
        value = "on" if options.at_end() or options.at_symbol(",") else options.setting_value().lower()
        if name in ("analyze", "analyse") and value not in ("off", "false", "0") and token is not None:
            raise _no_analyze(token)
        if name == "format":
            format = value
        if not options.at_end():
            options.expect_symbol(",")
    if format not in ("text", "json"):
        raise Rejected(
            f'EXPLAIN format "{format}" is not supported', sqlstate=BAD_PARAMETER, hint="FORMAT TEXT or FORMAT JSON."
        )
    return "json" if format == "json" else "text"


def prepare(reader: Reader) -> Statement:
    reader.take()
    name = reader.name()
    types: tuple[str, ...] = ()
    if reader.at_symbol("("):
        types = tuple(_type_names(Reader(reader.text, reader.inside())))
    reader.expect("as")
    return kinds.Prepare(name, types, _rest_as_query(reader, "PREPARE"))


def _type_names(reader: Reader) -> list[str]:
    """Type names between commas; a modifier in brackets is dropped, as Postgres does for parameters."""
    names: list[str] = []
    while not reader.at_end():
        words = [reader.dotted_name()]
        while not reader.at_end() and not reader.at_symbol(","):
            if reader.at_symbol("("):
                reader.inside()
            elif reader.accept_symbol("["):
                reader.expect_symbol("]")
                words[-1] += "[]"
            else:
                words.append(reader.name())
        names.append(" ".join(words).removeprefix("pg_catalog."))
        if not reader.at_end():
            reader.expect_symbol(",")
    return names


def execute(reader: Reader) -> Statement:
    reader.take()
    name = reader.name()
    arguments: list[str | None] = []
    if reader.at_symbol("("):
        inner = Reader(reader.text, reader.inside())
        arguments.append(_argument(inner))
        while inner.accept_symbol(","):
            arguments.append(_argument(inner))
        inner.end()
    reader.end()
    return kinds.ExecutePrepared(name, tuple(arguments))


def _argument(reader: Reader) -> str | None:
    """A literal; a cast behind it is skipped, since the statement's own parameter type decides."""
    if reader.accept("null"):
        value = None
    elif (word := reader.accept_any("true", "false")) is not None:
        value = word
    else:
        value = reader.literal()
    while reader.accept_symbol("::"):
        _type_names(Reader(reader.text, (reader.take(),)))
    return value


def declare(reader: Reader) -> Statement:
    reader.take()
    name = reader.name()
    scroll: bool | None = None
    binary = False
    while not reader.accept("cursor"):
        if reader.accept("no", "scroll"):
            scroll = False
        elif reader.accept("scroll"):
            scroll = True
        elif reader.accept("binary"):
            binary = True
        elif not reader.accept_any("asensitive", "insensitive"):
            raise reader.error()
    hold = reader.accept("with", "hold")
    if not hold:
        reader.accept("without", "hold")
    reader.expect("for")
    return kinds.Declare(name, _rest_as_query(reader, "DECLARE CURSOR"), hold, scroll, binary)


def fetch(reader: Reader) -> Statement:
    move = reader.take().is_word("move")
    direction, count = _direction(reader)
    reader.accept_any("from", "in")
    return kinds.Fetch(reader.last_name(), direction, count, move)


def _direction(reader: Reader) -> tuple[kinds.Direction, int | None]:
    fixed: tuple[tuple[str, kinds.Direction, int], ...] = (
        ("next", "forward", 1),
        ("prior", "backward", 1),
        ("first", "absolute", 1),
        ("last", "absolute", -1),
    )
    for word, direction, count in fixed:
        if _names_direction(reader, word):
            return direction, count
    if _names_direction(reader, "absolute"):
        return "absolute", reader.integer()
    if _names_direction(reader, "relative"):
        return "relative", reader.integer()
    if _names_direction(reader, "forward"):
        return "forward", _count(reader, 1)
    if _names_direction(reader, "backward"):
        return "backward", _count(reader, 1)
    return "forward", _count(reader, 1)


def _names_direction(reader: Reader, word: str) -> bool:
    """Takes the word unless it is the cursor's name, the last thing there."""
    return reader.peek(1) is not None and reader.accept(word)


def _count(reader: Reader, default: int) -> int | None:
    if _names_direction(reader, "all"):
        return None
    if reader.at_word("from", "in") or reader.peek(1) is None:
        return default
    return reader.integer()


def close(reader: Reader) -> Statement:
    reader.take()
    if reader.accept("all"):
        reader.end()
        return kinds.CloseCursor(None)
    return kinds.CloseCursor(reader.last_name())


# --- COPY ----------------------------------------------------------------------------------------------------------


def copy(reader: Reader) -> Statement:
    reader.take()
    binary = reader.accept("binary")
    query = _copy_source(reader)
    if reader.accept("from"):
        raise Rejected("COPY FROM is not permitted", sqlstate=NOT_PERMITTED, hint=_READ_ONLY_HINT)
    reader.expect("to")
    if not reader.accept("stdout"):
        raise Rejected("COPY writes to STDOUT only", sqlstate=NOT_PERMITTED, hint=_COPY_HINT)
    reader.accept("with")
    options = _copy_options(reader, binary)
    reader.end()
    format = _copy_format(options.pop("format", "text"))
    return kinds.CopyOut(query, format, tuple(options.items()))


def _copy_format(name: str) -> Literal["text", "csv", "binary"]:
    match name:
        case "text" | "csv" | "binary":
            return name
        case _:
            raise Rejected(f'COPY format "{name}" not recognized', sqlstate=BAD_PARAMETER, hint="text, csv or binary.")


def _copy_source(reader: Reader) -> Select:
    """The query in brackets, or `SELECT columns FROM table` for a table."""
    if reader.at_symbol("("):
        inner = Reader(reader.text, reader.inside())
        if not inner.at_query():
            raise Rejected("COPY takes a query only", sqlstate=NOT_PERMITTED, hint=_COPY_HINT)
        return _query(inner.text, inner.rest())
    start = reader.peek()
    reader.dotted_name()
    end = reader.peek()
    columns = "*"
    if reader.at_symbol("("):
        inside = reader.inside()
        columns = reader.text[inside[0].start : inside[-1].end] if inside else "*"
    if start is None or end is None:
        raise reader.error()
    table = reader.text[start.start : end.start].rstrip()
    return Select(f"SELECT {columns} FROM {table}", start.start - len(f"SELECT {columns} FROM "))


_COPY_WORDS = {
    "delimiter": "delimiter",
    "delimiters": "delimiter",
    "null": "null",
    "quote": "quote",
    "escape": "escape",
}
_COPY_OPTIONS = ("format", "delimiter", "null", "quote", "escape", "header", "encoding")


def _copy_options(reader: Reader, binary: bool) -> dict[str, str]:
    """Options of both spellings: (FORMAT csv, HEADER) and the older CSV HEADER."""
    options = {"format": "binary"} if binary else {}
    if reader.at_symbol("("):
        return options | _listed_options(Reader(reader.text, reader.inside()))
    while not reader.at_end():
        word = reader.take()
        if word.is_word("binary", "csv"):
            options["format"] = word.text
        elif word.is_word("header"):
            options["header"] = "true"
        elif word.is_word(*_COPY_WORDS):
            reader.accept("as")
            options[_COPY_WORDS[word.text]] = reader.literal()
        else:
            raise reader.error(word)
    return options


def _listed_options(reader: Reader) -> dict[str, str]:
    options: dict[str, str] = {}
    while not reader.at_end():
        token = reader.peek()
        name = reader.name().lower()
        if name not in _COPY_OPTIONS:
            raise Rejected(
                f'COPY option "{name}" is not supported',
                position=token.start + 1 if token else None,
                hint="FORMAT, HEADER, DELIMITER, NULL, QUOTE and ESCAPE are.",
            )
        bare = reader.at_end() or reader.at_symbol(",")
        value = "true" if bare else reader.setting_value()
        options[name] = value.lower() if name in ("format", "header") else value
        if not reader.at_end():
            reader.expect_symbol(",")
    return options


# --- the query itself ----------------------------------------------------------------------------------------------


def _rest_as_query(reader: Reader, verb: str) -> Select:
    if not reader.at_query():
        if reader.at_end():
            raise reader.error()
        raise Rejected(f"{verb} takes a query only", sqlstate=NOT_SUPPORTED, hint=f"Write {verb} ... SELECT ...")
    return _query(reader.text, reader.rest())


def _query(text: str, tokens: tuple[Token, ...]) -> Select:
    """The query of these tokens, with TABLE x as a SELECT and without the options' clause."""
    _check_reads_only(tokens)
    start, end = tokens[0].start, tokens[-1].end
    if tokens[0].is_word("table"):
        rest = text[tokens[0].end : end].lstrip()
        return Select(f"SELECT * FROM {rest}", end - len(f"SELECT * FROM {rest}"))
    clauses = [at for at, token in enumerate(tokens) if token.is_word("select") and _opens_options(tokens, at)]
    if len(clauses) > 1:
        position = tokens[clauses[1]].start + 1
        raise Rejected("WITH DIFFERENTIAL_PRIVACY can be written once in a statement", position=position)
    if not clauses:
        return Select(text[start:end], start)
    options, stop = _options(text, tokens[clauses[0] + 3 :], tokens[clauses[0] + 2].end)
    begin = tokens[clauses[0] + 1].start
    return Select(text[start:begin] + " " * (stop - begin) + text[stop:end], start, options)


def _opens_options(tokens: tuple[Token, ...], at: int) -> bool:
    """SELECT WITH DIFFERENTIAL_PRIVACY, or ANONYMIZATION as it was called before."""
    ahead = tokens[at : at + 3]
    words = (("select",), ("with",), ("differential_privacy", "anonymization"))
    return len(ahead) == 3 and all(token.is_word(*word) for token, word in zip(ahead, words, strict=True))


def _options(text: str, rest: tuple[Token, ...], stop: int) -> tuple[tuple[tuple[str, str], ...], int]:
    """(name, value) pairs of OPTIONS (...), and where the clause ends. NULL leaves an option out."""
    reader = Reader(text, rest)
    if not reader.accept("options"):
        return (), stop
    inner = Reader(text, reader.inside())
    closing = rest[len(inner.tokens) + 2]
    options: dict[str, str] = {}
    while not inner.at_end():
        name = inner.name().lower()
        inner.expect_symbol("=")
        if name in options:
            raise Rejected(f'option "{name}" is given twice', sqlstate=SYNTAX)
        if not inner.accept("null"):
            options[name] = inner.setting_value()
        if not inner.at_end():
            inner.expect_symbol(",")
    return tuple(options.items()), closing.end


_WRITES = ("insert", "update", "delete", "merge")
_LOCKS = ("update", "share", "no", "key")
_TELLING = frozenset(("into", "for", *_WRITES))
"""Without one of these words nothing is written or locked."""


def _check_reads_only(tokens: tuple[Token, ...]) -> None:
    """Refuses SELECT INTO, FOR UPDATE and data-changing CTEs, with a better word than the parser's."""
    if all(token.text not in _TELLING for token in tokens):
        return
    depth = 0
    for at, token in enumerate(tokens):
        depth += token.is_symbol("(") - token.is_symbol(")")
        before = tokens[at - 1] if at else None
        if before is not None and (before.is_word("as") or before.is_symbol(".")):
            continue
        after = tokens[at + 1] if at + 1 < len(tokens) else None
        if token.is_word("into"):
            raise _writes("SELECT INTO", token)
        if token.is_word("for") and after is not None and after.is_word(*_LOCKS):
            raise _writes("SELECT FOR UPDATE or SHARE", token)
        if token.is_word(*_WRITES) and _begins_part(tokens, at, depth):
            raise _writes(f"WITH ... {token.text.upper()}", token)


def _begins_part(tokens: tuple[Token, ...], at: int, depth: int) -> bool:
    """Whether a statement may begin at `at`: inside `AS (`, or behind the last CTE."""
    if at < 2:
        return False
    if tokens[at - 1].is_symbol("("):
        return tokens[at - 2].is_word("as", "materialized")
    return depth == 0 and tokens[0].is_word("with") and tokens[at - 1].is_symbol(")")


def _writes(what: str, token: Token) -> Rejected:
    return Rejected(f"{what} is not permitted", sqlstate=NOT_PERMITTED, hint=_READ_ONLY_HINT, position=token.start + 1)
