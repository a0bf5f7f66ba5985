"""Section Recall: whether drops of the diagnostics predict drops of recall, by query and by stack (§4.5).

The CLQ paper compares drops of D_name and of N-Recall4+@10 and reports no coefficient. Here it is
Spearman's rho between the effect of perturbing a query on a diagnostic and on quality, over the
queries of a stack and over the means of stacks and perturbations, with bootstrap intervals.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.analysis.cache import cached
from core.analysis.families import Option, available
from core.analysis.perturbed import QUICK, Gathered, gather, rewritten
from core.analysis.workspace.scope import Quality
from core.analysis.workspace.view import View
from core.arrays import Floats, Mask
from core.diagnostics.names.margins import by_question, questions, unit
from core.diagnostics.noise import CLEAN
from core.errors import ClqError
from core.pipeline.query.perturb import NAMES, perturbed
from core.stats.correlation import RESAMPLES, correlate
from core.views import columns as cols
from core.views import text, theme
from core.views.diagnostics.asked_names import MEANS, MEASURE, Renamed, renamed

NAME = "recall"
EVERY = "over stacks and perturbations"
CLEANLY = "as they are"
D_NAME, COSINE = "D_name of the question", "cosine to the clean query"
OWN: Mapping[str, str] = {
    "dense_top_margin": "margin of the dense search",
    "dense_top1": "best score of the dense search",
    "top_margin": "margin of the pool",
    "top1": "best score of the pool",
}
"""Signals of a stack's own scores, by the name that they are stored by."""
NARROW = 20  # Characters of a line beside the chart that leave room on a phone
LEAST = 10  # With fewer queries there is no coefficient
_PAIRS, _STACKS = 4, 4  # With fewer pairs of means there is no coefficient, with fewer stacks no interval
FORETOLD = cols.Rows(
    "foretold",
    "stack",
    cols.text("perturb", "queries"),
    cols.text("diagnostic", help="What changes beside recall.", width=230),
    cols.signed("rho", help="Spearman's, with the change of recall; as they are: with recall.", digits=2),
    "low high",
    cols.count("n", help="Queries; over stacks: pairs of stack and perturbation."),
    more=(
        cols.signed("change", "recall changes", "Mean over the queries; as they are: recall."),
        cols.signed("moved", "diagnostic changes", "Mean over the queries; as they are: itself."),
        "reason",
    ),
)
"""Columns of `foretold`: rho between changes of the diagnostic and of quality over n queries (pairs of stack
and perturbation in the rows `EVERY`), or between both as they are; change and moved are their means."""
NO_RUNS = "No stack of this workspace was asked perturbed queries."
WAY_OUT = (
    'Run a sweep with `noise = [0, 4]` or `names = [0, 1, "gibberish"]`; docs/diagnostics.md has both. '
    "`python -m core demo --measure` brings the latter, the workspace python-names."
)
HOW = (
    "Spearman's rho between what a perturbation does to a diagnostic and to quality, over the queries of a "
    "stack that it changes; 95 % bootstrap over queries. “As they are”: between both without a perturbation. "
    "Over stacks: between means of stack and perturbation; the bootstrap draws stacks. D_name needs the "
    "right passage; margins and best scores are the stack's own, so that a router can go by their drop."
)


@cached("Comparing drops with drops of recall…", entries=8)
def foretold(view: View) -> pl.DataFrame:
    """Correlate diagnostics with N-Recall4+ at the cutoff: `FORETOLD`, rows over stacks first."""
    quality = Quality(MEASURE, view.quality.k)
    runs = gather(view.snapshot, view.scope, quality)
    if not runs:
        return FORETOLD.frame()
    named = renamed(view.snapshot, view.scope, quality)
    rows = list(_rows(view, runs, named))
    return FORETOLD.frame([*_over_stacks(rows), *rows])


