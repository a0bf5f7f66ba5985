"""Sentences of page Confidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from core.analysis.paired import LEVEL
from core.analysis.workspace.noise import Noise
from core.analysis.workspace.scope import Quality, Scope
from core.analysis.workspace.sure import good_enough
from core.analysis.workspace.view import View
from core.decide.axes import LIMITS, QUALITY
from core.decide.planner import WORLDS, StudyBill
from core.decide.rules import Decision
from core.stats.intervals import SEED
from core.views import text
from core.views.blocks import Card
from core.views.confidence.charts import SHOWN
from core.views.confidence.hold import SLIGHT, Front
from core.views.confidence.weights import WeightGrid, letters
from core.views.confidence.worth import REPEATS, JudgingPlan
from core.views.words.advice import again, asking_pays, first_step, found_again
from core.views.words.choice import limits, meaning
from core.views.words.facts import if_judged

BEST_TOGETHER = "Stacks with equal results are best together: these shares add up to over 100 %."
SLACK = 0.005  # Rounding of shares that are added up
CALM = 0.05  # A probability below this is called small
DRAWN = " corrected for the luck of picking the best"
_LIKELY = 0.05  # A stack to add that beats the choice less often than this is no proposal
MOVED = 1.15  # A tag is named if its best share is this many times today's
ALONE = "Each row changes one number. Stacks of the same models share their time and cost."
ABOUT_WEIGHTS = (
    "Every setting scores the same rankings again; “real” as on page Compare: Holm-adjusted p of a paired "
    f"randomisation test below {LEVEL}."
)
"""How the settings are compared."""


def held(view: View) -> str:
    """Say how firm the choice is: the probability of good selection."""
    decision, sure = view.decision, view.sure
    if decision.chosen is None:
        return (
            f"No stack{limits(view.constraints, view.latency)} is left, so there is no choice to be sure of."
        )
    name = view.table["name"][decision.chosen]
    if sure.pgs is None:
        return f"How sure {name} is, is unknown: {sure.unknown}."
    rather = view.once(first_step).rather
    second = (
        ""
        if rather is None or rather.pgs[1] is None
        else f", {rather.stack} in {text.percent(rather.pgs[1])}"
    )
    return f"{name} is {good_enough(decision)} in {text.percent(sure.pgs)} of resamples{second}."


def about_best(best: pl.Series) -> tuple[str, str]:
    """Say which stacks the chart of shares leaves out, and why shares may add up to over 1."""
    known = best.drop_nulls()
    never, shown = int((known == 0).sum()), int((known.head(SHOWN) > 0).sum())
    parts = [f"{text.count(never, 'stack is', 'stacks are')} never the best"] if never else []
    parts += [f"{more:,} more are in the table"] if (more := known.len() - never - shown) else []
    return f"{'; '.join(parts)}.".lstrip("."), BEST_TOGETHER if float(best.sum() or 0) > 1 + SLACK else ""


def held_cards(view: View, chances: pl.DataFrame, drawn: tuple[int, Noise | None]) -> list[Card]:
    """Return the probabilities and quality of the chosen stack, or its three numbers if they are unknown.

    Args:
        chances: From `core.views.confidence.hold.shares` for the rows of the view's table.
        drawn: The number of queries, and the judge noise included in the probabilities.
    """
    decision, sure, table = view.decision, view.sure, view.table
    if decision.chosen is None:
        return []
    row, choice = chances.row(decision.chosen, named=True), table.row(decision.chosen, named=True)
    quality = quality_card(choice, view.quality)
    if row["p_best"] is None:
        latency = ("Latency", text.ms(choice["latency_ms"]), choice["latency_basis"] or "")
        cost, many = text.cost_of_many(choice)
        return [quality, latency, ("Cost", cost, f"per {many} queries")]
    queries, noisy = drawn
    of = f"resamples of {text.count(queries, 'query')}"
    if noisy is not None:
        of += ", with judge noise"
    good = text.NOT_APPLICABLE if sure.pgs is None else text.percent(sure.pgs)
    ends = text.interval(sure.expected_low, sure.expected_high).strip()
    return [
        ("Confidence", good, f"{good_enough(decision)}; {of}"),
        quality,
        (
            "Expected on new queries",
            text.score(sure.expected),
            f"{ends}{DRAWN if sure.expected is not None else ''}".strip(),
        ),
    ]


def how_sure(view: View, row: Mapping[str, Any], final: float | None) -> pl.DataFrame:
    """Return every probability stated for the choice, with the question it answers and why it differs.

    Args:
        row: Its probabilities, from `core.views.confidence.hold.shares`.
        final: How often it is still chosen after unlimited queries; None = unknown.

    Returns:
        sure (the question), chance (0..1) and why; unknown ones are left out.
    """
    sure, decision = view.sure, view.decision
    n, told = text.count(view.table["n"][decision.chosen or 0] or 0, "query"), if_judged(view)
    band = decision.delta if decision.rule == "quality" else 0
    asked = [
        (f"Is it {good_enough(decision)}?", sure.pgs, "This is the confidence that every page says."),
        (
            "Is it within the limits?",
            sure.p_feasible,
            "Only the limits count here, with latencies drawn again.",
        ),
        (
            "Is it the very best?",
            row["p_best"],
            f"A stack that is better by less than {band:.3g} counts against it here."
            if band
            else "A stack that is equal counts against it here.",
        ),
        (
            f"Is it the very best again on {n}?",
            row["p_again"],
            "The same is asked of as many new queries, which bring chance again.",
        ),
        (
            "Is it still chosen after endless queries?",
            final,
            f"All is known then, so a stack better by less than {band:.3g} replaces it."
            if band
            else "All is known then, so the least lead decides.",
        ),
        (
            "Is it good, were the unjudged graded like the judged?",
            told,
            "All other chances count an unjudged passage as useless.",
        ),
    ]
    rows = [dict(zip(("sure", "chance", "why"), one, strict=True)) for one in asked if one[1] is not None]
    return pl.DataFrame(rows, schema={"sure": pl.String, "chance": pl.Float64, "why": pl.String})


def quality_card(row: Mapping[str, Any], quality: Quality) -> Card:
    """Return the quality of a stack with its interval, n and what the measure counts."""
    interval = text.interval(row["quality_low"], row["quality_high"]).strip()
    sample = f"{interval} {text.sample(row)}".strip()
    return quality.name, text.score(row["quality"]), ", ".join(filter(None, (sample, meaning(quality))))


def about_chances(queries: int, draws: int) -> str:
    """Explain how the probabilities are computed."""
    return (
        f"{draws:,} repeats draw {text.count(queries, 'query')} anew (seed {SEED}). Each mean is moved "
        "towards that of all stacks, the less sure it is, the more. Other kinds of queries are not in it."
    )


def turning_words(turned: pl.DataFrame, measure: str) -> str:
    """Say at which quality the runner-up would be chosen; if at none, which other number would change it.

    Args:
        turned: From `core.views.confidence.hold.turn_rows`.
        measure: Name of the quality.
    """
    if turned.is_empty():
        return "There is no runner-up within the limits, so nothing is near to winning."
    mine = turned.head(turned.height // 2)
    turning = mine.filter(pl.col("then").is_not_null())
    if turning.is_empty():
        return "No change of one number alone lets another stack win."
    of_quality = turning.filter(number="quality")
    row = (of_quality if of_quality.height else turning).row(0, named=True)
    number = measure if row["number"] == QUALITY.word else row["number"]
    if row["change"] == SLIGHT:
        return f"{row['stack']} would win with {number} {row['then']}."
    return f"{row['stack']} would win if its {number} went from {row['now']} to {row['then']}."


def excluded_words(excluded: pl.DataFrame) -> str:
    """Say how many stacks each limit excludes."""
    if excluded.is_empty():
        return "Nothing: every stack is within the limits."
    words = {name: f"the {axis.limit_word}" for name, axis in LIMITS.items()}
    counts = excluded.group_by("constraint", maintain_order=True).len().rows()
    stacks = text.count(excluded.height, "stack")
    if len(counts) == 1:
        return f"{stacks} by {words.get(counts[0][0], counts[0][0])}."
    return f"{stacks}: " + ", ".join(f"{n} by {words.get(name, name)}" for name, n in counts) + "."


def front_card(front: Front) -> Card:
    """Return the card of the frontier's size, with its knee."""
    bend = f"; best trade-off (knee): {front.knee}" if front.knee else ""
    return "On the frontier", f"{front.size:,}", f"no other is as good on all axes and better on one{bend}"


