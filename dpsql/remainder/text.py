"""Postgres's text functions where DuckDB's differ. Results have a size limit: nobody may ask for gigabytes."""

from __future__ import annotations

from dpsql.errors import BAD_PARAMETER, Rejected

LIMIT = 1_000_000
"""Characters in one made text."""


def _limited(size: int) -> int:
    if size > LIMIT:
        raise Rejected(f"the resulting text would have more than {LIMIT} characters", sqlstate="54000")
    return size


def substring(text: str, start: int, length: int | None) -> str:
    """Positions before the first character count, too."""
    if length is None:
        return text[max(start - 1, 0) :]
    if length < 0:
        raise Rejected("negative substring length not allowed", sqlstate="22011")
    return text[max(start - 1, 0) : max(start - 1 + length, 0)]


def pad_left(text: str, length: int, fill: str) -> str:
    return (_filler(text, length, fill) + text)[: max(length, 0)] if len(text) <= length else text[: max(length, 0)]


def pad_right(text: str, length: int, fill: str) -> str:
    return (text + _filler(text, length, fill))[: max(length, 0)]


def _filler(text: str, length: int, fill: str) -> str:
    missing = max(_limited(length) - len(text), 0)
    return (fill * missing)[:missing] if len(fill) <= 1 else (fill * (missing // len(fill) + 1))[:missing]


def repeat(text: str, times: int) -> str:
    _limited(len(text) * max(times, 0))
    return text * max(times, 0)


def replace(text: str, old: str, new: str) -> str:
    if not old:
        return text
    _limited(len(text) + text.count(old) * (len(new) - len(old)))
    return text.replace(old, new)


def translate(text: str, old: str, new: str) -> str:
    table: dict[int, str | None] = {}
    for index, character in enumerate(old):
        table.setdefault(ord(character), new[index] if index < len(new) else None)
    return text.translate(table)


def overlay(text: str, new: str, start: int, length: int | None) -> str:
    if start <= 0:
        raise Rejected("negative substring length not allowed", sqlstate="22011")
    count = len(new) if length is None else length
    return substring(text, 1, start - 1) + new + substring(text, start + count, None)


def split_part(text: str, delimiter: str, index: int) -> str:
    if index == 0:
        raise Rejected("field position must not be zero", sqlstate=BAD_PARAMETER)
    parts = text.split(delimiter) if delimiter else [text]
    place = index - 1 if index > 0 else index
    return parts[place] if -len(parts) <= place < len(parts) else ""


def capitals(text: str) -> str:
    """initcap: a word is a run of letters and digits."""
    made, inside = [], False
    for character in text:
        made.append(character.lower() if inside else character.upper())
        inside = character.isalnum()
    return "".join(made)


def character(code: int) -> str:
    if code == 0:
        raise Rejected("null character not permitted", sqlstate="54000")
    if code < 0 or code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise Rejected(f"requested character not valid for encoding: {code}", sqlstate="54000")
    return chr(code)


def code(text: str) -> int:
    return ord(text[0]) if text else 0


def quote_literal(text: str) -> str:
    doubled = text.replace("'", "''")
    return "E'" + doubled.replace("\\", "\\\\") + "'" if "\\" in text else f"'{doubled}'"
