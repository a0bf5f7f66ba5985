"""The evidence page: what the judgements of a golden set can carry, and where they cannot."""

from __future__ import annotations

from dataclasses import dataclass

import plotly.graph_objects as go
import polars as pl

from core.store import Snapshot
from core.views import text, theme
from core.views.evidence import bias, doubts, labels
from core.views.query_sets import among
from core.views.scope import Quality, Scope
from core.views.scores import evidence
from core.views.stacks import runs_in

BARS = 40
"""Stacks drawn at most; the table has every one."""


@dataclass(frozen=True)
class Judged:
    """What a golden set holds.

    Attributes:
        queries: What `labels.per_query` returns.
        mix: What `labels.summary` returns.
        copies: What `doubts.duplicates` returns for the collection's passages.
        apart: What `doubts.graded_apart` returns.
        disagreements: What `doubts.disagreements` returns.
    """

    queries: pl.DataFrame
    mix: pl.DataFrame
    copies: pl.DataFrame
    apart: pl.DataFrame
    disagreements: pl.DataFrame


def judged(snapshot: Snapshot, scope: Scope) -> Judged | None:
    """Read the golden set of a workspace; None when it has none, or none with grades of passages."""
    if scope.golden_set_id is None:
        return None
    judgements = snapshot.judgements(scope.golden_set_id)
    if judgements.is_empty():
        return None
    others = [
        snapshot.judgements(name)
        for name in snapshot.golden_sets(scope.collection_id)["golden_set_id"]
        if name != scope.golden_set_id
    ]
    queries = labels.per_query(judgements)
    copies = doubts.duplicates(snapshot.passages(scope.collection_id))
    return Judged(
        queries=queries,
        mix=labels.summary(queries),
        copies=copies,
        apart=doubts.graded_apart(copies, judgements),
        disagreements=doubts.disagreements(judgements, pl.concat([judgements.clear(), *others])),
    )


def pool_bias(snapshot: Snapshot, scope: Scope, quality: Quality) -> pl.DataFrame:
    """Leave-one-run-out for the workspace's runs, with their names; see `bias.leave_one_out`.

    Returns:
        The columns of `leave_one_out` with `name` in front; no rows when there are fewer than two ranked runs
        or more than `bias.MAX_RUNS`, no golden set of passages, or a measure that is not computed here.
    """
    runs = runs_in(snapshot, scope).filter("has_rankings")
    golden, measure = scope.golden_set_id, quality.measure
    empty = {"name": pl.String, "run_id": pl.String, "unique": pl.Int64}
    floats = dict.fromkeys(("score", "without", "bias"), pl.Float64)
    judgements = pl.DataFrame() if golden is None else snapshot.judgements(golden)
    if measure is None or golden is None or judgements.is_empty() or not 2 <= runs.height <= bias.MAX_RUNS:
        return pl.DataFrame(schema={**empty, **floats})
    ids = runs["run_id"].to_list()
    found = evidence(snapshot, ids, golden, (measure,), only=among(snapshot, scope))
    counted = judgements.filter(pl.col("query_id").is_in(list(found.query_ids)))
    left_out = bias.leave_one_out(found, snapshot.rankings(ids), counted, measure)
    return runs.select("name", "run_id").join(left_out, on="run_id", maintain_order="right").select(
        *empty, *floats
    )  # fmt: skip


def answer(found: Judged | None, table: pl.DataFrame, quality: Quality) -> tuple[str, str]:
    """The page's answer: how many judgements per query, and how much of what is shown nobody judged.

    Args:
        found: What `judged` returned.
        table: The stack table.
        quality: Measure and cutoff.

    Returns:
        A sentence, and a quieter one with what weakens the evidence.
    """
    if found is None:
        return "There are no judgements of passages here.", "Import a golden set (qrels) for this workspace."
    everything = found.mix.row(-1, named=True)
    holes = table["hole"].drop_nulls()
    unjudged = (
        f"; for {quality.name}, {text.percent(_float(holes.median()))} of the Top-{quality.k} is unjudged "
        "in the median stack"
        if len(holes)
        else ""
    )
    sentence = (
        f"{everything['total']:,} judgements of {text.count(found.queries.height, 'query', 'queries')}, "
        f"{everything['median']:.0f} per query in the median{unjudged}."
    )
    fallback = int(found.queries["fallback"].sum())
    parts = [
        f"{text.count(fallback, 'query has', 'queries have')} no passage of grade 5, so that RA-nWG uses its "
        "fallback weights"
        if fallback
        else "",
        f"{text.count(found.apart.height, 'time')} copies of one passage were graded differently"
        if found.apart.height
        else "",
        f"{text.count(found.disagreements.height, 'judgement')} differ from another golden set"
        if found.disagreements.height
        else "",
    ]
    return sentence, ". ".join(part for part in parts if part)


def mix_figure(found: Judged) -> go.Figure:
    """Passages per query by grade, one box per grade with every query as a point."""
    grades = [f"grade {grade}" for grade in reversed(labels.GRADES)]
    boxes = [
        go.Box(
            x=found.queries[name].to_numpy(),
            name=name,
            orientation="h",
            boxpoints="all" if found.queries.height <= 500 else False,
            jitter=0.5,
            pointpos=0,
            marker={"color": theme.OKABE_ITO[0], "size": 4, "opacity": 0.5},
            line={"color": theme.NEUTRAL, "width": 1.5},
            text=[text.escape(query) for query in found.queries["query_id"]],
            hovertemplate="query %{text}: %{x}<extra></extra>",
        )
        for name in grades
    ]
    return theme.figure(boxes, x="judged passages per query", height=330, legend=False)


def with_bounds(table: pl.DataFrame) -> pl.DataFrame:
    """The stacks whose holes are known, best first: name, quality, hole_low, hole_high, hole, n."""
    known = table.filter(pl.col("hole_low").is_not_null() & pl.col("quality").is_not_null())
    return known.sort("quality", "name", descending=[True, False]).select(
        "name", "quality", "hole_low", "hole_high", "hole", "n"
    )


def bounds_figure(rows: pl.DataFrame, quality: Quality) -> go.Figure:
    """The score of every stack with what its holes could make of it."""
    shown = rows.head(BARS).reverse()
    places = list(range(shown.height))
    score = shown["quality"].to_numpy()
    marks = go.Scatter(
        x=score,
        y=places,
        mode="markers",
        marker={"color": theme.OKABE_ITO[0], "size": 9},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": (shown["hole_high"] - shown["quality"]).to_numpy(),
            "arrayminus": (shown["quality"] - shown["hole_low"]).to_numpy(),
            "color": theme.NEUTRAL,
            "thickness": 2,
        },
        customdata=list(
            zip(
                [text.escape(name) for name in shown["name"]],
                map(text.score, shown["hole_low"]),
                map(text.score, shown["hole_high"]),
                map(text.percent, shown["hole"]),
                strict=True,
            )
        ),
        hovertemplate="%{customdata[0]}<br>score %{x:.3f}<br>if every hole were grade 1 … 5: "
        "%{customdata[1]} … %{customdata[2]}<br>unjudged %{customdata[3]}<extra></extra>",
    )
    fig = theme.figure(
        [marks], x=f"{quality.name}, and its bounds by holes", height=140 + 24 * shown.height, legend=False
    )
    fig.update_yaxes(
        range=[-0.7, shown.height - 0.3],
        tickvals=places,
        ticktext=[text.shorten(text.escape(name), 60) for name in shown["name"]],
    )
    return fig


def _float(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None
