"""Prompts of readers, as text files; custom ones are allowed. Each has a second text without passages.

"short" and "short-relevance" are those of RAGGED (appendix B; ten new tokens, the first line is kept).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from core.errors import InputError, UnknownNameError
from core.providers.chat.ask import NOTICE, mark_for, marked
from core.records import short_hash

_HERE = Path(__file__).parent
_NONE = ".none.txt"
PROMPTS = tuple(sorted(path.stem for path in _HERE.glob("*.txt") if not path.name.endswith(_NONE)))
"""Names of the prompts that come with the product."""
_SHORT, _LONG = 10, 300  # tokens of an answer


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt for a reader."""

    name: str  # In records; for a custom file its name and a hash of its content
    context: str  # Instructions with passages
    none: str  # Instructions without passages
    max_tokens: int = _LONG  # For an answer
    first_line: bool = False  # Whether only the answer's first line is kept

    @property
    def hash(self) -> str:
        """Return the hash of both instructions, marks included."""
        return short_hash(self.context, self.none, NOTICE)

    def system(self, *, passages: bool) -> str:
        """Return the instructions, with the explanation of the marks."""
        return f"{self.context if passages else self.none}\n\n{NOTICE}"

    def kept(self, answer: str) -> str:
        """Return the part of an answer that counts."""
        text = answer.strip()
        return text.split("\n", 1)[0].strip() if self.first_line else text


def user(question: str, passages: Sequence[str]) -> str:
    """Return the message: the passages and the question between marks, then "Answer:"."""
    mark = mark_for(question, *passages)
    shown = [marked(f"passage {number}", text, mark) for number, text in enumerate(passages, 1)]
    context = ["Context:", *shown, ""] if shown else []
    return "\n".join([*context, "Question:", marked("question", question, mark), "", "Answer:"])


def prompt(name: str) -> Prompt:
    """Return the prompt with a name, or from the path of a text file."""
    if name in PROMPTS:
        short = name.startswith("short")
        texts = (_read(_HERE / f"{name}.txt"), _read(_HERE / f"{name}{_NONE}"))
        return Prompt(name, *texts, _SHORT if short else _LONG, short)
    path = Path(name)
    if not {"/", "\\", "."} & set(name):
        raise UnknownNameError("prompt", name, PROMPTS)
    context = _read(path)
    beside = path.with_name(path.stem + _NONE)
    none = _read(beside) if beside.exists() else context
    return Prompt(f"{path.stem}-{short_hash(context, none)[:6]}", context, none)


def _read(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The prompt cannot be read: {error}.", where=str(path)) from error
    if not text:
        raise InputError("The prompt is empty.", where=str(path), do="Write the reader's instructions there.")
    return text
