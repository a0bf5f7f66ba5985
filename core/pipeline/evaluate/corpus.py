"""What is searched: the passages of a collection, or the chunks that one chunker made of its documents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from core.errors import InputError
from core.records import short_hash


@dataclass(frozen=True, slots=True)
class Late:
    """What late chunking takes: vectors of chunks come from whole documents.

    Attributes:
        documents: source and text.
        chunks: Where each passage lies: columns of `TABLES["chunks"]`, row by row those of the corpus.
    """

    documents: pl.DataFrame
    chunks: pl.DataFrame


@dataclass(frozen=True, slots=True)
class Corpus:
    """Passages with text, in the order in which hits count them.

    Attributes:
        passage_ids: Their identifiers; hits refer to positions in it.
        texts: What is searched of each: its title and its text.
        without_text: How many passages were left out because they have neither.
        hash: Identifies the identifiers and texts.
        chunking: Name of the chunking; None = the collection's own passages.
        late: What late chunking takes; None = each passage is embedded by itself.
    """

    passage_ids: pl.Series
    texts: pl.Series
    without_text: int
    hash: str
    chunking: str | None = None
    late: Late | None = None

    def __len__(self) -> int:
        return len(self.passage_ids)

    def parts(self, size: int) -> Iterator[tuple[int, list[str]]]:
        """The texts in pieces: the position of the first, and at most `size` texts."""
        for start in range(0, len(self), size):
            yield start, self.texts.slice(start, size).to_list()


def corpus_of(passages: pl.DataFrame, chunking: str | None = None, *, late: Late | None = None) -> Corpus:
    """What is searched of passages.

    A passage is searched by its title and its text. Passages without either cannot be found by what they say;
    they are left out.

    Args:
        passages: Frame of `TABLES["passages"]`, one collection.
        chunking: Name of the chunking that made them.
        late: What late chunking takes, in any order of its chunks.

    Raises:
        InputError: If no passage has text.
    """
    title, text = (pl.col(name).fill_null("") for name in ("title", "text"))
    documents = passages.select(
        "passage_id", document=pl.concat_str(title, text, separator="\n").str.strip_chars()
    )
    searched = documents.filter(pl.col("document") != "")
    if searched.is_empty():
        raise InputError("No passage has text.", where="passages", do="Import passages with text.")
    ids, texts = searched["passage_id"], searched["document"]
    if late is not None:
        placed = ids.to_frame().join(late.chunks, on="passage_id", how="inner", maintain_order="left")
        late = Late(late.documents, placed)
    return Corpus(ids, texts, documents.height - searched.height, short_hash(*ids, *texts), chunking, late)
