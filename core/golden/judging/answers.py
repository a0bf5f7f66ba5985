"""Answers of readers that a person grades: what names one in a queue, and the scores that come of them."""

from __future__ import annotations

import json
from collections.abc import Sequence

import polars as pl

from core.answers import KEY
from core.golden.judging.book import Item, Queue
from core.golden.judging.landing import BY_PEOPLE
from core.tables import frame

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
        items: Its answers with their grades.
        before: Scores of the runs as the store has them.

    Returns:
        Rows of "answer_scores".
    """
    own = before.filter(scorer=SCORER, judge=queue.judge)
    graded = keys(items).drop_nulls("value").join(own, on=KEY, how="anti", nulls_equal=True)
    about = {"scorer": SCORER, "judge": queue.judge, "scale": SCALE, "source": BY_PEOPLE}
    said = graded.with_columns(pl.lit(value).alias(name) for name, value in about.items())
    return frame("answer_scores", said.to_dict())
