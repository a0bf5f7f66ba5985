"""Course of refining (stage S6): how it converged, what it locked, what the judge contradicted.

It is derived from a `Refinement`, as restored by `core.golden.refine.restore` from a question's checkpoint.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.golden.refine.base import RankedPair, Refinement, RefinePoint
from core.golden.refine.methods import PreferenceGraph
from core.tables import schema
from core.views import theme
from core.views.text import escape, shorten

MOST = 40  # Maximum passages of the graph, from the best down
_BEND = np.linspace(0.0, 1.0, 13)
_GAP = (None,)
_TYPES = (pl.String, pl.Int64, pl.Int64, pl.Float64)
_PAIRS = schema("query_id better worse rank_better:int64 rank_worse:int64 times:int64")


def curves(refined: Mapping[str, Refinement]) -> pl.DataFrame:
    """Return the data points of `convergence`.

    Returns:
        query_id, turn, changed (places of the Top-20 with another passage than one point before), settled
        (pairs locked, or with `map` the certainty of the Top-20, 0..1).
    """
    rows = [(query, *point) for query, state in refined.items() for point in state.curve]
    names = ("query_id", *RefinePoint._fields)
    return pl.DataFrame(rows, schema=dict(zip(names, _TYPES, strict=True)), orient="row")


def convergence(refined: Mapping[str, Refinement]) -> go.Figure:
    """Draw how the Top-20 of a few questions converges.

    Args:
        refined: Refinements by question, all from one method.
    """
    maps = any(state.settings.method == "map" for state in refined.values())
    changed = "Places of the Top-20 changed " + ("in 5 turns" if maps else "per turn, mean of 5")
    panels = theme.Panels((changed, "How sure the Top-20 is" if maps else "Pairs locked"), across=1, x="turn")
    colours, rows = theme.colours_for(refined), curves(refined)
    for query in refined:
        points = rows.filter(query_id=query)
        name = escape(shorten(query, 30))
        smooth = points["changed"].rolling_mean(1 if maps else 5, min_samples=1)
        for place, values in enumerate((smooth, points["settled"])):
            line = go.Scatter(
                x=points["turn"].to_list(), y=values.to_list(), name=name, mode="lines",
                line={"color": colours[query]},
                hovertemplate=f"turn %{{x}}: %{{y:.3~g}}<extra>{name}</extra>",
            )  # fmt: skip
            panels.add(place, line, group=query)
    return panels.figure.update_yaxes(rangemode="tozero")


def needed(locks: Sequence[RankedPair], items: int) -> list[RankedPair]:
    """Return the locks that no path of others implies, and that imply all the others."""
    graph = PreferenceGraph(items)
    for pair in locks:
        graph.lock(pair)
    return [(better, worse) for better, worse in locks if not graph.below[better] & graph.above[worse]]


def lock_graph(refined: Refinement) -> go.Figure:
    """Draw the passages from the best down, locks on the right, contradictions dashed on the left.

    Only locks that no path of others implies are drawn.
    """
    order = refined.order()[:MOST]
    place = {item: rank for rank, item in enumerate(order, start=1)}
    locks = [pair for pair in needed(refined.locks, len(refined.ids)) if place.keys() >= set(pair)]
    against = [pair for pair in dict.fromkeys(refined.contradictions) if place.keys() >= set(pair)]
    titles = [escape(shorten(refined.ids[item], 60)) for item in order]
    traces = [
        _arcs(locks, place, 1, name="locked", color=theme.FRONTIER, width=1.5),
        _arcs(against, place, -1, name="judged against a lock", color=theme.ACCENT, width=1.5, dash="dot"),
        go.Scatter(
            x=[0] * len(order), y=list(place.values()), mode="markers", showlegend=False,
            marker={"color": theme.NEUTRAL, "size": 9}, customdata=titles,
            hovertemplate="%{y}: %{customdata}<extra></extra>",
        ),
    ]  # fmt: skip
    fig = theme.figure(traces, y="rank", height=120 + 16 * max(len(order), 10))
    fig.update_xaxes(visible=False, range=[-1.1, 1.1], fixedrange=True)
    return fig.update_yaxes(range=[len(order) + 0.6, 0.4], showgrid=False)


def _arcs(
    pairs: Sequence[RankedPair], place: Mapping[int, int], side: int, *, name: str, **line: object
) -> go.Scatter:
    """Return one line of arcs; the more ranks an arc spans, the further out it is."""
    widest = max(len(place) - 1, 1)
    x: list[float | None] = []
    y: list[float | None] = []
    for better, worse in pairs:
        start, end = place[better], place[worse]
        out = side * (0.06 + 0.94 * abs(end - start) / widest)
        x += [*(out * 4 * _BEND * (1 - _BEND)).tolist(), *_GAP]
        y += [*(start + (end - start) * _BEND).tolist(), *_GAP]
    return go.Scatter(x=x, y=y, name=name, mode="lines", line=line, opacity=0.7, hoverinfo="skip")


def pairs(refined: Mapping[str, Refinement], *, contradicted: bool = False) -> pl.DataFrame:
    """Return the locks of some questions, or the judgements that contradict them.

    Args:
        contradicted: Whether to return the judgements that contradict a path of locks, instead of the locks.

    Returns:
        query_id, better, worse (passages, in the judged order), rank_better, rank_worse (in the final order),
        times (judgements against locks; 1 for a lock): the most contradicted first, then by rank.
    """
    rows = []
    for query, state in refined.items():
        place = {item: rank for rank, item in enumerate(state.order(), start=1)}
        for (one, other), times in Counter(state.contradictions if contradicted else state.locks).items():
            rows.append((query, state.ids[one], state.ids[other], place[one], place[other], times))
    table = pl.DataFrame(rows, schema=_PAIRS, orient="row")
    return table.sort(
        "times", "query_id", "rank_better", "rank_worse", descending=[True, False, False, False]
    )
