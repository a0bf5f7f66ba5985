import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.golden.refine.base import Refinement, RefineSettings
from core.golden.refine.methods import PreferenceGraph, refinement
from core.views.golden.reviewing import MOST, convergence, curves, lock_graph, needed, pairs


def refined(items: int, noise: float, *, method: str = "locks", turns: int = 60) -> Refinement:
    rng = np.random.default_rng(items)
    truth = rng.normal(3, 1.1, items)
    grades = np.clip(np.round(truth), 1, 5).tolist()
    settings = RefineSettings(method=method, turns=turns, stable=15)
    state = refinement(grades, range(items), [f"p<{i}>" for i in range(items)], settings, seed="q")
    while (batch := state.batch()) is not None:
        state.told(sorted(batch, key=lambda item: -truth[item] - rng.normal(0, noise)))
    return state


@pytest.fixture(scope="module")
def two() -> dict[str, Refinement]:
    return {"q1": refined(12, 1.0), "q2": refined(50, 1.5, turns=200)}


def test_the_curve_has_a_point_per_turn(two: dict[str, Refinement]):
    rows = curves(two)
    assert rows.group_by("query_id").len().sort("query_id")["len"].to_list() == [
        state.turns for state in two.values()
    ]
    last = rows.filter(query_id="q2").row(-1, named=True)
    assert last["settled"] == len(two["q2"].locks)
    figure = convergence(two)
    assert len(figure.data) == 4
    assert {trace.name for trace in figure.data if trace.showlegend} == {"q1", "q2"}


def test_the_curve_of_map_is_a_probability():
    state = refined(12, 0.5, method="map")
    assert curves({"q": state})["settled"].is_between(0, 1).all()
    assert curves({}).is_empty()
    assert pairs({"q": state}).is_empty()


def test_the_graph_shows_the_best_and_only_what_is_needed(two: dict[str, Refinement]):
    state = two["q2"]
    locks, against, marks = lock_graph(state).data
    assert len(marks.y) == MOST
    best = set(state.order()[:MOST])
    shown = [pair for pair in needed(state.locks, 50) if best.issuperset(pair)]
    assert sum(value is None for value in locks.x) == len(shown) < len(state.locks)
    assert min(value for value in locks.x if value is not None) >= 0
    assert max(value for value in against.x if value is not None) <= 0
    assert all("<" not in name for name in marks.customdata), "names are no markup"


def test_tables_of_locks_and_contradictions(two: dict[str, Refinement]):
    locks = pairs(two)
    assert (locks["rank_better"] < locks["rank_worse"]).all()
    assert locks.height == sum(len(state.locks) for state in two.values())
    against = pairs(two, contradicted=True)
    assert (against["rank_better"] > against["rank_worse"]).all()
    assert against["times"].sum() == sum(len(state.contradictions) for state in two.values())
    assert against["times"].is_sorted(descending=True)


def test_nothing_was_judged():
    state = refinement([5, 4], [1, 2], ["a", "b"], RefineSettings(), seed="q")
    assert curves({"q": state}).is_empty()
    assert len(lock_graph(state).data[2].y) == 2
    assert pairs({"q": state}, contradicted=True).is_empty()
    convergence({"q": state})


def below(pairs: list[tuple[int, int]]) -> list[int]:
    graph = PreferenceGraph(8)
    for pair in pairs:
        graph.lock(pair)
    return graph.below


@given(order=st.permutations(range(8)), drawn=st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7))))
def test_what_is_needed_implies_the_rest(order: list[int], drawn: set[tuple[int, int]]):
    locks = [(order[one], order[other]) for one, other in drawn if one < other]
    kept = needed(locks, 8)
    assert below(kept) == below(locks)
    for pair in kept:
        assert below([other for other in kept if other != pair]) != below(locks), "none could be left out"
