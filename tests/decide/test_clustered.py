"""Questions in groups: one that is asked again in its group tells nothing more."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from core.decide.beliefs import beliefs
from core.decide.joint import JointSample, chances
from core.decide.planner import outlook, stakes
from core.decide.rules import Constraints
from core.decide.ties import Paired
from core.stats.intervals import CLUSTERS

STACKS, GROUPS, EACH = 4, 12, 5
NAMES = [f"s{at}" for at in range(STACKS)]
ROWS = np.arange(1, STACKS)


def values(groups: int = GROUPS) -> np.ndarray:
    random = np.random.default_rng(1)
    return np.clip(random.normal(0.5, 0.2, groups) + random.normal(0.0, 0.08, (STACKS, groups)), 0, 1)


def again(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each question five times over, and the group of each."""
    return np.repeat(table, EACH, axis=1), np.repeat(np.arange(table.shape[1]), EACH)


def sample(table: np.ndarray, clusters: np.ndarray | None = None) -> JointSample:
    nothing = np.full(STACKS, np.nan)
    return JointSample(
        table, 100 + 40 * table, np.arange(STACKS, dtype=float), nothing, nothing, clusters=clusters
    )


def test_ties_are_told_from_groups():
    once, (table, groups) = values(), again(values())
    shift = np.zeros(STACKS)
    ends = [
        paired.ends(0, ROWS, shift, sign=1.0, tail=0.05)
        for paired in (Paired(NAMES, once), Paired(NAMES, table, clusters=groups), Paired(NAMES, table))
    ]
    assert np.allclose(ends[0], ends[1])
    assert (ends[2][1] - ends[2][0] < 0.6 * (ends[1][1] - ends[1][0])).all()


def test_below_eight_groups_only_equal_results_tie_and_nothing_is_believed():
    table, groups = again(values(CLUSTERS - 1))
    table[1] = table[0]
    paired = Paired(NAMES, table, clusters=groups)
    low, high = paired.ends(0, ROWS, np.zeros(STACKS), sign=1.0, tail=0.05)
    assert (low.tolist(), high.tolist()) == ([0.0, -np.inf, -np.inf], [0.0, np.inf, np.inf])
    assert paired.units == CLUSTERS - 1
    assert beliefs(sample(table, groups), seed=1) is None
    assert beliefs(sample(table), seed=1) is not None


def test_what_is_believed_rests_on_groups():
    table, groups = again(values())
    one, other = (beliefs(each, seed=1, draws=2000) for each in (sample(values()), sample(table, groups)))
    assert one is not None
    assert other is not None
    assert np.allclose(one.quality, other.quality, atol=1e-6)
    assert np.allclose(one.expected, other.expected, atol=1e-6)


def test_chances_count_resamples_of_groups():
    table, groups = again(values())
    limits = Constraints(sla_ms=121.0)
    one, other = (
        chances(each, limits, resamples=500, seed=1) for each in (sample(values()), sample(table, groups))
    )
    assert np.allclose(one.best, other.best)
    assert np.abs(one.sla - other.sla).max() < 0.1  # the median of five times as many, interpolated elsewhere
    alone = chances(sample(table), limits, resamples=500, seed=1)
    assert np.abs(alone.sla - 0.5).min() > np.abs(other.sla - 0.5).min()


def test_further_questions_come_in_groups_of_the_same_size():
    once, (table, groups) = values(), again(values())
    nothing = [None] * STACKS
    table_of = pl.DataFrame(
        {"run_id": NAMES, "quality": once.mean(axis=1), "latency_ms": nothing, "cost": nothing},
        schema_overrides={"latency_ms": pl.Float64, "cost": pl.Float64},
    )
    held = [stakes(table_of, each, clusters=clusters) for each, clusters in ((once, None), (table, groups))]
    assert np.allclose(held[0].reach, held[1].reach, equal_nan=True)
    limits = (Constraints(), "quality")
    one = outlook(sample(once), held[0], limits, [12, 24], worlds=200, seed=1)
    other = outlook(sample(table, groups), held[1], limits, [60, 120], worlds=200, seed=1)
    assert np.allclose(one.flip, other.flip)
    assert np.allclose(one.final, other.final)
    assert one.left_now == pytest.approx(other.left_now)
