"""First turns: names, meanings and weights are read from whatever the model says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.providers.chat import FakeChat
from core.providers.rerank.criteria import MOST_CRITERIA, POINTS, QUALITIES, Criterion, FirstTurn


@pytest.mark.parametrize(
    ("answer", "names", "problem"),
    [
        ("1. Depth: 5: much; 0: little.", ["Depth"], ""),
        ("1) Depth: much\n2) Age: new", ["Depth", "Age"], ""),
        ("- Depth: much\n* Age: new", ["Depth", "Age"], ""),
        ('{"criteria": [{"name": "Depth", "meaning": "much"}]}', ["Depth"], ""),
        ('[{"name": "Depth", "meaning": "much"}]', ["Depth"], ""),
        ("1. **Depth**: much", ["Depth"], ""),
        ("1. Relevance: 5 if relevant\n2. Age: new", ["Age"], ""),  # it is rated anyway
        ("1. Depth: much\n2. depth: more", ["Depth"], ""),
        (
            "\n".join(f"{n}. Quality {n}: x" for n in range(1, 8)),
            [f"Quality {n}" for n in range(1, 6)],
            "more",
        ),
        ("Here are the qualities:\n1. Depth: much", ["Depth"], "1 of its lines"),
        ("", [], "names nothing"),
        ("1. Relevance: yes", [], "names nothing"),
        ('{"criteria": [{"name": "Depth"}]}', [], "not every entry"),
        ('{"criteria": [{"name": "Depth", "meaning": 3}]}', [], "not every entry"),
        ('{"qualities": []}', [], "no list"),
        ('{"criteria": [', [], "not valid JSON"),
    ],
)
def test_names_and_meanings_are_read(answer: str, names: list[str], problem: str):
    reading = POINTS.read(answer)
    assert [each.name for each in reading.value.criteria] == names
    assert problem in reading.problem
    assert bool(problem) == bool(reading.problem)


@given(st.text() | st.text(alphabet='1.:-* ab\n{}[]"()05', max_size=80), st.sampled_from([POINTS, QUALITIES]))
def test_no_answer_of_a_first_turn_raises(answer: str, turn: FirstTurn):
    reading = turn.read(answer)
    criteria, weighted = reading.value
    assert len(criteria) <= MOST_CRITERIA
    for each in criteria:
        assert 0 < len(each.name) <= 60
        assert 0 < len(each.meaning) <= 300
        assert "\n" not in each.name + each.meaning
    _sound(criteria, weighted)
    assert criteria or reading.problem
    assert weighted or reading.problem or turn is POINTS


def _sound(criteria: tuple[Criterion, ...], weighted: bool) -> None:
    weights = [each.weight for each in criteria]
    assert all(0 <= weight <= 1 for weight in weights)
    assert any(weights) or not weights
    assert weighted or weights == [0.5] * len(weights)


WEIGHT = st.one_of(
    st.floats(),
    st.floats(0, 1),
    st.integers(),
    st.just(10**400),
    st.none(),
    st.booleans(),
    st.text(max_size=4),
)


@given(st.lists(WEIGHT, min_size=1, max_size=5))
def test_weights_are_used_all_or_none(weights: list[Any]):
    answer = [{"name": f"Q{n}", "meaning": "x", "weight": weight} for n, weight in enumerate(weights)]
    criteria, weighted = QUALITIES.read(json.dumps({"criteria": answer})).value
    numbers = [each for each in weights if type(each) in (int, float) and 0 <= each <= 1]
    if criteria:  # NaN and infinities are no JSON
        assert weighted == (len(numbers) == len(weights) and any(numbers))
        assert [each.weight for each in criteria] == (weights if weighted else [0.5] * len(weights))
    _sound(criteria, weighted)


@pytest.mark.parametrize(
    ("answer", "names", "weights", "problem"),
    [
        ("1. Depth (0.8): much\n2. Age (0): new", ["Depth", "Age"], [0.8, 0], ""),
        ("1. **Depth (1)**: much", ["Depth"], [1], ""),
        ("1. Depth (of text) ( 0.25 ): much", ["Depth (of text)"], [0.25], ""),
        (
            '{"criteria": [{"name": "Depth", "meaning": "much", "weight": 0.75},'
            ' {"name": "Age", "meaning": "new", "weight": 1}]}',
            ["Depth", "Age"],
            [0.75, 1],
            "",
        ),
        # what is not used does not count: relevance itself, a name that stands twice, the sixth
        ("1. Relevance (1): it\n2. Age (0.5): new\n3. age (7): old", ["Age"], [0.5], ""),
        ("1. Relevance (1): it\n2. Age (0): new", ["Age"], [0.5], "all weights are 0"),
        (
            "\n".join(f"{n}. Q{n} (0.{n}): x" for n in range(1, 6)) + "\n6. Q6 (9): x",
            [f"Q{n}" for n in range(1, 6)],
            [0.1, 0.2, 0.3, 0.4, 0.5],
            "more",
        ),
        ("1. Depth: much\n2. Age (0.9): new", ["Depth", "Age"], [0.5, 0.5], "1 of 2 weights"),
        ("1. Depth (1.01): much", ["Depth"], [0.5], "1 of 1 weights"),
        ('{"criteria": [{"name": "Age", "meaning": "x", "weight": "1"}]}', ["Age"], [0.5], "1 of 1"),
        ('{"criteria": [{"name": "Age", "meaning": "x", "weight": true}]}', ["Age"], [0.5], "1 of 1"),
        ('{"criteria": [{"name": "Age", "meaning": "x", "weight": 1e999}]}', ["Age"], [0.5], "1 of 1"),
        ('{"criteria": [{"name": "Age", "meaning": "x", "weight": NaN}]}', [], [], "not valid JSON"),
    ],
)
def test_weights_are_read(answer: str, names: list[str], weights: list[float], problem: str):
    reading = QUALITIES.read(answer)
    assert [each.name for each in reading.value.criteria] == names
    assert [each.weight for each in reading.value.criteria] == weights
    assert reading.value.weighted == (bool(names) and problem in {"", "more"})
    assert problem in reading.problem
    assert bool(problem) == bool(reading.problem)


def test_of_two_answers_with_a_problem_the_one_with_weights_is_used():
    weighed = "Here they are:\n1. Depth (0.8): much\n2. Age (0.2): new"
    reply = QUALITIES.infer(FakeChat([weighed, "1. Depth: much\n2. Age: new"]), "q")
    assert [each.weight for each in reply.value.value.criteria] == [0.8, 0.2]
