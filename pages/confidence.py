from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import streamlit as st

from core.decide.planner import Bill, bill
from core.decide.rules import Constraints
from core.ui import cache, door, show
from core.ui.pages import pick_section
from core.ui.pick import pick_listed
from core.ui.sections.confidence import chances, other_weights, sample, what_flips_it, would_it_hold
from core.ui.sections.judge_cards import book
from core.ui.view import current_view
from core.views.confidence import charts, words, worth
from core.views.confidence.worth import Plan
from core.views.golden.judging import propose
from core.views.golden.value import USUAL, Next, before_and_after, next_words, what_next
from core.views.pages import PAGES
from core.views.text import plain
from core.views.workspace.view import View

_JUDGEMENTS = 30.0  # Judgements per query where the golden set does not tell
_ASSUMED_USD = 0.01  # A judgement, while the user names no price


@dataclass(frozen=True)
class Money:
    """What the user would spend."""

    price: Bill  # of one more query
    affordable: int | None  # queries that the money pays for; None = any number, since a query costs nothing
    assumed_usd: float | None  # the price of a judgement where the user named none


def worth_measuring_more(view: View) -> None:
    """Draw the section."""
    rows = worth.leading(view.table, view.decision, chances(view, view.constraints, "quality", view.noise))
    if sample(view) is None or not rows:
        show.head(words.unknown_answer(view.table, view.decision, view.quality))
    else:
        _queries(view, rows)
        _passages(view)
    st.subheader("Stacks to add", anchor=False)
    missing, further = worth.missing_model(), _stacks_to_add(view, view.constraints)
    st.markdown(plain(words.next_stack_words(further)))
    if not further.is_empty():
        st.caption(
            "≈ modelled, not measured. Effects: additive effects of the axes. Search: TPE over quality,"
            " latency and cost of the evaluated stacks; it gives an order, no guess."
        )
        show.table(further, "neighbours", NEIGHBOURS)
    if missing is not None:
        st.caption(plain(missing))


def _queries(view: View, rows: list[int]) -> None:
    """More queries, the stacks and the queries that it is about, and timing again."""
    head = st.container()
    money = _ask_money(view, rows)
    plan = _look_ahead(view, view.constraints, tuple(rows), worth.amounts(money.affordable))
    planned = worth.plan_rows(plan, money.price)
    sentence, details = words.plan_answer(
        planned, money.affordable, view.quality, assumed_usd=money.assumed_usd
    )
    with head:
        show.head(sentence, details)
        show.caveats({
            "how it is simulated": words.ABOUT_WORLDS,
            "what a query costs": words.price_words(money.price, len(rows)),
        })  # fmt: skip
    show.chart(charts.plan_chart(planned, money.affordable), "plan", alt=sentence)
    show.table(planned, "plan", PLAN)

    st.subheader("Which stacks it is about", anchor=False)
    rivals = worth.rival_rows(view.table, plan, view.decision)
    st.markdown(plain(words.rival_words(rivals, len(rows))))
    show.table(rivals, "rivals", RIVALS, more=show.INTERVAL)

    ranked = rivals.join(
        view.table.filter("has_rankings").select("run_id"), on="run_id", how="semi", maintain_order="left"
    )
    if ranked.height > 1:
        st.subheader("Which queries tell most", anchor=False)
        pair = cache.queries(view, *ranked["run_id"][:2])
        tags = worth.tag_rows(pair)
        st.markdown(plain(words.tag_words(tags, pair, *ranked["name"][:2])))
        if not tags.is_empty():
            st.caption("Queries taken by these shares must be weighted back to the shares of today.")
            show.table(tags, "tags", TAGS)
    st.subheader("Timing again", anchor=False)
    st.markdown(plain(words.timing_words(plan, money.price)))


def _passages(view: View) -> None:
    """The passages to judge next, handed over to Golden sets, and what the grades of others did."""
    found = _next(view, view.constraints)
    if found is None:
        return
    st.subheader("Which passages to judge next", anchor=False)
    st.markdown(plain(next_words(found, view.quality)))
    rows = found.worth.rows.head(USUAL)
    if not rows.is_empty():
        show.table(rows, "judge_next", PASSAGES, whole=found.worth.rows)
        if not door.forbidden() and st.button(f"Judge these {rows.height} next", icon=":material/rule:"):
            queue = propose(book(), view.scope.collection_id, rows, view.scope.golden_set_id or "")
            # The section follows from it; what a widget here is bound to cannot be asked for.
            st.switch_page(PAGES["golden"].file, query_params={"queue": queue.queue_id})
    known = view.snapshot.golden_sets(view.scope.collection_id).filter(pl.col("judgements") > 0)
    others = [name for name in known["golden_set_id"] if name != view.scope.golden_set_id]
    if others:
        more = pick_listed("The choice with the grades of", others, "with")
        show.table(_with(view, view.constraints, more), "with_grades", WITH)


@cache.cached("Looking for what to judge…", entries=32)
def _next(view: View, constraints: Constraints) -> Next | None:
    del constraints  # which the decision follows from
    return what_next(view.snapshot, view.table, view.decision, view.scope, view.quality)


