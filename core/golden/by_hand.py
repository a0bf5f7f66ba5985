"""Judging by hand: which passages a person gets, in which order, and what comes of it.

Passages are drawn by a seed, blind to what is known about them. A book of judgements yields golden sets (one
per judge and collection, and one where two judges' grades were settled) and people's scores of answers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Literal

import numpy as np
import polars as pl

from core.answers import BY_PEOPLE, KEY
from core.errors import InputError
from core.golden.book import PAIR, Book, Item, Queue
from core.golden.facts import supported, together
from core.importers.runs import slug
from core.records import Batch, GoldenSet, JsonMap
from core.tables import frame, schema

RUBRIC = {
    5: "clear answer with the key elements",
    4: "substantial: most of the answer",
    3: "partial: some of the answer",
    2: "tangential: on the topic, no answer",
    1: "not relevant",
}
"""Meaning of each grade (CLQ paper, §3.4)."""
_DONE = schema("query_id passage_id grade:int8 at seconds:float note")
_SPELLED: JsonMap = {str(grade): meaning for grade, meaning in RUBRIC.items()}


QUESTIONS = 30
"""Questions that people judge whole, to check or to correct a judge."""
Sampling = Literal["two leading", "at random", "whole questions", "stratified", "holes of stacks", "by value"]
SAMPLINGS: Mapping[Sampling, str] = {
    "two leading": f"To check the grades: {QUESTIONS} questions, the Top-K of the two leading stacks",
    "at random": "At random: every judged passage has the same chance, fair for agreement",
    "whole questions": "Whole questions at random: all that stacks rank in their Top-K, to correct scores",
    "stratified": "Stratified: equal shares per grade, unjudged, disputed",
    "holes of stacks": "Unjudged first: what most stacks rank in their Top-K",
    "by value": "By value: passages whose grade could change the choice, the likeliest first",
}
_WHOLE: Mapping[str, int | None] = {"two leading": QUESTIONS, "whole questions": None}
"""Samplings of whole questions, with the most questions."""
BETWEEN = "between two stacks"
"""Sampling of a queue whose grades decide between two stacks: drawn by `core.analysis.deciding`."""
OF_FIVE = 5  # Passages that are ordered at once
SCORER, SCALE = "correctness", "1-5"
"""Name and scale of a person's grades of answers among the scores."""
CORRECTNESS = {
    5: "correct: all that is asked, nothing wrong",
    4: "mostly correct: little is missing or wrong",
    3: "partly correct: about half of it",
    2: "mostly wrong: little of it is right",
    1: "wrong: or no answer",
}
"""Meaning of each grade of an answer."""


def draw(pool: pl.DataFrame, sampling: Sampling, n: int, seed: str) -> list[tuple[str, str]]:
    """Draw passages and arrange them for judging: query by query, with queries and passages shuffled.

    Args:
        pool: query_id, passage_id, grade (null = unjudged), stacks (how many rank it in their Top-K),
            disputed (whether golden sets grade it differently); by value: value (the higher the sooner).

    Raises:
        InputError: If there is nothing to draw from.
    """
    pool = pool.sort(PAIR).with_columns(chance=pl.Series(_chances(seed, pool.height)))
    if sampling == "at random":
        drawn = pool.filter(pl.col("grade").is_not_null() | pl.col("grade").is_null().all()).sort("chance")
    elif sampling in _WHOLE:
        drawn = _whole(pool.filter(pl.col("stacks") > 0), n, _WHOLE[sampling])
    elif sampling == "stratified":
        stratum = pl.when("disputed").then(6).otherwise(pl.col("grade").fill_null(0))
        turn = pl.col("chance").rank("ordinal").over(stratum)
        drawn = pool.sort(turn, "chance")
    elif sampling == "holes of stacks":
        drawn = pool.filter(pl.col("grade").is_null()).sort("stacks", "chance", descending=[True, False])
    else:
        drawn = pool.sort("value", "chance", descending=[True, False])
    if drawn.is_empty():
        raise InputError(
            "There is nothing to draw from.", do="Choose another golden set or another sampling."
        )
    return arranged(drawn if sampling in _WHOLE else drawn.head(n), seed)


def _whole(pool: pl.DataFrame, n: int, questions: int | None) -> pl.DataFrame:
    """Return all passages of questions drawn at random: as many questions as fit in n, at least one.

    Args:
        questions: The most questions; None = any number.
    """
    of = pool.group_by("query_id").agg(pl.len(), pl.col("chance").min()).sort("chance").slice(0, questions)
    kept = of.filter((pl.col("len").cum_sum() <= n) | (pl.int_range(pl.len()) == 0))
    return pool.join(kept.select("query_id", first="chance"), on="query_id").sort("first", "chance")


