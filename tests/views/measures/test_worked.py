"""A reader can recompute every measure from its worked example: the last step, worked out, is the value."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.metrics import REGISTRY, Measure
from core.views.measures.worked import DEEPEST, RANKING, example, worked


def by_hand(expression: str) -> float:
    """What a reader types into a calculator."""
    for sign, typed in (("·", "*"), ("−", "-"), ("^", "**")):
        expression = expression.replace(sign, typed)
    allowed = set("0123456789.+-*/(),e log2minmax")
    assert set(expression) <= allowed, expression
    known = {"e": math.e, "log2": math.log2, "min": min, "max": max}
    return float(eval(expression, {"__builtins__": {}}, known))  # noqa: S307


@pytest.mark.parametrize("name", REGISTRY)
def test_the_last_step_gives_the_value(name: str) -> None:
    made = worked(Measure(name))
    assert made.value is not None
    assert by_hand(made.expression) == pytest.approx(made.value, abs=1e-12)
    assert made.measure.k is not None
    assert all(step.endswith(".") for step in made.steps)


@st.composite
def measures(draw):
    info = REGISTRY[draw(st.sampled_from(list(REGISTRY)))]
    values = {
        param.name: draw(
            st.sampled_from(param.choices)
            if param.choices
            else st.just(param.default)
            if param.free
            else st.integers(int(param.low), int(param.high))
            if isinstance(param.default, int)
            else st.floats(param.low, param.high).map(lambda number: round(number, 3))
        )
        for param in info.params
    }
    return Measure(info.name, draw(st.integers(1, DEEPEST)), tuple(values.items()))


@pytest.mark.slow
@settings(max_examples=200)
@given(measures())
def test_so_it_does_at_any_cutoff_with_any_parameters(measure: Measure) -> None:
    made = worked(measure)
    if made.value is None:
        assert made.reason
        assert made.expression == ""
    else:
        assert by_hand(made.expression) == pytest.approx(made.value, abs=1e-9)


def test_a_measure_that_does_not_apply_says_why() -> None:
    made = worked(Measure("Acc|Hit", 3))
    assert made.value is None
    assert "do not hold everything good" in str(made.reason)


def test_the_example_is_small_and_has_everything() -> None:
    rows = example()
    assert "".join(rows["passage"].head(len(RANKING))) == RANKING
    assert set(rows["grade"]) == {None, 1, 2, 3, 4, 5}
    assert rows["source"].n_unique() < rows.height
    assert rows["rank"].null_count() == 2
