"""Grades anchored to characters of documents, so that one golden set judges the chunks of any chunker.

A span says: for this query, these characters of this document are worth this grade. The grade of a chunk
follows from the spans that it overlaps. **The rule:** a chunk gets the highest grade among the spans

* at least `coverage` of whose characters it covers, or
* which cover at least `coverage` of the chunk's own characters;

a chunk that does neither is not judged. The first half serves spans shorter than a chunk (a sentence that
answers the question: the chunk with all or most of it is as good), the second serves longer spans (a graded
section: every chunk that lies mostly within it is as good). `coverage` is above 0 and at most 1, by default
0.5: with 0.5 or less no span is lost that falls on one or two chunks without blanks between them, and none
that covers whole chunks; the higher it is, the more a cut through the evidence costs. Spans that grade no
chunk are listed (`Derived.lost`), as a chunker that splits evidence would otherwise look better than it is:
their queries may have no judged passage left and drop out of its mean.

Judgements of whole documents, or of chunks whose places are known, become spans with `anchor`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from core.arrays import Ints
from core.errors import InputError, UnknownNameError
from core.importers import Options, ReadLimits
from core.importers.formats.spans.placing import ROLES, are_spans, placed, span_rows, span_set
from core.importers.naming import roles_by
from core.importers.read.source import opened
from core.importers.read.tabular import header, kind_of, read_table
from core.importers.read.text import shown
from core.pipeline.chunk import Chunked
from core.records import Batch, GoldenSet, part_id
from core.tables import TABLES, frame

COVERAGE = 0.5  # The usual coverage

_ROUNDING = 1e-9
_PLACE = ("query_id", "source", "start_char", "end_char")
_KEY = ("golden_set_id", "query_id", "passage_id")
_SPAN = ("golden_set_id", "query_id", "source", "start_char", "end_char")


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """The grades of one chunker's chunks."""

    # The record that the judgements belong to: the part "<whole>@<chunking>", or the golden set itself if
    # documents are passages
    golden_set: GoldenSet
    judgements: pl.DataFrame  # Frame of `TABLES["judgements"]`
    lost: pl.DataFrame  # The spans that grade no chunk, frame of `TABLES["spans"]`
    # Queries with spans and no judged chunk, sorted; they drop out of this chunking's means
    unasked: tuple[str, ...]


def judged(
    golden_set: GoldenSet, spans: pl.DataFrame, chunked: Chunked, coverage: float = COVERAGE
) -> Derived:
    """Return a golden set with spans as judgements of the passages that one chunker made.

    Returns:
        The part golden set to store beside the part collection, with its judgements.
    """
    name, whole = chunked.name, golden_set.golden_set_id
    own = part_id(whole, name)
    covered = _covered(spans, chunked.chunks, coverage)
    lost = spans.join(covered, on=_PLACE, how="anti", maintain_order="left")
    order = [False] * 3 + [True] + [False] * 2
    best = covered.sort(*_KEY, "grade", "start_char", "end_char", descending=order)
    best = best.unique(_KEY, keep="first", maintain_order=True).with_columns(golden_set_id=pl.lit(own))
    judgements = frame("judgements", best.select(list(TABLES["judgements"])).to_dict())
    part = replace(
        golden_set,
        golden_set_id=own,
        collection_id=chunked.collection.collection_id,
        name=f"{golden_set.name}, {name}",
        notes=f"Derived from spans, coverage {coverage:g}.",
        part_of=whole,
    )
    return Derived(
        golden_set=golden_set if name is None else part,
        judgements=judgements,
        lost=lost,
        unasked=tuple(sorted(set(spans["query_id"]) - set(judgements["query_id"]))),
    )


def _covered(spans: pl.DataFrame, chunks: pl.DataFrame, coverage: float) -> pl.DataFrame:
    """Return every span with every chunk that it grades: the columns of the spans, and passage_id."""
    if not 0 < coverage <= 1:
        raise InputError(f"coverage={coverage:g} is not allowed.", where="spans", do="Use above 0 to 1.")
    met = _met(spans, chunks)
    shared = pl.min_horizontal("end_char", "chunk_end") - pl.max_horizontal("start_char", "chunk_start")
    of_span, of_chunk = pl.col("end_char") - pl.col("start_char"), pl.col("chunk_end") - pl.col("chunk_start")
    least = pl.min_horizontal(of_span, of_chunk) * coverage - _ROUNDING
    return met.filter((shared > 0) & (shared >= least)).drop("chunk_start", "chunk_end")


