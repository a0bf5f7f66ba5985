"""Queries that retrieve the passage of their own id: said, and left out where asked."""

import polars as pl
import pytest

from core.importers import Options, load
from tests.importers.helpers import rows, up

RUN = "a Q0 a 1 9 x\na Q0 p 2 8 x\na Q0 q 3 7 x\nb Q0 p 1 9 x\nb Q0 b 2 8 x\n"
CHANCE = "1 Q0 1 1 9 x\n2 Q0 7 1 9 x\n3 Q0 8 1 9 x\n"


@pytest.mark.parametrize(
    ("own_ids", "kept"),
    [
        ("keep", [("a", "a", 1), ("a", "p", 2), ("a", "q", 3), ("b", "b", 2), ("b", "p", 1)]),
        ("drop", [("a", "p", 1), ("a", "q", 2), ("b", "p", 1)]),
    ],
)
def test_own_ids(own_ids, kept):
    made = load([up("x.run", RUN)], Options(own_ids=own_ids))
    found = rows(made, "rankings").select("query_id", "passage_id", "rank").sort(pl.all())
    assert found.rows() == kept
    assert sum("--own-ids drop" in note for note in made.notes) == (own_ids == "keep")
    said = [(left.count, left.reason) for left in made.left_out if "id of their query" in left.reason]
    assert said == ([(2, "ranked passages with the id of their query")] if own_ids == "drop" else [])


def test_equal_numbers_by_chance_are_not_said():
    assert not [note for note in load([up("x.run", CHANCE)]).notes if "own id" in note]


def test_a_run_without_own_ids_is_another_run():
    one, other = (load([up("x.run", RUN)], Options(own_ids=own_ids)).runs[0] for own_ids in ("keep", "drop"))
    assert one.run_id != other.run_id
    assert other.manifest["own_ids"] == "drop"
