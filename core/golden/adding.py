"""Merge grades by hand with existing ones: one golden set of both, which names its parents.

If both grade the same place, the grade by hand counts. Nothing is lost: the parents stay unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from core.errors import InputError
from core.golden.book import PAIR
from core.importers.runs import slug
from core.pipeline.anchors import COVERAGE
from core.records import GoldenSet

MADE_BY = "adding"
"""How such a golden set was made, for its manifest."""
_PLACE = ("query_id", "source", "start_char", "end_char")
_OF_DOCUMENT = ("query_id", "source")


@dataclass(frozen=True, eq=False)
class AddedGrades:
    """The contents of a golden set."""

    golden: GoldenSet
    judgements: pl.DataFrame  # grades of whole passages: frame of `TABLES["judgements"]`
    spans: pl.DataFrame  # grades of places in documents: frame of `TABLES["spans"]`


@dataclass(frozen=True, slots=True)
class AddedCounts:
    """The overlap of two golden sets."""

    both: int = 0  # known places that are also graded by hand
    differ: int = 0  # those with a different grade

    def __str__(self) -> str:
        if not self.both:
            return "No known place is graded by hand too."
        places = "1 known place" if self.both == 1 else f"{self.both:,} known places"
        ends = f"{self.differ:,} differ: the grade by hand counts" if self.differ else "none differs"
        return f"Of {places} graded by hand too, {ends}."

    def __add__(self, other: AddedCounts) -> AddedCounts:
        return AddedCounts(self.both + other.both, self.differ + other.differ)


def ancestry(sets: pl.DataFrame, golden_set_id: str) -> tuple[str, ...]:
    """Return the golden sets that a golden set was merged from: the known one, then the added grades.

    Args:
        sets: Columns golden_set_id, parents and manifest of the store's golden sets.

    Returns:
        The golden set alone if nothing was added to it.
    """
    made = pl.col("manifest").str.json_path_match("$.made_by")
    rows = sets.filter(made == MADE_BY, golden_set_id=golden_set_id)
    return tuple(rows["parents"][0]) if rows.height else (golden_set_id,)


def name_for(sets: pl.DataFrame, to: str, own: str, judge: str) -> tuple[str, tuple[str, ...]]:
    """Return the id of the golden set that merges a person's grades with others, and its parents.

    Args:
        own: The golden set with the grades of that person.

    Returns:
        Its id, and ids: the known golden set, then the grades in the order in which they were added, this
        person's last. If theirs are among them already, it is a later version of the same golden set.
    """
    known, *added = ancestry(sets, to)
    name = to if own in added else slug(f"{to}-and-{judge or own}")
    return name, (known, *(one for one in added if one != own), own)


def refuse_other(sets: pl.DataFrame, name: str, parents: Sequence[str]) -> None:
    """Refuse the name of an existing golden set that was merged from other parents.

    Raises:
        InputError: If the name is taken by such a set.
    """
    if name in sets["golden_set_id"] and set(ancestry(sets, name)) != set(parents):
        raise InputError(
            f"The golden set {name!r} is there already, and is another one.",
            do="Delete it, or add to another.",
        )


def over(known: AddedGrades, hand: AddedGrades) -> tuple[pl.DataFrame, pl.DataFrame, AddedCounts]:
    """Lay grades by hand over existing ones.

    Returns:
        Judgements and spans of both, and their overlap.
    """
    pairs = known.judgements.join(hand.judgements.select(*PAIR, hand="grade"), on=PAIR)
    met = _met(known.spans, hand.spans)
    shared = pl.min_horizontal("end_char", "hand_end") - pl.max_horizontal("start_char", "hand_start")
    lengths = pl.min_horizontal(
        pl.col("end_char") - pl.col("start_char"), pl.col("hand_end") - pl.col("hand_start")
    )
    covered = met.filter(shared >= COVERAGE * lengths).group_by("at")
    same = covered.agg(differs=(pl.col("grade") != pl.col("hand")).any())
    counts = AddedCounts(
        pairs.height + same.height,
        pairs.filter(pl.col("grade") != pl.col("hand")).height + same.filter("differs").height,
    )
    judgements = pl.concat([known.judgements.join(hand.judgements, on=PAIR, how="anti"), hand.judgements])
    left = _left(known.spans, met.filter(pl.col("grade") != pl.col("hand")))
    spans = pl.concat([left.join(hand.spans, on=_PLACE, how="anti"), hand.spans])
    return judgements, spans, counts


def _met(known: pl.DataFrame, hand: pl.DataFrame) -> pl.DataFrame:
    """Return every pair of a known span (with its row, at) and a hand-graded span that shares characters."""
    theirs = hand.select(*_OF_DOCUMENT, hand_start="start_char", hand_end="end_char", hand="grade")
    met = known.with_row_index("at").join(theirs, on=_OF_DOCUMENT)
    return met.filter(pl.col("start_char") < pl.col("hand_end"), pl.col("hand_start") < pl.col("end_char"))


def _left(known: pl.DataFrame, differing: pl.DataFrame) -> pl.DataFrame:
    """Return the known spans without the characters that have another grade by hand.

    A remaining piece no longer counts below half the length of the span, or of the shorter cut that left it.
    """
    untouched = known.with_row_index("at").join(differing, on="at", how="anti").drop("at")
    pieces = [
        {**row, "start_char": start, "end_char": end}
        for rows in differing.partition_by("at", maintain_order=True)
        for row in rows.select(known.columns).head(1).iter_rows(named=True)
        for start, end in _pieces(
            (row["start_char"], row["end_char"]), rows.select("hand_start", "hand_end").iter_rows()
        )
    ]
    left = pl.concat([untouched, pl.DataFrame(pieces, schema=known.schema)])
    return left.sort("grade", maintain_order=True).unique(_PLACE, keep="last", maintain_order=True)


def _pieces(span: tuple[int, int], cuts: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the pieces of a span between cuts that are long enough."""
    start, end = span
    ordered = sorted(cuts)
    least = COVERAGE * min(end - start, *(cut_end - cut_start for cut_start, cut_end in ordered))
    reached = [start]
    for _, cut_end in ordered:
        reached.append(max(reached[-1], min(cut_end, end)))
    begins = [*(max(start, cut_start) for cut_start, _ in ordered), end]
    for left, right in zip(reached, begins, strict=True):
        if right - left >= max(least, 1):
            yield left, right


def described(
    name: str, parents: Sequence[AddedGrades], counts: AddedCounts, collection_id: str, sizes: Sequence[int]
) -> GoldenSet:
    """Describe the golden set that merges known and added grades.

    Args:
        parents: The known golden set, then each of the others.
        sizes: How many grades each of the parents has.
    """
    judges = [one.golden.judge or one.golden.golden_set_id for one in parents]
    said = (f"{n:,} by {judge}" for n, judge in zip(sizes[1:], judges[1:], strict=True))
    known = parents[0].golden
    return GoldenSet(
        golden_set_id=name,
        collection_id=collection_id,
        name=name,
        mapping="1-5" if known.mapping == "1-5" else f"{known.mapping}; by hand 1-5",
        judge=", ".join(filter(None, (one.golden.judge for one in parents))),
        notes=f"{sizes[0]:,} known grades of {known.golden_set_id}, and {', '.join(said)}. {counts}",
        parents=tuple(one.golden.golden_set_id for one in parents),
        manifest={"made_by": MADE_BY, "both": counts.both, "differ": counts.differ},
    )
