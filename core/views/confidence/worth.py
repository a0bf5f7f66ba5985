"""Worth of measuring more: queries to judge, timings to repeat, stacks to add, and the cost of each."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np
import polars as pl

from core.analysis.workspace.stacks import AXES
from core.arrays import Floats
from core.axes import as_read
from core.decide.axes import COST, LATENCY, Axis, floats, quality_axis
from core.decide.joint import JointSample
from core.decide.neighbours import neighbours
from core.decide.pareto import frontier_rows
from core.decide.planner import Outlook, StudyBill, outlook, stakes
from core.decide.rules import Constraints, Decision, Rule
from core.extras import SEARCH_REQUIREMENTS, obstacle
from core.pipeline.own.config import OWN
from core.pipeline.search.unmeasured import unmeasured
from core.pipeline.sweep.fields import SearchLimits
from core.records import JsonMap, is_group, stack_label
from core.stats.intervals import SEED
from core.views import columns as cols

_WORDS = {"candidates": "K", "dim": "dimensions", "sparse": "sparse index"}
_Pipeline = tuple[str, str]  # Name and version of a custom pipeline
_Value = TypeVar("_Value")
_OF = "\n"  # Separates a pipeline's path and its parameter in the name of an axis
USUAL = (10, 20, 40, 80, 160, 320, 640, 1280)  # Numbers of further queries that are always evaluated
REPEATS = (1, 3, 9)  # How often to time the same queries again
LEADING = 30  # Stacks that the planner considers; the others almost never win
EFFECTS, SEARCH, BOTH = "effects", "search", "both"
"""Which model names a stack to add: additive effects of the axes, the search's (TPE), or both."""
AT_LEAST = "What the least of the evaluated stacks with its dearest part takes."
NEIGHBOURS = cols.Rows(
    "neighbours",
    "of step guess",
    cols.share("chance", "beats the choice", "Chance of a higher quality than the chosen stack's."),
    cols.number("latency_least", "≥ ms", AT_LEAST),
    cols.text("beyond", "limits", "That it breaks already by its dearest part."),
    more=(
        cols.score("spread", "±", "Standard error of the guess."),
        "place said_by",
        cols.usd("cost_least", "≥ $ / 1k", AT_LEAST),
    ),
)
_Key = tuple[str | None, ...]
_DEPTH = "candidates"
LEAST = 5  # A tag with fewer queries has no spread


@dataclass(frozen=True)
class Levels:
    """The axes that stacks differ in, and each stack's value on them.

    A custom pipeline has its own axes, its parameters and its K, so that no step leads from one
    pipeline to another, or to a stack that isn't one.
    """

    frame: pl.DataFrame  # a row per stack of the table; null = it lacks this axis
    pipelines: Sequence[_Pipeline]

    @classmethod
    def of(cls, table: pl.DataFrame) -> Levels:
        """Read the levels from a stack table."""
        specs = [json.loads(spec) for spec in table["spec"]] if "spec" in table.columns else []
        owned = [spec.get("mode") == OWN for spec in specs] or [False] * table.height
        frame = table.select(
            pl.when(~pl.Series(owned, dtype=pl.Boolean)).then(pl.col(axis)).alias(axis) for axis in AXES
        )
        pipelines = list(dict.fromkeys(_pipeline(spec) for spec in specs if spec.get("mode") == OWN))
        steps = [
            _own_levels(spec, pipelines.index(_pipeline(spec))) if spec.get("mode") == OWN else {}
            for spec in specs
        ]
        names = dict.fromkeys(name for step in steps for name in step)
        own = [pl.Series(name, [step.get(name) for step in steps], pl.String) for name in names]
        whole = frame.with_columns(own)
        return cls(whole.select(col for col in whole if not col.is_null().all()), pipelines)

    def read(self, stack: tuple[_Value, ...]) -> tuple[_Value | None, ...]:
        """Return a stack's value on each axis that one of its parts reads, None on the others."""
        axes = self.frame.columns
        stated = {axis: value for axis, value in zip(axes, stack, strict=True) if value is not None}
        kept = as_read(stated)
        return tuple(kept.get(axis) for axis in axes)

    def spec(self, values: Mapping[str, Any]) -> JsonMap:
        """Return the specification of the stack at these values."""
        own = {axis.partition(_OF): value for axis, value in values.items() if _OF in axis and value}
        if not own:
            return values
        name, version = self.pipelines[int(next(iter(own))[0])]
        params = {param: value for (_, _, param), value in own.items()}
        depth = {"candidates": params.pop("")} if "" in params else {}
        return {"mode": OWN, "name": name, "version": version, "params": params, **depth}

    @staticmethod
    def step(axis: str, before: object, after: object) -> str:
        """Describe a step on an axis: ``K 20 → 50``."""
        word = (axis.partition(_OF)[2] or "K") if _OF in axis else _WORDS.get(axis, axis)
        return f"{word} {before} → {after}"


