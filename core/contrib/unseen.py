"""Page Golden sets: the amount of unjudged relevant evidence, estimated from several retrievers' results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.analysis.cache import cached
from core.analysis.workspace.clusters import FEW_GROUPS, groups
from core.analysis.workspace.query_sets import among
from core.analysis.workspace.scores import at_cutoff, evidence, mean
from core.analysis.workspace.telling import seldom
from core.analysis.workspace.view import View
from core.arrays import Floats
from core.metrics import Measure
from core.stats import captures
from core.stats.captures import MOST_LISTS, Total
from core.stats.intervals import CLUSTERS, SEED, Labels
from core.tables import Row
from core.views import columns as cols
from core.views import text, theme
from core.views.ask import Ask, run_of
from core.views.blocks import Answer, Blocks, Cards, Chart, Fold, Table, Tabs, Text, Way, section

LISTS = (
    "Retrievers whose lists are compared: two captures of the relevant passages, or more. A passage that two "
    "of three or more share with a third tells whether they depend on each other."
)
DEPTH = "How deep a list counts as looked through. By default as deep as 95 % of the lists is judged."
HOW = (
    "Chapman: from how many relevant passages two lists share. Log-linear: three lists or more, averaged "
    "over models of which pairs depend on each other; low where every list misses the same passages. Chao: "
    "from those that one list alone holds; of two lists Chapman's. Extrapolated: from how they grow with the "
    "depth."
)
TWO = (
    "Two lists cannot tell whether they depend on each other. Where they find the same easy passages, there "
    "is more than this; where they complement each other, as words and meaning may, there is less. A third "
    "list of another kind shows it."
)
SAME = "{} find the same passages: Chapman's and Chao's estimates are then a least."
APART = "{} complement each other: Chapman's and Chao's estimates are then a most, no bound from below."
SIGNS: Mapping[int | None, str] = {1: "same passages", -1: "complementary", 0: "not told apart", None: ""}
"""Dependence between two lists; None = undetermined."""
LEAST, MOST, ABOUT, UNSURE = "at least", "at most", "about", "about, which way unknown"
BOUNDS = (
    "As if the unseen passages had the grades of those that were seen, query by query. At most: with the "
    "lower end of the estimate, where no unjudged passage of a stack's own Top-K is relevant. It is no bound "
    "where lists complement each other."
)
EXTRAPOLATED, MODELLED, FIRST_TWO = "extrapolated to any depth", "log-linear", "Chapman, the first two"
JUDGED = 0.95
"""Share of the lists that must be judged for them to count as looked through."""
_DRAWS = 16
_TOTAL = ("total", "total_low", "total_high")
ESTIMATES = cols.Rows(
    "unseen",
    cols.text("method", "estimate"),
    cols.text("side", "there are", "By how the lists depend on each other."),
    cols.count("lists"),
    cols.count("total", "passages", "Relevant, over all queries; at least those judged."),
    "total_low total_high",
    cols.share("missing", "unseen", "Share of them that nobody judged."),
    ends="95 % bootstrap interval.",
)
PAIRS = cols.Rows(
    "captures",
    cols.text("first_list", "list"),
    cols.text("second_list", "and list"),
    cols.count("one", "first alone"),
    cols.count("both"),
    cols.count("other", "second alone"),
    cols.points("odds", "odds ratio", "Among the passages of the other lists; 1 = independent."),
    "odds_low odds_high",
    cols.text("dependence", "the two are", "Where the interval of the odds ratio leaves out 1."),
    ends="95 % bootstrap interval.",
)
_KIND = ("mode", "sparse", "embedder", "dim")


@dataclass(frozen=True, eq=False)
class Unseen:
    """An estimate, from some lists, of the relevant passages that nobody judged."""

    names: tuple[str, ...]  # names of the lists
    known: int  # judged relevant passages
    queries: int  # queries with one
    judged: float  # judged share of the lists, 0..1
    estimates: pl.DataFrame  # columns of `ESTIMATES`
    pairs: pl.DataFrame  # columns of `PAIRS`; odds null if undetermined


def retrievers(view: View) -> pl.DataFrame:
    """Return the comparable stacks: one of each retriever and dimension, the deepest first.

    Only single-retriever stacks count if there are at least two, otherwise all stacks with rankings.
    """
    rows = view.table.filter("has_rankings")
    bare = pl.col("reranker").fill_null("none") == "none"
    single = rows.filter(pl.col("mode").is_in(["sparse", "dense"]) & bare)
    rows = single if single.height > 1 else rows
    made_of = pl.concat_str(
        [pl.col(name).cast(pl.String) for name in _KIND], separator=" ", ignore_nulls=True
    )
    rows = rows.with_columns(_system=pl.when(made_of == "").then("run_id").otherwise(made_of))
    rows = rows.sort("index", "candidates", "dim", descending=[False, True, True], nulls_last=True)
    return rows.unique("_system", keep="first", maintain_order=True)


def usual_lists(offered: pl.DataFrame) -> list[str]:
    """Return one stack per retriever, whatever its dimension, up to the maximum compared."""
    apart = offered.unique(["mode", "sparse", "embedder"], keep="first", maintain_order=True)
    return (apart if apart.height > 1 else offered)["name"].head(MOST_LISTS).to_list()


@cached("Comparing what the lists hold…")
def ranked(view: View, run_ids: tuple[str, ...]) -> pl.DataFrame:
    """Return run_id, query_id, rank and grade (null = unjudged), for the judged queries that count."""
    judged = view.snapshot.within(view.scope.golden_set_id or "").select("query_id", "passage_id", "grade")
    counted = among(view.snapshot, view.scope)
    if counted is not None:
        judged = judged.filter(pl.col("query_id").is_in(list(counted)))
    rows = view.snapshot.rankings(list(run_ids)).filter(pl.col("stage") == "final")
    rows = rows.filter(pl.col("query_id").is_in(judged["query_id"].unique().to_list()))
    return rows.select("run_id", "query_id", "passage_id", "rank").join(
        judged, on=["query_id", "passage_id"], how="left"
    )


def judged_depth(rows: pl.DataFrame) -> int:
    """Return the deepest rank down to which the share `JUDGED` of the lists is judged, or 10 if none is."""
    by_rank = rows.group_by("rank").agg(pl.len(), judged=pl.col("grade").count()).sort("rank")
    share = by_rank["judged"].cum_sum() / by_rank["len"].cum_sum()
    enough = by_rank.filter(share >= JUDGED)["rank"]
    return int(enough.max()) if len(enough) else 10  # type: ignore[arg-type]


@cached("Estimating what nobody saw…")
def unseen(
    view: View, names: tuple[str, ...], run_ids: tuple[str, ...], depth: int, least: int
) -> Unseen | None:
    """Estimate the number of relevant passages; None if the lists contain none."""
    listed = ranked(view, run_ids).filter(pl.col("rank") <= depth)
    asked = sorted(listed["query_id"].unique())
    judged = view.snapshot.within(view.scope.golden_set_id or "")
    known = judged.filter(pl.col("grade") >= least, pl.col("query_id").is_in(asked)).height
    good = listed.filter(pl.col("grade") >= least)
    if good.is_empty():
        return None
    wide = good.pivot("run_id", index=["query_id", "passage_id"], values="rank", aggregate_function="min")
    ranks = [wide[name] if name in wide.columns else pl.Series([None] * wide.height) for name in run_ids]
    held = np.column_stack([rank.is_not_null().to_numpy() for rank in ranks])
    query = wide["query_id"].replace_strict(asked, range(len(asked)), return_dtype=pl.Int64).to_numpy()
    first = wide.select(pl.min_horizontal(pl.col(pl.Int32, pl.Int64, pl.UInt32))).to_series().to_numpy()
    cells = captures.histories(held, query, len(asked))
    alike = groups(view.snapshot, view.scope).labels(asked)
    made = _estimates(cells, _growth(first, query, len(asked), depth), len(names), alike)
    pairs, signs = _pairs(cells, names, alike)
    share = listed["grade"].count() / max(1, listed.height)
    rows = _told(made, known, signs)
    return Unseen(names, known, len(asked), float(share), rows, pairs)


def _told(made: Sequence[tuple[str, int, Total]], known: int, signs: Sequence[int | None]) -> pl.DataFrame:
    rows = [
        (name, _side(name, signs), lists, *(np.maximum([each.value, each.low, each.high], known).tolist()))
        for name, lists, each in made
    ]
    named = pl.DataFrame(rows, schema=["method", "side", "lists", *_TOTAL], orient="row")
    ended = named.with_columns(pl.col(_TOTAL).fill_nan(None))
    return ended.with_columns(missing=1 - known / pl.col("total"))


def _side(method: str, signs: Sequence[int | None]) -> str:
    """Say on which side of the truth an estimate lies, from the signs of the pairs' dependence."""
    if method == EXTRAPOLATED:
        return LEAST
    if method == MODELLED:
        return ABOUT
    told = set(signs[:1] if method == FIRST_TWO else signs)
    if None in told or {1, -1} <= told:
        return UNSURE
    return LEAST if 1 in told else MOST if -1 in told else ABOUT