def arranged(rows: pl.DataFrame, seed: str) -> list[tuple[str, str]]:
    """Arrange passages query by query, so that each question is read once; shuffle queries and passages."""
    rows = rows.select(PAIR).sort(PAIR)
    of_query = pl.col("chance").min().over("query_id")
    shuffled = rows.with_columns(chance=pl.Series(_chances(f"{seed} order", rows.height)))
    return list(shuffled.sort(of_query, "query_id", "chance").select(PAIR).iter_rows())


def fives(pool: pl.DataFrame, batches: int, seed: str) -> list[tuple[str, str]]:
    """Draw batches of five passages of one query, each query equally often.

    Args:
        pool: query_id, passage_id.

    Raises:
        InputError: If no query has five passages.
    """
    pool = pool.select(PAIR).unique().sort(PAIR)
    pool = pool.with_columns(chance=pl.Series(_chances(seed, pool.height)))
    batch = (pl.col("chance").rank("ordinal").over("query_id") - 1) // OF_FIVE
    whole = pool.with_columns(batch=batch).filter(pl.len().over("query_id", "batch") == OF_FIVE)
    if whole.is_empty():
        raise InputError("No query has five passages to put in order.", do="Choose another golden set.")
    first = pl.col("chance").min().over("query_id", "batch")
    return list(whole.sort("batch", first, "chance").head(batches * OF_FIVE).select(PAIR).iter_rows())


