"""A question to a workspace: every choice behind a decision, declared once.

Options of commands, widgets, URL settings and the decision record follow from these fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from core.analysis.workspace.query_sets import LeastJudged
from core.analysis.workspace.scope import AUTO, LatencyScope, Per, Percentile
from core.choices import Choice
from core.decide.axes import ExtraLimits
from core.decide.rules import Rule
from core.metrics.rates import ANY
from core.prices import DEFAULT_BOOK
from core.records import Origin
from core.stats.intervals import SEED
from core.stats.latency import Generation


@dataclass(frozen=True, kw_only=True)
class Aim:
    """The quality that counts, and the limits on it, on latency and on cost."""

    measure: Annotated[
        str | None,
        Choice(
            "m", "measure",
            "Quality with its cutoff (in an address that is `k`). By default the measure that most stacks "
            "have, of equal ones RA-nWG@10 first.",
            title="Quality", dependent=True, rare=True,
        ),
    ] = None  # fmt: skip
    sla_ms: Annotated[float | None, Choice("sla_ms", "SLA", "Highest latency; ms.", low=0)] = None
    on: Annotated[
        Percentile | None,
        Choice(
            "on", "latency percentile",
            "p50: half of the queries are faster. p95: 95 % are; withheld below 60 queries. p99: withheld "
            "below 299. mean: for stacks of which only a mean is known. By default p50, or what is there "
            "instead.",
            flag="--on", title="Latency", dependent=True, rare=True,
        ),
    ] = None  # fmt: skip
    latency: Annotated[
        LatencyScope,
        Choice(
            "lat", "latency scope",
            "path: embed + retrieve + rerank. rerank: the reranker call alone. end-to-end: the path and the "
            "generator, modelled where it was not timed.",
            title="Latency of", dependent=True, rare=True,
        ),
    ] = "path"  # fmt: skip
    budget: Annotated[
        float | None, Choice("budget", "budget", "Highest cost; $ per 1,000 queries.", low=0, money=True)
    ] = None
    min_quality: Annotated[
        float | None,
        Choice(
            "min_quality", "quality floor",
            "Worst quality: the lowest, or the highest of Harm and its like.",
        ),
    ] = None  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Question(ExtraLimits, Aim):
    """The question to be decided."""

    rule: Annotated[Rule, Choice("rule", "what is best", "What is best within the limits.")] = "quality"
    indifference: Annotated[
        float | None,
        Choice(
            "delta", "indifference zone",
            "A difference in quality that does not matter. A stack ties with the best only where it is "
            "surely no more than this worse. By default a hundredth of the measure's range.",
            low=0, title="Indifference zone", step=0.005, dependent=True, rare=True,
        ),
    ] = None  # fmt: skip
    take: Annotated[
        str | None,
        Choice(
            "take", "stack taken by hand",
            "Take this run in place of the one that the rule chooses, as long as it meets the limits.",
            metavar="RUN", dependent=True,
        ),
    ] = None  # fmt: skip
    incumbent: Annotated[
        str | None,
        Choice(
            "now", "stack that runs today",
            "The stack that others would replace: its run, name or label; none = no stack. By default the "
            "one that the store marks.",
            title="Runs today", metavar="STACK", dependent=True, rare=True,
        ),
    ] = None  # fmt: skip
    move: Annotated[
        list[str] | None,
        Choice(
            "", "terms of a move",
            "What a move from the stack that runs today is judged by, NAME=NUMBER (queries_per_month=1e6); "
            "see `switch`; may be repeated.",
        ),
    ] = None  # fmt: skip
    jitter_ms: Annotated[
        float | None,
        Choice(
            "jitter", "jitter band",
            "Latencies that differ by less count as the same (CLQ paper §3.2): a stack that is slower than "
            "the best by more never ties with it. By default it is measured where passes were repeated, else "
            "75 ms.",
            low=0, title="Jitter (ms)", step=5, rare=True,
        ),
    ] = None  # fmt: skip
    prices: Annotated[
        str, Choice("book", "price book", "Price book; see Cost.", title="Prices", rare=True)
    ] = DEFAULT_BOOK
    price: Annotated[
        list[str] | None,
        Choice(
            "price", "changed price",
            "Changed price, ITEM:UNIT=AMOUNT for the book's units; may be repeated.",
        ),
    ] = None  # fmt: skip
    origin: Annotated[
        list[Origin] | None, Choice("", "origin", "Only runs of this origin; may be repeated.")
    ] = None
    runs: Annotated[
        list[str] | None,
        Choice("runs", "runs", "Only this run; may be repeated.", flag="--run", dependent=True, rare=True),
    ] = None
    collection: Annotated[
        str | None,
        Choice("ws", "workspace", "One collection. By default the only one with such runs."),
    ] = None
    golden_set: Annotated[
        str | None,
        Choice("gs", "golden set", "By default the only one of the collection.", dependent=True, rare=True),
    ] = None
    revision: Annotated[
        int | None,
        Choice(
            "rev", "data revision",
            "Every import, run and delete makes a revision; a shared link pins one. By default the latest.",
            low=0, title="Data as of revision", rare=True,
        ),
    ] = None  # fmt: skip
    together: Annotated[
        bool,
        Choice(
            "", "everything together",
            "Put on one scale also what does not compare: other queries, averages from elsewhere, whole "
            "documents beside passages, latencies of other machines.",
        ),
    ] = False  # fmt: skip
    judged: Annotated[
        LeastJudged,
        Choice(
            "jq", "share of the Top-K that is judged",
            "Compare only on queries of whose Top-K every stack has at least half, most (80 %) or all "
            "judged. Fewer holes, but no random sample. Fewer runs leave more queries.",
            dependent=True, rare=True,
        ),
    ] = "any"  # fmt: skip
    every_golden_set: Annotated[
        bool,
        Choice(
            "gq", "golden sets that judge the queries",
            "Only on queries that all golden sets of the collection judge.",
            title="Queries judged in", dependent=True, rare=True,
        ),
    ] = False  # fmt: skip
    cluster_by: Annotated[
        str,
        Choice(
            "by", "groups of questions",
            "Questions of one group are alike: intervals, tests and chances take each group as one. auto: "
            "the groups that are known. none: each question is drawn by itself. Else document, session, "
            "template, user or cluster.",
            title="Questions in groups of", metavar="KIND", dependent=True, rare=True,
        ),
    ] = AUTO  # fmt: skip
    judge_noise: Annotated[
        str | None,
        Choice(
            "noise", "judge noise",
            "Draws in every resample what another judge would have graded, from the passages that both "
            "judged: the chances and intervals take the judge's mistakes in. A golden set, or off. By "
            "default one that grades 50 or more passages of this one as a sample. The choice stays.",
            metavar="SET", title="Judge noise, as graded by", dependent=True, rare=True,
        ),
    ] = None  # fmt: skip
    reader: Annotated[
        str,
        Choice(
            "ansby", "reader whose answers count",
            "Whose answers count in costs and times; any = who answered for most runs.",
            title="Reader", dependent=True, rare=True,
        ),
    ] = ANY  # fmt: skip
    scorer: Annotated[
        str,
        Choice(
            "scoredby", "score of the answers that counts",
            "What scores the answers; any = F1, or what there is.",
            title="Scored by", dependent=True, rare=True,
        ),
    ] = ANY  # fmt: skip
    cost_per: Annotated[
        Per,
        Choice(
            "costper", "what a cost is one of",
            "What costs and the budget are one (1,000) of. query: retrieval alone. answered query: with the "
            "reader's answer from as many passages as the cutoff. correct answer: that, over the share of "
            "answers that are correct.",
            title="Cost per", dependent=True, rare=True,
        ),
    ] = "query"  # fmt: skip
    correct_from: Annotated[
        float,
        Choice(
            "correct", "score of a correct answer", "Score from which on an answer is correct.",
            low=0.001, high=1, title="Correct from a score of", step=0.05, rare=True,
        ),
    ] = 0.5  # fmt: skip
    seed: Annotated[int, Choice("", "seed", "Of the resampling.", low=0)] = SEED
    generation: Generation | None = None
    """How fast the generator is; no option sets it, but a record may."""
