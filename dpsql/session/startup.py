"""What a StartupMessage may set: parameters by name, and `options=-c name=value`.

Decides which of them reach the public server. It must never take an identity from them: the user is who logged in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dpsql.errors import NOT_PERMITTED, NOT_SUPPORTED, Rejected
from dpsql.session.settings import ALWAYS_ON, DEFAULTS, PREFIX, checked

_NOT_SETTINGS = frozenset({"user", "database", "options"})
"""Of the StartupMessage itself; as options they would be another user's."""
_CHECKED = ALWAYS_ON | {"client_encoding"}
_IDENTITY = _NOT_SETTINGS | {"role", "session_authorization"}


def parameters(given: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """A new session's settings, ours with their defaults first. Raises Rejected for what may not be set.

    Those of the public server are its own to judge.
    """
    found = dict(DEFAULTS)
    for name, value in _named(given):
        key = name.lower()
        if key in _IDENTITY:
            raise Rejected(f'"{name[:63]}" cannot be set at login', sqlstate=NOT_PERMITTED, hint="Log in as that user.")
        if key == "replication" and value.lower() in ("false", "off", "no", "0"):
            continue
        if key == "replication":
            raise Rejected("replication connections are not supported", sqlstate=NOT_SUPPORTED)
        if key.startswith(PREFIX) or key in _CHECKED:
            found |= checked(key, value)
        if key.startswith(PREFIX):
            continue
        found[name] = value
    return tuple(found.items())


def _named(given: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for name, value in given:
        if name == "options":
            yield from _options(value)
        elif name not in _NOT_SETTINGS and not name.startswith("_pq_."):
            yield name, value


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