def _pipeline(spec: JsonMap) -> _Pipeline:
    return str(spec.get("name", "")), str(spec.get("version", ""))


def _own_levels(spec: JsonMap, place: int) -> dict[str, str]:
    params = {**(spec.get("params") or {}), "": spec.get("candidates")}
    return {f"{place}{_OF}{name}": str(value) for name, value in params.items() if value is not None}


@dataclass(frozen=True)
class JudgingPlan:
    """Effects of more evaluation."""

    rows: tuple[int, ...]  # rows of the stack table that were considered
    judged: Outlook  # with more queries
    timed: Outlook | None  # with the same queries timed again; None if no stack has a timing per query
    queries: int  # today's number of queries


def leading(table: pl.DataFrame, decision: Decision, chances: pl.DataFrame) -> list[int]:
    """Return rows of the stacks that may be chosen: today's choice, runner-up and ties, the most likely best.

    Args:
        chances: From `core.views.confidence.hold.shares` for the same rows.
    """
    first = [row for row in (decision.chosen, decision.runner_up) if row is not None]
    best = chances["p_best"].fill_null(0.0).to_numpy()
    hopeful = [int(row) for row in np.argsort(-best, kind="stable") if best[row] > 0]
    frontier = frontier_rows(table, decision)
    return list(dict.fromkeys([*first, *hopeful, *frontier, *decision.ties]))[:LEADING]


def plan(
    table: pl.DataFrame,
    rows: Sequence[int],
    sample: JointSample,
    limits: tuple[Constraints, Rule],
    more: Sequence[int],
) -> JudgingPlan:
    """Look ahead for the leading stacks."""
    kept = list(rows)
    part = sample.take(kept)
    axis = quality_axis(higher_is_better=limits[0].higher_is_better)
    held = stakes(table[kept], part.quality, axis, part.clusters)
    queries = sample.quality.shape[1]
    timed = None
    if part.latency_varies.any():
        again = [queries * repeat for repeat in REPEATS]
        timed = outlook(part, held, limits, again, kind="timings", seed=SEED)
    return JudgingPlan(tuple(kept), outlook(part, held, limits, more, seed=SEED), timed, queries)


def amounts(*also: int | None) -> tuple[int, ...]:
    """Return numbers of queries to evaluate: the usual ones, and others unless unknown or too many."""
    return tuple(sorted({*USUAL, *(more for more in also if more and more <= 10 * USUAL[-1])}))


def plan_rows(plan: JudgingPlan, price: StudyBill) -> pl.DataFrame:
    """Return one row per number of further queries, starting at 0.

    Returns:
        more, n (queries then), usd (their cost; null if a query's price is unknown), flip and left
        (shares; see `core.decide.planner.Outlook`).
    """
    more = [0, *plan.judged.more]
    return pl.DataFrame(
        {
            "more": more,
            "n": [plan.queries + further for further in more],
            "usd": [further * price.per_query for further in more],
            "flip": [0.0, *plan.judged.flip.tolist()],
            "left": [plan.judged.left_now, *plan.judged.left.tolist()],
        }
    )