def _growth(first: Floats, query: np.ndarray, queries: int, depth: int) -> Floats:
    """Return the number of relevant passages in all lists together down to each depth: [queries, depth]."""
    at = np.zeros((queries, depth))
    np.add.at(at, (query, first.astype(np.int64) - 1), 1.0)
    return np.asarray(at.cumsum(axis=1))


def _estimates(
    cells: Floats, growth: Floats, lists: int, alike: Labels | None
) -> list[tuple[str, int, Total]]:
    made = [
        (EXTRAPOLATED, lists, captures.extrapolated(growth, alike)),
        ("Chao, lower bound", lists, captures.chao(cells, alike)),
    ]
    two = captures.chapman(captures.of_lists(cells, (0, 1)), alike)
    if lists == 2:
        return [("Chapman", 2, two), *made]
    modelled = captures.log_linear(cells, alike)
    best = [] if modelled is None else [(MODELLED, lists, modelled)]
    return [*best, (FIRST_TWO, 2, two), *made]


def _pairs(
    cells: Floats, names: Sequence[str], alike: Labels | None
) -> tuple[pl.DataFrame, tuple[int | None, ...]]:
    """Return the pairs of lists, and the sign of each pair's dependence."""
    rows, signs = [], []
    for each in captures.dependences(cells, alike):
        first, second = (names[place] for place in each.pair)
        shared = captures.of_lists(cells, each.pair).sum(axis=0)
        ends = [value if np.isfinite(value) else None for value in (each.odds, each.low, each.high)]
        told = not np.isnan(each.odds) and not (np.isfinite(each.odds) and np.isnan(each.low))
        signs.append(each.sign if told else None)
        rows.append((first, second, shared[1], shared[3], shared[2], *ends, SIGNS[signs[-1]]))
    return PAIRS.frame(rows, "one:float both:float other:float"), tuple(signs)


