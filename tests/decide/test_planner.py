"""Would more evaluation change the decision: cases with known behaviour, and the rule itself as oracle."""

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.decide import planner
from core.decide.joint import JointSample
from core.decide.planner import Stakes, bill, outlook, stakes
from core.decide.rules import Constraints, decide
from core.decide.ties import Paired
from core.errors import InputError, UnknownNameError

SEED = 7
NAN = float("nan")
MORE = (10, 40, 160, 640)
FREE = (Constraints(), "quality")


def sample(quality, latency=None, cost=None, fixed_latency=None, fixed_quality=None):
    quality = np.array(quality, dtype=float)
    unknown = np.full(len(quality), NAN)
    return JointSample(
        quality,
        np.full(quality.shape, NAN) if latency is None else np.array(latency, dtype=float),
        unknown if cost is None else np.array(cost, dtype=float),
        unknown if fixed_quality is None else np.array(fixed_quality, dtype=float),
        unknown if fixed_latency is None else np.array(fixed_latency, dtype=float),
    )


def plain(stacks: int) -> Stakes:
    """No intervals: only equal stacks tie, the first is preferred."""
    each = np.arange(stacks)
    return Stakes(np.full((stacks, stacks), NAN), (), answered=False, names=each, averages=each < 0)


def noise(stacks: int, queries: int = 50) -> np.ndarray:
    return np.random.default_rng(5).normal(0.5, 0.2, (stacks, queries))


def test_stacks_of_one_distribution_are_chosen_by_chance():
    # Alike but for chance, with today's means made equal: what is best in the end is anybody's guess.
    quality = noise(4)
    quality -= quality.mean(axis=1, keepdims=True)
    found = outlook(sample(quality), plain(4), FREE, MORE, worlds=800, seed=SEED)
    assert found.now == 0
    assert found.flip[-1] == pytest.approx(0.75, abs=0.08)
    assert found.final == pytest.approx([0.25] * 4, abs=0.08)
    assert found.left_now == pytest.approx(1 - found.final[0])


def test_well_separated_stacks_never_flip():
    quality = noise(3) * 0.2
    quality[1] += 0.5
    found = outlook(sample(quality), plain(3), FREE, MORE, worlds=400, seed=SEED)
    assert found.now == 1
    assert found.flip.tolist() == found.left.tolist() == [0.0] * 4
    assert found.final.tolist() == [0.0, 1.0, 0.0]


def test_the_chance_to_flip_rises_and_the_doubt_that_is_left_falls():
    quality = noise(2)
    quality -= quality.mean(axis=1, keepdims=True)
    quality[0] += 0.02
    found = outlook(sample(quality), plain(2), FREE, (5, 20, 80, 320, 5120), worlds=2000, seed=SEED)
    assert (np.diff(found.flip) > -0.02).all()
    assert (np.diff(found.left) < 0.02).all()
    assert found.flip[-1] == pytest.approx(found.left_now, abs=0.05)
    assert found.left[-1] < 0.1 < found.left_now
    assert found.flip[0] < found.flip[-1] / 2


def test_the_end_of_two_stacks_is_the_posterior_that_normal_theory_gives():
    # The difference of the means is about normal with sd/√(n+1) in the worlds (Bayesian bootstrap).
    difference = np.random.default_rng(2).normal(0.0, 0.1, 200)
    difference += 0.01 - difference.mean()
    found = outlook(sample([difference, np.zeros(200)]), plain(2), FREE, (10,), worlds=4000, seed=SEED)
    assert found.left_now == pytest.approx(0.08, abs=0.025)  # P(normal below −0.01·√201 / 0.1)


def test_twins_are_told_apart_by_preference_and_never_flip():
    row = noise(1)[0]
    held = Stakes(
        np.full((2, 2), NAN),
        (np.array([2.0, 1.0]),),
        answered=False,
        names=np.arange(2),
        averages=np.zeros(2, dtype=bool),
    )
    made = sample([row, row], fixed_latency=[100.0, 100.0])
    found = outlook(made, held, FREE, MORE, worlds=200, seed=SEED)
    assert found.now == 1
    assert not found.flip.any()


def test_intervals_shrink_so_that_a_cheaper_stack_comes_to_tie():
    # The cheaper stack is a little worse; only with more queries is it surely within the zone.
    quality = np.array([noise(1)[0], noise(1)[0] - 0.01])
    held = Stakes(
        np.full((2, 2), 0.06), (), answered=False, names=np.arange(2), averages=np.zeros(2, dtype=bool)
    )
    made = sample(quality, cost=[2.0, 1.0], fixed_latency=np.full(2, 100.0))
    limits = (Constraints(delta=0.05), "quality")
    found = outlook(made, held, limits, (10, 60, 200), worlds=100, seed=SEED)
    assert found.now == 0
    assert found.flip[0] == 0.0  # 0.01 + 0.06·√(50/60) > 0.05
    assert found.flip[-1] == 1.0  # 0.01 + 0.06·√(50/250) < 0.05


