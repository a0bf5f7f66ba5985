"""Page Latency: loss of an approximate index against the exact one, by stack (CLQ paper, §5.3, Table 7)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.analysis.cache import cached
from core.analysis.workspace.clusters import groups
from core.analysis.workspace.pools import EMPTY_SLOT
from core.analysis.workspace.query_sets import among
from core.analysis.workspace.scores import at_cutoff, evidence, furthest
from core.analysis.workspace.telling import approximate
from core.analysis.workspace.view import View
from core.arrays import Floats
from core.axes import stack_key
from core.metrics import ratio_of_means
from core.stats.intervals import Labels, Sample, weights
from core.stats.means import student
from core.views import columns as cols
from core.views import text, theme
from core.views.ask import Ask
from core.views.blocks import Answer, Blocks, Cards, Chart, Table, section
from core.views.within import beyond

FLAT = "flat"
CUTOFFS = (10, 30)
"""Cutoffs at which a setting must keep flat's quality, besides the workspace's own (CLQ paper, §5.3)."""
EFFORTS = ("efSearch", "ef_search", "nprobe", "probes", "num_candidates", "rescore", "oversample")
"""Options of indexes that set the search effort."""
_IN_MEMORY = ("efSearch", "nprobe")  # for index kinds whose runs record all options
_OF_METHOD = {"hnsw": "ef_search", "ivfflat": "probes", "ivf_pq": "probes"}  # for databases
_PLACES = ("url_env", "key_env", "build_mb")  # which don't change the results
NOTHING = "No stack here has a twin with a flat index to compare with."
NEEDS = "`python -m core indexes tune --kinds hnsw-f32,ivf-flat` runs others beside a flat one."
ABOUT = "Percent of the flat index's quality that may be lost at the worse end of the 95 % interval."
HOW = (
    "Percent of flat: mean quality over that of the same stack on a flat index, on the same queries; paired "
    "95 % bootstrap. A setting passes where the worse end loses no more than acceptable, at the workspace's "
    "cutoff and at @10 and @30 as far as flat was ranked, and its %PROC, the share of what its own "
    "candidates at this K allow, is no lower than flat's by more than that: the pool may have changed, not "
    "only its order. The one that searches most is tried first, and below the first whose loss is not surely "
    "acceptable none passes. Of those of a kind that are built alike and pass, the one that searches least "
    "counts; the fastest of these is recommended."
)
TUNED = (
    "family",
    "name",
    "index",
    "options",
    "effort",
    "percent",
    "low",
    "high",
    *(f"{name}_{k}" for k in CUTOFFS for name in ("percent", "low", "high")),
    "pct_proc",
    "flat_proc",
    "n",
    "clusters",
    "cluster_kind",
    "latency_ms",
)
"""Columns of the chosen setting."""
APART = 1.1  # Ratio of two latencies below which they are drawn as equal: noise of timing


def family_of(spec: Mapping[str, Any]) -> str:
    """Return the part of a specification shared by stacks that differ only in their index."""
    return stack_key({name: value for name, value in spec.items() if name not in ("index", "index_params")})


def effort_of(spec: Mapping[str, Any], told: Mapping[str, Any] | None = None) -> float | None:
    """Return the search effort of the index, or None if it is left to the engine.

    Args:
        spec: Specification of the stack.
        told: The run's record of its indexes, by kind: defaults that the stack leaves out.
    """
    usual = (told or {}).get(str(spec.get("index")), {})
    own = _OF_METHOD.get(str(usual.get("method")), "")
    options = {name: usual.get(name) for name in (*_IN_MEMORY, own)} | (spec.get("index_params") or {})
    known = [options[name] for name in (own, *EFFORTS) if isinstance(options.get(name), int | float)]
    return float(known[0]) if known else None


def options_of(spec: Mapping[str, Any]) -> str:
    """Describe an index's build and search options except the effort; efforts compare only within these."""
    given = spec.get("index_params") or {}
    rest = {name: value for name, value in given.items() if name not in (*EFFORTS, *_PLACES)}
    return ", ".join(f"{name} {rest[name]}" for name in sorted(rest))


