"""Sections of What if on the currently deployed stack: whether to replace it, and the gain of each step."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

from core.analysis.cache import cached
from core.analysis.moves.cost import MoveWork
from core.analysis.moves.replaying import Replay, replays
from core.analysis.moves.switching import Switch, moves, switch
from core.analysis.workspace.telling import incumbent_known
from core.analysis.workspace.view import View
from core.choices import Declared, declared
from core.decide.axes import STEPS
from core.decide.held_out import FOLDS
from core.decide.rules import Constraints
from core.decide.switching import SwitchItem, Terms, largest
from core.number_format import duration, interval, ms, signed, usd
from core.views import columns as cols
from core.views.ask import Ask
from core.views.blocks import Answer, Blocks, Cards, Chart, Fold, Table, Text, Way, section
from core.views.what_if.move_charts import by_month, by_step
from core.views.words.moving import (
    STEP_WORDS,
    few_grades,
    few_words,
    paid_back,
    payback_ends,
    sentences,
    shallow,
)

NOTHING = "Mark it: tick it on Decision, in Settings → Runs today, or by the command incumbent NAME."
ITEMS = cols.Rows(
    "move", cols.text("what"), cols.usd("usd", "$", "Once."), cols.text("basis", "how it comes about")
)
WORK = cols.Rows(
    "work",
    cols.text("name", "takes"),
    cols.text("amount"),
    cols.text("basis", "how it comes about"),
)
NO_GAIN = "What each step gains is not known: quality is known on average alone."
BAND = "Bands: 95 % interval over the queries; what the move costs once is taken as it stands."
FRONTIER = "Line: the best quality for each amount."
MOVES = cols.Rows(
    "moves",
    "name",
    cols.text("step", "needs", "The largest step on the way from the stack that runs."),
    cols.signed("difference", "better by", "Than the stack that runs; paired over queries."),
    "difference_low",
    "difference_high",
    cols.share("p_better", "chance that it is better"),
    cols.usd("once_usd", "$ once", "Empty = not known."),
    cols.text("retires", "first end", "When the first of its models ends, as far as announced."),
)
WITH_REPLAYS = cols.Rows(
    "steps",
    *MOVES.columns,
    cols.signed(
        "in_sample", "replayed, in sample", "A fusion that nobody ran, on the queries that chose it."
    ),
)
RULE = (
    "Switch where the candidate is surely better by the margin, or surely within δ and cheaper or faster. "
    "Surely: at 2.5 % on one side, for all candidates together (Holm). "
    "A move for money or time must pay back within the months."
)
REPLAYED = (
    "Replayed fusions were not run: stored rankings were merged in other ways. "
    f"Each was chosen on {FOLDS - 1} fifths of the queries and measured on the rest. "
    "The gain in sample is no promise."
)
AT_FOLDER = "To run one, the command switch prints lines with room for {model}'s folder."
_TO_RUN = 2  # Replayed fusions with a link that runs them
CANDIDATE = "stack_to_run"
"""Session slot of page Run: the workspace, and the specification (JSON) of a stack to start from."""


def asked_terms(view: View, ask: Ask) -> View:
    """Ask for the terms that a move is judged by; terms that the question states hold if none is answered."""
    answers: dict[str, float | None] = {}
    first, *rest = declared(Terms).items()
    answers[first[0]] = _number(ask, first[1])
    with ask.aside("What a move costs"):
        answers |= {name: _number(ask, field) for name, field in rest}
    given = {name: value for name, value in answers.items() if value is not None}
    terms = Terms.of(f"{name}={value:.10g}" for name, value in given.items())
    return view if terms == Terms() else view.replace(terms=terms)


def _number(ask: Ask, field: Declared) -> float | None:
    choice = field.choice
    unsaid = "those of the collection" if choice.key == "corp" else "unknown"
    step = choice.step or 1.0
    low = float(choice.low or 0)
    return ask.number(choice.label, choice.key, field.usual, low, step=step, unsaid=unsaid)


@section("stay or switch", "Is a move from the stack that runs today worth it?", incumbent_known)
def staying(view: View, ask: Ask) -> Blocks:
    """Yield whether to keep the deployed stack, and what a move to the best alternative costs."""
    if view.incumbent is None or view.table.height < 2:
        yield from unmarked()
        return
    view = asked_terms(view, ask)
    move = switch(view)
    yield Answer(*sentences(move, view.quality.name))
    if (few := few_grades(view, move)) is not None:
        yield Text(few_words(view, few))
    yield Cards(_cards(move, view.quality.name))
    if (figure := by_month(move)) is not None:
        yield Chart(figure, "switching", _crossing(move), BAND if move.payback_ends else "")
    yield Table(ITEMS.frame([_line(item) for item in move.move.items]), ITEMS)
    if move.work:
        yield Table(WORK.frame([_taken(each) for each in move.work]), WORK)
    yield Fold("The rule", (Text(RULE, "caption"),))


def _taken(work: MoveWork) -> dict[str, object]:
    if work.amount is None:
        amount = "not known"
    elif work.unit == "GiB":
        amount = f"{work.amount:.3g} GiB"
    else:
        amount = f"{duration(3600 * work.amount)}{work.unit.removeprefix('hours')}"
    return {"name": work.name, "amount": amount, "basis": work.basis}


def _crossing(move: Switch) -> str:
    """Say when switching has cost less than staying."""
    return f"What staying and switching cost by month: {paid_back(move) or 'nothing to pay back'}."


def unmarked() -> Blocks:
    """Yield a notice that no stack is marked as running today, and how to mark one."""
    yield Answer("No stack is marked as running today.", NOTHING)
    yield Way("decision", "Mark it on Decision")


def _cards(move: Switch, measure: str) -> list[tuple[str, str, str]]:
    gain, months, needs = move.move.gain, move.verdict.payback_months, STEP_WORDS[largest(move.needs)]
    chance = "unknown" if gain is None or math.isnan(gain.p_better) else f"{100 * gain.p_better:.1f} %"
    apart = "" if gain is None else f"{interval(gain.low, gain.high)} n = {gain.n}"
    ends = payback_ends(move)
    paid = "unknown" if months is None else "never" if math.isinf(months) else f"{months:.1f} months"
    label, saved = _apart(move.move.saves_usd, usd, "Saves a month", "Costs more a month")
    speed, slower = _apart(move.move.saves_ms, ms, "faster", "slower")
    return [
        (f"{measure}, difference", "unknown" if gain is None else signed(gain.difference), apart),
        ("Chance to be better", chance, f"it needs {needs}"),
        (label, saved, f"costs once: {usd(move.move.once_usd)}"),
        ("Paid back after", paid, ends and f"[{ends}]"),
        ("Latency", slower, "" if slower == "unknown" else speed),
    ]


def _apart(saves: float | None, written: Callable[[float], str], less: str, more: str) -> tuple[str, str]:
    """Return which way two amounts differ, and by how much."""
    if saves is None:
        return less, "unknown"
    return less if saves >= 0 else more, written(abs(saves))


def _line(item: SwitchItem) -> dict[str, object]:
    return {"what": item.name, "usd": item.usd, "basis": item.basis}


@section("steps", "What does each step away from the running stack buy?", incumbent_known)
def steps(view: View, ask: Ask) -> Blocks:
    """Yield the gain of a setting, a new index and re-embedding, stack by stack."""
    now = view.incumbent
    if now is None or view.table.height < 2:
        yield from unmarked()
        return
    view = asked_terms(view, ask)
    found = fusions(view, now, view.terms, view.constraints)
    rows = moves(view, found)
    yield Answer(_best_steps(rows), _best_names(rows, str(view.running_name)))
    if (figure := by_step(view, rows)) is not None:
        line = next((trace.x for trace in figure.data if trace.name == "frontier"), ())
        yield Chart(figure, "steps", _best_steps(rows), FRONTIER if len(line) > 1 else "")
    table = WITH_REPLAYS if found else MOVES
    yield Table(table.frame(in_words(rows).to_dicts()), table)
    yield from _to_run(view, found)


@cached("Replaying fusions…")
def fusions(view: View, incumbent: str, terms: Terms, constraints: Constraints) -> tuple[Replay, ...]:
    """Return the fusions replayed from stored rankings, against the stack that runs today."""
    return replays(view.replace(incumbent=incumbent, terms=terms, constraints=constraints))


def _to_run(view: View, found: Sequence[Replay]) -> Blocks:
    """Yield links that make the best replayed fusions stacks of the next run."""
    if not found:
        return
    yield Text(" ".join(filter(None, (REPLAYED, shallow(found)))), "caption")
    for model in dict.fromkeys(replay.unlisted for replay in found[:_TO_RUN] if replay.unlisted is not None):
        yield Text(AT_FOLDER.format(model=model), "caption")
    for replay in [one for one in found if one.unlisted is None][:_TO_RUN]:
        stack = json.dumps(dict(replay.spec), sort_keys=True)
        where = {CANDIDATE: (view.scope.collection_id, stack)}
        yield Way("run", f"Run {replay.name}", settings=where)


def in_words(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows of `moves` with the step in words."""
    return rows.with_columns(step=pl.col("step").replace_strict(STEP_WORDS, default=STEP_WORDS[None]))


def _best_steps(rows: pl.DataFrame) -> str:
    """State the gain of the best of each step."""
    said = [f"{STEP_WORDS[row['step']]} {signed(row['difference'])}" for row in _best(rows)]
    if said:
        return f"At best {', '.join(said)}."
    return NO_GAIN if rows["step"].count() else "What a move needs is not known of any stack."


def _best_names(rows: pl.DataFrame, now: str) -> str:
    """Name the best of each step with what it costs once, and the stack that runs."""
    said = [f"{STEP_WORDS[row['step']]}: {row['name']}, {_once(row)}" for row in _best(rows)]
    return f"{now} runs today{'; best ' if said else ''}{'; '.join(said)}."


def _once(row: dict[str, Any]) -> str:
    return "cost not known" if row["once_usd"] is None else f"{usd(row['once_usd'])} once"


def _best(rows: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the best row of each step, the least step first."""
    known = rows.drop_nulls(["step", "difference"]).sort("difference", descending=True)
    found = {row["step"]: row for row in known.unique("step", keep="first", maintain_order=True).to_dicts()}
    return [found[step] for step in STEPS if step in found]
