"""Dynamic cutoffs beside a fixed K: which passages each keeps, and how good they are (metrics.md §6).

The prompt tokens of Top(K) are those of its passages in a generator's prompt, at every K (metrics.md §11).
The grid has every cutoff with every reranker and chunking, beside the thesis's tables 7.6 and 7.7.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
import polars as pl

from core.analysis import prompt_tokens
from core.analysis.cache import cached
from core.analysis.prompt_tokens import Running, running_tokens
from core.analysis.workspace.clusters import groups
from core.analysis.workspace.query_sets import among
from core.analysis.workspace.scope import Quality, Scope
from core.analysis.workspace.scores import Evidence, evidence, places
from core.analysis.workspace.telling import seldom
from core.analysis.workspace.view import View
from core.metrics.info import rel_param
from core.paths import PUBLISHED
from core.pipeline.ranking.cut import CUTS, CutReport, cut_report, keep
from core.records import JsonMap, canonical_json
from core.stats.intervals import SEED, Labels
from core.stats.means import mean_interval
from core.store import Snapshot
from core.tables import remembered
from core.views import columns as cols
from core.views import text, theme
from core.views.ask import Ask, named
from core.views.blocks import Answer, Blocks, Fold, Table, section
from core.views.text import score
from core.views.within import with_limits

ALIKE = 0.01  # F1 differences up to this don't matter (the indifference zone, metrics.md §9)
WAYS = "K: the same for all. The others read a cutoff off each ranking's scores: a gap, a bend, two groups."
GENERATOR = "Counts the tokens where its vocabulary is at hand, and prices them."
FIXED = (5, 10, 20, 50)
WHOLE = "everything"
GAINS = ("gain", "gain_low", "gain_high")
LEADS = ("lead", "lead_low", "lead_high")
TUNED = "tuned on other queries"
FOLDS, MOST = 5, 50
PERCENTILES = (50, 60, 70, 80, 90, 95, 98)
REL = int(rel_param().default)
HOW = (
    "How many passages to send, query by query, from the scores alone. Precision, recall and F1 are of what "
    "is kept, not of K slots. The best of several flatters itself; what is tuned on other queries does not. "
    f"A query without a passage of grade {REL} or more has no F1. "
    f"Hardly: surely no more than {ALIKE:g} better."
)
COLUMNS = {
    "way": pl.String(),
    "dynamic": pl.Boolean(),
    **dict.fromkeys(("precision", "recall", "f1", "f1_low", "f1_high", "kept", "tokens"), pl.Float64()),
    **dict.fromkeys((*GAINS, *LEADS, "lead_most"), pl.Float64()),
    "n": pl.Int32(),
}
_NONE = "none"
PAPER = "The thesis's tables 7.6 and 7.7"
ABOUT = (
    "Stacks that differ from the chosen one in reranker and chunking alone. Passages kept and F1 are means "
    "over the queries whose scores order the ranking. The best of many rows flatters itself; what is tuned "
    "on other queries does not: a fifth at a time, by the way that is best for the other four."
)
OTHER = (
    "{} was run with one reranker and one chunking alone. Shown is the family of {}, the best of those that "
    "were run with several."
)
_APART = ("reranker", "chunker", "cut")
_MEASURES = ("precision", "recall", "f1", "items_passed", "docs_passed")
NAMES = (cols.text("reranker"), cols.text("chunking"), "way")
THESIS = (
    "precision recall f1",
    cols.points("items_passed", "items", "Chunks or pages kept."),
    cols.points("docs_passed", "documents", "Documents of which something is kept."),
)
SHOWN = cols.Rows(
    "cut_off_table",
    *NAMES,
    "f1 f1_low f1_high kept",
    cols.signed("gain", "against the cutoff", "F1 less that of the cutoff for all."),
    "precision recall n beyond",
    more=(
        "gain_low gain_high",
        "tokens name",
    ),
)


@dataclass(frozen=True)
class Cuts:
    """Ways to cut the rankings of one stack."""

    # `COLUMNS`, one row per way: means over n queries; kept in passages, tokens null if the text of a
    # passage is missing; F1 gain over the one cutoff for all, and lead over the best fixed depth, with 95 %
    # intervals paired by query; lead_most is the upper end of the one-sided 95 % interval
    rows: pl.DataFrame
    left_out: str  # why queries were left out, or why there are no rows; "" if all count


@dataclass(frozen=True, slots=True, eq=False)
class ListedCuts:
    """Rankings of a stack that can be cut: those with ordered scores, for queries with relevant passages."""

    query_ids: tuple[str, ...]
    scores: npt.NDArray[np.float64]  # [queries, depth], descending; NaN beyond the end
    deep: npt.NDArray[np.int64]  # [queries], length of each ranking
    grades: npt.NDArray[np.int8]  # [queries, depth]
    relevant: npt.NDArray[np.int64]  # [queries], relevant passages in the golden set
    missing: int  # queries without scores, which are left out

    def report(self, kept: npt.NDArray[np.int64]) -> CutReport:
        """Score the passages that the methods keep [ways, queries]."""
        return cut_report(kept, self.grades, self.relevant, threshold=REL)


def listed(snapshot: Snapshot, scope: Scope, run_id: str) -> ListedCuts | str:
    """Return the rankings of a run that can be cut, or why there are none."""
    runs = snapshot.runs().filter(pl.col("run_id") == run_id, "has_rankings")
    if scope.golden_set_id is None or runs.is_empty():
        return "Cutting needs rankings with scores, and judgements."
    graded = evidence(snapshot, [run_id], scope.golden_set_id, only=among(snapshot, scope))
    grades = graded.grades[0]
    relevant = graded.counts_of(0)[:, REL - 1 :].sum(axis=1).astype(np.int64)
    scores = _scores(snapshot, run_id, graded)
    deep = (grades >= 0).sum(axis=1)
    usable = [_descending(scores[row, : deep[row]]) for row in range(len(deep))]
    rows = np.flatnonzero(np.array(usable) & (relevant > 0))
    if not len(rows):
        return "No ranking here has scores that it is ordered by."
    return ListedCuts(
        query_ids=tuple(graded.query_ids[row] for row in rows),
        scores=scores[rows],
        deep=deep[rows],
        grades=grades[rows],
        relevant=relevant[rows],
        missing=int((relevant > 0).sum() - len(rows)),
    )


def cuts(snapshot: Snapshot, scope: Scope, run_id: str, *, counts: str, fixed: int) -> Cuts:
    """Cut every ranking of a run by every method, and at fixed depths.

    Args:
        counts: Counts tokens; see `core.views.curves.cuts.vocabulary`.
        fixed: A depth to show in addition to the usual ones.

    Returns:
        Precision, recall and F1 of the kept passages (relevant: grade 4 and better), averaged over queries
        that have relevant passages and whose scores order the ranking.
    """
    lists = listed(snapshot, scope, run_id)
    if isinstance(lists, str):
        return Cuts(pl.DataFrame(schema=COLUMNS), lists)
    runs = snapshot.runs().filter(pl.col("run_id") == run_id)
    ways = _ways(lists.scores, lists.deep, fixed)
    best = tuned(lists)
    kept = np.stack([*ways.values(), best])
    depth = lists.grades.shape[1]
    running = running_tokens(snapshot, runs, counts, depth=depth, only=among(snapshot, scope)).get(run_id)
    tokens = _tokens(running, list(lists.query_ids), kept)
    labels = groups(snapshot, scope).labels(lists.query_ids)
    table = _table((*ways, TUNED), lists.report(kept), tokens, f"K = {fixed}", labels)
    words = f"{text.count(lists.missing, 'query has', 'queries have')} no scores to cut by."
    return Cuts(table, words if lists.missing else "")


def tuned(lists: ListedCuts) -> npt.NDArray[np.int64]:
    """Return how many passages each query keeps by the rule that did best on the other folds [queries].

    The rules are every fixed K up to `MOST` and some percentiles; each fifth of the queries is cut by
    the rule with the best mean F1 over the other four.
    """
    deep = lists.deep
    offered = [np.minimum(k, deep) for k in range(1, min(MOST, int(deep.max())) + 1)]
    options: list[JsonMap] = [{"method": name} for name in usable() if name != "percentile"]
    options += [{"method": "percentile", "percentile": float(share)} for share in PERCENTILES]
    rows = list(zip(lists.scores, deep, strict=True))
    offered += [np.array([keep(cut, row[:size]) for row, size in rows]) for cut in options]
    kept = np.stack(offered)
    f1 = lists.report(kept).f1
    fold = np.random.default_rng(SEED).permutation(len(deep)) % FOLDS
    chosen = np.zeros(len(deep), dtype=np.int64)
    for number in range(FOLDS):
        others = f1[:, fold != number]
        best = int(others.mean(axis=1).argmax()) if others.shape[1] else 0
        chosen[fold == number] = kept[best, fold == number]
    return chosen


def _scores(snapshot: Snapshot, run_id: str, graded: Evidence) -> npt.NDArray[np.float64]:
    """Return the scores of the final ranking [queries, depth]; NaN = none."""
    rows = snapshot.rankings([run_id], stage="final").filter(
        pl.col("query_id").is_in(graded.query_ids), pl.col("rank") <= graded.depth
    )
    scores = np.full(graded.grades.shape[1:], np.nan)
    (query,) = places(rows, query_id=graded.query_ids)
    scores[query, rows["rank"].to_numpy() - 1] = rows["score"].fill_null(np.nan).to_numpy()
    return scores


def _descending(scores: npt.NDArray[np.float64]) -> bool:
    return bool(len(scores) and np.isfinite(scores).all() and (np.diff(scores) <= 0).all())


def usable() -> list[str]:
    """Return the dynamic cutoffs that can be computed with what is installed."""
    return [name for name, cut in CUTS.items() if cut.missing is None]


def lacking() -> str:
    """Say how to get the cutoffs that cannot be computed, or return "" if all can."""
    missing = [cut.missing for cut in CUTS.values() if cut.missing is not None]
    return " ".join(map(str, missing))


def _ways(
    scores: npt.NDArray[np.float64], deep: npt.NDArray[np.int64], fixed: int
) -> dict[str, npt.NDArray[np.int64]]:
    """Return how many passages each method keeps of every query's ranking."""
    ks = sorted({k for k in (*FIXED, fixed) if k < deep.max()})
    kept = {f"K = {k}": np.minimum(k, deep) for k in ks} | {WHOLE: deep}
    for name in usable():
        cut = {"method": name}
        kept[name] = np.array([keep(cut, row[:size]) for row, size in zip(scores, deep, strict=True)])
    return kept


