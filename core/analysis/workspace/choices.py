"""Choices that a workspace offers: its runs, its measures, and their cutoffs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast, get_args

import polars as pl

from core.analysis.workspace.answers import graded, scored
from core.analysis.workspace.clusters import began_with_one, one_known
from core.analysis.workspace.scope import Answering, Percentile, Quality, Scope, audits
from core.analysis.workspace.stacks import runs_in
from core.diagnostics.noise import perturbed_runs
from core.errors import ClqError, UnknownNameError, nearest
from core.metrics import REGISTRY, Measure, translated
from core.metrics.info import Need
from core.metrics.rates import ANSWER
from core.number_format import count
from core.records import Origin
from core.store import Snapshot

_NOT_QUALITY = ("latency_", "usd_", "PROC[", "%PROC")
_CUTOFFS = (1, 2, 3, 5, 8, 10, 15, 20, 25, 30, 40, 50, 75, 100, 150, 200)
_FIRST = "RA-nWG"
_USUAL = (_FIRST, "nDCG")  # Measures that come first, in this order, if a workspace has them
_OF_ONE = ("RR", "Success", "R", "Hit", "Hole", "Acc|Hit", "Robust[RR]", "Robust[Success]")
"""Measures that are informative if each question has one known passage, the first one first; those that
weigh several good passages or their grades only repeat them under names that promise more."""
_NEARLY_ALL = 0.9
"""Share of a golden set's queries that a run has to rank for the set to come before others."""
_RETRIEVAL = re.compile(r"context|retriev|rank|recall|precision|ndcg|mrr|hit", re.IGNORECASE)
"""Names of measures not computed here that judge what is retrieved, not what is answered."""
Has = Literal["results", "rankings", "judgements", "answers"]  # What a workspace may have and a page may need
LACKS: Mapping[Has, str] = {
    "results": "needs results",
    "rankings": "needs per-query results",
    "judgements": "start judging",
    "answers": "needs answers",
}
"""Sentence of a page that cannot be filled, by what its workspace lacks."""
ALL = frozenset(LACKS)
_LACKING: Mapping[Has, str] = {
    "results": "has no results yet",
    "rankings": "has averages only, and no results per query",
    "judgements": "has no golden set with judgements, and lacks texts or questions to make one",
    "answers": "has no answers that readers wrote from what its stacks retrieve",
}


def reported(snapshot: Snapshot, run_ids: Sequence[str]) -> pl.DataFrame:
    """List the figures that runs report and that can be chosen as quality."""
    return (
        snapshot.aggregates(run_ids)
        .filter(pl.col("k").is_not_null())
        .filter(~pl.any_horizontal(pl.col("measure").str.starts_with(prefix) for prefix in _NOT_QUALITY))
        .group_by("measure")
        .agg(
            pl.col("k").unique().sort().alias("cutoffs"),
            pl.col("run_id").n_unique().alias("runs"),
            pl.col("value").min().alias("lowest"),
            pl.col("value").max().alias("highest"),
        )
        .sort("measure")
    )


def only_reported(snapshot: Snapshot) -> pl.DataFrame:
    """Return reported measures that this product cannot compute: `reported`, and says (in words)."""
    rows = reported(snapshot, snapshot.runs()["run_id"].to_list())
    says = pl.format(
        "Not computed here: {} came with it, at K = {}.",
        pl.col("runs").map_elements(lambda runs: count(runs, "run"), pl.String),
        pl.col("cutoffs").cast(pl.List(pl.String)).list.join(", "),
    ).alias("says")
    return rows.filter(~pl.col("measure").is_in(list(REGISTRY))).with_columns(says)


def as_reported(known: pl.DataFrame) -> pl.DataFrame:
    """Return a row of `only_reported` as an explanation: item, text."""
    row = known.row(0, named=True)
    items = [
        ("measure", row["measure"]),
        ("says", row["says"]),
        ("values", f"{row['lowest']:.4g} to {row['highest']:.4g}"),
        ("defined in", "The tool that the runs come from."),
    ]
    return pl.DataFrame(items, schema=["item", "text"], orient="row")


def as_known(asked: Quality, snapshot: Snapshot, scope: Scope) -> Quality:
    """Return a measure under its name here if another tool's was given, which no run reports."""
    if asked.measure is not None:
        return asked
    return _as_known(asked, reported(snapshot, runs_in(snapshot, scope)["run_id"].to_list())["measure"])


def _as_known(asked: Quality, known: Collection[str]) -> Quality:
    measure = None if asked.measure or asked.bare in known else translated(asked.name)
    return Quality(str(measure.at(None)), measure.k) if measure and measure.k else asked


