"""Passages to judge next: the unjudged ones of stacks that may be chosen, and the effect of judging them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from core.analysis.cache import cached
from core.analysis.judging import TARGET, USUAL, Next
from core.analysis.workspace.clusters import made_up
from core.analysis.workspace.scope import Quality, Scope
from core.analysis.workspace.view import View
from core.answers import BY_PEOPLE
from core.golden.adding import ancestry
from core.golden.by_hand import QUESTIONS
from core.records import Origin
from core.store import Snapshot
from core.views import text

_OF_JUDGE = 10  # Maximum words of a judge's description, for which a sentence has room
UNCHECKED = "checked by nobody"
CHECK = f"Check the grades: judge {QUESTIONS} questions by hand"
_BY_HAND = (BY_PEOPLE, "sheet", "settling")  # Makers of golden sets that hold people's grades
IF_THEY_HOLD = "if the grades hold"
"""The condition of the heading where only models graded."""
UNPROVEN = "grades unchecked"
"""The same of a heading that ships none."""
ASK_REAL = "made-up questions: check with real ones"
"""The objection where all questions were made from the places that answer them."""
KNOWN_PLACES = "known places of made-up questions"
"""What such a golden set holds: nobody graded it."""


def next_words(unjudged: Next, quality: Quality, target: float = TARGET) -> str:
    """Say whether more judging is worth it, and what the first passages would bring."""
    rows, filled = unjudged.worth.rows, unjudged.filled
    if unjudged.stack is None:
        said = "No stack ships."
    elif unjudged.pgs is None:
        said = f"How sure {unjudged.stack} is, is unknown."
    else:
        said = f"{unjudged.stack} is {unjudged.good} in {text.percent(unjudged.pgs)} of resamples."
    if rows.is_empty():
        return f"{said} Everything in the Top-{quality.k} of the leading stacks is judged."
    enough = filled is not None and filled >= target
    if filled is not None:
        side = "past" if enough else "below"
        said += (
            f" Were the unjudged passages graded like the judged ones at their ranks, it would be in "
            f"{text.percent(filled)}, {side} the target of {text.percent(target)}."
        )
    if enough:
        return f"{said} No more judging is needed."
    first = rows.head(USUAL).height
    return f"{said} Of {rows.height:,} unjudged passages these {first} could change that first."


def graded(golden: Mapping[str, Any], known: str = "") -> str:
    """Describe the origin of a golden set: ``150 queries; graded by Ann.``.

    Args:
        known: What the grades are that nobody gave; "" = none.
    """
    asked, words = (
        text.count(golden["queries"], "query"),
        (golden["judge"] or "").partition(";")[0].rstrip(".").split(),
    )
    if not words:
        return f"{asked}; {known or 'who graded is not on record'}."
    judge = text.shorten(" ".join(words[:_OF_JUDGE]) + "…" * (len(words) > _OF_JUDGE), 90)
    return f"{asked}; {f'{known}, some ' if known else ''}graded by {judge}."


def check_first(view: View) -> str:
    """Return `CHECK` if the quality rests on grades of models alone, else ""."""
    measure, scope = view.quality.measure, view.scope
    if measure is None or scope.golden_set_id is None or measure.info.needs & {"answers"}:
        return ""
    return _check(view.snapshot, scope.collection_id, scope.golden_set_id)


def most_passages(k: int) -> int:
    """Return the most passages of `QUESTIONS` questions that two stacks can have in their Top-K."""
    return 2 * QUESTIONS * k


@cached(entries=64)  # reading the manifests would be a third of a move of a limit
def _check(snapshot: Snapshot, collection_id: str, golden_set_id: str) -> str:
    return CHECK if unchecked(snapshot.golden_sets(collection_id), golden_set_id) else ""


def unchecked(sets: pl.DataFrame, golden_set_id: str) -> bool:
    """Return whether models made a golden set's grades and no person judged about as many as `QUESTIONS`.

    Args:
        sets: The golden sets of its collection.
    """
    made = pl.col("manifest").str.json_path_match("$.made_by").is_in(_BY_HAND)
    if not sets.filter(made, pl.col("queries") >= QUESTIONS).is_empty():
        return False
    return golden_set_id in by_models(sets)


def by_models(sets: pl.DataFrame) -> Sequence[str]:
    """Return the ids of the golden sets that hold grades of language models alone."""
    models = pl.col("manifest").str.json_path_match("$.policy").is_not_null()
    said = pl.col("judge").fill_null("").str.contains(UNCHECKED, literal=True)
    return sets.filter(models | said)["golden_set_id"].to_list()


@cached(entries=64)
def provenance(snapshot: Snapshot, scope: Scope) -> str:
    """Describe what is searched, and the origin of a workspace's qualities; "" if nothing is on record."""
    sets, held = snapshot.golden_sets(scope.collection_id), snapshot.collections()
    row = held.row(by_predicate=pl.col("collection_id") == scope.collection_id, named=True)
    runs = snapshot.runs(scope.collection_id)
    if scope.golden_set_id is None:
        return published(row) if (runs["origin"] == Origin.PUBLISHED.value).all() else ""
    golden = sets.row(by_predicate=pl.col("golden_set_id") == scope.golden_set_id, named=True)
    made = made_up(snapshot, scope)
    if made:  # a merged set of an earlier version names the set of known places among its judges
        first = ancestry(sets, scope.golden_set_id)[0]
        judges = (golden["judge"] or "").split(", ")
        golden["judge"] = ", ".join(judge for judge in judges if judge != first)
    said = graded(golden, KNOWN_PLACES if made else "")
    cut = runs["chunking"]
    return searched(row, "document" if cut.len() and not cut.null_count() else "passage") + said


def published(collection: Mapping[str, Any]) -> str:
    """Describe of what texts figures were published (the first sentence of its notes), and where."""
    about = collection["notes"].partition(". ")[0].rstrip(".")
    return " ".join(f"{part}." for part in (about, f"Published figures: {collection['source']}") if part)


def searched(collection: Mapping[str, Any], holds: str = "passage") -> str:
    """Describe what is searched, before its questions: ``Python documentation, 3,423 passages; ``.

    Args:
        holds: What its texts are: documents where stacks cut them into passages.
    """
    passages = text.count(collection["passages"], holds) if collection["passages"] else ""
    return "".join(f"{part}; " for part in (text.shorten(collection["name"] or "", 60), passages) if part)
