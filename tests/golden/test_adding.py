"""Grades by hand laid over known ones: what is left of either, and what is counted."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pytest

from core.errors import InputError
from core.golden.adding import (
    MADE_BY,
    AddedCounts,
    AddedGrades,
    ancestry,
    described,
    name_for,
    over,
    refuse_other,
)
from core.records import GoldenSet
from core.tables import frame

Place = tuple[str, str, int, int, int]  # query, source, first and last character, grade


def grades(
    name: str, places: Sequence[Place] = (), passages: Sequence[tuple[str, str, int]] = ()
) -> AddedGrades:
    spans = [
        {"golden_set_id": name, "query_id": query, "source": source, "start_char": start, "end_char": end,
         "grade": grade, "raw": grade}
        for query, source, start, end, grade in places
    ]  # fmt: skip
    rows = [
        {"golden_set_id": name, "query_id": query, "passage_id": passage, "grade": grade, "raw": grade}
        for query, passage, grade in passages
    ]
    golden = GoldenSet(golden_set_id=name, collection_id="c", name=name, judge=name)
    return AddedGrades(golden, frame("judgements", rows), frame("spans", spans))


@pytest.mark.parametrize(
    ("known", "hand", "left", "counts"),
    [
        pytest.param([(0, 100, 5)], [(200, 300, 2)], [(0, 100, 5), (200, 300, 2)], (0, 0), id="apart"),
        pytest.param([(10, 60, 5)], [(0, 100, 5)], [(0, 100, 5), (10, 60, 5)], (1, 0), id="alike"),
        pytest.param([(10, 60, 5)], [(0, 100, 2)], [(0, 100, 2)], (1, 1), id="the hand wins"),
        pytest.param([(10, 60, 1)], [(0, 100, 5)], [(0, 100, 5)], (1, 1), id="upwards too"),
        pytest.param([(10, 60, 5)], [(10, 60, 2)], [(10, 60, 2)], (1, 1), id="the same place"),
        pytest.param(
            [(90, 130, 5)], [(0, 100, 1)], [(0, 100, 1), (100, 130, 5)], (0, 0), id="most of it is elsewhere"
        ),
        pytest.param([(70, 110, 5)], [(0, 100, 3)], [(0, 100, 3)], (1, 1), id="a rest of a quarter is none"),
        pytest.param(
            [(0, 1000, 4)],
            [(200, 300, 1), (250, 400, 2)],
            [(0, 200, 4), (200, 300, 1), (250, 400, 2), (400, 1000, 4)],
            (1, 1),
            id="a long one in pieces",
        ),
        pytest.param(
            [(0, 100, 5), (50, 100, 4)],
            [(0, 50, 1)],
            [(0, 50, 1), (50, 100, 5)],
            (1, 1),
            id="two that are left in one place: the better",
        ),
    ],
)
def test_places(known, hand, left, counts):
    placed = [[("q", "d", *place) for place in places] for places in (known, hand)]
    judgements, spans, found = over(grades("known", placed[0]), grades("hand", placed[1]))
    assert judgements.is_empty()
    assert sorted(spans.select("start_char", "end_char", "grade").iter_rows()) == left
    assert found == AddedCounts(*counts)
    elsewhere = [("other", "d", *place) for place in hand]
    _, spans, found = over(grades("known", placed[0]), grades("hand", elsewhere))
    assert spans.height == len(known) + len(hand)
    assert found == AddedCounts(), "of another question"


def test_passages():
    known = grades("known", passages=[("q", "a", 5), ("q", "b", 1), ("r", "a", 3)])
    hand = grades("hand", passages=[("q", "a", 2), ("q", "b", 1), ("s", "c", 4)])
    judgements, spans, counts = over(known, hand)
    found = sorted(judgements.select("query_id", "passage_id", "grade").iter_rows())
    assert found == [("q", "a", 2), ("q", "b", 1), ("r", "a", 3), ("s", "c", 4)]
    assert spans.is_empty()
    assert counts == AddedCounts(2, 1)


def sets(*rows: tuple[str, Sequence[str], str]) -> pl.DataFrame:
    columns = {"golden_set_id": pl.String, "parents": pl.List(pl.String), "manifest": pl.String}
    return pl.DataFrame(
        [(name, list(parents), f'{{"made_by": "{made}"}}') for name, parents, made in rows],
        schema=columns, orient="row",
    )  # fmt: skip


SETS = sets(
    ("known", (), ""),
    ("Anne", (), "judging"),
    ("known-and-Anne", ("known", "Anne"), MADE_BY),
    ("known-and-Anne-and-Ben", ("known", "Anne", "Ben"), MADE_BY),
    ("settled", ("known", "Anne"), "settling"),
)


@pytest.mark.parametrize(
    ("to", "judge", "name", "parents"),
    [
        ("known", "Anne", "known-and-Anne", ("known", "Anne")),
        ("known", "Zoë M.", "known-and-Zoë-M~", ("known", "Zoë M.")),
        ("settled", "Ben", "settled-and-Ben", ("settled", "Ben")),
        ("known-and-Anne", "Anne", "known-and-Anne", ("known", "Anne")),
        ("known-and-Anne", "Ben", "known-and-Anne-and-Ben", ("known", "Anne", "Ben")),
        ("known-and-Anne-and-Ben", "Anne", "known-and-Anne-and-Ben", ("known", "Ben", "Anne")),
    ],
)
def test_names(to: str, judge: str, name: str, parents: tuple[str, ...]):
    found, made_of = name_for(SETS, to, judge, judge)
    assert found.startswith(name)
    assert made_of == parents
    refuse_other(SETS, found, made_of)


def test_a_name_of_another_is_refused():
    assert ancestry(SETS, "settled") == ("settled",)
    with pytest.raises(InputError, match="another one"):
        refuse_other(SETS, "settled", ("known", "Anne"))
    with pytest.raises(InputError, match="another one"):
        refuse_other(SETS, "known-and-Anne", ("known", "Ann"))


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        (AddedCounts(), "No known place is graded by hand too."),
        (AddedCounts(1, 0), "Of 1 known place graded by hand too, none differs."),
        (
            AddedCounts(1200, 3),
            "Of 1,200 known places graded by hand too, 3 differ: the grade by hand counts.",
        ),
    ],
)
def test_what_is_said(counts: AddedCounts, said: str):
    golden = described("both", [grades("known"), grades("Anne")], counts, "c", [64, 12])
    assert golden.notes == f"64 known grades of known, and 12 by Anne. {said}"
    assert golden.parents == ("known", "Anne")
