"""Section Drift: whether live traffic still looks the same, by numbers that need no judgements.

The T measure's paper (recall_t_measure, Limitations) proposes T and F_e for monitoring: they
need the relevance of the retrieved passages only. If traces are judged,
their means are shown beside the drift of a proxy, window by window.
"""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.analysis.cache import cached
from core.analysis.families import Option, available
from core.analysis.workspace.scores import at_cutoff, evidence
from core.analysis.workspace.view import View
from core.arrays import Floats, Rows
from core.importers.samples import ASKED_AT
from core.metrics import Measure
from core.stats.drift import HOURS, LEAST, LEAST_SESSIONS, clustered_mean, drift, sessions_of, windows
from core.views import text, theme

NAME = "drift"
_SESSIONS = ("session", "user")  # Kinds of groups whose queries are asked together
WORDS, FOUND = "words of the query", "passages found"
JUDGED = ("T", "F_e")
"""Measures of the T paper that need only the grades of the retrieved passages."""
NOTHING = "No queries with a date yet."
WAY_OUT = (
    "Import traces from LangSmith, Phoenix or Langfuse (`python -m core import traces.json`), or try the "
    "workspace python-names of `python -m core demo --measure`, whose questions have a date."
)
LIMITS = (
    "A drift says that queries or scores are others than at first, not that retrieval is worse; retrieval "
    "can get worse without one. Judge some traces of a window: T and F_e then stand beside it."
)
HOW = (
    "Windows follow one another and hold as many queries each; the first is the reference. Each is compared "
    f"with it at the same hours of the day ({HOURS} hours together from two days on), so a daily cycle is no "
    "drift. Shift: difference of means with its 95 % interval. Drifted: Kolmogorov–Smirnov distance of "
    "p < 0.05 where whole sessions are dealt anew, corrected for the number of windows (Holm). Below "
    f"{LEAST} queries or {LEAST_SESSIONS} sessions at hours of both nothing is compared. Unknown sessions: "
    "runs of queries, as long as queries that follow one another are alike."
)
_SHORT_S = 120  # Windows shorter than this on average are shown to the millisecond
_TELLABLE = 0.0001  # Smallest p shown
MARKS = "Diamond: drifted. Dotted: the first window. Bars: 95 % of the mean."
ABOUT_PROXY = "A number that is known of every query without a judgement."


@cached()
def timed(view: View) -> dict[str, str]:
    """Return the stacks whose queries have timestamps, as name → run_id."""
    runs = view.snapshot.runs(view.scope.collection_id).select("run_id", "label")
    chosen = set(view.table["run_id"]) if view.table.height else set(runs["run_id"])
    known = set(view.snapshot.signals(runs["run_id"].to_list(), signal=ASKED_AT)["run_id"])
    return {label: run_id for run_id, label in runs.iter_rows() if run_id in known & chosen}


@cached("Reading what is known of every query…", entries=16)
def proxies(view: View, run_id: str) -> pl.DataFrame:
    """Return query_id, at (seconds since 1970), session and a column per proxy; null = unknown."""
    asked = view.snapshot.signals([run_id], signal=ASKED_AT).select("query_id", at="value")
    texts = view.snapshot.queries(view.scope.collection_id).select(
        "query_id", pl.col("text").str.split(" ").list.len().cast(pl.Float64).alias(WORDS)
    )
    ranked = view.snapshot.rankings([run_id], stage="final").group_by("query_id")
    counts = ranked.agg(pl.len().cast(pl.Float64).alias(FOUND))
    table = asked.join(texts, on="query_id", how="left").join(counts, on="query_id", how="left")
    for signal in available(view.snapshot, Option("", run_id, None), view.scope.collection_id):
        if signal.values:
            own = pl.DataFrame({"query_id": list(signal.values), signal.label: list(signal.values.values())})
            table = table.join(own, on="query_id", how="left")
    told = view.snapshot.clusters(view.scope.collection_id).filter(pl.col("kind").is_in(_SESSIONS))
    session = told.sort("kind").unique("query_id", keep="first").select("query_id", session="cluster")
    return table.join(session, on="query_id", how="left").sort("at", "query_id")


@cached("Comparing windows…", entries=32)
def drifted(view: View, run_id: str, proxy: str, count: int) -> pl.DataFrame:
    """Compare windows: `DRIFT`, and mean, low, high and n of T and F_e over the judged queries."""
    table = proxies(view, run_id).drop_nulls(["at", proxy])
    values, at = table[proxy].cast(pl.Float64).to_numpy(), table["at"].to_numpy()
    session = None if table["session"].has_nulls() else table["session"].to_numpy()
    rows = drift(values, at, count, session=session, seed=view.seed)
    asked = np.arange(len(at)) if session is None else sessions_of(values, at, session)
    of = windows(at, count, asked)
    for name, by_query in _judged(view, run_id).items():
        values = np.array([by_query.get(query_id, np.nan) for query_id in table["query_id"]])
        told = [
            _mean(name, values[part], asked[part]) for window in rows["window"] for part in [of == window - 1]
        ]
        rows = rows.hstack(pl.DataFrame(told, schema=_columns(name)))
    return rows


def _columns(name: str) -> dict[str, pl.DataType]:
    floats: dict[str, pl.DataType] = dict.fromkeys((name, f"{name}_low", f"{name}_high"), pl.Float64())
    return {**floats, f"{name}_n": pl.Int32()}


