"""Sections of What if on the currently deployed stack: whether to replace it, and the gain of each step."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import plotly.graph_objects as go
import polars as pl

from core.analysis.switching import Corpus, Switch, moves, switch
from core.analysis.workspace.telling import seldom
from core.analysis.workspace.view import View
from core.decide.switching import STEPS, Item, Terms, largest
from core.number_format import interval, ms, signed, usd
from core.views import columns as cols
from core.views import theme
from core.views.ask import Ask, named, run_of
from core.views.blocks import Answer, Blocks, Cards, Chart, Fold, Table, Text, section

UNMARKED = "not said"
NOTHING = "Say which stack runs today: choose it above, or --set now=NAME."
STEP_WORDS = {"none": "a setting", "rebuild": "a new index", "embed": "embedding again", None: "not known"}
"""The most that a move requires, in words."""
_HEAD = {"stay": "Stay with", "switch": "Switch to", "unknown": "Not known whether to leave"}
ITEMS = cols.Rows(
    "move", cols.text("what"), cols.usd("usd", "$", "Once."), cols.text("basis", "how it comes about")
)
MOVES = cols.Rows(
    "moves",
    "name",
    cols.text("step", "needs", "The largest step on the way from the stack that runs."),
    cols.signed("difference", "better by", "Than the stack that runs; paired over queries."),
    "difference_low",
    "difference_high",
    cols.share("p_better", "chance that it is better"),
    cols.usd("once_usd", "$ once", "Empty = not known."),
)


def _terms(ask: Ask) -> tuple[Terms, Corpus]:
    """Ask for the terms that a move is judged by."""
    queries = ask.number("Queries a month", "qpm", None, 0.0)
    with ask.aside("What a move costs"):
        passages = ask.number("Passages", "corp", None, 1.0, unsaid="those of the collection")
        tokens = ask.number("Tokens per passage", "ctok", None, 1.0)
        weeks = ask.number("Weeks in which both run", "both", 2.0, 0.0)
        days = ask.number("Days of engineering", "days", 0.0, 0.0)
        rate = ask.number("$ per day", "rate", None, 0.0)
        spent = ask.number("$ of evaluation", "once", 0.0, 0.0)
        margin = ask.number("Better by at least", "marg", 0.0, 0.0, step=0.01)
        months = ask.number("Paid back within months", "mths", 24.0, 0.0)
    terms = Terms(
        margin=margin or 0.0,
        months=24.0 if months is None else months,
        queries_per_month=queries,
        weeks_both=weeks or 0.0,
        engineering_days=days,
        usd_per_day=rate,
        evaluation_usd=spent,
    )
    return terms, Corpus(passages=None if passages is None else int(passages), tokens_per_passage=tokens)


def _running(view: View, ask: Ask) -> str | None:
    """Ask which stack is deployed today; return its run_id."""
    name = ask.listed("Runs today", [UNMARKED, *view.table["name"]], "now")
    return None if name == UNMARKED else run_of(view.table, name)


@section("stay or switch", "Is a move from the stack that runs today worth it?", seldom)
def stay_or_switch(view: View, ask: Ask) -> Blocks:
    """Yield whether to keep the deployed stack, and what a move to the best alternative costs."""
    now = _running(view, ask)
    terms, corpus = _terms(ask)
    if now is None:
        yield Answer("No stack is said to run today.", NOTHING)
        return
    move = switch(view, now, terms, corpus)
    yield Answer(*sentences(move, view.quality.name))
    yield Cards(_cards(move, view.quality.name))
    if (figure := _months(move)) is not None:
        said = "What staying and switching have cost by each month, in dollars."
        yield Chart(figure, "switching", said)
    yield Table(ITEMS.frame([_line(item) for item in move.move.items]), ITEMS)
    yield Fold("The rule", (Text(RULE, "caption"),))


RULE = (
    "Switch where the candidate is surely better by the margin, or surely within δ and cheaper or faster. "
    "Surely: at 2.5 % on one side, for all candidates together (Holm). "
    "A move for money or time must pay back within the months."
)


def sentences(move: Switch, measure: str) -> tuple[str, str]:
    """Say what to do and why, then by how much the candidate is better."""
    verdict, gain = move.verdict, move.move.gain
    name = str(move.now["name"] if verdict.answer != "switch" or move.to is None else move.to["name"])
    head = f"{_HEAD[verdict.answer]} {name}: {verdict.why}."
    if move.to is None or gain is None:
        return head, ""
    apart = f"{signed(gain.difference)} {interval(gain.low, gain.high)} {measure}, n = {gain.n}"
    return head, f"{move.to['name']}: {apart}; it needs {STEP_WORDS[largest(move.needs)]}."


def _cards(move: Switch, measure: str) -> list[tuple[str, str, str]]:
    gain, months, needs = move.move.gain, move.verdict.payback_months, STEP_WORDS[largest(move.needs)]
    chance = "unknown" if gain is None or math.isnan(gain.p_better) else f"{100 * gain.p_better:.1f} %"
    ends = "" if gain is None else f"{interval(gain.low, gain.high)} n = {gain.n}"
    paid = "unknown" if months is None else "never" if math.isinf(months) else f"{months:.1f} months"
    label, saved = _apart(move.move.saves_usd, usd, "Saves a month", "Costs more a month")
    speed, slower = _apart(move.move.saves_ms, ms, "faster", "slower")
    return [
        (f"{measure}, difference", "unknown" if gain is None else signed(gain.difference), ends),
        ("Chance to be better", chance, f"it needs {needs}"),
        (label, saved, f"costs once: {usd(move.move.once_usd)}"),
        ("Paid back after", paid, "speed unknown" if slower == "unknown" else f"{slower} {speed}"),
    ]


def _apart(saves: float | None, written: Callable[[float], str], less: str, more: str) -> tuple[str, str]:
    """Return which way two amounts differ, and by how much."""
    if saves is None:
        return less, "unknown"
    return less if saves >= 0 else more, written(abs(saves))


def _line(item: Item) -> dict[str, object]:
    return {"what": item.name, "usd": item.usd, "basis": item.basis}


def _months(move: Switch) -> go.Figure | None:
    """Draw the cumulative cost of either way by month; None if an amount is unknown."""
    once, saved, queries = move.move.once_usd, move.move.saves_usd, move.terms.queries_per_month
    if once is None or saved is None or queries is None:
        return None
    stay = move.now["cost"] * queries / 1000
    months = np.arange(0, max(2, math.ceil(move.terms.months)) + 1)
    ways = {"stay": stay * months, "switch": once + (stay - saved) * months}
    colours = theme.colours_for(ways)
    traces: Sequence[go.Scatter] = [
        go.Scatter(x=months, y=spent, mode="lines", name=name, line={"color": colours[name]})
        for name, spent in ways.items()
    ]
    return theme.figure(traces, x="months", y="$ since the decision", height=300)


@section("steps", "What does each step away from the running stack buy?", seldom)
def steps(view: View, ask: Ask) -> Blocks:
    """Yield the gain of a setting, a new index and re-embedding, stack by stack."""
    now = _running(view, ask)
    terms, corpus = _terms(ask)
    if now is None:
        yield Answer("No stack is said to run today.", NOTHING)
        return
    rows = moves(view, now, terms, corpus)
    shown = rows.with_columns(step=pl.col("step").replace_strict(STEP_WORDS, default=STEP_WORDS[None]))
    yield Answer(_best_steps(rows), f"Runs today: {named(view.table, now)}.")
    yield Table(MOVES.frame(shown.to_dicts()), MOVES)


def _best_steps(rows: pl.DataFrame) -> str:
    """State the gain of the best of each step."""
    known = rows.drop_nulls(["step", "difference"]).sort("difference", descending=True)
    found = dict(known.unique("step", keep="first", maintain_order=True).select("step", "difference").rows())
    best = [f"{STEP_WORDS[step]} {signed(found[step])}" for step in STEPS if step in found]
    return f"At best {', '.join(best)}." if best else "What a move needs is not known of any stack."
