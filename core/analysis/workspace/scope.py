"""Scope of a view: its evidence, quality and latency; all of it is in the link.

Golden sets that only rejudge what a larger one judges are never the set to score with.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import isfinite
from typing import Literal, get_args

import polars as pl

from core.axes import also_called
from core.errors import InputError, UnknownNameError
from core.golden.adding import ancestry
from core.metrics import Measure
from core.metrics.measure import declared
from core.metrics.rates import ANSWER, ANY
from core.stats.latency import Generation
from core.store import Snapshot

Percentile = Literal["p50", "p95", "p99", "mean"]
MEAN: Percentile = "mean"
LatencyScope = Literal["path", "rerank", "end-to-end"]
_OF: Mapping[LatencyScope, str] = {"path": "Retrieval", "rerank": "Reranker", "end-to-end": "End-to-end"}
Per = Literal["query", "answered query", "correct answer"]
"""Unit of a cost: retrieval for a query, retrieval and the answer, or a correct answer."""
PER: tuple[Per, ...] = get_args(Per)
AUTO, SINGLY = "auto", "none"
"""Questions form their known groups, or are independent."""
INDIFFERENT = 0.01  # Share of a measure's range that does not matter (metrics.md §9)
_PAIR = ("query_id", "passage_id")


@dataclass(frozen=True, slots=True)
class Ids:
    """Ids of runs or queries."""

    # They are stored as one text: in the keys of cached views, thousands of texts would take
    # longer to hash than a page to draw
    text: str = ""

    @classmethod
    def of(cls, ids: Iterable[str]) -> Ids:
        """Build it from some ids."""
        return cls(json.dumps(some) if (some := sorted(ids)) else "")

    @property
    def ids(self) -> tuple[str, ...]:
        """Return the ids, sorted."""
        return tuple(json.loads(self.text)) if self.text else ()

    def __bool__(self) -> bool:
        return bool(self.text)


@dataclass(frozen=True, slots=True)
class Judging:
    """How well a query must be judged to count; by default every query counts."""

    k: int = 0  # the cutoff for `least`
    least: float = 0.0  # minimum share of judged results in the Top-K of every ranked run: 0..1
    everywhere: bool = False  # whether every golden set of the collection must judge it

    def __bool__(self) -> bool:
        return self.least > 0 or self.everywhere


@dataclass(frozen=True, slots=True)
class Answering:
    """Whose answers count, and the unit of a cost."""

    reader: str = ANY  # the reader, as a parameter of the measure Answer
    scorer: str = ANY  # the scorer of an answer, likewise
    per: Per = "query"
    least: float = 0.5  # the score from which on an answer is correct: 0..1

    def measure(self, k: int | None = None) -> Measure:
        """Return the mean score of the answers."""
        return Measure(ANSWER.name, k, (("reader", self.reader), ("scorer", self.scorer)))

    def sent(self, k: int) -> Measure | None:
        """Return the measure of the answers from k passages that a bill must cover; None = none."""
        return None if self.per == "query" else self.measure(k)


@dataclass(frozen=True, slots=True)
class Scope:
    """The workspace: one collection, one golden set of it, and a choice of its runs."""

    collection_id: str  # results of two collections are never on one chart
    # The judgements that score the rankings; None if only aggregates can be shown
    golden_set_id: str | None = None
    run_ids: tuple[str, ...] = ()  # the chosen runs; empty means all runs of the collection
    apart: Ids = Ids()  # runs that are left out because they do not compare with the others
    # The queries that count, if not every run has all (`core.analysis.workspace.query_sets`); none = all
    shared: Ids = Ids()
    lacked: Ids = Ids()  # queries that most runs have but that do not count, as a compared one lacks them
    judging: Judging = Judging()  # how well a query must be judged to count
    answering: Answering = Answering()  # whose answers count, and the unit of a cost
    cluster_by: str = AUTO  # the groups of its questions (`core.analysis.workspace.clusters`)
    cutoff: int = 0  # of the quality; a ranking that ends before it is another's first part; 0 = none


@lru_cache(256)
def _measure(bare: str, k: int) -> Measure:
    return Measure.parse(bare).at(k)


@dataclass(frozen=True, slots=True)
class Quality:
    """The measure used as quality, with its cutoff."""

    # A measure without cutoff, parameters included: ``RA-nWG``; one that this product does not compute
    # (``GMAP`` of an imported table) is shown from aggregates only
    bare: str
    k: int  # the cutoff, from 1

    @property
    def measure(self) -> Measure | None:
        """The measure at the cutoff; None if this product cannot compute it."""
        try:
            return _measure(self.bare, self.k)
        except (UnknownNameError, InputError):
            return None

    @property
    def name(self) -> str:
        """The canonical string with the cutoff, for example ``RA-nWG@10``."""
        return str(self.measure or f"{self.bare}@{self.k}")

    @property
    def by_query(self) -> Quality:
        """The per-query measure beside a ratio of means; any other is itself."""
        measure = self.measure
        return self if measure is None else replace(self, bare=str(measure.by_query.at(None)))

    @property
    def higher_is_better(self) -> bool:
        """Which direction is good; upwards for a measure that this product does not compute."""
        return self.measure is None or self.measure.info.higher_is_better

    @property
    def is_share(self) -> bool:
        """Whether it lies between 0 and 1; assumed so for a measure that isn't computed here."""
        return self.measure is None or self.measure.info.unit == "share"

    def indifference(self, n: int | None) -> float:
        """Return the default indifference zone: a hundredth of the declared range, 0 if none is declared.

        Args:
            n: Queries behind the means; one counts for a measure that is 0 or 1 per query.
        """
        if self.range is None:
            return 0.0
        zone = INDIFFERENT * (self.range[1] - self.range[0])
        return max(zone, 1 / n) if self.measure and self.measure.info.binary and n else zone

    @property
    def range(self) -> tuple[float, float] | None:
        """The lowest and the highest value that the measure declares; None if it declares none."""
        info = self.measure and self.measure.info
        ends = (info.low, info.high) if info else declared(self.bare)
        return ends if ends and isfinite(ends[1] - ends[0]) else None

    @property
    def ceiling(self) -> Measure | None:
        """PROC of the measure at the cutoff; None if it has no ceiling."""
        measure = self.measure
        if measure is None or measure.info.ceiling is None:
            return None
        return replace(measure, name=f"PROC[{measure.name}]")