def _rows(view: View, runs: Gathered, named: Renamed) -> Iterator[dict[str, Any]]:
    """Yield a row per stack, perturbation and diagnostic."""
    of = {(row["family"], row["rewrite"], row["perturb"]): row["run_id"] for row in runs.rows.to_dicts()}
    specs = dict(view.snapshot.runs(view.scope.collection_id).select("run_id", "spec").iter_rows())
    signals = {run_id: _signals(view, run_id, runs.query_ids) for run_id in runs.rows["run_id"]}
    for row in runs.rows.to_dicts():
        stack = rewritten(row["stack"], row["rewrite"])
        clean = of.get((row["family"], row["rewrite"], CLEAN))
        if clean is None:
            continue
        own, base, quality = signals[row["run_id"]], signals[clean], runs.values[row["run_id"]]
        if row["perturb"] == CLEAN:
            for key, words in OWN.items():
                if key in own:
                    yield _row((stack, CLEANLY, words), own[key], quality)
            continue
        change = quality - runs.values[clean]
        moved = {OWN[key]: own[key] - base[key] for key in OWN if key in own and key in base}
        spec = json.loads(specs[row["run_id"]])
        change = np.where(_changed(view, spec["perturb"], runs.query_ids, named), change, np.nan)
        moved |= _of_vectors(view, spec, runs.query_ids, named)
        for words, values in moved.items():
            yield _row((stack, row["perturb"], words), values, change)


def _row(of: tuple[str, str, str], moved: Floats, change: Floats) -> dict[str, Any]:
    both = np.isfinite(moved) & np.isfinite(change)
    told = dict(zip(("stack", "perturb", "diagnostic"), of, strict=True))
    n = int(both.sum())
    if n < LEAST:
        return {**told, "n": n, "reason": f"{text.count(n, 'query', 'queries')}, {LEAST} are needed"}
    found = correlate(moved[both], change[both])
    return {
        **told, "rho": found.value, "low": found.low, "high": found.high, "n": n,
        "change": float(change[both].mean()), "moved": float(moved[both].mean()),
        "reason": found.reason or None,
    }  # fmt: skip


def _changed(view: View, way: Mapping[str, Any], query_ids: Sequence[str], named: Renamed) -> Mask:
    """Return which queries a perturbation changes; name perturbations need a name in the query."""
    texts = dict(view.snapshot.queries(view.scope.collection_id).select("query_id", "text").iter_rows())
    asked = [texts.get(name) or "" for name in query_ids]
    return np.array([perturbed(one, way, named.names.get(one, ())) != one for one in asked], dtype=np.bool_)


