"""K curves: every measure against the cutoff, and quality, latency and cost against the candidate depth."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from core.metrics import REGISTRY, Measure, aggregate
from core.records import stack_label
from core.stats.intervals import bootstrap_curve
from core.store import Snapshot
from core.views import text, theme
from core.views.workspace.scope import Quality
from core.views.workspace.scores import Evidence, evidence

MAX_DEPTH = 200
X_AXES = {"k": "cutoff K", "tokens": "tokens sent", "usd_per_1k": "$ of generator input / 1k"}
"""What the curves can be drawn against, by column."""
BESIDE = ("RA-nWG", "N-Recall4+", "N-Recall5", "Precision4+", "Harm", "Hole", "Hit")
COLUMNS = {
    "name": pl.String(),
    "measure": pl.String(),
    "k": pl.Int32(),
    "value": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "n": pl.Int32(),
    "basis": pl.String(),
}


def curve_table(
    snapshot: Snapshot,
    runs: pl.DataFrame,
    golden_set_id: str | None,
    measure: Measure | None,
    only: Container[str] | None = None,
) -> pl.DataFrame:
    """A measure, its ceiling and the measures beside it at every cutoff, for some runs.

    Args:
        snapshot: Where to read.
        runs: run_id, name, has_rankings of the chosen stacks.
        golden_set_id: The judgements; None when there are aggregates only.
        measure: The measure, without cutoff, that carries bootstrap bands; None = none.
        only: The queries that count; None for every judged one.

    Returns:
        `COLUMNS`, one row per run, measure and K; low and high only for `measure` where per-query data exist.
    """
    ranked = runs.filter(pl.col("has_rankings"))
    parts = [pl.DataFrame(schema=COLUMNS)]
    if golden_set_id and not ranked.is_empty():
        wanted = _wanted(measure)
        found = evidence(snapshot, ranked["run_id"].to_list(), golden_set_id, wanted, only=only)
        parts.append(_computed(found, ranked, measure, wanted))
    rest = runs.filter(~pl.col("has_rankings"))
    if not rest.is_empty():
        parts.append(_reported(snapshot, rest))
    return pl.concat(parts).sort("measure", "name", "k")


def _wanted(measure: Measure | None) -> list[Measure]:
    """The measures beside it, the measure, and its ceiling."""
    wanted = [Measure(name) for name in BESIDE]
    if measure is not None:
        wanted += [measure] if measure not in wanted else []
        wanted += [replace(measure, name=f"PROC[{measure.name}]")] if measure.info.ceiling else []
    return wanted


def _computed(
    found: Evidence, runs: pl.DataFrame, measure: Measure | None, wanted: Sequence[Measure]
) -> pl.DataFrame:
    depth = min(MAX_DEPTH, found.depth)
    scored = found.score(wanted, depth)
    names = dict(runs.select("run_id", "name").iter_rows())
    own_depth = (found.grades >= 0).any(axis=1).sum(axis=1)
    parts = []
    for each, values in scored.items():
        means, n = aggregate(values)
        for row, run_id in enumerate(found.run_ids):
            ks = np.arange(1, min(depth, max(1, own_depth[row])) + 1)
            low, high = bootstrap_curve(values[row]) if each == measure else (None, None)
            parts.append(
                pl.DataFrame(
                    {
                        "name": names[run_id],
                        "measure": str(each),
                        "k": ks,
                        "value": means[row, : len(ks)],
                        "low": None if low is None else low[: len(ks)],
                        "high": None if high is None else high[: len(ks)],
                        "n": n[row, : len(ks)],
                        "basis": "measured",
                    },
                    schema_overrides=COLUMNS,
                )
            )
    return pl.concat(parts).with_columns(pl.col("value", "low", "high").fill_nan(None))


def _reported(snapshot: Snapshot, runs: pl.DataFrame) -> pl.DataFrame:
    named = runs.select("run_id", "name", pl.col("origin").replace("import", "imported").alias("basis"))
    return (
        snapshot.aggregates(runs["run_id"].to_list())
        .filter(pl.col("k").is_not_null())
        .join(named, on="run_id")
        .select([pl.col(column).cast(dtype) for column, dtype in COLUMNS.items()])
    )


@dataclass(frozen=True)
class CurvesView:
    """The page's content: the answer, the main curve, the small ones beside it."""

    answer: str
    main: go.Figure
    beside: go.Figure


def against(table: pl.DataFrame, sent: pl.DataFrame) -> pl.DataFrame:
    """Add what Top(K) weighs to every point of the curves, from `core.views.curves.sent.tokens_sent`."""
    return table.join(sent, on=["name", "k"], how="left", maintain_order="left")


