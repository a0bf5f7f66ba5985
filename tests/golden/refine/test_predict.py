"""Simulated refinements: the figures of metrics.md §7, and predictions from a measured noise."""

from datetime import date
from itertools import combinations

import numpy as np
import pytest

from core.errors import InputError
from core.golden.refine.base import RefineSettings
from core.golden.refine.predict import (
    GradeNoise,
    World,
    affordable,
    noise_of,
    predict,
    simulate,
    tau,
    usd_per_call,
    ways_of,
    world_of,
)
from core.prices import Price, PriceBook

NEAR = 0.03


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "settings", "low", "high", "turns"),
    [
        (0.5, {"confirmations": 2, "stable": 15}, 0.81, 0.84, 147),
        (0.5, {"confirmations": 3, "stable": 15}, 0.86, 0.88, 220),
        (1.0, {"confirmations": 2, "stable": 15}, 0.68, 0.72, None),
        (1.0, {"confirmations": 3, "stable": 15}, 0.80, 0.80, 205),
        (1.5, {"confirmations": 2, "stable": 15}, 0.60, 0.62, None),
        (1.5, {"confirmations": 3, "stable": 15}, 0.74, 0.74, 200),
        (0.5, {"confirmations": 0, "stable": 15, "turns": 2000}, 0.88, 0.88, None),
        (1.0, {"confirmations": 0, "stable": 15, "turns": 2000}, 0.86, 0.86, None),
        (1.5, {"confirmations": 0, "stable": 15, "turns": 2000}, 0.85, 0.85, None),
        (0.3, {"stable": 3}, 0.85, 0.85, 54),
        (0.8, {"confirmations": 1, "stable": 5}, 0.586, 0.586, None),  # the "fast" profile
        (0.3, {"method": "map", "turns": 50, "sure": 1.0}, 0.879, 0.879, 50),
        (1.0, {"method": "map", "turns": 100, "sure": 1.0}, 0.803, 0.803, 100),
        (1.0, {"method": "map", "turns": 200, "sure": 1.0}, 0.856, 0.856, 200),
        (1.5, {"method": "map", "turns": 100, "sure": 1.0}, 0.744, 0.744, 100),
        (1.5, {"method": "map", "turns": 200, "sure": 1.0}, 0.789, 0.789, 200),
    ],
)
def test_the_figures_of_the_definitions(
    noise: float, settings: dict[str, object], low: float, high: float, turns: int | None
):
    settings = {"turns": 1000, **settings}
    found = simulate(RefineSettings(**settings), World(noise=noise), runs=100)
    assert low - NEAR <= found.tau <= high + NEAR
    assert found.grades == pytest.approx(0.69, abs=NEAR)
    assert turns is None or found.turns == pytest.approx(turns, rel=0.2)
    if settings.get("confirmations") == 1:
        assert found.gain_high < 0, "worse than grades"


def test_a_judge_without_noise_finds_the_order():
    found = simulate(RefineSettings(stable=15), World(noise=0, items=12), runs=5)
    assert found.low <= found.tau <= found.high
    assert found.tau > 0.97
    assert (found.contradictions, found.stable) == (0, 1)
    assert simulate(RefineSettings(stable=15), World(noise=0, items=12), runs=5) == found, "the seed decides"


def test_methods_see_the_same_queries():
    few = {"turns": 10, "runs": 4}
    one, other = (
        simulate(RefineSettings(method=method, turns=10), World(noise=1), runs=few["runs"])
        for method in ("locks", "map")
    )
    assert one.grades == other.grades
    assert one.tau != other.tau


def test_fewer_items_than_a_batch_stay_as_graded():
    found = simulate(RefineSettings(), World(noise=1, items=4), runs=3)
    assert (found.tau, found.gain, found.turns) == (found.grades, 0, 0)


@pytest.mark.parametrize(
    "world",
    [
        {"items": 1},
        {"items": 2000},
        {"noise": -1},
        {"noise": np.nan},
        {"noise": np.inf},
        {"spread": 0},
        {"mean": 9},
    ],
)
def test_worlds_that_cannot_be(world: dict[str, float]):
    with pytest.raises(InputError):
        World(**{"noise": 1, **world})


@pytest.mark.parametrize("runs", [0, -1, 10**6])
def test_runs_that_cannot_be(runs: int):
    with pytest.raises(InputError):
        simulate(RefineSettings(), World(noise=1), runs=runs)


def test_tau_counts_pairs():
    truth = np.array([3.0, 1.0, 2.0, 0.0])
    for order in ([0, 2, 1, 3], [3, 1, 2, 0], [1, 0, 3, 2]):
        right = [truth[one] > truth[other] for one, other in combinations(order, 2)]
        assert tau(order, truth) == pytest.approx(2 * np.mean(right) - 1)


