import json
import math
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError, UnknownNameError
from core.golden.refine.base import ItemState, RefineSettings
from core.golden.refine.methods import Locks, refinement, restore


def begin(grades: list[int], **settings: object):
    n = len(grades)
    return refinement(grades, range(n), [f"p{i:02}" for i in range(n)], RefineSettings(**settings), seed="q")


def test_two_turns_by_hand():
    """Five equal grades: the first turn's chances are 1/5, 1/4, 1/3, 1/2 and 1, its step is 0.05."""
    state = begin([3, 3, 3, 3, 3], confirmations=2)
    assert sorted(state.batch()) == [0, 1, 2, 3, 4]
    state.told([0, 1, 2, 3, 4])
    rows = {row.item: row for row in state.rows()}
    lost = [0, 1 / 5, 1 / 5 + 1 / 4, 1 / 5 + 1 / 4 + 1 / 3, 1 / 5 + 1 / 4 + 1 / 3 + 1 / 2]
    won = [4 / 5, 3 / 4, 2 / 3, 1 / 2, 0]
    assert [rows[i].score for i in range(5)] == pytest.approx(
        [3 + 0.05 * (won[i] - lost[i]) for i in range(5)]
    )
    information = [1e-6 + value for value in (0.16, 0.3475, 0.569722, 0.819722, 0.819722)]
    assert [rows[i].information for i in range(5)] == pytest.approx(information, abs=1e-6)
    assert state.locks == []

    state.batch()
    state.told([0, 1, 2, 4, 3])  # eta = 0.05 / sqrt(1.02)
    rows = {row.item: row for row in state.rows()}
    assert [rows[i].score for i in range(5)] == pytest.approx(
        [3.0792087, 3.0539945, 3.0206547, 2.9217548, 2.9243873], abs=1e-7
    )
    assert [rows[i].information for i in range(5)] == pytest.approx(
        [0.32475, 0.702845, 1.146783, 1.637786, 1.619984], abs=1e-6
    )
    assert state.locks == [(0, 1), (0, 2), (0, 4), (0, 3), (1, 2), (1, 4), (1, 3), (2, 4), (2, 3)]
    assert state.order() == [0, 1, 2, 4, 3]
    assert [rows[i].locks for i in range(5)] == [4, 4, 4, 3, 3]
    assert {row.exposures for row in rows.values()} == {2}
    assert [point.changed for point in state.curve] == [0, 2]

    state.batch()
    state.told([3, 4, 0, 1, 2])  # six pairs against locks; 3 before 4 for the second time: locked
    assert state.contradictions == [(3, 0), (3, 1), (3, 2), (4, 0), (4, 1), (4, 2)]
    assert state.locks[-1] == (3, 4)
    assert state.order() == [0, 1, 2, 3, 4]


def test_a_margin_locks_after_the_update_and_what_it_implies_is_not_locked():
    state = begin([5, 4, 3, 2, 1], confirmations=0, z=0, turns=9)
    state.batch()
    state.told([2, 3, 4, 0, 1])
    # z = 0: whatever the scores say is locked, if the judge says it, too; 2 is above 3 and 4, 0 above 1.
    assert state.locks == [(2, 3), (2, 4), (3, 4), (0, 1)]


@pytest.mark.parametrize(
    ("settings", "turns", "stopped"),
    [
        ({"stable": 2, "exposures": 1}, 2, "stable"),
        ({"stable": 1, "exposures": 4}, 4, "stable"),
        ({"stable": 99, "turns": 7}, 7, "limit"),
    ],
)
def test_it_stops(settings: dict[str, int], turns: int, stopped: str):
    state = begin([5, 4, 3, 2, 1], **settings)
    while (batch := state.batch()) is not None:
        assert state.batch() == batch, "the same until it is told"
        state.told(sorted(batch))
    assert (state.turns, state.stopped) == (turns, stopped)


def test_fewer_than_a_batch_are_not_judged():
    state = refinement([3, 4, 4, 4], [1, 3, 2, 2], ["a", "b", "d", "c"], RefineSettings(), seed="q")
    assert (state.batch(), state.stopped) == (None, "too few")
    assert state.order() == [3, 2, 1, 0], "grade, then rank, then id"
    assert refinement([], [], [], RefineSettings(), seed="q").order() == []


def test_skipped_batches_count_as_turns_and_bring_no_rest():
    state = begin([5, 4, 3, 2, 1, 1, 1], stable=1, exposures=1, turns=4)
    first = state.batch()
    for _ in range(4):
        assert state.batch() is not None
        state.skipped()
    assert (state.turns, state.skips, state.stopped) == (4, 4, "limit")
    assert first is not None
    assert {row.exposures for row in state.rows()} == {0}


