"""Estimates a sweep's time and memory: rates with their sources, measured ones first.

Times of vendors vary with the hour and the network; these estimates only distinguish minutes, hours and days.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl

from core.pipeline.evaluate import Corpus, Job
from core.pipeline.evaluate.steps import FILTERING, Graph, Step
from core.pipeline.index import expected_bytes
from core.pipeline.index.scope import PARTITION, filter_way, partition
from core.pipeline.sweep.known import LOCAL_ENGINES, NONE, KnownNames
from core.pipeline.sweep.paid import CORPUS, Paid
from core.pipeline.sweep.pools import FREE
from core.pipeline.sweep.scale import build_seconds
from core.providers.base import Amount, Purpose
from core.providers.config import Limits, place_of
from core.providers.embed import make_embedder

EMBED_MS = 140.0  # A query at a vendor: the CLQ paper's Table 1 has medians of 133 to 149 ms
RERANK_MS, RERANK_MS_PER_PASSAGE = 230.0, 2.25
"""A call at a vendor: the CLQ paper's Table 15 has 331 ms at K = 50 and 668 ms at K = 200 (rerank-2.5)."""
CHAT_MS, OUTPUT_TOKENS_PER_S = 1000.0, 60.0  # A call at a vendor: an assumption
OWN_MS = 100.0  # A query of a custom pipeline: an assumption
BATCH_MS = 1000.0  # A batch of passages at a vendor: an assumption
STATIC_PASSAGES_PER_S, ENCODER_PASSAGES_PER_S = 500.0, 20.0
"""Embedding here, static vectors and encoders: measured on a busy core, and an assumption."""
BM25_PASSAGES_PER_S = 5_000.0
SEARCH_MS = 1.0  # A query and a step here, in a small corpus; exact search adds its own
NUMBERS_COMPARED_PER_MS = 1e6
LOCAL_RERANK_MS_PER_PASSAGE = 20.0  # A cross-encoder here: an assumption

PUBLISHED, ASSUMED, MEASURED = "published medians", "assumed", "measured earlier"
PROBED = "servers of one's own asked now"
_MODELS = {"pipeline": "name", "embed": "embedder", "rerank": "reranker", "rewrite": "rewrite"}
_PROBED_PASSAGES = 8
BYTES_PER_NUMBER = 4
BM25_BYTES_PER_CHARACTER = 0.6
"""Bytes per character of an index of English abstracts: 578 for passages of 1,021 characters (Cranfield)."""
BUILD, ASK = "build here", "ask here"


class MachineSpeed(NamedTuple):
    """Recent speed of an embedder."""

    query_ms: float  # milliseconds of one query
    tokens_per_s: float  # tokens of passages in a second, one call at a time


@dataclass(frozen=True, slots=True)
class Rates:
    """Times of calls at vendors and at self-hosted servers."""

    # Median ms by stage, model and candidate depth (0 if none matters), of earlier runs
    measured: Mapping[tuple[str, str, int], float] = field(default_factory=dict)
    probed: Mapping[str, MachineSpeed] = field(default_factory=dict)  # Speeds of embedders by their name

    def call(self, stage: str, model: str, depth: int, used: tuple[Amount, ...]) -> tuple[float, str]:
        """Return the milliseconds of a vendor's call for one query, and their basis.

        The depth is a reranked pool's; the time of chat models depends on the length of their answers.
        """
        if stage == "embed" and model in self.probed:
            return self.probed[model].query_ms, PROBED
        near = {k: ms for (at, name, k), ms in self.measured.items() if (at, name) == (stage, model)}
        if near:
            return near[min(near, key=lambda k: abs(k - depth))], MEASURED
        if stage == "embed":
            return EMBED_MS, PUBLISHED
        if stage == "pipeline":
            return OWN_MS, ASSUMED
        written = sum(amount.amount or 0.0 for amount in used if amount.unit == "output_tokens")
        if written:
            return CHAT_MS + 1000 * written / OUTPUT_TOKENS_PER_S, ASSUMED
        return RERANK_MS + RERANK_MS_PER_PASSAGE * depth, PUBLISHED


