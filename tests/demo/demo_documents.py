"""The code blocks of the documents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *DOCS.glob("*.md")])
_FENCED = re.compile(r'^```(\w*)(?: title="([^"]*)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:^    .*\n|(?<=\n)\n(?=    ))+", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block; an indented one has no language."""

    document: Path
    language: str
    title: str
    text: str

    @property
    def place(self) -> str:
        """Where it stands, in words: the document, the language and the title."""
        return " ".join(filter(None, (self.document.name, self.language, self.title)))


def blocks(*documents: Path) -> Iterator[Block]:
    for document in documents or DOCUMENTS:
        text = document.read_text("utf-8")
        for language, title, block in _FENCED.findall(text):
            yield Block(document, language, title, block)
        for block in _INDENTED.findall(_FENCED.sub("", text)):
            yield Block(document, "", "", re.sub("^    ", "", block.strip("\n"), flags=re.MULTILINE) + "\n")


def fenced(language: str, *documents: Path) -> list[str]:
    """The texts of the blocks of a language without a title, in order."""
    return [block.text for block in blocks(*documents) if block.language == language and not block.title]


def titled(title: str, document: Path) -> str:
    (found,) = [block.text for block in blocks(document) if block.title == title]
    return found
