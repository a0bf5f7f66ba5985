"""Turns measured stacks into runs with rows; those that finish within seconds share one transaction.

A reranker's ratings per criterion are rows too: the evidence behind its scores, for reweighting them.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl

from core.answers import CLOSED_BOOK, TOP_K
from core.arrays import Floats, Ints
from core.errors import ProviderError
from core.number_format import count
from core.pipeline import environment
from core.pipeline.evaluate.asking import clipped, reranked
from core.pipeline.evaluate.build import Builder
from core.pipeline.evaluate.folder import Measurements, StepTimes
from core.pipeline.evaluate.identity import evaluation_manifest
from core.pipeline.evaluate.job import Job
from core.pipeline.evaluate.measure import Signals, StepOutputs
from core.pipeline.evaluate.steps import Route, Step
from core.pipeline.own.config import OWN
from core.pipeline.own.cut import OwnChunking, own_chunking
from core.pipeline.own.model import UNFILTERED, OwnRetriever, faults
from core.pipeline.own.parts import DocumentShelf
from core.pipeline.ranking import Hits
from core.prices.calculator import search_units
from core.providers.base import LOCAL_ITEM, Amount, scaled
from core.records import Basis, Batch, JsonMap, Origin, Run, Sink, now
from core.tables import GENERATE, frame

PER_QUERY = frozenset({"inferred", "fallback"})
_EVERY_S = 5.0


def rated(
    run_id: str, route: Route, results: StepOutputs, query_ids: pl.Series, passage_ids: pl.Series
) -> dict[str, pl.DataFrame]:
    """Return rows of the tables "criteria" and "ratings", or {} if only relevance was rated."""
    if route.rerank is None:
        return {}
    told = [details.get("rated") for details in results[route.rerank].details]
    if not any(told):
        return {}
    criteria: dict[tuple[str | None, int], dict[str, Any]] = {}
    ratings: list[dict[str, Any]] = []
    for query_id, hits, about in zip(query_ids, results[route.pool].values, told, strict=True):
        if not about:
            continue
        of_query = query_id if about["origin"] in PER_QUERY else None
        for position, (name, meaning, weight) in enumerate(about["criteria"], 1):
            row = {"criterion": name, "meaning": meaning, "weight": weight, "origin": about["origin"]}
            named = {"run_id": run_id, "query_id": of_query, "position": position}
            criteria.setdefault((of_query, position), {**named, **row})
        reasons = about.get("reasons") or [None] * len(about["ratings"])
        for passage, row_of, reason in zip(
            hits.passages[: route.depth], about["ratings"], reasons, strict=False
        ):
            named = {"run_id": run_id, "query_id": query_id, "passage_id": passage_ids[int(passage)]}
            ratings += [
                {**named, "position": position, "rating": rating, "reason": None if position else reason}
                for position, rating in enumerate(row_of or ())
            ]
    return {"criteria": frame("criteria", list(criteria.values())), "ratings": frame("ratings", ratings)}


class Outbox:
    """Collects runs; a run and everything that belongs to it are always in one batch."""

    def __init__(
        self,
        sink: Sink,
        on_stored: Callable[[int], None] = lambda _: None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sink, self._on_stored, self._clock = sink, on_stored, clock
        self._waiting: list[Batch] = []
        self._sent = clock()
        self.runs: list[Run] = []

    def add(self, made: Batch) -> None:
        """Add a run; it is handed over now, or with others that follow soon."""
        self._waiting.append(made)
        if self._clock() - self._sent >= _EVERY_S:
            self.flush()

    def flush(self) -> None:
        """Hand over what is waiting."""
        if not self._waiting:
            return
        batch = merged(self._waiting)
        self._sink(batch)
        self._waiting.clear()
        self._sent = self._clock()
        self.runs += batch.runs
        self._on_stored(len(batch.runs))


def merged(batches: Sequence[Batch]) -> Batch:
    """Merge batches, leaving out tables without rows."""
    tables: defaultdict[str, list[pl.LazyFrame]] = defaultdict(list)
    for batch in batches:
        for table, rows in batch.frames.items():
            tables[table].append(rows.lazy())
    frames = {table: pl.concat(parts).collect() for table, parts in tables.items()}
    return Batch(
        collections=tuple(collection for batch in batches for collection in batch.collections),
        golden_sets=tuple(golden_set for batch in batches for golden_set in batch.golden_sets),
        runs=tuple(run for batch in batches for run in batch.runs),
        frames={table: rows for table, rows in frames.items() if rows.height},
        incumbents=tuple(run_id for batch in batches for run_id in batch.incumbents),
    )


class RunRecorder:
    """Makes the store records of routes."""

    def __init__(
        self,
        job: Job,
        results: StepOutputs,
        *,
        builder: Builder,
        signals: Signals,
        machine: JsonMap,
        kept: Measurements,
        own: Mapping[Step, OwnRetriever] = MappingProxyType({}),
    ) -> None:
        self._own = own
        self._job, self._results, self._builder = job, results, builder
        self._signals, self._kept = signals, kept
        self._machine, self._started = machine, now()
        self._about = evaluation_manifest(job, machine)
        self._load = environment.load_average()
        self._lengths = cache(lambda chunking: job.corpora[chunking].texts.str.len_chars().to_numpy())

    def made(self, route: Route) -> Batch:
        """Return the run of a measured route, and everything that belongs to it."""
        run, corpus, ids = self._run(route), self._job.corpora[route.chunking], self._job.queries["query_id"]
        own = self._own_chunking(route, run)
        searched = corpus.passage_ids if own is None else own.passage_ids
        frames = {
            "rankings": rankings(run.run_id, route, self._results, ids, searched),
            "timings": timings(run.run_id, route, self._results, ids),
            "usage": usage(run.run_id, route, self._results, ids, self._lengths(route.chunking)),
            "signals": self._signals.frame(run.run_id, route, ids),
        }
        frames |= rated(run.run_id, route, self._results, ids, corpus.passage_ids)
        if (said := answers(run.run_id, route, self._results, ids)).height:
            frames["answers"] = said
        if own is None:
            return Batch(runs=(run,), frames=frames)
        run, more = replace(run, chunking=own.name), own.batch
        return Batch(collections=more.collections, runs=(run,), frames={**more.frames, **frames})

    def _own_chunking(self, route: Route, run: Run) -> OwnChunking | None:
        """Return the passages that a custom pipeline cut itself, if it retrieved any."""
        asked = self._own.get(route.pool)
        if asked is None or not isinstance(asked.shelf, DocumentShelf):
            return None
        ranked = [*finals(route, self._results), *pools(route, self._results)]
        used = {int(at) for hits in ranked for at in hits.passages}
        if max(used, default=0) < len(asked.shelf):
            return None
        name = str(route.stack.spec["name"])
        return own_chunking(self._job.collection_id, run.run_id, name, asked.shelf, used)

    def _run(self, route: Route) -> Run:
        load, manifest = [self._load, environment.load_average()], self._manifest(route)
        own = manifest.get(OWN, {})
        capped, unfiltered = own.get("capped_at"), own.get(UNFILTERED)
        return Run(
            run_id=self._job.run_id(route),
            collection_id=self._job.collection_id,
            stack=route.stack,
            label=route.stack.label
            + (f" · at most {count(capped, 'passage')}" if capped else "")
            + (" · unfiltered" if unfiltered else ""),
            origin=Origin.RUN,
            pool=route.pool_name,
            environment={**self._machine, "load_average": load},
            manifest=manifest,
            created_at=self._started,
            chunking=route.chunking,
        )

    def _manifest(self, route: Route) -> JsonMap:
        corpus, replayed = self._job.corpora[route.chunking], dict[str, str]()
        if route.replayed and route.rerank is not None:
            deep = route.rerank.params["depth"]
            replayed["replayed"] = f"The reranker scored {deep} passages once; this stack has no latency."
        return {
            **{name: self._about[name] for name in ("evaluation", "sweep", "hashes", "protocol", "versions")},
            "spec": dict(route.stack.spec),
            "corpus": {"hash": corpus.hash, "indexed": len(corpus), "without_text": corpus.without_text},
            "queries": {"hash": self._job.queries_hash, "asked": self._job.queries.height},
            "indexes": self._indexes(route),
            "rounds": [
                {"round": number, "began": began.isoformat(), "hour": began.astimezone().hour}
                for number, (began, _) in self._kept.rounds().items()
            ],
            "waited_ms": waited(route, self._results),
            **replayed,
            **self._own_pipeline(route),
        }

    def _own_pipeline(self, route: Route) -> dict[str, JsonMap]:
        """Return how a custom pipeline was started, and the faults in its queries.

        Raises:
            ProviderError: If all of them failed: the stack would appear as one that finds nothing.
        """
        if route.pool.kind != OWN:
            return {}
        wanted = min(route.depth, len(self._job.corpora[route.chunking]))
        problems = faults(self._job.queries["query_id"].to_list(), self._results[route.pool].details, wanted)
        if problems["failed"] == self._job.queries.height:
            first = problems["faults"][0]
            at = f" ({first['where']})" if first["where"] else ""
            raise ProviderError(
                f"All questions failed ({problems['failed']}), the first by {first['kind']}: "
                f"{first['text']}{at}.",
                kind="server",
                where=route.stack.label,
                do="Correct the pipeline and measure it again.",
            )
        asked = self._own.get(route.pool)
        return {OWN: {**(asked.about() if asked else {}), **problems}}

    def _indexes(self, route: Route) -> dict[str, JsonMap]:
        indexes: dict[str, JsonMap] = {}
        for step in route.steps:
            if step.kind == "sparse":
                indexes["bm25"] = self._builder.about(step.built)
            elif step.kind == "search":
                recall = self._signals.mean_recall(route)
                about = {**self._builder.about(step.built), **step.params.get("options", {})}
                indexes[step.built.params["name"]] = (
                    about if recall is None else {**about, "ann_recall": recall}
                )
        return indexes


def waited(route: Route, results: StepOutputs) -> dict[str, float]:
    """Return milliseconds per stage spent waiting for a turn or a retry, summed over queries and repeats."""
    sums: defaultdict[str, float] = defaultdict(float)
    for step in route.steps:
        sums[step.stage] += sum(block.waited_ms for block in results[step].blocks.values())
    return {stage: round(ms, 3) for stage, ms in sums.items() if ms}


def pools(route: Route, results: StepOutputs) -> list[Hits]:
    """Return the candidate pool of a stack, per query."""
    values = results[route.pool].values
    if route.pool.kind == OWN:
        return [clipped(ranking, route.depth) if ranking.pool is None else ranking.pool for ranking in values]
    return [clipped(hits, route.depth) for hits in values]


def _has_pool(route: Route, results: StepOutputs) -> bool:
    """Return whether something selects from a pool, so that the pool is stored separately."""
    own = route.pool.kind == OWN and any(value.pool is not None for value in results[route.pool].values)
    return route.keeps_pool or own


def finals(route: Route, results: StepOutputs) -> list[Hits]:
    """Return the final ranking of a stack, per query."""
    by_step = {step: results[step].values for step in (route.pool, route.rerank, route.cut) if step}
    return [
        final(route, dict(zip(by_step, values, strict=True)))
        for values in zip(*by_step.values(), strict=True)
    ]


def final(route: Route, results: Mapping[Step, Any]) -> Hits:
    """Return the final ranking of one query from the results of the steps."""
    ranked = clipped(results[route.pool], route.depth)
    if route.rerank is not None:
        ranked = reranked(ranked, results[route.rerank], route.depth)
    if route.cut is not None:
        ranked = clipped(ranked, results[route.cut])
    return ranked if route.sent is None else clipped(ranked, route.sent)


def rankings(
    run_id: str, route: Route, results: StepOutputs, query_ids: pl.Series, passage_ids: pl.Series
) -> pl.DataFrame:
    """Return rows of the table "rankings": the final ranking, and the pool if something selected from it."""
    parts = [_ranked(finals(route, results), query_ids, passage_ids, run_id=run_id, stage="final")]
    if _has_pool(route, results):
        parts.append(_ranked(pools(route, results), query_ids, passage_ids, run_id=run_id, stage="pool"))
    return pl.concat(parts)


def _ranked(
    hits: Sequence[Hits], query_ids: pl.Series, passage_ids: pl.Series, **constants: str
) -> pl.DataFrame:
    lengths = np.array([len(ranking.passages) for ranking in hits])
    columns = pl.DataFrame(
        {
            "query_id": query_ids.gather(np.repeat(np.arange(len(hits)), lengths)),
            "rank": np.concatenate([np.arange(1, length + 1) for length in lengths]),
            "passage_id": passage_ids.gather(np.concatenate([ranking.passages for ranking in hits])),
            "score": np.concatenate([ranking.scores for ranking in hits]),
        }
    ).with_columns(pl.col("score").fill_nan(None))
    return _declared("rankings", columns, **constants)


def timings(run_id: str, route: Route, results: StepOutputs, query_ids: pl.Series) -> pl.DataFrame:
    """Return rows of the table "timings": every step in every pass.

    It is None if a part of the path has no time (nothing was measured, or scores of a deeper pool were used),
    as the rest would pass for the whole.
    """
    if route.replayed or not all(results[step].blocks for step in route.steps):
        return frame("timings", [])
    parts = []
    for step in route.steps:
        answered = results[step]
        for repeat, of in enumerate(sorted(answered.blocks), 1):
            for stage, ms in _stages(step.stage, answered.blocks[of], answered.parts.get(of, {})):
                place = answered.blocks[of].place
                columns = pl.DataFrame(
                    {
                        "query_id": query_ids,
                        "ms": ms,
                        "repeat": repeat,
                        "place": pl.Series(place, dtype=pl.Int32),
                    }
                )
                known = columns.filter(pl.col("ms").is_finite())  # a failed query has no time
                parts.append(_declared("timings", known, run_id=run_id, stage=stage))
    return _by_stage(pl.concat(parts), "ms")


def _stages(stage: str, block: StepTimes, parts: Mapping[str, StepTimes]) -> Iterator[tuple[str, Floats]]:
    rest = block.ms
    for name, part in parts.items():
        if name != stage:
            yield name, part.ms
            rest = np.maximum(rest - part.ms, 0.0)
    yield stage, rest


def _by_stage(rows: pl.DataFrame, amount: str) -> pl.DataFrame:
    """Add up the steps of each stage, which may occur several times per query; unknown stays unknown."""
    keys = [name for name in rows.columns if name not in (amount, "basis", "place")]
    known = pl.when(~pl.col(amount).has_nulls()).then(pl.col(amount).sum()).alias(amount)
    rest = [pl.col(name).first() for name in ("basis", "place") if name in rows.columns]
    return rows.group_by(keys, maintain_order=True).agg(known, *rest).select(rows.columns)


def usage(
    run_id: str, route: Route, results: StepOutputs, query_ids: pl.Series, lengths: Ints
) -> pl.DataFrame:
    """Return rows of the table "usage": what vendors billed, and processor time of local steps."""
    parts = [frame("usage", [])]
    for step in route.steps:
        constants = {"run_id": run_id, "stage": step.stage}
        here = [block.cpu_ms for block in results[step].blocks.values() if block.cpu_ms is not None]
        if here:
            columns = pl.DataFrame({"query_id": query_ids, "amount": np.median(np.stack(here), axis=0)})
            columns = columns.filter(pl.col("amount").is_finite())
            measured = {"item": LOCAL_ITEM, "unit": "cpu_ms", "basis": str(Basis.MEASURED)}
            parts.append(_declared("usage", columns, **constants, **measured))
        rows = _billed(_used(route, step, results, lengths), query_ids.to_list())
        if rows:
            parts.append(_declared("usage", pl.DataFrame(rows), **constants))
    return _by_stage(pl.concat(parts), "amount")


def answers(run_id: str, route: Route, results: StepOutputs, query_ids: pl.Series) -> pl.DataFrame:
    """Return rows of the table "answers": those of a custom pipeline, as a reader of its name.

    Its k is the maximum number of passages that it returned for a query, 0 = none. The time is that of its
    stage "generate"; its cost is included in the usage of the pipeline.
    """
    written = results[route.pool]
    texts = [detail.get("answer") for detail in written.details] if route.pool.kind == OWN else []
    if not any(texts):
        return frame("answers", [])
    k = max(len(ranking.passages) for ranking in finals(route, results))
    rows = {
        "query_id": query_ids,
        "text": pl.Series(texts, dtype=pl.String),
        "ms": [(detail.get("stages") or {}).get(GENERATE) for detail in written.details],
        "k": k,
    }
    mode, reader = TOP_K if k else CLOSED_BOOK, str(route.stack.spec["name"])
    written_only = pl.DataFrame(rows).drop_nulls("text")
    return _declared("answers", written_only, run_id=run_id, reader=reader, mode=mode)


def _used(route: Route, step: Step, results: StepOutputs, lengths: Ints) -> Sequence[Sequence[Amount]]:
    """Return a step's usage per query; for a deeper pool the share that this stack's depth would use."""
    used = results[step].usage
    if not (route.replayed and step is route.rerank):
        return used
    shares = []
    for hits, amounts in zip(results[route.pool].values, used, strict=True):
        read = lengths[hits.passages[: step.params["depth"]]]
        share = float(read[: route.depth].sum() / read.sum()) if read.sum() else 1.0
        shares.append([_share(amount, share, min(route.depth, len(read))) for amount in amounts])
    return shares


def _share(amount: Amount, share: float, documents: int) -> Amount:
    if amount.unit == "search_units":
        units = None if amount.amount is None else min(amount.amount, search_units(documents))
        return replace(amount, amount=units, basis=Basis.MODELLED)
    if amount.unit not in ("input_tokens", "output_tokens"):
        return amount
    return replace(scaled(amount, share), basis=Basis.MODELLED)


def _billed(used: Sequence[Sequence[Amount]], query_ids: Sequence[str]) -> list[dict[str, Any]]:
    """Return every kind of usage for every query; a query that skipped the step used nothing."""
    kinds = dict.fromkeys((amount.item, amount.unit) for amounts in used for amount in amounts)
    rows = []
    for item, unit in kinds:
        nothing = Amount(item, unit, 0.0, Basis.MEASURED)
        for query_id, amounts in zip(query_ids, used, strict=True):
            amount = next(
                (amount for amount in amounts if (amount.item, amount.unit) == (item, unit)), nothing
            )
            rows.append({"query_id": query_id, **asdict(amount)})
    return rows


def _declared(table: str, columns: pl.DataFrame, **constants: str) -> pl.DataFrame:
    return frame(
        table, columns.with_columns(**{name: pl.lit(text) for name, text in constants.items()}).to_dict()
    )
