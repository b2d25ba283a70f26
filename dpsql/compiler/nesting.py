"""How deep a text is nested, and how often its parser would have to guess: both bounded before it is parsed.

Decides from tokens alone. sqlglot's parser recurses, and where it guesses wrong it starts again, so that each guess
inside another one doubles its time: 22 JOINs without ON took it more than ten seconds. Such nests are refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot.dialects.postgres import Postgres

from dpsql.compiler.tokens import Token
from dpsql.errors import SYNTAX, TOO_COMPLEX, Rejected

MAX_DEPTH = 100
MAX_GUESSES = 5
MAX_SELECTS = 100
MAX_SUBSCRIPTS = 50

_PREFIX_SYMBOLS = ("-", "+", "~", "@", "!", "|")
_TYPES = Postgres.Parser.TYPE_TOKENS
_TYPE_WORDS = frozenset(word.lower() for word, kind in Postgres.Tokenizer.KEYWORDS.items() if kind in _TYPES)


@dataclass(frozen=True, slots=True)
class _Level:
    """What is open here: `joins` wait for their ON, `prefixes` are those before the next operand.

    `depth` and `guesses` count what is open outside as well.
    """

    opener: Token | None = None
    depth: int = 0
    guesses: int = 0
    joins: int = 0
    prefixes: int = 0


_TELLING = frozenset(("not", *_PREFIX_SYMBOLS, "join", "on", "using", "if", ";"))
"""What changes a level that it neither opens nor closes, if no prefix stands before it."""


def check(tokens: tuple[Token, ...]) -> None:
    """Raises Rejected: 54001 over a limit, 42601 for brackets that do not match."""
    if sum(token.is_word("select") for token in tokens) > MAX_SELECTS:
        raise Rejected(f"the text has more than {MAX_SELECTS} SELECTs", sqlstate=TOO_COMPLEX)
    if sum(token.is_symbol("[") for token in tokens) > MAX_SUBSCRIPTS:
        raise Rejected(f"the text has more than {MAX_SUBSCRIPTS} square brackets", sqlstate=TOO_COMPLEX)
    level, outside = _Level(), list[_Level]()
    for at, token in enumerate(tokens):
        before = tokens[at - 1] if at else None
        if token.is_symbol("(", "[") or token.is_word("case"):
            outside.append(replace(level, prefixes=0))
            level = _inside(level, token, before)
        elif _closes(token, level.opener):
            level = outside.pop()
        else:
            level = _along(level, tokens, at)
        if level.depth + level.prefixes > MAX_DEPTH:
            raise _too_complex(f"the text is nested more than {MAX_DEPTH} levels deep", token)
        if level.guesses + level.joins > MAX_GUESSES:
            raise _too_complex("the text nests too many arrays, type calls or JOINs without ON", token)
    if level.opener is not None and level.opener.is_symbol("(", "["):
        raise Rejected("syntax error at end of input: a bracket is not closed", sqlstate=SYNTAX)


def _inside(level: _Level, token: Token, before: Token | None) -> _Level:
    """The level that a bracket or CASE opens. An array and `numeric (` are guessed at."""
    typed = token.is_symbol("(") and before is not None and before.is_word(*_TYPE_WORDS)
    guess = token.is_symbol("[") or typed
    return _Level(token, level.depth + level.prefixes + 1, level.guesses + level.joins + guess)


def _closes(token: Token, opener: Token | None) -> bool:
    """Whether `token` closes the level; raises Rejected 42601 for a bracket that closes nothing."""
    if token.is_word("end"):
        return opener is not None and opener.is_word("case")
    if not token.is_symbol(")", "]"):
        return False
    if opener is None or not opener.is_symbol("(" if token.text == ")" else "["):
        raise Rejected(f'syntax error at or near "{token.text}"', sqlstate=SYNTAX, position=token.start + 1)
    return True


def _along(level: _Level, tokens: tuple[Token, ...], at: int) -> _Level:
    """The level after a token that neither opens nor closes one."""
    token = tokens[at]
    if not level.prefixes and token.text not in _TELLING:
        return level
    if token.is_word("not") or token.is_symbol(*_PREFIX_SYMBOLS):
        return replace(level, prefixes=level.prefixes + 1)
    if level.prefixes:
        level = replace(level, prefixes=0)
    if token.is_word("join") and _wants_condition(tokens[max(at - 4, 0) : at]):
        return replace(level, joins=level.joins + 1)
    if token.is_word("on", "using") and level.joins:
        return replace(level, joins=level.joins - 1)
    if token.is_word("if") and not (at + 1 < len(tokens) and tokens[at + 1].is_symbol("(")):
        return replace(level, guesses=level.guesses + 1)
    return _Level() if token.is_symbol(";") else level


def _wants_condition(before: tuple[Token, ...]) -> bool:
    """Whether a JOIN behind these words must have an ON or USING: all but CROSS and NATURAL ... JOIN."""
    for at in range(len(before) - 1, -1, -1):
        token = before[at]
        if token.is_word("cross", "natural"):
            return at > 0 and before[at - 1].is_word("join")
        if not token.is_word("inner", "left", "right", "full", "outer"):
            return True
    return True


def _too_complex(message: str, token: Token) -> Rejected:
    return Rejected(message, sqlstate=TOO_COMPLEX, position=token.start + 1)