@cached("Scoring with what nobody saw…")
def bounded(view: View, grown: tuple[float, float], least: int) -> pl.DataFrame:
    """Score the stacks as if there were more relevant passages.

    Args:
        grown: Multiple of the judged number: the minimum, and the estimate.
        least: Minimum grade of a relevant passage.

    Returns:
        name, n and, for the quality, N-Recall and its PROC at the cutoff: the score, `_expected` (by the
        estimate) and `_most` (at the minimum); best first.
    """
    rows = view.table.filter("has_rankings").select("run_id", "name", "n")
    asked = [Measure("N-Recall", view.quality.k, (("rel", least),))]
    measures = {"recall": asked[0], "ceiling": asked[0].renamed(f"PROC[{asked[0].name}]")}
    own = view.quality.measure
    if own is not None and own.info.needs <= {"pool"} and own.info.higher_is_better:
        measures = {"score": own, **measures}
    graded = evidence(
        view.snapshot,
        rows["run_id"].to_list(),
        view.scope.golden_set_id or "",
        measures.values(),
        only=among(view.snapshot, view.scope),
    )
    columns: dict[str, Any] = {"run_id": graded.run_ids}
    for name, measure in measures.items():
        columns[name] = mean(at_cutoff(graded, measure))[0]
        for end, times in zip(("most", "expected"), grown, strict=True):
            more = (replace(graded, pool_counts=counts) for counts in _more(graded.pool_counts, times, least))
            columns[f"{name}_{end}"] = np.mean([mean(at_cutoff(each, measure))[0] for each in more], axis=0)
    scored = pl.DataFrame(columns).with_columns(pl.col(pl.Float64).fill_nan(None))
    return rows.join(scored, on="run_id").sort(
        "score" if own and "score" in columns else "recall", descending=True, nulls_last=True
    )


