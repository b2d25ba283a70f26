"""Releases as bytes: what the ledger keeps of an answer, so that it can be given again byte for byte.

Decides the stored form only. Must never read a release without proof of its origin: the ledger checks the bytes
against the hash in its chain before they come here.
"""

from __future__ import annotations

import json

from dpsql.replay.values import tag, untag
from dpsql.types import Release

FORMAT = 1


def to_bytes(release: Release, shape: str = "") -> bytes:
    """The stored form of a release. Raises TypeError where a key or a cell is not of an exact, known type.

    `shape`: the digest of its shape, if it is kept with one.
    """
    document: dict[str, object] = {
        "format": FORMAT,
        "key": release.key,
        "keys": [[tag(value) for value in key] for key in release.keys],
        "cells": [[_cell(cell) for cell in row] for row in release.cells],
    }
    if shape:
        document["shape"] = shape
    return json.dumps(document, separators=(",", ":"), allow_nan=False).encode("ascii")


def shape_digest(data: bytes) -> str:
    """The digest of its shape that a stored release holds, "" without one. Raises ValueError if it is none."""
    return str(json.loads(data).get("shape", ""))


def from_bytes(data: bytes) -> Release:
    """The release that `to_bytes` stored. Raises ValueError if it is not in that form."""
    try:
        document = json.loads(data)
        if document["format"] != FORMAT:
            raise ValueError("stored by another version")
        return Release(
            key=str(document["key"]),
            keys=tuple(tuple(untag(value) for value in key) for key in document["keys"]),
            cells=tuple(tuple(_cell(cell) for cell in row) for row in document["cells"]),
        )
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise ValueError(f"not a stored release: {type(error).__name__}") from None


def _cell(cell: int) -> int:
    if type(cell) is not int:
        raise TypeError(f"a cell is a plain integer, not {type(cell).__name__}")
    return cell
