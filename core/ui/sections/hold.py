"""Would it hold: how often the choice is the best when other queries are drawn, and what ties with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import streamlit as st

from core.decide.joint import JointSample
from core.decide.rules import Constraints, Decision, Rule, decide
from core.stats.intervals import SEED
from core.ui import cache, show
from core.ui.view import View
from core.views.confidence import charts, words
from core.views.confidence.hold import BEST, joint_sample, share_rows, shares, tie_rows
from core.views.decision.chart import merged
from core.views.decision.facts import Asked, warnings
from core.views.link import RULES
from core.views.text import plain


def would_it_hold(view: View) -> None:
    """Draw the section."""
    head = st.container()
    rule, decision = ask_rule(view)
    asked = Asked(view.constraints, rule, view.quality, view.latency)
    known, drawn = sample(view), chances(view, view.constraints, rule)
    queries = 0 if known is None else int(known.quality.shape[1])
    sentence = words.held(view.table, decision, asked, drawn)
    with head:
        show.head(sentence)
        if numbers := words.held_cards(view.table, decision, asked, drawn, queries):
            show.cards(*numbers)
        rows = view.table.join(drawn, on="run_id", how="left", maintain_order="left")
        show.caveats({
            "how it is counted": words.about_chances(queries, SEED) if queries else "",
            "what else to know": " ".join(warnings(rows, decision, asked)),
        })  # fmt: skip
    rows = share_rows(view.table, decision, drawn)
    grouped = merged(rows, pl.col("status").is_in(["chosen", "runner-up"]), SAME_CHANCES)
    if (figure := charts.chances(grouped.with_columns(name="stack"))) is not None:
        show.chart(figure, "chances", alt=sentence)
    show.table(grouped, "chances", CHANCES, more=CHANCES_MORE, whole=rows)

    st.subheader("What ties with it", anchor=False)
    tied = tie_rows(view.table, decision, known)
    st.markdown(plain(decision.note or "No other stack ties with the best."))
    if (figure := charts.ties(view.table, tied, decision, asked)) is not None:
        show.chart(figure, "ties", alt=decision.note or "Latency and quality of the stacks.")
    if tied.height > 1:
        best = (pl.col("row") == decision.chosen) | (pl.col("reading") == BEST)
        show.table(merged(tied, best, SAME_GAP), "ties", TIES, more=TIES_MORE, whole=tied)


def ask_rule(view: View) -> tuple[Rule, Decision]:
    """Ask what is best; the rule, and what it selects within the limits."""
    named: str = st.segmented_control(
        "Best is",
        tuple(RULES),
        default="highest quality",
        required=True,
        key="rule",
        bind="query-params",
        help="Among the stacks within the limits: the highest quality; the cheapest, then the best; or the "
        "best within the jitter band of the fastest.",
    )
    rule = RULES[named]
    if rule == "quality":
        return rule, view.decision
    return rule, decide(view.table, view.constraints, rule, paired=view.paired)


@cache.cached("Reading the results per query…", entries=8)
def sample(view: View) -> JointSample | None:
    """Return the results per query of all stacks."""
    return joint_sample(view.snapshot, view.table, view.scope, quality=view.quality, latency=view.latency)


@cache.cached("Drawing the queries again…", entries=64)
def chances(view: View, constraints: Constraints, rule: Rule) -> pl.DataFrame:
    """Return how often each stack does what."""
    return shares(view.table, sample(view), (constraints, rule))


_SAME = ("quality", "quality_low", "quality_high", "n", "latency_ms", "cost")
SAME_CHANCES = (*_SAME, "p_best", "p_feasible", "p_frontier", "p_sla")
SAME_GAP = (*_SAME, "d_quality", "d_low", "d_high")
"""What stacks have in common that are one row."""
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
TIES_MORE: Mapping[str, Any] = {
    **show.INTERVAL,
    "gap_ms": show.signed_column("ms more than the best"),
}
