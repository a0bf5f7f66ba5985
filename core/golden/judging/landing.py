"""From a book of judgements to golden sets: one per judge and collection, and one of two judges settled.

Answers of readers that a person grades: what names one in a queue, and the scores that come of them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

import polars as pl

from core.answers import KEY
from core.errors import InputError
from core.golden.judging.book import Book, Item, Queue
from core.importers.runs import slug
from core.records import Batch, GoldenSet, JsonMap
from core.tables import frame

BY_PEOPLE = "judging"  # What the manifest of a golden set says was used to make it
RUBRIC = {
    5: "clear answer with the key elements",
    4: "substantial: most of the answer",
    3: "partial: some of the answer",
    2: "tangential: on the topic, no answer",
    1: "not relevant",
}
"""What each grade means (CLQ paper, §3.4)."""
_PAIR = ["query_id", "passage_id"]
_SPELLED: JsonMap = {str(grade): meaning for grade, meaning in RUBRIC.items()}


def set_of(collection_id: str, judge: str) -> str:
    """The id of a judge's golden set of a collection."""
    return slug(f"{collection_id}-{judge}")


def refuse_taken(known: pl.DataFrame, golden_set_id: str, judge: str) -> None:
    """Refuse an id that somebody else's golden set has.

    Args:
        known: golden_set_id, judge, manifest (or its text) of what the store has.

    Raises:
        InputError: If it is another one's.
    """
    held = known.filter(golden_set_id=golden_set_id)
    if held.height and held["judge"][0] != judge:
        raise InputError(
            f"The golden set {golden_set_id!r} is another one's: judged by {held['judge'][0] or 'unknown'}.",
            do="Judge under another name.",
        )


def landed(book: Book, queue: Queue, before: pl.DataFrame, gradings: pl.DataFrame) -> Batch:
    """Make a judge's golden set: all that they graded of the collection, in whichever queue.

    Args:
        before: Judgements of the judge's golden set as the store has it; what the book lacks stays.
        gradings: The acts behind those.

    Raises:
        InputError: If nothing is graded yet.
    """
    said = book.said(queue.collection_id, queue.judge)
    if said.is_empty():
        raise InputError("Nothing is graded yet.", do="Grade a passage first.")
    name = set_of(queue.collection_id, queue.judge)
    fresh = said.with_columns(golden_set_id=pl.lit(name), raw="grade", judge=pl.lit(queue.judge))
    queues = [each for each in book.queues(queue.collection_id) if each.judge == queue.judge]
    used = [each for each in queues if each.queue_id in set(said["queue_id"])]
    golden = GoldenSet(
        golden_set_id=name,
        collection_id=queue.collection_id,
        name=name,
        judge=queue.judge,
        notes=f"Judged by hand, blind to stacks, ranks and other grades: {_counted(said)}.",
        manifest={
            "made_by": BY_PEOPLE,
            "rubric": _SPELLED,
            "queues": [
                {"queue": each.queue_id, "base": each.base, "sampling": each.sampling, "seed": each.seed}
                for each in used
            ],
        },
    )
    kept = before.join(said, on=_PAIR, how="anti")
    acts = gradings.join(said, on=_PAIR, how="anti")
    made = {
        "judgements": pl.concat([kept, frame("judgements", fresh.to_dict())]),
        "gradings": pl.concat([acts, frame("gradings", fresh.drop("queue_id", "raw").to_dict())]),
    }
    return Batch(golden_sets=(golden,), frames={table: rows.sort(_PAIR) for table, rows in made.items()})


def _counted(said: pl.DataFrame) -> str:
    times = Counter(said["grade"].to_list())
    return ", ".join(f"{times[grade]} of grade {grade}" for grade in range(5, 0, -1) if times[grade])


