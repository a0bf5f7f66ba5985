"""Scenarios side by side, and the leaderboards of quality per second (CLQ paper §3.3, §5.4, §5.5).

A scenario is a name, an objective, and limits, in a line of text that fits in a link:
``Ours: quality, sla_ms 500, budget 2.5per1k; Cheap: cost, min_quality 0.7, K 100`` are two.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast, get_args

import numpy as np
import polars as pl

from core.analysis.scoring.table import figures
from core.analysis.workspace.figures.latencies import latencies
from core.analysis.workspace.scope import Latency, Quality, Scope
from core.analysis.workspace.scores import furthest
from core.analysis.workspace.stacks import runs_in, stack_table
from core.decide.axes import BESIDE, FORMER, LIMITS, MOVING, ExtraLimits
from core.decide.marginal import COMPONENTS
from core.decide.rules import Constraints, Rule, decide
from core.decide.ties import Paired
from core.errors import InputError, UnknownNameError
from core.number_format import PER_1K, UNIT, CostUnit, dollars_per_1k
from core.prices import PriceBook
from core.store import Snapshot
from core.tables import schema
from core.views import link, text
from core.views.link import RULES

MEASURES = (Quality("N-Recall4+", 10), Quality("RA-nWG", 10), Quality("RA-nWG", 30))  # The paper's columns
ORDER = ("Baseline", "Cost saver", "Quality push", "Efficient small-dim", "High-K check")
"""The paper's scenarios, as published runs name them."""
PARTS = tuple(Quality(name, k) for name, k in COMPONENTS)  # The measures that the leaderboards average
YOURS = "Your limits"  # The scenario of the limits applied on every page
BEST_ALONE = "highest quality, whatever it costs"  # Objective if nothing cheaper is substituted
SAVED = 0.85  # Share of the best quality that a workspace's cost saver keeps; the paper's keeps 0.86


MOST = 12  # Maximum scenarios in one text
_RESERVED = ":;,"
_KEYS: Mapping[str, str] = {**{name: name for name in LIMITS}, "dim": "dim", "K": "depth"}
_RULES = {rule: words for words, rule in RULES.items()}


@dataclass(frozen=True, slots=True)
class Scenario(ExtraLimits):
    """Limits and preference of one scenario; None = no limit."""

    name: str  # its user-visible name
    rule: Rule = "quality"  # the objective among the remaining stacks
    sla_ms: float | None = None  # highest latency; ms
    budget: float | None = None  # highest cost; $ per 1,000 queries
    min_quality: float | None = None  # minimum quality; 0..1
    dim: float | None = None  # maximum dimensions of the embedding
    depth: float | None = None  # minimum candidates K
    # width of the jitter band, if it isn't the sidebar's; ms. Not part of the text
    jitter_ms: float | None = None
    # the indifference zone, if it isn't the workspace's; 0 = nothing cheaper is substituted. Not in the text
    delta: float | None = None

    def words(self, *, higher_is_better: bool = True, said: CostUnit = PER_1K) -> str:
        """Return its objective and limits in words.

        Args:
            higher_is_better: The direction of the quality.
            said: The page's cost unit.
        """
        side = "least" if higher_is_better else "most"
        limits: tuple[tuple[float | None, str, Callable[[float], object]], ...] = (
            (self.sla_ms, "at most {}", text.ms),
            (self.budget, "at most {}", said.usd),
            (self.min_quality, f"quality at {side} {{:.3g}}", float),
            *((getattr(self, axis.limit), f"{axis.word} at {axis.side} {{:.3g}}", float) for axis in BESIDE),
            *(
                (axis.number(getattr(self, axis.limit)), f"{axis.word} at most {{}}", axis.written)
                for axis in MOVING
            ),
            (self.dim, "at most {:g} d", float),
            (self.depth, "K at least {:g}", float),
        )
        asked = [words.format(write(value)) for value, words, write in limits if value is not None]
        return ", ".join([_RULES[self.rule] if self.delta is None else BEST_ALONE, *asked])


def parse(line: str) -> list[Scenario]:
    """Parse scenarios from their text.

    Raises:
        InputError: If a part cannot be parsed; the message names it.
        UnknownNameError: If a rule or limit does not exist.
    """
    scenarios: list[Scenario] = []
    for part in filter(None, (entry.strip() for entry in line.split(";"))):
        name, colon, rest = part.partition(":")
        if not colon or not name.strip():
            raise InputError(
                f"“{part[:60]}” is not a scenario.",
                do="Write NAME: quality, sla_ms 500, budget 2.5per1k, for example.",
            )
        if name.strip() in {scenario.name for scenario in scenarios}:
            raise InputError(f"Two scenarios are called “{name.strip()}”.", do="Rename one of them.")
        scenarios.append(_scenario(name.strip(), rest))
    if len(scenarios) > MOST:
        raise InputError(f"{len(scenarios)} scenarios are too many to compare.", do=f"Keep {MOST} at most.")
    return scenarios


