"""The needs of a sweep before it runs: stacks, calls, tokens, dollars, time and memory. It spends nothing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from core.axes import QUERY_STAGES
from core.pipeline.evaluate import Job
from core.pipeline.evaluate.identity import MODELS, identities
from core.pipeline.evaluate.steps import NONE, Route, Step, graph
from core.pipeline.sweep.fields import searched_by
from core.pipeline.sweep.known import KnownNames
from core.pipeline.sweep.paid import CORPUS, Counting, Paid, Usage, count_texts, embedding, fewest_calls
from core.pipeline.sweep.problems import Problem
from core.pipeline.sweep.resources import (
    CHAT_MS,
    OUTPUT_TOKENS_PER_S,
    Rates,
    ResourceNeeds,
    partitions,
    resources,
)
from core.prices import CURRENCY, PriceBook
from core.prices.cost import DOLLARS
from core.providers.base import Amount, Purpose, total
from core.providers.chat import Chat
from core.providers.config import place_of
from core.providers.embed import embedder_config
from core.records import Stack

_STAGES = (CORPUS, *QUERY_STAGES.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One model in one stage of the whole sweep."""

    stage: str  # "embed corpus", or a stage of runs: "rewrite", "embed", "rerank"
    model: str  # the remote model
    calls: int  # requests, repeats and warm-up included
    unit: str  # what is billed
    amount: float | None  # how much of it; None = not known
    exact: bool  # whether a vocabulary counted the very texts that will be sent; otherwise it is an estimate
    notes: tuple[str, ...]  # how it was counted
    usd: float | None  # dollars; None = not known
    reason: str = ""  # why the dollars are not known


@dataclass(frozen=True, slots=True)
class Service:
    """The service behind a model, and the key sent to it."""

    model: str  # the remote model
    url: str  # its address
    key_env: str  # variable with its key; empty = none is sent
    allowed_by: str  # who allows that key to be sent there: "vendor", "operator"; empty = nobody, or no key


@dataclass(frozen=True, slots=True)
class PlannedStack:
    """One stack."""

    stack: Stack  # the stack
    pool: str  # the convention of its candidate pool
    usd_per_1k: float | None
    reason: str = ""  # why they are not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """Expected payments of planned work."""

    lines: tuple[Line, ...]  # one per model and stage
    limit: float | None  # the budget in dollars; None = none
    problems: tuple[Problem, ...] = ()  # what its owner should know

    @property
    def usd(self) -> float | None:
        """Total dollars, or None if a line is unknown."""
        return None if any(line.usd is None for line in self.lines) else self.usd_known

    @property
    def usd_known(self) -> float:
        """Dollars of the lines that are known."""
        return math.fsum(line.usd for line in self.lines if line.usd is not None)

    @property
    def unpriced(self) -> tuple[str, ...]:
        """Models with a known amount and an unknown price."""
        wanting = (line.model for line in self.lines if line.usd is None and line.amount is not None)
        return tuple(dict.fromkeys(wanting))

    @property
    def calls(self) -> int:
        """Requests in all."""
        return sum(line.calls for line in self.lines)

    @property
    def over_budget(self) -> bool:
        """Whether the known cost alone exceeds the budget, so that the run would stop early."""
        return self.limit is not None and self.usd_known > self.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Bill):
    """The needs of a sweep: stacks, calls, payments, time and memory."""

    name: str
    stacks: tuple[PlannedStack, ...]
    queries: int  # how many questions are asked
    asked: int  # how often every question is asked and measured
    passages: Mapping[str | None, int]  # searched, per chunking (None = the collection's own)
    steps: Mapping[str, int]  # how many different steps of each kind there are
    services: tuple[Service, ...]
    resources: ResourceNeeds
    partitions: Mapping[str, tuple[int, ...]]  # passages in each, by the way of filtering
    # Maximum stacks that a search starts, so that all other numbers are maxima; None = all of them
    begun: int | None = None

    @property
    def exact(self) -> bool:
        """Whether every amount is exact."""
        return all(line.exact for line in self.lines)


def plan(
    job: Job,
    *,
    known: KnownNames | None = None,
    rates: Rates | None = None,
    built: Callable[[Step], bool] = lambda _: False,
    problems: Sequence[Problem] = (),
) -> Plan:
    """Work out what an evaluation will take; sends nothing and writes nothing.

    Args:
        job: The evaluation; its stacks have been checked.
        built: Whether the result of a building step already exists, so that nothing is paid for it.

    Returns:
        The plan. Dollars are those of calls that succeed at once: a call whose answer is lost is paid twice.
    """
    known, rates = known or KnownNames(job.models), rates or Rates()
    names = identities(job)
    rerankers = sorted({stack.spec.get("reranker", NONE) for stack in job.stacks} - {NONE})
    pointwise = [name for name in rerankers if known.planned_reranker(name).pointwise]
    steps = graph(job.stacks, names, deepest=pointwise if job.protocol.deepest else ())
    counting = Counting(job, steps, names, known, built)
    paid = counting.all()
    per_query, how = {payment.step: payment.per_query for payment in paid}, searched_by(job.spec)
    spread_over = job.spec.get("budget", {}).get("amortise_over_queries")
    return Plan(
        name=job.name,
        stacks=tuple(
            _planned(route, _in_use(route, counting, per_query, spread_over), job.book)
            for route in steps.routes
        ),
        queries=job.queries.height,
        asked=max(1, job.protocol.passes),
        passages={chunking: len(corpus) for chunking, corpus in job.corpora.items()},
        steps=Counter(step.kind for step in (*steps.builds, *steps.steps)),
        services=tuple(_services(job, known)),
        lines=tuple(_lines(paid, job.book)),
        limit=job.budget_usd,
        resources=resources(job, steps, paid, known=known, rates=rates, built=built),
        partitions=dict(partitions(job)),
        problems=tuple(problems),
        begun=None if how is None else min(how.trials, len(job.stacks)),
    )


