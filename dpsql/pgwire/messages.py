"""The messages of the protocol as frozen values; text is `str`, already checked to be UTF-8 without NUL.

This file decides names and fields only. Bytes are the affair of `decode` (frontend) and `encode` (backend).
Source: PostgreSQL documentation, chapter "Message Formats".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dpsql.errors import DpsqlError

TEXT_FORMAT = 0
BINARY_FORMAT = 1

StatementOrPortal = Literal["S", "P"]
TransactionStatus = Literal["I", "T", "E"]


# --- what a client sends -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SSLRequest:
    """First packet: may we speak TLS? Answered by one byte, `S` or `N`."""


@dataclass(frozen=True, slots=True)
class GSSENCRequest:
    """First packet: may we speak GSSAPI encryption? Always answered `N`."""


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """First and only packet of its own connection: stop what the connection with these keys is doing."""

    pid: int
    secret: bytes


@dataclass(frozen=True, slots=True)
class Startup:
    """First packet of a session. `version` is (major, minor); `parameters` holds no name twice, in the sent order."""

    version: tuple[int, int]
    parameters: tuple[tuple[str, str], ...]

    def get(self, name: str) -> str | None:
        return dict(self.parameters).get(name)


@dataclass(frozen=True, slots=True)
class SaslInitial:
    """The client's choice of mechanism and its first SASL message (None: no initial response)."""

    mechanism: str
    data: bytes | None


@dataclass(frozen=True, slots=True)
class SaslResponse:
    data: bytes


@dataclass(frozen=True, slots=True)
class Query:
    text: str


@dataclass(frozen=True, slots=True)
class Parse:
    """`types` are the declared OIDs of the first parameters; 0, or a missing one, is to be inferred."""

    name: str
    text: str
    types: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Bind:
    """Format codes: none (all text), one (for all), or one each; use `formats`."""

    portal: str
    statement: str
    parameter_formats: tuple[int, ...] = ()
    parameters: tuple[bytes | None, ...] = ()
    result_formats: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Describe:
    kind: StatementOrPortal
    name: str


@dataclass(frozen=True, slots=True)
class Execute:
    """`max_rows` 0 means all."""

    portal: str
    max_rows: int = 0


@dataclass(frozen=True, slots=True)
class Close:
    kind: StatementOrPortal
    name: str


@dataclass(frozen=True, slots=True)
class Flush:
    pass


@dataclass(frozen=True, slots=True)
class Sync:
    pass


@dataclass(frozen=True, slots=True)
class Terminate:
    pass


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """The old fast path; to be answered by an error (0A000) and ReadyForQuery."""

    function: int


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Stands for a session message in a sound frame whose content is too long, malformed or not UTF-8.

    To be answered as if handling that message had failed with this error: `simple` as a Query, else as one of the
    extended protocol.
    """

    simple: bool
    sqlstate: str
    message: str


FirstPacket = SSLRequest | GSSENCRequest | CancelRequest | Startup
SaslMessage = SaslInitial | SaslResponse
SessionMessage = (
    Query | Parse | Bind | Describe | Execute | Close | Flush | Sync | FunctionCall | Unreadable | Terminate
)
FrontendMessage = FirstPacket | SaslMessage | SessionMessage


# --- what the server sends -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AuthenticationOk:
    pass


@dataclass(frozen=True, slots=True)
class AuthenticationSasl:
    mechanisms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AuthenticationSaslContinue:
    data: bytes


@dataclass(frozen=True, slots=True)
class AuthenticationSaslFinal:
    data: bytes


@dataclass(frozen=True, slots=True)
class NegotiateProtocolVersion:
    """We speak 3.`minor`; `options` are the `_pq_.` parameters of the client that we do not know."""

    minor: int
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ParameterStatus:
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class BackendKeyData:
    """What a CancelRequest must name: a positive 31-bit `pid` and four bytes of `secret`."""

    pid: int
    secret: bytes


@dataclass(frozen=True, slots=True)
class ReadyForQuery:
    """`I` idle, `T` in a transaction, `E` in a failed one."""

    status: TransactionStatus


@dataclass(frozen=True, slots=True)
class Field:
    """One column of a RowDescription; `values.field` makes it from a Column."""

    name: str
    type_oid: int
    type_size: int
    type_modifier: int = -1
    format: int = TEXT_FORMAT
    table_oid: int = 0
    column: int = 0


@dataclass(frozen=True, slots=True)
class RowDescription:
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class DataRow:
    """One encoded value per field; None is NULL."""

    values: tuple[bytes | None, ...]


@dataclass(frozen=True, slots=True)
class CommandComplete:
    tag: str


@dataclass(frozen=True, slots=True)
class EmptyQueryResponse:
    pass


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """`severity` is ERROR, FATAL or PANIC; `position` counts characters of the query from 1."""

    severity: str
    sqlstate: str
    message: str
    detail: str | None = None
    hint: str | None = None
    position: int | None = None


@dataclass(frozen=True, slots=True)
class NoticeResponse:
    """`severity` is WARNING, NOTICE, DEBUG, INFO or LOG."""

    severity: str
    sqlstate: str
    message: str
    detail: str | None = None
    hint: str | None = None
    position: int | None = None


@dataclass(frozen=True, slots=True)
class ParseComplete:
    pass


@dataclass(frozen=True, slots=True)
class BindComplete:
    pass


@dataclass(frozen=True, slots=True)
class CloseComplete:
    pass


@dataclass(frozen=True, slots=True)
class NoData:
    pass


@dataclass(frozen=True, slots=True)
class PortalSuspended:
    pass


@dataclass(frozen=True, slots=True)
class ParameterDescription:
    types: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CopyOutResponse:
    """`format` of the whole; `columns` the format code of each column."""

    format: int
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CopyData:
    """A part of a COPY TO STDOUT. (A client's CopyData is ignored: there is no COPY FROM.)"""

    data: bytes


@dataclass(frozen=True, slots=True)
class CopyDone:
    pass


@dataclass(frozen=True, slots=True)
class Raw:
    """Whole frames of a server behind us, passed on as they are. `type` is the last one's; `moves`: it is alone, and an
    ErrorResponse or a ReadyForQuery, on which the state of a connection hangs."""

    type: bytes
    data: bytes
    moves: bool = False


BackendMessage = (
    AuthenticationOk
    | Raw
    | AuthenticationSasl
    | AuthenticationSaslContinue
    | AuthenticationSaslFinal
    | NegotiateProtocolVersion
    | ParameterStatus
    | BackendKeyData
    | ReadyForQuery
    | RowDescription
    | DataRow
    | CommandComplete
    | EmptyQueryResponse
    | ErrorResponse
    | NoticeResponse
    | ParseComplete
    | BindComplete
    | CloseComplete
    | NoData
    | PortalSuspended
    | ParameterDescription
    | CopyOutResponse
    | CopyData
    | CopyDone
)


def error_response(error: DpsqlError, severity: str = "ERROR") -> ErrorResponse:
    """An error as the client is told of it."""
    return ErrorResponse(severity, error.sqlstate, error.message, error.detail, error.hint, error.position)