@cache.cached(entries=32)
def _with(view: View, constraints: Constraints, more: str) -> pl.DataFrame:
    del constraints
    return before_and_after(
        view.snapshot, view.table, view.decision, view.scope, view.quality, more=more
    )  # fmt: skip


def _ask_money(view: View, rows: list[int]) -> Money:
    """The money and what a judgement costs, both the user's; what a run of the stacks costs is known."""
    usual = _usual_judgements(view)
    places = st.columns(3)
    asked: Any = {"min_value": 0.0, "format": "%g", "bind": "query-params"}
    spend = places[0].number_input("Money to spend ($)", value=12.0, step=1.0, key="spend", **asked)
    judge = places[1].number_input(
        "$ per judgement",
        value=None,
        step=0.01,
        key="judge",
        placeholder=f"{_ASSUMED_USD:g} assumed",
        help="Of one passage for one query, by a person or a model: your own figure.",
        **asked,
    )
    each = places[2].number_input(
        "Judgements per query",
        value=None,
        step=1.0,
        key="perq",
        placeholder=f"{usual:g}",
        help="Empty: as many as the golden set has per query today.",
        **asked,
    )
    costs = view.table["cost"].cast(pl.Float64).fill_null(np.nan).to_numpy()[rows]
    assumed = _ASSUMED_USD if judge is None else None
    usd = _ASSUMED_USD if judge is None else judge
    price = bill(costs, judgements=usual if each is None else each, usd_per_judgement=usd)
    return Money(price, price.affordable(spend), assumed)


@cache.cached()
def _usual_judgements(view: View) -> float:
    if view.scope.golden_set_id is None:
        return _JUDGEMENTS
    judged = view.snapshot.judgements(view.scope.golden_set_id)
    queries = judged["query_id"].n_unique()
    return round(judged.height / queries, 1) if queries else _JUDGEMENTS


@cache.cached("Looking ahead…", entries=64)
def _look_ahead(view: View, constraints: Constraints, rows: tuple[int, ...], more: tuple[int, ...]) -> Plan:
    known = sample(view)
    assert known is not None  # asked for where there are results per query only  # noqa: S101
    return worth.plan(view.table, rows, known, (constraints, "quality"), more)


@cache.cached("Looking for stacks to add…", entries=64)
def _stacks_to_add(view: View, constraints: Constraints) -> pl.DataFrame:
    return worth.next_rows(view.table, view.decision, constraints)


PASSAGES: Mapping[str, Any] = {
    "query_id": show.text_column("query"),
    "passage_id": show.text_column("passage", width=260),
    "stacks": show.number_column("stacks", 0, "Leading stacks that show it."),
    "rank": show.number_column("best rank", 0),
    "likely": show.number_column("expected grade", 1, "Of judged passages at like ranks of these stacks."),
    "chance": show.percent_column("changes the best", "Chance that its grade alone changes the best stack."),
    "saved": show.number_column("queries saved", 2, "Further queries that would tell as much."),
}
WITH: Mapping[str, Any] = {
    "name": show.text_column("stack", width=270),
    "before": show.score_column("before"),
    "after": show.score_column("with them"),
    "change": show.signed_column("change"),
    "is": show.text_column("is"),
}
PLAN: Mapping[str, Any] = {
    "more": show.number_column("further queries", 0),
    "n": show.number_column("n then", 0),
    "usd": show.number_column("$", 2, "Judging and running, as far as known."),
    "flip": show.percent_column("another choice", "Chance that another stack is chosen then than today."),
    "left": show.percent_column(
        "doubt left", "Chance that unlimited judging would still change the choice then."
    ),
}
RIVALS: Mapping[str, Any] = {
    "name": show.text_column("stack", width=270),
    "today": show.text_column("today"),
    "final": show.percent_column("wins in the end", "Share of the simulations, with unlimited judging."),
    **show.NUMBERS,
}
TAGS: Mapping[str, Any] = {
    "tag": show.text_column("queries with", width=220),
    "n": show.number_column("n", 0),
    "difference": show.signed_column("difference", "Mean, first stack minus the second."),
    "spread": show.score_column("spread", "Standard deviation of the differences."),
    "share": show.percent_column("today"),
    "best": show.percent_column("tells most", "Share of further queries with the least error (Neyman)."),
}
NEIGHBOURS: Mapping[str, Any] = {
    "of": show.text_column("stack", width=270),
    "step": show.text_column("with", width=200),
    "said_by": show.text_column("said by", "Additive effects of the axes, a search's model, or both."),
    "place": show.number_column("search's order", 0, "What a search would begin with first."),
    "guess": show.score_column("guessed quality", "Modelled: additive effects of the axes."),
    "spread": show.score_column("±", "Standard error of the guess."),
    "chance": show.percent_column("beats the choice", "Chance of a higher quality than today's choice."),
}


page = PAGES["confidence"]
sections = (would_it_hold, what_flips_it, other_weights, worth_measuring_more)
view = current_view()
dict(zip(page.sections, sections, strict=True))[pick_section(page)](view)