def _scenario(name: str, rest: str) -> Scenario:
    words = [part.strip() for part in rest.split(",") if part.strip()]
    rule: Rule = "quality"
    if words and len(words[0].split()) == 1:
        rule = cast(Rule, words.pop(0))
        if rule not in get_args(Rule):
            raise UnknownNameError("rule", rule[:40], get_args(Rule))
    given: dict[str, Any] = {}
    for word in words:
        key, _, value = word.partition(" ")
        key = FORMER.get(key, key)
        if key not in _KEYS:
            raise UnknownNameError("limit", key[:40], tuple(_KEYS))
        if key in given:
            raise InputError(f"“{name}” sets {key} twice.", do="Keep one of them.")
        given[key] = _value(name, key, value)
    return Scenario(name, rule, **{_KEYS[key]: value for key, value in given.items()})


def _value(name: str, key: str, value: str) -> float | str:
    """Return the value of a limit: a number, or the word of a step."""
    levels = LIMITS[key].levels if key in LIMITS else ()
    if not levels:
        return _number(name, key, value)
    if value not in levels:
        raise InputError(f"“{name}” has the {key} “{value[:20]}”.", do=f"Write one of {', '.join(levels)}.")
    return value


def _number(name: str, key: str, value: str) -> float:
    try:
        number = dollars_per_1k(value) if key == "budget" else float(value)
    except ValueError:
        number = None
    if number is None or not 0 <= number < 1e12:
        how = "budget 2.5per1k or 0.2per1M" if key == "budget" else "sla_ms 500"
        raise InputError(f"“{name}” has the {key} “{value[:20]}”.", do=f"Write a number from 0, as in {how}.")
    return number


def written(scenarios: Sequence[Scenario], said: CostUnit = PER_1K) -> str:
    """Return the text that `parse` reads; `said`: the page's cost unit."""
    parts = []
    for scenario in scenarios:
        asked = [(key, getattr(scenario, field)) for key, field in _KEYS.items()]
        limits = [
            f"{key} {said.typed(value) if key == 'budget' else ' '.join(link.written(value))}"
            for key, value in asked
            if value is not None
        ]
        parts.append(f"{scenario.name}: {', '.join([scenario.rule, *limits])}")
    return "; ".join(parts)


def with_one(line: str, scenario: Scenario, said: CostUnit = PER_1K) -> str:
    """Return a text of scenarios with one added, or with the one of the same name replaced.

    Raises:
        InputError: If its name is empty, or contains a character with a meaning in the text.
    """
    name = " ".join(scenario.name.split())
    if not name or any(char in _RESERVED for char in name):
        raise InputError(f"“{name[:60]}” is not a name.", do="Use a name without colon, semicolon or comma.")
    kept = {known.name: known for known in parse(line)}
    kept[name] = replace(scenario, name=name, jitter_ms=None, delta=None)
    return written(list(kept.values()), said)


@dataclass(frozen=True)
class ScenarioChoice:
    """Outcome of one scenario."""

    name: str  # the scenario's name
    asked: str  # its objective and limits, in words
    run_id: str | None  # the stack it chooses; None = no stack is left
    kind: str  # "published" (a stack named by the paper), "derived" (the product's own), "yours" or "own"


def derived(table: pl.DataFrame, *, higher_is_better: bool = True) -> list[Scenario]:
    """Return the paper's five scenarios adapted to another workspace (CLQ paper §5.5)."""
    best = table["quality"].max() if higher_is_better else table["quality"].min()
    dims, depths = table["dim"].unique(), table["candidates"].unique()
    scenarios = [Scenario("Baseline")]
    if isinstance(best, float) and best > 0:
        kept = np.floor(1000 * SAVED * best) if higher_is_better else np.ceil(1000 * best / SAVED)
        scenarios.append(Scenario("Cost saver", "cost", min_quality=float(kept / 1000)))
    scenarios.append(Scenario("Quality push", jitter_ms=0.0, delta=0.0))
    if dims.drop_nulls().len() > 1:
        scenarios.append(Scenario("Efficient small-dim", dim=_small(dims.drop_nulls().to_list())))
    if depths.drop_nulls().len() > 1:
        scenarios.append(Scenario("High-K check", depth=float(depths.drop_nulls().max() or 0)))  # type: ignore[arg-type]
    return scenarios


