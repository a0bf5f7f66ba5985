"""What the page on readers says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from core.views import text
from core.views.text import MINUS, NOT_APPLICABLE, known
from core.views.workspace.answers import TRIAL

WITH, WITHOUT, EVERY = "gold in Top(k)", "no gold in Top(k)", "all questions here"
"""Parts of the questions, by what was found."""
X_AXES = {"k": "passages sent, k", "tokens": "tokens sent, mean", "usd_per_1k": "$ of the reader / 1k"}
"""What the score can be drawn against, by column."""
AGAINST = {"passages": "k", "tokens": "tokens", "dollars": "usd_per_1k"}  # The same as one chooses it
SENT = {
    "top_k": "Top(k)",
    "gold_only": "gold passages of Top(k)",
    "no_gold": "Top(k) without gold",
    "gold": "all gold passages",
    "none": "closed book",
}
"""What each mode sends to the reader."""
NO_SCORES = "No answer here has a score on a known scale."
NO_CURVE = "From how many passages these answers come is not known, so there is no curve."
NO_JOINT = "How many answers are correct from how many passages is not known here."
NO_REBEL = "What rerankers do to answers is unknown: no judge scored both similarity and precision here."
TO_REBEL = (
    'Have readers answer with `judge = { model = "…", scorers = ["similarity", "precision"] }` under '
    "`[reader]`, on runs with and without a reranker; the judge should be another model than the reader."
)
REBEL = (
    "Quality is similarity × precision; bars are 95 % intervals over questions, boxes the passes. Lines are "
    "least squares through the methods that know relevance alone, and through none, one and two turns."
)
GENERATORS = (
    "A row is a model with its prompt and temperature; a criterion is the mean of its judges, in points, "
    "and the total their sum. Differences have an interval where single answers are known."
)
TO_SCORE = (
    "Have a reader answer from stored runs (`readers run SPEC`, or [reader] in the form of Run) where "
    "questions have right answers or a judge scores, or import answers with their scores."
)
PARTS = (
    "Questions with a gold passage in Top(k) (grade 4 or 5), and without, at every k; the closed book is "
    "over the same questions (RAGGED §6). A tool that takes gold passages from deeper has some without too."
)
NO_PARTS = "Which passages are gold is not known here: that takes rankings and judgements."


def points(value: float | None, high: float | None = None) -> str:
    """Write points as ``57.2``; an interval as `` [55.0, 59.4]``, empty where it is not known."""
    if value is None or not known(value):
        return ""
    if high is not None:
        return f" [{value:.1f}, {high:.1f}]".replace("-", MINUS)
    return f"{value:.1f}".replace("-", MINUS)


def gain(row: Mapping[str, Any]) -> str:
    """Write what passages add to the closed book."""
    return NOT_APPLICABLE if row["gain"] is None else text.signed(row["gain"], points)


def interval(row: Mapping[str, Any], low: str = "low", high: str = "high") -> str:
    """Write the interval of a figure, where it has one."""
    return "" if row[low] is None or row[high] is None else points(row[low], row[high]).strip()


def answer(depths: pl.DataFrame, scorer: str) -> str:
    """Say which reader answers best, from how many passages of what."""
    best = depths.row(0, named=True)
    others = f" Of {depths.height} curves," if depths.height > 1 else ""
    begins = f"{others} {best['label']}".strip()
    return (
        f"{begins} answers best from k = {best['k_star']} passages of {best['name']}: {scorer} "
        f"{points(best['best'])} points."
    )


def cards(row: Mapping[str, Any], delta: float, epsilon: float) -> list[tuple[str, str, str]]:
    """Return the numbers of the best curve."""
    lacking = f"run k = {row['wanted']} for it" if row["wanted"] else f"unknown: {row['rss_reason']}"
    stable = lacking if row["rss"] is None else f"worst of k* ± {delta:g}, as share of the best"
    paired = "no closed-book answers" if row["gain"] is None else "at k*"
    best = (interval(row), text.sample(row["queries"]))
    gained = (interval(row, "gain_low", "gain_high"), paired)
    return [
        ("Score at k*", points(row["best"]), " ".join(filter(None, best))),
        ("Gain over closed book", gain(row), " ".join(filter(None, gained))),
        ("Stability (RSS)", NOT_APPLICABLE if row["rss"] is None else f"{row['rss']:.3f}", stable),
        ("Passages to send", f"k = {row['send']}", f"within {epsilon:g} points of k* = {row['k_star']}"),
    ]


def caveats(depths: pl.DataFrame, delta: float, epsilon: float, plateau: float) -> dict[str, str]:
    """Say what the figures are read by, what was cut, and what to run."""
    wanted = [
        f"{row['label']} on {row['name']}: k = {row['wanted']}"
        for row in depths.iter_rows(named=True)
        if row["wanted"]
    ]
    cut, asked = (int(depths[name].sum()) for name in ("truncated", "answers"))
    return {
        "how to read": (
            "Ring: k*, the smallest k with the best score. Dotted: closed book, no passages. Bands: 95 % "
            f"bootstrap over questions, Wilson's for published shares. "
            f"RSS: worst score within k* ± {delta:g}, as share of the best. "
            f"RSC: last k that gains {epsilon:g} points × (score there {MINUS} closed book), “last anywhere” "
            f"and “before it stops”. Plateau: the deepest k keeps {100 * plateau:g} % of the best (RAGGED)."
        ),
        "made up": bool(set(depths["reader"]) & {TRIAL})
        * f"The reader {TRIAL} repeats a sentence: its answers count in no decision.",
        "answers with cut passages": bool(cut)
        * f"At k*, {text.count(cut, 'answer')} of {asked:,} saw passages that were cut to fit.",
        "no closed book": bool(depths["closed_book"].null_count())
        * "Without a closed book at k = 0 the sum of RSC starts at the smallest k.",
        "depths to run": bool(wanted)
        * f"RSS needs these in the reader's k (form of Run): {'; '.join(wanted[:8])}.",
    }


def selection(rows: pl.DataFrame) -> str:
    """Say that every k has other questions: their number differs, or every k has a closed book of its own."""
    apart = rows.filter(pl.col("mode") == "none", pl.col("k") > 0).height > 0
    top = rows.filter(pl.col("mode") == "top_k", pl.col("k") > 0)
    counts = top.group_by("run_id", "label").agg(pl.col("queries").n_unique())["queries"]
    if not (apart or (counts > 1).any()):
        return ""
    return "Every k has other questions here, as those with gold found: k* is also an effect of selection."


def judged(judges: Sequence[str]) -> str:
    """Say whose judgements a score is the mean of, where several judged."""
    return f"Scores are means of {len(judges)} judges: {', '.join(judges)}." if len(judges) > 1 else ""


def of_matrix(depths: pl.DataFrame, scorer: str) -> str:
    """Say what the choice of the reader and of the stack is worth."""
    best = depths.row(0, named=True)
    spread = {
        axis: depths.filter(pl.col(other) == best[other])["best"].to_list()
        for axis, other in (("reader", "name"), ("stack", "label"))
    }
    worth = [
        f"the {axis} moves it by {points(max(values) - min(values))}"
        for axis, values in spread.items()
        if len(values) > 1
    ]
    tail = f"; {' and '.join(worth)} points" if worth else ""
    at = f"{points(best['best'])} at k = {best['k_star']}"
    return f"{best['label']} on {best['name']} has the best {scorer}: {at}{tail}."


def of_parts(rows: pl.DataFrame) -> str:
    """Say what gold passages are worth to a reader, and what it does without any.

    Args:
        rows: One reader's rows of `core.views.readers.data.slice_table`. Questions with gold in Top(k) grow
            with k, so a best k is said only where all k are over as many; else both parts are said at the
            largest k that both have.
    """
    halves = ((WITH, "with gold"), (WITHOUT, "without")) if WITH in set(rows["part"]) else ((EVERY, ""),)
    top = rows.filter(mode="top_k")
    kept = {part: top.filter(part=part) for part, _ in halves}
    same = all(own["queries"].n_unique() < 2 for own in kept.values())
    shared = set.intersection(*(set(own["k"]) for own in kept.values()))
    said = []
    for part, words in halves:
        own = kept[part] if same or not shared else kept[part].filter(k=max(shared))
        for best in own.sort("value", "k", descending=[True, False]).head(1).iter_rows(named=True):
            base = rows.filter(pl.col("k").eq_missing(best["k"]), part=part, mode="none")["value"]
            beside = [*(f"{points(value)} closed book" for value in base), text.sample(best["queries"])]
            at = " ".join(filter(None, (points(best["value"]), words, f"at k = {best['k']}")))
            said.append(f"{at} ({', '.join(beside)})")
    return f"{rows['label'][0]} has {'at best ' if same else ''}{', '.join(said)}."
