"""Results and errors as messages.

Decides what a client is told of an error: everything of a `DpsqlError`, and of anything else nothing but an incident
number. It must never put a value of data, or a foreign exception's text, into a message or the log.
"""

from __future__ import annotations

import logging
import traceback

from dpsql.errors import DpsqlError, Failed
from dpsql.pgwire.messages import (
    ErrorResponse,
    NoticeResponse,
    error_response,
)

log = logging.getLogger("dpsql.session")


def notice(text: str) -> NoticeResponse:
    return NoticeResponse("NOTICE", "00000", text)


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
