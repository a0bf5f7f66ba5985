"""Stacks that a search's model would evaluate next, from evaluated ones alone."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import polars as pl
import pytest
from pydantic import ValidationError

from core.errors import ClqError
from core.pipeline.search import propose as proposing
from core.pipeline.search.propose import tell
from core.pipeline.search.unmeasured import _combinations, unmeasured
from core.pipeline.sweep.fields import SearchLimits

SCHEMA = {"embedder": pl.String, "dim": pl.Int32, "reranker": pl.String, "candidates": pl.Int32}
SPARSE = [(None, None, "none", 10), (None, None, "r", 20)]
DENSE = [("m", 256, "none", 10), ("m", 512, "r", 20), ("n", 384, "none", 50)]
LEVELS = pl.DataFrame([*SPARSE, *DENSE], schema=SCHEMA, orient="row")
SIZE = LEVELS.height
FIGURES = np.linspace(0.3, 0.7, SIZE), np.linspace(20.0, 90.0, SIZE), np.linspace(1.0, 2.0, SIZE)


def test_combinations_are_of_values_that_go_together() -> None:
    sparse = [(None, None, reranker, k) for reranker, k in itertools.product(("none", "r"), (10, 20))]
    models = (("m", 256), ("m", 512), ("n", 384))
    dense = [(*model, *rest) for model, *rest in itertools.product(models, ("none", "r"), (10, 20, 50))]
    assert {*_combinations(LEVELS, 0)} == {*sparse, *dense}


def test_of_too_many_combinations_some_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = {*_combinations(LEVELS, 0)}
    monkeypatch.setattr("core.pipeline.search.unmeasured.MOST", 5)
    drawn = _combinations(LEVELS, 0)
    assert len(drawn) == len({*drawn})
    assert {*drawn} < whole
    assert drawn == _combinations(LEVELS, 0)


@pytest.mark.parametrize(
    ("limits", "higher_is_better", "broken"),
    [
        (SearchLimits(), True, ()),
        (SearchLimits(sla_ms=50.0), True, (-0.5,)),
        (SearchLimits(budget=1.0, min_quality=0.5), True, (1.0, -0.25)),
        (SearchLimits(min_quality=0.5), False, (0.25,)),
    ],
)
def test_limits_are_broken_by_a_share(
    limits: SearchLimits, higher_is_better: bool, broken: tuple[float]
) -> None:
    figures = np.array([0.75]), np.array([25.0]), np.array([2.0])
    (told,), _ = tell([3], figures, limits, higher_is_better=higher_is_better)
    assert (told.row, told.broken) == (3, pytest.approx(broken))


@pytest.mark.parametrize("unknown", [1, 2])
def test_what_is_not_known_of_all_is_no_objective(unknown: int) -> None:
    figures = [each.copy() for each in FIGURES]
    figures[unknown][0] = np.nan
    told, maximised = tell(range(SIZE), tuple(figures), SearchLimits(), higher_is_better=True)
    assert (len(told), maximised) == (SIZE, [True, False])


def test_nothing_known_or_left_is_nothing_proposed() -> None:
    unknown = np.full(SIZE, np.nan)
    assert unmeasured(LEVELS, (unknown, unknown, unknown), SearchLimits()) == []
    assert unmeasured(LEVELS.select(), FIGURES, SearchLimits()) == []
    one = LEVELS.head(1)
    assert unmeasured(one, tuple(each[:1] for each in FIGURES), SearchLimits()) == []


def test_without_the_package_the_error_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise ClqError("It needs the package optuna.", do="pip install -r requirements-search.txt")

    monkeypatch.setattr(proposing, "needed", missing)
    with pytest.raises(ClqError, match=r"requirements-search\.txt"):
        unmeasured(LEVELS, FIGURES, SearchLimits())


@pytest.mark.extras
def test_limits_of_the_last_release_are_understood() -> None:
    old = {"sla": 50.0, "floor": 0.5, "harm": 0.1, "budget": 1.0}
    assert SearchLimits.model_validate(old) == SearchLimits(
        sla_ms=50.0, min_quality=0.5, max_harm=0.1, budget=1.0
    )
    with pytest.raises(ValidationError, match="floor"):
        SearchLimits.model_validate({"floor": 0.5, "min_quality": 0.5})


@pytest.mark.parametrize("limits", [SearchLimits(), SearchLimits(sla_ms=50.0)])
def test_proposals_are_new_and_the_same_for_the_same_results(limits: SearchLimits) -> None:
    pytest.importorskip("optuna", reason="optuna is not installed")
    made = unmeasured(LEVELS, FIGURES, limits, count=5, seed=2)
    specs: list[tuple[Any, ...]] = [tuple(each.spec.get(axis) for axis in SCHEMA) for each in made]
    assert len({*specs}) == 5
    assert not {*specs} & {*LEVELS.iter_rows()}
    assert made == unmeasured(LEVELS, FIGURES, limits, count=5, seed=2)
    for each, own in zip(made, specs, strict=True):
        near = LEVELS.row(each.of)
        apart = [(axis, one, two) for axis, one, two in zip(SCHEMA, near, own, strict=True) if one != two]
        assert [*each.steps] == apart


@pytest.mark.extras
def test_of_stacks_that_differ_in_what_nothing_reads_one_is_enough() -> None:
    pytest.importorskip("optuna", reason="optuna is not installed")

    def read(stack: Any) -> Any:
        return (*stack[:3], None) if stack[2] == "none" else stack

    every = unmeasured(LEVELS, FIGURES, SearchLimits(), count=50, read=read)
    plain = [
        (each.spec.get("embedder"), each.spec.get("dim")) for each in every if each.spec["reranker"] == "none"
    ]
    assert plain == [("m", 512)]  # the others were evaluated at one K, which tells of all
    assert {axis for each in every if each.spec["reranker"] == "none" for axis, *_ in each.steps} == {"dim"}
