"""Rows as COPY ... TO STDOUT writes them: text, csv and binary.

Decides the form only; values are encoded by pgwire.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dpsql.compiler.kinds import CopyOut
from dpsql.errors import BAD_PARAMETER, Rejected
from dpsql.pgwire.messages import BackendMessage, CopyData, CopyDone, CopyOutResponse
from dpsql.pgwire.values import encoder
from dpsql.types import Relation

_BINARY_HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0)
_BINARY_END = struct.pack("!h", -1)
_TEXT_ESCAPES = {
    b"\\": b"\\\\",
    b"\b": b"\\b",
    b"\f": b"\\f",
    b"\n": b"\\n",
    b"\r": b"\\r",
    b"\t": b"\\t",
    b"\v": b"\\v",
}
_TRUE = ("true", "on", "1", "match")

Cells = Sequence[bytes | None]


@dataclass(frozen=True, slots=True)
class _Style:
    delimiter: bytes
    null: bytes
    quote: bytes = b'"'
    escape: bytes = b'"'
    header: bool = False


def messages(copy: CopyOut, relation: Relation) -> Iterator[BackendMessage]:
    """The copy of a relation. Raises Rejected 22023 before the first message for options that do not fit."""
    binary = copy.format == "binary"
    style = _style(copy)
    format = 1 if binary else 0
    encoders = [encoder(column.type, format) for column in relation.columns]
    write = _writer(copy.format, style)
    yield CopyOutResponse(format, (format,) * len(relation.columns))
    if style.header and not binary:
        yield CopyData(write([column.name.encode() for column in relation.columns]))
    # Clients count on the header to come together with what follows it, as it does from Postgres.
    header = _BINARY_HEADER if binary else b""
    for row in relation.rows:
        yield CopyData(header + write([encode(value) for encode, value in zip(encoders, row, strict=True)]))
        header = b""
    if binary:
        yield CopyData(header + _BINARY_END)
    yield CopyDone()


def _style(copy: CopyOut) -> _Style:
    options = dict(copy.options)
    csv = copy.format == "csv"
    quote = _single(options, "quote", '"')
    style = _Style(
        delimiter=_single(options, "delimiter", "," if csv else "\t"),
        null=options.get("null", "" if csv else "\\N").encode(),
        quote=quote,
        escape=_single(options, "escape", quote.decode()),
        header=options.get("header", "off") in _TRUE,
    )
    if style.delimiter == style.quote or style.delimiter in b"\r\n\\":
        raise Rejected("COPY delimiter cannot be that character", sqlstate=BAD_PARAMETER)
    return style


def _single(options: dict[str, str], name: str, default: str) -> bytes:
    value = options.get(name, default).encode()
    if len(value) != 1:
        raise Rejected(f"COPY {name} must be a single one-byte character", sqlstate=BAD_PARAMETER)
    return value


def _writer(format: str, style: _Style) -> Callable[[Cells], bytes]:
    match format:
        case "binary":
            return _binary
        case "csv":
            return lambda cells: style.delimiter.join(_csv(cell, style) for cell in cells) + b"\n"
        case _:
            return lambda cells: style.delimiter.join(_text(cell, style) for cell in cells) + b"\n"


def _binary(cells: Cells) -> bytes:
    fields = (struct.pack("!i", -1) if cell is None else struct.pack("!i", len(cell)) + cell for cell in cells)
    return struct.pack("!h", len(cells)) + b"".join(fields)


def _text(cell: bytes | None, style: _Style) -> bytes:
    if cell is None:
        return style.null
    for raw, escaped in _TEXT_ESCAPES.items():
        cell = cell.replace(raw, escaped)
    return cell if style.delimiter == b"\t" else cell.replace(style.delimiter, b"\\" + style.delimiter)


def _csv(cell: bytes | None, style: _Style) -> bytes:
    if cell is None:
        return style.null
    special = (style.delimiter, style.quote, b"\n", b"\r")
    if cell != style.null and cell != b"\\." and not any(letter in cell for letter in special):
        return cell
    if style.escape != style.quote:
        cell = cell.replace(style.escape, style.escape * 2)
    return style.quote + cell.replace(style.quote, style.escape + style.quote) + style.quote
