"""The statements that Superset sent for its charts, kept so that the default suite covers them. Not a test itself.

`make superset-test` compares them with what it sees; with SUPERSET_REWRITE=1 it writes them down anew.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

FILE = Path(__file__).parent / "statements.sql"
REWRITE = os.environ.get("SUPERSET_REWRITE") == "1"
_NAMED = re.compile(r"^-- (.+)\n((?:(?!-- ).*\n)+)", re.MULTILINE)


def read() -> Mapping[str, str]:
    """The statements by the names of their charts."""
    return {name: text.strip() for name, text in _NAMED.findall(FILE.read_text(encoding="utf-8"))}


def tidied(text: str) -> str:
    """Without the blanks at the ends of lines, and without empty lines."""
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip())


def seen(name: str, text: str) -> None:
    """Fails if Superset writes a chart's statement in another way than when it was written down."""
    known = read() if FILE.exists() else {}
    if REWRITE:
        blocks = {**known, name: tidied(text)}
        FILE.write_text("\n".join(f"-- {each}\n{blocks[each]}\n" for each in blocks), encoding="utf-8")
    else:
        assert known[name] == tidied(text)