def _chances(seed: str, n: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.random.default_rng(list(seed.encode())).random(n)


def set_of(collection_id: str, judge: str) -> str:
    """Return the id of a judge's golden set for a collection."""
    return slug(f"{collection_id}-{judge}")


def refuse_taken(known: pl.DataFrame, golden_set_id: str, judge: str) -> None:
    """Refuse the id of somebody else's golden set.

    Args:
        known: golden_set_id, judge, manifest (or its text) of the golden sets in the store.

    Raises:
        InputError: If it belongs to someone else.
    """
    held = known.filter(golden_set_id=golden_set_id)
    if held.height and held["judge"][0] != judge:
        raise InputError(
            f"The golden set {golden_set_id!r} is another one's: judged by {held['judge'][0] or 'unknown'}.",
            do="Judge under another name.",
        )


def by_people(book: Book, judge: str, collection_id: str, said: pl.DataFrame) -> GoldenSet:
    """Describe a judge's golden set for a collection.

    Args:
        said: Their grades, from `Book.said`; for a collection in chunks, those of all its chunkings.

    Raises:
        InputError: If nothing is graded yet.
    """
    if said.is_empty():
        raise InputError("Nothing is graded yet.", do="Grade a passage first.")
    name, queues = set_of(collection_id, judge), set(said["queue_id"])
    counts = said.group_by("grade").len().sort("grade", descending=True).rows()
    counted = ", ".join(f"{n} of grade {grade}" for grade, n in counts)
    return GoldenSet(
        golden_set_id=name,
        collection_id=collection_id,
        name=name,
        judge=judge,
        notes=f"Judged by hand, blind to stacks, ranks and other grades: {counted}.",
        manifest={
            "made_by": BY_PEOPLE,
            "rubric": _SPELLED,
            "queues": [
                {"queue": queue.queue_id, "base": queue.base, "sampling": queue.sampling, "seed": queue.seed}
                for queue in book.queues()
                if queue.queue_id in queues
            ],
        },
    )


def golden_set_of_judge(
    book: Book, queue: Queue, before: pl.DataFrame, gradings: pl.DataFrame, nuggets: pl.DataFrame
) -> Batch:
    """Make a judge's golden set: all their grades in the collection, from all queues.

    Args:
        before: Judgements of the judge's golden set in the store; those missing from the book stay.
        gradings: The acts of judging behind those judgements.
        nuggets: Facts of the same golden set.

    Raises:
        InputError: If nothing is graded yet.
    """
    said = book.said(queue.collection_id, queue.judge)
    golden = by_people(book, queue.judge, queue.collection_id, said)
    name = golden.golden_set_id
    fresh = said.with_columns(golden_set_id=pl.lit(name), raw="grade", judge=pl.lit(queue.judge))
    kept = {"judgements": before, "gradings": gradings}
    new = {"judgements": fresh, "gradings": fresh.drop("queue_id", "raw")}
    frames = {
        table: pl.concat([rows.join(said, on=PAIR, how="anti"), frame(table, new[table].to_dict())]).sort(
            PAIR
        )
        for table, rows in kept.items()
    }
    found = supported(said, book.facts(queue.collection_id, queue.judge), queue.judge)
    facts = together([nuggets.join(said, on=PAIR, how="anti"), found], name)
    if facts.height:
        frames["nuggets"] = facts
    return Batch(golden_sets=(golden,), frames=frames)


def settled(
    queue: Queue, items: Sequence[Item], first: pl.DataFrame, second: pl.DataFrame, into: str
) -> Batch:
    """Make the golden set of two judges whose disagreements were settled by a third look.

    A grade that both agree on, or only one gave, is taken as is; an unsettled disagreement is left out.

    Args:
        queue: A queue of mode "settle".
        items: Its cards with the final grades.
        first: Judgements of `queue.base`.
        second: Judgements of `queue.other`.

    Raises:
        InputError: If the name is empty.
    """
    if not into.strip():
        raise InputError("The new golden set needs a name.", do="Give it one.")
    name, own = slug(into.strip()), pl.lit(queue.judge)
    final = pl.DataFrame([asdict(item) for item in items if item.grade is not None], schema=_DONE)
    both = first.join(second, on=PAIR, how="full", coalesce=True, suffix="_2")
    agreed = both.filter(pl.col("grade").eq(pl.col("grade_2")).fill_null(value=True))
    whose = (
        pl.when(pl.col("grade_2").is_null()).then(pl.lit(queue.base))
        .when(pl.col("grade").is_null()).then(pl.lit(queue.other))
        .otherwise(pl.lit(f"{queue.base}, {queue.other}"))
    )  # fmt: skip
    rows = agreed.select(*PAIR, grade=pl.coalesce("grade", "grade_2"), judge=whose)
    graded = pl.concat([rows, final.select(*PAIR, "grade", judge=own)]).with_columns(raw="grade").sort(PAIR)
    left = both.height - agreed.height - final.height
    golden = GoldenSet(
        golden_set_id=name,
        collection_id=queue.collection_id,
        name=into.strip(),
        judge=f"{queue.base}, {queue.other}; settled by {queue.judge}",
        notes=f"{agreed.height} passages as {queue.base} and {queue.other} grade them, {final.height} on "
        f"which they disagree settled by {queue.judge}, {left} not settled and left out.",
        parents=(queue.base, queue.other),
        manifest={"made_by": "settling", "queue": queue.queue_id, "rubric": _SPELLED, "left_out": left},
    )
    tables = {"judgements": graded, "gradings": final.with_columns(judge=own)}
    frames = {
        table: frame(table, rows.with_columns(golden_set_id=pl.lit(name)).to_dict())
        for table, rows in tables.items()
        if rows.height
    }
    return Batch(golden_sets=(golden,), frames=frames)


def named(answers: pl.DataFrame) -> pl.DataFrame:
    """Return answers with the ids that queues give them.

    Args:
        answers: Columns of `KEY`.

    Returns:
        The rows with passage_id: the key without the query, as JSON.
    """
    rest = pl.struct(name for name in KEY if name != "query_id")
    return answers.with_columns(rest.struct.json_encode().alias("passage_id"))


def keys(items: Sequence[Item]) -> pl.DataFrame:
    """Return the answers in a queue.

    Returns:
        `KEY` and value, the grade (null = none), in the order of the items.
    """
    rows = [{**json.loads(item.passage_id), "query_id": item.query_id, "value": item.grade} for item in items]
    return frame("answer_scores", rows).select(*KEY, "value")


def scores(queue: Queue, items: Sequence[Item], before: pl.DataFrame) -> pl.DataFrame:
    """Make the scores of a queue's graded answers, except those that this judge has already scored.

    Args:
        queue: A queue of mode "answers".
        before: Scores of the runs in the store.

    Returns:
        Rows of "answer_scores".
    """
    own = before.filter(scorer=SCORER, judge=queue.judge)
    graded = keys(items).drop_nulls("value").join(own, on=KEY, how="anti", nulls_equal=True)
    about = {"scorer": SCORER, "judge": queue.judge, "scale": SCALE, "source": BY_PEOPLE}
    said = graded.with_columns(pl.lit(value).alias(name) for name, value in about.items())
    return frame("answer_scores", said.to_dict())