def rival_rows(table: pl.DataFrame, plan: JudgingPlan, decision: Decision) -> pl.DataFrame:
    """Return the stacks that unlimited evaluation would choose, the most likely first.

    Returns:
        run_id, name, today ("chosen", "runner-up" or null), final (share of the worlds), quality with
        interval and n, latency_ms, cost; stacks that are chosen in no world are left out.
    """
    marks = {decision.runner_up: "runner-up", decision.chosen: "chosen"}
    rows = table[list(plan.rows)].with_columns(
        pl.Series("final", plan.judged.final, dtype=pl.Float64),
        pl.Series("today", [marks.get(row) for row in plan.rows], dtype=pl.String),
    )
    numbers = ("quality", "quality_low", "quality_high", "n", "latency_ms", "cost")
    kept = rows.filter((pl.col("final") > 0) | pl.col("today").is_not_null())
    return kept.sort("final", descending=True, maintain_order=True).select(
        "run_id", "name", "today", "final", *numbers
    )


def tag_rows(queries: pl.DataFrame) -> pl.DataFrame:
    """Return how much the difference of two stacks varies, by tag.

    It shows which further queries separate them best.

    The error of a mean over groups of queries is least if each group's size is proportional to its share
    times the spread of its differences (Neyman 1934, J. R. Stat. Soc. 97). The groups' means must then be
    weighted back to their shares.

    Args:
        queries: From `page.query_table` of two stacks: query_id, tags (``key=value``), delta.

    Returns:
        tag, n, difference (mean), spread (its standard deviation), share (of the queries today) and best (of
        further queries; within the tags of one key, so that they add up to 1); the largest best / share
        first. Keys that don't partition the queries are left out.
    """
    known = queries.filter(pl.col("delta").is_not_null())
    tagged = known.select("query_id", "delta", pl.col("tags").alias("tag")).explode("tag").drop_nulls("tag")
    tagged = tagged.filter([not is_group(tag) for tag in tagged["tag"]])
    rows = (
        tagged.group_by("tag", maintain_order=True)
        .agg(
            pl.len().alias("n"),
            pl.col("delta").mean().alias("difference"),
            pl.col("delta").std().alias("spread"),
        )
        .filter(pl.col("n") >= LEAST)
        .with_columns(pl.col("tag").str.extract(r"^([^=]*)=").fill_null("").alias("key"))
        .filter(pl.len().over("key") > 1)
    )
    weight = pl.col("n") * pl.col("spread")
    return (
        rows.with_columns((pl.col("n") / pl.col("n").sum().over("key")).alias("share"))
        .with_columns(
            pl.when(weight.sum().over("key") > 0).then(weight / weight.sum().over("key")).alias("best")
        )
        .sort(pl.col("best") / pl.col("share"), descending=True, nulls_last=True, maintain_order=True)
        .select("tag", pl.col("n").cast(pl.Int64), "difference", "spread", "share", "best")
    )


def missing_model() -> str | None:
    """Return what to install so that a search model names stacks too; None if it is installed."""
    error = obstacle("optuna", SEARCH_REQUIREMENTS, "The search's model")
    return None if error is None else str(error)


def next_rows(table: pl.DataFrame, decision: Decision, limits: Constraints) -> pl.DataFrame:
    """Return stacks that were not evaluated: one step from the frontier, and a search's first proposals.

    Returns:
        stack (its label), of (an evaluated stack), step (in words), said_by ("effects", "search" or "both"),
        place (among the search's proposals), guess and spread (of quality), chance (to score above today's
        choice), latency_least and cost_least (from `_least`; null = unknown) and beyond (limits that these
        break, in words; null = none); stacks within the limits first, of these the search's first, then
        the most likely. The effects propose none if there is no choice, or too few stacks for a
        guess; the search none if Optuna is missing.
    """
    levels = Levels.of(table)
    if not levels.frame.width:  # how the stacks were made is unknown
        return NEIGHBOURS.frame(others="stack")
    rows = _searched(table, levels, limits) if missing_model() is None else {}
    for key, near in _near(table, levels, decision).items():
        rows[key] = {**rows[key], **near, "said_by": BOTH} if key in rows else near
    least = {axis: _least(levels, axis.read(table)) for axis in (LATENCY, COST)}
    proposed = [
        {**row, **_beyond({axis: of(key) for axis, of in least.items()}, limits)} for key, row in rows.items()
    ]
    return NEIGHBOURS.frame(proposed, "stack").sort(pl.col("beyond").is_not_null(), maintain_order=True)


