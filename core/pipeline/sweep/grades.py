"""Grades for every chunking of a sweep, from one golden set; refused where that cannot be fair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from core.pipeline.anchors import Derived, anchor, judged, require_comparable
from core.pipeline.chunk import Chunked
from core.pipeline.sweep.problems import Problem, Severity
from core.records import Batch, GoldenSet, part_id, short_hash

_LISTED = 5


@dataclass(frozen=True, slots=True)
class Graded:
    """The golden set of a sweep."""

    batch: Batch  # the golden set and its parts, with judgements, and spans where it has them
    problems: tuple[Problem, ...] = ()  # what its owner should know


def of_asked(golden: Batch, queries: pl.DataFrame) -> Batch:
    """The part of a golden set that judges the questions that are asked; itself if it judges no others.

    A judged question that a run does not answer counts as 0, so that questions which nobody asked would pull
    every mean down.
    """
    rows = {name: _rows(golden, name) for name in ("judgements", "spans")}
    frames = {name: each for name, each in rows.items() if each is not None}
    asked = queries.select("query_id")
    if not any(each.join(asked, on="query_id", how="anti").height for each in frames.values()):
        return golden
    (record,) = golden.golden_sets
    kept = {name: each.join(asked, on="query_id", how="semi") for name, each in frames.items()}
    ids = sorted({query for each in kept.values() for query in each["query_id"]})
    if not ids:
        return Batch()
    part = replace(
        record,
        golden_set_id=f"{record.golden_set_id}-{len(ids)}q-{short_hash(*ids)[:4]}",
        name=f"{record.name}, {len(ids)} questions",
        notes=f"{record.notes} Only the grades of the questions that are asked.".strip(),
    )
    own = pl.lit(part.golden_set_id).alias("golden_set_id")
    return Batch(golden_sets=(part,), frames={name: each.with_columns(own) for name, each in kept.items()})


def graded(
    golden: Batch, cut: Sequence[Chunked], whole: Chunked | None, *, coverage: float, uncut: bool
) -> Graded:
    """Work out what a golden set says about each chunking.

    Grades anchored to spans hold for any chunker; those of whole documents are spans, too. Grades of chunks
    judge the chunker that made them, and no other.
    """
    if not golden.golden_sets:
        return Graded(golden)
    record = golden.golden_sets[0]
    spans, judgements = _rows(golden, "spans"), _rows(golden, "judgements")
    if spans is not None:
        chunkings = [*cut, *([whole] if whole is not None and judgements is None else [])]
        return _derived(golden, [judged(record, spans, each, coverage) for each in chunkings])
    if judgements is None or not cut:
        return Graded(golden)
    if whole is not None:
        anchored = anchor(judgements, whole.chunks)
        if anchored.spans.height and not anchored.unplaced.height:
            parts = [judged(record, anchored.spans, each, coverage) for each in cut]
            return _derived(golden, parts, told=False)
    searched = [*(each.name for each in cut), *([None] if uncut else [])]
    require_comparable(searched, record.name, anchored=False)
    return Graded(_tied(golden, record, judgements, cut[0]))


def _derived(golden: Batch, parts: Sequence[Derived], *, told: bool = True) -> Graded:
    own = {each.golden_set.golden_set_id: each.golden_set for each in parts}
    known = {each.golden_set_id: each for each in golden.golden_sets}
    judgements = [each.judgements for each in parts]
    if "judgements" in golden.frames:
        judgements.insert(0, golden.frames["judgements"].lazy().collect())
    frames = {**golden.frames, "judgements": pl.concat(judgements)} if judgements else dict(golden.frames)
    batch = Batch(golden_sets=tuple({**known, **own}.values()), frames=frames)
    return Graded(batch, tuple(filter(None, map(_losses, parts))) if told else ())


def _losses(part: Derived) -> Problem | None:
    """Evidence that a chunker tears apart; without a word it would look better than it is."""
    if not part.lost.height:
        return None
    found = f"{part.lost.height} spans lie in no chunk that covers enough of them."
    if part.unasked:
        shown = ", ".join(part.unasked[:_LISTED])
        found += f" {len(part.unasked)} questions lose all of theirs and drop out ({shown})."
    do = "Lower golden_set.coverage, or use larger chunks."
    return Problem(f"golden set {part.golden_set.golden_set_id}", found, do, Severity.WARNING)


def _tied(golden: Batch, record: GoldenSet, judgements: pl.DataFrame, chunked: Chunked) -> Batch:
    """Grades of chunks, as those of the one chunking that is searched."""
    own = part_id(record.golden_set_id, chunked.name or "")
    part = replace(
        record,
        golden_set_id=own,
        collection_id=chunked.collection.collection_id,
        name=f"{record.name}, {chunked.name}",
        part_of=record.golden_set_id,
    )
    rows = judgements.with_columns(golden_set_id=pl.lit(own))
    return Batch(golden_sets=(*golden.golden_sets, part), frames={**golden.frames, "judgements": rows})


def _rows(golden: Batch, name: str) -> pl.DataFrame | None:
    if name not in golden.frames:
        return None
    rows = golden.frames[name].lazy().collect()
    return rows if rows.height else None
