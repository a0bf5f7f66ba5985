"""Properties of every measure over random worlds, and equality with the oracle."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.metrics import REGISTRY, Measure, Weighting, score, score_all, score_at, weights
from tests.metrics import oracle
from tests.metrics.worlds import World, queries, weighting_values, worlds

ALL = [Measure(name) for name in REGISTRY]
SET_MEASURES = [Measure(name) for name in oracle.PLAIN]
WITH_CEILING = [Measure(name) for name in oracle.PLAIN if f"PROC[{name}]" in REGISTRY]


def with_values(measure, values):
    return Measure(measure.name, measure.k, tuple(values.items())) if measure.info.params else measure


def scored(measure, world):
    return score(measure, world.grades, world.pool_counts, pool_grades=world.pool_grades)


@given(worlds(), weighting_values)
def test_every_measure_equals_the_oracle_at_every_k(world, values):
    measures = [with_values(measure, values) for measure in ALL]
    made = score_all(measures, world.grades, world.pool_counts, pool_grades=world.pool_grades)
    for measure, got in made.items():
        np.testing.assert_allclose(
            got, world.oracle(measure.name, values), rtol=0, atol=1e-12, err_msg=str(measure)
        )


@given(worlds())
def test_default_parameters_equal_the_oracle(world):
    for measure in ALL:
        np.testing.assert_allclose(scored(measure, world), world.oracle(measure.name), rtol=0, atol=1e-12)


@given(st.lists(st.lists(st.integers(0, 20_000), min_size=5, max_size=5), min_size=1), weighting_values)
def test_weights_equal_the_oracle_for_large_pools(rows, values):
    got = weights(np.array(rows), Weighting.from_values(values))
    for row, made in zip(rows, got, strict=True):
        expect = oracle.grade_weights(dict(enumerate(row, start=1)), values)
        np.testing.assert_allclose(made, [expect[grade] for grade in range(1, 6)], rtol=0, atol=1e-12)


@given(queries(), st.integers(1, 4), weighting_values)
def test_proc_is_the_best_of_all_choices_from_the_pool(query, k, values):
    query = replace(query, pool=query.pool[:8])
    world = World([query], k)
    for measure in WITH_CEILING:
        proc = with_values(measure.renamed(f"PROC[{measure.name}]"), values)
        choices = combinations(query.pool, min(k, len(query.pool)))
        reached = [
            oracle.value(measure.name, list(choice), query.judged, k, values=values) for choice in choices
        ]
        best = None if reached[0] is None else max(reached)
        got = scored(proc, world)[0, k - 1]
        np.testing.assert_allclose(got, np.array(best, dtype=float), rtol=0, atol=1e-12, err_msg=str(proc))


@given(worlds(), st.data(), weighting_values)
def test_order_within_top_k_does_not_matter_at_k(world, data, values):
    k = data.draw(st.integers(1, world.depth))
    shuffled = [
        replace(query, ranking=[*data.draw(st.permutations(query.ranking[:k])), *query.ranking[k:]])
        for query in world.queries
    ]
    for measure in (with_values(measure, values) for measure in SET_MEASURES):
        before = scored(measure, world)[:, k - 1]
        after = scored(measure, World(shuffled, world.depth))[:, k - 1]
        np.testing.assert_allclose(after, before, rtol=0, atol=1e-12, err_msg=str(measure))


@given(worlds(), st.data())
def test_proc_never_falls_when_the_pool_grows(world, data):
    smaller = World(
        [replace(q, pool=q.pool[: data.draw(st.integers(0, len(q.pool)))]) for q in world.queries],
        world.depth,
    )
    for measure in WITH_CEILING:
        proc = measure.renamed(f"PROC[{measure.name}]")
        grown, before = scored(proc, world), scored(proc, smaller)
        assert np.array_equal(np.isnan(grown), np.isnan(before))
        assert np.all((grown >= before - 1e-12) | np.isnan(grown))


@given(worlds(pool_holds_ranking=True), weighting_values)
def test_actual_never_passes_proc_when_the_pool_holds_the_ranking(world, values):
    for measure in (with_values(measure, values) for measure in WITH_CEILING):
        actual, proc = scored(measure, world), scored(measure.renamed(f"PROC[{measure.name}]"), world)
        share = scored(measure.renamed(f"%PROC[{measure.name}]"), world)
        assert np.all((actual <= proc + 1e-12) | np.isnan(proc))
        assert np.all((share <= 1 + 1e-12) | np.isnan(share))


@given(worlds(pool_holds_ranking=True))
def test_actual_and_the_two_headrooms_add_up_to_one(world):
    for measure in WITH_CEILING:
        actual, proc = scored(measure, world), scored(measure.renamed(f"PROC[{measure.name}]"), world)
        ordering, retrieval = proc - actual, 1 - proc
        applies = ~np.isnan(proc)
        assert np.all(ordering[applies] >= -1e-12)
        assert np.all(retrieval[applies] >= -1e-12)
        np.testing.assert_allclose((actual + ordering + retrieval)[applies], 1, rtol=0, atol=1e-12)


@given(worlds(pool_holds_ranking=True), weighting_values)
def test_values_stay_within_the_declared_range(world, values):
    for measure in (with_values(measure, values) for measure in ALL):
        got = scored(measure, world)
        known = got[~np.isnan(got)]
        assert np.all((known >= measure.info.low) & (known <= measure.info.high + 1e-12)), str(measure)


@given(worlds())
def test_a_complete_pool_has_no_retrieval_headroom(world):
    full = World([replace(query, pool=list(query.judged)) for query in world.queries], world.depth)
    for name in ("RA-nWG", "N-Recall4+", "N-Recall5"):
        proc = scored(Measure(f"PROC[{name}]"), full)
        assert np.all((proc == 1) | np.isnan(proc))


@given(worlds(), st.integers(1, 3))
def test_leading_axes_are_independent_runs(world, runs):
    rolled = np.stack([np.roll(world.grades, shift, axis=-1) for shift in range(runs)])
    pools = np.stack([world.pool_grades] * runs)
    for measure in ALL:
        together = score(measure, rolled, world.pool_counts, pool_grades=pools)
        for run in range(runs):
            alone = score(measure, rolled[run], world.pool_counts, pool_grades=pools[run])
            np.testing.assert_array_equal(together[run], alone)


@given(worlds(), st.integers(1, 3))
def test_runs_with_judged_passages_of_their_own(world, runs):
    """Counts per run: each run scores as alone; where nothing is judged, no measure applies."""
    shape = (runs, 1, 1)
    grades, pools = np.tile(world.grades, shape), np.tile(world.pool_grades, shape)
    counts = np.tile(world.pool_counts, shape) + np.arange(runs, dtype=np.int32)[:, None, None] % 2
    for measure in ALL:
        together = score(measure, grades, counts, pool_grades=pools, depth=9)
        for run in range(runs):
            alone = score(measure, grades[run], counts[run], pool_grades=pools[run], depth=9)
            alone[~counts[run].any(axis=-1)] = np.nan
            np.testing.assert_array_equal(together[run], alone)


def test_counts_of_other_runs_are_refused():
    with pytest.raises(ValueError, match="do not match"):
        score(Measure("Hit"), np.zeros((2, 3, 4), np.int8), np.zeros((1, 3, 5), np.int32))


@given(worlds(), st.integers(1, 25))
def test_one_cutoff_equals_that_column_of_all_cutoffs(world, k):
    for measure in ALL:
        at_k = score_at(measure.at(k), world.grades, world.pool_counts, pool_grades=world.pool_grades)
        deep = score(measure, world.grades, world.pool_counts, pool_grades=world.pool_grades, depth=25)
        np.testing.assert_array_equal(at_k, deep[:, k - 1])
