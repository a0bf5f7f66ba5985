"""Measuring: every step is asked every query, once unmeasured if that is free, then in repeats.

Each step is measured once per query and repeat, whatever number of stacks contain it; the sample of a stack
is the sum of its steps. Local steps first answer all queries once: this pass gives their results and warms
the caches. Steps that call a vendor answer `warm_up` queries first, once per model and round; their results
are those of the first repeat of the first round. A step always gets these results of the steps before it, so
that all repeats do the same work. Signals are figures of single queries beside time and usage: how sure a
stack was, by the scores of its pool ("dense_": of a hybrid's vector search, "rerank_": of the reranker);
"ann_recall"; a reranker's details.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.jobs import Tracker
from core.pipeline.evaluate.asking import Asker, Node, StepOutcome, ordered
from core.pipeline.evaluate.build import Dense
from core.pipeline.evaluate.folder import Measurements, Status, StepTimes
from core.pipeline.evaluate.job import Protocol
from core.pipeline.evaluate.steps import FIELDS, FILTERING, Graph, Route, Step
from core.pipeline.index import INDEXES, ann_recall, is_ann
from core.pipeline.index.partitioned import Partitioned
from core.pipeline.index.scope import PARTITION, POST, PRE, IndexScope
from core.pipeline.own.config import OWN
from core.pipeline.own.model import OwnQuestion
from core.pipeline.query.entities import Names
from core.pipeline.query.perturb import perturbed, shown
from core.pipeline.ranking import Hits, signals
from core.providers.base import Amount
from core.records import JsonMap
from core.tables import frame

T = TypeVar("T")
R = TypeVar("R")
FIRST = (1, 1)  # Round and repeat whose answers count as the results
Pass = tuple[int, int]  # Round and repeat, from 1
_OVERLAP = 1.05
ANN_RECALL = "ann_recall"
TOLD = (
    "chars_per_second", "truncated", "unscored", "discarded", "repaired", "equal_weights", "changed",
    "dropped", "calls", "unmatched", "repeated", "not_a_number", "retried", "saved_calls",
)  # fmt: skip
"""Details of a model that are kept per query."""


def in_order(work: Callable[[T], R], items: Sequence[T], workers: int) -> Iterator[R]:
    """Do work that mostly waits, with at most `workers` items at once; after an error nothing more starts."""
    if workers <= 1 or len(items) <= 1:
        yield from map(work, items)
        return
    pool = ThreadPoolExecutor(min(workers, len(items)), thread_name_prefix="evaluate")
    try:
        yield from pool.map(work, items)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@dataclass(slots=True)
class StepResults:
    """A step's results for all queries, and its measurements."""

    values: list[Any]  # the results, per query
    usage: Sequence[tuple[Amount, ...]]  # usage of each query, besides processor time
    details: Sequence[Mapping[str, Any]]  # facts reported by a model for each query
    blocks: dict[Pass, StepTimes] = field(default_factory=dict)  # times, by pass
    parts: dict[Pass, Mapping[str, StepTimes]] = field(
        default_factory=dict
    )  # times of its stages, as far as it reports them


StepOutputs = dict[Step, StepResults]