def _over_stacks(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield rho between the means of stack and perturbation, by diagnostic."""
    for words in (D_NAME, COSINE, *OWN.values()):
        some = [
            row for row in rows
            if row["diagnostic"] == words and row["perturb"] != CLEANLY and row.get("moved") is not None
        ]  # fmt: skip
        if len(some) < _PAIRS:
            continue
        moved, change = (np.array([row[name] for row in some]) for name in ("moved", "change"))
        names = [row["stack"] for row in some]
        few = "" if len(set(names)) >= _STACKS else f"fewer than {_STACKS} stacks, so no interval"
        found = correlate(moved, change, names, resamples=0 if few else RESAMPLES)
        yield {
            "stack": EVERY, "perturb": "", "diagnostic": words, "rho": found.value, "low": found.low,
            "high": found.high, "n": found.n, "change": float(change.mean()), "moved": float(moved.mean()),
            "reason": few or found.reason or None,
        }  # fmt: skip


def _signals(view: View, run_id: str, query_ids: Sequence[str]) -> dict[str, Floats]:
    """Return the signals of a run's own scores, in the order of some queries; NaN = unknown."""
    known = available(view.snapshot, Option("", run_id, None), view.scope.collection_id)
    return {
        signal.key: np.array([signal.values.get(name, np.nan) for name in query_ids], dtype=np.float64)
        for signal in known
        if signal.key in OWN
    }


def _of_vectors(
    view: View, spec: Mapping[str, Any], query_ids: Sequence[str], named: Renamed
) -> dict[str, Floats]:
    """Return a perturbation's effect on embedders fast enough to run here: change of cosine and of D_name."""
    if spec.get("embedder") not in QUICK or not spec.get("dim"):
        return {}
    way = spec["perturb"]
    key = json.dumps(way, sort_keys=True)
    try:
        return _embedded(view, (spec["embedder"], int(spec["dim"])), key, tuple(query_ids), named)
    except ClqError:  # it is not installed
        return {}


@cached("Embedding perturbed queries…", entries=64)
def _embedded(
    view: View, embedder: tuple[str, int], key: str, query_ids: tuple[str, ...], _named: Renamed
) -> dict[str, Floats]:
    from core.providers.base import Purpose  # noqa: PLC0415 - takes long to load
    from core.providers.embed import make_embedder  # noqa: PLC0415

    made, way = make_embedder(*embedder), json.loads(key)
    embed = partial(made.embed, purpose=Purpose.QUERY)
    queries = view.snapshot.queries(view.scope.collection_id).select("query_id", "text")
    texts = dict(queries.iter_rows())
    asked = [texts.get(name) or "" for name in query_ids]
    now = [perturbed(one, way, _named.names.get(one, ())) for one in asked]
    cosine = (unit(embed(asked)) * unit(embed(now))).sum(axis=1)
    found = {COSINE: cosine - 1.0}
    pairs = questions(_named.asked, _named.names) if "names" in way else []
    if pairs:
        margins = by_question(pairs, {key: way}, embed, partial(made.embed, purpose=Purpose.PASSAGE))
        moved = dict(zip((pair.text for pair in pairs), margins[key] - margins[""], strict=True))
        found[D_NAME] = np.array([moved.get(one, np.nan) for one in asked])
    return found


def answer(table: pl.DataFrame, quality: Quality) -> tuple[str, str]:
    """Say how many coefficients are significantly above 0, and which is the strongest over queries."""
    single = table.filter(pl.col("stack") != EVERY, pl.col("perturb") != CLEANLY).drop_nulls(["rho", "low"])
    if single.is_empty():
        return f"Too few queries lose or gain {quality.name} to test any warning.", ""
    sure = single.filter(pl.col("low") > 0).height
    best = single.sort("rho", descending=True).row(0, named=True)
    rho = text.signed(best["rho"], "{:.2f}".format)
    signs = text.count(single.height, "sign")
    low = f"A low {best['diagnostic']} goes with low"
    warns = f"{low} {quality.name}: rho" if sure else f"None of {signs} warns: rho at most"
    return (
        f"{warns} {rho}{_ends(best)} ({text.sample(best['n'])}).",
        f"Highest: {best['diagnostic']}, {best['stack']}, {asked(best['perturb'])}. "
        f"{sure} of {signs} under noise warn; by chance {0.025 * single.height:.1f} would.",
    )


def asked(perturb: str) -> str:
    """Return a perturbation of the queries in words."""
    kind, _, form = perturb.partition(" ")
    return f"names: {MEANS[form]}" if kind == NAMES and form in MEANS else perturb


def _ends(row: Mapping[str, Any]) -> str:
    return "" if row["low"] is None else f" [{row['low']:.2f}, {row['high']:.2f}]".replace("-", text.MINUS)


def chart(rows: pl.DataFrame) -> go.Figure:
    """Draw the coefficients of one stack with their intervals: a colour and a symbol per perturbation."""
    known = rows.drop_nulls(["rho", "low", "high"])
    names = known["perturb"].unique(maintain_order=True).to_list()
    colours = theme.colours_for(names)
    traces = []
    placed = known.with_row_index("place")
    for name, symbol in zip(names, cycle(theme.SYMBOLS), strict=False):
        part = placed.filter(perturb=name)
        low, mid, high = (part[column].to_numpy() for column in ("low", "rho", "high"))
        told = zip(mid, low, high, part["n"], strict=True)
        said = [text.escape(f"{each}, {asked(name)}") for each in part["diagnostic"]]
        hover = [
            f"{of}<br>{at:+.2f} [{a:+.2f}, {b:+.2f}], n = {n:,}"
            for of, (at, a, b, n) in zip(said, told, strict=True)
        ]
        traces.append(
            theme.scatter(
                text.escape(asked(name)), mid, part["place"].to_list(), hover=hover,
                marker={"color": colours[name], "size": 10, "symbol": symbol},
                error_x=theme.whiskers(low, mid, high, thickness=1),
            )
        )  # fmt: skip
    figure = theme.figure(traces, x="Spearman's rho", height=200 + 32 * known.height)
    theme.name_rows(figure, known["diagnostic"].to_list(), wide=NARROW)
    figure.add_vline(x=0, line={"color": theme.NEUTRAL, "width": 1})
    return figure
