"""Grades one question after the other until they decide between two stacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from core.analysis.deciding import Apart, Standing
from core.golden.book import Item
from core.golden.pool import Pool
from core.work.golden.job import GoldenJob
from core.work.golden.stages import ACTS, judgements


@dataclass(frozen=True, slots=True, eq=False)
class Deciding:
    """What the grades of a build decide so far between the two stacks of its contest."""

    job: GoldenJob
    pool: Pool
    apart: Apart

    def enough(self, acts: Sequence[Mapping[str, Any]]) -> bool:
        """Return whether no further question is needed; `acts` are whole questions as drawn."""
        graded = pl.DataFrame(list(acts), schema=ACTS, orient="row")
        return self.standing(graded, ahead=False).answer is not None

    def standing(self, acts: pl.DataFrame, *, ahead: bool = True) -> Standing:
        """Return the state of the contest; a passage that got no grade in a judged question is not useful."""
        graded = judgements(self.job, self.pool, acts).select("query_id", "passage_id", "grade")
        drawn = self.apart.drawn
        asked = drawn.join(graded, on=("query_id", "passage_id"), how="left", maintain_order="left")
        empty = {*drawn["query_id"]} - {
            *self.pool.rows["query_id"]
        }  # an asker may see none of these passages
        tried = {*acts["query_id"], *empty}
        items = [
            Item(
                place, query, passage, grade=grade,
                at=None if grade is None and query not in tried else "",
            )
            for place, (query, passage, grade) in enumerate(asked.iter_rows())
        ]  # fmt: skip
        return self.apart.standing(items, ahead=ahead)
