"""Generators side by side: model, prompt and temperature by criterion and judge (Palmieri, ch. 6 and 7)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from core.analysis.workspace.clusters import groups
from core.analysis.workspace.scope import Scope
from core.analysis.workspace.stacks import runs_in
from core.answers import BY_PEOPLE, CLOSED_BOOK, TOP_K, share
from core.readers.curves import POINT, by_query, points
from core.stats.means import mean_interval
from core.store import Snapshot
from core.tables import schema
from core.views import text

BY_HAND = ", by people"  # Suffix of the criterion of people's grades if judges score by it too
COMPUTED = "computed"  # The judge of a computed score
_WHO = ("name", "reader", "prompt", "temperature", "k", "mode")
_ASIDE = pl.col("mode").fill_null(TOP_K) != TOP_K
"""Rows that no ranking sent: they have gold passages alone, or none, and compete with nothing."""


def criteria(snapshot: Snapshot, scope: Scope) -> dict[str, tuple[str, ...]]:
    """Return the criteria of a workspace's answers with the judges of each; judges' criteria come first."""
    judges = _scores(snapshot, scope).group_by("scorer").agg(pl.col("judge").unique().sort())
    by_scorer = {name: tuple(some) for name, some in judges.sort("scorer").iter_rows()}
    return dict(sorted(by_scorer.items(), key=lambda pair: (COMPUTED in pair[1], pair[0])))


def usual(known: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the criteria that judges scored, without people's duplicates; all if no judge scored."""
    judged = [name for name, judges in known.items() if COMPUTED not in judges]
    return [name for name in judged if not name.endswith(BY_HAND)] or list(known)


def _scores(snapshot: Snapshot, scope: Scope) -> pl.DataFrame:
    runs = runs_in(snapshot, scope)
    rows = snapshot.answer_scores(runs["run_id"].to_list())
    answered = pl.col("mode").is_null() | (pl.col("mode") != CLOSED_BOOK)
    rows = rows.filter(answered, share().is_not_null()).with_columns(pl.col("judge").fill_null(COMPUTED))
    by_people = pl.col("source").eq_missing(pl.lit(BY_PEOPLE))
    mixed = by_people & by_people.not_().any().over("scorer")  # a judge's scores aren't part of theirs
    apart = pl.when(mixed).then(pl.col("scorer") + BY_HAND).otherwise("scorer")
    return rows.with_columns(apart.alias("scorer"))


def cells(snapshot: Snapshot, scope: Scope, chosen: Sequence[str]) -> pl.DataFrame:
    """Score every generator by every criterion and judge.

    Returns:
        name (of the stack), reader, prompt, temperature, k, mode, label, criterion, judge, value, low, high
        (points 0..100) and queries; shared and shared_n are the value and the count of the questions that
        every judge of the criterion scored, null if there are none.
    """
    rows = _scores(snapshot, scope).filter(pl.col("scorer").is_in(list(chosen)))
    alike = groups(snapshot, scope).labels
    parts = [
        points(part, str(scorer), alike=alike).with_columns(criterion=pl.lit(scorer), judge=pl.lit(judge))
        for (scorer, judge), part in rows.group_by("scorer", "judge", maintain_order=True)
    ]
    if not parts:
        return pl.DataFrame()
    names = runs_in(snapshot, scope).select("run_id", "name")
    of = (*POINT, "criterion", "judge")
    shared = _by_question(rows).group_by(of).agg(shared=pl.col("value").mean(), shared_n=pl.len())
    scored = pl.concat(parts).join(names, on="run_id", how="left")
    scored = scored.join(shared, on=of, how="left", nulls_equal=True)
    return scored.with_columns(label(scored)).sort(_ASIDE, "label", "criterion", "judge")


def _by_question(scores: pl.DataFrame) -> pl.DataFrame:
    """Return the scores of the questions that every judge of a generator scored, its passes averaged."""
    mode = pl.col("mode").fill_null(TOP_K)
    single = scores.filter(pl.col("query_id").is_not_null()).with_columns(mode)
    one, judges = (*POINT, "scorer"), pl.col("judge").n_unique()
    whole = single.filter(judges.over(*one, "query_id") == judges.over(*one))
    parts = [
        by_query(whole.clear(), "").with_columns(pl.lit("").alias(name) for name in ("criterion", "judge"))
    ]
    parts += [
        by_query(part, str(scorer)).with_columns(criterion=pl.lit(scorer), judge=pl.lit(judge))
        for (scorer, judge), part in whole.group_by("scorer", "judge", maintain_order=True)
    ]
    return pl.concat(parts)


def label(rows: pl.DataFrame) -> pl.Expr:
    """Return labels of the generators: the reader, and everything else that differs among the rows."""
    shown = {
        "reader": pl.col("reader").fill_null("reader unknown"),
        "prompt": pl.col("prompt"),
        "temperature": pl.format("T = {}", pl.col("temperature").round(3)),
        "k": pl.format("k = {}", "k"),
        "mode": pl.col("mode").str.replace("_", " "),
        "name": pl.format("on {}", "name"),
    }
    differs = [
        part
        for name, part in shown.items()
        if name == "reader" or (name in rows and rows[name].n_unique() > 1)
    ]
    return pl.concat_str(differs, separator=" · ", ignore_nulls=True).alias("label")