def zone(quality: Quality, table: pl.DataFrame) -> float:
    """Return the default indifference zone of a measure for the stacks of a table."""
    most = table["n"].max()
    return quality.indifference(most if isinstance(most, int) else None)


@dataclass(frozen=True, slots=True)
class Latency:
    """The latency that decides."""

    percentile: Percentile = "p50"  # the median, the 95th or the 99th percentile over queries, or their mean
    # "path" = embed + retrieve + rerank, "rerank" = the reranker call alone, "end-to-end" = the path and the
    # generator
    scope: LatencyScope = "path"
    machine: str | None = None  # only latencies of this machine (one of `comparable.machines`); None = of any
    # How generation is modelled if it was not timed; only read end-to-end. None = it isn't, so that the
    # latency of such stacks is unknown.
    generation: Generation | None = None
    # Whose answers from how many passages time generation; only read end-to-end. None = the stage that runs
    # recorded, otherwise the model
    answers: Measure | None = None
    # Whether the path's available latencies were reported with answering included; affects only words
    answering: bool = False

    @property
    def name(self) -> str:
        """Return the axis title, for example ``Retrieval latency p50 (ms)``."""
        if self.answering and self.scope == "path":
            return f"Latency {self.percentile}, answering included (ms)"
        return f"{_OF[self.scope]} latency {self.percentile} (ms)"


def called(runs: pl.DataFrame, name: str) -> list[str]:
    """Return the runs that have a name in any workspace or older release.

    Args:
        runs: Columns run_id, label and, if known, spec.
    """
    specs = runs["spec"] if "spec" in runs.columns else ["{}"] * runs.height
    rows = zip(runs["run_id"], runs["label"], specs, strict=True)
    return [run_id for run_id, label, spec in rows if name in also_called(label, json.loads(spec))]


def resolve_runs(runs: pl.DataFrame, names: Sequence[str]) -> list[str]:
    """Return the run ids behind names: ids, labels that only one run has, or names that it is shown by.

    Args:
        runs: Columns run_id, label and, if known, spec.
        names: The user's names.

    Raises:
        UnknownNameError: If no run has this id or label.
        InputError: If several have the label.
    """
    ids = set(runs["run_id"])
    resolved: list[str] = []
    for name in names:
        labelled = runs.filter(label=name)["run_id"].to_list()
        labelled = labelled or called(runs, name)
        if name in ids:
            resolved.append(name)
        elif len(labelled) == 1:
            resolved += labelled
        elif labelled:
            raise InputError(
                f"{len(labelled)} runs are labelled {name!r}: {', '.join(labelled[:5])}.",
                do="Name one by its id.",
            )
        else:
            raise UnknownNameError("run", name, {*ids, *runs["label"]})
    return list(dict.fromkeys(resolved))


def audits(snapshot: Snapshot, collection_id: str) -> dict[str, str]:
    """Find the golden sets of a collection whose judged passages are all judged by a larger one, too.

    Returns:
        By id of such a golden set the id of the largest one that it audits; this includes earlier versions of
        a golden set that has grown, and the parts that another one was merged from.
    """
    known = snapshot.golden_sets(collection_id)
    audited = _put_together(known)
    sets = known.filter(pl.col("judgements") > 0)
    if sets.height < 2:
        return audited
    sizes = sets.sort("judgements", "golden_set_id", descending=[True, False])
    ordered = [(str(name), int(size)) for name, size in sizes.select("golden_set_id", "judgements").rows()]
    judged = {name: snapshot.judgements(name).select(_PAIR) for name, _ in ordered}
    for name, size in ordered:
        larger = (other for other, most in ordered if most > size and name not in audited)
        for other in larger:
            if judged[name].join(judged[other], on=_PAIR, how="anti").is_empty():
                audited[name] = other
                break
    return audited


def _put_together(sets: pl.DataFrame) -> dict[str, str]:
    """Return golden sets contained in another one, with the largest such container."""
    if not (sets["parents"].list.len() > 0).any():
        return {}
    content = {name: {*ancestry(sets, name)} for name in sets["golden_set_id"]}
    added = sorted((name for name in content if len(content[name]) > 1), key=lambda name: len(content[name]))
    return {
        name: whole
        for whole in added
        for name, parts in content.items()
        if name != whole and parts < content[whole]
    }