@pytest.mark.parametrize("order", [[], [0, 1, 2, 3], [0, 1, 2, 3, 3], [0, 1, 2, 3, 9]])
def test_no_order_of_the_batch(order: list[int]):
    state = begin([1, 2, 3, 4, 5])
    state.batch()
    with pytest.raises(InputError):
        state.told(order)


@pytest.mark.parametrize(
    "given", [{"method": "x"}, {"batch": 1}, {"batch": 2.5}, {"clip": 0.0}, {"sure": 2.0}, {"stable": True}]
)
def test_refused_settings(given: dict[str, object]):
    with pytest.raises((InputError, UnknownNameError)):
        RefineSettings.read(given)


@pytest.mark.parametrize("key", ["settings", "log", "ids", "grades"])
def test_a_broken_checkpoint_is_named(key: str):
    state = dict(begin([1, 2, 3, 4, 5]).state())
    for broken in ({k: v for k, v in state.items() if k != key}, {**state, key: 7}, {**state, "log": [[-1]]}):
        with pytest.raises(InputError):
            restore(broken)


class Naive:
    """Locks, contradictions and pending counts by their definitions, with a search for every path."""

    def __init__(self) -> None:
        self.edges: list[tuple[int, int]] = []
        self.against: list[tuple[int, int]] = []
        self.pending: dict[tuple[int, int], int] = {}

    def path(self, start: int, end: int) -> bool:
        seen, stack = set(), [start]
        while stack:
            item = stack.pop()
            nexts = {worse for better, worse in self.edges if better == item}
            if end in nexts:
                return True
            stack += nexts - seen
            seen |= nexts
        return False

    def tell(self, order: list[int], confirmations: int, clear: set[tuple[int, int]]) -> None:
        for pair in combinations(order, 2):
            if self.path(*pair):
                continue
            if self.path(*pair[::-1]):
                self.against.append(pair)
                continue
            self.pending[pair] = self.pending.get(pair, 0) + 1
            if (confirmations and self.pending[pair] >= confirmations) or pair in clear:
                self.edges.append(pair)
        self.pending = {
            pair: count
            for pair, count in self.pending.items()
            if not self.path(*pair) and not self.path(*pair[::-1])
        }


def apart(better: ItemState, worse: ItemState, z: float) -> bool:
    """Whether the lower bound of one exceeds the upper bound of the other."""
    deviations = 1 / math.sqrt(better.information) + 1 / math.sqrt(worse.information)
    return better.score - worse.score > z * deviations


@pytest.mark.slow
@given(
    data=st.data(), n=st.integers(5, 9), confirmations=st.integers(0, 3), z=st.sampled_from([0.0, 0.1, 1.0])
)
def test_invariants(data: st.DataObject, n: int, confirmations: int, z: float):
    grades = data.draw(st.lists(st.integers(1, 5), min_size=n, max_size=n))
    state = begin(grades, confirmations=confirmations, z=z, turns=12, stable=12)
    again = data.draw(st.integers(0, 11))
    naive, total = Naive(), 0.0
    while (batch := state.batch()) is not None:
        if state.turns == again:
            state = restore(json.loads(json.dumps(state.state())))
            assert state.batch() == batch
        if data.draw(st.integers(0, 9)) == 0:
            state.skipped()
            continue
        order = data.draw(st.permutations(batch))
        before = {row.item: row.score for row in state.rows()}
        state.told(order)
        after = {row.item: row for row in state.rows()}
        assert isinstance(state, Locks)
        clear = {pair for pair in combinations(order, 2) if apart(*(after[item] for item in pair), z)}
        naive.tell(order, confirmations, clear)
        total += sum(after[item].score - before[item] for item in batch)
        assert all(abs(after[item].score - before[item]) <= 0.2 + 1e-9 for item in batch)
    assert (state.locks, state.contradictions) == (naive.edges, naive.against)
    place = {item: rank for rank, item in enumerate(state.order())}
    assert sorted(place) == list(range(n))
    assert all(place[better] < place[worse] for better, worse in state.locks), (
        "acyclic, and kept by the order"
    )
    assert total == pytest.approx(0, abs=1e-9), "what one gains others lose"
    last = restore(state.state())
    assert (last.rows(), last.curve, last.stopped) == (state.rows(), state.curve, state.stopped)


def test_scores_are_centred_every_so_many_turns():
    state = begin([5, 4, 4, 2, 1, 1], recentre=3, turns=3, stable=99)
    for turn in range(3):
        assert sum(row.score for row in state.rows()) == pytest.approx(17), turn
        state.told(list(state.batch()))
    assert sum(row.score for row in state.rows()) == pytest.approx(0)
