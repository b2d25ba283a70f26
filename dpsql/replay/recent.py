"""The latest answers made of stored releases alone: a dashboard that refreshes asks for the same ones again.

An answer, and what is said of its releases beside it, is a function of the compiled statement, of the releases it reads
and of one setting, so it may be kept; not where it reads the clock. Who may see the releases has been decided before:
the ledger granted them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping

from dpsql.compiler import Compiled
from dpsql.compiler.public import reads_time
from dpsql.replay.recipe import Derived
from dpsql.types import Relation, Release, Reservation

Grant = Reservation | Release | Derived

SIZE = 256
MAX_ROWS = 1000

Key = tuple[int, tuple[Release, ...], bool]
Known = tuple[Relation, tuple[str, ...]]
"""An answer, and what its releases do not tell of themselves."""


class Recent:
    """Answers by statement and releases, the least recently kept leaving first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[Key, tuple[Compiled, Known]] = OrderedDict()

    def get(self, compiled: Compiled, granted: Mapping[str, Grant], nulls: bool) -> Known | None:
        """`nulls`: whether NULL stands for what is no more than noise."""
        key = self._key(compiled, granted, nulls)
        with self._lock:
            known = self._known.get(key) if key is not None else None
        return known[1] if known is not None else None

    def keep(self, compiled: Compiled, granted: Mapping[str, Grant], nulls: bool, answer: Known) -> None:
        key = self._key(compiled, granted, nulls)
        if key is None or len(answer[0].rows) > MAX_ROWS:
            return
        with self._lock:
            self._known[key] = (compiled, answer)
            self._known.move_to_end(key)
            if len(self._known) > SIZE:
                self._known.popitem(last=False)

    def _key(self, compiled: Compiled, granted: Mapping[str, Grant], nulls: bool) -> Key | None:
        """None where something is not a stored release. The entry keeps `compiled` alive, so its id stays its own."""
        stored = tuple(grant for grant in granted.values() if isinstance(grant, Release))
        volatile = any(map(reads_time, (compiled.remainder, *compiled.derived)))
        return None if volatile or len(stored) < len(granted) else (id(compiled), stored, nulls)