def percent(
    own: Floats, flat: Floats, seed: int, clusters: Labels | None = None
) -> tuple[float, float, float, int]:
    """Return 100 · mean(own) / mean(flat) over queries with both, with its paired interval and n.

    Args:
        clusters: [Q], equal within a group of queries: Student's t of their sums; None = each is independent.
    """
    both = ~(np.isnan(own) | np.isnan(flat))
    n = int(both.sum())
    if not n or not flat[both].sum():
        return np.nan, np.nan, np.nan, n
    top, bottom = own[both], flat[both]
    value = 100 * top.sum() / bottom.sum()
    if clusters is not None:
        sample = Sample.ratios(100 * top, bottom, clusters[both])
        (low,), (high,) = student(sample.parts(), sample.bottom, 0.025)
        return (value, low, high, n) if sample.enough()[0] else (value, np.nan, np.nan, n)
    if n < 2:
        return value, np.nan, np.nan, n
    drawn = weights(n, seed=seed)
    sums = drawn @ bottom
    ratios = 100 * (drawn @ top)[sums > 0] / sums[sums > 0]
    low, high = np.quantile(ratios, [0.025, 0.975])
    return float(value), float(low), float(high), n


def percent_of_own(view: View, run_ids: list[str]) -> dict[str, float | None]:
    """Return %PROC of each run at its own K, so that two indexes are compared on pools of one depth."""
    ranked = view.table.filter(pl.col("run_id").is_in(run_ids) & pl.col("has_rankings"))["run_id"].to_list()
    measure, ceiling, golden = view.quality.measure, view.quality.ceiling, view.scope.golden_set_id
    if not ranked or measure is None or ceiling is None or golden is None:
        return {}
    only = among(view.snapshot, view.scope)
    graded = evidence(view.snapshot, ranked, golden, (measure, ceiling), only=only, own_pools=True)
    shares = ratio_of_means(*(at_cutoff(graded, each)[..., None] for each in (measure, ceiling)))[..., 0]
    found = pl.Series(shares).fill_nan(None).to_list()
    return dict(zip(graded.run_ids, found, strict=True))


@dataclass(frozen=True)
class _At:
    """Quality at one cutoff, by run and query."""

    name: str  # suffix of its columns; "" for the cutoff of the workspace
    values: Mapping[str, Floats]
    clusters: Labels | None


def _beyond_own(view: View, run_ids: Sequence[str]) -> Iterator[_At]:
    """Yield quality at each of `CUTOFFS`, for runs that ranked that far themselves or in another run."""
    measure, golden = view.quality.measure, view.scope.golden_set_id
    table = view.table.filter(pl.col("run_id").is_in(list(run_ids)) & pl.col("has_rankings"))
    kept = furthest(view.snapshot, table["run_id"].to_list(), golden)
    if measure is None or golden is None or not kept:
        return
    runs = list(dict.fromkeys(kept.values()))
    wanted = [measure.at(k) for k in CUTOFFS]
    graded = evidence(view.snapshot, runs, golden, wanted, only=among(view.snapshot, view.scope))
    ranked = (graded.grades != EMPTY_SLOT).any(axis=1)
    row = {run: place for place, run in enumerate(graded.run_ids)}
    clusters = groups(view.snapshot, view.scope).labels(graded.query_ids)
    for k, one in zip(CUTOFFS, wanted, strict=True):
        scores = at_cutoff(graded, one)
        far = ranked[:, k - 1] if ranked.shape[1] >= k else np.zeros(len(ranked), dtype=bool)
        values = {run: scores[row[other]] for run, other in kept.items() if far[row[other]]}
        yield _At(f"_{k}", values, clusters)


def _groups(clusters: Labels | None, values: Floats) -> int | None:
    return None if clusters is None else len(np.unique(clusters[~np.isnan(values)]))


def _kept(cutoffs: Sequence[_At], own: str, flat: str, seed: int) -> dict[str, Any]:
    """Return percent of flat, with its ends, at every cutoff within flat's depth."""
    found: dict[str, Any] = {}
    for at in cutoffs:
        if own in at.values and flat in at.values:
            one, other = at.values[own], at.values[flat]
            share, low, high, n = percent(one, other, seed, at.clusters)
            found |= {f"percent{at.name}": share, f"low{at.name}": low, f"high{at.name}": high}
            if not at.name:
                found["n"] = n
                found["clusters"] = _groups(at.clusters, one + other)
    return found