def nothing(table: pl.DataFrame, scope: Scope) -> tuple[str, str] | None:
    """Return why nothing can be rescored, and what to do; None if something can."""
    if not table["has_rankings"].any():
        return (
            "The stacks of this workspace came without per-query data: only their averages are known.",
            "Other weights need the ranking of every query. Import rankings with their judgements, or run "
            "stacks here.",
        )
    if scope.golden_set_id is None:
        return (
            "There are rankings here, but no golden set that could score them.",
            "Import judgements of this workspace.",
        )
    return None


def weighed(grid: WeightGrid, chosen: Sequence[str | None], turned: pl.DataFrame) -> tuple[str, str]:
    """Say whether choice and order hold in the grid, and which pairwise orders reverse."""
    n = int(grid.n.max(initial=0))
    if not n:
        return f"{grid.measure} applies to no query of these stacks.", "Choose another cutoff."
    ours, cells = chosen[grid.start], len(grid.cells)
    kept = sum(name == ours for name in chosen)
    if ours is None:
        return "No stack is within the limits as usual.", _turned(grid, turned)
    if kept == cells:
        return f"{ours} stays the choice in all {cells} settings (n = {n}).", _turned(grid, turned)
    said = (
        f"It depends: {ours} is the choice in {kept} of {cells} settings (n = {n}), {_others(chosen, ours)}."
    )
    return said, _turned(grid, turned)