def curves(table: pl.DataFrame, quality: Quality, colours: Mapping[str, str], x: str = "k") -> CurvesView:
    """Draw the curves.

    Args:
        table: The result of `curve_table`, or of `against`.
        quality: The measure of the main chart, with the cutoff to mark.
        colours: Colour by name of the stack.
        x: One of `X_AXES`; a stack of which it is not known is missing from the charts.

    Returns:
        The view; stacks that have no value for a measure are missing from its chart.
    """
    known = table.filter(pl.col(x).is_not_null()).with_columns(pl.col(x).alias("x"))
    main = known.filter(pl.col("measure") == quality.bare)
    best = quality.ceiling
    ceiling = known.filter(
        pl.col("measure") == (f"PROC[{quality.bare}]" if best is None else str(best.at(None)))
    )
    return CurvesView(
        answer=_answer(table.filter(pl.col("measure") == quality.bare), quality, list(colours)),
        main=_main(main, ceiling, quality, colours, x),
        beside=_beside(known, colours),
    )


def _answer(main: pl.DataFrame, quality: Quality, names: Sequence[str]) -> str:
    """Who leads at the cutoff; of equals the first of the names, where the chosen stack stands first."""
    at_k = main.filter((pl.col("k") == quality.k) & pl.col("value").is_not_null())
    if at_k.is_empty():
        return f"None of the chosen stacks has a value for {quality.name}."
    place = pl.col("name").replace_strict(
        dict(zip(names, range(len(names)), strict=True)), default=len(names)
    )
    best = at_k.sort(pl.col("value"), place, descending=[quality.higher_is_better, False]).row(0, named=True)
    rest = main.filter((pl.col("name") == best["name"]) & pl.col("value").is_not_null())
    deepest = rest.sort("k").row(-1, named=True)
    deeper = f"; at the cutoff {deepest['k']} it is at {text.score(deepest['value'])}"
    return (
        f"Of the stacks shown {best['name']} leads with {quality.name} {text.score(best['value'])}"
        f"{text.interval(best['low'], best['high'])}, {text.sample(best['n'])}"
        f"{deeper if deepest['k'] > quality.k else ''}."
    )


def _main(
    main: pl.DataFrame, ceiling: pl.DataFrame, quality: Quality, colours: Mapping[str, str], x: str
) -> go.Figure:
    fig = theme.figure(x=X_AXES[x], y=quality.bare, height=460)
    for name, colour in colours.items():
        rows = main.filter(pl.col("name") == name)
        if rows.is_empty():
            continue
        banded = rows.filter(pl.col("low").is_not_null())
        if banded.height > 1:
            fig.add_trace(_band(banded, colour, name))
        fig.add_trace(_line(rows, name, colour, dash="solid"))
        limit = ceiling.filter(pl.col("name") == name)
        if not limit.is_empty():
            fig.add_trace(_line(limit, name, colour, dash="dot", suffix=" ceiling"))
        if x != "k":
            fig.add_trace(_at_cutoff(rows.filter(pl.col("k") == quality.k), name, colour))
    if x == "k":
        fig.add_vline(x=quality.k, line={"color": theme.NEUTRAL, "width": 1, "dash": "dash"})
    if quality.is_share:
        fig.update_yaxes(range=[0, 1.02])
    return fig


def _line(rows: pl.DataFrame, name: str, colour: str, *, dash: str, suffix: str = "") -> go.Scatter:
    few = rows.height <= 12
    label = text.escape(text.shorten(name)) + suffix
    return go.Scatter(
        x=rows["x"].to_numpy(),
        y=rows["value"].to_numpy(),
        mode="lines+markers" if few else "lines",
        line={"color": colour, "dash": dash, "width": 2 if dash == "solid" else 1.4},
        name=label,
        legendgroup=text.escape(name),
        customdata=[
            f"K = {k}{_weight(tokens)}: {text.score(value)}, {text.sample(n)}"
            for k, tokens, value, n in rows.select("k", _tokens(rows), "value", "n").iter_rows()
        ],
        hovertemplate="%{fullData.name}<br>%{customdata}<extra></extra>",
    )


def _tokens(rows: pl.DataFrame) -> pl.Expr:
    return pl.col("tokens") if "tokens" in rows.columns else pl.lit(None).alias("tokens")


def _weight(tokens: float | None) -> str:
    return "" if tokens is None else f", {tokens:,.0f} tokens sent"


def _at_cutoff(rows: pl.DataFrame, name: str, colour: str) -> go.Scatter:
    """The point of a stack at the cutoff of the sidebar."""
    return go.Scatter(
        x=rows["x"].to_numpy(),
        y=rows["value"].to_numpy(),
        mode="markers",
        marker={"color": colour, "size": 10, "line": {"color": theme.NEUTRAL, "width": 1}},
        legendgroup=text.escape(name),
        showlegend=False,
        hoverinfo="skip",
    )