@cached("Holding indexes against flat ones…", entries=16)
def losses(view: View) -> pl.DataFrame:
    """Compare every approximate index with the flat index of the same stack: `ROWS`."""
    table, paired = view.table, view.paired
    if paired is None:
        return pl.DataFrame(schema=ROWS)
    own_cutoff = _At("", dict(zip(paired.run_ids, paired.values, strict=True)), paired.clusters)
    cutoffs = [own_cutoff, *_beyond_own(view, paired.run_ids)]
    kind = None if paired.clusters is None else groups(view.snapshot, view.scope).kind
    indexes = pl.col("manifest").str.json_path_match("$.indexes")
    reached = percent_of_own(view, list(paired.run_ids))
    told = dict(view.snapshot.runs(view.scope.collection_id).select("run_id", indexes).iter_rows())
    families: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {}
    for row in table.iter_rows(named=True):
        spec = json.loads(row["spec"])
        if spec.get("index") and row["run_id"] in own_cutoff.values:
            families.setdefault(family_of(spec), []).append((row, spec))
    made = []
    for members in families.values():
        exact = next((row for row, spec in members if spec["index"] == FLAT), None)
        for row, spec in members if exact else ():
            if spec["index"] != FLAT and exact is not None:
                own = {"family": exact["name"], "name": row["name"], "index": spec["index"]}
                own |= {"options": options_of(spec) or None, "cluster_kind": kind}
                effort = effort_of(spec, json.loads(told.get(row["run_id"]) or "{}"))
                figures = _kept(cutoffs, row["run_id"], exact["run_id"], view.seed)
                sides = {"effort": effort, "quality": row["quality"], "flat": exact["quality"]}
                if row["candidates"] == exact["candidates"]:  # pools of two depths aren't comparable
                    sides |= {"pct_proc": reached.get(row["run_id"], row["pct_proc"])}
                    sides |= {"flat_proc": reached.get(exact["run_id"], exact["pct_proc"])}
                sides |= {"latency_ms": row["latency_ms"], "flat_ms": exact["latency_ms"]}
                made.append({**own, **figures, **sides})
    return pl.DataFrame(made, schema=ROWS).fill_nan(None)


def passing(
    rows: pl.DataFrame,
    bearable: float,
    *,
    higher_is_better: bool = True,
    reasons: Mapping[str, str] = MappingProxyType({}),
) -> pl.DataFrame:
    """Mark settings that pass, and the one taken per family: columns passes, beyond and taken.

    Efforts of different kinds or builds aren't comparable: the least of each is kept, then the fastest one.
    Settings of one kind and build are tried from the largest effort down, and none passes below the first
    that fails, so a false pass is no more likely than in a single test (Westfall & Krishen 2001, fixed
    sequence). Each must hold at every cutoff, which needs no correction because all must hold. A setting that
    breaks a limit of the workspace isn't taken.

    Args:
        reasons: The limits that stacks break, by name; see `core.views.within.beyond`.
    """
    steps = ["family", "index", "options"]
    end, sign = ("low", -1) if higher_is_better else ("high", 1)
    lost = [sign * (pl.col(f"{end}{at}") - 100) for at in ("", *(f"_{k}" for k in CUTOFFS))]
    worst = pl.when(lost[0].is_not_null()).then(pl.max_horizontal(lost))
    kept = (pl.col("pct_proc") >= pl.col("flat_proc") - bearable / 100).fill_null(value=True)
    broken = pl.Series([reasons.get(name) for name in rows["name"]], dtype=pl.String)
    sure = (pl.col("lost") <= bearable).fill_null(value=False).cast(pl.Int8)
    in_turn = sure.cum_min().over(steps, order_by=-pl.col("effort").fill_null(-1)) == 1
    marked = rows.with_columns(lost=worst, beyond=broken).with_columns(passes=in_turn & kept)
    best = (
        marked.filter("passes", pl.col("beyond").is_null())
        .sort("effort", "latency_ms", nulls_last=True)
        .unique(steps, keep="first", maintain_order=True)
        .sort("latency_ms", "effort", nulls_last=True)
        .group_by("family", maintain_order=True)
        .agg(pl.col("name").first().alias("taken"))
    )
    joined = marked.join(best, on="family", how="left", maintain_order="left")
    return joined.with_columns(taken=(pl.col("taken") == pl.col("name")).fill_null(value=False))