class Measurer:
    """Asks steps."""

    def __init__(
        self,
        texts: Sequence[str],
        protocol: Protocol,
        asker: Asker,
        *,
        kept: Measurements | None,
        tracker: Tracker[Status],
        check: Callable[[], None],
        stage: Callable[[str], None],
        pause: Callable[[], None],
        names: Names = MappingProxyType({}),
    ) -> None:
        self.results: StepOutputs = {}
        self._texts, self._protocol, self._asker = texts, protocol, asker
        self._graph, self._kept = asker.graph, kept
        self._tracker, self._check, self._stage, self._pause = tracker, check, stage, pause
        self._first, self._names = asker.graph.firsts, names
        self._warm: set[tuple[int, Step]] = set()
        self._typed: dict[Step, Sequence[str]] = {}
        self._shuffle = np.random.default_rng(protocol.seed)

    def answer(self, step: Step) -> None:
        """Compute the results of a step; its inputs' results must exist."""
        self._tracker.begin("answer", f"answer: {words(step)}")
        node = self._asker.node(step)
        measured = node.model is not None and self._protocol.repeats > 0
        if measured:
            self._warm_up(node, FIRST[0])
        outcomes = self._ask_all(node, FIRST if measured else None)
        results = ([outcome.value for outcome in outcomes], [outcome.usage for outcome in outcomes])
        self.results[step] = StepResults(*results, [outcome.details for outcome in outcomes])
        if measured:
            self._note(step, FIRST, outcomes)
        self._tracker.end()

    def measure(self, steps: Sequence[Step], number: int, repeats: Sequence[int] = ()) -> None:
        """Measure steps in a round, in these repeats or in all; their results must exist."""
        for repeat in repeats or range(1, self._protocol.repeats + 1):
            order = self._shuffle.permutation(len(steps)) if self._protocol.shuffled else range(len(steps))
            for position in order:
                self._pause()
                self._measure(steps[position], (number, repeat))

    def _measure(self, step: Step, of: Pass) -> None:
        done = self.results[step].blocks
        known = self._kept.get(self._graph.label(step), name(of)) if self._kept and of not in done else None
        if of in done or known is not None:
            if known is not None and self._kept is not None:
                done[of] = known
                self.results[step].parts[of] = self._kept.parts(self._graph.label(step), name(of))
            self._tracker.skip("measure", 1)
            return
        self._tracker.begin("measure", timing(step, of, self._protocol))
        node = self._asker.node(step)
        if node.model is not None:
            self._warm_up(node, of[0])
        else:
            self._ask(node, 0, "")  # whatever was measured before left the caches cold
        self._note(step, of, self._ask_all(node, of))
        self._tracker.end()

    def _note(self, step: Step, of: Pass, outcomes: Sequence[StepOutcome]) -> None:
        here = [
            outcome.cpu_ms
            for outcome in outcomes
            if outcome.cpu_ms is not None or not np.isfinite(outcome.ms)
        ]
        known = len(here) == len(outcomes) and any(cpu_ms is not None for cpu_ms in here)
        block = StepTimes(
            np.array([outcome.ms for outcome in outcomes]),
            np.array(here, dtype=np.float64) if known else None,
            sum(outcome.waited_ms for outcome in outcomes),
            places(self._order(of)),
        )
        self.results[step].blocks[of] = block
        parts = self.results[step].parts[of] = stages(outcomes)
        if self._kept is not None:
            self._kept.put(self._graph.label(step), name(of), block, parts)

    def _ask_all(self, node: Node, of: Pass | None) -> list[StepOutcome]:
        again = "" if of is None else f"pass {name(of)}"
        self._stage(node.step.stage)
        workers = node.workers(self._protocol.concurrency)
        order = self._order(of)
        if node.expect is not None:
            texts = self._asked(node.step)
            given = self._asker.inputs
            node.expect([OwnQuestion(texts[query], *given(node.step, query, ())) for query in order])
        outcomes: dict[int, StepOutcome] = {}
        asked = in_order(lambda query: self._ask(node, query, again), order, workers)
        for query, outcome in zip(order, asked, strict=True):
            outcomes[query] = outcome
            self._tracker.within(len(outcomes), len(self._texts), "questions")
        return [outcomes[query] for query in range(len(self._texts))]

    def _order(self, of: Pass | None) -> Sequence[int]:
        """Return the queries in the order of a pass: reshuffled for each pass, the same for all its steps."""
        queries = len(self._texts)
        if of is None:
            return range(queries)
        drawn = np.random.default_rng([self._protocol.seed, *of]).permutation(queries)
        return [int(query) for query in drawn]

    def _ask(self, node: Node, query: int, again: str) -> StepOutcome:
        self._check()
        results, rewrite = self.results, node.step.rewrite
        text = self._asked(node.step)[query]
        if rewrite is not None and rewrite is not node.step:
            text = results[rewrite].values[query]
        given = (results[step].values[query] for step in node.step.inputs)
        return node.ask(text, self._asker.inputs(node.step, query, given), again)

    def _asked(self, step: Step) -> Sequence[str]:
        """Return queries as typed; perturbing them is free, and is not part of the step's time."""
        if step not in self._typed:
            levels = step.typed
            self._typed[step] = (
                [perturbed(text, levels, self._names.get(text, ())) for text in self._texts]
                if levels
                else self._texts
            )
        return self._typed[step]

    def _warm_up(self, node: Node, number: int) -> None:
        key = (number, node.step)
        if node.step not in self._first or key in self._warm:
            return
        self._warm.add(key)
        self._stage(f"{node.step.stage}, warm-up")
        for query in range(min(self._protocol.warm_up, len(self._texts))):
            self._ask(node, query, f"warm-up {number}.{query + 1}")