def measured(runs: pl.DataFrame, timings: pl.DataFrame) -> dict[tuple[str, str, int], float]:
    """Return median times of models in earlier runs, in the form of `Rates`.

    Args:
        runs: run_id and spec (JSON).
        timings: Rows of the table "timings" of these runs.
    """
    specs = {row["run_id"]: json.loads(row["spec"]) for row in runs.select("run_id", "spec").to_dicts()}
    medians_by_model: dict[tuple[str, str, int], float] = {}
    medians = (
        timings.filter(pl.col("stage").is_in(list(_MODELS)))
        .group_by("run_id", "stage")
        .agg(pl.col("ms").median())
    )
    for run_id, stage, ms in medians.sort("run_id").iter_rows():
        spec = specs.get(run_id, {})
        model = spec.get(_MODELS[stage])
        if model and ms is not None:
            medians_by_model[stage, model, int(spec.get("candidates", 0)) if stage == "rerank" else 0] = ms
    return medians_by_model


def corpus_s(calls: int, tokens: float, texts: int, limits: Limits) -> float:
    """Return the seconds of embedding a corpus at a vendor.

    They follow from its limits per minute or from its batches, whichever takes longest.
    """
    paces = (
        (tokens, limits.tokens_per_minute),
        (texts, limits.items_per_minute),
        (calls, limits.requests_per_minute),
    )
    paced = [60 * amount / pace for amount, pace in paces if pace]
    return max([*paced, calls * BATCH_MS / 1000 / max(1, limits.concurrency)])


def embedding_here_s(provider: str, passages: int) -> float:
    """Return the assumed seconds of one core in which a model on this machine embeds passages."""
    return passages / (STATIC_PASSAGES_PER_S if provider in FREE else ENCODER_PASSAGES_PER_S)