def taken_words(marked: pl.DataFrame, bearable: float, cutoff: int) -> Iterator[str]:
    """Yield a sentence per family: the setting taken, with its percent of flat, or that none is."""
    for (family,), part in marked.group_by("family", maintain_order=True):
        taken = part.filter("taken")
        if taken.is_empty():
            some = text.count(part.height, "setting")
            limits = " within your limits" if part["beyond"].count() else ""
            held = everywhere(part, cutoff)
            yield f"{family}: none of {some} surely keeps {100 - bearable:g} % of flat {held}{limits}."
            continue
        row = taken.row(0, named=True)
        at = "" if row["effort"] is None else f"looking at {row['effort']:g} "
        at += f"with {row['options']} " if row["options"] else ""
        yield (
            f"{family}: {at}surely keeps {100 - bearable:g} % {everywhere(taken, cutoff)}: "
            f"{row['percent']:.1f} %{ends(row)} of flat{elsewhere(row, cutoff)}, {text.sample(row)}; "
            f"%PROC {row['pct_proc']:.3f}, flat {row['flat_proc']:.3f}."
        )


def everywhere(rows: pl.DataFrame, cutoff: int) -> str:
    """Name the cutoffs at which some rows are compared with flat: ``@10 and @30``."""
    known = [k for k in CUTOFFS if k != cutoff and rows[f"percent_{k}"].count()]
    return " and ".join(f"@{k}" for k in sorted([cutoff, *known]))


def elsewhere(row: Mapping[str, Any], cutoff: int) -> str:
    """Return a setting's percent of flat at each of `CUTOFFS` except the workspace's own."""
    others = [k for k in CUTOFFS if k != cutoff and row[f"percent_{k}"] is not None]
    return "".join(f", {row[f'percent_{k}']:.1f} %{ends(row, f'_{k}')} @{k}" for k in others)


@section(
    "index loss", "How much quality does an approximate index lose, and which setting is safe?", approximate
)
def index_loss(view: View, ask: Ask) -> Blocks:
    """Yield percent of flat by index and stack, and the cheapest setting whose loss is surely acceptable."""
    rows = losses(view)
    if rows.is_empty():
        yield Answer(NOTHING, NEEDS)
        return
    bearable = ask.number("Acceptable loss (%)", "ixloss", 2.0, 0.0, 50.0, step=0.5, about=ABOUT) or 0.0
    higher = view.quality.higher_is_better
    marked = passing(rows, bearable, higher_is_better=higher, reasons=beyond(view))
    by_kind = kinds(marked)
    cutoff = view.quality.k
    said = answer(by_kind, view.quality.name)
    sure = f"the worse end of the 95 % interval loses at most {bearable:g} %"
    yield Answer(said, f"Safe: {sure}, {everywhere(rows, cutoff)}.", caveats={"how to read": HOW})
    yield Cards(
        [
            (
                row["index"],
                f"{row['percent']:.1f} % of flat",
                f"{_safe(row['passing'], row['stacks'])}; {asked(marked.filter(index=row['index']))}",
            )
            for row in by_kind.head(4).iter_rows(named=True)
        ]
    )
    yield Chart(chart(marked, bearable, cutoff), "index_loss", said)
    words = [
        pl.when(pl.col(name)).then(pl.lit("yes")).otherwise(pl.lit("no")).alias(name)
        for name in ("passes", "taken")
    ]
    yield Table(marked.with_columns(words), SHOWN)


def asked(rows: pl.DataFrame) -> str:
    """State how many queries the stacks of some rows were asked."""
    counts: list[int] = rows["n"].to_list()
    few, most = min(counts), max(counts)
    return f"n = {few}" if few == most else f"n = {few} to {most}"


def kinds(marked: pl.DataFrame) -> pl.DataFrame:
    """Aggregate by kind of index: mean percent of flat, stacks, number that pass."""
    passing_ones = pl.col("passes").sum().alias("passing")
    grouped = marked.group_by("index").agg(pl.col("percent").mean(), pl.len().alias("stacks"), passing_ones)
    return grouped.sort("percent", "index", descending=[True, False])


def answer(by_kind: pl.DataFrame, quality: str) -> str:
    """Say which kinds keep most of flat's quality, and how many stacks are safe."""
    kept = [f"{percent:.1f} %" for percent in by_kind["percent"]]
    best = by_kind["index"].to_list()[: kept.count(kept[0])]
    who = f"{best[0]} keeps" if len(best) == 1 else f"{' and '.join(best[:2])} keep"
    safe, every = (int(by_kind[name].head(len(best)).sum()) for name in ("passing", "stacks"))
    return f"{who} {kept[0]} of the flat index's {quality}: {_safe(safe, every)}."


