"""Results and errors as messages.

Decides what a client is told of an error: everything of a `DpsqlError`, and of anything else nothing but an incident
number. It must never put a value of data, or a foreign exception's text, into a message or the log.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterable, Iterator

from dpsql.errors import DpsqlError, Failed
from dpsql.pgwire import values
from dpsql.pgwire.messages import (
    BackendMessage,
    DataRow,
    ErrorResponse,
    NoticeResponse,
    RowDescription,
    error_response,
)
from dpsql.types import Column, Value

log = logging.getLogger("dpsql.session")

Formats = tuple[int, ...]


def row_description(columns: tuple[Column, ...], formats: Formats = ()) -> RowDescription:
    codes = values.formats(formats, len(columns))
    return RowDescription(tuple(values.field(column, code) for column, code in zip(columns, codes, strict=True)))


def data_rows(
    columns: tuple[Column, ...], rows: Iterable[tuple[Value, ...]], formats: Formats = ()
) -> Iterator[BackendMessage]:
    codes = values.formats(formats, len(columns))
    encoders = [values.encoder(column.type, code) for column, code in zip(columns, codes, strict=True)]
    for row in rows:
        yield DataRow(tuple(encode(value) for encode, value in zip(encoders, row, strict=True)))


def notice(text: str) -> NoticeResponse:
    return NoticeResponse("NOTICE", "00000", text)


def warning(text: str, sqlstate: str) -> NoticeResponse:
    return NoticeResponse("WARNING", sqlstate, text)


def error(exception: Exception) -> ErrorResponse:
    """The ErrorResponse of any exception; what is ours, or a surprise, is logged under its incident."""
    known = exception if isinstance(exception, DpsqlError) else Failed(_where(exception))
    if isinstance(known, Failed):
        log.error("incident %s: %s", known.incident, known.cause)
    return error_response(known)


def _where(exception: Exception) -> str:
    """Class and place of an exception. Its text is left out, since it may quote a value."""
    frames = traceback.extract_tb(exception.__traceback__)
    place = " < ".join(f"{frame.filename}:{frame.lineno}" for frame in reversed(frames[-3:]))
    return f"{type(exception).__name__} at {place}"