def places(order: Sequence[int]) -> NDArray[np.int32]:
    """Return each query's position, from 1, in the order the queries were asked in."""
    at = np.empty(len(order), dtype=np.int32)
    at[np.asarray(order, dtype=np.intp)] = np.arange(1, len(order) + 1)
    return at


def stages(outcomes: Sequence[StepOutcome]) -> dict[str, StepTimes]:
    """Return times of a step's stages, as a custom pipeline reports them, or {} if they overlap.

    Stages that add up to more than the step's time ran in parallel, and say nothing about the sum.
    """
    by_stage = [outcome.details.get("stages") or {} for outcome in outcomes]
    names = list(dict.fromkeys(stage for times in by_stage for stage in times))
    known = [
        (sum(of.values()), outcome.ms)
        for of, outcome in zip(by_stage, outcomes, strict=True)
        if np.isfinite(outcome.ms)
    ]
    if any(parts > _OVERLAP * whole for parts, whole in known):
        return {}
    failed = [not np.isfinite(outcome.ms) for outcome in outcomes]
    return {
        stage: StepTimes(np.where(failed, np.nan, [times.get(stage, 0.0) for times in by_stage]), None)
        for stage in names
    }


def name(of: Pass) -> str:
    """Return the name of a pass in words and files: "1.2" is the second repeat of the first round."""
    return f"{of[0]}.{of[1]}"


def timing(step: Step, of: Pass, protocol: Protocol) -> str:
    """Return the pass over the queries that times a step; an index has its own."""
    number = (of[0] - 1) * protocol.repeats + of[1]
    what = words(step).partition(" of ")[0] if step.kind == "search" else words(step)
    return f"Timing {what}, pass {number} of {protocol.rounds * protocol.repeats}"


def words(step: Step) -> str:
    """Describe a step for people."""
    typed = step.params.get("typed")
    if step.kind == OWN:
        params = [f"{key} {value}" for key, value in step.params["params"].items()]
        return ", ".join([step.params["model"]["name"], *params, f"K = {step.params['depth']}"])
    return f"{_named(step)}, {shown(typed)}" if typed else _named(step)


def _named(step: Step) -> str:
    params = step.params
    if step.kind in ("embed", "vectors", "slice"):
        model = (params if "model" in params else step.needs[0].params)["model"]
        return f"{model['name']} {params['dim']} d"
    if step.kind in ("sparse", "bm25", "rewrite"):
        return str(params["model"]["name"]) if "model" in params else "BM25"
    if step.kind == "variant":
        return f"query {params['number'] + 1}"
    if step.kind == "search":
        return words(step.built)
    before = words((step.inputs or step.needs)[-1]) if step.needs else params["params"]["table"]
    if step.kind == "rerank":
        return f"{params['model']['name']}, K = {params['depth']}, of {before}"
    by = {"fuse": "fusion"}.get(step.kind, step.kind)  # an index has a name, other steps a method
    return f"{params[by]['method'] if by in params else params['name']} of {before}"


EXACT = next(name for name, kind in INDEXES.items() if kind.exact)


class MeasuredSignal(NamedTuple):
    """A figure for each query, in their order; None = it has none."""

    name: str
    k: int | None
    values: Sequence[float | None]