def _others(chosen: Sequence[str | None], ours: str) -> str:
    """Name the stacks chosen instead, the most frequent first."""
    counted = Counter(name for name in chosen if name != ours)
    named = [f"{name or 'no stack'} in {times}" for name, times in counted.most_common(2)]
    rest = counted.total() - sum(times for _, times in counted.most_common(2))
    return ", ".join([*named, *([f"others in {rest}"] if rest else [])])


def weighed_cards(grid: WeightGrid, chosen: Sequence[str | None], turned: pl.DataFrame) -> list[Card]:
    """Return cards on whether choice, order and pairs hold over the grid; none if nothing is scored."""
    taus = grid.taus[~np.isnan(grid.taus)]
    if not len(taus):
        return []
    others = sum(name != chosen[grid.start] for name in chosen)
    stacks = int((grid.ranks[grid.start] > 0).sum())
    flipped = turned.filter(pl.col("flips") > 0).height
    cells = len(grid.cells)
    return [
        (
            "Same choice",
            f"{cells - others} of {cells}",
            f"other weights of {grid.measure} tried: of rarity (alpha) and of grades 4 and 3 (cap4, cap3)",
        ),
        (
            "Same order",
            f"≥ {taus.min():.2f}",
            f"1 = the same; Kendall's tau-b of {text.count(stacks, 'stack')}; AP-correlation, in which "
            f"the best count more, ≥ {np.nanmin(grid.tops):.2f}",
        ),
        ("Pairs that swap", f"{flipped} of {turned.height}", f"pairs of the {len(grid.best)} best stacks"),
    ]