def _mean(name: str, values: Floats, asked: Rows) -> dict[str, float | int | None]:
    """Return the mean of a measure over the judged queries of a window; null if there are none."""
    known = np.isfinite(values)
    if not known.any():
        return {f"{name}_n": 0}
    found = clustered_mean(values[known], asked[known])
    return {
        name: found["mean"],
        f"{name}_n": int(known.sum()),
        **{f"{name}_{end}": found[end] for end in ("low", "high")},
    }


def _judged(view: View, run_id: str) -> dict[str, dict[str, float]]:
    """Return T and F_e of the judged queries at the cutoff; empty if there is no golden set."""
    nothing: dict[str, dict[str, float]] = {name: {} for name in JUDGED}
    if view.scope.golden_set_id is None:
        return nothing
    measures = [Measure(name).at(view.quality.k) for name in JUDGED]
    graded = evidence(view.snapshot, [run_id], view.scope.golden_set_id, measures)
    if not graded.query_ids:
        return nothing
    found = {measure.name: at_cutoff(graded, measure)[0] for measure in measures}
    return {
        name: {key: float(value) for key, value in zip(graded.query_ids, values, strict=True)}
        for name, values in found.items()
    }


def answer(rows: pl.DataFrame, proxy: str) -> str:
    """Say which windows drifted from the first, and by at most how much."""
    compared = rows.drop_nulls("shift")
    n = f"n = {sample(rows)}"
    if compared.is_empty():
        return f"Too few queries to tell a drift of {proxy} ({n})."
    gone = compared.filter("drifted").sort(pl.col("distance"), descending=True)
    windows_of = text.count(compared.height, "window")
    if gone.is_empty():
        return f"No drift of {proxy} in {windows_of} ({n})."
    row = gone.row(0, named=True)
    ends = f" [{_signed(row['shift_low'])}, {_signed(row['shift_high'])}]"
    return f"{gone.height} of {windows_of} drifted: {proxy} by {_signed(row['shift'])}{ends} ({n})."


def sample(rows: pl.DataFrame) -> str:
    """State the sample: queries, and groups if they hold several: ``400 queries from 80 groups``."""
    queries, sessions = (int(rows[name].sum()) for name in ("n", "sessions"))
    said = text.count(queries, "query", "queries")
    return said if sessions == queries else f"{said} from {text.count(sessions, 'group')}"


def _signed(value: float) -> str:
    return text.signed(value, "{:.3g}".format)


def dated(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the start and end of each window, in words (UTC), and whether it drifted."""
    words = {True: "yes", False: "no", None: ""}
    begins, ends = rows["begin"].to_list(), rows["end"].to_list()
    fine = bool(begins) and max(ends) - min(begins) < _SHORT_S * len(begins)
    return rows.with_columns(
        pl.Series("from", [_date(at, fine=fine) for at in begins], dtype=pl.String),
        pl.Series("to", [_date(at, fine=fine) for at in ends], dtype=pl.String),
        pl.Series("p_said", [_p(value) for value in rows["p"]], dtype=pl.String),
        pl.Series("verdict", [words[value] for value in rows["drifted"]], dtype=pl.String),
    )


def dates(at: pl.Series) -> pl.Series:
    """Format times, in seconds since 1970, to the minute (UTC)."""
    return pl.Series("asked", [_date(value, fine=False) for value in at], dtype=pl.String)


def _p(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}" if value >= _TELLABLE else f"< {_TELLABLE}"


def _date(at: float, *, fine: bool) -> str:
    when = datetime.fromtimestamp(at, UTC)
    return when.isoformat(" ", "milliseconds" if fine else "minutes")[: 23 if fine else 16]


def chart(rows: pl.DataFrame, proxy: str) -> go.Figure:
    """Draw the mean of a proxy by window with its interval, and the reference's; T and F_e below if known."""
    known = [name for name in JUDGED if name in rows.columns and rows[name].is_not_null().any()]
    titles = [text.escape(proxy), *known]
    panels = theme.Panels(titles, across=1, x="window", height=220)
    for place, name in enumerate(("mean", *known)):
        low, high = ("low", "high") if name == "mean" else (f"{name}_low", f"{name}_high")
        some = rows.drop_nulls(name)
        panels.add(place, _line(some, name, low, high, titles[place]))
        first = some.filter(window=1)
        if first.height:
            line = {"color": theme.NEUTRAL, "width": 1, "dash": "dot"}
            panels.figure.add_hline(y=float(first[name][0]), line=line, **panels.at(place))
    return panels.figure.update_layout(showlegend=False).update_xaxes(dtick=max(1, rows.height // 12))


def _line(rows: pl.DataFrame, name: str, low: str, high: str, title: str) -> theme.Spec:
    ends = [rows[column].fill_null(rows[name]).to_numpy() for column in (low, name, high)]
    gone = [bool(value) and name == "mean" for value in rows["drifted"]]
    colours = [theme.ACCENT if value else theme.FRONTIER for value in gone]
    symbols = ["diamond" if value else "circle" for value in gone]
    hover = [
        f"window {at}: {value:.4g}, n = {n:,}{', drifted' if moved else ''}"
        for at, value, n, moved in zip(rows["window"], rows[name], rows["n"], gone, strict=True)
    ]
    return theme.scatter(
        title, [f"{at}" for at in rows["window"]], rows[name].to_numpy(), hover=hover, mode="lines+markers",
        line={"color": theme.NEUTRAL, "width": 1}, marker={"color": colours, "symbol": symbols, "size": 10},
        error_y=theme.whiskers(*ends, thickness=1), showlegend=False,
    )  # fmt: skip
