"""What running a sweep will take: stacks, calls, tokens, dollars, time and memory. It spends nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from core.clq.prices import CURRENCY, PriceBook
from core.pipeline.evaluate import Job
from core.pipeline.evaluate.identity import identities
from core.pipeline.evaluate.steps import NONE, QUERY_STAGES, Graph, Route, Step, graph
from core.pipeline.sweep.expect import Resources, resources
from core.pipeline.sweep.known import Known
from core.pipeline.sweep.paid import CORPUS, Counting, Paid, Usage
from core.pipeline.sweep.problems import Problem
from core.pipeline.sweep.rates import Rates
from core.providers.base import Amount, Reply, total
from core.records import Stack

_STAGES = (CORPUS, *QUERY_STAGES.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One model in one stage of the whole sweep.

    Attributes:
        stage: "embed corpus", or a stage of runs: "rewrite", "embed", "rerank".
        model: The remote model.
        calls: Requests, repeats and warm-up included.
        unit: What is billed.
        amount: How much of it; None = not known.
        exact: Whether a vocabulary counted the very texts that will be sent; else it is an estimate.
        notes: How it was counted.
        usd: Dollars; None = not known.
        reason: Why the dollars are not known.
    """

    stage: str
    model: str
    calls: int
    unit: str
    amount: float | None
    exact: bool
    notes: tuple[str, ...]
    usd: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PlannedStack:
    """One stack.

    Attributes:
        stack: The stack.
        pool: The convention of its candidate pool.
        usd_per_1k: Dollars of 1,000 queries in production, time of this machine left out; None = not known.
        reason: Why they are not known.
    """

    stack: Stack
    pool: str
    usd_per_1k: float | None
    reason: str = ""

    @property
    def label(self) -> str:
        """Its short name."""
        return self.stack.label


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a sweep will take.

    Attributes:
        name: Of the sweep.
        stacks: What will run.
        queries: How many questions are asked.
        asked: How often every question is asked and measured.
        passages: Per chunking (None = the collection's own) how many passages are searched.
        steps: How many different steps of each kind there are.
        lines: What is paid for.
        limit: The budget in dollars; None = none.
        resources: Time and memory.
        problems: What its owner should know.
    """

    name: str
    stacks: tuple[PlannedStack, ...]
    queries: int
    asked: int
    passages: Mapping[str | None, int]
    steps: Mapping[str, int]
    lines: tuple[Line, ...]
    limit: float | None
    resources: Resources
    problems: tuple[Problem, ...] = ()

    @property
    def usd(self) -> float | None:
        """Dollars of the whole sweep; None when a line is not known."""
        return None if any(line.usd is None for line in self.lines) else self.usd_known

    @property
    def usd_known(self) -> float:
        """Dollars of the lines that are known."""
        return math.fsum(line.usd for line in self.lines if line.usd is not None)

    @property
    def calls(self) -> int:
        """Requests in all."""
        return sum(line.calls for line in self.lines)

    @property
    def exact(self) -> bool:
        """Whether every amount is exact."""
        return all(line.exact for line in self.lines)

    @property
    def over_budget(self) -> bool:
        """Whether what is known costs more than the budget: the run would stop before its end."""
        return self.limit is not None and self.usd_known > self.limit


def plan(
    job: Job,
    *,
    known: Known | None = None,
    rates: Rates | None = None,
    built: Callable[[Step], bool] = lambda _: False,
    problems: Sequence[Problem] = (),
) -> Plan:
    """Work out what an evaluation will take; sends nothing and writes nothing.

    Args:
        job: The evaluation; its stacks have been checked.
        known: What names stand for; None = the catalogues and the job's own models.
        rates: Times of vendors.
        built: Whether the result of a building step is there already, so that nothing is paid for it.
        problems: What to tell with it.

    Returns:
        The plan. Dollars are those of calls that succeed at once: a call whose answer is lost is paid twice.
    """
    known, rates = known or Known(job.models), rates or Rates()
    names = identities(job)
    deepest = _pointwise(job, known) if job.protocol.deepest else ()
    steps = graph(job.stacks, names, deepest=deepest)
    counting = Counting(job, steps, names, known, built)
    paid = counting.all()
    per_query = {each.step: each.per_query for each in paid}
    return Plan(
        name=job.name,
        stacks=tuple(_stack(route, per_query, counting, job.book) for route in steps.routes),
        queries=job.queries.height,
        asked=max(1, job.protocol.passes),
        passages={chunking: len(corpus) for chunking, corpus in job.corpora.items()},
        steps=_kinds(steps),
        lines=tuple(_lines(paid, job.book)),
        limit=job.budget_usd,
        resources=resources(job, steps, paid, known=known, rates=rates, built=built),
        problems=tuple(problems),
    )


def dollars(amount: Amount, book: PriceBook) -> tuple[float | None, str]:
    """What an amount costs, or None and the reason why that is not known."""
    price = book.find(amount.item, amount.unit)
    if price is None:
        return None, f"no price for {amount.item} ({amount.unit}) in {book.name}"
    if price.currency != CURRENCY:
        return None, f"{amount.item} is priced in {price.currency}"
    if amount.amount is None:
        return None, f"{amount.unit} of {amount.item} not known"
    return price.each * amount.amount, ""


def _pointwise(job: Job, known: Known) -> list[str]:
    names = {str(stack.spec.get("reranker", NONE)) for stack in job.stacks} - {NONE}
    return [name for name in sorted(names) if known.pointwise(name)]


def _kinds(steps: Graph) -> dict[str, int]:
    counts: dict[str, int] = {}
    for step in (*steps.builds, *steps.steps):
        counts[step.kind] = counts.get(step.kind, 0) + 1
    return counts


def _lines(paid: Sequence[Paid], book: PriceBook) -> list[Line]:
    """One line per stage, model and unit; calls are told once."""
    grouped: dict[tuple[str, str], list[Paid]] = {}
    for each in paid:
        grouped.setdefault((each.stage, each.model), []).append(each)
    lines = []
    for (stage, model), parts in sorted(grouped.items(), key=lambda each: _STAGES.index(each[0][0])):
        calls = sum(each.calls for each in parts)
        notes = tuple(dict.fromkeys(note for each in parts for note in each.notes))
        exact = all(each.exact for each in parts)
        for amount in total([Reply(None, each.used) for each in parts]):
            usd, reason = dollars(amount, book)
            lines.append(
                Line(
                    stage=stage,
                    model=model,
                    calls=calls,
                    unit=amount.unit,
                    amount=amount.amount,
                    exact=exact,
                    notes=notes,
                    usd=usd,
                    reason=reason,
                )
            )
            calls = 0
    return lines


def _stack(
    route: Route, per_query: Mapping[Step, Usage], counting: Counting, book: PriceBook
) -> PlannedStack:
    used = [per_query.get(step, ()) for step in route.steps if step is not route.rerank]
    if route.rerank is not None and route.rerank in per_query:
        replayed = route.replayed  # production would ask about this stack's own depth
        rerank = per_query[route.rerank]
        used.append(counting.reranked(route.rerank, route.stack.spec, route.depth) if replayed else rerank)
    costs = [dollars(each, book) for each in total([Reply(None, each) for each in used])]
    reasons = tuple(dict.fromkeys(reason for _, reason in costs if reason))
    known = [usd for usd, _ in costs if usd is not None]
    return PlannedStack(
        route.stack, route.pool_name, None if reasons else 1000 * math.fsum(known), "; ".join(reasons)
    )
