"""Small samples of what `tests.store.long` does two hundred times."""

from __future__ import annotations

import pytest

from tests.store import flips, kills


@pytest.mark.slow
def test_kills_lose_nothing() -> None:
    killed, wrong = kills.repeat(6, seed=7)
    assert (killed.total(), wrong) == (6, [])


@pytest.mark.slow
def test_flipped_bits_are_found_and_mended() -> None:
    seen, wrong = flips.repeat(17, seed=7)
    assert (seen.total(), wrong) == (17, [])