def _more(counts: np.ndarray, times: float, least: int) -> list[np.ndarray]:
    """Return grade counts with a multiple of the relevant passages, rounded randomly, several times."""
    if times <= 1:
        return [counts]
    drawn, good = np.random.default_rng(SEED), np.arange(1, 6) >= least
    wanted = np.where(good, counts * times, counts)
    return [np.floor(wanted + drawn.random(wanted.shape) * good).astype(counts.dtype) for _ in range(_DRAWS)]


@section("unseen", "How much relevant evidence has nobody seen?", seldom)
def is_unseen(view: View, ask: Ask) -> Blocks:
    """Yield an estimate of what the judgements miss, and its effect on the scores."""
    golden = view.scope.golden_set_id
    offered = retrievers(view) if golden else view.table.clear()
    if offered.height < 2 or view.snapshot.within(golden or "").is_empty():
        yield Answer(
            "Unseen relevant passages cannot be estimated yet.",
            "It takes judgements of passages, and the rankings of two retrievers or more.",
        )
        yield Way("run", "Run another retriever")
        return
    usual = usual_lists(offered)
    names = ask.several(
        "Lists", offered["name"], "lists", usual=usual, most=MOST_LISTS, about=LISTS, width=520
    )
    names = names if len(names) > 1 else usual
    run_ids = tuple(run_of(offered, name) for name in names)
    depth = int(
        ask.number("Depth", "listk", float(judged_depth(ranked(view, run_ids))), 1.0, 1000.0, about=DEPTH)
        or 1
    )
    least = int(ask.one("Relevant from grade", ("4", "3", "5", "2"), "listrel"))
    found = unseen(view, tuple(names), run_ids, depth, least)
    if found is None:
        yield Answer(
            "The lists hold no relevant passage at this depth.", "Take deeper lists, or a lower grade."
        )
        return
    by = ask.one("Estimate that counts", found.estimates["method"], "listby", about=HOW)
    row = found.estimates.row(by_predicate=pl.col("method") == by, named=True)
    first = "Judge them first, or take less depth." * (found.judged < JUDGED)
    yield Answer(answer(row, found, depth), first, caveats=caveats(found))
    yield Cards(cards(row, found, depth, least))
    yield Chart(figure(found), "unseen", "Relevant passages by each estimate, with its 95 % interval")
    yield Table(found.estimates, ESTIMATES)
    yield Tabs((
        Fold("Scores", scores(view, row, found.known, least)),
        Fold("Lists", [Table(found.pairs, PAIRS)]),
    ))  # fmt: skip


def scores(view: View, row: Row, known: int, least: int) -> Blocks:
    """Yield what the stacks would score if the unseen passages counted."""
    if row["total"] <= known:
        yield Text("By this estimate nothing is unseen: the scores stay as they are.")
        return
    rows = bounded(view, ((row["total_low"] or known) / known, row["total"] / known), least)
    yield Text(BOUNDS, "caption")
    of = {
        "score": view.quality.name,
        "recall": f"N-Recall@{view.quality.k}",
        "ceiling": f"PROC[N-Recall]@{view.quality.k}",
    }
    columns = [
        cols.score(f"{name}{end}", f"{label}{words}")
        for name, label in of.items()
        for end, words in (("", ""), ("_most", ", at most"), ("_expected", ", expected"))
        if f"{name}{end}" in rows.columns
    ]
    yield Table(rows, cols.Rows("unseen_scores", "name", *columns, "n"))


