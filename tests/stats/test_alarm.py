"""The alarm of live quality against its definition, on a planted fall and where nothing falls."""

import numpy as np
import pytest

from core.stats.alarm import watch

BETS = (0.1, 0.2, 0.35, 0.6, 0.95)


def by_definition(values, first, seed):
    """Capital of every beginning and every bet, summed apart."""
    lots = np.random.default_rng(seed).random(len(values))
    told = []
    for last in range(first, len(values)):
        total = 0.0
        for bet in BETS:
            for begin in range(first, last + 1):
                turn = begin - first + 1
                capital = 1 / (turn * (turn + 1))
                for at in range(begin, last + 1):
                    before = list(values[:at])
                    below = sum(other < values[at] for other in before)
                    same = sum(other == values[at] for other in before)
                    rank = (below + lots[at] * (same + 1)) / (len(before) + 1)
                    capital *= 1 + bet * (1 - 2 * rank)
                total += capital
        told.append(total / len(BETS) + 1 / (last - first + 2))
    return told


@pytest.mark.parametrize("seed", [1, 2])
def test_evidence_equals_its_definition(seed: int):
    values = np.random.default_rng(seed).choice([0.0, 0.5, 1.0], 24)
    found = watch(values, first=10, seed=seed)
    assert found.evidence[:10].tolist() == [1.0] * 10
    np.testing.assert_allclose(found.evidence[10:], by_definition(values, 10, seed), rtol=1e-12)


def test_a_fall_raises_it_and_a_rise_does_not():
    random = np.random.default_rng(5)
    before, after = random.uniform(0.5, 1.0, 60), random.uniform(0.2, 0.7, 60)
    fell, rose = watch(np.append(before, after)), watch(np.append(after, before))
    assert fell.raised is not None
    assert 60 <= fell.raised < 80
    assert fell.evidence[fell.raised] >= fell.needed == 20
    assert rose.raised is None
    assert watch(before[:30]).raised is None
