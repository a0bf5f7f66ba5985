"""Number of passages to send to a reader, query by query: answers from each number, judged by their score."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from core.analysis.families import Family, Option, Sent
from core.analysis.readers import Answered, answered, label_of
from core.analysis.workspace.answers import TRIAL, as_name, as_word
from core.analysis.workspace.scope import Answering, Quality
from core.analysis.workspace.view import View
from core.answers import TOP_K
from core.decide.routing import Depths
from core.metrics.rates import ANY
from core.readers.curves import CURVE, POINT, by_query
from core.records import Basis
from core.views.what_if.routing import Routable

COSTLESS = "The signal is known before the reader is asked, so looking at it costs nothing."
MADE_UP = f"The answers are those of {TRIAL}, which makes them up: what a router gains here is no evidence."
OF_READER = "Cost is that of the reader alone, as retrieval is the same; its latency is not compared."


def families(view: View) -> list[Family]:
    """Return the readers of every stack that answered from two numbers of passages or more."""
    known = answered(view.snapshot, view.scope, view.book)
    scorer = _scorer(known, view.scope.answering)
    ranked = known.runs.filter("has_rankings")
    if scorer is None or ranked.is_empty():
        return []
    rows = _scores(known, scorer).join(ranked.select("run_id", "name"), on="run_id")
    points = rows.select(*POINT, "name").unique().sort("name", *CURVE, "k", nulls_last=True)
    labelled = points.with_columns(label_of(points))
    found = []
    for (stack, label, *curve), part in labelled.group_by("name", "label", *CURVE, maintain_order=True):
        run_id, reader, prompt, temperature = curve
        options = tuple(
            Option(f"k = {k}", str(run_id), None, sent=Sent(reader, prompt, temperature, scorer, k))
            for k in part["k"].to_list()
        )
        if len(options) > 1:
            found.append(Family(f"{stack} · {scorer} of {label}", None, options, answers=True))
    return found


def quality(option: Option, usual: Quality) -> Quality:
    """Return the measure that judges an option: the score of the answers, or the workspace's measure."""
    if option.sent is None:
        return usual
    reader, scorer = as_word(option.sent.reader or ANY), as_word(option.sent.scorer)
    return Quality(str(Answering(reader, scorer).measure()), option.sent.k)


def gather(view: View, options: Sequence[Option]) -> Routable | None:
    """Read scores and costs of the answers from every number of passages; None if no query has all."""
    known = answered(view.snapshot, view.scope, view.book)
    sent = [option.sent for option in options if option.sent is not None]
    rows = _scores(known, sent[0].scorer)
    parts = [
        _at(rows, option).select("query_id", pl.col("value").alias(str(place)))
        for place, option in enumerate(options)
    ]
    table = parts[0]
    for part in parts[1:]:
        table = table.join(part, on="query_id", how="inner")
    if table.is_empty():
        return None
    table = table.sort("query_id")
    every = pl.concat([part.select("query_id") for part in parts])["query_id"].n_unique()
    costs = [_cost(known, option) for option in options]
    depths = Depths.of(
        table.drop("query_id").to_numpy().T / 100, cost=np.array([[cost] for cost in costs]).astype(float)
    )
    notes = [COSTLESS, OF_READER, *([MADE_UP] if sent[0].reader == TRIAL else [])]
    basis = tuple(None if np.isnan(cost) else str(Basis.MEASURED) for cost in costs)
    unknown: tuple[str | None, ...] = (None,) * len(options)
    ids = tuple(table["query_id"])
    alike = known.groups.labels(ids)
    return Routable(tuple(options), ids, every - len(ids), depths, unknown, basis, tuple(notes), alike)


def _scorer(known: Answered, answering: Answering) -> str | None:
    """Return the scorer set in the workspace, or else its usual one."""
    wanted = as_name(answering.scorer)
    if answering.scorer not in (ANY, ""):
        return wanted if wanted in known.scorers else None
    return next(iter(known.scorers), None)


def _scores(known: Answered, scorer: str) -> pl.DataFrame:
    rows = by_query(known.scores, scorer)
    return rows.filter(pl.col("query_id").is_not_null(), pl.col("mode") == TOP_K, pl.col("k") >= 1)


def _at(rows: pl.DataFrame, option: Option) -> pl.DataFrame:
    """Return an option's rows of a table with the columns of a point."""
    sent = option.sent
    assert sent is not None  # noqa: S101 - options of one family are alike
    return rows.filter(
        pl.col("run_id") == option.run_id,
        pl.col("k") == sent.k,
        *(pl.col(name).eq_missing(pl.lit(value)) for name, value in sent._asdict().items() if name in CURVE),
    )


def _cost(known: Answered, option: Option) -> float:
    """Return $ per 1,000 answers of the reader, or NaN if unknown."""
    row = _at(known.spent.filter(pl.col("mode") == TOP_K), option)["usd_per_1k"]
    return np.nan if row.is_empty() or row[0] is None else float(row[0])