def _band(rows: pl.DataFrame, colour: str, name: str) -> go.Scatter:
    ks = rows["x"].to_numpy()
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return go.Scatter(
        x=np.concatenate([ks, ks[::-1]]),
        y=np.concatenate([rows["high"].to_numpy(), rows["low"].to_numpy()[::-1]]),
        fill="toself",
        fillcolor=f"rgba({red},{green},{blue},0.15)",
        line={"width": 0},
        legendgroup=text.escape(name),
        showlegend=False,
        hoverinfo="skip",
    )


def _beside(table: pl.DataFrame, colours: Mapping[str, str]) -> go.Figure:
    """Small multiples of every measure that some chosen stack has."""
    there = [name for name in BESIDE if table.filter(pl.col("measure") == name).height]
    titles = [name if REGISTRY[name].higher_is_better else f"{name} (lower is better)" for name in there]
    rows = max(1, -(-len(there) // 3))
    fig = make_subplots(rows=rows, cols=3, subplot_titles=titles, vertical_spacing=0.3 / rows)
    for place, measure in enumerate(there):
        for name, colour in colours.items():
            part = table.filter((pl.col("measure") == measure) & (pl.col("name") == name))
            if not part.is_empty():
                line = _line(part, name, colour, dash="solid").update(showlegend=False)
                fig.add_trace(line, row=place // 3 + 1, col=place % 3 + 1)
    fig.update_yaxes(rangemode="tozero")
    fig.update_layout(height=60 + 210 * rows, margin={"l": 8, "r": 8, "t": 36, "b": 8})
    return fig


def depth_table(table: pl.DataFrame) -> pl.DataFrame:
    """The stacks of the workspace by candidate depth: those that differ in nothing else form a family.

    Args:
        table: The stack table.

    Returns:
        family, candidates, quality, proc, latency_ms, cost and name; only families with two or more depths.
    """
    families = [_family(spec) for spec in table["spec"]]
    return (
        table.with_columns(pl.Series("family", families, dtype=pl.String))
        .filter(pl.col("candidates").is_not_null())
        .filter(pl.col("candidates").n_unique().over("family") > 1)
        .sort("family", "candidates")
        .select("family", "candidates", "quality", "proc", "latency_ms", "cost", "name")
    )


def _family(spec: str) -> str:
    return stack_label({key: value for key, value in json.loads(spec).items() if key != "candidates"})


def families_of(rows: pl.DataFrame, known: Sequence[str]) -> list[str]:
    """The families that some stacks belong to; the first few known ones where they belong to none."""
    own = dict.fromkeys(_family(spec) for spec in rows["spec"])
    return [family for family in own if family in known] or list(known[:4])


def depth_figure(rows: pl.DataFrame, families: Sequence[str], quality: Quality) -> go.Figure:
    """Quality with its ceiling, latency and cost against the candidate depth, one line per family."""
    panels = (("quality", quality.name), ("latency_ms", "latency (ms)"), ("cost", "$ per 1,000 queries"))
    fig = make_subplots(rows=1, cols=3, subplot_titles=[text.escape(title) for _, title in panels])
    colours = theme.colours_for(families)
    for family in families:
        part = rows.filter(pl.col("family") == family)
        label = text.escape(text.shorten(family))
        for column, (field, _) in enumerate(panels, start=1):
            fig.add_trace(
                _depth_line(part, field, label, colours[family], legend=column == 1), row=1, col=column
            )
        if part["proc"].is_not_null().any():
            ceiling = _depth_line(part, "proc", f"{label} ceiling", colours[family], legend=False)
            fig.add_trace(ceiling.update(line={"dash": "dot"}), row=1, col=1)
    fig.update_xaxes(title_text="candidate depth K")
    fig.update_yaxes(rangemode="tozero", exponentformat="none")
    fig.update_layout(
        height=360, margin={"l": 8, "r": 8, "t": 36, "b": 8}, legend={"orientation": "h", "y": -0.3, "x": 0}
    )
    return fig


def _depth_line(rows: pl.DataFrame, field: str, label: str, colour: str, *, legend: bool) -> go.Scatter:
    return go.Scatter(
        x=rows["candidates"].to_numpy(),
        y=rows[field].to_numpy(),
        mode="lines+markers",
        line={"color": colour},
        name=label,
        legendgroup=label,
        showlegend=legend,
        hovertemplate="%{fullData.name}<br>K = %{x}: %{y:.4g}<extra></extra>",
    )
