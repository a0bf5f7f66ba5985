"""What the base does for every reranker: splitting, order, checks, sums."""

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ClqError, InputError, ProviderError
from core.providers.base import Amount, Reply
from core.providers.calls import Journal
from core.providers.rerank import Reranker, Scores
from core.providers.rerank.base import makespan
from core.records import Basis

NAN, GONE = math.nan, -math.inf


class Made(Reranker):
    """Gives every passage the number that it is, and remembers its batches."""

    name = "made"
    selective = True

    def __init__(self, **attributes: Any) -> None:
        self.batches: list[list[str]] = []
        self.extras: list[str] = []
        for name, value in attributes.items():
            setattr(self, name, value)

    def count_tokens(self, text: str) -> int:
        return len(text)

    def score_batch(self, query: str, passages: Sequence[str], *, extra: str = "") -> Reply[Scores]:
        self.batches.append(list(passages))
        self.extras.append(extra)
        used = (Amount("made", "input_tokens", float(len(passages)), Basis.MEASURED),)
        return Reply(self.scores(passages), used, ms=10.0, details={"truncated": 1, "note": "first"})

    def scores(self, passages: Sequence[str]) -> Scores:
        return np.array([float(text) for text in passages])

    def expected(self, query_tokens: float, passage_tokens: Sequence[float]) -> tuple[Amount, ...]:
        return ()


@pytest.mark.parametrize(
    ("scores", "order"),
    [
        ([], []),
        (["1"], [0]),
        (["1", "3", "2"], [1, 2, 0]),
        (["2", "2", "2"], [0, 1, 2]),  # ties keep the order of retrieval
        (["nan", "1", "nan", "2"], [3, 1, 0, 2]),  # no score: last, in the order of retrieval
        (["1", "-inf", "3", "-inf"], [2, 0]),  # discarded: gone
        (["nan", "-inf", "0", "nan"], [2, 0, 3]),
        (["-inf", "-inf"], []),
    ],
)
def test_order(scores: list[str], order: list[int]):
    reply = Made().rerank("query", scores)
    assert reply.value.order.tolist() == order
    np.testing.assert_array_equal(reply.value.scores, [float(each) for each in scores])
    assert (reply.value.unscored, reply.value.discarded) == (scores.count("nan"), scores.count("-inf"))


@given(
    st.lists(
        st.tuples(st.sampled_from([NAN, GONE, 0.0, 1.0, 2.5, -3.0]), st.sampled_from([0.0, 1.0, 2.0])),
        max_size=12,
    )
)
def test_order_against_a_plain_sort(given: list[tuple[float, float]]):
    class Tied(Made):
        def score_batch(self, query: str, passages: Sequence[str], *, extra: str = "") -> Reply[Scores]:
            chosen = [given[int(text)] for text in passages]
            details = {"ties": [tie for _, tie in chosen]}
            return Reply(np.array([score for score, _ in chosen]), details=details)

    found = Tied(batch_items=5).rerank("q", [str(at) for at in range(len(given))]).value.order.tolist()
    kept = [at for at, (score, _) in enumerate(given) if score != GONE]
    naive = sorted(
        kept,
        key=lambda at: (
            math.isnan(given[at][0]),
            0 if math.isnan(given[at][0]) else -given[at][0],
            -given[at][1],
            at,
        ),
    )
    assert found == naive


@pytest.mark.parametrize(
    ("items", "tokens", "lengths"),
    [
        (1000, None, [[3, 3, 3, 3, 3]]),
        (2, None, [[3, 3], [3, 3], [3]]),
        (1, None, [[3], [3], [3], [3], [3]]),
        (1000, 8, [[3], [3], [3], [3], [3]]),  # the query's 5 tokens count with every passage
        (1000, 16, [[3, 3], [3, 3], [3]]),
        (1000, 2, [[3], [3], [3], [3], [3]]),  # beyond the limit by itself: alone
    ],
)
def test_pointwise_work_is_split_to_the_limits(items: int, tokens: int | None, lengths: list[list[int]]):
    passages = ["100", "200", "300", "400", "500"]
    made = Made(batch_items=items, batch_tokens=tokens)
    reply = made.rerank("query", passages)
    assert [[len(text) for text in batch] for batch in made.batches] == lengths
    assert list(itertools.chain(*made.batches)) == passages
    assert reply.value.order.tolist() == [4, 3, 2, 1, 0]
    assert reply.usage == (Amount("made", "input_tokens", 5.0, Basis.MEASURED),)
    assert reply.details == {
        "truncated": len(lengths),
        "note": "first",
        "calls": len(lengths),
        "unscored": 0,
        "discarded": 0,
    }
    assert reply.ms == 10.0 * len(lengths)