def test_timing_again_moves_latency_alone():
    random = np.random.default_rng(1)
    quality, latency = noise(2), random.normal(300.0, 60.0, (2, 50))
    latency[0] += 200 - np.median(latency[0])  # well within the SLA
    latency[1] += 300 - np.median(latency[1])  # on the edge of it
    quality -= quality.mean(axis=1, keepdims=True)
    quality[1] += 0.5
    limits = (Constraints(sla_ms=300.0), "quality")
    again = outlook(sample(quality, latency), plain(2), limits, MORE, kind="timings", worlds=400, seed=SEED)
    assert again.now == 1
    assert 0.2 < again.left_now < 0.8
    calm = outlook(sample(quality, latency), plain(2), FREE, MORE, kind="timings", worlds=50, seed=SEED)
    assert not calm.flip.any()
    untimed = outlook(sample(quality), plain(2), FREE, MORE, kind="timings", worlds=50, seed=SEED)
    assert not untimed.left.any()


def test_nothing_feasible_today_may_become_feasible():
    quality = noise(1)
    limits = (Constraints(min_quality=float(quality.mean()) + 1e-6), "quality")
    found = outlook(sample(quality), plain(1), limits, MORE, worlds=400, seed=SEED)
    assert found.now is None
    assert 0.3 < found.left_now < 0.7
    assert found.final[0] == pytest.approx(found.left_now)


levels = st.sampled_from([0.1, 0.2, 0.3, 0.35])


@pytest.mark.slow
@settings(max_examples=60)
@given(
    rows=st.lists(
        st.tuples(levels, st.one_of(st.none(), levels), levels, st.integers(1, 3)), min_size=1, max_size=6
    ),
    rule=st.sampled_from(["quality", "cost", "latency"]),
    sla=st.one_of(st.none(), st.just(250.0)),
)
def test_with_nothing_added_it_is_the_rule_itself(rows, rule, sla):
    quality, latency, cost, depth = zip(*rows, strict=True)
    table = pl.DataFrame(
        {
            "run_id": [str(i) for i in range(len(rows))],
            "quality": quality,
            "latency_ms": [None if ms is None else 1000 * ms for ms in latency],
            "cost": cost,
            "passages_sent": [float(sent) for sent in depth],
        },
        schema_overrides={"latency_ms": pl.Float64},
    )
    limits = Constraints(sla_ms=sla)
    made = sample(
        np.full((len(rows), 3), NAN),
        cost=cost,
        fixed_quality=quality,
        fixed_latency=table["latency_ms"].fill_null(NAN).to_numpy(),
    )
    found = outlook(
        made, stakes(table, made.quality), (limits, rule), (1,), worlds=1, seed=SEED, kind="timings"
    )
    assert found.now == decide(table, limits, rule).chosen


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    stacks=st.integers(1, 5),
    spread=st.sampled_from([0.02, 0.1, 0.3]),
    holes=st.booleans(),
    sla=st.one_of(st.none(), st.just(250.0)),
    delta=st.sampled_from([0.0, 0.02, 0.1]),
)
@example(seed=3524, stacks=5, spread=0.02, holes=True, sla=250.0, delta=0.0)  # an average shown as the best
def test_with_nothing_added_stacks_tie_by_the_paired_difference_as_in_the_rule(  # noqa: PLR0917
    seed, stacks, spread, holes, sla, delta
):
    random = np.random.default_rng(seed)
    quality = random.normal(0.5, 0.2, 30) + random.normal(0.0, spread, (stacks, 30))
    if holes:  # one stack has only an average
        quality[0] = NAN
    means = np.array([0.5 if np.isnan(row).all() else np.nanmean(row) for row in quality])
    table = pl.DataFrame(
        {
            "run_id": [str(row) for row in range(stacks)],
            "quality": means,
            "latency_ms": random.choice([100.0, 150.0, 300.0], stacks),
            "cost": random.choice([1.0, 2.0], stacks),
            "passages_sent": random.choice([10.0, 20.0, 50.0], stacks),
        }
    )
    limits = Constraints(sla_ms=sla, delta=delta)
    made = sample(quality, cost=table["cost"], fixed_quality=means, fixed_latency=table["latency_ms"])
    held = stakes(table, quality)
    found = outlook(made, held, (limits, "quality"), (1,), worlds=1, seed=SEED)
    paired = Paired([str(row) for row in range(stacks)], quality)
    assert found.now == decide(table, limits, paired=paired).chosen


def test_same_seed_same_worlds():
    made = sample(noise(3))
    one, other = (outlook(made, plain(3), FREE, MORE, worlds=50, seed=SEED) for _ in range(2))
    assert (one.flip == other.flip).all()
    assert (one.final == other.final).all()


@pytest.mark.parametrize("more", [(), (0,), (5, 5), (10, 5)])
def test_refuses_amounts_that_do_not_rise(more):
    with pytest.raises(InputError, match="cannot be drawn"):
        outlook(sample(noise(2)), plain(2), FREE, more, seed=SEED)
    with pytest.raises(UnknownNameError):
        outlook(sample(noise(2)), plain(2), FREE, MORE, seed=SEED, kind="stacks")


def test_a_query_costs_its_judgements_and_one_call_of_every_stack():
    made = bill(np.array([2.0, 3.0, NAN]), judgements=10, usd_per_judgement=0.02)
    assert (made.judging, made.running, made.unpriced) == (pytest.approx(0.2), pytest.approx(0.005), 1)
    assert made.per_query == pytest.approx(0.205)
    assert made.affordable(12.3) == 60
    unknown = bill(np.array([NAN]), judgements=0, usd_per_judgement=1.0)
    assert unknown.running is None
    assert unknown.affordable(1.0) is None
    with pytest.raises(InputError):
        bill(np.array([1.0]), judgements=-1, usd_per_judgement=1.0)


def test_kinds_are_named():
    assert planner.KINDS == ("queries", "timings")