def _met(spans: pl.DataFrame, chunks: pl.DataFrame) -> pl.DataFrame:
    """Return every span with every chunk of its document that it may overlap, and few others.

    Documents are laid end to end on one line. On it the chunks that a span can overlap are neighbours, in
    order of their starts: from the first that ends after the span's start to the last that starts before the
    span's end. Two binary searches find them for all spans at once.
    """
    codes = chunks.select(pl.col("source").unique(maintain_order=True)).with_row_index("code")
    spans = spans.join(codes, on="source", how="inner", maintain_order="left")
    chunks = chunks.join(codes, on="source", maintain_order="left").sort("code", "start_char", "end_char")
    longest = pl.concat([spans["end_char"], chunks["end_char"]]).max()
    width = int(longest or 0) + 1  # type: ignore[arg-type]

    def on_line(rows: pl.DataFrame, column: str) -> Ints:
        return (rows["code"].cast(pl.Int64) * width + rows[column]).to_numpy()

    begins, ends = on_line(chunks, "start_char"), on_line(chunks, "end_char")
    from_, to = on_line(spans, "start_char"), on_line(spans, "end_char")
    first = np.searchsorted(np.maximum.accumulate(ends), from_, side="right")
    last = np.searchsorted(begins, to, side="left")
    counts = np.maximum(last - first, 0)
    rows = np.repeat(np.arange(spans.height), counts)
    offsets = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    met = chunks[np.repeat(first, counts) + offsets]
    places = met.select("passage_id", chunk_start="start_char", chunk_end="end_char")
    return spans[rows].drop("code").with_columns(places)


def anchor(judgements: pl.DataFrame, chunks: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Anchor judgements of passages to the characters that the passages cover.

    Given the chunks of a chunker, this carries the grades of chunks over to other chunkers; given those of
    "none", it carries the grades of documents: every chunk then has the grade of its document.

    Returns:
        The spans (frame of `TABLES["spans"]`), and the judgements of passages whose place is not known.
    """
    places = chunks.select("passage_id", "source", "start_char", "end_char")
    placed = judgements.join(places, on="passage_id", how="inner", maintain_order="left")
    best = placed.sort("grade", descending=True, maintain_order=True).unique(_SPAN, keep="first").sort(_SPAN)
    spans = frame("spans", best.select(list(TABLES["spans"])).to_dict())
    return spans, judgements.join(places, on="passage_id", how="anti", maintain_order="left")


def holds_spans(path: Path) -> bool:
    """Return whether a file is, by its columns, a table of spans and not of judgements of passages."""
    try:
        with opened([path], ReadLimits()) as (archive,):
            member = archive.members[0]
            kind = kind_of(member)
            return kind is not None and are_spans(roles_by(header(member, kind), {}, ROLES, path.name))
    except (InputError, UnknownNameError):
        return False


def read_spans(path: Path, documents: pl.DataFrame, options: Options) -> Batch:
    """Read a golden set whose grades are anchored to documents."""
    with opened([path], options.limits) as (archive,):
        member = archive.members[0]
        kind = kind_of(member)
        if len(archive.members) > 1 or kind is None:
            raise InputError("This is not a table.", where=shown(path, 200), do="Offer one file.")
        placing = placed(span_rows(read_table(member, kind), options), documents, member.name)
    if placing.misplaced:
        raise placing.misplaced[0].first
    batch = span_set(placing.rows, member.name, member.stem, options)
    if len(batch.golden_sets) > 1:
        judges = ", ".join(shown(golden_set.judge) for golden_set in batch.golden_sets)
        raise InputError(
            f"Several judged the same characters: {judges}.",
            where=member.name,
            do="Import the file and name the golden set of one of them, or merge them (judges merge).",
        )
    return Batch(golden_sets=batch.golden_sets, frames={"spans": batch.frames["spans"]})
