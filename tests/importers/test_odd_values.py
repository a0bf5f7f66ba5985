"""Values of other kinds than expected anywhere in sound files: an error with a name, or sound rows."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.importers.fuzzing import CASES, chance, tried
from tests.importers.odd_files import odd_file
from tests.importers.samples import SAMPLES

EACH = CASES // 3 // len(SAMPLES) + 1
MOST = EACH + 300


@pytest.mark.parametrize("name", SAMPLES)
def test_odd_values(name):
    """At least so many; and of every sample some are refused and some are taken."""
    source = chance(f"odd {name}")
    outcomes = [tried(odd_file(SAMPLES[name][1], source)) for _ in range(EACH)]
    while set(outcomes) != {"refused", "taken"} and len(outcomes) < MOST:
        outcomes.append(tried(odd_file(SAMPLES[name][1], source)))
    assert set(outcomes) == {"refused", "taken"}


@pytest.mark.slow
@settings(max_examples=max(40, CASES // 30))
@given(name=st.sampled_from(sorted(SAMPLES)), source=st.randoms(use_true_random=False))
def test_odd_values_that_shrink(name: str, source: random.Random):
    """As above with choices that hypothesis makes, so that a case that fails is small."""
    tried(odd_file(SAMPLES[name][1], source))
