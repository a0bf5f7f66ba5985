"""Comparing on well judged queries only, where stacks are not judged alike."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analysis.workspace.narrow import (
    NarrowChoices,
    Offer,
    about_judging,
    about_offer,
    judging,
    judging_offer,
    narrow,
)
from core.analysis.workspace.query_sets import among, judged_everywhere, well_judged
from core.analysis.workspace.scope import Judging, Latency, Quality, Scope
from core.analysis.workspace.scores import Evidence
from core.errors import InputError
from core.store import Snapshot
from tests.stores import Lab
from tests.views.made import BOOK, LAB, table

AT_2 = Quality("RR", 2)
ALL = [f"q{number:02}" for number in range(1, 31)]
GRADES = {query: {f"p-{query}": 5, f"x-{query}": 1} for query in ALL}


def ranked(holes: Mapping[str, int]) -> dict[str, list[str]]:
    """Top-2 with so many unjudged passages before the right one."""
    return {
        query: [*(f"new-{place}" for place in range(count)), f"p-{query}", f"x-{query}"]
        for query, count in holes.items()
    }


@pytest.fixture
def uneven(tmp_path: Path) -> Snapshot:
    """Run a is judged throughout; of b 12 queries are, 8 have one hole, 10 two, before the right passage."""
    holes = {query: 0 if place < 12 else 1 if place < 20 else 2 for place, query in enumerate(ALL)}
    lab = Lab().judge(GRADES).judge({query: {"p": 5} for query in ALL[:11]}, "other")
    return (
        lab.run("a", final=ranked(dict.fromkeys(ALL, 0)))
        .run("b", final=ranked(holes))
        .write(tmp_path / "store")
        .read()
    )


def test_what_is_offered_and_left(uneven: Snapshot):
    offer = judging_offer(uneven, LAB, AT_2)
    assert offer == Offer(2, 0.0, pytest.approx(28 / 60), {"half": 20, "most": 12, "all": 12}, 11)
    assert [len(among(uneven, replace(LAB, judging=judging(AT_2.k, word))) or ()) for word in offer.left] == [
        20,
        12,
        12,
    ]
    (judged, sets) = about_offer(offer, LAB)
    assert "of their Top-2 0.0 % to 46.7 % is unjudged and counts as 0" in judged
    assert "(at least half: n = 20, at least 80 %: n = 12, everything: n = 12)" in judged
    assert "n = 11" in sets
    chosen = replace(LAB, judging=Judging(2, 1.0, everywhere=True))
    assert about_offer(offer, chosen) == ()
    said = about_judging(chosen, 11)
    assert said[0].endswith("judges: n = 11.")
    assert "everything is judged in every stack: n = 11. They are no random sample" in said[1]


@pytest.mark.slow
def test_scores_on_them(uneven: Snapshot):
    whole = table(uneven, LAB, AT_2).select("run_id", "quality", "n").rows()
    assert whole == [("a", 1.0, 30), ("b", pytest.approx((12 + 8 / 2) / 30), 30)]
    for word, expected in {"half": (16 / 20, 20), "all": (1.0, 12)}.items():
        rows = table(uneven, replace(LAB, judging=judging(AT_2.k, word)), AT_2).filter(run_id="b")
        assert rows.select("quality", "n").row(0) == (pytest.approx(expected[0]), expected[1])
    rows = table(uneven, replace(LAB, judging=Judging(everywhere=True)), AT_2)
    assert rows["n"].to_list() == [11, 11]
    assert table(uneven, replace(LAB, judging=Judging(2, 1.0)), AT_2)["hole"].to_list() == [0.0, 0.0]


def test_golden_sets_that_judge_the_same_are_no_matter(tmp_path: Path):
    lab = Lab().judge(GRADES).judge(GRADES, "other").run("a", final=ranked(dict.fromkeys(ALL, 0)))
    snapshot = lab.write(tmp_path / "store").read()
    assert judging_offer(snapshot, LAB, AT_2) == Offer(2)
    assert judged_everywhere(snapshot, "lab") == frozenset(ALL)
    assert judging_offer(snapshot, Scope("lab"), AT_2) == Offer(2)
    assert judging_offer(snapshot, LAB, Quality("GMAP", 2)) == Offer(2)


def test_a_query_that_a_run_was_not_asked_is_not_judged_there(tmp_path: Path):
    """Its ranking is not there, so that it has no holes; nor has it anything to compare."""
    lab = Lab().judge(GRADES).run("a", final=ranked(dict.fromkeys(ALL, 0)))
    snapshot = lab.run("b", final=ranked(dict.fromkeys(ALL[:14], 0))).write(tmp_path / "store").read()
    assert among(snapshot, replace(LAB, judging=Judging(2, 1.0))) == frozenset(ALL[:14])


def test_deciding_on_them(uneven: Snapshot):
    found = narrow(uneven, LAB, AT_2, Latency(), BOOK, choices=NarrowChoices(judging(AT_2.k, "most")))
    assert found.scope == replace(LAB, judging=Judging(2, 0.8))
    assert found.compared.sentences == about_judging(found.scope, 12)
    with pytest.raises(InputError, match="Only 0 queries are judged so well"):
        narrow(
            uneven,
            Scope("lab", "other"),
            AT_2,
            Latency(),
            BOOK,
            choices=NarrowChoices(judging(AT_2.k, "half")),
        )


@pytest.mark.slow
@given(
    st.lists(
        st.lists(st.lists(st.integers(-1, 5), min_size=4, max_size=4), min_size=3, max_size=3), min_size=1
    ),
    st.integers(1, 6),
    st.sampled_from([0.5, 0.8, 1.0]),
)
def test_well_judged_as_counted_by_hand(drawn: list[list[list[int]]], k: int, least: float):
    grades = np.array(drawn, dtype=np.int8)
    found = Evidence(
        run_ids=tuple("abcdefgh"[: len(drawn)]),
        query_ids=("q1", "q2", "q3"),
        grades=grades,
        pool_grades=grades,
        pool_counts=np.ones((3, 5), dtype=np.int32),
        unjudged_queries=np.zeros(len(drawn), dtype=np.int32),
    )
    expected = [
        all(sum(slot == 0 for slot in run[query][:k]) / k <= 1 - least + 1e-12 for run in drawn)
        for query in range(3)
    ]
    assert well_judged(found, k, least).tolist() == expected
