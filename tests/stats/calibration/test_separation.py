"""The interval of an area holds it, at fewer trials than docs/statistics.md has."""

import pytest

from bench.calibration.separation import DOCUMENTS, SIZES, grouped, held


@pytest.mark.slow
@pytest.mark.parametrize(("members", "others"), SIZES)
def test_the_interval_holds_the_area(members: int, others: int):
    assert 92.5 <= held(members, others, 500) <= 99  # DeLong's on the logit: 54 (5 against 5) to 95


@pytest.mark.slow
def test_members_that_scatter_more_are_held_too():
    assert 92 <= held(5, 20, 500, 2.0) <= 99  # 64 by DeLong's on the logit


@pytest.mark.slow
@pytest.mark.parametrize(("documents", "each"), DOCUMENTS)
def test_documents_are_drawn_whole(documents: int, each: int):
    assert 90 <= grouped(documents, each, 400) <= 99  # each question alone: 89, 80, 84
