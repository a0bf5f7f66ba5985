"""What the page on golden sets says."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from core.golden.book import Mode, Queue
from core.golden.by_hand import CORRECTNESS, RUBRIC, SCALE, SCORER
from core.records import GoldenSet
from core.stats.judges import Agreement
from core.views import text
from core.views.decision.words import undecided
from core.views.golden.judges import POLICIES, differing
from core.views.golden.judges import Judged as Judges
from core.views.golden.judging import Progress
from core.views.golden.page import Judged
from core.views.workspace.scope import Quality

NOTHING = ("No judgements yet.", "Generate them with an LLM, judge by hand, or import qrels.")
PART = (
    "The grades are anchored to characters of the documents. Every chunking has the grades that follow "
    "for its passages; they score its stacks."
)
PREVALENCE = "Share of a query's judged passages, median over the queries (CLQ paper: 12.6 % for 4+5)."
FALLBACK = "No passage of grade 5: RA-nWG weighs grade 4 like 1 (metrics: fallback)."
HOLES = (
    "A passage that nobody judged counts as 0. The line reaches from all of them being of grade 1 to "
    "all being of grade 5. Where lines overlap, judging more could change the order."
)
BIAS = (
    "Leave one system out: a stack's score without the judgements of passages that no stack of other "
    "retrievers ranks. A large bias says that a new system, which nobody judged for, would look worse than "
    "it is."
)
TWO_JUDGES = (
    "It takes two golden sets of this collection, one per judge.",
    "Import another one's judgements under another name, or a table with a column “judge”.",
)
JUDGES = "Each judge is a golden set of its own; grades are compared after their mapping to 1-5."
KAPPA = (
    "Cohen's kappa: 1 = always the same grade, 0 = as often as by chance. Quadratic: a grade that is "
    "two off weighs four times as much as one that is one off. Intervals: 95 %, 2,000 resamples of the "
    "queries, fixed seed."
)


def answer(found: Judged, overturned: str | None, table: pl.DataFrame) -> str:
    """Whether judging more could change the decision; takes what `scores.overturned` says."""
    if reason := undecided(table):
        return f"{_judgements(found)}. {reason}"
    if overturned:
        return "Judging more could overturn the choice."
    if table["hole_high"].count():
        return "Judging more could not overturn the choice."
    return f"{_judgements(found)} carry the scores here."


def _judgements(found: Judged) -> str:
    words = "judgement" if found.unit == "judged passage" else "graded span"
    queries = text.count(found.queries.height, "query")
    return f"{text.count(found.mix['total'][-1], words)} of {queries}"


def cards(found: Judged, table: pl.DataFrame, quality: Quality) -> tuple[tuple[str, str, str], ...]:
    """How much was judged, how much of it is good, how much is not judged: label, number, what it is."""
    mix = {row["grade"]: row for row in found.mix.iter_rows(named=True)}
    holes = table.select(pl.median("hole")).item()
    return (
        ("Judged per query", f"{mix['all']['median']:g}", _judgements(found)),
        ("Grade 4 or 5", text.percent(mix["4+5"]["prevalence"]), "of what is judged, median query"),
        (f"Unjudged, {quality.name}", text.percent(holes), f"of the Top-{quality.k}, median stack"),
    )


def caveats(found: Judged) -> dict[str, str]:
    """What weakens the evidence, by the words of its chip."""
    told = (
        ("fallback weights", int(found.queries["fallback"].sum()),
         "query has no passage of grade 5, so that RA-nWG uses its fallback weights.",
         "queries have no passage of grade 5, so that RA-nWG uses its fallback weights."),
        ("copies graded apart", found.apart.height, "time, copies of one passage were graded differently.",
         "times, copies of one passage were graded differently."),
        ("other golden sets", found.disagreements.height, "judgement differs from another golden set.",
         "judgements differ from another golden set."),
    )  # fmt: skip
    return {label: text.count(number, one, many) for label, number, one, many in told if number}


def summary(found: Judged | None, table: pl.DataFrame, quality: Quality) -> tuple[str, str]:
    """How many judgements there are and what weakens them, in two sentences, for files that have no cards."""
    if found is None:
        return NOTHING
    holes = table.select(pl.median("hole")).item()
    unjudged = (
        f"; for {quality.name}, {text.percent(holes)} of the Top-{quality.k} is unjudged in the median stack"
        if holes is not None
        else ""
    )
    sentence = f"{_judgements(found)}, {found.mix['median'][-1]:g} per query in the median{unjudged}."
    return sentence, " ".join(filter(None, caveats(found).values()))


def copies(found: Judged) -> str:
    """How many passages have the text of another one, and whether those were graded alike."""
    apart = (
        "graded differently for one query:" if found.apart.height else "no query has them graded differently."
    )
    return f"{text.count(found.copies.height, 'copy', 'copies')} of passages in the collection; {apart}"


def others(found: Judged) -> str:
    """Whether another golden set of the collection grades a passage differently."""
    if found.disagreements.is_empty():
        return "No other golden set of this collection grades a passage differently."
    return "Grades that another golden set of this collection gives differently:"


def merging(found: Judges) -> str:
    """What merging some golden sets would have to settle, and by which policies."""
    both = text.count(int((found.judges > 1).sum()), "passage")
    alone = int((found.judges == 1).sum())
    told = f"{both} judged by two or more, {differing(found):,} of them differently; {alone:,} by one."
    return f"{told} {'. '.join(f'{name}: {policy}' for name, policy in POLICIES.items())}."


def merged(golden_set_id: str) -> str:
    """That the merged golden set is written."""
    return f"Written in one transaction: golden set {golden_set_id}. Choose it in the settings."


def met(one: str, other: str) -> str:
    """What the table of grades that met says."""
    return f"Rows: grades of {one}. Columns: how {other} grades the same, share of the row, 95 % interval."


def agreement(found: Judges, pairs: pl.DataFrame, overall: Agreement) -> str:
    """The agreement in one sentence."""
    if not overall.n:
        return "These golden sets have no judged passage in common."
    value = "not defined" if np.isnan(overall.value) else text.score(overall.value)
    sentence = (
        f"Krippendorff's alpha (ordinal) of {text.count(len(found.names), 'judge')} is {value}"
        f"{text.interval(overall.low, overall.high)}, n = {overall.n:,} passages of "
        f"{text.count(overall.queries, 'query')} judged by two or more"
    )
    if pairs.height == 1:
        row = pairs.row(0, named=True)
        sentence += f"; the same grade for {text.percent(row['same'])}"
        if row["quadratic"] is not None:
            sentence += f", quadratic kappa {text.score(row['quadratic'])}" + text.interval(
                row["quadratic_low"], row["quadratic_high"]
            )
    return sentence + "."


BY_HAND = (
    "Judge passages yourself, blind to stacks, ranks and other grades.",
    "One golden set per judge; grades of answers are scores.",
)
HEADS: Mapping[Mode, str] = {
    "grade": "How well does the passage answer the question?",
    "order": "Which of the five passages answers best, which next?",
    "settle": "Two judges disagree: which grade is right?",
    "answers": "How correct is the answer?",
}
SHORT = {5: "clear", 4: "substantial", 3: "partial", 2: "tangential", 1: "not relevant"}
"""What each grade means, on its button."""
KEYS = "Keys: 1 to 5 grade, S skip, U undo, N note. Every key is kept at once; close the page when you like."
ANSWERS = (
    f"Drawn at random, blind to stack, reader, k and other scores; written as scorer {SCORER}, scale {SCALE}."
)
WRITE_ANSWERS = "Undo first what is wrong: a score that is written stays."
KEYS_OF_ORDER = "Drag the titles, or: 1 to 5 choose, Up and Down move, Enter next, S skip, U undo."
UNTAKEN = "Passages whose grades could change the choice: who judges them?"
NO_VALUE = "No unjudged passage could change which stack is best."
SHEET = "For people without the dashboard: fill in the grades, then bring it to Add results."
OWN_NAME = "Your grades are kept under it, apart from those of others: one person, one name."


def another(queue: Queue, name: str) -> str:
    """That a queue is another judge's than the visitor."""
    return f"This queue is {queue.judge}'s, and you judged as {name}: grades of two people never mix."