def _safe(safe: int, every: int) -> str:
    """Say how many of some settings are safe."""
    return {0: "not safe", every: "safe"}.get(safe, f"{safe} of {every} safe")


def chart(marked: pl.DataFrame, bearable: float, cutoff: int) -> go.Figure:
    """Draw percent of flat with its interval, a colour and symbol per kind of index.

    Across is the latency, or one place per stack where it is unknown or the same for all.
    """
    ordered = marked.sort("index", "percent").with_row_index("place")
    took = ordered["latency_ms"]
    timed = not took.null_count() and (took > APART * took.to_numpy().min()).any()
    traces = []
    for number, (kind,) in enumerate(ordered.select("index").unique(maintain_order=True).iter_rows()):
        part = ordered.filter(pl.col("index") == kind)
        colour = theme.OKABE_ITO[number % len(theme.OKABE_ITO)]
        hover = [
            f"{text.escape(row['name'])}<br>{row['percent']:.1f} %{ends(row)}{elsewhere(row, cutoff)}, "
            f"{text.sample(row)}"
            for row in part.iter_rows(named=True)
        ]
        low, at, high = (part[end].to_numpy() for end in ("low", "percent", "high"))
        marker = {"color": colour, "symbol": theme.SYMBOLS[number % len(theme.SYMBOLS)], "size": 8}
        bars = theme.whiskers(low, at, high, color=colour, thickness=1)
        traces.append(
            theme.scatter(
                text.escape(kind),
                part["latency_ms" if timed else "place"].to_numpy(),
                at,
                hover=hover,
                marker=marker,
                error_y=bars,
            )
        )
    across = "latency (ms)" if timed else "one mark per stack"
    drawn = theme.figure(traces, x=across, y="% of flat", height=240)
    drawn.add_hline(y=100 - bearable, line={"dash": "dot", "width": 1, "color": theme.NEUTRAL})
    return drawn.update_xaxes(showticklabels=timed)


def ends(row: Mapping[str, Any], at: str = "") -> str:
    """Format the interval at a cutoff, given by the suffix of its columns."""
    low, high = row[f"low{at}"], row[f"high{at}"]
    return "" if low is None else f" [{low:.1f}, {high:.1f}]"


SHOWN = cols.Rows(
    "index_loss",
    cols.text("name", "stack", width=250),
    cols.text("index", width=90),
    cols.text("options", help="Those not as usual, beside the search effort.", width=120),
    cols.count("effort", "search effort", "efSearch, probes or their like; empty = as the engine has it."),
    cols.points("percent", "% of flat", "Quality over that of the same stack on a flat index."),
    cols.points("low", "low", "95 % paired bootstrap interval over queries."),
    cols.points("high", "high", "95 % paired bootstrap interval over queries."),
    cols.points("low_30", "low @30", "Of the interval at cutoff 30; empty = not ranked so far."),
    cols.share("pct_proc", "%PROC", "Of what its own candidates at this K allow."),
    cols.text(
        "passes",
        "safe by the 95 % interval",
        "Its worse end loses no more than acceptable, at every cutoff.",
        width=160,
    ),
    cols.text(
        "taken",
        "recommended",
        help="Looks at least of those built alike that pass within your limits, and is the fastest of these.",
        width=90,
    ),
    "n",
    more=(
        "beyond",
        cols.share("flat_proc", "%PROC of flat", "Of what flat's candidates at this K allow."),
        "quality",
        cols.score("flat", "quality of flat"),
        *(
            cols.points(name, f"{said} @{k}", f"At cutoff {k}; empty = not ranked so far.")
            for k in CUTOFFS
            for end, said in (("percent", "% of flat"), ("low", "low"), ("high", "high"))
            if (name := f"{end}_{k}") != "low_30"
        ),
        "latency_ms",
        cols.number("flat_ms", "latency of flat, ms"),
        cols.text("family", "flat stack"),
    ),
    ends="95 % paired bootstrap interval over queries.",
)
_MADE = SHOWN.frame(others="effort:float clusters:int64 cluster_kind").schema
# Made by hand: Polars' own method starts its threads at import, and a process forked later lacks them.
ROWS = pl.Schema({name: kind for name, kind in _MADE.items() if name not in ("passes", "taken", "beyond")})
