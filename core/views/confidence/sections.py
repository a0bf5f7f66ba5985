"""Page Confidence: whether the choice would hold, what changes it, other weights, what else to measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from core.analysis.identical import identical, kept, merged
from core.analysis.judging import USUAL, Next, to_judge
from core.analysis.per_query import queries
from core.analysis.status import CHANCES as SHARES
from core.analysis.status import marked, ordered
from core.analysis.workspace.noise import Noise, noise_words, noisy_rows, refusal
from core.analysis.workspace.sure import drawn, draws, sample
from core.analysis.workspace.telling import seldom
from core.analysis.workspace.view import View
from core.decide.planner import StudyBill, bill
from core.decide.rules import Decision, Rule
from core.views import columns as cols
from core.views import text
from core.views.ask import Ask
from core.views.blocks import (
    Answer,
    Blocks,
    Cards,
    Chart,
    Control,
    Fold,
    SideBySide,
    Table,
    Text,
    Way,
    section,
)
from core.views.confidence import charts, data, weights, words, worth
from core.views.confidence.hold import BEST, excluded_rows, front, share_rows, tie_rows
from core.views.confidence.kinds import kinds_of_question
from core.views.confidence.weights import WeightGrid
from core.views.link import RULES
from core.views.words.advice import ROLES, advice, again, roles
from core.views.words.choice import listed
from core.views.words.facts import warnings, worth_judging
from core.views.words.judging import next_words
from core.views.words.moving import needs_words
from core.views.words.stacks import stack_columns

ABOUT_RULES = (
    "Among the stacks within the limits: the highest quality; the best within 1 % of the cheapest; or the "
    "best within the jitter band of the fastest."
)
MODELLED = (
    "Guesses add up what each part changed so far. The search (TPE over quality, latency and cost) orders "
    "the stacks and guesses nothing."
)
WEIGH_BACK = "Queries taken by these shares must be weighted back to the shares of today."
BEST_STACK = "the best as usual"
NOT_BY_QUERIES = "More queries cannot show that: their first passages would be as unjudged."
ASSUMED_USD = 0.01  # per judgement, if nobody sets a price
_SAME = ("quality", "quality_low", "quality_high", "n", "latency_ms", "cost")
SAME_CHANCES = (*_SAME, "p_best", "p_again", "p_feasible", "p_frontier", "p_sla")
SAME_GAP = (*_SAME, "d_quality", "d_low", "d_high")  # What stacks merged into one row have in common
ON_TOP = "Where this judge graded, its grades replace today's."
NUMBERS, INTERVAL = ("quality", "latency_ms", "cost"), ("quality_low", "quality_high", "n")
CHANCES = ("stack", "status", "p_best", "p_feasible", "p_frontier", *NUMBERS, "unknown")
HOW_SURE = cols.Rows(
    "how_sure",
    cols.text("sure", "question", width=360),
    cols.share("chance", help="Share of the simulations."),
    cols.text("why", "what it counts", width=420),
)
TIES = cols.Rows(
    "ties",
    "stack quality d_quality d_low d_high latency_ms cost",
    cols.text("reading", "query by query"),
    more=(*INTERVAL, "gap_ms"),
)
TURNS = cols.Rows(
    "turning",
    *("stack number now then", cols.text("change")),
    cols.text("winner", "then chosen", width=260),
)
EXCLUDED = cols.Rows(
    "excluded", "name", cols.text("reason", "excluded because"), "by unit", *NUMBERS, more="constraint"
)
RANGES = cols.Rows(
    "ranges",
    cols.text("stack", help="Of those with the same score on every query, the first.", width=290),
    cols.score("quality", "as usual"),
    cols.count("rank", help="As usual; equal scores share a rank."),
    "lowest highest best_rank worst_rank",
)
FLIPS = cols.Rows(
    "flips",
    "better worse",
    cols.signed("difference", help="As usual, mean over queries."),
    "flips reversal reading",
    more=(
        *map(cols.signed, cols.ENDS),
        cols.number("p_holm", "p (Holm)", "Of the usual order, Holm-adjusted over these pairs.", digits=4),
        cols.text("where", help="The setting with the reversal.", width=260),
        "p_there",
    ),
)
CELLS = cols.Rows("grid", "name alpha cap4 cap3 usual quality low high n rank chosen")
PASSAGES = cols.Rows(
    "judge_next",
    "query_id passage_id",
    cols.count("stacks", help="Leading stacks that show it."),
    cols.count("rank", "best rank"),
    "likely",
    cols.share("chance", "changes the best", "Chance that its grade alone changes the best stack."),
    "saved",
)
WITH = cols.Rows(
    "with_grades", "name", cols.score("before"), cols.score("after", "with its grades"), "change is"
)
PLAN = cols.Rows("plan", "more", cols.count("n", "n then"), "usd flip", more="left")
TAGS = cols.Rows(
    "tags",
    "tag n",
    cols.signed("difference", help="Mean, first stack minus the second."),
    "spread",
    cols.share("share", "today"),
    cols.share("best", "tells most", "Share of further queries with the least error (Neyman)."),
)


def ask_rule(view: View, ask: Ask) -> tuple[Rule, Decision]:
    """Ask what is best; return the rule, and its selection within the limits."""
    usual = next(name for name, rule in RULES.items() if rule == view.rule)
    rule = RULES[ask.one("Best is", RULES, "rule", usual=usual, about=ABOUT_RULES)]
    return rule, data.decided(view, rule)


@section("would it hold", "Would other queries of the same kind lead to the same choice?")
def would_it_hold(view: View, ask: Ask) -> Blocks:
    """Yield how often the choice is the best on resampled queries, and what ties with it."""
    rule, decision = ask_rule(view, ask)
    asked = view.replace(rule=rule)
    known, noisy = sample(view), drawn(view, view.noise)
    n = 0 if known is None else int(known.quality.shape[1])
    counted, sentence = data.chances(view, view.constraints, rule), words.held(asked)
    how = {"how it is counted": words.about_chances(n, draws(view) or 0)} if n else {}
    yield Answer(sentence, advice(asked), caveats=how | caveats(asked, counted, noisy))
    if cards := words.held_cards(asked, counted, (n, noisy)):
        yield Cards(cards)
    if asked.sure.pgs is not None:
        row = counted.row(decision.chosen or 0, named=True)
        others = words.how_sure(asked, row, final(asked, counted))
        yield Fold("Other chances", [Table(others, HOW_SURE)])
    rows = share_rows(view.table, decision, counted)
    rows = rows.join(noisy_rows(rows, noisy), on="run_id", maintain_order="left")
    role = pl.col("run_id").replace_strict(roles(asked), default=None, return_dtype=pl.String)
    rows = rows.with_columns(status=pl.coalesce(role, pl.col("status").cast(pl.String)))
    ours = pl.col("status").is_in(["chosen", "runner-up", *ROLES])
    grouped = merged(rows, ours, identical(rows, SAME_CHANCES))
    if (figure := charts.chances(grouped.with_columns(name="stack"))) is not None:
        ever = grouped.filter(pl.col("p_feasible").fill_null(1.0) > 0)["p_best"]
        yield Text("How often each stack is the best", "heading")
        yield Chart(figure, "chances", sentence)
        if said := " ".join(filter(None, words.about_best(ever))):
            yield Text(said, "caption")
    yield Table(
        grouped,
        cols.Rows(
            "chances",
            *CHANCES,
            *(() if noisy is None else ["noisy"]),
            more=("p_again p_sla", *INTERVAL, *(() if noisy is None else ("noisy_low", "noisy_high"))),
        ),
        whole=rows,
    )
    tied = tie_rows(asked, decision)
    if tied.height > 1:
        yield Text("What ties with the best", "heading")
        yield Text(decision.note)
        best = (pl.col("row") == decision.chosen) | (pl.col("reading") == BEST)
        groups = merged(tied, best, identical(tied, SAME_GAP))
        yield Table(groups, TIES, whole=tied)


def final(view: View, counted: pl.DataFrame) -> float | None:
    """Return how often the choice is still chosen after unlimited queries, or None if unknown."""
    rows = worth.leading(view.table, view.decision, counted)
    if sample(view) is None or not rows:
        return None
    plan = data.look_ahead(view, view.constraints, view.rule, tuple(rows), worth.USUAL)
    return 1 - plan.judged.left_now


def every_stack(view: View, decision: Decision, sure_table: pl.DataFrame, *, wide: bool) -> Table:
    """Return every stack; equal ones share a row.

    Args:
        sure_table: The stack table with its probabilities.
        wide: Whether with all columns, probabilities included, rather than the five that a decision needs.
    """
    rows = ordered(marked(sure_table, decision), decision)
    rows = merged(rows, kept(decision.chosen), identical(sure_table)[rows["row"]])
    if not wide:
        numbers = rows.select("quality", "quality_low", "quality_high").iter_rows()
        written = ["" if value is None else text.score(value) + text.interval(low, high)
                   for value, low, high in numbers]  # fmt: skip
        status = pl.col("status").cast(pl.String).replace("within the limits", "within limits")
        return Table(
            rows.with_columns(outcome=pl.coalesce("reason", status)),
            cols.Rows("stacks", *(column for column in stack_columns(view) if column.name != "n")),
            cells=[{"quality": quality} for quality in written],
        )
    rows, of_a_move = needs_words(listed(rows, roles(view)))
    more = ("quality_low quality_high", *of_a_move, *SHARES)
    return Table(rows, cols.Rows("stacks", *stack_columns(view), more=more))


def caveats(asked: View, counted: pl.DataFrame, noisy: Noise | None) -> dict[str, str]:
    """Return what weakens the probabilities, keyed by the words of a chip."""
    rows = asked.table.join(counted, on="run_id", how="left", maintain_order="left")
    judging = worth_judging(asked).values()
    rest = [said for said in warnings(rows, asked.decision, asked) if said not in judging]
    return {
        "judge noise": judge_noise(asked, noisy),
        "noisy queries": data.under_noise(asked, asked.constraints, asked.rule),
        "what else to know": " ".join(rest),
    }


def judge_noise(view: View, noisy: Noise | None) -> str:
    """Describe the effect of judge noise on the choice, or why it is left out; "" if it is off."""
    if view.noise is None or view.decision.chosen is None:
        return ""
    if noisy is None:
        why = refusal(view.snapshot, view.table, view.scope, view.quality)
        return f"Judge noise is left out: {why or 'no passage was judged by both'}."
    return noise_words(view.table, view.decision, noisy, view.quality)


@section("what flips it", "What would have to change for another stack to be chosen?")
def what_flips_it(view: View, ask: Ask) -> Blocks:
    """Yield the number that would change the choice, and the stacks that the limits exclude."""
    rule, decision = ask_rule(view, ask)
    turned = data.turned(view, view.constraints, rule)
    shape = front(view.table, decision)
    yield Answer(words.turning_words(turned, view.quality.name))
    cards = [] if shape is None else [words.front_card(shape)]
    if decision.chosen is not None:
        cards.append(words.quality_card(view.table.row(decision.chosen, named=True), view.quality))
    if cards:
        yield Cards(cards)
    turning = turned.filter(pl.col("then").is_not_null())
    if not turning.is_empty():
        yield Table(turning, TURNS, whole=turned)
        yield Text(words.ALONE, "caption")
    yield Text("What the limits exclude, and by how much", "heading")
    excluded = excluded_rows(view.table, decision)
    yield Text(words.excluded_words(excluded))
    if not excluded.is_empty():
        yield Table(excluded, EXCLUDED)


@section("other weights", "Would other weights of the grades lead to another choice?", seldom)
def other_weights(view: View, ask: Ask) -> Blocks:
    """Yield whether choice and order hold when the weights of RA-nWG change."""
    obstacle = words.nothing(view.table, view.scope)
    if obstacle is not None:
        yield Answer(*obstacle)
        yield Way("add", "Import rankings")
        return
    measure, own = weights.weighed(view.quality)
    grid, flips = data.grid(view, str(measure))
    chosen = weights.choices(grid, view.table, view.constraints)
    sentence, details = words.weighed(grid, chosen, flips)
    foreign = f"{view.quality.name} has no such weights: the grid, and the floor in it, are of {measure}."
    chips = {"how it is counted": words.ABOUT_WEIGHTS, "another measure": "" if own else foreign}
    yield Answer(sentence, caveats=chips)
    if numbers := words.weighed_cards(grid, chosen, flips):
        yield Cards(numbers)
    if len(set(chosen)) > 1:
        yield from _setting_by_setting(view, ask, grid, chosen)
    else:  # weights that change nothing take one line
        yield Fold("Setting by setting", _setting_by_setting(view, ask, grid, chosen))
    names = dict(view.table.select("run_id", "name").iter_rows())
    ranges = weights.stack_ranges(grid, names)
    moved = (
        Chart(charts.ranges(ranges, str(measure)), "ranges", "Least and greatest score of every stack"),
        Table(weights.grouped(ranges), RANGES, whole=ranges),
    )
    yield Fold("How far the stacks move", moved)
    swapped = flips.filter(pl.col("flips") > 0)
    yield Text(details)
    if not swapped.is_empty():
        yield Fold("Which pairs swap places", [Table(swapped, FLIPS, whole=flips)])
    cells = weights.long_table(grid, names, chosen)
    marks = [pl.when(pl.col(name)).then(pl.lit("yes")).alias(name) for name in ("usual", "chosen")]
    yield Fold("Every stack in every setting", [Table(cells.with_columns(marks), CELLS)])


def _setting_by_setting(view: View, ask: Ask, grid: WeightGrid, chosen: Sequence[str | None]) -> Blocks:
    """Yield the order and the choice in every setting, and how one stack does in each."""
    every = (
        Text("", label="Order and choice, setting by setting"),
        Chart(charts.agreement(grid, chosen), "agreement", "Order and choice in every setting"),
    )
    yield SideBySide(every, _one_stack(view, ask, grid), level="bottom")
    yield Text(words.weighing_legend(grid, chosen), "caption")


def _one_stack(view: View, ask: Ask, grid: WeightGrid) -> Blocks:
    ranked = view.table.filter("has_rankings")
    run_id = ask.stack(ranked, view.decision, "One stack, setting by setting", usual=BEST_STACK)
    yield Chart(charts.one_stack(grid, run_id or grid.leader), "one_stack", "Score and rank of one stack")


@section("worth measuring more", "Is it worth measuring more before shipping?")
def worth_measuring_more(view: View, ask: Ask) -> Blocks:
    """Yield the effect of more queries, judgements, timings and stacks on the choice, and their cost."""
    counted = data.chances(view, view.constraints, view.rule)
    rows = worth.leading(view.table, view.decision, counted)
    if (known := sample(view)) is None or not rows:
        yield Answer(words.unknown_answer(view.table, view.decision, view.quality))
    else:
        unjudged = to_judge(view, view.constraints, view.rule)
        if unjudged is not None and unjudged.matters:
            asked = f"By {view.quality.name}, {text.sample(known.quality.shape[1])}."
            yield Answer(advice(view), f"{NOT_BY_QUERIES} {asked}")
            yield from _passages(view, ask, unjudged)
            yield Fold("More queries", _queries(view, ask, rows, heads=False))
        else:
            yield from _queries(view, ask, rows)
            if unjudged is not None:
                yield Fold("Which passages to judge next", _passages(view, ask, unjudged))
    yield Fold("Untested stacks to try", _untested(view))


def _untested(view: View) -> Blocks:
    """Yield the stacks to evaluate next, with their guessed quality and least latency and cost."""
    further = data.stacks_to_add(view, view.constraints)
    yield Text(words.next_stack_words(further))
    if not further.is_empty():
        yield Text(MODELLED, "caption")
        yield Table(further, worth.NEIGHBOURS)
    if (missing := worth.missing_model()) is not None:
        yield Text(missing, "caption")


@dataclass(frozen=True)
class Money:
    """Price of one more query, and how many queries the money buys."""

    price: StudyBill  # for one more query
    affordable: int | None  # queries that the money buys; None = any number, since a query costs nothing
    assumed_usd: float | None  # the price of a judgement if nobody sets one


def ask_money(view: View, ask: Ask, rows: list[int]) -> Money:
    """Ask for the money and the price of a judgement; what a run of the stacks costs is known."""
    usual = data.judgements_per_query(view)
    spend = ask.number("Money to spend ($)", "spend", 12.0, 0.0)
    judge = ask.number(
        "$ per judgement",
        "judge",
        None,
        0.0,
        step=0.01,
        unsaid=f"{ASSUMED_USD:g} assumed",
        about="Of one passage for one query, by a person or a model: your own figure.",
    )
    per_query = ask.number(
        "Judgements per query",
        "perq",
        None,
        0.0,
        unsaid=f"{usual:g}",
        about="Empty: as many as the golden set has per query today.",
    )
    costs = view.table["cost"].cast(pl.Float64).fill_null(np.nan).to_numpy()[rows]
    price = bill(
        costs,
        judgements=usual if per_query is None else per_query,
        usd_per_judgement=ASSUMED_USD if judge is None else judge,
    )
    return Money(price, price.affordable(spend or 0.0), ASSUMED_USD if judge is None else None)


def _queries(view: View, ask: Ask, rows: list[int], *, heads: bool = True) -> Blocks:
    """Yield the effect of more queries, the stacks and queries concerned, and the effect of timing again.

    Args:
        heads: Whether the result heads the page, instead of being a text below another one.
    """
    money = ask_money(view, ask, rows)
    amounts = worth.amounts(money.affordable, again(view))
    plan = data.look_ahead(view, view.constraints, view.rule, tuple(rows), amounts)
    planned = worth.plan_rows(plan, money.price)
    sentence, details = words.plan_answer(view, planned, money.affordable, assumed_usd=money.assumed_usd)
    chips = {
        "how it is simulated": words.about_worlds(view.decision.delta),
        "what a query costs": words.price_words(money.price, len(rows)),
    }
    if heads:
        yield Answer(sentence, details, caveats=chips)
    else:
        yield from map(Text, (sentence, details, *chips.values()))
    share = view.sure.p_better_found
    better = None if share is None else (again(view), share)
    drawn = charts.plan_chart(planned, money.affordable, better, view.decision.delta or 0.0)
    yield Chart(drawn, "plan", sentence)
    yield Fold("In numbers", [Table(planned, PLAN)])
    rivals = worth.rival_rows(view.table, plan, view.decision)
    told = cols.Rows("rivals", "name today final", *NUMBERS, more=INTERVAL)
    yield Fold("Which stacks could win", [Text(words.rival_words(rivals)), Table(rivals, told)])
    ranked = rivals.join(
        view.table.filter("has_rankings").select("run_id"), on="run_id", how="semi", maintain_order="left"
    )
    if ranked.height > 1:
        yield Fold("Which queries tell most", _tagged(view, ranked))
    yield Fold("Timing again", [Text(words.timing_words(plan, money.price))])


def _tagged(view: View, ranked: pl.DataFrame) -> Blocks:
    """Yield the kind of queries that best separates the two most likely stacks."""
    pair = queries(view, *ranked["run_id"][:2])
    tags = worth.tag_rows(pair)
    yield Text(words.tag_words(tags, pair, *ranked["name"][:2]))
    if not tags.is_empty():
        yield Text(WEIGH_BACK, "caption")
        yield Table(tags, TAGS)


def _passages(view: View, ask: Ask, unjudged: Next) -> Blocks:
    """Yield the passages to judge next, with a link to Golden sets, and the effect of others' grades."""
    yield Text(next_words(unjudged, view.quality))
    rows = unjudged.worth.rows.head(USUAL)
    if not rows.is_empty():
        yield Table(rows, PASSAGES, whole=unjudged.worth.rows)
        golden = view.scope.golden_set_id or ""
        yield Control("judge next", {"golden": golden, "within": unjudged.within, "rows": rows})
    known = view.snapshot.golden_sets(view.scope.collection_id).filter(pl.col("judgements") > 0)
    others = [name for name in known["golden_set_id"] if name != view.scope.golden_set_id]
    if others:
        more = ask.listed("The choice with the grades of", others, "with")
        yield Text(ON_TOP, "caption")
        yield Table(data.with_grades(view, view.constraints, more), WITH)


SECTIONS = (would_it_hold, what_flips_it, kinds_of_question, other_weights, worth_measuring_more)
