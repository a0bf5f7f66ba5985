"""Dollars per correct answer by passages sent: retrieval quality, answer quality, and the cost of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.analysis.workspace.answers import means, shares
from core.analysis.workspace.clusters import groups
from core.analysis.workspace.figures.costs import costs
from core.analysis.workspace.query_sets import among
from core.analysis.workspace.scope import Quality, Scope
from core.analysis.workspace.scores import evidence, mean
from core.analysis.workspace.stacks import runs_in
from core.number_format import PER_1K, CostUnit
from core.prices import PriceBook
from core.readers.curves import per_correct
from core.store import Snapshot
from core.views import text, theme
from core.views.legend import labels_of
from core.views.readers.charts import by_passages

_ONE = ("run_id", "k")
_BARS = {"correct": ("correct_low", "correct_high"), "usd_per_1k_correct": ("usd_low", "usd_high")}


def joint_table(snapshot: Snapshot, scope: Scope, quality: Quality, book: PriceBook) -> pl.DataFrame:
    """Compute the cost of a correct answer on every stack, by the number of passages sent.

    Args:
        scope: The workspace; its answering says whose answers count, and which score makes one correct.
        quality: The measure of retrieval, taken at every k.

    Returns:
        run_id, name, reader, scorer, k, retrieval, score (both 0..1), correct (share) with correct_low and
        correct_high, n, usd_per_1k (queries with their answers), missing (the unknown parts), and
        usd_per_1k_correct with its ends from the interval of the share; sorted by name and k.
    """
    runs = runs_in(snapshot, scope)
    ids, only = runs["run_id"].to_list(), among(snapshot, scope)
    alike = groups(snapshot, scope).labels
    right = shares(snapshot, ids, scope.answering, only, alike)
    ks = right["k"].unique().sort().to_list()
    asked = replace(scope, answering=replace(scope.answering, per="answered query"))
    billed = [
        costs(snapshot, runs, book, (asked, k)).select(
            "run_id", pl.lit(k, pl.Int32).alias("k"), pl.col("cost") / 1000, missing="cost_missing"
        )
        for k in ks
    ]
    spent = pl.concat(billed) if billed else pl.DataFrame(schema={"run_id": pl.String, "k": pl.Int32})
    if spent.is_empty():
        return pl.DataFrame()
    scored = means(snapshot, ids, scope.answering.measure(), only).select(*_ONE, score="value")
    return (
        per_correct(right, spent.select(*_ONE, usd="cost"))
        .join(spent.select(*_ONE, "missing"), on=_ONE, how="left")
        .join(scored, on=_ONE, how="left")
        .join(_retrieval(snapshot, scope, quality, ks), on=_ONE, how="left")
        .join(runs.select("run_id", "name"), on="run_id")
        .select(
            "run_id", "name", "reader", "scorer", "k", "retrieval", "score", pl.col("value").alias("correct"),
            pl.col("low").alias("correct_low"), pl.col("high").alias("correct_high"), n="queries",
            usd_per_1k=1000 * pl.col("usd"), missing="missing",
            usd_per_1k_correct=1000 * pl.col("usd_per_correct"),
            usd_low=1000 * pl.col("usd_low"), usd_high=1000 * pl.col("usd_high"),
        )
        .sort("name", "k")
    )  # fmt: skip


def retrieval_of(quality: Quality) -> Quality:
    """Return the measure of retrieval: the limits' measure, unless it measures answers."""
    measure = quality.measure
    answers = measure is not None and "answers" in measure.info.needs
    return Quality("RA-nWG", quality.k) if answers else quality


def _retrieval(snapshot: Snapshot, scope: Scope, quality: Quality, ks: list[int]) -> pl.DataFrame:
    """Return the mean of a retrieval measure at every k: run_id, k, retrieval; empty without rankings."""
    ranked = runs_in(snapshot, scope).filter("has_rankings")["run_id"].to_list()
    measure, golden = retrieval_of(quality).measure, scope.golden_set_id
    nothing = pl.DataFrame(schema={"run_id": pl.String, "k": pl.Int32, "retrieval": pl.Float64})
    if measure is None or golden is None or not ranked or not ks:
        return nothing
    graded = evidence(snapshot, ranked, golden, [measure], only=among(snapshot, scope))
    values = graded.score([measure], depth=max(ks))[measure]
    parts = [
        pl.DataFrame({"run_id": graded.run_ids, "retrieval": mean(values[..., k - 1])[0]}).with_columns(
            pl.lit(k, pl.Int32).alias("k"), pl.col("retrieval").fill_nan(None)
        )
        for k in ks
    ]
    return pl.concat(parts).select(nothing.columns)


