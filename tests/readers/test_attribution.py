"""Sentences of answers and the passages they rest on, by similarity."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from core.readers.attribution import attribute, statements
from core.readers.scoring import against

WORDS = ("sort", "rows", "mean", "chart")


def embed(texts: Sequence[str]) -> NDArray[np.float32]:
    """Count a few words, at unit length."""
    counts = np.array([[text.lower().count(word) for word in WORDS] for text in texts], dtype=np.float32)
    length = np.linalg.norm(counts, axis=1, keepdims=True)
    return np.divide(counts, length, out=np.zeros_like(counts), where=length > 0)


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("Sort the rows. Draw a chart.", [("Sort the rows.", ()), ("Draw a chart.", ())]),
        (
            "Sort, e.g. by rows [2]. Then stop [1][3].",
            [("Sort, e.g. by rows.", (2,)), ("Then stop.", (1, 3))],
        ),
        ("Sort the rows. [1] Draw. [2-3]", [("Sort the rows.", (1,)), ("Draw.", (2, 3))]),
        ("[2] Draw a chart", [("Draw a chart", (2,))]),
        ("one\n\ntwo", [("one", ()), ("two", ())]),
        ("[1]", []),
        (" … ", []),
        ("", []),
    ],
)
def test_an_answer_is_cut_into_sentences_with_what_each_cites(answer: str, found: list[tuple[str, tuple]]):
    assert [(one.text, tuple(sorted(one.cited))) for one in statements(answer)] == found


@pytest.mark.parametrize(
    ("answer", "sent", "sources"),
    [
        ("Sort the rows. Draw a chart.", ["a chart", "sort rows"], [(2, 1.0), (1, 1.0)]),
        ("The mean of rows.", ["rows", "mean of mean", "mean rows"], [(3, 1.0)]),
        ("Sort rows.", ["sort rows", "rows sort"], [(1, 1.0)]),  # of equal ones the first
        ("Nothing known.", ["sort"], [(None, None)]),
        ("Sort.", [], []),
        ("", ["sort"], []),
    ],
)
def test_the_most_similar_passage_is_the_source(answer: str, sent: list[str], sources: list[tuple]):
    rows = attribute([answer], [sent], embed)
    assert rows.select("source", "similarity").rows() == [
        (source, value if value is None else pytest.approx(value)) for source, value in sources
    ]


def test_texts_are_embedded_once():
    asked: list[str] = []
    attribute(["Sort. Sort.", "Sort.", "Mean."], [["sort"], ["sort", "mean"], []],
              lambda texts: asked.extend(texts) or embed(texts))  # fmt: skip
    assert asked == ["Sort.", "sort", "mean"]


@pytest.mark.parametrize(
    ("numbers", "relevant", "scores"),
    [
        ({1, 2}, [True, False, True], (0.5, 0.5)), ({9}, [True], (0.0, 0.0)), (set(), [True], (None, 0.0)),
        ({1}, [False], (0.0, None)),
    ],
)  # fmt: skip
def test_numbers_are_held_against_relevant_passages(numbers, relevant, scores):
    assert against(numbers, relevant) == scores