def baselines(snapshot: Snapshot, scope: Scope, rows: pl.DataFrame) -> list[str]:
    """Return the generators by label, starting with the baseline named in the manifest of a run's source.

    Args:
        rows: From `cells`.
    """
    runs = runs_in(snapshot, scope).select("name", "manifest").iter_rows()
    named = [
        {"name": name} | (json.loads(text or "{}").get("baseline_generator") or {}) for name, text in runs
    ]
    of_source = [
        label
        for who in named
        if len(who) > 1
        for label in rows.filter(**who)["label"].unique(maintain_order=True)
    ]
    return list(dict.fromkeys([*of_source, *rows["label"].unique(maintain_order=True)]))


def mean_of(criterion: str) -> str:
    """Return the column of a criterion, which may have any name."""
    return f"{criterion} (mean)"


def generator_table(rows: pl.DataFrame, gaps: pl.DataFrame | None = None) -> pl.DataFrame:
    """Pivot the cells: a row per generator, generators with rankings first, then by the best total.

    Args:
        rows: From `cells`.
        gaps: From `differences`; None = no baseline.

    Returns:
        label, a column `mean_of` per criterion (the mean of its judges, over the questions that all of them
        scored), total (their sum, null if any is), difference with low, high and n, n (cases of the criterion
        with fewest), name, reader, prompt, temperature, k, mode, and a column ``criterion, judge``
        for each with its interval in words.
    """
    wanted = [mean_of(name) for name in rows["criterion"].unique().sort()]
    mean = rows.group_by("label", pl.col("criterion").map_elements(mean_of, pl.String)).agg(
        pl.coalesce("shared", "value").mean().alias("value")
    )
    wide = mean.pivot("criterion", index="label", values="value")
    spans = rows.select("value", "low", "high").iter_rows()
    said = [
        f"{value:.1f}" + ("" if low is None or high is None else f" [{low:.1f}, {high:.1f}]")
        for value, low, high in spans
    ]
    of = pl.concat_str("criterion", "judge", separator=", ")
    judged = rows.select("label", of=of, said=pl.Series(said)).pivot("of", index="label", values="said")
    who = rows.group_by("label").agg(
        pl.col(*_WHO).first(), pl.coalesce("shared_n", "queries").min().alias("n")
    )
    laid_out = wide.with_columns(
        pl.when(pl.all_horizontal(pl.col(wanted).is_not_null()))
        .then(pl.sum_horizontal(wanted))
        .alias("total")
    )
    for part in (gaps, who, judged):
        laid_out = laid_out if part is None else laid_out.join(part, on="label", how="left")
    return laid_out.sort(_ASIDE, "total", "label", descending=[False, True, False], nulls_last=True)


def differences(snapshot: Snapshot, scope: Scope, rows: pl.DataFrame, baseline: str) -> pl.DataFrame:
    """Subtract a baseline from every generator, paired by question if single answers are known.

    Args:
        rows: From `cells`.

    Returns:
        label, difference (points), difference_low and difference_high (95 %, over the questions that
        both answered and every judge scored; null if only means are known) and difference_n, their count.
    """
    chosen = rows["criterion"].unique().to_list()
    by_question = _by_question(_scores(snapshot, scope).filter(pl.col("scorer").is_in(chosen)))
    mean = by_question.group_by(*POINT, "query_id", "criterion").agg(pl.col("value").mean())
    named = mean.join(rows.select(*POINT, "label").unique(), on=POINT, nulls_equal=True)
    whole = named.filter(pl.len().over("label", "query_id") == len(chosen))  # scored by all criteria
    single = whole.group_by("label", "query_id").agg(total=pl.col("value").sum()).sort("query_id")
    own = single.filter(label=baseline).select("query_id", own="total")
    totals = generator_table(rows).select("label", "total")
    base = totals.filter(label=baseline)["total"].first()
    gaps, alike = [], groups(snapshot, scope).labels
    for label, total in totals.iter_rows():
        both = single.filter(label=label).join(own, on="query_id", maintain_order="left")
        paired = (both["total"] - both["own"]).to_numpy()
        low = high = None
        if len(paired) > 1 and label != baseline:
            labels = alike(both["query_id"].to_list())
            ends = (float(end[0]) for end in mean_interval(paired, "differences", clusters=labels))
            low, high = (None if np.isnan(end) else end for end in ends)
        gap = float(paired.mean()) if len(paired) else None if total is None or base is None else total - base
        gaps.append((label, gap, low, high, len(paired) or None))
    kinds = "label difference:float difference_low:float difference_high:float difference_n:int64"
    return pl.DataFrame(gaps, schema=schema(kinds), orient="row")


def answer(table: pl.DataFrame, chosen: Sequence[str], baseline: str) -> tuple[str, str]:
    """Say which generator is best, and by how much; takes `generator_table`."""
    best = table.row(0, named=True)
    if best["total"] is None:
        return "No generator here is scored by all of these criteria.", ""
    by = f"by {chosen[0]}" if len(chosen) == 1 else f"over {len(chosen)} criteria"
    gap = best.get("difference")
    low, high = best.get("difference_low"), best.get("difference_high")
    ends = "averages only, significance unknown"
    if low is not None and high is not None:
        real = "significant" if low > 0 or high < 0 else "no significant difference"
        ends = f"95 % CI {text.signed(low, '{:.1f}'.format)} to {text.signed(high, '{:.1f}'.format)}, {real}"
    beside = (
        ""
        if gap is None or best["label"] == baseline
        else f"{text.signed(gap, '{:.1f}'.format)} against {baseline} ({ends})."
    )
    counts = table.filter(((best["mode"] or TOP_K) != TOP_K) == _ASIDE, pl.col("total").is_not_null())[
        "n"
    ].sort()
    n = f"n differs, {counts[0]} to {counts[-1]}" if counts.n_unique() > 1 else text.sample(best["n"])
    return f"{best['label']} is best {by}: {best['total']:.1f} points ({n}).", beside
