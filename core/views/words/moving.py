"""Sentences on a move from the stack that runs today, shared by all surfaces."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from core.analysis.between import decided
from core.analysis.deciding import Standing
from core.analysis.moves.replaying import Replay, replays
from core.analysis.moves.switching import Switch, stay_or_move, switch
from core.analysis.workspace.view import View
from core.decide.axes import NEEDED, SWITCHING
from core.decide.axes import STEP_WORDS as STEPS_SAID
from core.decide.switching import largest
from core.number_format import count, interval, ms, signed, usd
from core.views.words.deciding import stands

STEP_WORDS: Mapping[str | None, str] = {**dict[str | None, str](STEPS_SAID.items()), None: "not known"}
"""The most that a move requires, in words."""
RUNS_TODAY = "runs today"
_HEAD = {"stay": "Stay with", "switch": "Switch to", "unknown": "Not known whether to leave"}
NEVER = "never paid back"


def needs_words(rows: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Return rows with the step of a move in words, and the columns of a move; none if no stack runs."""
    if NEEDED not in rows.columns:
        return rows, ()
    step = pl.col(NEEDED).replace_strict(STEP_WORDS, default=STEP_WORDS[None])
    return rows.with_columns(step.alias(NEEDED)), (NEEDED, SWITCHING.column)


def sentences(move: Switch, measure: str) -> tuple[str, str]:
    """Say what to do and why, then by how much the candidate is better."""
    verdict, gain = move.verdict, move.move.gain
    name = str(move.now["name"] if verdict.answer != "switch" or move.to is None else move.to["name"])
    sure = move.to is not None and gain is not None and not math.isnan(gain.better)
    lead = f"{signed(gain.difference)}, " if gain is not None and sure else ""
    to = f"{move.to['name']} " if lead and verdict.answer == "stay" and move.to is not None else ""
    head = f"{_HEAD[verdict.answer]} {name}: {to}{lead}{verdict.why}."
    if move.to is None or gain is None:
        return head, ""
    apart = f"{signed(gain.difference)}{interval(gain.low, gain.high)} {measure}, n = {gain.n}"
    named = "" if verdict.answer == "switch" else f"{move.to['name']}: "
    return head, f"{named}{apart}; {_needs(move)}."


def _needs(move: Switch) -> str:
    step = largest(move.needs)
    return "what it needs is not known" if step is None else f"it needs {STEP_WORDS[step]}"


def line(move: Switch, measure: str) -> str:
    """State the answer in one line: why, quality, chance, time and money."""
    head, apart = sentences(move, measure)
    return " ".join(filter(None, (head, apart, costs(move))))


def costs(move: Switch) -> str:
    """Say how likely the candidate is better, how much faster and cheaper it is, and what the move costs."""
    if move.to is None:
        return ""
    gain = move.move.gain
    chance = None if gain is None or math.isnan(gain.p_better) else f"{100 * gain.p_better:.1f} %"
    said = [
        f"better with a chance of {chance}" if chance else "",
        speed(move),
        monthly(move),
        f"costs {usd(move.move.once_usd)} once" if move.move.once_usd is not None else "cost unknown",
        paid_back(move),
    ]
    words = ", ".join(filter(None, said))
    return f"{words[:1].upper()}{words[1:]}."


def speed(move: Switch) -> str:
    """Say how much faster or slower the candidate is, or return "" if that is unknown."""
    saved = move.move.saves_ms
    return "" if saved is None else f"{ms(abs(saved))} {'faster' if saved >= 0 else 'slower'}"


def monthly(move: Switch) -> str:
    """Say how much less or more the candidate costs a month, or return "" if that is unknown."""
    saved = move.move.saves_usd
    return "" if saved is None else f"{usd(abs(saved))} {'less' if saved >= 0 else 'more'} a month"


def paid_back(move: Switch) -> str:
    """Say when the move has paid for itself; "" if that is unknown, or if it costs nothing."""
    months = move.verdict.payback_months
    if not months:
        return ""
    ends = payback_ends(move)
    return NEVER if math.isinf(months) else f"paid back after {months:.1f} months{ends and f' [{ends}]'}"


def payback_ends(move: Switch) -> str:
    """Return the 95 % interval of the months until it is paid back: ``10.1, never``; "" if unknown."""
    ends = move.payback_ends or ()
    return ", ".join("never" if math.isinf(end) else f"{end:.1f}" for end in ends)


def told(view: View) -> dict[str, Any] | None:
    """Return the answer as plain data with its line; None if no stack is marked as running today."""
    move = stay_or_move(view)
    return None if move is None else as_data(view, move)


def answered(view: View) -> dict[str, Any]:
    """Return the output of `switch --format json`: the answer, and the fusions that could be run next."""
    found = [replay.to_dict() for replay in replays(view)]
    return {**as_data(view, switch(view)), "replayed": found}


def replayed(found: Sequence[Replay]) -> str:
    """Say what the best replayed fusion gains, or return "" if none gains anything."""
    if not found or found[0].gain.difference <= 0:
        return ""
    best, gain = found[0], found[0].gain
    ends = interval(gain.low, gain.high)
    held = f"{signed(gain.difference)}{ends} on held-out queries, n = {gain.n}"
    words = f"Replayed, not run: {best.name}, {held}; {signed(best.in_sample)} in sample."
    return " ".join(filter(None, (words, shallow([best]))))


def shallow(found: Sequence[Replay]) -> str:
    """Say on how many queries a replay had less of a leg than it merges, or return "" if on none."""
    most = max((replay.short for replay in found), default=0)
    return f"On {count(most, 'query')} a leg is stored less deep than it is merged." if most else ""


def to_run(replay: Replay) -> str:
    """Say what to do with the printed specification of a replayed fusion."""
    if replay.unlisted is None:
        return "To run it:"
    return f"To run it, put the folder of {replay.unlisted} in place of FOLDER:"


def as_data(view: View, move: Switch) -> dict[str, Any]:
    """Return an answer as plain data, with its line and what a few grades decide between the two."""
    few = few_grades(view, move)
    said = None if few is None else {**few.to_dict(), "in_words": few_words(view, few)}
    return {**move.to_dict(), "few_grades": said, "in_words": line(move, view.quality.name)}


def few_grades(view: View, move: Switch) -> Standing | None:
    """Return what passages judged one by one decide against a candidate; None if none are judged."""
    return decided(view, str(move.now["run_id"]), None if move.to is None else str(move.to["run_id"]))


def few_words(view: View, found: Standing) -> str:
    """Say what few grades decide, and about which candidate."""
    names = dict(view.table.select("run_id", "name").iter_rows())
    return f"By few grades, {names[found.contest.to]}: {stands(found)}"
