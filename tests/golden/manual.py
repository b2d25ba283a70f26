"""`python tests/golden/manual.py --rewrite`: the examples of docs/sql.md, as the golden cases have them.

The manual's prose is written by hand; between a comment `<!-- golden FILE: CASE; CASE -->` and `<!-- end -->` stand the
statements of these cases, and for a refused one its message and hint. No example is written in the manual itself, so
none can differ from what the golden tests hold.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from golden_cases import Case, files

MANUAL = Path(__file__).parents[2] / "docs" / "sql.md"
PLACE = re.compile(r"(<!-- golden ([\w-]+): ([^>]*?) -->\n).*?(?=<!-- end -->)", re.DOTALL)
_REFUSED = re.compile(r"^```refused\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@cache
def _cases() -> dict[tuple[str, str], Case]:
    return {(case.file, case.title): case for file in files() for case in file.cases}


def filled(text: str) -> str:
    """The manual with its examples anew."""
    return PLACE.sub(lambda found: found[1] + _examples(found[2], found[3]), text)


def _examples(file: str, titles: str) -> str:
    shown = [_shown(_cases()[file, " ".join(title.split())]) for title in titles.split("; ")]
    return "```sql\n" + "\n\n".join(shown) + "\n```\n"


def _shown(case: Case) -> str:
    return "\n".join((f"{case.sql};", *(f"-- {line}" for line in _told(case))))


def _told(case: Case) -> Iterator[str]:
    """What the analyst is told where the case is refused."""
    refused = _REFUSED.search(case.text)
    for line in refused[1].splitlines() if refused else ():
        if line.startswith("hint: "):
            yield f"HINT: {line[6:]}"
        elif line.startswith("detail: "):
            yield f"DETAIL: {line[8:]}"
        elif line.startswith(("Also ", "And ")):
            yield line
        elif not line.startswith("at "):
            yield f"ERROR {line}"


if __name__ == "__main__":
    if sys.argv[1:] != ["--rewrite"]:
        sys.exit("usage: python tests/golden/manual.py --rewrite")
    MANUAL.write_text(filled(MANUAL.read_text(encoding="utf-8")), encoding="utf-8")
