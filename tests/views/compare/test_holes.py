"""What judging more passages could make of a comparison, against a store in which just that was judged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from core.analysis import paired as compare
from core.analysis.paired import if_judged
from core.analysis.workspace.scope import Quality
from core.stats.significance import Setup
from core.store import Snapshot
from core.views.compare.words import doubt
from tests.stores import Lab
from tests.views.made import LAB

GRADES = {"q1": {"a": 5, "b": 4, "c": 1}, "q2": {"a": 4, "d": 3}}
AHEAD = {"q1": ["a", "x", "b"], "q2": ["a", "d", "u"]}
BEHIND = {"q1": ["x", "y", "c"], "q2": ["z", "v", "a"]}
SETUP = Setup(resamples=50, permutations=50)
NAMES = {"one": "ahead", "two": "behind"}


def stored(path: Path, grades: dict[str, dict[str, int]]) -> Snapshot:
    return Lab().judge(grades).run("ahead", final=AHEAD).run("behind", final=BEHIND).write(path).read()


def compared(snapshot: Snapshot, quality: Quality, order: Sequence[str]) -> pl.DataFrame:
    names = {NAMES[name]: name for name in order}
    return compare.differences(compare.scored(snapshot, LAB, quality, names), [0], [1], SETUP)


def judged(own: int, other: int, both: int, k: int) -> dict[str, dict[str, int]]:
    """The golden set with the holes of the Top-K graded: of the one ahead alone, of the other, of both."""
    made = {query: dict(grades) for query, grades in GRADES.items()}
    for query, grades in made.items():
        mine, theirs = set(AHEAD[query][:k]), set(BEHIND[query][:k])
        for passage in (mine | theirs) - set(grades):
            shared = passage in mine and passage in theirs
            grades[passage] = both if shared else own if passage in mine else other
    return made


@pytest.mark.parametrize("order", [("one", "two"), ("two", "one")])
@pytest.mark.parametrize("name", ["RA-nWG@3", "Precision4+@2", "nDCG@3", "N-Recall4+@2"])
def test_the_case_that_is_worst_for_the_one_ahead(tmp_path: Path, name: str, order: tuple[str, str]):
    bare, _, k = name.partition("@")
    quality = Quality(bare, int(k))
    snapshot = stored(tmp_path / "s", GRADES)
    rows = compared(snapshot, quality, order)
    (found,) = if_judged(rows, snapshot, LAB, quality, NAMES)
    ends = [
        compared(stored(tmp_path / f"s{both}", judged(1, 5, both, int(k))), quality, order)["difference"][0]
        for both in (1, 5)
    ]
    sign = -1 if order[0] == "one" else 1
    assert rows["difference"][0] * sign > 0
    assert found == pytest.approx(min(ends) if sign > 0 else max(ends), abs=1e-12)
    told = doubt(rows.with_columns(if_judged=found, verdict=pl.lit("worse")), quality)
    assert (f"two would lead by {abs(found):.3f}" in told) is (found * sign < 0)


def test_without_a_difference_or_a_way_to_judge_it_nothing_is_said(tmp_path: Path):
    snapshot = stored(tmp_path / "s", GRADES)
    quality = Quality("Precision4+", 1)
    rows = compared(snapshot, quality, ("one", "two"))
    same = rows.with_columns(difference=pl.lit(0.0))
    assert if_judged(same, snapshot, LAB, quality, NAMES).to_list() == [None]
    assert if_judged(rows, snapshot, LAB, Quality("GMAP", 3), NAMES).to_list() == [None]
    unsure = rows.with_columns(if_judged=-rows["difference"], verdict=pl.lit(compare.OPEN))
    assert doubt(unsure, quality) == ""
