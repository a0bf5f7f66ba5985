"""Paid calls of a sweep: every remote call that its steps will make, counted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.pipeline.evaluate import Job
from core.pipeline.evaluate.steps import Graph, Identities, Step
from core.pipeline.own.config import OWN
from core.pipeline.own.model import expected_usage
from core.pipeline.sweep.known import NONE, KnownNames
from core.pipeline.sweep.pools import Pools
from core.providers.base import Amount, Purpose, total
from core.providers.config import ModelConfig, place_of
from core.providers.embed import Embedder
from core.providers.embed.batches import FIRST_TOKENS
from core.providers.rerank import Reranker, reranker_config
from core.providers.tokens import counter
from core.records import Basis, JsonMap

SAMPLE = 20_000  # Of a larger corpus this many passages are counted, evenly spread, and the sum is scaled

Lengths = NDArray[np.int64]
CORPUS = "embed corpus"  # Stage of embedding a corpus; the others are those of runs
POOL_KNOWN = "pools computed here"
POOL_TYPICAL = "passages as long as the corpus's on average"
REWRITTEN = "queries before they are rewritten"
ANSWERS = "answers estimated"
OWN_PACE = "at least so many calls: they follow the server's speed"
Usage = tuple[Amount, ...]


class CountedUnits(NamedTuple):
    """Tokens of many texts."""

    tokens: float  # their sum
    lengths: Lengths  # int64 [n], of the texts that were counted
    texts: int  # how many texts it is the sum of
    exact: bool  # whether a vocabulary counted all of them
    note: str  # how it was counted, for people


def count_texts(
    texts: Sequence[str], tokenizer: str | None, prefix: str = "", *, sample: int = SAMPLE
) -> CountedUnits:
    """Return the tokens needed to embed texts."""
    distinct = list(dict.fromkeys(text for text in texts if text.strip()))
    counts, chosen = counter(tokenizer), distinct
    if len(distinct) > sample:
        chosen = [distinct[at] for at in np.linspace(0, len(distinct) - 1, sample).astype(int)]
    lengths = np.array([counts.count(prefix + text) for text in chosen], dtype=np.int64)
    whole = len(chosen) == len(distinct)
    note = counts.note if whole else f"{counts.note}, from a sample of {sample:,} passages"
    scale = len(distinct) / len(chosen) if chosen else 0.0
    return CountedUnits(float(lengths.sum()) * scale, lengths, len(distinct), counts.exact and whole, note)


def embedding(config: ModelConfig, tokens: float) -> Amount:
    """Return the usage of embedding texts with this many tokens."""
    return Amount(config.price_item, "input_tokens", tokens, Basis.MODELLED)


def typical(lengths: Lengths, k: int) -> list[float]:
    """Return assumed lengths of k unknown passages, with the corpus's spread and average."""
    spread = np.quantile(lengths, (np.arange(k) + 0.5) / k)
    even: list[float] = (spread * (lengths.mean() / spread.mean()) if spread.any() else spread).tolist()
    return even


@dataclass(frozen=True, slots=True, kw_only=True)
class Paid:
    """The calls of one step."""

    step: Step  # the step
    stage: str  # what they are for
    model: str  # the remote model
    calls: int  # requests, repeats and warm-up included
    used: Usage  # usage of all of them
    per_query: Usage = ()  # usage of a query, once, on average; empty for the corpus
    exact: bool = False  # whether a vocabulary counted the very texts that will be sent
    notes: tuple[str, ...] = ()  # how it was counted; some may be empty


class StepUsage(NamedTuple):
    """One step's usage when every query goes through it once."""

    by_query: list[tuple[Usage, int]]  # usage and calls, query by query
    exact: bool  # as in `Paid`
    notes: tuple[str, ...]  # as in `Paid`


