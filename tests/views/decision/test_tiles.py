"""A tile says what holds for each stack, and once what holds for both."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core.decide.beliefs import beliefs
from core.decide.rules import Constraints
from core.views.blocks import Cards, Comparison
from core.views.confidence.hold import shares
from core.views.decision.tiles import Tile, blocks, doubts
from core.views.words.lead import Lead
from tests.views.decision.test_words import of_queries
from tests.views.made import asking, stacks

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
        (4, 11, "7 of 11 others may be better"),
        (0, 1, "the other one may be better"),
        (2, 2, "surely better than each other one"),
    ],
)
def test_how_many_others_may_be_better(surely: int, others: int, words: str):
    assert doubts(0.456, Lead(surely, others)) == ["45.6 % to be the very best", words]
    assert doubts(None) == []


@pytest.mark.parametrize("floor", [None, 0.55])
@pytest.mark.parametrize("seed", range(4))
def test_the_chance_to_be_the_very_best_is_the_one_that_page_confidence_counts(
    seed: int, floor: float | None
):
    random = np.random.default_rng(seed)
    values = random.normal(0.55, 0.02, (9, 1)) + random.normal(0, 0.1, (9, 60))
    costs = np.linspace(2, 1, 9).tolist()
    table = stacks(name=[*"abcdefghi"], quality=values.mean(axis=1).tolist(), n=[60] * 9, cost=costs)
    sample = of_queries(table, values)
    view = asking(table, Constraints(delta=0.01, min_quality=floor), sample=sample)
    held = beliefs(sample, seed=view.seed)
    assert held is not None
    drawn = replace(sample, noisy=held.leading(), again=held.again())
    counted = shares(view.table, drawn, (view.constraints, view.rule), seed=view.seed)
    of = dict(zip(range(9), counted["p_best"], strict=True))
    assert view.sure.p_best == pytest.approx(of[view.decision.chosen], abs=1e-4)
    for other in view.sure.alternatives[:1]:
        assert other.p_best == pytest.approx(of[other.row], abs=1e-4)
