"""Judges corrected by people: intervals that hold, weights that help, what the sources print."""

from __future__ import annotations

import numpy as np
import pytest

from bench.judges import GOOD, KINDS, Case, choose, simulate
from core.stats.corrected import FEW, Errors, ScoredLabels, correct, rogan_gladen

NAN = np.nan


def some(n: int, of: int, *, seed: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the truth of answers, what a judge says, and the first n as people graded them."""
    random = np.random.default_rng(seed)
    truth = (random.random(of) < 0.6).astype(float)
    judged = np.where(random.random(of) < 0.85, truth, 1 - truth)
    return truth, judged, np.where(np.arange(of) < n, truth, NAN)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("graded", "right"), [(40, 0.75), (100, 0.6), (100, 0.95)])
def test_intervals_hold_the_truth_and_are_not_wider_than_people_alone(kind: str, graded: int, right: float):
    told = simulate(Case(kind, GOOD[1], right, graded), trials=200)
    assert told.held >= 0.90  # 200 trials: within 3.2 standard errors of 95 %
    assert told.widest <= 1.0 + 1e-9


def test_errors_that_nobody_has_seen_are_allowed_for():
    told = simulate(Case("grades 1 to 5", 0.9, 0.95, 40), trials=300)
    assert told.held >= 0.91  # without them about 85 %
    assert told.widest <= 1.0 + 1e-9


def test_shares_near_an_end_are_narrower_than_people_alone_and_hold():
    told = simulate(Case("yes or no", 0.9, 0.75, 40), trials=200)
    assert told.held >= 0.90
    assert told.width < 0.85  # Wilson's of as many as it is worth: .86


def test_a_share_of_which_no_error_was_seen_has_an_interval_inside_0_to_1():
    truth = np.repeat([1.0, 0.0], [380, 20])
    told = correct(ScoredLabels(np.where(np.arange(400) % 10 == 0, truth, NAN), truth))
    assert told.value == pytest.approx(truth.mean())
    assert 0 <= told.low < told.value < told.high <= 1
    assert told.high - told.low < 0.75 * (told.alone_high - told.alone_low)


def test_two_judges_who_say_the_same_count_as_one():
    _, judged, graded = some(60, 600)
    one = correct(ScoredLabels(graded, judged))
    both = correct(ScoredLabels(graded, np.stack([judged, judged], axis=1)))
    assert (both.low, both.high) == pytest.approx((one.low, one.high), abs=2e-3)


def test_of_two_stacks_the_better_is_chosen_although_the_judge_likes_the_worse():
    told = choose(Case("difference", 0.55, 0.75, 100), -0.8, trials=40, seed=1)
    assert told["judge"] == 0
    assert told["corrected"] > 0.8
    assert told["held"] > 0.8


def test_a_good_judge_is_worth_grades_and_a_useless_one_costs_none():
    _, judged, graded = some(60, 600)
    told = correct(ScoredLabels(graded, judged))
    assert told.graded == 60
    assert told.questions == 600
    assert told.effective > 1.5 * 60
    noise = np.random.default_rng(0).random(600)
    assert correct(ScoredLabels(graded, noise)).effective == pytest.approx(60, rel=0.1)


def test_a_judge_that_says_the_same_of_all_changes_nothing():
    _, _, graded = some(60, 600)
    told = correct(ScoredLabels(graded, np.ones(600)))
    assert (told.value, told.low, told.high) == (told.alone, told.alone_low, told.alone_high)
    assert told.moved == pytest.approx(told.alone - 1)


def test_where_all_is_graded_people_decide():
    truth, judged, _ = some(0, 80)
    told = correct(ScoredLabels(truth, judged))
    assert told.value == pytest.approx(truth.mean())
    assert told.effective == pytest.approx(80)


def test_the_weight_is_that_of_the_regression_estimator():
    _, judged, graded = some(200, 1000)
    known = ~np.isnan(graded)
    slope = np.cov(graded[known], judged[known])[0, 1] / np.var(judged[known], ddof=1)
    expect = graded[known].mean() + slope * (judged.mean() - judged[known].mean())
    assert correct(ScoredLabels(graded, judged)).value == pytest.approx(expect, abs=2e-3)


def test_influence_adds_up_to_the_difference_of_two_stacks():
    truth, judged, graded = some(80, 400)
    _, other, graded_other = some(80, 400, seed=4)
    both = correct(ScoredLabels(graded, judged), ScoredLabels(graded_other, other))
    assert both.graded == 80
    assert both.influence.shape == (400,)
    same = correct(ScoredLabels(graded, judged), ScoredLabels(graded, judged))
    assert same.value == pytest.approx(0)
    assert truth.mean() != other.mean()


@pytest.mark.parametrize("n", [0, 1, FEW - 1])
def test_too_few_grades_have_no_interval(n: int):
    _, judged, graded = some(n, 100)
    told = correct(ScoredLabels(graded, judged))
    assert np.isnan(told.low)
    assert np.isnan(told.high)


def test_more_grades_narrow_it_until_the_judge_alone_is_left():
    _, judged, graded = some(50, 500)
    told = correct(ScoredLabels(graded, judged))
    widths = [told.width(more) for more in (0, 10, 100, 10**9)]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] == pytest.approx(told.high - told.low)
    assert widths[-1] > 0
    more = np.where(np.arange(500) < 100, some(500, 500)[0], NAN)
    assert correct(ScoredLabels(more, judged)).width() == pytest.approx(told.width(50), rel=0.25)


def test_rogan_gladen_as_the_source_has_it():
    half = np.repeat([0.0, 1.0], 5000)
    point, low, high = rogan_gladen(half, Errors(right_yes=4500, yes=5000, right_no=4500, no=5000))
    assert point == pytest.approx(0.5)
    assert 0.48 < low < 0.5 < high < 0.52
    # sensitivity .9, specificity .8, share said good .62: (.62 + .8 − 1) / (.9 + .8 − 1) = .6
    said = np.repeat([1.0, 0.0], [62, 38])
    assert rogan_gladen(said, Errors(90, 100, 80, 100))[0] == pytest.approx(0.6)


@pytest.mark.parametrize("errors", [Errors(5, 10, 5, 10), Errors(0, 0, 5, 10), Errors(5, 10, 0, 0)])
def test_a_judge_no_better_than_chance_corrects_nothing(errors: Errors):
    assert np.isnan(rogan_gladen(np.array([0.0, 1.0]), errors)).all()