def far(progress: Progress) -> str:
    """How far a queue is, and how long the rest will take."""
    said = f"{min(progress.done + 1, progress.total)} of {progress.total}"
    if progress.left_s is None or progress.each_s is None:
        return said
    minutes = progress.left_s / 60
    left = "under a minute" if minutes < 1 else f"about {text.count(round(minutes), 'minute')}"
    return f"{said} · {left} left · {_pace(progress.each_s)} each"


def _pace(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"


def judged_by_hand(progress: Progress) -> str:
    """What became of a queue that is done."""
    each = "" if progress.each_s is None else f", {_pace(progress.each_s)} each (median)"
    skipped = f", {progress.skipped} skipped" if progress.skipped else ""
    return f"All {progress.total} done{skipped}{each}."


def rubric(mode: Mode) -> list[tuple[int, str, str]]:
    """Every grade from 1, what it is called, and what it means."""
    if mode == "answers":
        parts = ((grade, meaning.partition(": ")) for grade, meaning in sorted(CORRECTNESS.items()))
        return [(grade, word, rest) for grade, (word, _, rest) in parts]
    short = ((grade, SHORT[grade], meaning) for grade, meaning in sorted(RUBRIC.items()))
    return [(grade, word, meaning.removeprefix(word).lstrip(": ")) for grade, word, meaning in short]


def scored(judge: str, scores: int) -> str:
    """That a judge's scores of answers stand in the store."""
    return f"Written: {text.count(scores, 'score')} of {judge} ({SCORER}, scale {SCALE}). See Readers."


def written(golden: GoldenSet) -> str:
    """That a judge's golden set stands in the store."""
    return f"Golden set {golden.golden_set_id} is written. {golden.notes}"