class Signals:
    """Computes signals of routes; exact searches are shared by all indexes over the same vectors."""

    def __init__(
        self,
        graph: Graph,
        results: StepOutputs,
        index: Callable[[Step], Dense | Partitioned[Dense]],
        scopes: Callable[[Step], Sequence[IndexScope | None]],
    ) -> None:
        self._graph, self._results, self._index, self._scopes = graph, results, index, scopes
        self._exact: dict[Step, list[Hits]] = {}
        self._recalls: dict[tuple[Step, int], list[float | None]] = {}

    def frame(self, run_id: str, route: Route, query_ids: pl.Series) -> pl.DataFrame:
        """Return rows of the table "signals"; unknown figures have none."""
        rows = [
            {"run_id": run_id, "query_id": query_id, "signal": name, "k": k, "value": float(value)}
            for name, k, values in self._of(route)
            for query_id, value in zip(query_ids, values, strict=True)
            if value is not None and np.isfinite(value)
        ]
        return frame("signals", rows)

    def mean_recall(self, route: Route) -> float | None:
        """Mean share of the exact neighbours that the route's index finds, or None if it is exact."""
        known = [v for signal in self._recall(route) for v in signal.values if v is not None]
        return round(float(np.mean(known)), 6) if known else None

    def _of(self, route: Route) -> Iterator[MeasuredSignal]:
        results = self._results
        pools = [_known(hits.scores[: route.depth]) for hits in results[route.pool].values]
        yield from _certainty("", route.depth, pools)
        search = _search(route)
        if search is not None and search is not route.source:
            depth = _leg_depth(route)
            yield from _certainty("dense_", depth, [hits.scores[:depth] for hits in results[search].values])
        if route.rerank is not None:
            scores = [ordered(ranking, route.depth) for ranking in results[route.rerank].values]
            yield from _certainty("rerank_", route.depth, scores)
        yield from self._recall(route)
        for step in route.steps:
            yield from _model_signals(step, results[step].details)

    def _recall(self, route: Route) -> Iterator[MeasuredSignal]:
        search = _search(route)
        if search is None or not _may_miss(search):
            return
        depth = _leg_depth(route)
        if (search, depth) not in self._recalls:
            pairs = zip(self._results[search].values, self._exact_hits(search), strict=True)
            self._recalls[search, depth] = [ann_recall(hits, exact, depth) for hits, exact in pairs]
        yield MeasuredSignal(ANN_RECALL, depth, self._recalls[search, depth])

    def _exact_hits(self, search: Step) -> list[Hits]:
        built, embed = search.built, search.inputs[0]
        exact: JsonMap = {"name": EXACT, "params": {}}
        if not built.needs:  # a table whose vectors are elsewhere compares them itself
            exact = {"params": {**built.params["params"], "exact": "yes"}}
        whole = {name: value for name, value in built.params.items() if name not in (PARTITION, FIELDS)}
        flat = Step("index", {**whole, **exact}, built.needs)
        key = Step("exact", {FILTERING: PRE} if search.way else {}, (embed, flat))
        if key not in self._exact:
            deepest = max(
                depth
                for step, depth in self._graph.depths.items()
                if step.kind == "search" and step.inputs[0] == embed and step.built.needs == built.needs
            )
            self._exact[key] = self._nearest(search, flat, deepest)
        return self._exact[key]

    def _nearest(self, search: Step, flat: Step, depth: int) -> list[Hits]:
        """Return the exact neighbours of all queries, of those that their askers may see."""
        vectors, index = np.stack(self._results[search.inputs[0]].values), cast(Dense, self._index(flat))
        if search.way is None:
            return index.search_batch(vectors, depth)
        pairs = zip(vectors, self._scopes(search), strict=True)
        return [index.search(vector, depth, scope=scope) for vector, scope in pairs]


def _may_miss(search: Step) -> bool:
    """Return whether a search may miss neighbours, and the exact ones can be known."""
    if search.way is not None and not search.built.needs:
        return False  # a table with vectors of its own, which nothing here filters
    by_graph = is_ann(search.built.params["name"], search.index_options)
    return by_graph or (search.way is not None and search.way.kind == POST)


def _known(scores: Any) -> Any:  # noqa: ANN401 - the type of `Hits.scores`
    """Return the scores that are numbers; a custom pipeline need not give any."""
    return scores[np.isfinite(scores)]


def _search(route: Route) -> Step | None:
    return next((step for step in route.steps if step.kind == "search"), None)


def _leg_depth(route: Route) -> int:
    search = _search(route)
    fuse = next((step for step in route.steps if step.kind == "fuse" and search in step.inputs), None)
    if fuse is not None:
        return int(fuse.params["fusion"]["depth"])
    return route.ranked


def _certainty(prefix: str, depth: int, scores: Sequence[Any]) -> Iterator[MeasuredSignal]:
    by_query = [signals(score) for score in scores]
    for name in by_query[0]:
        yield MeasuredSignal(f"{prefix}{name}", depth, [certainty[name] for certainty in by_query])


def _model_signals(step: Step, details: Sequence[Mapping[str, Any]]) -> Iterator[MeasuredSignal]:
    for name in TOLD:
        values = [detail.get(name) for detail in details]
        if any(value is not None for value in values):
            yield MeasuredSignal(f"{step.stage}_{name}", None, values)
