"""The second implementation of the rule against what can be worked out by hand."""

from math import erf, sqrt

import numpy as np
import pytest

from tests.oracle.rule import Choice, Question, answer, choose, posterior_means, prior, quantile

UNKNOWN = np.nan
CALM = np.tile([0.4, 0.6], 20)  # one stack's 40 queries


def asked(quality, cost=None, latency=None, **words):
    quality = np.array(quality, float)
    plain = np.ones(len(quality))
    return Question(
        names=tuple(f"s{place}" for place in range(len(quality))),
        quality=quality,
        latency=np.array(latency, float) if latency is not None else plain,
        cost=np.array(cost, float) if cost is not None else plain,
        **words,
    )


@pytest.mark.parametrize(
    ("share", "degrees", "value"), [(0.95, 7, 1.894579), (0.95, 29, 1.699127), (0.975, 9, 2.262157)]
)
def test_quantiles_of_student_are_those_of_the_tables(share, degrees, value):
    assert quantile(share, degrees) == pytest.approx(value, abs=1e-5)


WORSE = CALM - 0.005  # surely within .01, as it is the same on every query
FAR = CALM - 0.02
DOUBTFUL = CALM - np.tile([0.3, -0.28], 20)  # .01 worse on average, by 40 queries that differ widely


@pytest.mark.parametrize(
    ("question", "choice"),
    [
        (asked([CALM, WORSE], cost=[2, 1]), Choice(1, frozenset({0}))),
        (asked([CALM, WORSE], cost=[2, 1.99]), Choice(0, frozenset({1}))),
        (asked([CALM, WORSE], cost=[2, 1], latency=[5, 90]), Choice(0)),  # slower by more than the band
        (asked([CALM, WORSE], cost=[2, 1], latency=[90, 5]), Choice(1, frozenset({0}))),
        (asked([CALM, FAR], cost=[2, 1]), Choice(0)),
        (asked([CALM, FAR], cost=[2, 1], delta=0.021), Choice(1, frozenset({0}))),
        (asked([CALM, DOUBTFUL], cost=[2, 1]), Choice(0)),  # not surely: the dearer ships
        (asked([CALM, WORSE], cost=[1, UNKNOWN]), Choice(0, frozenset({1}))),
        (asked([CALM, WORSE], cost=[UNKNOWN, 1]), Choice(1, frozenset({0}))),
        (asked([FAR, CALM], cost=[1, UNKNOWN]), Choice(1)),  # no budget: an unknown cost may ship
        (asked([FAR, CALM], cost=[1, UNKNOWN], budget=5), Choice(0)),
        (asked([CALM, WORSE], cost=[2, 1], latency=[5, UNKNOWN]), Choice(0)),
        (asked([CALM, WORSE], latency=[UNKNOWN, 5], sla=9), Choice(1)),
        (asked([CALM, WORSE], sla=0.5), Choice(None)),
        (asked([CALM, WORSE, FAR], higher=False), Choice(2)),
        (asked([CALM, WORSE, FAR], higher=False, floor=0.49), Choice(2)),
        (asked([CALM, WORSE, FAR], cost=[3, 1.005, 1], rule="cost"), Choice(1)),
        (asked([CALM, WORSE, FAR], cost=[3, 1.005, 1], rule="cost", floor=0.499), Choice(0)),
        (asked([CALM, WORSE, FAR], latency=[99, 50, 9], rule="latency"), Choice(1)),
        (asked([CALM, WORSE, FAR], latency=[99, UNKNOWN, 9], rule="latency"), Choice(2)),
        (
            asked([CALM[:6], WORSE[:6], CALM[:6]], cost=[2, 1, 1]),
            Choice(2, frozenset({0})),
        ),  # few: equal ones
        (asked([0.5004, 0.4996, 0.4994], cost=[2, 1, 0.5]), Choice(1, frozenset({0}))),  # .500, .500, .499
    ],
)
def test_what_ships_and_what_ties(question, choice):
    assert answer(question, draws=100).choices == (choice,)
    assert choose(question, 0.0) == choice


@pytest.mark.parametrize(
    ("words", "queries", "delta"),
    [
        ({}, 40, 0.01),
        ({"binary": True}, 40, 0.025),
        ({"binary": True}, 400, 0.01),
        ({"span": None}, 40, 0.0),
        ({"span": None, "delta": 0.3}, 40, 0.3),
    ],
)
def test_the_difference_that_does_not_matter(words, queries, delta):
    assert asked(np.zeros((2, queries)), **words).zone == delta


def test_the_share_of_draws_is_the_normal_probability_for_two_stacks():
    random = np.random.default_rng(1)
    quality = np.array([[0.52], [0.48]]) + random.normal(0, 0.3, (2, 400))
    found = answer(asked(quality), draws=40_000)
    apart = quality[0] - quality[1]
    gap, noise = apart.mean(), apart.var(ddof=1) / 400
    spread = gap**2 / 2 - noise / 4  # each lies half of the gap from the mean of the two
    kept = spread / (spread + noise / 4)
    expected = (1 + erf((kept * gap + 0.01) / sqrt(2 * noise))) / 2
    assert found.pgs == pytest.approx(expected, abs=0.01)


def test_equal_stacks_count_once():
    random = np.random.default_rng(2)
    quality = random.normal(0.5, 0.2, (3, 60))
    twice = asked(np.vstack([quality, quality[:1], quality[:1]]))
    once = asked(quality)
    best = answer(once).chosen
    assert answer(twice).pgs == pytest.approx(answer(once).pgs, abs=1e-12)
    assert posterior_means(twice)[best] == pytest.approx(posterior_means(once)[best], abs=1e-12)


def test_a_prior_of_two_groups_is_found():
    random = np.random.default_rng(3)
    true = np.repeat([0.3, 0.7], 10)
    means = posterior_means(asked(true[:, None] + random.normal(0, 0.1, (20, 400))))
    assert np.abs(means - true).max() < 0.01


def test_no_prior_is_likelier():
    random = np.random.default_rng(4)
    likely = np.exp(-((random.normal(0, 2, (15, 1)) - np.linspace(-5, 5, 200)) ** 2) / 2)
    weights = prior(likely)
    value = np.log(likely @ weights).sum()
    for other in random.dirichlet(np.full(200, 0.05), 300):
        assert np.log(likely @ (0.9 * weights + 0.1 * other)).sum() <= value + 1e-3
    assert weights.sum() == pytest.approx(1)


def test_what_is_cheaper_or_faster_is_offered():
    quality = [CALM, FAR, FAR - 0.01, FAR - 0.02]
    found = answer(asked(quality, cost=[4, 2, 3, 1], latency=[90, 90, 90, 10]), draws=1_000)
    assert found.chosen == 0
    assert [each.place for each in found.alternatives] == [1, 3]
    first, second = found.alternatives
    assert (first.difference, first.saves_usd, first.saves_ms) == pytest.approx((-0.02, 2, 0))
    assert (first.low, first.high) == pytest.approx((-0.02, -0.02))
    assert (second.saves_usd, second.saves_ms) == pytest.approx((3, 80))


def test_a_draw_without_a_feasible_stack_counts_against():
    random = np.random.default_rng(5)
    latency = np.where(np.arange(40) < 21, 10.0, 30.0)  # the median of a resample is below 20 in six of ten
    ms = [latency, latency + 100, latency / 2]
    found = answer(asked([CALM, FAR, FAR - 0.1], latency=ms, sla=20, band=0))
    median = np.median(latency[random.integers(0, 40, (20_000, 40))], axis=1)
    assert found.pgs == pytest.approx((median <= 20).mean(), abs=0.01)
