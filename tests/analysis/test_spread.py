"""The spread that plans of questions rest on: the collection's own where its runs tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.analysis.spread import MEASURED, Spread, spread_of
from tests.stores import Lab

QUESTIONS = 12
GRADES = {f"q{at}": {"good": 5} for at in range(QUESTIONS)}


def ranks(*at: int) -> dict[str, list[str]]:
    return {
        f"q{number}": [*(f"x{place}" for place in range(1, rank)), "good"] for number, rank in enumerate(at)
    }


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ({}, MEASURED),
        ({"one": [1] * QUESTIONS}, MEASURED),
        ({"one": [1] * QUESTIONS, "same": [1] * QUESTIONS}, MEASURED),
        # RR 1 against 1/2 in every other question: differences 0 and .5
        ({"one": [1] * QUESTIONS, "two": [1, 2] * (QUESTIONS // 2)}, Spread(0.2611, 2, QUESTIONS)),
    ],
)
def test_the_spread_is_that_of_the_runs(tmp_path: Path, runs: dict[str, list[int]], expected: Spread):
    made = Lab().judge(GRADES)
    for name, at in runs.items():
        made.run(name, final=ranks(*at))
    found = spread_of(made.write(tmp_path / "store").read(), "lab")
    assert found.sd == pytest.approx(expected.sd, abs=1e-4)
    assert (found.stacks, found.questions) == (expected.stacks, expected.questions)


def test_of_an_unknown_collection_it_is_the_measured_one(tmp_path: Path):
    assert spread_of(Lab().write(tmp_path / "store").read(), "nowhere") == MEASURED
