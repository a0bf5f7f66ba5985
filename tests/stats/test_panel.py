"""A panel of judges: Dawid and Skene's weights, beside the majority."""

import numpy as np
import pytest

from core.stats.panel import dawid_skene, majority

# Dawid and Skene 1979, Table 1: 45 patients, five observers (the first saw them three times), classes 1 to 4
TABLE1 = [
    "111 1 1 1 1", "333 4 3 3 4", "112 2 1 2 2", "222 3 1 2 1", "222 3 2 2 2", "222 3 3 2 2", "122 2 1 1 1",
    "333 3 4 3 3", "222 2 2 2 3", "232 2 2 2 3", "444 4 4 4 4", "222 3 3 4 3", "111 1 1 1 1", "222 3 2 1 2",
    "121 1 1 1 1", "111 2 1 1 1", "111 1 1 1 1", "111 1 1 1 1", "222 2 2 2 1", "222 1 3 2 2", "222 2 2 2 2",
    "222 2 2 2 1", "222 3 2 2 2", "221 2 2 2 2", "111 1 1 1 1", "111 1 1 1 1", "232 2 2 2 2", "111 1 1 1 1",
    "111 1 1 1 1", "112 1 1 2 1", "111 1 1 1 1", "333 3 2 3 3", "111 1 1 1 1", "222 2 2 2 2", "222 3 2 3 2",
    "433 4 3 4 3", "221 2 2 3 2", "232 3 2 3 3", "333 3 4 3 2", "111 1 1 1 1", "111 1 1 1 1", "121 2 1 1 1",
    "232 2 2 2 2", "121 1 1 1 1", "222 2 2 2 2",
]  # fmt: skip


def votes(rights: list[float], items: int = 400, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    truth = (random.random(items) < 0.5).astype(np.int64)
    said = [np.where(random.random(items) < right, truth, 1 - truth) for right in rights]
    return truth, np.stack(said, axis=1)


def test_judges_weigh_what_they_tell():
    truth, said = votes([0.95, 0.75, 0.7, 0.65, 0.6])
    found = dawid_skene(said, 2)
    assert found.weight.argmax() == 0
    assert found.weight.sum() == pytest.approx(1)
    assert found.confusion[0].diagonal() == pytest.approx([0.95, 0.95], abs=0.1)
    assert (found.said == truth).mean() > (majority(said, 2) == truth).mean() + 0.03


def test_the_sizes_of_the_classes_of_the_source():
    digits = np.array([[int(letter) - 1 for letter in row if letter != " "] for row in TABLE1])
    found = dawid_skene(digits, 4)
    assert found.likely.sum(axis=1) == pytest.approx(np.ones(45))
    assert found.sizes == pytest.approx([0.40, 0.42, 0.11, 0.07], abs=0.03)  # as the paper's Table 4


def test_what_is_known_and_what_is_missing():
    truth, said = votes([0.8, 0.7], items=60)
    said[5] = -1
    known = np.where(np.arange(60) < 20, truth, -1)
    found = dawid_skene(said, 2, known)
    assert (found.said[:20] == truth[:20]).all()
    assert majority(said, 2)[5] == -1
    assert found.likely[5 if known[5] < 0 else 25].sum() == pytest.approx(1)
