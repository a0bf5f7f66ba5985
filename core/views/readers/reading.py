"""Curves that sections of Readers ask for: a score, its judge, and the rules for reading it."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import NamedTuple

import polars as pl

from core.analysis import readers as data
from core.analysis.cache import cached
from core.analysis.readers import Answered, Rules
from core.analysis.workspace.answers import TRIAL
from core.analysis.workspace.view import View
from core.views import columns as cols
from core.views.ask import Ask
from core.views.blocks import Answer, Block, Blocks, Table, Way
from core.views.words.made_up import folded, nothing

NO_CURVE = "No answer here says from how many passages it comes."
MADE_UP = "No real reader has run yet; the answers below are samples."
VOICES = "Judges: the mean of all of them; people's grades are never mixed with theirs."
SENT = cols.count("k")
POINT: cols.Columns = ("sent", SENT, cols.points("value", "score", "Points 0 to 100."), "low high queries")
POINTS = cols.Rows(
    "points",
    "label name",
    *POINT,
    cols.signed("gain", help="Points over the closed book, where a question has both.", digits=1),
    cols.count("tokens", "tokens sent", "Mean of the prompt, or of the passages where it is counted here."),
    cols.usd("usd_per_1k", "$ / 1k", "What the reader cost, per 1,000 questions."),
    more=("gain_low gain_high", cols.count("n", "scores", "With all passes."), "truncated counted"),
)


@cached("Reading the answers…", entries=8)
def found_in(view: View) -> Answered:
    """Return the scored answers of a workspace."""
    return data.answered(view.snapshot, view.scope, view.book)


@cached("Scoring the answers…", entries=16)
def curves(view: View, scorer: str, voice: str) -> pl.DataFrame:
    """Return the curves of a scorer, by one of `core.analysis.readers.voices`, with the tokens sent."""
    answers = data.of_voice(found_in(view), scorer, voice)
    return data.with_sent(data.curve_table(answers, scorer), view.snapshot, answers, view.book)


class Curves(NamedTuple):
    """The curves of a scorer, as requested."""

    scorer: str
    voice: str  # whose scores, one of `data.voices`
    rules: Rules
    rows: pl.DataFrame  # from `curves`
    depths: pl.DataFrame  # from `data.depth_table`


def read(view: View, ask: Ask, *, ruled: bool = True) -> Generator[Block, None, Curves | None]:
    """Ask for a score, and the rules for reading its curves; if there is none, yield what is missing."""
    answered = found_in(view)
    if not answered.scorers:
        yield from nothing(view)
        return None
    scorer = ask.listed("Score", answered.scorers, "scorer")
    voices = data.voices(answered, scorer)
    voice = ask.listed("Scored by", voices, "voice", about=VOICES) if len(voices) > 1 else ""
    rows = curves(view, scorer, voice)
    if set(rows["reader"]) == {TRIAL}:
        yield from folded(view, MADE_UP, Table(rows, POINTS))
        return None
    rules = ask_rules(ask) if ruled else Rules()
    depths = data.depth_table(rows, rules)
    if depths.is_empty():
        yield from no_curve(NO_CURVE)
        yield Table(rows, POINTS.named("answers"))
        return None
    return Curves(scorer, voice, rules, rows, depths)


def made_up(readers: Iterable[str | None]) -> dict[str, str]:
    """Return a chip that says so if some answers come from the fake reader."""
    said = f"The reader {TRIAL} repeats a sentence: its answers count in no decision."
    return {"made up": said} if TRIAL in set(readers) else {}


def ask_rules(ask: Ask) -> Rules:
    """Ask for the rules behind k*, RSS, RSC and the shape."""
    delta, gain, flat = Rules()
    with ask.aside("Rules"):
        near = ask.number("Neighbours of k* within ±", "near", float(delta), 1.0, 100.0)
        least = ask.number("Smallest gain (points)", "eps", float(gain), 0.0, 10.0, step=0.1)
        level = ask.number("Plateau: share of the best", "flat", float(flat), 0.5, 1.0, step=0.01)
    return Rules(round(near or delta), gain if least is None else least, level or flat)


def no_curve(why: str) -> Blocks:
    """Yield why there are no curves by k, and a link to the section for answers of any number of passages."""
    yield Answer(why)
    yield Way("readers", "Generators side by side", "generators")
