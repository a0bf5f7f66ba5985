"""Dynamic cut-offs beside a fixed K: what each keeps of a ranking, and how good that is (metrics.md §6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
import polars as pl

from core.metrics.info import rel_param
from core.pipeline.ranking.cut import CUTS, CutReport, cut_report, keep
from core.stats.intervals import bootstrap_means
from core.store import Snapshot
from core.views import text, theme
from core.views.curves.sent import Running, running_tokens
from core.views.workspace.query_sets import among
from core.views.workspace.scope import Scope
from core.views.workspace.scores import Evidence, evidence

FIXED = (5, 10, 20, 50)
REL = int(rel_param().default)
COLUMNS = {
    "way": pl.String(),
    "dynamic": pl.Boolean(),
    **dict.fromkeys(("precision", "recall", "f1", "f1_low", "f1_high", "kept", "tokens"), pl.Float64()),
    "n": pl.Int32(),
}


@dataclass(frozen=True)
class Cuts:
    """Ways to cut the rankings of one stack."""

    # `COLUMNS`, one row per way: means over n queries; kept in passages, tokens null where the text of a
    # passage is missing
    rows: pl.DataFrame
    left_out: str  # why queries were left out, or why there are no rows; empty when all count


def cuts(snapshot: Snapshot, scope: Scope, run_id: str, *, counts: str, fixed: int) -> Cuts:
    """Cut every ranking of a run by every method, and at fixed depths.

    Args:
        counts: What counts tokens; see `core.views.curves.sent.vocabulary`.
        fixed: A depth to show besides the usual ones.

    Returns:
        Precision, recall and F1 of what is kept (grade 4 and better is relevant), averaged over the queries
        that have anything relevant and whose scores order the ranking.
    """
    runs = snapshot.runs().filter(pl.col("run_id") == run_id, "has_rankings")
    if scope.golden_set_id is None or runs.is_empty():
        return Cuts(pl.DataFrame(schema=COLUMNS), "Cutting needs rankings with scores, and judgements.")
    only = among(snapshot, scope)
    found = evidence(snapshot, [run_id], scope.golden_set_id, only=only)
    grades, relevant = found.grades[0], _relevant(found)
    scores = _scores(snapshot, run_id, found)
    deep = (grades >= 0).sum(axis=1)
    usable = [_descending(scores[row, : deep[row]]) for row in range(len(deep))]
    counted = np.array(usable) & (relevant > 0)
    if not counted.any():
        return Cuts(pl.DataFrame(schema=COLUMNS), "No ranking here has scores that it is ordered by.")
    rows = np.flatnonzero(counted)
    ways = _ways(scores[rows], deep[rows], fixed)
    kept = np.stack(list(ways.values()))
    report = cut_report(kept, grades[rows], relevant[rows], threshold=REL)
    running = running_tokens(snapshot, runs, counts, depth=grades.shape[1], only=only).get(run_id)
    queries = [found.query_ids[row] for row in rows]
    table = _table(tuple(ways), report, _tokens(running, queries, kept))
    missing = int((relevant > 0).sum() - len(rows))
    words = f"{text.count(missing, 'query has', 'queries have')} no scores to cut by." if missing else ""
    return Cuts(table, words)


def _relevant(found: Evidence) -> npt.NDArray[np.int64]:
    """Return how many relevant passages every query has [queries]."""
    counts = found.pool_counts if found.pool_counts.ndim == 2 else found.pool_counts[0]
    relevant: npt.NDArray[np.int64] = counts[:, REL - 1 :].sum(axis=1).astype(np.int64)
    return relevant


def _scores(snapshot: Snapshot, run_id: str, found: Evidence) -> npt.NDArray[np.float64]:
    """Return the scores of the final ranking [queries, depth]; NaN = none."""
    places = {query: row for row, query in enumerate(found.query_ids)}
    rows = snapshot.rankings([run_id], stage="final").filter(
        pl.col("query_id").is_in(list(places)), pl.col("rank") <= found.grades.shape[2]
    )
    made = np.full(found.grades.shape[1:], np.nan)
    query = rows["query_id"].replace_strict(places, return_dtype=pl.Int64).to_numpy()
    made[query, rows["rank"].to_numpy() - 1] = rows["score"].fill_null(np.nan).to_numpy()
    return made


def _descending(scores: npt.NDArray[np.float64]) -> bool:
    return bool(len(scores) and np.isfinite(scores).all() and (np.diff(scores) <= 0).all())


def _ways(
    scores: npt.NDArray[np.float64], deep: npt.NDArray[np.int64], fixed: int
) -> dict[str, npt.NDArray[np.int64]]:
    """Return how many passages each way keeps of every query's ranking."""
    ks = sorted({k for k in (*FIXED, fixed) if k < deep.max()})
    made = {f"K = {k}": np.minimum(k, deep) for k in ks} | {"everything": deep}
    for name in CUTS:
        cut = {"method": name}
        made[name] = np.array([keep(cut, row[:size]) for row, size in zip(scores, deep, strict=True)])
    return made


def _tokens(
    running: Running | None, queries: list[str], kept: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Return the mean tokens that each way sends [ways]; NaN = unknown."""
    if running is None:
        return np.full(len(kept), np.nan)
    places = {query: row for row, query in enumerate(running.query_ids)}
    rows = [places[query] for query in queries]
    sent: npt.NDArray[np.float64] = running.tokens[rows, np.maximum(kept, 1) - 1].mean(axis=1)
    return sent


def _table(ways: tuple[str, ...], report: CutReport, tokens: npt.NDArray[np.float64]) -> pl.DataFrame:
    low, high = bootstrap_means(report.f1)
    means = {name: getattr(report, name).mean(axis=1) for name in ("precision", "recall", "f1", "kept")}
    made = {"way": ways, "dynamic": [way in CUTS for way in ways], **means, "f1_low": low, "f1_high": high}
    made |= {"tokens": tokens, "n": [report.f1.shape[1]] * len(ways)}
    return (
        pl.DataFrame(made).select(pl.col(name).cast(dtype) for name, dtype in COLUMNS.items()).fill_nan(None)
    )


def figure(rows: pl.DataFrame) -> go.Figure:
    """F1 against the passages kept: fixed depths as a line, every dynamic cut-off as a mark of its own."""
    fixed, dynamic = (rows.filter(pl.col("dynamic") == wanted) for wanted in (False, True))
    traces = [_marks(fixed.sort("kept"), "fixed K", "lines+markers", 0)]
    traces += [
        _marks(dynamic.filter(pl.col("way") == way), way, "markers", place)
        for place, way in enumerate(dynamic["way"], start=1)
    ]
    return theme.figure(traces, x="passages kept (mean)", y="F1 of what is kept", height=380)


def _marks(rows: pl.DataFrame, name: str, mode: str, place: int) -> go.Scatter:
    colour = theme.OKABE_ITO[place]
    return go.Scatter(
        x=rows["kept"].to_numpy(),
        y=rows["f1"].to_numpy(),
        name=name,
        mode=mode,
        line={"color": colour},
        marker={"size": 11, "color": colour, "symbol": theme.SYMBOLS[place % len(theme.SYMBOLS)]},
        customdata=rows["way"].to_list(),
        hovertemplate="%{customdata}<br>%{x:.1f} kept: F1 %{y:.3f}<extra></extra>",
    )
