"""Readers side by side: generators, and the effects of rerankers on answers.

Generators are compared by criterion and judge: model, prompt and temperature (Palmieri, ch. 6 and 7).
Rerankers: precision against similarity, and speed against both (REBEL, Figure 1). Quality = similarity of the
answer (judge, 0 to 5) × precision of the passages sent (binary judge); speed = characters of the answer per
second of retrieving, reranking and generating.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.analysis.workspace.clusters import groups
from core.analysis.workspace.scope import Scope
from core.analysis.workspace.stacks import runs_in
from core.answers import BY_PEOPLE, CLOSED_BOOK, TOP_K, share
from core.readers.curves import POINT, by_query, points
from core.stats.intervals import Alike
from core.stats.latency import totals
from core.stats.means import mean_interval
from core.store import Snapshot
from core.tables import schema
from core.views import text, theme

BY_HAND = ", by people"  # Suffix of the criterion of people's grades if judges score by it too
COMPUTED = "computed"  # The judge of a computed score
_WHO = ("name", "reader", "prompt", "temperature", "k", "mode")
_ASIDE = pl.col("mode").fill_null(TOP_K) != TOP_K
"""Rows that no ranking sent: they have gold passages alone, or none, and compete with nothing."""
SIMILARITY, PRECISION = "similarity", "precision"
BEST = 5  # The highest similarity
METHODS = ("none", "relevance only", "HyDE", "multi-query", "one turn", "two turns")
RELEVANCE, CRITERIA = METHODS[:4], ("none", *METHODS[4:])
"""Methods that each line joins: those by relevance alone, and "none" with those by several criteria."""
_LINES = {"relevance alone": (RELEVANCE, theme.OKABE_ITO[0]), "several criteria": (CRITERIA, theme.ACCENT)}
_RERANKERS = {"rebel-one-turn": METHODS[4], "rebel-two-turn": METHODS[5]}
_REWRITES = {"hyde": METHODS[2], "multi-query": METHODS[3]}
_SAID = {"none": "No reranking", "relevance only": "Reranking by relevance alone"}
_KEY = ("run_id", "reader", "prompt", "temperature", "mode", "k")


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


def generators_answer(table: pl.DataFrame, chosen: Sequence[str], baseline: str) -> tuple[str, str]:
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


def method_of(spec: Mapping[str, Any]) -> str:
    """Name a stack's technique beyond retrieving, from its specification; a reranker precedes rewriting."""
    reranker, rewrite = (str(spec.get(name) or "none").partition(":")[0] for name in ("reranker", "rewrite"))
    if reranker != "none":
        return _RERANKERS.get(reranker, METHODS[1])
    return _REWRITES.get(rewrite, METHODS[0])


def rebel_table(snapshot: Snapshot, scope: Scope) -> pl.DataFrame:
    """Return every stack, reader and k whose similarity and precision are both judged.

    Returns:
        run_id, name, method, reader, prompt, temperature, k, similarity (0..5) and precision (0..1), each
        with low and high, quality (their product), passes (the quality of each), speed (characters a second,
        null if time or text is unknown) and queries; the best first.
    """
    runs = runs_in(snapshot, scope)
    ids = runs["run_id"].to_list()
    top = (pl.col("mode") == TOP_K) | pl.col("mode").is_null()
    scores = snapshot.answer_scores(ids).filter(top, pl.col("k") > 0)
    alike = groups(snapshot, scope).labels
    parts = [_judged(scores, scorer, most, alike) for scorer, most in ((SIMILARITY, BEST), (PRECISION, 1))]
    both = parts[0].join(parts[1].drop("queries"), on=_KEY, nulls_equal=True)
    specs = [method_of(json.loads(spec)) for spec in runs["spec"]]
    named = runs.select("run_id", "name", pl.Series("method", specs, dtype=pl.String))
    return (
        both.join(named, on="run_id")
        .join(_passes(scores), on=_KEY, how="left", nulls_equal=True)
        .join(_speeds(snapshot, ids), on=_KEY, how="left", nulls_equal=True)
        .with_columns((pl.col(SIMILARITY) * pl.col(PRECISION)).alias("quality"))
        .sort("quality", "name", "k", descending=[True, False, False])
    )


def _judged(scores: pl.DataFrame, scorer: str, most: int, alike: Alike) -> pl.DataFrame:
    ends = {scorer: "value", f"{scorer}_low": "low", f"{scorer}_high": "high"}
    scaled = {name: pl.col(end) * (most / 100) for name, end in ends.items()}
    return points(scores, scorer, alike=alike).select(*_KEY, "queries", **scaled)


