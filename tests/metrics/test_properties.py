"""Properties of every measure over random worlds, and equality with the oracle."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.metrics import REGISTRY, Extra, Measure, Weighting, score, score_all, weights
from tests.metrics import oracle
from tests.metrics.worlds import World, queries, weighting_values, worlds

ALL = [Measure(name) for name in REGISTRY]
WITH_CEILING = [Measure(name) for name in oracle.PLAIN if f"PROC[{name}]" in REGISTRY]
BARE = [measure for measure in ALL if measure.info.needs <= {"pool"}]
"""Measures that need no more than grades and a pool."""


FEWER = settings(max_examples=40)
"""Where every example covers all measures, runs and cutoffs."""


def with_values(measure, values):
    """The measure with those of the values that are among its parameters (an alpha of at most 1 fits all)."""
    fitting = {
        param.name: min(values[param.name], param.high) if param.name == "alpha" else values[param.name]
        for param in measure.info.params
        if param.name in values
    }
    return Measure(measure.name, measure.k, tuple(fitting.items()))


def proc(measure):
    return measure.renamed(f"PROC[{measure.name}]")


@pytest.mark.slow
@given(worlds(), st.just({}) | weighting_values)
def test_every_measure_equals_the_oracle_at_every_k(world, values):
    for measure, got in world.score([with_values(measure, values) for measure in ALL]).items():
        expect = world.oracle(measure.name, dict(measure.params))
        np.testing.assert_allclose(got, expect, rtol=0, atol=1e-12, err_msg=str(measure))


@pytest.mark.slow
@given(worlds(), st.sampled_from((0.0, 0.25, 0.5, 1.0)), st.sampled_from(("alpha-nDCG", "NRBP")))
def test_with_nuggets_these_are_the_facets(world, alpha, name):
    values, params = oracle.DEFAULTS | {"alpha": alpha}, (("alpha", alpha),)
    measures = [Measure(each, None, params) for each in (name, f"PROC[{name}]")]
    got = score_all(
        measures, world.grades, world.pool_counts, pool_grades=world.pool_grades, extra=world.of_nuggets
    )
    for measure, made in got.items():
        for q, query in enumerate(world.queries):
            for k in range(1, world.depth + 1):
                ranking = query.ranking[: world.depth]
                if measure.inner:
                    ranking = oracle.told_greedy(query.pool, k, values, query.supports)
                expect = oracle.of_nuggets(name, ranking, k, values, query.supports)
                np.testing.assert_allclose(
                    made[q, k - 1], np.nan if expect is None else expect, rtol=0, atol=1e-12
                )


@pytest.mark.slow
@given(st.lists(st.lists(st.integers(0, 20_000), min_size=5, max_size=5), min_size=1), weighting_values)
def test_weights_equal_the_oracle_for_large_pools(rows, values):
    known = {name: values[name] for name in oracle.WEIGHTING}
    got = weights(np.array(rows), Weighting.from_values(known))
    for row, made in zip(rows, got, strict=True):
        expect = oracle.grade_weights(dict(enumerate(row, start=1)), values)
        np.testing.assert_allclose(made, [expect[grade] for grade in range(1, 6)], rtol=0, atol=1e-12)


@pytest.mark.slow
@given(queries(), st.integers(1, 3), weighting_values)
def test_proc_is_the_best_of_all_orderings_of_the_pool(query, k, values):
    world = World([replace(query, pool=query.pool[:5])], k)
    for measure in WITH_CEILING:
        valued = with_values(measure, values)
        reached = [
            oracle.value(
                measure.name, list(order), query.judged, k, values=valued.values, source=query.source
            )
            for order in permutations(world.queries[0].pool, min(k, len(world.queries[0].pool)))
        ]
        best = None if reached[0] is None else max(reached)
        got = world.score([proc(valued)])[proc(valued)][0, k - 1]
        np.testing.assert_allclose(got, np.array(best, dtype=float), rtol=0, atol=1e-12, err_msg=str(valued))


@pytest.mark.slow
@given(worlds(), st.data(), weighting_values)
@FEWER
def test_order_within_top_k_does_not_matter_at_k(world, data, values):
    k = data.draw(st.integers(1, world.depth))
    shuffled = [
        replace(query, ranking=[*data.draw(st.permutations(query.ranking[:k])), *query.ranking[k:]])
        for query in world.queries
    ]
    measures = [with_values(Measure(name), values) for name in oracle.ORDER_FREE]
    before, after = world.score(measures), replace(world, queries=shuffled).score(measures)
    for measure in measures:
        np.testing.assert_allclose(
            after[measure][:, k - 1], before[measure][:, k - 1], rtol=0, atol=1e-12, err_msg=str(measure)
        )


@pytest.mark.slow
@given(worlds(), st.data())
@FEWER
def test_proc_never_falls_when_the_pool_grows(world, data):
    parts = [replace(q, pool=q.pool[: data.draw(st.integers(0, len(q.pool)))]) for q in world.queries]
    measures = [proc(measure) for measure in WITH_CEILING]
    grown, before = world.score(measures), replace(world, queries=parts).score(measures)
    for measure in measures:
        assert np.array_equal(np.isnan(grown[measure]), np.isnan(before[measure]))
        assert np.all((grown[measure] >= before[measure] - 1e-12) | np.isnan(grown[measure])), str(measure)


@pytest.mark.slow
@given(worlds(pool_holds_ranking=True), weighting_values)
@FEWER
def test_actual_never_passes_proc_when_the_pool_holds_the_ranking(world, values):
    actual = [with_values(measure, values) for measure in WITH_CEILING]
    made = world.score([*actual, *(proc(each) for each in actual)])
    shares = world.score([each.renamed(f"%PROC[{each.name}]") for each in actual])
    for each in actual:
        assert np.all((made[each] <= made[proc(each)] + 1e-12) | np.isnan(made[proc(each)])), str(each)
    for share, values_of_share in shares.items():
        assert np.all((values_of_share <= 1 + 1e-12) | np.isnan(values_of_share)), str(share)


@pytest.mark.slow
@given(worlds(pool_holds_ranking=True))
def test_actual_and_the_two_headrooms_add_up_to_one(world):
    made = world.score([*WITH_CEILING, *map(proc, WITH_CEILING)])
    for measure in WITH_CEILING:
        actual, best = made[measure], made[proc(measure)]
        ordering, retrieval = best - actual, 1 - best
        applies = ~np.isnan(best)
        assert np.all(ordering[applies] >= -1e-12)
        assert np.all(retrieval[applies] >= -1e-12)
        np.testing.assert_allclose((actual + ordering + retrieval)[applies], 1, rtol=0, atol=1e-12)


@pytest.mark.slow
@given(worlds(pool_holds_ranking=True), weighting_values)
@FEWER
def test_values_stay_within_the_declared_range(world, values):
    for measure, got in world.score([with_values(measure, values) for measure in ALL]).items():
        known = got[~np.isnan(got)]
        assert np.all((known >= measure.info.low) & (known <= measure.info.high + 1e-12)), str(measure)


@pytest.mark.slow
@given(worlds())
def test_a_complete_pool_has_no_retrieval_headroom(world):
    full = replace(world, queries=[replace(query, pool=list(query.judged)) for query in world.queries])
    names = ("RA-nWG", "Novelty-RA-nWG", "N-Recall4+", "N-Recall5", "nDCG")
    for measure, got in full.score([Measure(f"PROC[{name}]") for name in names]).items():
        assert np.all((got == 1) | np.isnan(got)), str(measure)


@pytest.mark.slow
@given(worlds())
def test_a_perfect_ranking_scores_one_to_the_last_bit(world):
    """Best weight first; grades of equal weight may be in any order."""
    best = []
    for query in world.queries:
        weight = oracle.grade_weights(oracle.grade_counts(query.judged), oracle.WEIGHTING)
        order = sorted(query.judged, key=lambda passage: -weight[query.judged[passage]])
        best.append(replace(query, ranking=order))
    got = replace(world, queries=best).score([Measure("RA-nWG")])[Measure("RA-nWG")]
    assert np.all((got == 1) | np.isnan(got))


@pytest.mark.slow
@given(worlds(), st.integers(1, 3))
@FEWER
def test_leading_axes_are_independent_runs(world, runs):
    rolled = np.stack([np.roll(world.grades, shift, axis=-1) for shift in range(runs)])
    pools = np.stack([world.pool_grades] * runs)
    together = score_all(BARE, rolled, world.pool_counts, pool_grades=pools)
    for run in range(runs):
        alone = score_all(BARE, rolled[run], world.pool_counts, pool_grades=pools[run])
        for measure in BARE:
            np.testing.assert_array_equal(together[measure][run], alone[measure])


@pytest.mark.slow
@given(worlds(), st.integers(1, 3))
@FEWER
def test_runs_with_judged_passages_of_their_own(world, runs):
    """Counts per run: each run scores as alone; where nothing is judged, no measure applies."""
    shape = (runs, 1, 1)
    grades, pools = np.tile(world.grades, shape), np.tile(world.pool_grades, shape)
    counts = np.tile(world.pool_counts, shape) + np.arange(runs, dtype=np.int32)[:, None, None] % 2
    together = score_all(BARE, grades, counts, pool_grades=pools, depth=9)
    for run in range(runs):
        alone = score_all(BARE, grades[run], counts[run], pool_grades=pools[run], depth=9)
        for measure in BARE:
            alone[measure][~counts[run].any(axis=-1)] = np.nan
            np.testing.assert_array_equal(together[measure][run], alone[measure])


def test_counts_of_other_runs_are_refused():
    with pytest.raises(ValueError, match="do not match"):
        score(Measure("Hit"), np.zeros((2, 3, 4), np.int8), np.zeros((1, 3, 5), np.int32))


@pytest.mark.slow
@given(worlds(), st.integers(1, 25))
@FEWER
def test_one_cutoff_equals_that_column_of_all_cutoffs(world, k):
    at_k, deep = world.score(ALL, depth=k), world.score(ALL, depth=25)
    for measure in ALL:
        np.testing.assert_array_equal(at_k[measure][:, k - 1], deep[measure][:, k - 1], err_msg=str(measure))


@pytest.mark.slow
@given(worlds())
@FEWER
def test_counted_candidates_stand_for_their_pool(world):
    measures = [measure for measure in BARE if measure.info.needs_pool]
    counts = np.stack([(world.pool_grades == grade).sum(axis=-1) for grade in range(1, 6)], axis=-1)
    from_pool = score_all(measures, world.grades, world.pool_counts, pool_grades=world.pool_grades)
    counted = score_all(measures, world.grades, world.pool_counts, extra=Extra(candidates=counts))
    for measure in measures:
        np.testing.assert_array_equal(counted[measure], from_pool[measure])