def _tokens(
    running: Running | None, queries: list[str], kept: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Return the mean tokens that each method sends [ways]; NaN = unknown."""
    if running is None:
        return np.full(len(kept), np.nan)
    places = {query: row for row, query in enumerate(running.query_ids)}
    rows = [places[query] for query in queries]
    sent: npt.NDArray[np.float64] = running.tokens[rows, np.maximum(kept, 1) - 1].mean(axis=1)
    return sent


def _table(
    ways: tuple[str, ...],
    report: CutReport,
    tokens: npt.NDArray[np.float64],
    fixed: str,
    clusters: Labels | None,
) -> pl.DataFrame:
    low, high = mean_interval(report.f1, "shares", clusters=clusters)
    means = {name: getattr(report, name).mean(axis=1) for name in ("precision", "recall", "f1", "kept")}
    columns = {
        "way": ways,
        "dynamic": [way in (*CUTS, TUNED) for way in ways],
        **means,
        "f1_low": low,
        "f1_high": high,
    }
    columns |= {"tokens": tokens, "n": [report.f1.shape[1]] * len(ways)}
    usual = ways.index(fixed if fixed in ways else WHOLE)
    flat = [row for row, dynamic in enumerate(columns["dynamic"]) if not dynamic]
    best = max(flat, key=lambda row: (means["f1"][row], row == usual))
    for names, other in ((GAINS, usual), (LEADS, best)):
        apart = report.f1 - report.f1[other]
        ends = mean_interval(apart, "differences", clusters=clusters)
        columns |= dict(zip(names, (apart.mean(axis=1), *ends), strict=True))
    columns["lead_most"] = mean_interval(apart, "differences", level=0.9, clusters=clusters)[1]
    return pl.DataFrame(columns, schema_overrides=COLUMNS).select(list(COLUMNS)).fill_nan(None)


def figure(rows: pl.DataFrame) -> go.Figure:
    """Draw F1 against the passages kept.

    Fixed depths form a line, every dynamic cutoff is a separate mark.
    """
    fixed, dynamic = (rows.filter(pl.col("dynamic") == wanted) for wanted in (False, True))
    lines = [("fixed K", fixed.sort("kept"), "lines+markers")]
    lines += [(way, dynamic.filter(pl.col("way") == way), "markers") for way in dynamic["way"]]
    traces = []
    for place, (name, part, mode) in enumerate(lines):
        colour, symbol = theme.OKABE_ITO[place], theme.SYMBOLS[place % len(theme.SYMBOLS)]
        marker = {"size": 11, "color": colour, "symbol": symbol}
        hover = [
            f"{way}<br>{kept:.1f} kept: F1 {f1:.3f}"
            for way, kept, f1 in part.select("way", "kept", "f1").rows()
        ]
        x, y = part["kept"].to_numpy(), part["f1"].to_numpy()
        traces.append(
            theme.scatter(name, x, y, hover=hover, mode=mode, line={"color": colour}, marker=marker)
        )
    return theme.figure(traces, x="passages kept (mean)", y="F1 of what is kept", height=380)


def cuts_answer(compared: Cuts, fixed: int) -> str:
    """Say whether a cutoff per query beats the best one for all, by F1."""
    if compared.rows.is_empty():
        return compared.left_out
    best, flat, _ = _best(compared.rows, fixed)
    return (
        f"Cutting query by query {verdict(best)} {flat['way']}: F1 {text.score(best['f1'])} against "
        f"{text.score(flat['f1'])} ({text.sample(best['n'])})."
    )


def details(compared: Cuts, quality: Quality) -> str:
    """Say which method is best, whether another cutoff for all beats the usual one, and what that means."""
    if compared.rows.is_empty():
        return ""
    best, flat, usual = _best(compared.rows, quality.k)
    said = f"Best way: {best['way']}, {_span(best, LEADS)}."
    if flat == usual:
        return said
    better = (flat["gain_low"] or 0.0) > 0
    said = (
        f"{said} {flat['way']} for all {'beats' if better else 'does not measurably beat'} "
        f"the first {quality.k}: {_span(flat, GAINS)}."
    )
    if not better:
        return said
    cutoff = flat["way"].removeprefix("K = ")
    return f"{said} Decision scores the first {quality.k}; set the cutoff to {cutoff} to decide by {cutoff}."


def _best(rows: pl.DataFrame, fixed: int) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    ranked = rows.sort("f1", descending=True, maintain_order=True)
    best = ranked.filter("dynamic", pl.col("way") != TUNED).row(0, named=True)
    usual = rows.filter(pl.col("way").is_in([f"K = {fixed}", WHOLE])).row(0, named=True)
    flat = ranked.filter(~pl.col("dynamic")).row(0, named=True)
    return best, usual if usual["f1"] >= flat["f1"] else flat, usual


def verdict(row: Mapping[str, Any]) -> str:
    """Compare a method with the best fixed depth; alike only if its lead is surely negligible."""
    if row["lead_low"] is None:  # too few queries
        return "does not measurably beat"
    if row["lead_low"] > 0:
        return "beats"
    if row["lead_high"] < 0:
        return "loses to"
    return "only matches" if row["lead_most"] <= ALIKE else "does not measurably beat"


def _span(row: Mapping[str, Any], names: tuple[str, str, str]) -> str:
    difference, low, high = (row[name] for name in names)
    if low is None:
        return f"{text.signed(difference)}, no interval"
    return f"{text.signed(difference)}, 95 % CI {text.signed(low)} to {text.signed(high)}"


def chunking(spec: Mapping[str, Any]) -> str:
    """Describe the chunking of a stack."""
    made = spec.get("chunker")
    if not isinstance(made, Mapping):
        return "as the collection has them"
    return " ".join(str(made[name]) for name in ("method", "size") if made.get(name) is not None)


@remembered
def _families(table: pl.DataFrame) -> pl.DataFrame:
    """Group stacks by their other settings: run_id, reranker, chunking, whether cut, and family."""
    rows = []
    for run, written in table.select("run_id", "spec").iter_rows():
        spec = json.loads(written)
        rest = canonical_json({name: value for name, value in spec.items() if name not in _APART})
        rows.append((run, str(spec.get("reranker") or _NONE), chunking(spec), bool(spec.get("cut")), rest))
    columns = ("run_id", "reranker", "chunking", "cut", "family")
    return pl.DataFrame(rows, schema=columns, orient="row")


def relatives(table: pl.DataFrame, run_id: str) -> pl.DataFrame:
    """Return stacks that differ from a run in reranker and chunking only: run_id, reranker and chunking."""
    families = _families(table)
    own = families.filter(pl.col("run_id") == run_id)["family"][0]
    alike = families.filter(pl.col("family") == own, ~pl.col("cut"))
    return alike.select("run_id", "reranker", "chunking").sort("chunking", "reranker")


def _reranked(view: View, run_id: str) -> str:
    """Return the run, or the best one with relatives if it has none and others do.

    Runs within the limits come first.
    """
    families = _families(view.table)
    several = families.filter(~pl.col("cut")).group_by("family").len().filter(pl.col("len") > 1)
    related = set(families.join(several, on="family", how="semi")["run_id"])
    rows = with_limits(view.table, view)
    down = [False, view.quality.higher_is_better]
    order = rows.sort(pl.col("beyond").is_not_null(), "quality", descending=down, nulls_last=True)["run_id"]
    return next((run for run in (run_id, *order) if run in related), run_id)


@cached("Cutting the rankings of every reranker…")
def grid(view: View, run_id: str, counts: str) -> pl.DataFrame:
    """Cut the rankings of a stack's relatives: name, reranker, chunking and the columns of `COLUMNS`."""
    names = dict(view.table.select("run_id", "name").iter_rows())
    own = dict.fromkeys(("name", "reranker", "chunking"), pl.String())
    parts = [pl.DataFrame(schema={**own, **COLUMNS})]
    for run, reranker, chunked in relatives(view.table, run_id).iter_rows():
        made = cuts(view.snapshot, view.scope, run, counts=counts, fixed=view.quality.k).rows
        told = {"name": names[run], "reranker": reranker, "chunking": chunked}
        parts.append(made.select(*(pl.lit(words).alias(name) for name, words in told.items()), pl.all()))
    return pl.concat(parts)


def printed() -> pl.DataFrame:
    """Read the thesis's tables: reranker, chunking, way, precision, recall, f1, items_ and docs_passed."""
    rows = pl.read_csv(PUBLISHED / "thesis_thresholds.csv", schema_overrides={"table": pl.String})
    wide = rows.pivot("metric", index=["reranker", "chunking", "threshold"], values="value")
    return wide.rename({"threshold": "way"}).select("reranker", "chunking", "way", *_MEASURES)


def grid_answer(rows: pl.DataFrame) -> tuple[str, str]:
    """Say whether the method of the highest F1 beats the best fixed depth, among stacks within the limits.

    If none is within them, all count. Chance is unknown between two rerankers or chunkings.
    """
    within = rows.filter(pl.col("beyond").is_null())
    rows = rows if within.is_empty() else within
    several = rows["reranker"].n_unique() > 1
    best = rows.sort("f1", descending=True).row(0, named=True)
    fixed = rows.filter(~pl.col("dynamic")).sort("f1", descending=True).row(0, named=True)
    who = f"{'tuning' if best['way'] == TUNED else best['way']}{_after(best, several=several)}"
    f1, n = f"F1 {score(best['f1'])}{text.interval(best['f1_low'], best['f1_high'])}", text.sample(best["n"])
    if not best["dynamic"]:
        return f"{who} has the highest {f1} ({n}).", ""
    keeps = f"It keeps {best['kept']:.1f} passages."
    if any(best[name] != fixed[name] for name in ("reranker", "chunking")):
        depth = f"{fixed['way']}{_after(fixed, several=several)}"
        return f"{who} has {f1}, {depth} {score(fixed['f1'])} ({n}).", keeps
    return f"{who} {verdict(best)} {fixed['way']}: {f1} against {score(fixed['f1'])} ({n}).", keeps


def _after(cut: Mapping[str, Any], *, several: bool) -> str:
    """Name the reranker that ordered the cut ranking, or return "" if there are several."""
    if cut["reranker"] == _NONE:
        return " without reranking" * several
    return f" after {cut['reranker']}"


@section("cutoff table", "Which cutoff suits which reranker and chunking?", seldom)
def cut_off_table(view: View, ask: Ask) -> Blocks:
    """Yield every reranker, chunking and cutoff of a stack's family with its score and passages kept."""
    run_id = ask.stack(view.table, view.decision, "Stack", "cutof")
    paper = Fold(PAPER, [Table(printed(), cols.Rows("thesis_thresholds", *NAMES, *THESIS))])
    if run_id is None:
        yield Answer("No stack is chosen.")
        yield paper
        return
    asked, run_id = run_id, _reranked(view, run_id)
    rows = with_limits(grid(view, run_id, prompt_tokens.vocabulary(None, view.book)), view)
    if rows.is_empty():
        yield Answer("No ranking of this stack has scores that it is ordered by.")
        yield paper
        return
    other = "" if run_id == asked else OTHER.format(named(view.table, asked), named(view.table, run_id))
    said, more = grid_answer(rows)
    yield Answer(said, f"{more} {other}".strip(), caveats={"how to read": ABOUT})
    yield Table(rows, SHOWN)
    yield paper
