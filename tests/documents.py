"""The documents as tests read them: their pages, blocks of code, commands and links."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from core.paths import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
"""Every page that people read; those of docs/reference are written from the code."""
GUIDE = [page for page in PAGES if page.parent.name != "reference"]
_BLOCK = re.compile(
    r"(?:<!-- (?P<note>[^\n]*) -->\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)
_INLINE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_CORE = ["python", "-m", "core"]


@dataclass(frozen=True)
class Block:
    """A block of code; the comment above it says what becomes of it (CONTRIBUTING.md lists the words)."""

    page: Path
    kind: str
    text: str
    note: str

    def noted(self, word: str) -> str:
        """What the comment says after a word and a colon; empty where it does not begin so."""
        return self.note.removeprefix(f"{word}:").strip() if self.note.startswith(f"{word}:") else ""

    @property
    def runs(self) -> bool:
        """Whether its commands run in a test as they stand."""
        return self.kind == "sh" and not self.noted("needs")


def name(page: Path) -> str:
    """A page as tests name it."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[Block]:
    """The blocks of a page in their order."""
    text = page.read_text(encoding="utf-8")
    return [Block(page, each["kind"], each["text"], each["note"] or "") for each in _BLOCK.finditer(text)]


def commands(block: Block) -> list[list[str]]:
    """The commands of a block, each as its words; without comments and line breaks behind a backslash."""
    lines = block.text.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def mentioned(page: Path) -> Iterator[list[str]]:
    """Commands of the product within sentences, as far as they are whole."""
    prose = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    for span in _INLINE.findall(prose):
        words = " ".join(span.split())
        if words.startswith("python -m core ") and not re.search(r"[\[\]…]", words):
            yield shlex.split(words)


def of_core(words: list[str]) -> list[str] | None:
    """What a command gives to the product; None for another program."""
    return words[3:] if words[:3] == _CORE else None


def links(page: Path) -> Iterator[tuple[str, str]]:
    """Yield file and anchor of every link that stays within the project, relative to the page."""
    prose = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if "://" not in target:
            file, _, anchor = target.partition("#")
            yield file, anchor


def anchors(page: Path) -> set[str]:
    """Headings as GitHub makes anchors of them, and named ones."""
    text = page.read_text(encoding="utf-8")
    heads = re.findall(r"^#+ (.+)$", _BLOCK.sub("", text), re.MULTILINE)
    named = re.findall(r'<a id="([^"]+)">', text)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads} | set(named)