def _turned(grid: WeightGrid, turned: pl.DataFrame) -> str:
    """Say which pairs of the best stacks swap places in some setting."""
    pairs, flipped = text.count(turned.height, "pair"), turned.filter(pl.col("flips") > 0)
    of = f"{pairs} of the {len(grid.best)} best stacks"
    if flipped.is_empty():
        return f"None of {of} swaps places in any setting."
    counts = flipped["reading"].value_counts(sort=True)
    said = "; ".join(f"{times} {words}" for words, times in counts.iter_rows())
    swap = "swaps" if flipped.height < 2 else "swap"
    return f"{flipped.height} of {of} {swap} places with some weights: {said}."


def weighing_legend(grid: WeightGrid, chosen: Sequence[str | None]) -> str:
    """Explain the letters of `agreement`."""
    named = [f"{letter} = {name}" for name, letter in letters(chosen, grid.start).items() if name is not None]
    none = ["– = none"] if None in chosen else []
    return (
        "Left: Kendall's tau-b between the order of the stacks as usual and with these weights, and what "
        f"the limits choose then: {'; '.join(named + none)}. Right: score and rank of one stack. "
        "Framed: the weights as usual."
    )


def plan_answer(
    view: View, rows: pl.DataFrame, affordable: int | None, *, assumed_usd: float | None = None
) -> tuple[str, str]:
    """Return the answer in words: whether more queries are worth it, what the money buys, and when to stop.

    Args:
        view: The view to decide on; its advice is the answer, if known.
        rows: From `plan_rows`.
        affordable: Queries that the money buys; None = any number.
        assumed_usd: The price of a judgement, if it is assumed.

    Returns:
        The sentence to head the page, and how often the choice changes and what the money pays for.
    """
    found, (bought, paid) = view.sure.p_better_found, _bought(rows, affordable, assumed_usd)
    if found is None:
        return bought, paid
    worth = "Worth it" if asking_pays(view) else "Not worth it"
    return f"{worth}: {found_again(view)}", " ".join(filter(None, (_changing(view, rows, found), paid)))


def _changing(view: View, rows: pl.DataFrame, found: float) -> str:
    """Say how often as many queries again change the choice, which they may without a better stack."""
    changes = rows.filter(pl.col("more") >= again(view))["flip"].head(1).to_list()
    if not changes:
        return ""
    delta = view.decision.delta
    alike = f", mostly by less than {delta:g}" if delta and found < changes[0] / 2 else ""
    return f"In {text.percent(changes[0])} of all simulations the choice changes{alike}."


def _bought(rows: pl.DataFrame, affordable: int | None, assumed_usd: float | None) -> tuple[str, str]:
    """Return the effect of the money's queries on the choice, and what the money pays for."""
    wanted = rows["more"].to_list()[-1] if affordable is None else affordable
    at = rows.filter(pl.col("more") == wanted)
    assumed = "" if assumed_usd is None else f" at an assumed {text.usd(assumed_usd)} a judgement"
    if at.is_empty() or wanted == 0:
        return f"Your budget pays for {text.count(wanted, 'more query')}.", ""
    row = at.row(0, named=True)
    would = "would change" if row["flip"] else "would not change"
    chance = f" in {text.percent(row['flip'])} of simulations" if row["flip"] else ""
    more = text.count(wanted, "more query")
    return f"{more} {would} the choice{chance}.", f"{text.usd(row['usd'])} pay for {more}{assumed}."


def about_worlds(delta: float) -> str:
    """Explain how further queries are simulated."""
    return (
        f"{WORLDS:,} simulations (seed {SEED}). Each weights the queries so far anew, adds more queries like "
        "them, and decides again by your limits and rule. A better stack is better "
        f"by more than {delta:.3g}."
    )