def _small(dims: Sequence[int]) -> float:
    """Return half of the most dimensions; if no stack has so few, those of the next smaller one."""
    half = max(dims) / 2
    return half if min(dims) <= half else float(max(dim for dim in dims if dim < max(dims)))


def choose(
    table: pl.DataFrame, scenario: Scenario, limits: Constraints, paired: Paired | None = None
) -> str | None:
    """Return run_id of the stack that a scenario selects, or None if no stack is left."""
    rows = table
    if scenario.dim is not None:
        rows = rows.filter(pl.col("dim") <= scenario.dim)
    if scenario.depth is not None:
        rows = rows.filter(pl.col("candidates") >= scenario.depth)
    own = replace(
        limits,
        sla_ms=scenario.sla_ms,
        budget=scenario.budget,
        min_quality=scenario.min_quality,
        **scenario.beside,
        jitter_ms=limits.jitter_ms if scenario.jitter_ms is None else scenario.jitter_ms,
        delta=limits.delta if scenario.delta is None else scenario.delta,
    )
    chosen = decide(rows, own, scenario.rule, paired=paired).chosen
    return None if chosen is None else str(rows["run_id"][chosen])


def choices(
    table: pl.DataFrame,
    published: Mapping[str, str],
    own: Sequence[Scenario],
    limits: Constraints,
    *,
    paired: Paired | None = None,
    chosen: str | None = None,
) -> list[ScenarioChoice]:
    """Apply every scenario of the page.

    Args:
        published: Scenarios exemplified by runs of the collection (`named`).
        limits: The limits applied on every page.
        paired: Quality per query, if known.
        chosen: run_id of the stack shipped within the current limits, if decided.

    Returns:
        The published scenarios or else the derived ones, two of which are merged if both ask for the highest
        quality and choose one stack; the current limits; the user's own, which replace others of the same
        name.
    """
    up = limits.higher_is_better

    def choice(scenario: Scenario, kind: str) -> ScenarioChoice:
        run_id = choose(table, scenario, limits, paired)
        words = scenario.words(higher_is_better=up, said=limits.costs_said)
        return ScenarioChoice(scenario.name, words, run_id, kind)

    usual = [
        ScenarioChoice(name, "as the paper names it", run_id, "published")
        for name, run_id in published.items()
        if run_id in table["run_id"]
    ] or _different([choice(scenario, "derived") for scenario in derived(table, higher_is_better=up)])
    side: dict[str, Any] = {axis.limit: limits.said(axis) for axis in limits.axes}
    yours = Scenario(YOURS, "quality", **side)
    if chosen is None:
        usual.append(choice(yours, "yours"))
    else:
        usual.append(
            ScenarioChoice(YOURS, yours.words(higher_is_better=up, said=limits.costs_said), chosen, "yours")
        )
    names = {scenario.name for scenario in own}
    return [kept for kept in usual if kept.name not in names] + [choice(scenario, "own") for scenario in own]


def _different(choices: Sequence[ScenarioChoice]) -> list[ScenarioChoice]:
    """Drop the scenario that asks only for the best if the first one chooses its stack too."""
    first = choices[0].run_id
    return [each for each in choices if each.asked != BEST_ALONE or each.run_id != first]


def named(snapshot: Snapshot, collection_id: str) -> dict[str, str]:
    """Return scenarios exemplified by runs of a collection.

    They are name → run_id, in the paper's order.
    """
    run_of: dict[str, str] = {}
    for run_id, manifest in snapshot.runs(collection_id).select("run_id", "manifest").iter_rows():
        name = json.loads(manifest).get("scenario")
        if isinstance(name, str):
            run_of[name] = run_id
    names = [*(name for name in ORDER if name in run_of), *sorted(run_of.keys() - set(ORDER))]
    return {name: run_of[name] for name in names}


