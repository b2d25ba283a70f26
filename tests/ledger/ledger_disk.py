"""A disk that can lose its power: what SQLite and the anchors write and sync, in order, and what is left of it.

Stands between the very SQLite library that Python's sqlite3 uses and the system, as a VFS whose files are the system's
but for writes, truncations, syncs and deletions, which it notes before it passes them on. From the notes the disk is
made again as a power failure may leave it: what was synced is there, of the rest what a mode says. The shared-memory
file is not kept, as after any restart.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

SECTOR: Final = 512
"""A write is cut at these bytes; SQLite assumes no more of a disk."""


@dataclass(frozen=True, slots=True)
class Write:
    path: str
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Truncate:
    path: str
    size: int


@dataclass(frozen=True, slots=True)
class Delete:
    path: str


@dataclass(frozen=True, slots=True)
class Sync:
    path: str


@dataclass(frozen=True, slots=True)
class Told:
    """What somebody was told, so what may never be forgotten."""

    what: object


Note = Write | Truncate | Delete | Sync | Told


# Recording ----------------------------------------------------------------------------------------------------------


class _Vfs(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_int),
        ("file_size", ctypes.c_int),
        ("max_path", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("app_data", ctypes.c_void_p),
        ("open", ctypes.c_void_p),
        ("delete", ctypes.c_void_p),
        ("rest", ctypes.c_void_p * 14),
    )


class _Methods(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_int),
        ("close", ctypes.c_void_p),
        ("read", ctypes.c_void_p),
        ("write", ctypes.c_void_p),
        ("truncate", ctypes.c_void_p),
        ("sync", ctypes.c_void_p),
        ("rest", ctypes.c_void_p * 13),
    )


_OPEN: Final = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p
)
_DELETE: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int)
_WRITE: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int64)
_TRUNCATE: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int64)
_SYNC: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)


def library() -> ctypes.CDLL | None:
    """The SQLite that sqlite3 has loaded, if it is a library of its own."""
    sqlite3.connect(":memory:").close()
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.split()[-1]
        if "sqlite3" in path and path.startswith("/"):
            found = ctypes.CDLL(path)
            if hasattr(found, "sqlite3_vfs_register"):
                return found
    return None


class Recorder:
    """The default VFS of this process from now on, and the system's calls that the anchors make."""

    def __init__(self, sqlite: ctypes.CDLL) -> None:
        self.notes: list[Note] = []
        self._keep: list[object] = []
        self._paths: dict[int, str] = {}
        self._methods: dict[int, _Methods] = {}
        sqlite.sqlite3_vfs_find.restype = ctypes.c_void_p
        sqlite.sqlite3_vfs_register.argtypes = (ctypes.c_void_p, ctypes.c_int)
        original = _Vfs.from_address(sqlite.sqlite3_vfs_find(None))
        self._vfs = _Vfs.from_buffer_copy(original)
        self._open, self._delete = _OPEN(original.open), _DELETE(original.delete)
        self._vfs.name, self._vfs.next = b"recorded", None
        self._vfs.open = self._pointer(_OPEN, self._opened)
        self._vfs.delete = self._pointer(_DELETE, self._deleted)
        assert sqlite.sqlite3_vfs_register(ctypes.addressof(self._vfs), 1) == 0

    def told(self, what: object) -> None:
        self.notes.append(Told(what))

    def _pointer(self, kind: Any, call: Callable[..., int]) -> int | None:
        made = kind(call)
        self._keep.append(made)
        return ctypes.cast(made, ctypes.c_void_p).value

    def _opened(self, vfs: int, name: int | None, file: int, flags: int, out: int | None) -> int:
        result = int(self._open(vfs, name, file, flags, out))
        if result == 0 and name:
            self._paths[file] = ctypes.string_at(name).decode()
            slot = ctypes.c_void_p.from_address(file)
            assert slot.value is not None
            slot.value = ctypes.addressof(self._noting(slot.value))
        return result

    def _noting(self, address: int) -> _Methods:
        """The same methods, with those that change the disk noted."""
        if address not in self._methods:
            original = _Methods.from_address(address)
            changed = _Methods.from_buffer_copy(original)
            write, truncate, sync = _WRITE(original.write), _TRUNCATE(original.truncate), _SYNC(original.sync)

            def noted_write(file: int, data: int, amount: int, offset: int) -> int:
                self.notes.append(Write(self._paths[file], offset, ctypes.string_at(data, amount)))
                return int(write(file, data, amount, offset))

            def noted_truncate(file: int, size: int) -> int:
                self.notes.append(Truncate(self._paths[file], size))
                return int(truncate(file, size))

            def noted_sync(file: int, flags: int) -> int:
                result = int(sync(file, flags))
                self.notes.append(Sync(self._paths[file]))
                return result

            changed.write = self._pointer(_WRITE, noted_write)
            changed.truncate = self._pointer(_TRUNCATE, noted_truncate)
            changed.sync = self._pointer(_SYNC, noted_sync)
            self._methods[address] = changed
        return self._methods[address]

    def _deleted(self, vfs: int, name: bytes, sync: int) -> int:
        self.notes.append(Delete(name.decode()))
        return int(self._delete(vfs, name, sync))

    @contextmanager
    def anchors(self) -> Iterator[None]:
        """Also what Python itself writes and syncs."""
        write, sync = os.pwrite, os.fsync

        def noted_write(file: int, data: bytes, offset: int) -> int:
            self.notes.append(Write(os.readlink(f"/proc/self/fd/{file}"), offset, data))
            return write(file, data, offset)

        def noted_sync(file: int) -> None:
            sync(file)
            self.notes.append(Sync(os.readlink(f"/proc/self/fd/{file}")))

        os.pwrite, os.fsync = noted_write, noted_sync  # type: ignore[assignment]
        try:
            yield
        finally:
            os.pwrite, os.fsync = write, sync

    def save(self, path: Path) -> None:
        path.write_bytes(pickle.dumps(self.notes))


