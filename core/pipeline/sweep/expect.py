"""How long a sweep will take, and how much memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from core.pipeline.dense import expected_bytes
from core.pipeline.evaluate import Corpus, Job
from core.pipeline.evaluate.steps import Graph, Step
from core.pipeline.sweep import rates as at
from core.pipeline.sweep.known import LOCAL_ENGINES, Known
from core.pipeline.sweep.paid import CORPUS, Paid
from core.pipeline.sweep.pools import FREE
from core.pipeline.sweep.rates import Rates
from core.providers.vendors import place_of

BYTES_PER_NUMBER = 4
BM25_BYTES_PER_CHARACTER = 0.6
"""Of an index over English abstracts: 578 bytes for passages of 1,021 characters (Cranfield)."""
BUILD, ASK = "build here", "ask here"


@dataclass(frozen=True, slots=True)
class Resources:
    """Time and memory.

    Attributes:
        seconds: By stage: those that are paid for, `BUILD` and `ASK`.
        pause_s: Seconds between rounds.
        basis: What the times rest on.
        vector_bytes: Of all vectors, on disk.
        index_bytes: Of all indexes, in memory if all are open together.
        largest_bytes: Of the largest index.
    """

    seconds: Mapping[str, float]
    pause_s: float
    basis: tuple[str, ...]
    vector_bytes: int
    index_bytes: int
    largest_bytes: int

    @property
    def total_s(self) -> float:
        """Seconds in all."""
        return sum(self.seconds.values()) + self.pause_s


def resources(
    job: Job,
    steps: Graph,
    paid: Sequence[Paid],
    *,
    known: Known,
    rates: Rates,
    built: Callable[[Step], bool],
) -> Resources:
    """Time and memory of an evaluation; see `core.pipeline.sweep.plan.plan`."""
    corpora = {corpus.hash: corpus for corpus in job.corpora.values()}
    seconds: dict[str, float] = {}
    bases: dict[str, None] = {}
    for each in paid:
        taken, basis = _paid_s(each, job, known, rates)
        seconds[each.stage] = seconds.get(each.stage, 0.0) + taken
        bases[basis] = None
    seconds[BUILD] = sum(
        _build_s(step, corpora, known) for step in steps.builds if step.kind != "slice" and not built(step)
    )
    seconds[ASK] = _ask_s(job, steps, corpora, known)
    vectors = [_vector_bytes(step, corpora) for step in steps.builds if step.kind in {"vectors", "slice"}]
    indexes = [_index_bytes(step, corpora) for step in steps.builds if step.kind in {"index", "bm25"}]
    return Resources(
        seconds=seconds,
        pause_s=job.protocol.pause_s * (job.protocol.rounds - 1),
        basis=(*bases, at.ASSUMED) if at.ASSUMED not in bases else tuple(bases),
        vector_bytes=sum(vectors),
        index_bytes=sum(indexes),
        largest_bytes=max(indexes, default=0),
    )


def _paid_s(each: Paid, job: Job, known: Known, rates: Rates) -> tuple[float, str]:
    if each.stage == CORPUS:
        config = known.config("embedder", each.model)
        tokens = sum(used.amount or 0.0 for used in each.used)
        if each.model in rates.probed:
            return tokens / rates.probed[each.model].tokens_per_s, at.PROBED
        place = place_of(config)
        if place is not None and not place.known:
            corpus = next(c for c in job.corpora.values() if c.hash == each.step.params["corpus"])
            return len(corpus) / at.ENCODER_PASSAGES_PER_S, at.ASSUMED
        limits = config.limits
        taken = at.corpus_s(
            each.calls,
            tokens,
            concurrency=limits.concurrency,
            tokens_per_minute=limits.tokens_per_minute,
        )
        return taken, at.ASSUMED
    depth = int(each.step.params.get("depth", 0))
    one = rates.call(each.stage, each.model, depth=depth, used=each.per_query)
    asked = job.queries.height * max(1, job.protocol.passes)
    return asked * one.ms / 1000 / job.protocol.concurrency, one.basis


def _build_s(step: Step, corpora: Mapping[str, Corpus], known: Known) -> float:
    """Seconds of building here; vectors of vendors are paid for and counted there."""
    size = len(_corpus(step, corpora))
    if step.kind == "bm25":
        return size / at.BM25_PASSAGES_PER_S
    if step.kind == "index":
        return size * _dim(step) / at.INDEX_NUMBERS_PER_S.get(step.params["name"], 1e5)
    provider = known.config("embedder", step.params["model"]["name"]).provider
    if provider not in LOCAL_ENGINES:
        return 0.0
    return size / (at.STATIC_PASSAGES_PER_S if provider in FREE else at.ENCODER_PASSAGES_PER_S)


def _ask_s(job: Job, steps: Graph, corpora: Mapping[str, Corpus], known: Known) -> float:
    """Seconds of asking here: each query once unmeasured and then in every pass."""
    ms = 0.0
    for step in steps.steps:
        if step.kind == "search":
            index = step.built
            exact = index.params["name"] in {"flat", "int8"}
            compared = len(_corpus(index, corpora)) * _dim(index) if exact else 0
            ms += at.SEARCH_MS + compared / at.NUMBERS_COMPARED_PER_MS
        elif step.kind == "rerank" and known.is_local("reranker", step.params["model"]["name"]):
            ms += at.LOCAL_RERANK_MS_PER_PASSAGE * int(step.params["depth"])
        elif step.kind in {"sparse", "fuse", "dedup", "cut"}:
            ms += at.SEARCH_MS
    return ms / 1000 * job.queries.height * (1 + job.protocol.passes)


def _corpus(step: Step, corpora: Mapping[str, Corpus]) -> Corpus:
    while "corpus" not in step.params:
        step = step.needs[0]
    return corpora[step.params["corpus"]]


def _dim(step: Step) -> int:
    return int(step.params["dim"]) if "dim" in step.params else _dim(step.needs[0])


def _vector_bytes(step: Step, corpora: Mapping[str, Corpus]) -> int:
    return BYTES_PER_NUMBER * _dim(step) * len(_corpus(step, corpora))


def _index_bytes(step: Step, corpora: Mapping[str, Corpus]) -> int:
    corpus = _corpus(step, corpora)
    if step.kind == "bm25":
        return int(BM25_BYTES_PER_CHARACTER * int(corpus.texts.str.len_chars().sum()))
    params = step.params["params"]
    return expected_bytes(step.params["name"], dim=_dim(step), passages=len(corpus), options=params)