def rival_words(rivals: pl.DataFrame) -> str:
    """Say how often endless queries would choose the first two stacks."""
    in_play = rivals.filter(pl.col("final") >= CALM).select("name", "final").head(2).rows()
    if not in_play:
        return "No stack is chosen in as much as one simulation of twenty."
    (name, share), rest = in_play[0], in_play[1:]
    others = "".join(f", {other} in {text.percent(often)}" for other, often in rest)
    return f"With endless queries {name} would win in {text.percent(share)} of simulations{others}."


def price_words(price: StudyBill, leading_ones: int) -> str:
    """Say how much a further query costs."""
    running = "of unknown cost" if price.running is None else f"{text.usd(price.running)}"
    words = f"One query: {text.usd(price.judging)} for judging, {running} for running "
    words += text.count(leading_ones, "leading stack")
    if price.unpriced and price.running is not None:
        words += f" ({price.unpriced} of unknown cost left out)"
    return f"{words}."


def timing_words(plan: JudgingPlan, price: StudyBill) -> str:
    """Describe the effect of timing the same queries again."""
    if plan.timed is None:
        return "No stack has a latency per query, so what repeats would do is unknown."
    if plan.timed.left_now == 0:
        return "Timing the same queries again changes nothing: no latency is near a limit that matters."
    cost = "" if price.running is None else f" ({text.usd(price.running * plan.queries)} a round)"
    parts = [
        f"{text.count(repeat, 'round')} more: {text.percent(share)}"
        for repeat, share in zip(REPEATS, plan.timed.flip.tolist(), strict=True)
    ]
    return f"The chance that timing the same queries again{cost} changes the choice: {'; '.join(parts)}."


def unknown_answer(table: pl.DataFrame, decision: Decision, quality: Quality) -> str:
    """Return the head of the page if nothing is known per query."""
    if decision.chosen is None:
        return "Nothing is chosen, so there is no decision that more evaluation could change."
    row = table.row(decision.chosen, named=True)
    figures = f"{quality.name} {text.score(row['quality'])}, {text.sample(row)}"
    return f"What more queries would do is unknown: averages only ({figures})."


def tag_words(rows: pl.DataFrame, queries: pl.DataFrame, one: str, other: str) -> str:
    """Say which queries to add."""
    waiting = queries.filter(pl.col("judged") == 0).height
    first = f"{text.count(waiting, 'stored query')} without judgements could be next. "
    head = first if waiting else ""
    moving = rows.filter(pl.col("best") / pl.col("share") >= MOVED)
    if moving.is_empty():
        return f"{head}Between {one} and {other} no tag stands out: any further queries tell about as much."
    best = moving.row(0, named=True)
    return (
        f"{head}Between {one} and {other} the queries with {best['tag']} vary most (standard deviation "
        f"{best['spread']:.3f}, n = {best['n']}): {text.percent(best['best'])} of further queries instead of "
        f"{text.percent(best['share'])} would tell most."
    )


def next_stack_words(rows: pl.DataFrame) -> str:
    """Name the best stack to add within the limits, according to each model that proposes any."""
    within = rows.filter(pl.col("beyond").is_null())
    guessed = within.filter(pl.col("chance").is_not_null()).sort(
        "chance", descending=True, maintain_order=True
    )
    best = guessed.row(0, named=True) if guessed.height else None
    said = []
    if best is not None:
        guess = f"{best['of']} with {best['step']}: {text.score(best['guess'])} ± {best['spread']:.3f}"
        said = [
            f"No untested stack is likely to beat the choice; the best guess is {guess}."
            if best["chance"] < _LIKELY
            else f"{guess}, better than the choice with a chance of {text.percent(best['chance'])}."
        ]
    elif (first := within.drop_nulls("place")["stack"]).len():
        said = [f"To try next: {first[0]}. Its quality is not predicted."]
    if outside := rows.height - within.height:
        said.append(f"{text.count(outside, 'untested stack')} would break your limits.")
    if said:
        return " ".join(said)
    return "No stack one step from the frontier is missing, or too few are known for a guess."