def wanted(
    asked: Sequence[Quality], snapshot: Snapshot, run_ids: Sequence[str]
) -> tuple[list[Measure], list[Quality]]:
    """Return the computed measures, and those that runs can only report.

    Raises:
        UnknownNameError: If one is neither computed nor reported by any of the runs.
    """
    foreign = any(quality.measure is None for quality in asked)
    known = reported(snapshot, run_ids)["measure"].to_list() if foreign else []
    asked = [_as_known(quality, known) for quality in asked]
    computed = [quality.measure for quality in asked if quality.measure]
    only_reported = [quality for quality in asked if not quality.measure]
    for quality in only_reported:
        if quality.bare not in known:
            raise unknown_measure(quality, known)
    return computed, only_reported


def unknown_measure(asked: Quality, known: Sequence[str]) -> UnknownNameError:
    """Report a measure as unknown, and list the computed ones and the store's with similar names."""
    try:
        Measure.parse(asked.bare)
    except UnknownNameError as error:
        own = nearest(asked.bare, known) if error.kind == "measure" else ""
        return UnknownNameError(error.kind, error.name, {*error.known, *([own] if own else [])})
    return UnknownNameError("measure", asked.name, known)


@dataclass(frozen=True)
class Choices:
    """The choices in the sidebar."""

    runs: Mapping[str, str]  # run ids by unique name, ordered by name
    measures: tuple[str, ...]  # measures (without cutoff) available for at least one run, the backbone first
    computed: bool  # whether there are rankings and judgements, so that every cutoff can be computed
    reported: Mapping[str, tuple[int, ...]]  # cutoffs of the measures reported as aggregates
    reranked: bool  # whether any stack has a reranker
    readers: tuple[str, ...] = ()  # names of readers, if known, the default one first
    scorers: tuple[str, ...] = ()  # scorers of the answers, likewise
    unnamed: bool = False  # whether the default reader has no name
    sent: tuple[int, ...] = ()  # numbers of passages that readers answered from, ascending
    # Computable measures that are not offered, because each question has one known passage: a link may
    # still request one
    unsaid: tuple[str, ...] = ()
    percentile: Percentile = "p50"  # of the latency: the median, or another one that any stack has
    stacks: Mapping[str, Mapping[int, int]] = field(
        default_factory=dict
    )  # number of stacks with a measure, by cutoff

    def cutoffs(self, measure: str) -> list[int]:
        """Return the available cutoffs of a measure, ascending; never empty."""
        cutoffs = set(self.reported.get(measure, ()))
        if measure in REGISTRY and "answers" in REGISTRY[measure].needs:
            cutoffs |= set(self.sent)
        elif self.computed:
            cutoffs |= set(_CUTOFFS)
        return sorted(cutoffs) or [10]

    def usual_cutoff(self, measure: str) -> int:
        """Return a measure's default cutoff: of those that most stacks have, 10 or else the least."""
        cutoffs, having = self.cutoffs(measure), self.stacks.get(measure, {})
        most = max(having.get(k, 0) for k in cutoffs)
        first = [k for k in cutoffs if having.get(k, 0) == most]
        return 10 if 10 in first else first[0]

    @property
    def quality(self) -> Quality:
        """Return the default quality."""
        return Quality(self.measures[0], self.usual_cutoff(self.measures[0]))


def choices(snapshot: Snapshot, scope: Scope) -> Choices:
    """List a workspace's choices; its own choice of runs is ignored."""
    runs = runs_in(snapshot, Scope(scope.collection_id, scope.golden_set_id))
    computed = scope.golden_set_id is not None and bool(runs["has_rankings"].any())
    figures = reported(snapshot, runs["run_id"].to_list()).select("measure", "cutoffs")
    came = {measure: tuple(cutoffs) for measure, cutoffs in figures.iter_rows()}
    there = _there(snapshot, runs) if computed else frozenset()
    own = [info.name for info in REGISTRY.values() if computed and info.needs <= there]
    answered = _answered(snapshot, runs["run_id"].to_list())
    unsaid: tuple[str, ...] = ()
    if computed:
        said = telling(snapshot, scope.golden_set_id, own)
        unsaid = tuple(name for name in own if name not in said)
        own = said
    own += [ANSWER.name] if answered["sent"] else []
    usual = _OF_ONE if computed and began_with_one(snapshot, scope.golden_set_id) else _USUAL
    stacks = _having(snapshot, runs, own)
    # a few averages beside many rankings stand apart, so they have no say in the measure
    ranked = int(runs["has_rankings"].sum())
    most = ranked if computed and 2 * ranked >= runs.height else runs.height
    names = sorted(
        {*own, *came},
        key=lambda name: (-min(most, max(stacks.get(name, {0: 0}).values())), *_place(name, usual)),
    )
    return Choices(
        runs=dict(zip(runs["name"], runs["run_id"], strict=True)),
        measures=tuple(names) or (_FIRST,),
        computed=computed,
        reported=came,
        reranked=bool((runs["reranker"].fill_null("none") != "none").any()),
        unsaid=unsaid,
        percentile=_percentile(snapshot, runs["run_id"].to_list()),
        stacks=stacks,
        **answered,
    )