def matrix(
    snapshot: Snapshot,
    table: pl.DataFrame,
    scope: Scope,
    choices: Sequence[ScenarioChoice],
    book: PriceBook,
    *,
    quality: Quality,
    latency: Latency,
) -> pl.DataFrame:
    """Return the scenarios with their stacks' numbers, each with interval and n if known.

    Args:
        choices: From `choices`.
        quality: The measure of the limits; shown first if it isn't one of the paper's columns.

    Returns:
        One row per scenario: scenario, asked, kind, run_id, name (null if no stack is left), embedder, dim,
        reranker, candidates, cost with note, latency_ms (the limits') with interval, rerank_ms (the paper's
        column: the reranker's median) and, per measure, its value under its name and in words with interval
        and n under its name and " in words".
    """
    ids = tuple(dict.fromkeys(choice.run_id for choice in choices if choice.run_id is not None))
    heads = pl.DataFrame(
        [(choice.name, choice.asked, choice.kind, choice.run_id) for choice in choices],
        schema=dict.fromkeys(("scenario", "asked", "kind", "run_id"), pl.String),
        orient="row",
    )
    stacks = table.filter(pl.col("run_id").is_in(ids)).select(
        *("run_id", "name", "latency_ms", "latency_low", "latency_high", "latency_n", "latency_basis"),
        *("cost", "cost_least", "cost_missing", "cost_note", "embedder", "dim", "reranker", "candidates"),
        *(name for name in UNIT if name in table.columns),
    )
    runs = runs_in(snapshot, scope).filter(pl.col("run_id").is_in(ids))
    medians = latencies(snapshot, runs, Latency("p50", "rerank")).select("run_id", rerank_ms="latency_ms")
    rows = heads
    for numbers in (stacks, medians):
        rows = rows.join(numbers, on="run_id", how="left", maintain_order="left")
    ranked = runs.filter("has_rankings")["run_id"].to_list()
    deep = {run_id: run_id for run_id in ids} | furthest(snapshot, ranked, scope.golden_set_id)
    kept = pl.DataFrame(list(deep.items()), schema=schema("run_id deep"), orient="row")
    rows = rows.join(kept, on="run_id", how="left", maintain_order="left")
    whole = replace(scope, run_ids=tuple(dict.fromkeys(deep.values())))
    for measure in measures(quality):
        scored = stack_table(snapshot, whole, measure, latency, book)
        estimates = scored.select("quality", "quality_low", "quality_high", "n").iter_rows()
        words = [
            None if value is None else f"{text.score(value)}{text.interval(low, high)}, {text.sample(n)}"
            for value, low, high, n in estimates
        ]
        numbers = scored.select(
            pl.col("run_id").alias("deep"),
            pl.col("quality").alias(measure.name),
            pl.Series(f"{measure.name} in words", words, dtype=pl.String),
        )
        rows = rows.join(numbers, on="deep", how="left", maintain_order="left")
    return rows.drop("deep")


def measures(quality: Quality) -> tuple[Quality, ...]:
    """Return the columns of quality: the paper's, preceded by the limits' if it is another one."""
    return MEASURES if quality in MEASURES else (quality, *MEASURES)


def leaderboard(snapshot: Snapshot, scope: Scope, *, end_to_end: bool = False) -> pl.DataFrame:
    """Return stacks by average quality per second of median latency.

    Args:
        end_to_end: Divide by the whole retrieval path instead of the reranker alone.

    Returns:
        One row per run, the best first and unknown efficiency last: rank (null if unknown),
        run_id, name, efficiency (quality per second), average (0..1), average_basis ("four measures", or
        "as reported" if the source gives only their mean), latency_ms, latency_note, reason (why the
        efficiency is unknown).
    """
    rows = figures(snapshot, scope, PARTS)
    parts = rows.select(quality.name for quality in PARTS).cast(pl.Float64).fill_null(np.nan).to_numpy()
    own = pl.Series("own", parts.mean(axis=1), dtype=pl.Float64).fill_nan(None)
    reported = pl.Series("reported", [_reported(text) for text in rows["manifest"]], dtype=pl.Float64)
    took = latencies(snapshot, rows, Latency("p50", "path" if end_to_end else "rerank"))
    average, ms = pl.col("average"), pl.col("latency_ms")
    basis = pl.when(own.is_not_null()).then(pl.lit("four measures"))
    reason = pl.when(ms.is_null()).then(pl.coalesce("latency_note", pl.lit("unknown latency")))
    return (
        rows.select("run_id", "name")
        .with_columns(average=pl.coalesce(own, reported))
        .with_columns(average_basis=basis.when(average.is_not_null()).then(pl.lit("as reported")))
        .join(took.select("run_id", "latency_ms", "latency_note"), on="run_id", how="left")
        .with_columns(
            efficiency=pl.when(ms > 0).then(average / (ms / 1000)),
            reason=reason.when(average.is_null()).then(pl.lit("not all of its four measures are known")),
        )
        .with_columns(rank=pl.col("efficiency").rank("min", descending=True).cast(pl.Int64))
        .sort(["efficiency", "name"], descending=[True, False], nulls_last=True)
    )


def _reported(manifest: str) -> float | None:
    """Return the average printed by a source that lacks some of its four parts."""
    printed = json.loads(manifest).get("printed")
    value = printed.get("avg_quality") if isinstance(printed, dict) else None
    return float(value) if isinstance(value, (int, float)) else None