def probe(job: Job, known: KnownNames | None = None) -> dict[str, MachineSpeed]:
    """Time a sweep's embedders on self-hosted servers; vendors are not asked.

    Each is sent the sweep's first question twice, the first time unmeasured, and one call of at most 8
    passages of usual length. Nothing is kept.

    Raises:
        ProviderError: If a server does not answer, or there is no key.
    """
    known = known or KnownNames(job.models)
    searched = {str(stack.spec.get("embedder", NONE)): stack.spec for stack in job.stacks}
    speeds = {}
    for name in sorted(searched.keys() - {NONE}):
        config = known.config("embedder", name)
        place = place_of(config)
        if place is None or place.known:
            continue
        # A few texts from the middle of all lengths
        texts = sorted(filter(str.strip, next(iter(job.corpora.values())).texts), key=len)
        first = max(0, (len(texts) - _PROBED_PASSAGES) // 2)
        passages = texts[first : first + _PROBED_PASSAGES]
        with make_embedder(config, searched[name]["dim"], keys=known.keys) as embedder:
            asked = job.queries["text"][0]
            embedder.embed_query(asked)
            query = embedder.embed_query(asked)
            reply = embedder.embed_batch(passages, Purpose.PASSAGE)
            tokens = sum(map(embedder.count_tokens, passages))
        speeds[name] = MachineSpeed(query.ms, 1000 * tokens / max(reply.ms, 1e-3))
    return speeds


@dataclass(frozen=True, slots=True)
class ResourceNeeds:
    """Time and memory."""

    seconds: Mapping[str, float]  # by stage: those that are paid for, `BUILD` and `ASK`
    pause_s: float  # seconds between rounds
    basis: tuple[str, ...]  # the basis of the times
    vector_bytes: int  # of all vectors, on disk
    index_bytes: int  # of all indexes, in memory if all are open together
    largest_bytes: int  # of the largest index

    @property
    def total_s(self) -> float:
        """Seconds in all."""
        return sum(self.seconds.values()) + self.pause_s


def resources(
    job: Job,
    steps: Graph,
    paid: Sequence[Paid],
    *,
    known: KnownNames,
    rates: Rates,
    built: Callable[[Step], bool],
) -> ResourceNeeds:
    """Estimate time and memory of an evaluation; see `core.pipeline.sweep.plan.plan`."""
    corpora = {corpus.hash: corpus for corpus in job.corpora.values()}
    seconds: dict[str, float] = {}
    bases: dict[str, None] = {}
    for payment in paid:
        taken, basis = _paid_s(payment, job, known, rates)
        seconds[payment.stage] = seconds.get(payment.stage, 0.0) + taken
        bases[basis] = None
    seconds[BUILD] = sum(
        _build_s(step, corpora, known) for step in steps.builds if step.kind != "slice" and not built(step)
    )
    seconds[ASK] = _ask_s(job, steps, corpora, known)
    numbers = [
        _dim(step) * len(_corpus(step, corpora)) for step in steps.builds if step.kind in {"vectors", "slice"}
    ]
    indexes = [_index_bytes(step, corpora) for step in steps.builds if step.kind in {"index", "bm25"}]
    return ResourceNeeds(
        seconds=seconds,
        pause_s=job.protocol.pause_s * (job.protocol.rounds - 1),
        basis=(*bases, ASSUMED) if ASSUMED not in bases else tuple(bases),
        vector_bytes=BYTES_PER_NUMBER * sum(numbers),
        index_bytes=sum(indexes),
        largest_bytes=max(indexes, default=0),
    )


def _paid_s(paid: Paid, job: Job, known: KnownNames, rates: Rates) -> tuple[float, str]:
    if paid.stage == CORPUS:
        config = known.config("embedder", paid.model)
        tokens = sum(used.amount or 0.0 for used in paid.used)
        if paid.model in rates.probed:
            return tokens / rates.probed[paid.model].tokens_per_s, PROBED
        corpus = next(c for c in job.corpora.values() if c.hash == paid.step.params["corpus"])
        place = place_of(config)
        if place is not None and not place.known:
            return len(corpus) / ENCODER_PASSAGES_PER_S, ASSUMED
        return corpus_s(paid.calls, tokens, len(corpus), config.limits), ASSUMED
    depth = int(paid.step.params.get("depth", 0))
    ms, basis = rates.call(paid.stage, paid.model, depth, paid.per_query)
    asked = job.queries.height * max(1, job.protocol.passes)
    return asked * ms / 1000 / job.protocol.concurrency, basis


def _build_s(step: Step, corpora: Mapping[str, Corpus], known: KnownNames) -> float:
    """Return the seconds of building here; vectors from vendors are counted with the paid calls."""
    size = len(_corpus(step, corpora))
    if step.kind == "bm25":
        return size / BM25_PASSAGES_PER_S
    if step.kind == "index":
        name, options = step.params["name"], step.params["params"]
        sizes = _sizes(step, _corpus(step, corpora))
        return sum(build_seconds(name, dim=_dim(step), passages=part, options=options) for part in sizes)
    provider = known.config("embedder", step.params["model"]["name"]).provider
    if provider not in LOCAL_ENGINES:
        return 0.0
    return embedding_here_s(provider, size)


def _ask_s(job: Job, steps: Graph, corpora: Mapping[str, Corpus], known: KnownNames) -> float:
    """Return the seconds of asking here: each query once unmeasured and then in every pass."""
    ms = 0.0
    for step in steps.steps:
        if step.kind == "search":
            index = step.built
            exact = index.params["name"] in {"flat", "int8"}
            compared = len(_corpus(index, corpora)) * _dim(index) if exact else 0
            ms += SEARCH_MS + compared / NUMBERS_COMPARED_PER_MS
        elif step.kind == "rerank" and known.is_local("reranker", step.params["model"]["name"]):
            ms += LOCAL_RERANK_MS_PER_PASSAGE * int(step.params["depth"])
        elif step.asks and step.stage not in _MODELS:
            ms += SEARCH_MS
    return ms / 1000 * job.queries.height * (1 + job.protocol.passes)


def _corpus(step: Step, corpora: Mapping[str, Corpus]) -> Corpus:
    while "corpus" not in step.params:
        step = step.needs[0]
    return corpora[step.params["corpus"]]


def _dim(step: Step) -> int:
    return int(step.params["dim"]) if "dim" in step.params else _dim(step.needs[0])


def _sizes(step: Step, corpus: Corpus) -> list[int]:
    """Return the number of passages of each index that a step builds: one, or one per partition."""
    if PARTITION not in step.params or corpus.fields is None:
        return [len(corpus)]
    return [len(positions) for positions in partition(corpus.fields, step.params[PARTITION]["field"])]


def partitions(job: Job) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the ways of filtering by partition that stacks have, and the passages of each partition."""
    corpus = next(iter(job.corpora.values()))
    for named in sorted({str(stack.spec.get(FILTERING, NONE)) for stack in job.stacks}):
        way = filter_way(named)
        if way.kind == PARTITION and corpus.fields is not None:
            yield named, tuple(map(len, partition(corpus.fields, way.field)))


def _index_bytes(step: Step, corpora: Mapping[str, Corpus]) -> int:
    corpus = _corpus(step, corpora)
    if step.kind == "bm25":
        return int(BM25_BYTES_PER_CHARACTER * int(corpus.texts.str.len_chars().sum()))
    name, options = step.params["name"], step.params["params"]
    sizes = _sizes(step, corpus)
    return sum(expected_bytes(name, dim=_dim(step), passages=size, options=options) for size in sizes)
