"""The page of scenarios: what each of several ways to decide would choose, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from core.decide.paired import Paired
from core.decide.rules import Constraints, decide
from core.prices import PriceBook
from core.store import Snapshot
from core.views import text
from core.views.what_if.scenario_text import Scenario
from core.views.what_if.scenarios import MEASURES, scenario_matrix
from core.views.workspace.scope import Latency, Quality, Scope
from core.views.workspace.stacks import stack_table

SIDEBAR = "Limits of the sidebar"
SAVED = 0.85
"""Share of the best quality that the cost saver of a workspace keeps; the paper's keeps 0.86."""


@dataclass(frozen=True)
class Choice:
    """What one scenario comes to.

    Attributes:
        name: Of the scenario.
        asked: What it asks for, in words.
        run_id: What it chooses; None = nothing is left.
        kind: "published" (a stack that the paper names), "derived" (the product's own), "sidebar" or "own".
    """

    name: str
    asked: str
    run_id: str | None
    kind: str


def derived(table: pl.DataFrame, *, higher_is_better: bool = True) -> list[Scenario]:
    """The paper's five scenarios in the terms of another workspace (CLQ paper §5.5)."""
    best = table["quality"].max() if higher_is_better else table["quality"].min()
    dims, depths = table["dim"].unique(), table["candidates"].unique()
    found = [Scenario("Baseline")]
    if isinstance(best, float) and best > 0:
        kept = np.floor(1000 * SAVED * best) if higher_is_better else np.ceil(1000 * best / SAVED)
        found.append(Scenario("Cost saver", "cost", floor=float(kept / 1000)))
    found.append(Scenario("Quality push", jitter_ms=0.0))
    if dims.drop_nulls().len() > 1:
        found.append(Scenario("Efficient small-dim", dim=float(dims.drop_nulls().max() or 0) / 2))  # type: ignore[arg-type]
    if depths.drop_nulls().len() > 1:
        found.append(Scenario("High-K check", depth=float(depths.drop_nulls().max() or 0)))  # type: ignore[arg-type]
    return found


def choose(
    table: pl.DataFrame, scenario: Scenario, limits: Constraints, paired: Paired | None = None
) -> str | None:
    """run_id of the stack that a scenario selects; None where no stack is left.

    Args:
        table: The stack table.
        scenario: What it asks for; a stack whose dimension or K is unknown does not meet a limit on it.
        limits: The sidebar's; the scenario's take the place of its limits.
        paired: Quality per query, where it is known.
    """
    rows = table
    if scenario.dim is not None:
        rows = rows.filter(pl.col("dim") <= scenario.dim)
    if scenario.depth is not None:
        rows = rows.filter(pl.col("candidates") >= scenario.depth)
    own = replace(
        limits,
        sla_ms=scenario.sla_ms,
        budget=scenario.budget,
        floor=scenario.floor,
        max_harm=scenario.max_harm,
        jitter_ms=limits.jitter_ms if scenario.jitter_ms is None else scenario.jitter_ms,
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
) -> list[Choice]:
    """What every scenario of the page comes to.

    Args:
        table: The stack table.
        published: Scenarios that runs of the collection are the example of (`scenarios.named`).
        own: The user's.
        limits: The sidebar's.
        paired: Quality per query, where it is known.

    Returns:
        The published ones, else the derived ones; the sidebar's; the user's own, which take the place of
        those of the same name.
    """
    known, names = set(table["run_id"]), {each.name for each in own}
    made = [
        Choice(name, "as the paper names it", run_id, "published")
        for name, run_id in published.items()
        if run_id in known
    ]
    up = limits.higher_is_better

    def choice(each: Scenario, kind: str) -> Choice:
        return Choice(each.name, each.words(higher_is_better=up), choose(table, each, limits, paired), kind)

    if not made:
        made = [choice(each, "derived") for each in derived(table, higher_is_better=up)]
    side = {axis.field: limits.of(axis) for axis in limits.axes}
    made.append(choice(Scenario(SIDEBAR, "quality", **side), "sidebar"))
    return [each for each in made if each.name not in names] + [choice(each, "own") for each in own]