class Counting:
    """Counts the calls of the steps of an evaluation."""

    def __init__(
        self, job: Job, graph: Graph, names: Identities, known: KnownNames, built: Callable[[Step], bool]
    ) -> None:
        self._job, self._graph, self._names, self._known, self._built = job, graph, names, known, built
        self._queries: list[str] = job.queries["text"].to_list()
        self._pools = Pools(job.corpora, self._queries, known, names.chunking, job.names)
        self._specs: dict[Step, JsonMap] = {}
        for route in graph.routes:
            for step in route.steps:
                self._specs.setdefault(step, route.stack.spec)
        self._lengths: dict[tuple[str | None, str], CountedUnits] = {}
        self._typicals: dict[tuple[str, str | None, str, int], list[tuple[Usage, int]]] = {}
        self._rerankers: dict[str, Reranker] = {}

    def all(self) -> list[Paid]:
        """Return every step that is paid for, building steps first."""
        left = (step for step in self._graph.builds if not self._built(step))
        paid = [payment for step in left if (payment := self.corpus(step)) is not None]
        warm: set[str] = set()
        for step in self._graph.steps:
            if step.kind == OWN:
                paid.append(self._own(step))
            key = {"embed": "embedder", "rerank": "reranker", "rewrite": "rewrite"}.get(step.kind)
            if key is not None and not self._known.is_local(key, name := step.params["model"]["name"]):
                paid.append(self._asking(step, name, warms=name not in warm))
                warm.add(name)
        return paid

    def reranked(self, step: Step, spec: JsonMap, depth: int) -> Usage:
        """Return a reranker's mean usage per query at a depth, which may be less than the step's."""
        reranker = self._reranker(step.params["model"]["name"])
        return _mean([used for used, _ in self._reranks(reranker, spec, depth).by_query])

    def corpus(self, step: Step) -> Paid | None:
        """Return the calls that embed a corpus, done already or not; None for other steps and local ones."""
        if step.kind != "vectors" or self._known.is_local("embedder", step.params["model"]["name"]):
            return None
        name = step.params["model"]["name"]
        config = self._known.config("embedder", name)
        corpus = next(
            candidate for candidate in self._job.corpora.values() if candidate.hash == step.params["corpus"]
        )
        counted = self._counted(corpus.chunking, config.tokenizer, config.prefixes.get(Purpose.PASSAGE, ""))
        place = place_of(config)
        own = place is not None and not place.known
        return Paid(
            step=step,
            stage=CORPUS,
            model=name,
            calls=fewest_calls(counted, self._known.planned_embedder(name), own=own),
            used=(embedding(config, counted.tokens),),
            exact=counted.exact,
            notes=(counted.note, OWN_PACE if own else ""),
        )

    def _own(self, step: Step) -> Paid:
        """Return the calls of a custom pipeline, with their cost if given."""
        name, protocol, queries = step.params["model"]["name"], self._job.protocol, len(self._queries)
        warm_up = min(protocol.warm_up, queries) * protocol.rounds if protocol.repeats else 0
        calls = queries * max(1, protocol.passes) + warm_up
        config = self._job.own[name]
        per_query = expected_usage(config)
        if config.usd_per_hour is not None:  # its duration is unknown
            per_query = (replace(per_query[0], amount=None),)
        used = tuple(replace(a, amount=None if a.amount is None else a.amount * calls) for a in per_query)
        return Paid(step=step, stage=step.stage, model=name, calls=calls, used=used, per_query=per_query)

    def _asking(self, step: Step, name: str, *, warms: bool) -> Paid:
        (by_query, exact, notes), protocol = self._asked(step, name), self._job.protocol
        warm_up = by_query[: protocol.warm_up] * protocol.rounds if warms and protocol.repeats else []
        sent = [*(by_query * max(1, protocol.passes)), *warm_up]
        return Paid(
            step=step,
            stage=step.stage,
            model=name,
            calls=sum(calls for _, calls in sent),
            used=total([used for used, _ in sent]),
            per_query=_mean([used for used, _ in by_query]),
            exact=exact,
            notes=notes,
        )

    def _asked(self, step: Step, name: str) -> StepUsage:
        spec = self._specs[step]
        if step.kind == "rerank":
            return self._reranks(self._reranker(name), spec, int(step.params["depth"]))
        if step.kind == "rewrite":
            rewrite = self._known.planned_rewrite(name)
            return StepUsage(
                [(rewrite.expected(query), 1) for query in self._pools.typed(spec)], False, (ANSWERS,)
            )
        config = self._known.config("embedder", name)
        certain = self._known.is_local("rewrite", spec.get("rewrite", NONE))
        prefix, counts = config.prefixes.get(Purpose.QUERY, ""), counter(config.tokenizer)
        tokens = [count_texts([query], config.tokenizer, prefix) for query in self._pools.asked(spec)]
        used: list[tuple[Usage, int]] = [
            ((embedding(config, token.tokens),), token.texts) for token in tokens
        ]
        return StepUsage(used, counts.exact and certain, (counts.note, "" if certain else REWRITTEN))

    def _reranks(self, reranker: Reranker, spec: JsonMap, depth: int) -> StepUsage:
        way, config = reranker_config(reranker.name, self._known.models)
        counts = counter(config.tokenizer)
        pools = self._pools.of(spec, depth)
        if pools is None:
            return StepUsage(self._typical(reranker, spec, depth), False, (counts.note, POOL_TYPICAL))
        used: list[tuple[Usage, int]] = []
        for query, pool in zip(self._pools.asked(spec), pools, strict=True):
            lengths = [reranker.count_tokens(passage) for passage in pool]
            expected = reranker.expected(reranker.count_tokens(query), lengths) if pool else ()
            used.append((expected, _calls(reranker, len(pool))))
        return StepUsage(used, counts.exact and not way, (counts.note, POOL_KNOWN))

    def _typical(self, reranker: Reranker, spec: JsonMap, depth: int) -> list[tuple[Usage, int]]:
        """Return a reranker's typical usage, shared by all of a corpus's pools, which may number hundreds."""
        chunking = self._names.chunking(spec)
        key = (reranker.name, chunking, f"{spec.get('rewrite')} {spec.get('perturb')}", depth)
        if key not in self._typicals:
            config = reranker_config(reranker.name, self._known.models)[1]
            k = min(depth, len(self._job.corpora[chunking]))
            lengths = typical(self._counted(chunking, config.tokenizer, "").lengths, k)
            self._typicals[key] = [
                (reranker.expected(reranker.count_tokens(query), lengths), _calls(reranker, k))
                for query in self._pools.asked(spec)
            ]
        return self._typicals[key]

    def _counted(self, chunking: str | None, tokenizer: str | None, prefix: str) -> CountedUnits:
        key = (chunking, f"{tokenizer} {prefix}")
        if key not in self._lengths:
            texts = self._job.corpora[chunking].texts.to_list()
            self._lengths[key] = count_texts(texts, tokenizer, prefix)
        return self._lengths[key]

    def _reranker(self, name: str) -> Reranker:
        if name not in self._rerankers:
            self._rerankers[name] = self._known.planned_reranker(name)
        return self._rerankers[name]


def fewest_calls(counted: CountedUnits, embedder: Embedder, *, own: bool) -> int:
    """Return the least number of calls that embed the texts.

    Each call to a self-hosted server can be twice as large as the one before.
    """
    by_items = math.ceil(counted.texts / embedder.batch_items)
    if own:
        return max(by_items, math.ceil(math.log2(counted.tokens / FIRST_TOKENS + 1)))
    return max(by_items, math.ceil(counted.tokens / embedder.batch_tokens) if embedder.batch_tokens else 0)


def _calls(reranker: Reranker, passages: int) -> int:
    return reranker.turns * math.ceil(passages / reranker.batch_items)


def _mean(used: Sequence[Usage]) -> Usage:
    count = max(1, len(used))
    return tuple(
        Amount(
            amount.item, amount.unit, None if amount.amount is None else amount.amount / count, amount.basis
        )
        for amount in total(used)
    )
