"""`kill -9` in the middle of a search with paid models: nothing is paid twice but what was under way."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.mark.extras
@pytest.mark.slow
def test_a_killed_search_ends_the_same(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    from bench import search_kills

    told = search_kills.killed(tmp_path, 3)
    assert told["kills"] == 3
    assert told["dropped"] > 0
    assert told["never asked"] == 0
    assert told["paid again"] == 0 or told["told"] > 0
    assert told["settled"] <= told["billed"] + 1e-9
    assert told["billed"] <= told["settled"] + told["lost"] + 1e-9
    left = told["trials of the study after each"]
    assert left == sorted(left)
    assert left[-1] == told["begun"]