def _least(levels: Levels, values: Floats) -> Callable[[_Key], float | None]:
    """Return a lower bound for a stack: the least of the evaluated ones that share its dearest part.

    A reranker with the K that it reads is one part, known from the next smaller K on; None if no stack
    with any of its parts is known.
    """
    axes = levels.frame.columns
    parts = [
        dict(zip(axes, levels.read(stack), strict=True)) for stack in levels.frame.cast(pl.String).rows()
    ]
    schema = {**dict.fromkeys(axes, pl.String), "at_least": pl.Float64}
    rows = [{**part, "at_least": value} for part, value in zip(parts, values.tolist(), strict=True)]
    known = pl.DataFrame(rows, schema=schema).filter(pl.col("at_least").is_not_nan())

    @cache
    def of_part(axis: str, part: str, depth: str | None) -> float | None:
        alike = known.filter(pl.col(axis) == part)
        if axis == "reranker" and depth is not None:
            k = pl.col(_DEPTH).cast(pl.Int64)
            alike = alike.filter(k <= int(depth)).filter(k == k.max())
        least = alike["at_least"].min()
        return least if isinstance(least, float) else None

    def least(stack: _Key) -> float | None:
        stated = {axis: part for axis, part in zip(axes, levels.read(stack), strict=True) if part is not None}
        depth = stated.pop(_DEPTH, None)
        bounds = [of_part(axis, part, depth) for axis, part in stated.items()]
        return max((bound for bound in bounds if bound is not None), default=None)

    return least


def _beyond(least: Mapping[Axis, float | None], limits: Constraints) -> dict[str, Any]:
    """Return a stack's lower bounds, and the limits that they break."""
    broken = [
        axis.beyond
        for axis, value in least.items()
        if value is not None and (most := limits.of(axis)) is not None and value > most
    ]
    bounds = {"latency_least": least[LATENCY], "cost_least": least[COST]}
    return {**bounds, "beyond": " and ".join(broken) or None}


def _near(table: pl.DataFrame, levels: Levels, decision: Decision) -> dict[_Key, dict[str, Any]]:
    chosen = decision.chosen
    target = None if chosen is None else table["quality"][chosen]
    if target is None:
        return {}
    axes, frame = levels.frame.columns, levels.frame.with_columns(table["quality"])
    near = neighbours(
        frame, axes, frontier_rows(table, decision), float(target), decision.quality, read=levels.read
    )
    rows = {}
    for neighbour in near:
        values = dict(zip(axes, neighbour.stack, strict=True))
        rows[neighbour.stack] = {
            "stack": stack_label(levels.spec(values)),
            "of": table["name"][neighbour.of],
            "step": Levels.step(neighbour.axis, neighbour.before, neighbour.after),
            "said_by": EFFECTS,
            "guess": neighbour.quality,
            "spread": neighbour.spread,
            "chance": neighbour.chance,
        }
    return rows


def _searched(table: pl.DataFrame, levels: Levels, limits: Constraints) -> dict[_Key, dict[str, Any]]:
    quality, ms, usd = (floats(table, name) for name in ("quality", "latency_ms", "cost"))
    proposals = unmeasured(
        levels.frame,
        (quality, ms, usd),
        SearchLimits.model_construct(
            sla_ms=limits.sla_ms,
            budget=limits.budget,
            min_quality=limits.min_quality,
            max_harm=limits.max_harm,
        ),
        harm=None if limits.max_harm is None else floats(table, "harm"),
        higher_is_better=limits.higher_is_better,
        read=levels.read,
        seed=SEED,
    )
    return {
        _key(levels.frame.columns, proposal.spec): {
            "stack": stack_label(levels.spec(proposal.spec)),
            "of": table["name"][proposal.of],
            "step": ", ".join(Levels.step(*step) for step in proposal.steps),
            "said_by": SEARCH,
            "place": place,
        }
        for place, proposal in enumerate(proposals, 1)
    }


def _key(axes: Sequence[str], spec: Mapping[str, Any]) -> _Key:
    return tuple(None if spec.get(axis) is None else str(spec[axis]) for axis in axes)
