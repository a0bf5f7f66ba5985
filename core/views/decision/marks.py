"""The marks of the Pareto chart: one trace per reason and axis, coloured, sized and shaped by choice."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from core.decide.axes import LIMITS
from core.views import text, theme

COLOURS = ("cost", "reranker", "mode", "embedder", "dim", "index", "candidates")
SIZES = ("same", "candidates", "dim", "cost")
LATENCY_AXIS, UNKNOWN_AXIS = "x", "x2"
MARKS = "marks-"
"""How the meta of a trace of marks begins; a browser knows the trace again by it."""
_SMALL, _LARGE = 7.0, 20.0
_Groups = Iterator[tuple[str, bool, bool, npt.NDArray[np.intp]]]


def marks(drawn: pl.DataFrame, colour: str, size: str) -> list[theme.Spec]:
    """Draw every stack.

    One trace per reason and shape: a hover says why a stack is out without a text per mark, and a shape per
    mark would be drawn one by one.

    Args:
        drawn: Rows with x, axis, quality, feasible and constraint; see `core.views.decision.chart`.
        colour: One of `COLOURS`.
        size: One of `SIZES`.

    Returns:
        The traces; the first carries the colour scale, whose bar is in its marker's `colorbar`.
    """
    sizes, symbols, data = _sizes(drawn, size), _symbols(drawn), _data(drawn)
    shades, scale = _shades(drawn, colour)
    x, y = drawn["x"].to_numpy(), drawn["quality"].to_numpy()
    traces: list[theme.Spec] = []
    for title, feasible, placed, group in _groups(drawn):
        for symbol in dict.fromkeys(symbols[group].tolist()):
            picked = group[symbols[group] == symbol]
            reads = {name: values[picked] for name, values in data.items()}
            traces.append(
                {
                    "type": "scatter",
                    "meta": f"{MARKS}{title.replace(' ', '-').replace(',', '')}-{symbol}",
                    "x": x[picked],
                    "y": y[picked],
                    "xaxis": LATENCY_AXIS if placed else UNKNOWN_AXIS,
                    "mode": "markers",
                    "marker": {
                        "size": sizes[picked] if isinstance(sizes, np.ndarray) else sizes,
                        "symbol": symbol,
                        "color": shades[picked],
                        "opacity": 0.9 if feasible else theme.DIMMED,
                        **scale,
                        "showscale": not traces and scale["showscale"],  # one scale serves all traces
                    },
                    "name": f"{title} ({len(group):,})",
                    "legendgroup": title,
                    "showlegend": symbol == symbols[group[0]],
                    # Plotly writes lists of text much faster than arrays of it.
                    **{name: each.tolist() if each.dtype == object else each for name, each in reads.items()},
                    "hovertemplate": _hover(placed, "" if feasible else title),
                }
            )
    return traces


def _groups(drawn: pl.DataFrame) -> _Groups:
    """Title, whether feasible, whether at a latency, and rows: the feasible first, then by the reason."""
    reasons, feasible = drawn["constraint"].fill_null(""), drawn["feasible"].to_numpy()
    placed = (drawn["axis"] == LATENCY_AXIS).to_numpy()
    masks = {"feasible": feasible}
    masks |= {axis.beyond: (reasons == name).to_numpy() for name, axis in LIMITS.items()}
    masks["a value is unknown"] = ~np.logical_or.reduce(list(masks.values()))
    for there, suffix in ((placed, ""), (~placed, ", latency unknown")):
        for title, mask in masks.items():
            picked = np.flatnonzero(mask & there)
            if len(picked):
                yield title + suffix, title == "feasible", not suffix, picked


def _data(drawn: pl.DataFrame) -> dict[str, npt.NDArray[Any]]:
    """What a click and a hover read of each mark: its row; name, n and cost in words."""
    alike = pl.len().over("x", "quality") - 1
    names = [
        text.escape(name) + (f"<br>and {more} more in this place" if more else "")
        for name, more in drawn.select("name", alike.alias("alike")).iter_rows()
    ]
    words = [
        f" ({text.sample(n)}) · {text.cost(*cost) if text.known(cost[0]) or cost[2] else 'cost unknown'}"
        for n, *cost in drawn.select("n", "cost", "cost_least", "cost_missing").iter_rows()
    ]
    return {
        "customdata": drawn.select("row").to_numpy().astype(np.float32),
        "text": np.array(names, dtype=object),
        "hovertext": np.array(words, dtype=object),
    }


def _hover(placed: bool, excluded: str) -> str:
    """The words of a hover."""
    where = "%{x:.4g} ms" if placed else "latency unknown"
    out = f"<br><b>excluded: {excluded}</b>" if excluded else ""
    return f"%{{text}}<br>{where} · %{{y:.3f}}%{{hovertext}}{out}<extra></extra>"


def _sizes(drawn: pl.DataFrame, size: str) -> np.ndarray | float:
    few = 11.0 if drawn.height <= 300 else 7.0
    if size == "same":
        return few
    values = drawn[size].cast(pl.Float64).to_numpy()
    known = values[~np.isnan(values)]
    if not len(known) or known.max() <= 0:
        return few
    return np.where(
        np.isnan(values), few, _SMALL + (_LARGE - _SMALL) * np.sqrt(np.nan_to_num(values) / known.max())
    )


def _symbols(drawn: pl.DataFrame) -> npt.NDArray[np.str_]:
    """The shape of every mark, by reranker."""
    kinds = sorted(set(drawn["reranker"].fill_null("none")), key=lambda name: (name != "none", name))
    symbol = {kind: theme.SYMBOLS[min(place, len(theme.SYMBOLS) - 1)] for place, kind in enumerate(kinds)}
    return np.array([symbol[kind] for kind in drawn["reranker"].fill_null("none")])


def _shades(drawn: pl.DataFrame, colour: str) -> tuple[np.ndarray, dict[str, Any]]:
    """A number per mark and the scale that colours it: sequential for cost, one flat colour per category."""
    if colour == "cost":
        cost = drawn["cost"].cast(pl.Float64).to_numpy()
        known = cost[~np.isnan(cost)]
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
        bar = {"title": {"text": "$ / 1k"}, "thickness": 12, "exponentformat": "none"}
        return cost, {
            "colorscale": theme.SEQUENTIAL,
            "cmin": low,
            "cmax": high,
            "colorbar": bar,
            "showscale": bool(len(known)),
        }
    values, kinds, others = _kinds(drawn[colour].cast(pl.String).fill_null("–"), colour)
    code = {kind: place for place, kind in enumerate(kinds)}
    steps = [
        (edge / len(kinds), theme.OKABE_ITO[place])
        for place in range(len(kinds))
        for edge in (place, place + 1)
    ]
    shown = [text.escape(text.shorten(kind or "", 20)) for kind in kinds]
    bar = {
        "title": {"text": colour},
        "thickness": 12,
        "tickvals": list(range(len(kinds))),
        "ticktext": [*shown[:-1], f"other ({others})"] if others else shown,
    }
    scale = {"colorscale": steps, "cmin": -0.5, "cmax": len(kinds) - 0.5, "colorbar": bar, "showscale": True}
    return values.replace_strict(code, return_dtype=pl.Float64).to_numpy(), scale


def _kinds(values: pl.Series, colour: str) -> tuple[pl.Series, list[str | None], int]:
    """The categories in their order: with more than there are colours, the most frequent and the others."""
    counted = values.value_counts(sort=True, name="n").sort(["n", values.name], descending=[True, False])
    kept = counted[values.name].to_list()
    most = len(theme.OKABE_ITO)
    others = 0 if len(kept) <= most else len(kept) - most + 1
    kept = sorted(kept[: most - 1] if others else kept)
    if colour in ("dim", "candidates"):
        kept.sort(key=lambda kind: (kind == "–", float(kind) if kind != "–" else math.inf))
    if not others:
        return values, kept, 0
    return values.replace_strict(kept, kept, default=None), [*kept, None], others
