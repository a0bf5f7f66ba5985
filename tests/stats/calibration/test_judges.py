"""Judges set right by people hold what they state, at fewer trials than docs/statistics.md has."""

import numpy as np
import pytest

from bench.calibration import SEED
from bench.calibration.judges import GOOD, documents, held, rankings
from core.stats.corrected import correct


@pytest.mark.slow
@pytest.mark.parametrize(("graded", "whole"), [(100, False), (400, False), (10, True)])
def test_answers_of_documents_are_held(graded: int, whole: bool):
    random = np.random.default_rng(SEED)
    told = [correct(documents(random, 20, 50, graded, whole=whole)) for _ in range(300)]
    assert 91 <= held(told, GOOD) <= 99  # 87, 70 and 61 where each question is its own


@pytest.mark.slow
def test_thirty_graded_questions_set_a_ranking_right_and_make_it_surer():
    random = np.random.default_rng(SEED)
    told = [correct(rankings(random)) for _ in range(400)]
    assert 92 <= held(told, GOOD) <= 98
    surer = np.std([one.value for one in told]) / np.std([one.alone for one in told])
    assert 0.7 <= surer <= 0.86  # about a fifth less, as arXiv:2606.05308 has it


def test_few_documents_say_nothing():
    few = correct(documents(np.random.default_rng(1), 20, 50, 7, whole=True))
    assert few.graded == 350
    assert few.units == 7
    assert np.isnan([few.low, few.high, few.alone_low]).all()
