"""Text to tokens by PostgreSQL's lexical rules, within fixed limits: the first thing that looks at a client's text.

Decides where words, literals, quoted names and comments begin and end, and refuses text that is too long or holds
characters that could hide something. It must never read meaning into a token, nor cost more than a linear scan
of a bounded text. `standard_conforming_strings` is always on: a backslash means something in E'' strings only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, unique

from dpsql.errors import SYNTAX, TOO_COMPLEX, Rejected

MAX_BYTES = 64 * 1024
MAX_TOKENS = 5_000


@unique
class TokenKind(Enum):
    WORD = "word"
    QUOTED = "quoted identifier"
    STRING = "string"
    NUMBER = "number"
    PARAMETER = "parameter"
    SYMBOL = "symbol"


@dataclass(frozen=True, slots=True)
class Token:
    """`text` is what the token means: a word folded to lower case, a name or string without its quotes."""

    kind: TokenKind
    text: str
    start: int
    end: int

    def is_word(self, *words: str) -> bool:
        return self.kind is TokenKind.WORD and self.text in words

    def is_symbol(self, *symbols: str) -> bool:
        return self.kind is TokenKind.SYMBOL and self.text in symbols


@dataclass(frozen=True, slots=True)
class Scan:
    """A text with its tokens; `plain` is the text with each comment turned to blanks, so that positions stay."""

    plain: str
    tokens: tuple[Token, ...]


_LEXEME = re.compile(
    r"""
      (?P<space>[ \t\n\r\f\v]++)
    | (?P<line>--[^\n\r]*+)
    | (?P<block>/\*)
    | (?P<escaped>[eE]'(?:[^'\\]++|''|\\.)*+')
    | (?P<string>(?:[uU]&|[nNbBxX])?'(?:[^']++|'')*+')
    | (?P<quoted>(?:[uU]&)?"(?:[^"]++|"")++")
    | (?P<dollar>\$(?:[^\W\d]\w*+)?\$)
    | (?P<parameter>\$[0-9]++)
    | (?P<number>(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?)
    | (?P<word>(?![eE]')[^\W\d][\w$]*+)
    | (?P<symbol>::|:=|=>|<=|>=|<>|!=|\|\||->>|->|[-+*/<>=~!@\#%^&|?:;,.()\[\]])
    """,
    re.VERBOSE | re.DOTALL,
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_NOT_NEWLINE = re.compile(r"[^\n\r]")
_ESCAPE = re.compile(r"\\.|''", re.DOTALL)
_ESCAPES = {"\\n": "\n", "\\t": "\t", "\\r": "\r", "\\b": "\b", "\\f": "\f"}
_KINDS = {
    "escaped": TokenKind.STRING,
    "string": TokenKind.STRING,
    "dollar": TokenKind.STRING,
    "quoted": TokenKind.QUOTED,
    "parameter": TokenKind.PARAMETER,
    "number": TokenKind.NUMBER,
    "word": TokenKind.WORD,
    "symbol": TokenKind.SYMBOL,
}


def scan(text: str) -> Scan:
    """All tokens of a text. Raises Rejected: 54001 over a limit, 42601 where the text is no SQL at all."""
    _check_length(text)
    tokens: list[Token] = []
    comments: list[tuple[int, int]] = []
    for name, start, end in _lexemes(text):
        if name in ("line", "block"):
            comments.append((start, end))
        elif name != "space":
            tokens.append(Token(_KINDS[name], _meaning(name, text[start:end]), start, end))
        if len(tokens) + len(comments) > MAX_TOKENS:
            raise Rejected(
                f"the text has more than {MAX_TOKENS} tokens and comments",
                sqlstate=TOO_COMPLEX,
                hint="Split it into several statements, or join with a public table instead of listing values.",
            )
    return Scan(_blank(text, comments), tuple(tokens))


def _check_length(text: str) -> None:
    # The first test spares encoding a text of megabytes.
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise Rejected(
            f"the text is longer than {MAX_BYTES // 1024} KiB",
            sqlstate=TOO_COMPLEX,
            hint="Join with a public table instead of listing values.",
        )
    if (at := text.find("\0")) >= 0:
        raise Rejected("the text holds a NUL character", sqlstate=SYNTAX, position=at + 1)
    if (half := _SURROGATE.search(text)) is not None:
        raise Rejected("the text holds half a surrogate pair", sqlstate=SYNTAX, position=half.start() + 1)


def _lexemes(text: str) -> Iterator[tuple[str, int, int]]:
    """(kind of lexeme, start, end), covering the whole text."""
    at = 0
    while at < len(text):
        match = _LEXEME.match(text, at)
        if match is None or match.lastgroup is None:
            raise _illegal(text, at)
        name, start, at = match.lastgroup, at, match.end()
        if name == "block":
            at = _end_of_comment(text, start)
        elif name == "dollar":
            at = _end_of_dollar(text, start, match.group())
        yield name, start, at


def _end_of_comment(text: str, start: int) -> int:
    """Where the comment that opens at `start` ends; comments nest."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, start):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    raise Rejected("unterminated /* comment", sqlstate=SYNTAX, position=start + 1)


def _end_of_dollar(text: str, start: int, tag: str) -> int:
    end = text.find(tag, start + len(tag))
    if end < 0:
        raise Rejected("unterminated dollar-quoted string", sqlstate=SYNTAX, position=start + 1)
    return end + len(tag)


def _illegal(text: str, at: int) -> Rejected:
    character = text[at]
    if character in "'\"" or text[at : at + 2] in ("e'", "E'"):
        what = "identifier" if character == '"' else "string"
        message = f"unterminated quoted {what}"
        if text.startswith('""', at):
            message = "zero-length delimited identifier"
        return Rejected(message, sqlstate=SYNTAX, position=at + 1)
    shown = character if character.isascii() and character.isprintable() else f"U+{ord(character):04X}"
    hint = "Text copied from a document may hold blanks and quotes that only look like the plain ones."
    return Rejected(
        f"invalid character {shown} outside of literals and quoted names",
        sqlstate=SYNTAX,
        hint='Names are quoted with double quotes: "name".' if character == "`" else hint,
        position=at + 1,
    )


def _meaning(name: str, lexeme: str) -> str:
    match name:
        case "word":
            return fold(lexeme)
        case "quoted":
            return lexeme[lexeme.index('"') + 1 : -1].replace('""', '"')
        case "string":
            return lexeme[lexeme.index("'") + 1 : -1].replace("''", "'")
        case "escaped":
            return _ESCAPE.sub(lambda found: _ESCAPES.get(found.group(), found.group()[-1]), lexeme[2:-1])
        case "dollar":
            tag = lexeme.index("$", 1) + 1
            return lexeme[tag:-tag]
        case _:
            return lexeme


def fold(word: str) -> str:
    """An unquoted name as Postgres folds it: ASCII letters only."""
    if word.isascii():
        return word.lower()
    return "".join(letter.lower() if letter.isascii() else letter for letter in word)


def _blank(text: str, spans: list[tuple[int, int]]) -> str:
    """The text with the spans turned to blanks; line ends stay."""
    pieces: list[str] = []
    at = 0
    for start, end in spans:
        pieces += (text[at:start], _NOT_NEWLINE.sub(" ", text[start:end]))
        at = end
    return "".join((*pieces, text[at:]))
