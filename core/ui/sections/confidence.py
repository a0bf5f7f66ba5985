"""Sections of page Confidence: would the choice hold, what turns it, and other weights of RA-nWG."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import streamlit as st

from core.decide.joint import JointSample
from core.decide.near import turns
from core.decide.rules import Constraints, Decision, Rule, decide
from core.metrics import Measure
from core.ui import cache, show
from core.ui.pick import pick_one, pick_stack
from core.ui.view import end
from core.views.confidence import charts, weights, words
from core.views.confidence.hold import (
    BEST,
    excluded_rows,
    front,
    joint_sample,
    share_rows,
    shares,
    tie_rows,
    turn_rows,
)
from core.views.confidence.noise import (
    RESAMPLES,
    Noise,
    noise,
    noise_words,
    noisy_rows,
    redecided,
    refusal,
    with_noise,
)
from core.views.confidence.weights import Grid
from core.views.decision.chart import identical, merged
from core.views.decision.facts import Asked, warnings
from core.views.diagnostics.noise_page import choice_under_noise
from core.views.link import RULES
from core.views.text import plain
from core.views.workspace.query_sets import among
from core.views.workspace.scores import evidence
from core.views.workspace.view import View


def would_it_hold(view: View) -> None:
    """Draw the section."""
    numbers, chips = st.empty(), st.container()
    rule, decision = ask_rule(view)
    asked = Asked(view.constraints, rule, view.quality, view.latency, noise=view.noise)
    known = sample(view)
    queries = 0 if known is None else int(known.quality.shape[1])

    def answer(reference: str | None) -> tuple[pl.DataFrame, Noise | None]:
        noisy, counted = drawn(view, reference), chances(view, view.constraints, rule, reference)
        show.head(words.held(view.table, decision, asked, counted))
        if cards := words.held_cards(view.table, decision, asked, counted, (queries, noisy)):
            with numbers.container():
                show.cards(*cards)
        return counted, noisy

    counted, noisy = answer(None)
    if view.noise is not None:  # it takes a while to draw, so the answer of the queries alone stands first
        counted, noisy = answer(view.noise)
    sentence = words.held(view.table, decision, asked, counted)
    with chips:
        rows = view.table.join(counted, on="run_id", how="left", maintain_order="left")
        show.caveats({
            "how it is counted": words.about_chances(queries, noisy) if queries else "",
            "judge noise": judge_noise(view, decision, rule, noisy),
            "noisy queries": _under_noise(view, view.constraints, rule),
            "what else to know": " ".join(warnings(rows, decision, asked)),
        })  # fmt: skip
    rows = share_rows(view.table, decision, counted)
    rows = rows.join(noisy_rows(rows, noisy), on="run_id", maintain_order="left")
    ours = pl.col("status").is_in(["chosen", "runner-up"])
    grouped = merged(rows, ours, identical(rows, SAME_CHANCES))
    if (figure := charts.chances(grouped.with_columns(name="stack"))) is not None:
        show.chart(figure, "chances", alt=sentence)
    columns, more = (CHANCES, CHANCES_MORE)
    if noisy is not None:
        columns, more = {**CHANCES, **NOISY}, {**CHANCES_MORE, **NOISY_ENDS}
    show.table(grouped, "chances", columns, more=more, whole=rows)

    st.subheader("What ties with it", anchor=False)
    tied = tie_rows(view.table, decision, known)
    st.markdown(plain(decision.note or words.no_tie(decision, known=known is not None)))
    if (figure := charts.ties(view.table, tied, decision, asked)) is not None:
        show.chart(figure, "ties", alt=decision.note or "Latency and quality of the stacks.")
    if tied.height > 1:
        best = (pl.col("row") == decision.chosen) | (pl.col("reading") == BEST)
        show.table(merged(tied, best, identical(tied, SAME_GAP)), "ties", TIES, more=TIES_MORE, whole=tied)


@cache.cached("Choosing for noisy queries…")
def _under_noise(view: View, constraints: Constraints, rule: Rule) -> str:
    asked = Asked(constraints, rule, view.quality, view.latency)
    return choice_under_noise(view.snapshot, view.table, asked, view.scope, view.book)


def judge_noise(view: View, decision: Decision, rule: Rule, noisy: Noise | None) -> str:
    """Return what judge noise does to the choice, or why it is left out; empty where it is off."""
    if view.noise is None or decision.chosen is None:
        return ""
    if noisy is None:
        why = refusal(view.snapshot, view.table, view.scope, view.quality)
        return f"Judge noise is left out: {why or 'no passage was judged by both'}."
    other = redecided(view.table, decision, (view.constraints, rule), noisy)
    return noise_words(view.table, decision, other, noisy, view.quality)


def ask_rule(view: View) -> tuple[Rule, Decision]:
    """Ask what is best; the rule, and what it selects within the limits."""
    named = pick_one(
        "Best is", RULES, "rule", usual="highest quality",
        help="Among the stacks within the limits: the highest quality; the cheapest, then the best; or the "
        "best within the jitter band of the fastest.",
    )  # fmt: skip
    rule = RULES[named]
    if rule == "quality":
        return rule, view.decision
    return rule, decide(view.table, view.constraints, rule, paired=view.paired)


@cache.cached("Reading the results per query…", entries=8)
def sample(view: View) -> JointSample | None:
    """Return the results per query of all stacks."""
    return joint_sample(view.snapshot, view.table, view.scope, quality=view.quality, latency=view.latency)


@cache.cached("Drawing the queries again…", entries=64)
def chances(view: View, constraints: Constraints, rule: Rule, reference: str | None) -> pl.DataFrame:
    """Return how often each stack does what."""
    noisy = with_noise(view.table, sample(view), drawn(view, reference))
    return shares(view.table, noisy, (constraints, rule))


@cache.cached("Drawing the grades again…", entries=16)
def drawn(
    view: View, reference: str | None, among: tuple[str, ...] = (), resamples: int = RESAMPLES
) -> Noise | None:
    """Return the judge noise of the stacks, or of some of them; None where there is to be none."""
    known = None if reference is None else sample(view)
    if reference is None or known is None:
        return None
    table = view.table.filter(pl.col("run_id").is_in(among)) if among else view.table
    return noise(
        view.snapshot, table, view.scope, view.quality, reference,
        resamples=resamples, queries=known.query_ids,
    )  # fmt: skip


_SAME = ("quality", "quality_low", "quality_high", "n", "latency_ms", "cost")
SAME_CHANCES = (*_SAME, "p_best", "p_feasible", "p_frontier", "p_sla")
SAME_GAP = (*_SAME, "d_quality", "d_low", "d_high")  # What stacks have in common that are one row
CHANCES: Mapping[str, Any] = {
    "stack": show.text_column("stack", width=270),
    "status": show.text_column("is"),
    "p_best": show.percent_column(
        "P(best)", "Share of the resamples it wins; equal bests share one, and each of equal stacks has this."
    ),
    "p_feasible": show.percent_column("P(feasible)", "Meets every limit."),
    "p_frontier": show.percent_column("P(frontier)", "In cost, latency and quality, limits or not."),
    **show.NUMBERS,
    "unknown": show.text_column("unknown because"),
}
NOISY: Mapping[str, Any] = {
    "noisy": show.score_column("with judge noise", "Mean on the grades that the other judge would give.")
}
NOISY_ENDS: Mapping[str, Any] = {
    "noisy_low": show.score_column("with noise, low", "Lower end of its 95 % interval."),
    "noisy_high": show.score_column("with noise, high", "Upper end of its 95 % interval."),
}
CHANCES_MORE: Mapping[str, Any] = {
    "p_sla": show.percent_column("P(SLA)", "Empty without an SLA, or where the latency is unknown."),
    **show.INTERVAL,
}
TIES: Mapping[str, Any] = {
    "stack": show.text_column("stack", width=270),
    "quality": show.score_column("quality"),
    "d_quality": show.signed_column("minus the best", "Difference to the best of them, on the same queries."),
    "d_low": show.signed_column("low", "95 % interval of the difference, query by query."),
    "d_high": show.signed_column("high", "95 % interval of the difference, query by query."),
    "latency_ms": show.number_column("latency ms", 2),
    "cost": show.dollar_column("$ / 1k"),
    "reading": show.text_column("query by query"),
}
TIES_MORE: Mapping[str, Any] = {**show.INTERVAL, "gap_ms": show.signed_column("ms more than the best")}


def what_flips_it(view: View) -> None:
    """Draw the section."""
    head = st.container()
    rule, decision = ask_rule(view)
    turned = _turned(view, view.constraints, rule)
    shape = front(view.table, decision)
    with head:
        show.head(words.turning_words(turned))
        cards = [] if shape is None else words.front_cards(shape)
        if decision.chosen is not None:
            cards.append(words.quality_card(view.table.row(decision.chosen, named=True), view.quality))
        if cards:
            show.cards(*cards)
    if not turned.is_empty():
        then = turned.with_columns(outcome=pl.coalesce("winner", "reason"))
        show.table(then, "turning", TURNS, whole=turned)
    st.subheader("What the limits exclude, and by how much", anchor=False)
    excluded = excluded_rows(view.table, decision)
    st.markdown(plain(words.excluded_words(excluded)))
    if not excluded.is_empty():
        show.table(excluded, "excluded", EXCLUDED, more={"constraint": show.text_column("first limit")})


@cache.cached(entries=64)
def _turned(view: View, constraints: Constraints, rule: Rule) -> pl.DataFrame:
    decision = decide(view.table, constraints, rule, paired=view.paired)
    return turn_rows(view.table, turns(view.table, constraints, rule, decision=decision, paired=view.paired))


TURNS: Mapping[str, Any] = {
    "stack": show.text_column("stack", width=240),
    "number": show.text_column("its"),
    "now": show.text_column("now"),
    "then": show.text_column("would need"),
    "change": show.text_column("change"),
    "outcome": show.text_column("then chosen", "Or why no such change turns the choice.", width=260),
}
EXCLUDED: Mapping[str, Any] = {
    "name": show.text_column("stack", width=270),
    "reason": show.text_column("excluded because", width=230),
    "by": show.number_column("over by", 3),
    "unit": show.text_column("unit"),
    **show.NUMBERS,
}


BEST_STACK = "the best as usual"


def other_weights(view: View) -> None:
    """Draw the section."""
    obstacle = words.nothing(view.table, view.scope)
    if obstacle is not None:
        show.head(*obstacle)
        st.page_link("pages/add.py", label="Import rankings", icon=":material/upload:")
        end()
    measure, own = weights.weighed(view.quality)
    grid, flips = _grid(view, str(measure))
    chosen = weights.choices(grid, view.table, view.constraints)
    sentence, details = words.weighed(grid, chosen, flips)
    show.head(sentence)
    if numbers := words.weighed_cards(grid, chosen, flips):
        show.cards(*numbers)
    foreign = f"{view.quality.name} has no such weights: the grid, and the floor in it, are of {measure}."
    show.caveats({"how it is counted": words.ABOUT_WEIGHTS, "another measure": "" if own else foreign})

    left, right = st.columns(2, vertical_alignment="bottom")
    with left:
        st.markdown("**Order and choice, setting by setting**")
        show.chart(charts.agreement(grid, chosen), "agreement", alt=sentence)
    with right:
        ranked = view.table.filter("has_rankings")
        run_id = pick_stack(ranked, view.decision, "One stack, setting by setting", default=BEST_STACK)
        show.chart(charts.one_stack(grid, run_id or grid.leader), "one_stack")
    st.caption(plain(words.weighing_legend(grid, chosen)))

    st.subheader("How far the stacks move", anchor=False)
    names = dict(view.table.select("run_id", "name").iter_rows())
    ranges = weights.stack_ranges(grid, names)
    show.chart(charts.ranges(ranges, str(measure)), "ranges")
    show.table(weights.grouped(ranges), "ranges", RANGES, whole=ranges)
    st.subheader("Which pairs swap places", anchor=False)
    swapped = flips.filter(pl.col("flips") > 0)
    st.markdown(plain(details))
    if not swapped.is_empty():
        show.table(swapped, "flips", FLIPS, more=FLIPS_MORE, whole=flips)
    with st.expander("Every stack in every setting"):
        cells = weights.long_table(grid, names, chosen)
        marks = [pl.when(pl.col(name)).then(pl.lit("yes")).alias(name) for name in ("usual", "chosen")]
        show.table(cells.with_columns(marks), "grid", CELLS)


@cache.cached("Scoring every cell of the grid…", entries=16)
def _grid(view: View, measure: str) -> tuple[Grid, pl.DataFrame]:
    names = dict(view.table.filter("has_rankings").select("run_id", "name").iter_rows())
    only = among(view.snapshot, view.scope)
    found = evidence(view.snapshot, list(names), view.scope.golden_set_id or "", only=only)
    grid = weights.score_grid(found, Measure.parse(measure))
    return grid, weights.flips(grid, names)


RANGES: Mapping[str, Any] = {
    "stack": show.text_column("stack", "Of those with the same score on every query, the first.", width=360),
    "quality": show.score_column("as usual"),
    "rank": show.number_column("rank", 0, "As usual; equal scores share a rank."),
    "lowest": show.score_column("lowest", "Over all settings tried."),
    "highest": show.score_column("highest", "Over all settings tried."),
    "best_rank": show.number_column("best rank", 0),
    "worst_rank": show.number_column("worst rank", 0),
}
FLIPS: Mapping[str, Any] = {
    "better": show.text_column("better, as usual", width=180),
    "worse": show.text_column("worse, as usual", width=180),
    "difference": show.signed_column("difference", "As usual, mean over queries."),
    "flips": show.number_column("settings", 0, "Settings in which the order is reversed."),
    "reversal": show.signed_column("reversal", "The largest difference the other way."),
    "reading": show.text_column("reading", width=230),
}
FLIPS_MORE: Mapping[str, Any] = {
    "low": show.signed_column("low", "Lower end of its 95 % interval."),
    "high": show.signed_column("high", "Upper end of its 95 % interval."),
    "p_holm": show.number_column("p adjusted", 4, "Of the usual order, Holm-adjusted over these pairs."),
    "where": show.text_column("where", "The setting with the reversal."),
    "p_there": show.number_column("p there", 4, "Of that reversal, Holm-adjusted over the reversed pairs."),
}
CELLS: Mapping[str, Any] = {
    "name": show.text_column("stack", width=270),
    "alpha": show.number_column("alpha", 1),
    "cap4": show.number_column("cap4", 2),
    "cap3": show.number_column("cap3", 2),
    "usual": show.text_column("usual"),
    "quality": show.score_column("score"),
    "low": show.score_column("low"),
    "high": show.score_column("high"),
    "n": show.number_column("n", 0),
    "rank": show.number_column("rank", 0),
    "chosen": show.text_column("chosen", "Selected by the limits."),
}
