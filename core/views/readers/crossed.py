"""Companions of a difference of two stacks: gain per point of recall, and interaction with a prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from core.analysis import readers as data
from core.analysis.cache import cached
from core.analysis.workspace.scores import evidence
from core.analysis.workspace.view import View
from core.metrics import Measure
from core.readers.crossed import EFFECTS, crossed, per_recall
from core.views import columns as cols
from core.views import text
from core.views.blocks import Blocks, Table, Text
from core.views.readers.charts import points

RECALL = Measure("R")
HOW_RECALL = (
    "Both gains are means over the k that both stacks have, on the same questions; recall is of passages of "
    "grade 4 or 5 (RAGGED §7.1). The interval is Fieller's; none where recall does not surely differ."
)
HOW_CROSSED = (
    "Interaction: how much more the stack gains with the second prompt than with the first; below 0 the "
    "gains do not add up (RAGGED §6.3). Paired by question, 95 % intervals."
)
SHARE = cols.Rows(
    "per_recall",
    "label",
    cols.signed("reader_gain", help="Points of the score.", digits=1),
    cols.signed("recall_gain", help="Points of recall, in percent.", digits=1),
    cols.signed("per_recall", "reader gain ÷ recall gain", "Points of score a point of recall.", digits=2),
    "per_recall_low per_recall_high",
    cols.count("paired", "n", "Questions."),
    ends="95 % interval, Fieller's.",
)
_CELLS = dict(
    zip(
        EFFECTS,
        (
            "stack, first prompt",
            "stack, second prompt",
            "prompt, other stack",
            "prompt, this stack",
            "interaction",
        ),
        strict=True,
    )
)
CROSS = cols.Rows(
    "stack_and_prompt",
    "reader",
    cols.text("first", "first prompt"),
    cols.text("second", "second prompt"),
    *(cols.signed(name, words, "Points.", digits=1) for name, words in _CELLS.items()),
    "interaction_low interaction_high",
    cols.count("paired", "n", "Questions."),
    more=(
        "temperature",
        *(f"{name}_{end}" for name in _CELLS if name != "interaction" for end in cols.ENDS),
    ),
)


@cached("Scoring recall…", entries=8)
def recall_by_k(view: View, of: str, base: str, deepest: int) -> pl.DataFrame:
    """Return recall of two runs at every K: run_id, query_id, k, value; empty without judged rankings."""
    kinds = {"run_id": pl.String, "query_id": pl.String, "k": pl.Int32, "value": pl.Float64}
    ranked = view.snapshot.runs().filter("has_rankings")["run_id"]
    if view.scope.golden_set_id is None or not {of, base} <= set(ranked):
        return pl.DataFrame(schema=kinds)
    found = evidence(view.snapshot, [of, base], view.scope.golden_set_id, [RECALL])
    values = found.score([RECALL], depth=deepest)[RECALL]
    rows = [
        (run, query, k, float(value))
        for run, by_query in zip(found.run_ids, values, strict=True)
        for query, by_k in zip(found.query_ids, by_query, strict=True)
        for k, value in enumerate(by_k, 1)
    ]
    return pl.DataFrame(rows, schema=kinds, orient="row").drop_nans()


def beside(view: View, answered: data.Answered, scorer: str, of: str, base: str) -> Blocks:
    """Yield the reader's gain per point of recall, and how two stacks interact with two prompts, if known."""
    labels = data.label_of(answered.scores.filter(scorer=scorer))
    deepest = int(answered.scores["k"].max() or 1)  # type: ignore[arg-type]
    alike, recall = answered.groups.labels, recall_by_k(view, of, base, deepest)
    shares = per_recall(answered.scores, scorer, of, base, recall, alike=alike)
    if shares.height:
        rows = shares.with_columns(labels).sort("per_recall", descending=True, nulls_last=True)
        yield Text(of_recall(rows.row(0, named=True)), label="Beside recall:")
        yield Table(rows, SHARE)
        yield Text(HOW_RECALL, "caption")
    cells = crossed(answered.scores, scorer, of, base, alike)
    if cells.height:
        yield Text(" ".join(map(verdict, cells.head(3).iter_rows(named=True))), label="Stack × prompt:")
        yield Table(cells, CROSS)
        yield Text(HOW_CROSSED, "caption")


def of_recall(row: Mapping[str, Any]) -> str:
    """Say how much a reader gains from a stack's gain in recall."""
    gained = (
        f"{text.signed(row['reader_gain'], points)} points from {text.signed(row['recall_gain'], points)}"
    )
    said = f"{row['label']} gains {gained} of recall"
    if row["per_recall_low"] is None:
        return f"{said}; recall does not surely differ, or questions are few: no ratio."
    ends = f"[{row['per_recall_low']:.2f}, {row['per_recall_high']:.2f}]"
    return f"{said}: a ratio of {row['per_recall']:.2f} {ends}, {text.sample(row['paired'])}."


def verdict(row: Mapping[str, Any]) -> str:
    """Say whether the gains of a stack and of a prompt add up."""
    low, high = row["interaction_low"], row["interaction_high"]
    apart = low is not None and (low > 0 or high < 0)
    words = "more than their sum" if row["interaction"] > 0 else "less than their sum"
    who = f"{row['reader']}, {row['first']} and {row['second']}"
    ends = "" if low is None else points(low, high)
    said = f"stack and prompt together give {words}" if apart else "no significant interaction"
    number = f"{text.signed(row['interaction'], points)}{ends} points"
    return f"{who}: {said} ({number}, {text.sample(row['paired'])})."