def _passes(scores: pl.DataFrame) -> pl.DataFrame:
    """Return the quality of every pass, as a list."""
    rows = []
    for (turn,), part in scores.group_by("pass", maintain_order=True):
        means = [
            by_query(part, scorer).group_by(_KEY).agg((pl.col("value").mean() * (most / 100)).alias(scorer))
            for scorer, most in ((SIMILARITY, BEST), (PRECISION, 1))
        ]
        rows.append(means[0].join(means[1], on=_KEY, nulls_equal=True).with_columns(turn=pl.lit(turn)))
    schema: dict[str, Any] = {name: scores.schema[name] for name in _KEY}
    if not rows:
        return pl.DataFrame(schema=schema | {"passes": pl.List(pl.Float64)})
    quality = (pl.col(SIMILARITY) * pl.col(PRECISION)).sort_by("turn")
    return pl.concat(rows).group_by(_KEY).agg(quality.alias("passes"))


def _speeds(snapshot: Snapshot, ids: list[str]) -> pl.DataFrame:
    """Return characters of the answers per second of retrieving, reranking and generating them."""
    path = totals(snapshot.timings(ids))
    answers = snapshot.answers(ids).drop_nulls(("ms", "text")).with_columns(pl.col("mode").fill_null(TOP_K))
    both = answers.join(path.select("run_id", "query_id", path="ms"), on=("run_id", "query_id"))
    seconds = (pl.col("ms") + pl.col("path")).sum() / 1000
    speed = pl.when(seconds > 0).then(pl.col("text").str.len_chars().sum() / seconds)
    return both.group_by(_KEY).agg(speed.alias("speed"))


def fitted(rows: pl.DataFrame) -> dict[str, tuple[float, float]]:
    """Return slope and intercept of similarity over precision, by the name of the line.

    A line needs two methods.
    """
    lines = {}
    for name, (methods, _) in _LINES.items():
        part = rows.filter(pl.col("method").is_in(methods))
        if part["method"].n_unique() > 1 and part[PRECISION].n_unique() > 1:
            slope, base = np.polyfit(part[PRECISION].to_numpy(), part[SIMILARITY].to_numpy(), 1)
            lines[name] = (float(slope), float(base))
    return lines


def rerankers_answer(rows: pl.DataFrame) -> tuple[str, str]:
    """Say which method answers best, then which parts contribute."""
    best = rows.row(0, named=True)
    speed = "" if best["speed"] is None else f", at {best['speed']:.0f} characters a second"
    method = _SAID.get(best["method"], best["method"].capitalize())
    only = "" if rows["method"].n_unique() > 1 else ", the only one measured"
    return (
        f"{method} answers best{only}: quality {best['quality']:.2f} of {BEST} at k = {best['k']}.",
        f"{best['name']}: similarity {best[SIMILARITY]:.2f} × precision {best[PRECISION]:.3f}{speed}.",
    )


def rebel_chart(rows: pl.DataFrame) -> go.Figure:
    """Draw precision against similarity, and speed against their product, with boxes if there were passes."""
    fast = rows.filter(pl.col("speed").is_not_null())
    titles = ["similarity (0–5) by precision", *(["quality by characters per second"] if fast.height else [])]
    panels = theme.Panels(titles, across=2, height=340)
    colours = dict(zip(METHODS, theme.OKABE_ITO, strict=False))
    symbols = dict(zip(METHODS, theme.SYMBOLS, strict=True))
    speeds = fast["speed"].to_numpy()
    width = (0.05 * np.ptp(speeds) or 0.1 * speeds.max() or 1.0) if fast.height else 1.0
    for method in METHODS:
        look = {"color": colours[method], "symbol": symbols[method], "size": 11}
        own = rows.filter(pl.col("method") == method)
        if own.height:
            panels.add(0, _marks(own, PRECISION, SIMILARITY, method, look, bars=True))
        quick = fast.filter(pl.col("method") == method)
        if quick.height:
            panels.add(1, _marks(quick, "speed", "quality", method, look))
        for row in quick.filter(pl.col("passes").list.len() > 1).iter_rows(named=True):
            box = go.Box(
                x=[row["speed"]] * len(row["passes"]), y=row["passes"], name=method, boxpoints=False,
                marker_color=colours[method], width=width,
            )  # fmt: skip
            panels.add(1, box)
    ends = np.array([rows[PRECISION].min(), rows[PRECISION].max()], dtype=float)
    for name, (slope, base) in fitted(rows).items():
        line = {"color": _LINES[name][1], "dash": "dash"}
        panels.add(0, go.Scatter(x=ends, y=slope * ends + base, mode="lines", line=line, name=name))
    return panels.figure


def _marks(
    rows: pl.DataFrame, x: str, y: str, method: str, look: dict[str, Any], *, bars: bool = False
) -> theme.Spec:
    """Draw the stacks of one method; bars are 95 % intervals."""
    hover = [
        f"{text.escape(name)}, k = {k}<br>{across:.3g}, {up:.3g}"
        for name, k, across, up in rows.select("name", "k", x, y).iter_rows()
    ]
    marks = theme.scatter(method, rows[x].to_list(), rows[y].to_list(), hover=hover, marker=look)
    for axis, name in (("error_x", x), ("error_y", y)) if bars else ():
        low, high = (rows[f"{name}_{end}"].fill_null(rows[name]).to_numpy() for end in ("low", "high"))
        marks[axis] = theme.whiskers(low, rows[name].to_numpy(), high, thickness=1, color=look["color"])
    return marks
