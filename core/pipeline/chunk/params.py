"""Parameters that chunkers share."""

from __future__ import annotations

from core.metrics.info import Param
from core.pipeline.chunk.gauge import TOKENIZERS
from core.pipeline.chunk.sentences import LANGUAGES

SMALLEST, LARGEST = 16, 32_768


def size(default: int) -> Param:
    """The most tokens of a passage."""
    text = "The most tokens of a passage, its metadata included"
    return Param(name="size", default=default, low=SMALLEST, high=LARGEST, text=text)


def overlap(default: int) -> Param:
    """How much a passage repeats of the one before it."""
    text = "The most tokens that a passage repeats of the one before it; less than half of the size"
    return Param(name="overlap", default=default, low=0, high=LARGEST // 2, text=text)


def metadata(default: str) -> Param:
    """What stands before the text of a passage."""
    return Param(
        name="metadata",
        default=default,
        choices=("none", "title", "breadcrumb"),
        text="What is put before a passage as its title: nothing, the document's title, or the path to it "
        "(document > section > subsection, page)",
    )


LANGUAGE = Param(
    name="language",
    default="english",
    choices=tuple(LANGUAGES),
    text="Whose abbreviations do not end a sentence",
)
TOKENIZER = Param(
    name="tokenizer",
    default="o200k_base",
    choices=TOKENIZERS,
    text="What counts tokens; estimate = a token per four bytes",
)
LATE = Param(
    name="late",
    default="no",
    choices=("no", "yes"),
    text="yes: the whole document is encoded at once and each chunk's vector is the mean of its tokens' "
    "(thesis §3.5); the encoder must give token vectors",
)