def best_rows(table: pl.DataFrame, target: float | None = None) -> pl.DataFrame:
    """Return the k at which a correct answer costs least, a row per stack, the cheapest first.

    Args:
        table: From `joint_table`.
        target: The share of correct answers, or the score, that k_target must reach; None = none.

    Returns:
        The row of that k (of the largest share if no cost is known), with k_target: the smallest k whose
        score reaches the target.
    """
    if table.is_empty():
        return table
    share = pl.when(pl.col("usd_per_1k_correct").is_null()).then(-pl.col("correct"))
    best = table.sort("usd_per_1k_correct", share, "k", nulls_last=True).unique("run_id", maintain_order=True)
    reached = table.filter(pl.col("score") >= (np.inf if target is None else target - 1e-9))
    met = reached.group_by("run_id").agg(k_target=pl.min("k"))
    return best.join(met, on="run_id", how="left").sort(
        "usd_per_1k_correct", "correct", "name", descending=[False, True, False], nulls_last=True
    )


def answer(rows: pl.DataFrame, said: CostUnit = PER_1K) -> tuple[str, str]:
    """Say how many passages to send, then to which reader; takes `best_rows`, and the page's cost unit."""
    best = rows.row(0, named=True)
    who = best["reader"] or "a reader unnamed"
    if best["usd_per_1k_correct"] is None:
        why = best["missing"] or "no answer is correct"
        right = text.percent(best["correct"])
        return (
            f"{who} is right most often at k = {best['k']} on {best['name']}: {right}.",
            f"What a correct answer costs is unknown: {why}.",
        )
    return (
        f"Send {text.count(best['k'], 'passage')}: {_counted(said)} correct answers cost least, "
        f"{said.bare(best['usd_per_1k_correct'])}.",
        f"By {who} on {best['name']}.",
    )


def _counted(said: CostUnit) -> str:
    return "a million" if said.million else said.many


def cards(
    best: Mapping[str, Any], target: float, said: CostUnit = PER_1K
) -> tuple[tuple[str, str, str], ...]:
    """Return the numbers of the cheapest stack at its k; `said`: the page's cost unit."""
    low, high = (text.percent(best[f"correct_{end}"]) for end in ("low", "high"))
    share = "" if best["correct_low"] is None else f"{low} to {high} · "
    costs = said.apart(*(best[name] for name in ("usd_low", "usd_per_1k_correct", "usd_high", "usd_per_1k")))
    least, correct, most, answered = costs
    known = best["usd_low"] is not None and best["usd_high"] is not None
    ends = f"{least} to {most}, from the share's interval" if known else ""
    met = "–" if best["k_target"] is None else f"k = {best['k_target']}"
    return (
        (f"$ per {said.many} correct", correct, ends),
        ("Correct", text.percent(best["correct"]), f"{share}{text.sample(best['n'])}"),
        (f"$ per {said.many} answered", answered, best["missing"] or "retrieval and reader"),
        (
            f"For a score of {target:g}",
            met,
            "none reaches it" if met == "–" else "the smallest that reaches it",
        ),
    )


def joint_chart(
    table: pl.DataFrame, colours: Mapping[str, str], quality: Quality, said: CostUnit = PER_1K
) -> go.Figure:
    """Draw the retrieval score, the share correct and the cost of a correct answer, by passages sent.

    Args:
        said: The page's cost unit.
    """
    dollars = ("usd_per_1k_correct", "usd_low", "usd_high")
    table = table.with_columns(pl.col(name) * said.factor for name in dollars)
    fields = {
        "retrieval": f"{retrieval_of(quality).bare} at k",
        "correct": "correct answers",
        "usd_per_1k_correct": f"$ per {said.many} correct",
    }
    there = {name: title for name, title in fields.items() if table[name].count()}
    panels, labels = theme.Panels(list(there.values()), x="passages sent, k", height=300), labels_of(colours)
    for place, field in enumerate(there):
        for name, colour in colours.items():
            rows = table.filter((pl.col("name") == name) & pl.col(field).is_not_null())
            if rows.height:
                panels.add(place, _line(rows, field, labels[name], colour), text.escape(name))
    return by_passages(panels.figure, table["k"]).update_yaxes(exponentformat="none")


def _line(rows: pl.DataFrame, field: str, said: str, colour: str) -> theme.Spec:
    written = text.usd if field.startswith("usd") else text.score
    hover = [f"{said}<br>k = {k}: {written(value)}" for k, value in rows.select("k", field).iter_rows()]
    cheapest = rows["usd_per_1k_correct"].arg_min()
    line = theme.scatter(
        said, rows["k"].to_list(), rows[field].to_list(), hover=hover, mode="lines+markers",
        line={"color": colour}, marker={"size": [11 if at == cheapest else 6 for at in range(rows.height)]},
    )  # fmt: skip
    if field in _BARS:
        low, high = (rows[end].to_numpy() for end in _BARS[field])
        line["error_y"] = theme.whiskers(
            low, rows[field].to_numpy(), high, thickness=1, width=3, color=colour
        )
    return line


def counted(rows: pl.DataFrame, least: float) -> str:
    """Say whose answers count and what correct means; takes `best_rows`."""
    readers = ", ".join(sorted({str(name or "unnamed") for name in rows["reader"]}))
    scorers = ", ".join(sorted(set(rows["scorer"])))
    return (
        f"Answers of {readers}, scored by {scorers}; correct from {least:g} of 1 on. Reader, score and "
        "threshold are chosen in Settings; the interval is that of the share, the cost being taken as known."
    )