def _having(snapshot: Snapshot, runs: pl.DataFrame, own: Sequence[str]) -> dict[str, dict[int, int]]:
    """Count the stacks that have each measure at each cutoff.

    Args:
        own: Measures computed here from rankings, and scores of answers.
    """
    ids, ranked = runs["run_id"].to_list(), runs.filter("has_rankings")["run_id"].to_list()
    figures = snapshot.aggregates(ids).filter(pl.col("k").is_not_null()).select("measure", "k", "run_id")
    answers = graded(snapshot, ids, Answering().measure()).drop_nulls("correct")
    answers = answers.select(pl.lit(ANSWER.name).alias("measure"), pl.col("k").cast(pl.Int32), "run_id")
    scored = [name for name in own if "answers" not in REGISTRY[name].needs]
    rest = figures.filter(~(pl.col("measure").is_in(scored) & pl.col("run_id").is_in(ranked)))
    both = pl.concat([rest.cast({"k": pl.Int32}), answers])
    counts: dict[str, dict[int, int]] = {name: dict.fromkeys(_CUTOFFS, len(ranked)) for name in scored}
    for name, k, stacks in both.group_by("measure", "k").agg(pl.col("run_id").n_unique()).iter_rows():
        held = counts.setdefault(name, {})
        held[k] = stacks + (len(ranked) if name in scored else 0)
    return counts


def _place(name: str, usual: Sequence[str]) -> tuple[int, int, str]:
    """Return the sort key of measures that equally many stacks have.

    The defaults come first, then other retrieval measures: computed here, higher better, lower better,
    or as reported; then the scores of answers. Ties are sorted by name.
    """
    if name in usual:
        return 0, usual.index(name), name
    if name not in REGISTRY:
        return (2 if _RETRIEVAL.search(name) else 3), 1, name
    info = REGISTRY[name]
    return (3 if "answers" in info.needs else 1), int(not info.higher_is_better), name


def _percentile(snapshot: Snapshot, run_ids: list[str]) -> Percentile:
    """Return the default latency statistic: p50, unless only higher percentiles or means are known."""
    came = set(snapshot.aggregates(run_ids)["measure"].unique())
    usual, *others = get_args(Percentile)
    first = next((name for name in (usual, *others) if f"latency_{name}" in came), usual)
    return cast(Percentile, usual if snapshot.timings(run_ids).height else first)


def telling(snapshot: Snapshot, golden_set_id: str | None, names: Sequence[str]) -> list[str]:
    """Return those of some measures (without cutoff) that are informative on a golden set, in order."""
    return [name for name in names if name in _OF_ONE] if one_known(snapshot, golden_set_id) else list(names)


def _answered(snapshot: Snapshot, run_ids: list[str]) -> dict[str, Any]:
    """Return readers, scorers, and numbers of passages sent, as fields of `Choices`."""
    scores = snapshot.answer_scores(run_ids).filter(pl.col("k") >= 1)
    usual = scored(snapshot, run_ids, Answering().measure()).head(1)
    columns = {"readers": "reader", "scorers": "scorer", "sent": "k"}
    values = {name: scores[column].drop_nulls().unique().sort().to_list() for name, column in columns.items()}
    first = {name: usual[column].drop_nulls().to_list() for name, column in columns.items() if name != "sent"}
    choices = {name: tuple(dict.fromkeys((*first.get(name, ()), *some))) for name, some in values.items()}
    return {**choices, "unnamed": usual["reader"].null_count() > 0}


def _there(snapshot: Snapshot, runs: pl.DataFrame) -> frozenset[Need]:
    """Return the available inputs of measures besides grades; ceilings are shown beside their measure."""
    needs: set[Need] = set()
    ranked = runs.filter("has_rankings")["run_id"].to_list()
    if any(map(snapshot.has_sources, set(snapshot.searched(ranked).values()))):
        needs |= {"sources", "facets"}
    golden = snapshot.golden_sets(runs["collection_id"][0] if runs.height else None)
    if any(snapshot.nuggets(golden_set_id).height for golden_set_id in golden["golden_set_id"]):
        needs |= {"nuggets", "facets"}
    if any(map(snapshot.access, set(snapshot.searched(ranked).values()))):
        needs.add("filters")
    if snapshot.graded_answers(ranked)["grade"].is_not_null().any():
        needs.add("answers")
    if ranked and perturbed_runs(snapshot.runs(runs["collection_id"][0])).height:
        needs.add("perturbed")
    return frozenset(needs)


