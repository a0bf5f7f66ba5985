"""The page "Measure and outcome": which retrieval measure foretells the grade of the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.stats.correlation import BestAlpha, Kind, best_alpha, correlate
from core.views import text, theme
from core.views.measures.samples import MEASURES, Samples

ALL = "all answers"
ALPHAS = tuple(round(step / 20, 2) for step in range(21))
CURVES = ("F", "T")
SEGMENT_SIZE = 300
"""Samples that a segment of K / Np must have (Schwartz et al., §3.1)."""


_Row = tuple[str, float | None, float | None, float | None, int, int, str | None]


@dataclass(frozen=True)
class Curve:
    """The alpha curve of one measure.

    Attributes:
        name: "F" or "T".
        best: The curve with its best alpha, in sample and cross-validated.
    """

    name: str
    best: BestAlpha


def segments(rows: pl.DataFrame) -> dict[str, pl.Expr]:
    """The segments on offer by name: all, narrow (K < Np), wide, and one for every tag."""
    tags = rows["tags"].explode(empty_as_null=True).drop_nulls().unique().sort()
    return {
        ALL: pl.lit(True),
        "narrow (K < Np)": pl.col("width") == "narrow",
        "wide (K ≥ Np)": pl.col("width") == "wide",
        **{str(tag): pl.col("tags").list.contains(tag).fill_null(False) for tag in tags},
    }


def correlations(found: Samples, kind: Kind, keep: pl.Expr, tuned: Sequence[Curve] = ()) -> pl.DataFrame:
    """The coefficient of every measure with the answer's grade.

    Args:
        found: The samples.
        kind: Which coefficient.
        keep: The segment.
        tuned: Measures whose alpha was chosen; each is a row beside the one with alpha = 0.5, by its
            coefficient on queries that the choice did not see.

    Returns:
        measure, value, low, high (95 %, over queries), n (answers), queries, note; the best first.
    """
    rows = found.rows.filter(keep)
    made = []
    for name in MEASURES:
        values = rows[name].to_numpy()
        each = correlate(values, rows["grade"].to_numpy(), rows["query_id"].to_numpy(), kind=kind)
        queries = rows.filter(pl.col(name).is_not_null())["query_id"].n_unique()
        made.append((name, each.value, each.low, each.high, each.n, queries, each.reason or None))
    made += [_tuned_row(curve, rows) for curve in tuned]
    columns = {
        "measure": pl.String, "value": pl.Float64, "low": pl.Float64, "high": pl.Float64, "n": pl.Int64,
        "queries": pl.Int64, "note": pl.String,
    }  # fmt: skip
    return pl.DataFrame(made, schema=columns, orient="row").sort("value", descending=True, nulls_last=True)


def _tuned_row(curve: Curve, rows: pl.DataFrame) -> _Row:
    """Return the row of a measure whose alpha was chosen."""
    best, known = curve.best, rows.filter(pl.col(curve.name).is_not_null())
    note = None
    if best.best is not None and best.in_sample is not None:
        note = f"alpha = {best.best:g}; across folds, {best.in_sample:.3f} on the same answers (optimistic)"
    name = f"{curve.name}, alpha chosen"
    return name, best.cross_validated, None, None, known.height, known["query_id"].n_unique(), note


def curves(found: Samples, kind: Kind, keep: pl.Expr) -> list[Curve]:
    """How the coefficients of F and T depend on alpha."""
    kept = found.rows.select("k", keep.alias("kept"))["kept"].to_numpy()
    rows = found.rows.filter(kept)
    return [
        Curve(
            name,
            best_alpha(
                found.curve(name, ALPHAS)[:, kept],
                ALPHAS,
                rows["grade"].to_numpy(),
                rows["query_id"].to_numpy(),
                kind=kind,
            ),
        )
        for name in CURVES
    ]


def differences(
    found: Samples, kind: Kind, keep: pl.Expr, measures: tuple[str, str], least: int
) -> pl.DataFrame:
    """A measure's coefficient minus that of another, by run and K / Np.

    Args:
        found: The samples.
        kind: Which coefficient.
        keep: The segment.
        measures: Two of `MEASURES`: the measure and its reference.
        least: Answers that a cell needs.

    Returns:
        name, ratio, n, value, reference, difference (null where one of the two is not defined), sorted.
    """
    known = pl.all_horizontal(pl.col("ratio", *set(measures)).is_not_null())
    made = []
    for (name, ratio), rows in found.rows.filter(keep & known).group_by("name", "ratio"):
        if rows.height >= least:
            grade = rows["grade"].to_numpy()
            value, reference = (
                correlate(rows[column].to_numpy(), grade, kind=kind, resamples=0).value for column in measures
            )
            made.append((name, ratio, rows.height, value, reference))
    columns = {"name": pl.String, "ratio": pl.Float64, "n": pl.Int64, "value": pl.Float64}
    return (
        pl.DataFrame(made, schema={**columns, "reference": pl.Float64}, orient="row")
        .with_columns((pl.col("value") - pl.col("reference")).alias("difference"))
        .sort("name", "ratio")
    )


def answer(found: Samples, table: pl.DataFrame, kind: Kind, segment: str) -> tuple[str, str]:
    """Which measure foretells the grade best, with its interval, and what was left out.

    Returns:
        A sentence and a quieter one.
    """
    n = found.rows.height
    left = "; ".join(f"{text.count(count, 'answer')}: {reason}" for reason, count in found.left_out.items())
    details = f"Grades on the scale {found.scale}." + (f" Left out: {left}." if left else "")
    best = table.row(0, named=True)
    if best["value"] is None:
        return f"No measure has a defined correlation with the {text.count(n, 'answer grade')}.", details
    # A runner-up whose interval holds the best value cannot be told from it.
    close = table.filter(
        (pl.col("measure") != best["measure"]) & (pl.col("high").fill_null(-1.0) >= best["value"])
    )
    tied = f"; not told from it: {', '.join(close['measure'])}" if close.height else ""
    sentence = (
        f"{best['measure']} foretells the answer's grade best ({segment}): {kind} "
        f"{best['value']:.2f}{_interval(best)}, n = {best['n']:,} answers to "
        f"{text.count(best['queries'], 'query', 'queries')}{tied}."
    )
    if best["low"] is None and best["note"]:
        details = f"{best['measure']}: {best['note']}. {details}"
    return sentence, details


def _interval(row: dict[str, object]) -> str:
    low, high = row["low"], row["high"]
    return f" [{low:.2f}, {high:.2f}]" if isinstance(low, float) and isinstance(high, float) else ""


def in_words(curve: Curve) -> str:
    """The best alpha of a curve, its optimistic figure and the cross-validated one."""
    best = curve.best
    if best.best is None or best.in_sample is None:
        return f"{curve.name}: not defined."
    held = (
        "not defined across folds"
        if best.cross_validated is None
        else f"{best.cross_validated:.3f} across folds"
    )
    return (
        f"{curve.name}: best at alpha = {best.best:g} with {best.in_sample:.3f} on the same answers "
        f"(optimistic), {held}."
    )


def curve_table(found: Sequence[Curve]) -> pl.DataFrame:
    """The curves as a table: alpha and a column per measure, null where it is not defined."""
    columns = {"alpha": ALPHAS} | {curve.name: curve.best.values for curve in found}
    return pl.DataFrame(columns).fill_nan(None)


def bars(table: pl.DataFrame, kind: Kind) -> go.Figure:
    """The coefficient of every measure with its interval."""
    shown = table.filter(pl.col("value").is_not_null()).reverse()
    value = shown["value"].to_numpy()
    marks = go.Scatter(
        x=value,
        y=shown["measure"].to_list(),
        mode="markers",
        marker={"size": 10, "color": theme.OKABE_ITO[0]},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": shown.select(pl.col("high").fill_null(pl.col("value")) - pl.col("value")).to_series(),
            "arrayminus": shown.select(
                pl.col("value") - pl.col("low").fill_null(pl.col("value"))
            ).to_series(),
            "color": theme.NEUTRAL,
        },
        customdata=shown["n"].to_list(),
        hovertemplate="%{y}: %{x:.3f}, n = %{customdata}<extra></extra>",
    )
    fig = theme.figure(
        [marks], x=f"{kind} correlation with the answer's grade", height=120 + 28 * len(value), legend=False
    )
    fig.update_xaxes(zeroline=True)
    return fig


def alpha_figure(found: Sequence[Curve], kind: Kind) -> go.Figure:
    """The coefficients of F and T over alpha, the best of each marked."""
    traces: list[go.Scatter] = []
    for place, curve in enumerate(found):
        best, colour = curve.best, theme.OKABE_ITO[place]
        traces.append(
            go.Scatter(
                x=best.alphas,
                y=[None if np.isnan(value) else float(value) for value in best.values],
                name=curve.name,
                mode="lines+markers",
                line={"color": colour, "dash": ("solid", "dash")[place % 2]},
                marker={"size": [12 if alpha == best.best else 4 for alpha in best.alphas]},
                hovertemplate=f"{curve.name}, alpha %{{x:.2f}}: %{{y:.3f}}<extra></extra>",
            )
        )
    return theme.figure(traces, x="alpha", y=f"{kind} correlation", height=340)


def heatmap(table: pl.DataFrame, measure: str, reference: str) -> go.Figure:
    """A measure's coefficient minus that of another: run by K / Np; blue = better than it, orange = worse."""
    ratios = table["ratio"].unique().sort().to_list()
    names = table["name"].unique().sort().to_list()
    cells = {(row["name"], row["ratio"]): row for row in table.iter_rows(named=True)}
    values = [[(cells.get((name, ratio)) or {}).get("difference") for ratio in ratios] for name in names]
    counts = [[(cells.get((name, ratio)) or {}).get("n", 0) for ratio in ratios] for name in names]
    known = [abs(value) for row in values for value in row if value is not None]
    most = max(known, default=0.0) or 1.0
    trace = go.Heatmap(
        z=values,
        x=[f"{ratio:g}" for ratio in ratios],
        y=[text.shorten(text.escape(name), 40) for name in names],
        customdata=counts,
        text=[["" if value is None else f"{value:+.2f}" for value in row] for row in values],
        texttemplate="%{text}",
        colorscale=[[0, "#D55E00"], [0.5, "#f2f2f2"], [1, "#0072B2"]],
        zmin=-most,
        zmax=most,
        hovertemplate="%{y}, K / Np = %{x}: %{z:+.3f}, n = %{customdata}<extra></extra>",
        colorbar={"title": {"text": f"{measure} − {reference}"}},
    )
    fig = theme.figure([trace], x="K / Np", height=160 + 34 * len(names), legend=False)
    fig.update_xaxes(type="category")
    return fig
