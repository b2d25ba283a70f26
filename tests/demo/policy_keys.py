"""`python tests/demo/policy_keys.py --rewrite`: the tables of keys in docs/policy.md, from the policy's own schema.

Between `<!-- keys SECTION -->` and `<!-- end -->` stand that section's keys, each with its meaning and its default, as
dpsql/policy/document.py declares them.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from dpsql.policy import document

PAGE = Path(__file__).parents[2] / "docs" / "policy.md"
PLACE = re.compile(r"(<!-- keys (\w+) -->\n).*?(?=<!-- end -->)", re.DOTALL)


def filled(text: str) -> str:
    """The page with its tables anew."""
    return PLACE.sub(lambda found: found[1] + _table(found[2]), text)


def _table(section: str) -> str:
    model: type[BaseModel] = getattr(document, section)
    rows = [f"| `{name}` | {field.description} | {_default(field)} |" for name, field in model.model_fields.items()]
    return "\n".join(("| key | meaning | default |", "|---|---|---|", *rows, ""))


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    if field.default_factory is not None or field.default is None:
        return ""
    return str(field.default).lower() if isinstance(field.default, bool) else str(field.default)


if __name__ == "__main__":
    if sys.argv[1:] != ["--rewrite"]:
        sys.exit("usage: python tests/demo/policy_keys.py --rewrite")
    PAGE.write_text(filled(PAGE.read_text("utf-8")), "utf-8")