def holds(snapshot: Snapshot) -> dict[str, frozenset[Has]]:
    """Return the inputs that pages may need and each collection has."""
    runs, scored_there = snapshot.runs(), snapshot.sizes("signals")["id"].to_list()
    ranked = runs.filter(pl.col("has_rankings") | pl.col("run_id").is_in(scored_there))
    judged = snapshot.golden_sets().filter(pl.col("judgements") + pl.col("spans") > 0)
    # Published scores come without answers
    scored = pl.concat(snapshot.sizes(table)["id"] for table in ("answers", "answer_scores"))
    answered = runs.filter(pl.col("run_id").is_in(scored.to_list()))
    texts = snapshot.collections().filter((pl.col("passages") > 0) & (pl.col("queries") > 0))
    there: dict[Has, set[str]] = {
        "results": set(runs["collection_id"]),
        "rankings": set(ranked["collection_id"]),
        "judgements": {*judged["collection_id"], *texts["collection_id"]},
        "answers": set(answered["collection_id"]),
    }
    names = snapshot.collections()["collection_id"]
    return {name: frozenset(has for has, having in there.items() if name in having) for name in names}


def lacking(name: str, need: Has) -> str:
    """Describe what a workspace lacks."""
    return f"{name} {_LACKING[need]}."


def measured_first(collections: pl.DataFrame, runs: pl.DataFrame) -> list[str]:
    """Return collection ids: those with measured runs before those with published figures only."""
    own = runs.filter(pl.col("origin") != Origin.PUBLISHED)["collection_id"].unique().to_list()
    names = collections["collection_id"].sort().to_list()
    return sorted(names, key=lambda name: name not in own)


def _audits(snapshot: Snapshot, collection_id: str) -> Mapping[str, str]:
    try:
        return audits(snapshot, collection_id)
    except ClqError:  # pages that need judgements report that they cannot be read; others open
        return {}


def titled(snapshot: Snapshot, names: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return workspaces with the names of their collections; "" where it says no more than the id."""
    known = dict(snapshot.collections().select("collection_id", "name").iter_rows())
    return tuple((name, "" if known.get(name) in (None, name) else known[name]) for name in names)


def workspaces(snapshot: Snapshot) -> dict[str, tuple[str, ...]]:
    """Return the collections, those with measured runs first, and the golden sets that judge each.

    A golden set for which no run ranks nearly all queries, like the whole one after an evaluation of a part
    of its questions, comes after those with such a run: most of its queries would count as 0. Of equals,
    audits come last.
    """
    judged = snapshot.golden_sets().filter(pl.col("judgements") + pl.col("spans") > 0)
    runs = snapshot.runs()
    sizes = snapshot.sizes("rankings").select("id", pl.col("queries").alias("ranked"))
    asked = runs.join(sizes, left_on="run_id", right_on="id").group_by("collection_id")
    judged = judged.join(
        asked.agg(pl.col("ranked").max()), on="collection_id", how="left", maintain_order="left"
    )
    partly = (pl.col("ranked") < _NEARLY_ALL * pl.col("queries")).fill_null(value=False)
    golden_sets: dict[str, list[str]] = {}
    audited = [name for of in set(judged["collection_id"]) for name in _audits(snapshot, of)]
    judged = judged.sort(partly, pl.col("golden_set_id").is_in(audited), maintain_order=True)
    for collection, golden_set in judged.select("collection_id", "golden_set_id").iter_rows():
        golden_sets.setdefault(collection, []).append(golden_set)
    names = measured_first(_decided(snapshot, runs), runs)
    return {name: tuple(golden_sets.get(name, ())) for name in names}


def _decided(snapshot: Snapshot, runs: pl.DataFrame) -> pl.DataFrame:
    """Return collections without those that hold figures of a diagnosis only.

    They leave nothing to decide.
    """
    ids, known = pl.col("collection_id"), snapshot.collections()
    empty = (pl.col("passages") == 0) & (pl.col("queries") == 0) & ~ids.is_in(runs["collection_id"].to_list())
    return known.filter(~(ids.is_in(snapshot.sizes("diagnostics")["id"].to_list()) & empty))
