"""Regular expressions and SIMILAR TO as lists of LIKE patterns, where the list says exactly the same.

Engines differ in their regular expressions, and some patterns take a time that hangs on the data, so none is ever sent
to a backend. What has finitely many shapes (alternatives, single characters, short classes, `.`, `.*`) is written out
here as LIKE patterns; for anything else there is None, and it is refused. `_` and `.` both stand for any one character,
line ends included, as Postgres reads them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from string import ascii_letters, digits

MOST_PATTERNS = 100
_MOST_LENGTH = 400

_ANY_TEXT, _ANY_CHARACTER, _START, _END = "%", "_", "^", "$"
_CLASSES = {"d": digits, "w": ascii_letters + digits + "_", "s": " \t\n\r\f\v"}
_PUNCTUATION = frozenset(".$^*+?()|[]{}/-\\\"'#,:;<=>@!%&~_ `")

Part = tuple[str, str]
"""('literal', character) or ('wild', one of the four above)."""
Sequence = tuple[Part, ...]


class _TooMuch(Exception):
    """A pattern that has no list here."""


def of_regular(pattern: str) -> tuple[str, ...] | None:
    """LIKE patterns of `x ~ pattern`: it matches where one of them does. ASCII patterns only."""
    found = _read(pattern, similar=False)
    return None if found is None else _listed(_anchored(each) for each in found)


def of_similar(pattern: str, escape: str = "\\") -> tuple[str, ...] | None:
    """LIKE patterns of `x SIMILAR TO pattern ESCAPE escape`, which means the whole text."""
    found = _read(pattern, similar=True, escape=escape)
    return None if found is None else _listed(found)


def escaped(word: str) -> str:
    """Literal text inside a LIKE pattern."""
    return "".join("\\" + c if c in "\\%_" else c for c in word)


def with_escape(pattern: str, escape: str) -> str | None:
    """A LIKE pattern with another escape character ('' for none) in the form with backslashes; None: it ends in one."""
    made, at = "", 0
    while at < len(pattern):
        c = pattern[at]
        if escape and c == escape:
            if at + 1 == len(pattern):
                return None
            at += 1
            made += escaped(pattern[at])
        else:
            made += "\\\\" if c == "\\" else c
        at += 1
    return made


def _read(pattern: str, *, similar: bool, escape: str = "\\") -> tuple[Sequence, ...] | None:
    if not pattern.isascii() or len(pattern) > _MOST_LENGTH:
        return None
    reader = _Reader(pattern, similar, escape)
    try:
        found = reader.alternatives()
    except _TooMuch:
        return None
    return found if reader.at == len(pattern) else None


def _anchored(sequence: Sequence) -> Sequence:
    """Without ^ and $, and with any text where they do not stand."""
    before: Sequence = (("wild", _ANY_TEXT),)
    after = before
    if sequence[:1] == (("wild", _START),):
        before, sequence = (), sequence[1:]
    if sequence[-1:] == (("wild", _END),):
        after, sequence = (), sequence[:-1]
    return (*before, *sequence, *after)


def _listed(sequences: Iterator[Sequence] | tuple[Sequence, ...]) -> tuple[str, ...] | None:
    made = []
    for sequence in sequences:
        if any(part in (("wild", _START), ("wild", _END)) for part in sequence):
            return None
        text = "".join(escaped(c) if kind == "literal" else c for kind, c in sequence)
        while "%%" in text.replace("\\%", "\\ "):
            at = text.replace("\\%", "\\ ").index("%%")
            text = text[:at] + text[at + 1 :]
        made.append(text)
    return tuple(dict.fromkeys(made))


class _Reader:
    """Reads a pattern from left to right into all its sequences of parts."""

    def __init__(self, text: str, similar: bool, escape: str) -> None:
        self.text = text
        self.similar = similar
        self.escape = escape
        self.at = 0

    def _next(self) -> str:
        return self.text[self.at : self.at + 1]

    def _take(self) -> str:
        c = self._next()
        if not c:
            raise _TooMuch
        self.at += 1
        return c

    def alternatives(self) -> tuple[Sequence, ...]:
        found = [*self._branch()]
        while self._next() == "|":
            self._take()
            found += self._branch()
        return _few(found)

    def _branch(self) -> tuple[Sequence, ...]:
        start = self.at
        found: tuple[Sequence, ...] = ((),)
        while self._next() and self._next() not in "|)":
            choices = self._quantified(self._atom())
            found = _few([(*a, *b) for a, b in product(found, choices)])
        if self.at == start and self.text:
            raise _TooMuch
        return found

    def _quantified(self, choices: tuple[Sequence, ...]) -> tuple[Sequence, ...]:
        """What follows an atom: `?` makes it optional, `*` and `+` are known behind any character only."""
        if not self._next() or self._next() not in "?*+{":
            return choices
        mark = self._take()
        if choices in (((("wild", _START),),), ((("wild", _END),),)):
            raise _TooMuch
        if self._next() and self._next() in "?*+{":
            raise _TooMuch
        any_character = choices == ((("wild", _ANY_CHARACTER),),)
        match mark:
            case "?":
                return _few([(), *choices])
            case "*" if any_character:
                return ((("wild", _ANY_TEXT),),)
            case "+" if any_character:
                return ((("wild", _ANY_CHARACTER), ("wild", _ANY_TEXT)),)
            case "{":
                return self._repeated(choices)
            case _:
                raise _TooMuch

    def _repeated(self, choices: tuple[Sequence, ...]) -> tuple[Sequence, ...]:
        written = ""
        while self._next() != "}":
            written += self._take()
        self._take()
        if not written.isdigit() or not 1 <= int(written) <= 50 or (self._next() and self._next() in "?*+{"):
            raise _TooMuch
        found: tuple[Sequence, ...] = ((),)
        for _ in range(int(written)):
            found = _few([(*a, *b) for a, b in product(found, choices)])
        return found

    def _atom(self) -> tuple[Sequence, ...]:
        c = self._take()
        if self.similar:
            return self._similar_atom(c)
        match c:
            case "(":
                if self._next() == "?":
                    if self.text[self.at : self.at + 2] != "?:":
                        raise _TooMuch
                    self.at += 2
                return self._group()
            case "[":
                return self._class()
            case ".":
                return ((("wild", _ANY_CHARACTER),),)
            case "^" | "$":
                return ((("wild", c),),)
            case "\\":
                return self._escaped()
            case "*" | "+" | "?" | "{" | "}" | "]":
                raise _TooMuch
            case _:
                return ((("literal", c),),)

    def _similar_atom(self, c: str) -> tuple[Sequence, ...]:
        if self.escape and c == self.escape:
            quoted = self._take()
            if quoted.isalnum():
                raise _TooMuch
            return ((("literal", quoted),),)
        match c:
            case "(":
                return self._group()
            case "[":
                return self._class()
            case "%" | "_":
                return ((("wild", c),),)
            case "*" | "+" | "?" | "{" | "}" | "]" | "\\" | '"':
                raise _TooMuch
            case _:
                return ((("literal", c),),)

    def _group(self) -> tuple[Sequence, ...]:
        found = self.alternatives()
        if self._take() != ")":
            raise _TooMuch
        return found

    def _escaped(self) -> tuple[Sequence, ...]:
        c = self._take()
        if c in _PUNCTUATION:
            return ((("literal", c),),)
        if c == "d":
            return tuple((("literal", each),) for each in _CLASSES[c])
        raise _TooMuch

    def _class(self) -> tuple[Sequence, ...]:
        """[abc], [a-c]: each of its characters."""
        found: list[str] = []
        if self._next() in ("^", "]", ""):
            raise _TooMuch
        while (c := self._take()) != "]":
            if c == "[" or (c == self.escape and self.similar):
                raise _TooMuch
            if c == "\\":
                c = self._take()
                if c in _CLASSES:
                    found += _CLASSES[c]
                    continue
                if c not in _PUNCTUATION:
                    raise _TooMuch
            if self._next() == "-" and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                self._take()
                last = self._take()
                if last in "\\[" or ord(last) < ord(c):
                    raise _TooMuch
                found += [chr(n) for n in range(ord(c), ord(last) + 1)]
            else:
                found.append(c)
        return _few([(("literal", each),) for each in dict.fromkeys(found)])


def _few(sequences: list[Sequence]) -> tuple[Sequence, ...]:
    if len(sequences) > MOST_PATTERNS or any(len(each) > _MOST_LENGTH for each in sequences):
        raise _TooMuch
    return tuple(sequences)
