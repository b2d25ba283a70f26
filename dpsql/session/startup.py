"""What a StartupMessage may set: parameters by name, and `options=-c name=value`.

Decides how they are read. It must never take an identity from them: the user is who logged in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dpsql.errors import NOT_PERMITTED, NOT_SUPPORTED, Rejected
from dpsql.session.settings import Values, assign, initial

_NOT_SETTINGS = frozenset({"user", "database", "options"})


def settings(fixed: Mapping[str, str], user: str, parameters: Iterable[tuple[str, str]]) -> Values:
    """A new session's settings. Raises Rejected for a value that is not allowed or a name that does not exist."""
    defaults = values = initial(fixed, user)
    for name, value in parameters:
        if name == "options":
            for inner, inner_value in _options(value):
                values = _assign(values, inner, inner_value, defaults)
        elif name not in _NOT_SETTINGS and not name.startswith("_pq_."):
            values = _assign(values, name, value, defaults)
    return values


def _assign(values: Values, name: str, value: str, defaults: Values) -> Values:
    if name == "replication":
        if value.lower() in ("false", "off", "no", "0"):
            return values
        raise Rejected("replication connections are not supported", sqlstate=NOT_SUPPORTED)
    if name.lower() in ("role", "session_authorization"):
        raise Rejected(f'"{name}" cannot be set at login', sqlstate=NOT_PERMITTED, hint="Log in as that user.")
    return assign(values, name, value, defaults)


def _options(text: str) -> list[tuple[str, str]]:
    """The pairs of `-c name=value`, `-cname=value` and `--name=value`; a backslash protects a blank."""
    pairs: list[tuple[str, str]] = []
    words = iter(_words(text))
    for word in words:
        if word == "-c":
            word = next(words, "")
        elif word.startswith(("-c", "--")):
            word = word[2:]
        else:
            raise Rejected(f'invalid command-line argument for server process: "{word[:63]}"', sqlstate="22023")
        name, equals, value = word.partition("=")
        if not equals:
            raise Rejected(f'option "{word[:63]}" requires a value', sqlstate="22023")
        pairs.append((name.replace("-", "_"), value))
    return pairs


def _words(text: str) -> list[str]:
    words: list[str] = []
    word: str | None = None
    escaped = False
    for letter in text:
        if escaped or not (letter.isspace() or letter == "\\"):
            word, escaped = (word or "") + letter, False
        elif letter == "\\":
            escaped = True
        elif word is not None:
            words.append(word)
            word = None
    return words if word is None else [*words, word]