def dollars(amount: Amount, book: PriceBook) -> tuple[float | None, str]:
    """Return the cost of an amount in dollars, or None and the reason why that is not known."""
    if amount.unit == DOLLARS and amount.amount is not None:
        return amount.amount, ""
    price = book.find(amount.item, amount.unit)
    if price is None:
        return None, f"no price for {amount.item} ({amount.unit}) in {book.name}"
    if price.currency != CURRENCY:
        return None, f"{amount.item} is priced in {price.currency}"
    if amount.amount is None:
        return None, f"{amount.unit} of {amount.item} not known"
    return price.each * amount.amount, ""


def priced_lines(
    of: tuple[str, str, int], used: Iterable[Amount], book: PriceBook, *, exact: bool, notes: Sequence[str]
) -> Iterator[Line]:
    """Yield one line per unit that the calls of a model use; only the first states the number of calls.

    Args:
        of: The stage, the model and how many calls.
        used: What they use in all.
        notes: How it was counted, or what is assumed; empty ones are left out.
    """
    stage, model, calls = of
    for amount in used:
        usd, reason = dollars(amount, book)
        yield Line(
            stage=stage, model=model, calls=calls, unit=amount.unit, amount=amount.amount, exact=exact,
            notes=tuple(note for note in notes if note), usd=usd, reason=reason,
        )  # fmt: skip
        calls = 0


def embedded_lines(
    of: tuple[str, str, Purpose], texts: Sequence[str], known: KnownNames, book: PriceBook
) -> Iterator[Line]:
    """Yield the line of texts that a model embeds; none if it runs here.

    Args:
        of: The stage, the embedder, and what its texts are.
        texts: What is embedded; what is in a journal already is counted as well.
    """
    stage, model, purpose = of
    config = embedder_config(known.models.get(model, model))
    if (place := place_of(config)) is None:
        return
    counted = count_texts(texts, config.tokenizer, config.prefixes.get(purpose, ""))
    calls = fewest_calls(counted, known.planned_embedder(model), own=not place.known)
    used = [embedding(config, counted.tokens)]
    yield from priced_lines((stage, model, calls), used, book, exact=counted.exact, notes=[counted.note])


def asked_seconds(line: Line, chat: Chat) -> float:
    """Estimate the seconds that the calls of a line take at a vendor; an assumption."""
    written = line.amount or 0.0 if line.unit == "output_tokens" else 0.0
    return (line.calls * CHAT_MS / 1000 + written / OUTPUT_TOKENS_PER_S) / chat.concurrency


def _services(job: Job, known: KnownNames) -> Iterator[Service]:
    for own in job.own.values():
        if own.url is not None:
            by = known.keys.allowed_by(own.key_env, own.url) if own.key_env else ""
            yield Service(own.name, own.place, own.key_env or "", by)
    used = {(key, str(stack.spec[key])) for stack in job.stacks for key in MODELS if stack.spec.get(key)}
    for key, name in sorted(used):
        place = None if name == NONE or known.is_local(key, name) else place_of(known.config(key, name))
        if place is not None:
            by = known.keys.allowed_by(place.key_env, place.url) if place.key_env else ""
            yield Service(name, place.url, place.key_env, by)


def _lines(paid: Sequence[Paid], book: PriceBook) -> list[Line]:
    """Return one line per stage, model and unit."""
    lines: list[Line] = []
    for stage, model in sorted(
        {(part.stage, part.model): None for part in paid}, key=lambda pair: _STAGES.index(pair[0])
    ):
        parts = [part for part in paid if (part.stage, part.model) == (stage, model)]
        of = (stage, model, sum(part.calls for part in parts))
        notes = list(dict.fromkeys(note for part in parts for note in part.notes))
        exact = all(part.exact for part in parts)
        used = total(part.used for part in parts)
        lines += priced_lines(of, used, book, exact=exact, notes=notes)
    return lines


def _in_use(
    route: Route, counting: Counting, per_query: Mapping[Step, Usage], spread_over: int | None
) -> Iterator[Usage]:
    """Yield a query's usage in production, and its share of embedding the corpus if that is spread."""
    for step in route.steps:
        if step is route.rerank and step in per_query and route.replayed:
            yield counting.reranked(step, route.stack.spec, route.depth)  # asked about its own depth
        else:
            yield per_query.get(step, ())
        if spread_over and step.kind == "search":
            vectors = step.built
            while vectors.needs:
                vectors = vectors.needs[0]
            paid = counting.corpus(vectors)
            for amount in paid.used if paid else ():
                yield (
                    replace(amount, amount=None if amount.amount is None else amount.amount / spread_over),
                )


def _planned(route: Route, used: Iterable[Usage], book: PriceBook) -> PlannedStack:
    """Return a stack with what 1,000 queries cost in use."""
    costs = [dollars(amount, book) for amount in total(used)]
    reasons = tuple(dict.fromkeys(reason for _, reason in costs if reason))
    usd = None if reasons else 1000 * math.fsum(usd for usd, _ in costs if usd is not None)
    return PlannedStack(route.stack, route.pool_name, usd, "; ".join(reasons))