def test_batches_side_by_side_keep_their_places():
    made = Made(batch_items=1, concurrency=3)
    reply = made.rerank("query", ["5", "1", "4", "2", "3", "0", "6"])
    assert reply.value.scores.tolist() == [5, 1, 4, 2, 3, 0, 6]
    assert reply.ms == 30.0  # seven calls of 10 ms, three at once


@given(st.lists(st.floats(0, 1000), max_size=20), st.integers(1, 6))
def test_makespan_lies_between_its_bounds(lengths: list[float], lanes: int):
    found = makespan(lengths, lanes)
    assert found >= max([0.0, *lengths]) - 1e-6
    assert found >= sum(lengths) / lanes - 1e-6
    assert found <= sum(lengths) + 1e-6
    assert makespan(lengths, 1) == pytest.approx(sum(lengths))
    assert makespan(lengths, max(1, len(lengths))) == pytest.approx(max([0.0, *lengths]))


def test_a_listwise_reranker_refuses_more_than_it_takes():
    made = Made(pointwise=False, batch_items=3)
    assert made.rerank("q", ["1", "2", "3"]).value.order.tolist() == [2, 1, 0]
    with pytest.raises(InputError, match=r"4 passages; it takes 3 at once.*Lower candidates to 3"):
        made.rerank("q", ["1", "2", "3", "4"])
    with pytest.raises(InputError, match=r"3 passages of together 10 tokens do not fit.*takes 9"):
        Made(pointwise=False, batch_tokens=9).rerank("q", ["100", "200", "300"])
    assert len(made.batches) == 1


@pytest.mark.parametrize("bad", ["nan", "-inf", "inf"])
def test_scores_that_are_no_numbers_are_an_error(bad: str):
    with pytest.raises(ProviderError, match="made returned scores that are not finite") as told:
        Made(selective=False).rerank("q", ["1", bad])
    assert told.value.kind == "unreadable"


def test_a_wrong_count_is_an_error():
    class Short(Made):
        def scores(self, passages: Sequence[str]) -> Scores:
            return np.zeros(len(passages) - 1)

    with pytest.raises(ProviderError, match="made returned 2 scores for 3 passages") as told:
        Short().rerank("q", ["1", "2", "3"])
    assert told.value.kind == "count"


def test_nothing_is_asked_about_no_passages():
    made = Made()
    reply = made.rerank("q", [])
    assert (made.batches, reply.value.order.tolist(), reply.attempts, reply.fresh) == ([], [], 0, False)


def test_what_is_in_the_journal_is_not_asked_again(tmp_path: Path):
    journal = Journal(tmp_path / "replies.sqlite")
    made = Made(journal=journal, batch_items=2)
    first = made.rerank("q", ["1", "2", "3"])
    again = made.rerank("q", ["1", "2", "3"])
    assert len(made.batches) == 2
    assert (first.fresh, again.fresh) == (True, False)
    assert again.value.order.tolist() == first.value.order.tolist()
    assert (again.usage, again.ms, again.details) == (first.usage, first.ms, first.details)
    assert made.rerank("q", ["1", "2", "4"]).fresh is False  # one call of two is known
    made.rerank("q", ["1", "2"], extra="repeat 2")
    made.rerank("other", ["1", "2"])
    assert len(made.batches) == 5
    assert made.extras[-2:] == ["repeat 2", ""]
    journal.close()


def test_an_error_in_one_batch_ends_the_others():
    class Failing(Made):
        stopped = 0

        def scores(self, passages: Sequence[str]) -> Scores:
            if passages == ["3"]:
                raise ProviderError("refused", kind="refused")
            return super().scores(passages)

        def interrupt(self) -> None:
            self.stopped += 1

    made = Failing(batch_items=1, concurrency=2)
    with pytest.raises(ClqError, match="refused"):
        made.rerank("q", [str(n) for n in range(100)])
    assert made.stopped == 1