# Making the disk again ----------------------------------------------------------------------------------------------

Mode = Callable[[list[Note], random.Random], list[Note]]
"""Of the changes that were not synced, those that reached the disk."""


def lost(unsynced: list[Note], choose: random.Random) -> list[Note]:
    return []


def kept(unsynced: list[Note], choose: random.Random) -> list[Note]:
    return unsynced


def some(unsynced: list[Note], choose: random.Random) -> list[Note]:
    """Any of them, in order."""
    return [note for note in unsynced if choose.random() < 0.5]


def torn(unsynced: list[Note], choose: random.Random) -> list[Note]:
    """Any sectors of any of them; what fits one sector is there or not."""
    found: list[Note] = []
    for note in unsynced:
        if isinstance(note, Write):
            for start in range(0, len(note.data), SECTOR):
                if choose.random() < 0.5:
                    found.append(Write(note.path, note.offset + start, note.data[start : start + SECTOR]))
        elif choose.random() < 0.5:
            found.append(note)
    return found


MODES: Final[tuple[Mode, ...]] = (lost, kept, some, torn)


def crashed(before: dict[str, bytes], notes: list[Note], mode: Mode, choose: random.Random) -> dict[str, bytes]:
    """The files after a power failure behind the last of the notes."""
    files = {path: bytearray(data) for path, data in before.items()}
    waiting: dict[str, list[Note]] = {}
    for note in notes:
        match note:
            case Told():
                pass
            case Sync(path):
                for each in waiting.pop(path, []):
                    _apply(files, each)
            case Write(path) | Truncate(path) | Delete(path):
                waiting.setdefault(path, []).append(note)
    for unsynced in waiting.values():
        for each in mode(unsynced, choose):
            _apply(files, each)
    return {path: bytes(data) for path, data in files.items()}


def _apply(files: dict[str, bytearray], note: Note) -> None:
    match note:
        case Write(path, offset, data):
            content = files.setdefault(path, bytearray())
            content.extend(bytes(max(0, offset + len(data) - len(content))))
            content[offset : offset + len(data)] = data
        case Truncate(path, size):
            content = files.setdefault(path, bytearray())
            del content[size:]
            content.extend(bytes(size - len(content)))
        case Delete(path):
            files.pop(path, None)
        case Sync() | Told():
            pass