def settled(
    queue: Queue, items: Sequence[Item], first: pl.DataFrame, second: pl.DataFrame, into: str
) -> Batch:
    """Make the golden set of two judges whose disagreements a third look has settled.

    What both graded alike, or one alone, is taken as it is; a disagreement that is not settled is left out.

    Args:
        queue: Of mode "settle".
        items: Its cards with the final grades.
        first: Judgements of `queue.base`.
        second: Judgements of `queue.other`.

    Raises:
        InputError: If the name is empty.
    """
    if not into.strip():
        raise InputError("The new golden set needs a name.", do="Give it one.")
    name = slug(into.strip())
    final = {(each.query_id, each.passage_id): each.grade for each in items if each.grade is not None}
    both = first.join(second, on=_PAIR, how="full", coalesce=True, suffix="_2")
    agreed = both.filter(pl.col("grade").eq(pl.col("grade_2")).fill_null(value=True))
    whose = (
        pl.when(pl.col("grade_2").is_null()).then(pl.lit(queue.base))
        .when(pl.col("grade").is_null()).then(pl.lit(queue.other))
        .otherwise(pl.lit(f"{queue.base}, {queue.other}"))
    )  # fmt: skip
    rows = agreed.select(*_PAIR, grade=pl.coalesce("grade", "grade_2"), judge=whose)
    by_hand = pl.DataFrame(
        [(*pair, grade, queue.judge) for pair, grade in final.items()], schema=rows.schema, orient="row"
    )
    made = pl.concat([rows, by_hand]).with_columns(golden_set_id=pl.lit(name), raw="grade").sort(_PAIR)
    acts = pl.DataFrame(
        [
            (name, each.query_id, each.passage_id, queue.judge, each.grade, each.at, each.seconds, each.note)
            for each in items
            if each.grade is not None
        ],
        schema=["golden_set_id", *_PAIR, "judge", "grade", "at", "seconds", "note"],
        orient="row",
    )
    left = both.height - agreed.height - len(final)
    golden = GoldenSet(
        golden_set_id=name,
        collection_id=queue.collection_id,
        name=into.strip(),
        judge=f"{queue.base}, {queue.other}; settled by {queue.judge}",
        notes=f"{agreed.height} passages as {queue.base} and {queue.other} grade them, {len(final)} on which "
        f"they disagree settled by {queue.judge}, {left} not settled and left out.",
        parents=(queue.base, queue.other),
        manifest={"made_by": "settling", "queue": queue.queue_id, "rubric": _SPELLED, "left_out": left},
    )
    frames = {
        "judgements": frame("judgements", made.to_dict()),
        "gradings": frame("gradings", acts.to_dict()),
    }
    return Batch(golden_sets=(golden,), frames={table: rows for table, rows in frames.items() if rows.height})


SCORER, SCALE = "correctness", "1-5"
"""What a person's grades of answers are called among the scores, and what they reach from and to."""
CORRECTNESS = {
    5: "correct: all that is asked, nothing wrong",
    4: "mostly correct: little is missing or wrong",
    3: "partly correct: about half of it",
    2: "mostly wrong: little of it is right",
    1: "wrong: or no answer",
}
"""What each grade of an answer means."""


def named(answers: pl.DataFrame) -> pl.DataFrame:
    """Name answers as queues do.

    Args:
        answers: Columns of `KEY`.

    Returns:
        The rows with passage_id: as JSON, all of the key but the query.
    """
    rest = pl.struct(name for name in KEY if name != "query_id")
    return answers.with_columns(rest.struct.json_encode().alias("passage_id"))


def keys(items: Sequence[Item]) -> pl.DataFrame:
    """Read the items of a queue of answers.

    Returns:
        `KEY` and value, the grade (null = none), in the order of the items.
    """
    rows = [{**json.loads(each.passage_id), "query_id": each.query_id, "value": each.grade} for each in items]
    return frame("answer_scores", rows).select(*KEY, "value")


def scores(queue: Queue, items: Sequence[Item], before: pl.DataFrame) -> pl.DataFrame:
    """Make the scores of a queue's graded answers, but of those that this judge's scores are there of.

    Args:
        queue: Of mode "answers".
        before: Scores of the runs as the store has them.

    Returns:
        Rows of "answer_scores".
    """
    own = before.filter(scorer=SCORER, judge=queue.judge)
    graded = keys(items).drop_nulls("value").join(own, on=KEY, how="anti", nulls_equal=True)
    about = {"scorer": SCORER, "judge": queue.judge, "scale": SCALE, "source": BY_PEOPLE}
    said = graded.with_columns(pl.lit(value).alias(name) for name, value in about.items())
    return frame("answer_scores", said.to_dict())
