"""Prompts of judge models, as text files in our own words; each is named by the hash of its text."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal, get_args

from core.providers.chat.ask import NOTICE
from core.records import short_hash

_Kind = Literal["grade", "order", "nuggets", "support"]
PromptLanguage = Literal["en", "fr"]
KINDS: tuple[_Kind, ...] = get_args(_Kind)
LANGUAGES: tuple[PromptLanguage, ...] = get_args(PromptLanguage)


@cache
def prompt(kind: _Kind, language: PromptLanguage) -> str:
    """Return the instructions of a judge.

    Args:
        kind: "grade" one passage, "order" several, list "nuggets", or name the supported ones.
        language: Language of the instructions; questions and passages may be in any.
    """
    text = (Path(__file__).parent / f"{kind}.{language}.txt").read_text(encoding="utf-8")
    return text.replace("$NOTICE", NOTICE).strip()


def prompt_hash(kind: _Kind, language: PromptLanguage) -> str:
    """Return the hash of the instructions, marks included."""
    return short_hash(prompt(kind, language))
