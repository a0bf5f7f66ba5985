"""Documents are passages."""

from __future__ import annotations

from core.pipeline.chunk.base import Chunker, Span, Work
from core.pipeline.chunk.params import TOKENIZER


def _split(work: Work) -> list[Span]:
    return [(0, len(work.text))]


NONE = Chunker(
    method="none",
    text="Documents are passages, as they are.",
    split=_split,
    params=(TOKENIZER,),
)