def repeated(sigma: float, batches: int, times: int, seed: int) -> list[list[list[int]]]:
    """Orders of batches of five by a judge with noise, in standard deviations of the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(batches, 1, 5))
    seen = truth + rng.normal(0, sigma, (batches, times, 5))
    return np.argsort(-seen, axis=2).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [0.3, 0.8, 1.5])
def test_the_noise_is_found_from_repeats(sigma: float):
    found = noise_of(repeated(sigma, 2000, 3, 1))
    assert found.sigma == pytest.approx(sigma, rel=0.05)
    assert (found.batches, found.orders) == (2000, 6000)
    covered = 0
    for seed in range(60):
        noise = noise_of(repeated(sigma, 30, 3, seed))
        covered += noise.low <= sigma <= noise.high
    assert covered >= 51, "a 95 % interval from 30 batches"


def test_the_ends_of_the_noise():
    same = [[[3, 1, 2], [3, 1, 2]], [[5, 4], [5, 4]]]
    assert noise_of(same) == GradeNoise(0.0, 0.0, 0.0, 1.0, 2, 4)
    opposite = noise_of([[[1, 2, 3], [3, 2, 1]]])
    assert (opposite.sigma, opposite.agreement) == (10, -1)
    assert np.isnan([opposite.low, opposite.high]).all(), "one batch has no interval"
    for bad in ([], [[[1, 2]]], [[[1, 2], [1, 3]]], [[[1], [1]]]):
        with pytest.raises(InputError):
            noise_of(bad)


def test_the_world_of_some_grades():
    rng = np.random.default_rng(0)
    truth = rng.normal(3.0, 0.9, (40, 36)) + rng.normal(0, 0.35, (40, 36))
    grades = {f"q{row}": values for row, values in enumerate(np.clip(np.round(truth), 1, 5).tolist())}
    world = world_of({**grades, "one": [4]}, noise=0.5)
    assert (world.items, world.noise) == (36, pytest.approx(0.5 * world.spread))
    assert world.spread == pytest.approx(0.9, abs=0.07)
    assert world.mean == pytest.approx(3, abs=0.1)
    assert world_of({"same": [5, 5, 5]}).spread > 0
    with pytest.raises(InputError):
        world_of({"one": [4]})


def test_dollars_of_a_call():
    priced = {
        "provider": "v",
        "currency": "USD",
        "source": "s",
        "looked_up": date(2026, 1, 1),
        "confirmed": True,
    }
    prices = tuple(
        Price(item="m", unit=unit, price=price, per=1e6, **priced)
        for unit, price in (("input_tokens", 2.0), ("output_tokens", 8.0))
    )
    assert usd_per_call(PriceBook("b", prices), "m", 2500, 100) == pytest.approx(0.005 + 0.0008)
    assert usd_per_call(PriceBook("b", prices[:1]), "m", 2500, 100) is None
    assert usd_per_call(PriceBook("b", prices), "other", 2500, 100) is None


GRADES = {f"q{query}": [5] * 4 + [4] * 8 + [3] * 12 + [2] * 8 + [1] * 4 for query in range(10)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "recommended"),
    [
        (GradeNoise(0.3, 0.2, 0.4, 0.7, 10, 30), {"locks", "map"}),
        (GradeNoise(9.0, 5.0, 10.0, 0.0, 10, 30), {"none"}),
        (GradeNoise(0.3, 0.1, 10.0, 0.7, 2, 4), {"none"}),  # too little is known of the judge
    ],
)
def test_what_is_recommended(noise: GradeNoise, recommended: set[str]):
    found = predict(noise, GRADES, RefineSettings(turns=60), 0.01, runs=8)
    assert found.recommended in recommended
    none, locks, least = found.ways.to_dicts()
    assert found.ways["method"].to_list() == ["none", "locks", "map"]
    assert (none["tau"], none["turns"], none["usd"]) == (none["grades"], 0, 0)
    assert locks["grades"] == least["grades"] == none["tau"]
    assert locks["usd"] == pytest.approx(0.01 * locks["turns"] * 10)
    assert found.ways.filter("recommended")["method"].to_list() == [found.recommended]


def test_without_an_interval_or_a_price_it_says_so():
    found = predict(
        GradeNoise(0.3, np.nan, np.nan, 0.7, 1, 2), GRADES, RefineSettings(turns=30), None, runs=3
    )
    assert found.ways["worst"].to_list() == [None] * 3
    assert found.ways["usd"].to_list() == [0.0, None, None]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "turns", "best"), [(1.0, 60, "locks"), (1.0, 300, "map"), (0.5, 50, "map")]
)
def test_which_way_is_recommended_depends_on_noise_and_calls(noise: float, turns: int, best: str):
    found = ways_of(RefineSettings(turns=turns), World(noise=noise), 0.001, 64, runs=20)
    assert found.filter("recommended")["method"].to_list() == [best]
    assert (found["turns"] <= turns).all()


@pytest.mark.slow
def test_a_budget_limits_the_calls_and_so_the_way():
    settings = RefineSettings(turns=300)
    assert affordable(settings, None, 64, 1.0) == affordable(settings, 0.0, 64, 1.0) == settings
    assert affordable(settings, 0.01, 64, None) == settings
    assert affordable(settings, 0.01, 64, 38.4).turns == 60
    assert affordable(settings, 0.01, 64, 0.0).turns == 1
    noise = GradeNoise(1 / 1.1, np.nan, np.nan, 0.5, 10, 30)
    rich, poor = (
        predict(noise, GRADES, settings, 0.01, runs=20, limit=limit) for limit in (None, 10 * 0.01 * 50)
    )
    assert (rich.recommended, poor.recommended) == ("map", "locks")
