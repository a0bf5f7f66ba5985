"""A tile says what holds for each stack, and once what holds for both."""

from __future__ import annotations

import pytest

from core.views.blocks import Cards, Comparison
from core.views.decision.tiles import Tile, blocks, doubts
from core.views.words.lead import Lead

ONE = ("RR@10", "0.50", ("[0.40, 0.60]", "n = 9", "from 0 to 1"), "measured")
OTHER = ("RR@10", "0.49", ("[0.39, 0.59]", "n = 9", "from 0 to 1"), "measured")


def test_one_stack_has_one_number_and_one_note():
    tile = Tile.of([ONE])
    assert tile == Tile("RR@10", (("0.50", ""),), "[0.40, 0.60], n = 9, from 0 to 1", "measured")
    assert blocks([tile], ["a"]) == Cards([("RR@10", "0.50", f"{tile.note} · measured")])


def test_of_two_stacks_what_holds_for_both_is_said_once():
    tile = Tile.of([ONE, OTHER])
    numbers = (("0.50", "[0.40, 0.60]"), ("0.49", "[0.39, 0.59]"))
    assert tile == Tile("RR@10", numbers, "n = 9, from 0 to 1", "measured")
    other = Tile.of([ONE, (*OTHER[:3], "imported")])
    assert (other.numbers[1][1], other.basis) == ("[0.39, 0.59], imported", "")
    told = blocks([tile], ["a", "b"])
    assert isinstance(told, Comparison)
    assert told.numbers[0][1] == [("a", *numbers[0]), ("b", *numbers[1])]


@pytest.mark.parametrize(
    ("surely", "others", "words"),
    [
        (4, 11, "7 of 11 others are not proven worse"),
        (0, 1, "the other one is not proven worse"),
        (2, 2, "surely better than each other one"),
    ],
)
def test_how_many_others_may_be_better(surely: int, others: int, words: str):
    assert doubts(Lead(surely, others)) == [words]
    assert doubts(None) == []