def matrix(
    snapshot: Snapshot,
    table: pl.DataFrame,
    scope: Scope,
    found: Sequence[Choice],
    book: PriceBook,
    *,
    quality: Quality,
    latency: Latency,
) -> pl.DataFrame:
    """The scenarios with their stacks' numbers, each with interval and n where they are known.

    Args:
        snapshot: Where to read.
        table: The stack table.
        scope: The workspace.
        found: From `choices`.
        book: Prices.
        quality: The sidebar's measure; shown first if it is none of the paper's columns.
        latency: The sidebar's latency.

    Returns:
        One row per scenario: scenario, asked, kind, run_id, name (null where nothing is left), embedder, dim,
        reranker, candidates, cost with note, latency_ms (the sidebar's) with interval, rerank_ms (the paper's
        column: the reranker's median) and, per measure, its value under its name and in words with interval
        and n under its name and " in words".
    """
    ids = tuple(dict.fromkeys(each.run_id for each in found if each.run_id is not None))
    heads = pl.DataFrame(
        [(each.name, each.asked, each.kind, each.run_id) for each in found],
        schema={"scenario": pl.String, "asked": pl.String, "kind": pl.String, "run_id": pl.String},
        orient="row",
    )
    shown = measures(quality)
    part = replace(scope, run_ids=ids) if ids else scope
    known = {each.name: str(each.run_id) for each in found if each.run_id is not None}
    base = scenario_matrix(snapshot, part, known, book, measures=shown).drop("run_id", "name", "latency_note")
    base = base.rename({"latency_ms": "rerank_ms"})
    took = table.select(
        "run_id", "name", "latency_ms", "latency_low", "latency_high", "latency_n", "latency_basis"
    )
    made = heads.join(took, on="run_id", how="left", maintain_order="left")
    made = made.join(base, on="scenario", how="left", maintain_order="left")
    for each in shown:
        numbers = stack_table(snapshot, part, each, latency, book)
        words = numbers.select("run_id", pl.Series(f"{each.name} in words", _words(numbers), dtype=pl.String))
        made = made.join(words, on="run_id", how="left", maintain_order="left")
    return made


def measures(quality: Quality) -> tuple[Quality, ...]:
    """The columns of quality: the paper's, and the sidebar's before them where it is another."""
    return MEASURES if quality in MEASURES else (quality, *MEASURES)


def _words(rows: pl.DataFrame) -> list[str | None]:
    return [
        None if value is None else f"{text.score(value)}{text.interval(low, high)}, {text.sample(n)}"
        for value, low, high, n in rows.select("quality", "quality_low", "quality_high", "n").iter_rows()
    ]


def answer(rows: pl.DataFrame, quality: Quality) -> tuple[str, str]:
    """What the scenarios say together: how many stacks they choose, and the spread of their numbers.

    Args:
        rows: From `matrix`.
        quality: The measure to name.

    Returns:
        The sentence to head the page with, and what no scenario can have.
    """
    chosen = rows.filter(pl.col("name").is_not_null())
    if chosen.is_empty():
        return "No scenario leaves a stack.", ""
    different = chosen["name"].n_unique()
    best = chosen.sort(quality.name, descending=quality.higher_is_better, nulls_last=True).row(0, named=True)
    words = best[f"{quality.name} in words"]
    sentence = (
        f"{text.count(chosen.height, 'scenario')} {'chooses' if chosen.height == 1 else 'choose'} "
        f"{text.count(different, 'stack')}; the best of them by {quality.name}"
    )
    sentence += f" is {best['name']} ({best['scenario']}): {words}." if words else " is not known."
    cheap = chosen.filter(pl.col("cost").is_not_null()).sort("cost")
    details = ""
    if not cheap.is_empty():
        low, high = cheap.row(0, named=True), cheap.row(-1, named=True)
        ends = [f"{text.cost_of(row)} ({row['scenario']})" for row in (low, high)]
        details = f"Cost from {ends[0]} to {ends[1]}."
    empty = rows.filter(pl.col("name").is_null())["scenario"].to_list()
    return sentence, details + (f" Nothing is left for {', '.join(empty)}." if empty else "")


def legend(rows: pl.DataFrame) -> str:
    """Where the scenarios come from, in a sentence."""
    kinds = set(rows["kind"])
    words = []
    if "published" in kinds:
        words.append(
            "The paper's five are the stacks of its Table 8; cost is that of the rerank call at 500 tokens a "
            "candidate."
        )
    if "derived" in kinds:
        words.append(
            "No scenarios are published for this collection: the names stand for the paper's ideas in its "
            f"own terms (the cost saver keeps {SAVED:.0%} of the best quality).".replace("%", " %")
        )
    return " ".join([*words, "The last ones follow the sidebar and your own list."])
