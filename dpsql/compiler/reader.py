"""Reading one statement's tokens from left to right.

Decides nothing: it says what comes next, takes it, and makes the syntax error of the place where it stands.
"""

from __future__ import annotations

from dpsql.compiler.tokens import Token, TokenKind
from dpsql.errors import OUT_OF_RANGE, SYNTAX, Rejected

_MAX_DIGITS = 18


class Reader:
    """A position in a statement's tokens. Words are given in lower case; only unquoted words match them."""

    def __init__(self, text: str, tokens: tuple[Token, ...]) -> None:
        self.text = text
        self.tokens = tokens
        self._at = 0

    def peek(self, ahead: int = 0) -> Token | None:
        at = self._at + ahead
        return self.tokens[at] if at < len(self.tokens) else None

    def at_end(self) -> bool:
        return self._at >= len(self.tokens)

    def at(self, *words: str, symbol: str | None = None) -> bool:
        """Whether these words, and then the symbol, come next."""
        ahead = [self.peek(n) for n in range(len(words))]
        if not all(token is not None and token.is_word(word) for token, word in zip(ahead, words, strict=True)):
            return False
        last = self.peek(len(words))
        return symbol is None or (last is not None and last.is_symbol(symbol))

    def at_word(self, *words: str) -> bool:
        token = self.peek()
        return token is not None and token.is_word(*words)

    def at_symbol(self, *symbols: str) -> bool:
        token = self.peek()
        return token is not None and token.is_symbol(*symbols)

    def at_query(self) -> bool:
        """Whether a query begins here, behind any number of opening brackets."""
        ahead = 0
        while (token := self.peek(ahead)) is not None and token.is_symbol("("):
            ahead += 1
        return token is not None and token.is_word("select", "with", "values", "table")

    def take(self) -> Token:
        token = self.peek()
        if token is None:
            raise self.error()
        self._at += 1
        return token

    def accept(self, *words: str) -> bool:
        """Takes all these words if they come next."""
        if not self.at(*words):
            return False
        self._at += len(words)
        return True

    def accept_any(self, *words: str) -> str | None:
        """Takes and returns the next word if it is one of these."""
        return self.take().text if self.at_word(*words) else None

    def accept_symbol(self, symbol: str) -> bool:
        if not self.at_symbol(symbol):
            return False
        self._at += 1
        return True

    def expect(self, *words: str) -> None:
        for word in words:
            if not self.accept(word):
                raise self.error()

    def expect_symbol(self, symbol: str) -> None:
        if not self.accept_symbol(symbol):
            raise self.error()

    def end(self) -> None:
        if not self.at_end():
            raise self.error()

    def rest(self) -> tuple[Token, ...]:
        """All remaining tokens, taken."""
        rest = self.tokens[self._at :]
        self._at = len(self.tokens)
        return rest

    def inside(self) -> tuple[Token, ...]:
        """The tokens between the opening bracket that comes next and its closing one, taken with both."""
        self.expect_symbol("(")
        start, depth = self._at, 1
        while depth:
            token = self.take()
            depth += token.is_symbol("(") - token.is_symbol(")")
        return self.tokens[start : self._at - 1]

    def name(self) -> str:
        """A single name, quoted or not."""
        token = self.peek()
        if token is None or token.kind not in (TokenKind.WORD, TokenKind.QUOTED):
            raise self.error()
        return self.take().text

    def last_name(self) -> str:
        """A single name with nothing behind it."""
        name = self.name()
        self.end()
        return name

    def dotted_name(self) -> str:
        parts = [self.name()]
        while self.accept_symbol("."):
            parts.append(self.name())
        return ".".join(parts)

    def setting_value(self) -> str:
        """A word, name, number or string as the value of a setting or option."""
        token = self.peek()
        if token is not None and token.kind in (TokenKind.WORD, TokenKind.QUOTED):
            return self.take().text
        return self.literal()

    def literal(self) -> str:
        """A string, or a number with its sign."""
        sign = self.take().text if self.at_symbol("-", "+") else ""
        token = self.peek()
        if token is None or not (token.kind is TokenKind.NUMBER or (token.kind is TokenKind.STRING and not sign)):
            raise self.error()
        return sign + self.take().text

    def integer(self) -> int:
        """A whole number with its sign."""
        token = self.peek()
        text = self.literal()
        if not text.lstrip("+-").isdecimal() or (token is not None and token.kind is TokenKind.STRING):
            raise self.error(token)
        if len(text) > _MAX_DIGITS:
            raise Rejected(f"the number {text[:20]}... is out of range", sqlstate=OUT_OF_RANGE)
        return int(text)

    def error(self, at: Token | None = None) -> Rejected:
        """The syntax error of the place where the reader stands."""
        token = at or self.peek()
        if token is None:
            return Rejected("syntax error at end of input", sqlstate=SYNTAX)
        found = self.text[token.start : token.end]
        shown = found if len(found) <= 63 else found[:60] + "..."
        return Rejected(f'syntax error at or near "{shown}"', sqlstate=SYNTAX, position=token.start + 1)
