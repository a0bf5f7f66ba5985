"""What page What if says of scenarios, targets and steps in K; routing has its own."""

from __future__ import annotations

import polars as pl

from core.views import text
from core.views.what_if.scenarios import SAVED
from core.views.workspace.scope import Quality


def answer(rows: pl.DataFrame, quality: Quality) -> tuple[str, str]:
    """What the scenarios say together: how many stacks they choose, and the spread of their numbers.

    Returns:
        The sentence to head the page with, and what no scenario can have.
    """
    chosen = rows.filter(pl.col("name").is_not_null())
    if chosen.is_empty():
        return "No scenario leaves a stack.", ""
    different = chosen["name"].n_unique()
    best = chosen.sort(quality.name, descending=quality.higher_is_better, nulls_last=True).row(0, named=True)
    words = best[f"{quality.name} in words"]
    counted = f"{text.count(chosen.height, 'scenario')}, {text.count(different, 'stack')}"
    sentence = f"{counted}; the best by {quality.name}"
    sentence += f": {best['name']} ({best['scenario']}), {words}." if words else " is not known."
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
    return " ".join([*words, "The last ones are your limits and your own list."])


def target_words(rows: pl.DataFrame, quality: Quality) -> str:
    """What a looser target buys, in words."""
    left = rows.filter(pl.col("chosen").is_not_null())
    if left.is_empty():
        return "No stack meets any of these targets."
    first, last = left.row(0, named=True), left.row(-1, named=True)
    span = f"from {text.ms(first['sla_ms'])} to {text.ms(last['sla_ms'])}"
    sample = f"{quality.name}, {text.sample(first['n'])}"
    if first["chosen"] == last["chosen"]:
        return f"{first['chosen']} is the choice {span} ({sample})."
    changes = int((left["chosen"] != left["chosen"].shift()).sum())
    gain = f"{text.score(first['quality'])} → {text.score(last['quality'])}"
    often = "once" if changes == 1 else f"{changes} times"
    return f"The choice changes {often} {span}: {gain} ({sample})."


def step_words(rows: pl.DataFrame, quality: Quality, table: pl.DataFrame) -> str:
    """How many of the steps pay, in words."""
    if rows.is_empty():
        return "No two stacks here differ in K alone, so there is no step to price."
    sample = f"({quality.name}, {text.sample(table['n'].drop_nulls().max())})"
    paying, steps = rows.filter("pays").height, text.count(rows.height, "step")
    if not paying:
        which = f"None of {steps}" if rows.height > 1 else "No step"
        return f"{which} to the next larger K pays {sample}."
    words = f"{paying} of {steps} to the next larger K pay{'s' if paying == 1 else ''} {sample}"
    stop = rows.filter(~pl.col("pays"))["series"].n_unique()
    if not stop:
        return f"{words}."
    stacks = rows["series"].n_unique()
    which = f"{stop} of {text.count(stacks, 'stack')}" if stacks > 1 else "the stack"
    return f"{words}; {which} stop{'s' if stop == 1 else ''} paying at some K."


PAYS = "A step pays where quality rises; where results per query are known, by more than chance."
