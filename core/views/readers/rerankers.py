"""Effects of rerankers on answers: precision against similarity, and speed against both (REBEL, Figure 1).

Quality = similarity of the answer (judge, 0 to 5) × precision of the passages sent (binary judge); speed =
characters of the answer per second of retrieving, reranking and generating.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.analysis.workspace.clusters import groups
from core.analysis.workspace.scope import Scope
from core.analysis.workspace.stacks import runs_in
from core.answers import TOP_K
from core.readers.curves import by_query, points
from core.stats.intervals import Alike
from core.stats.latency import totals
from core.store import Snapshot
from core.views import text, theme

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


def answer(rows: pl.DataFrame) -> tuple[str, str]:
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
