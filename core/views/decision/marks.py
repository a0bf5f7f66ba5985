"""The marks of the Pareto chart: one trace per shape, coloured and sized by choice, and their legend."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from core.views import text, theme

COLOURS = ("cost", "reranker", "mode", "embedder", "dim", "index", "candidates")
SIZES = ("same", "candidates", "dim", "cost")
PLACED_AXIS, UNKNOWN_AXIS = "x", "x2"
MARKS = "marks-"
"""How the meta of a trace of marks begins; a browser knows the trace again by it."""
BRIGHT = 0.9
"""Opacity of a mark within the limits."""
_SMALL, _LARGE = 7.0, 20.0
_REMEMBERED = 16_384
"""Stacks whose words are kept from one slider move to the next."""


def marks(drawn: pl.DataFrame, colour: str, size: str) -> list[theme.Spec]:
    """Draw every stack, those that are excluded below the others.

    One trace per shape: a shape per mark would be drawn one by one.
    """
    sizes, symbols, data = _sizes(drawn, size), _symbols(drawn), _data(drawn)
    shades, scale = _shades(drawn, colour)
    x, y, feasible = drawn["x"].to_numpy(), drawn["quality"].to_numpy(), drawn["feasible"].to_numpy()
    axis = drawn["axis"].to_numpy()
    kinds = sorted({*zip(feasible.tolist(), axis.tolist(), symbols.tolist(), strict=True)})
    traces: list[theme.Spec] = []
    for meets, on, symbol in kinds:
        picked = np.flatnonzero((feasible == meets) & (axis == on) & (symbols == symbol))
        traces.append(
            {
                "type": "scatter",
                "meta": f"{MARKS}{'in' if meets else 'out'}-{on}-{symbol}",
                "x": x[picked],
                "y": y[picked],
                "xaxis": on,
                "mode": "markers",
                "marker": {
                    "size": sizes[picked] if isinstance(sizes, np.ndarray) else sizes,
                    "symbol": symbol,
                    "color": shades[picked],
                    "opacity": BRIGHT if meets else theme.DIMMED,
                    **scale,
                    "showscale": not traces and scale["showscale"],  # one scale serves all traces
                },
                "name": "within the limits" if meets else "excluded",
                "showlegend": False,
                # Plotly writes lists of text much faster than arrays of it.
                **{
                    name: part.tolist() if part.dtype == object else part
                    for name, part in ((name, values[picked]) for name, values in data.items())
                },
                "hovertemplate": "%{text}<br>%{hovertext}<extra></extra>",
            }
        )
    return traces


def _data(drawn: pl.DataFrame) -> dict[str, npt.NDArray[Any]]:
    """What a click and a hover read of each mark: its row; its name, and its numbers in words."""
    names = [_name(*row) for row in drawn.select("name", "alike").iter_rows()]
    numbers = drawn.select("quality", "n", "latency_ms", "cost", "cost_least", "cost_missing")
    words = [
        _numbers(*row) + (f"<br><b>excluded: {reason}</b>" if reason else "")
        for row, reason in zip(numbers.iter_rows(), drawn["reason"], strict=True)
    ]
    return {
        "customdata": drawn.select("row").to_numpy().astype(np.float32),
        "text": np.array(names, dtype=object),
        "hovertext": np.array(words, dtype=object),
    }


@lru_cache(_REMEMBERED)
def _name(name: str, alike: int) -> str:
    return text.escape(name) + (f"<br>and {alike} equal in every number" if alike else "")


@lru_cache(_REMEMBERED)
def _numbers(quality: float, n: int | None, latency: float | None, *cost: Any) -> str:  # noqa: ANN401
    return (
        f"{text.score(quality)} ({text.sample(n)}) · {_or_unknown('latency', text.ms(latency))} · "
        f"{_or_unknown('cost', text.cost(*cost))}"
    )


def _or_unknown(what: str, written: str) -> str:
    return f"{what} unknown" if written == text.UNKNOWN else written


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


def _kind(name: str | None) -> str:
    return name or "no reranker"


def _shapes(drawn: pl.DataFrame) -> dict[str, str]:
    """The shape of each reranker, "no reranker" first."""
    kinds = sorted(
        {_kind(name if name != "none" else None) for name in drawn["reranker"].unique()},
        key=lambda name: (name != _kind(None), name),
    )
    return {kind: theme.SYMBOLS[min(place, len(theme.SYMBOLS) - 1)] for place, kind in enumerate(kinds)}


def _symbols(drawn: pl.DataFrame) -> npt.NDArray[np.str_]:
    """The shape of every mark, by reranker."""
    symbol = _shapes(drawn)
    return np.array(
        [symbol[_kind(name if name != "none" else None)] for name in drawn["reranker"]], dtype=np.str_
    )


def shapes(drawn: pl.DataFrame) -> list[theme.Spec]:
    """The legend of the shapes, where there are several; traces without a mark."""
    named = _shapes(drawn)
    return [
        {
            "type": "scatter",
            "x": [None],
            "y": [None],
            "mode": "markers",
            "marker": {"symbol": symbol, "color": theme.NEUTRAL, "size": 9},
            "name": text.escape(text.shorten(kind, 24)),
            "hoverinfo": "skip",
        }
        for kind, symbol in named.items()
        if len(named) > 1
    ]


def _shades(drawn: pl.DataFrame, colour: str) -> tuple[np.ndarray, dict[str, Any]]:
    """A number per mark and the scale that colours it: sequential for cost, one flat colour per category."""
    if colour == "cost":
        cost = drawn["cost"].cast(pl.Float64).to_numpy()
        known = cost[~np.isnan(cost)]
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
        bar = {
            "title": {"text": "$ / 1,000 ", "side": "right"},
            "orientation": "h",
            "thickness": 8,
            "len": 0.26,
            "x": 1,
            "xanchor": "right",
            "y": 1.01,
            "yanchor": "bottom",
            "nticks": 4,
            "exponentformat": "none",
        }
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