def answer(row: Row, found: Unseen, depth: int) -> str:
    """Say how much is unseen according to an estimate, which needs judged lists."""
    if found.judged < JUDGED:
        return (
            f"Not known: {text.percent(1 - found.judged)} of the lists' first {depth} passages are unjudged."
        )
    if row["total"] - found.known < 1:
        highest = max(found.estimates["missing"].to_list())
        other = f"; others ≤ {text.percent(highest)}" if highest else ""
        judged = f"all {found.known:,} relevant passages of the Top-{depth} are judged"
        return f"None: {judged} (estimate: {row['method']}{other})."
    ends = _ends(row["total_low"], row["total_high"], lambda end: text.percent(1 - found.known / end))
    side = {LEAST: "At least ", MOST: "At most "}.get(row["side"], "")
    return f"{side}{text.percent(row['missing'])} of the relevant passages are unjudged ({ends})."


def _ends(low: float | None, high: float | None, written: Callable[[float], str]) -> str:
    return FEW_GROUPS if low is None or high is None else f"{written(low)} to {written(high)}"


def caveats(found: Unseen) -> dict[str, str]:
    """Return the assumptions of the estimate, keyed by the words of a chip."""
    said = {
        chip: words.format("; ".join(which)) if (which := _of_sign(found, sign)) else ""
        for chip, words, sign in (("a least", SAME, 1), ("a most", APART, -1))
    }
    few = len(found.names) > 2 and MODELLED not in found.estimates["method"]
    return {
        **said,
        "which way is unknown": TWO if len(found.names) == 2 else "",
        "no log-linear model": f"It takes {captures.FEW} relevant passages, and {CLUSTERS} groups if any."
        if few
        else "",
        "how to read": HOW,
    }


def _of_sign(found: Unseen, sign: int) -> list[str]:
    rows = found.pairs.filter(dependence=SIGNS[sign])
    return [f"{first} and {second}" for first, second in rows.select("first_list", "second_list").iter_rows()]


def cards(row: Row, found: Unseen, depth: int, least: int) -> tuple[tuple[str, str, str], ...]:
    """Return the judged number, the estimate, and the missing share: label, number, meaning."""
    known, per = found.known, max(1, found.queries)
    ends = _ends(row["total_low"], row["total_high"], "{:,.0f}".format)
    lists, side = text.count(row["lists"], "list"), {LEAST: "≥", MOST: "≤"}.get(row["side"], "≈")
    return (
        (f"Judged, grade {least} or more", f"{known:,}", f"{known / per:.1f} per query, n = {found.queries}"),
        (
            "Relevant in all",
            f"{side} {row['total']:,.0f}",
            f"{ends}; {row['method']}, Top-{depth} of {lists}",
        ),
        ("Unseen", text.percent(row["missing"]), f"{(row['total'] - known) / per:.2f} per query"),
    )


def figure(found: Unseen) -> go.Figure:
    """Draw the estimates with their intervals, and the judged number as a line."""
    rows = found.estimates
    low, at, high = (rows[name].to_numpy() for name in ("total_low", "total", "total_high"))
    hover = [
        f"{method}: {value:,.0f}, {_ends(first, last, '{:,.0f}'.format)}"
        for method, value, first, last in rows.select("method", *_TOTAL).iter_rows()
    ]
    bars = theme.whiskers(low, at, high, color=theme.NEUTRAL, thickness=2)
    marks = theme.scatter(
        "",
        at,
        list(range(rows.height)),
        hover=hover,
        marker={"color": theme.OKABE_ITO[0], "size": 9},
        error_x=bars,
    )
    fig = theme.figure(
        [marks], x="relevant passages; the line: judged", height=100 + 38 * rows.height, legend=False
    )
    fig.add_vline(x=found.known, line={"color": theme.ACCENT, "dash": "dash"})
    return theme.name_rows(fig, rows["method"].to_list())
