"""Which stacks a race drops, keeps and asks on; no sampler is needed for it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from core.pipeline.demo import grid
from core.pipeline.search.propose import Space, StackTrial
from core.pipeline.search.race import Propose, Race, search
from core.pipeline.sweep import parse
from core.pipeline.sweep.expand import expand
from core.pipeline.sweep.fields import Search, SearchLimits
from core.records import Stack

RULES = Search(rounds=(16, 32), level=0.95, margin=0.005)
RNG = np.random.default_rng(4)
QUALITY = RNG.random(64)


def race(*stacks: tuple[float, float, float], n: int = 32, higher_is_better: bool = True) -> Race:
    """Stacks of (how much better, ms, dollars), asked so many of 64 queries."""
    made = Race(64, RULES, higher_is_better=higher_is_better)
    for row, (better, ms, usd) in enumerate(stacks):
        gain = better * RNG.random(n) * 2
        made.add(row, QUALITY[:n] + gain, np.full(n, ms), np.full(n, usd))
    return made


@pytest.mark.parametrize(
    ("stacks", "dropped"),
    [
        (((0.3, 1, 1),), []),
        (((0.3, 1, 1), (0.0, 1, 1)), [1]),
        (((0.3, 1, 1), (0.0, 2, 2)), [1]),
        (((0.3, 2, 1), (0.0, 1, 1)), []),  # faster
        (((0.3, 1, 2), (0.0, 1, 1)), []),  # cheaper
        (((0.3, np.nan, 1), (0.0, np.nan, 1)), [1]),  # nothing was timed
        (((0.3, 1, np.nan), (0.0, 1, 1)), []),  # what may be dear beats nothing
        (((0.3, 1, 1), (0.0, 1, np.nan)), [1]),
        (((0.3, 1.01, 1), (0.0, 1, 1)), [1]),  # as fast, as far as can be told
    ],
)
def test_a_stack_is_dropped_by_a_better_one_that_spares_nothing(
    stacks: Sequence[tuple[float, float, float]], dropped: list[int]
) -> None:
    made = race(*stacks)
    assert [each.row for each in made.drop()] == dropped
    for row in dropped:
        entry = made.entries[row]
        assert (entry.dropped, entry.by, entry.n) == (True, 0, 32)
        assert entry.bound is not None
        assert entry.bound <= RULES.margin


def test_where_lower_is_better_the_lower_one_stays() -> None:
    made = race((0.3, 1, 1), (0.0, 1, 1), higher_is_better=False)
    assert [each.row for each in made.drop()] == [0]


@pytest.mark.parametrize(("n", "dropped"), [(8, 0), (60, 1)])
def test_equal_answers_to_few_queries_are_no_evidence(n: int, dropped: int) -> None:
    made = race((0.0, 1, 1), (0.0, 1, 1), n=n)
    assert len(made.drop()) == dropped


@pytest.mark.parametrize(
    ("harms", "holes", "dropped"),
    [
        ((0.1, 0.1), 0.0, [1]),
        ((0.3, 0.1), 0.0, []),  # the better one breaks the cap
        ((0.3, 0.4), 0.0, [1]),  # both break it
        ((0.1, 0.1), 0.15, []),  # what nobody judged may harm
        ((0.1, 0.1), 0.04, [1]),  # a trifle
    ],
)
def test_a_stack_is_not_dropped_for_one_that_breaks_the_harm_cap(
    harms: tuple[float, float], holes: float, dropped: list[int]
) -> None:
    made = Race(64, Search(rounds=(16, 32), level=0.95, limits=SearchLimits(max_harm=0.2)))
    for row, (better, harm, unjudged) in enumerate(zip((0.3, 0.0), harms, (holes, 0.0), strict=True)):
        answers = (QUALITY[:32] + better, np.ones(32), np.ones(32))
        made.add(row, *answers, np.full(32, harm), np.full(32, harm + unjudged))
    assert [each.row for each in made.drop()] == dropped


def test_queries_without_a_value_count_for_nobody() -> None:
    made = race((0.3, 1, 1), (0.0, 1, 1))
    for entry in made.entries.values():
        entry.quality[::2] = np.nan
    assert [each.row for each in made.drop()] == [1]


def test_few_easy_queries_do_not_make_a_stack_good() -> None:
    made = Race(64, RULES)
    hard = np.concatenate([np.full(32, 0.8), np.full(32, 0.2)])
    made.add(0, hard, np.ones(64), np.ones(64))
    made.add(1, hard[:32] + 0.1, np.ones(32), np.ones(32))
    quality, _, _ = made.figures()
    assert quality == pytest.approx([0.5, 0.6])


SPACE = Space(grid(embedder="fake", dims=(16, 32), depths=(5, 20)))


def first_free(space: Space) -> Propose:
    def propose(known: Sequence[StackTrial], count: int, _: Sequence[bool]) -> list[int]:
        return sorted({*range(len(space))} - {each.row for each in known})[:count]

    return propose


def test_a_search_asks_the_good_ones_everything_and_the_bad_ones_little() -> None:
    order = np.random.default_rng(0)
    better = order.permutation(len(SPACE)) / len(SPACE)
    table = np.clip(QUALITY + 0.4 * better[:, None] + order.normal(0, 0.05, (len(SPACE), 64)), 0, 2)
    asked: list[tuple[int, int, int]] = []

    def ask(rows: Sequence[int], first: int, last: int) -> list[tuple[np.ndarray, ...]]:
        asked.extend((row, first, last) for row in rows)
        same = np.ones(last - first)
        return [(table[row, first:last], same, same) for row in rows]

    made = Race(64, RULES)
    search(SPACE, made, ask, first_free(SPACE))
    assert {each.row for each in made.entries.values()} == {*range(len(SPACE))}
    assert better.argmax() in {each.row for each in made.whole}
    assert made.asked < 0.7 * table.size
    assert not made.racing
    assert len(asked) == len({*asked})  # nothing is asked twice


def test_a_limit_of_work_is_kept_and_leaves_stacks_unfinished() -> None:
    def ask(rows: Sequence[int], first: int, last: int) -> list[tuple[np.ndarray, ...]]:
        return [
            (QUALITY[first:last] + row * 1e-4, np.ones(last - first), np.ones(last - first)) for row in rows
        ]

    made = Race(64, RULES.model_copy(update={"trials": 6, "evaluations": 100}))
    search(SPACE, made, ask, first_free(SPACE))
    assert len(made.entries) <= 6
    assert made.asked < 100 + 64 * 6


def test_stacks_whose_quality_is_not_known_yet_are_not_begun_again() -> None:
    def ask(rows: Sequence[int], first: int, last: int) -> list[tuple[np.ndarray, ...]]:
        judged = np.where(np.arange(first, last) < 32, np.nan, 0.5)
        return [(judged, np.ones(last - first), np.ones(last - first)) for _ in rows]

    made = Race(64, RULES)
    search(SPACE, made, ask, first_free(SPACE))
    assert len(made.entries) == len(SPACE)


@pytest.mark.parametrize("mode", ["sparse", "dense", "hybrid"])
def test_parameters_lead_back_to_their_stack_and_exist_only_where_they_matter(mode: str) -> None:
    text = """
collection = "c/"
[axes]
bm25 = [{k1 = 1.2}, {k1 = 0.9}]
dim = [64, 256]
fusion = ["rrf", {method = "convex", alpha = 0.3}, {method = "convex", alpha = 0.6}]
candidates = [20, 50]
"""
    space = Space(expand(parse(text)))
    rows = [row for row, stack in enumerate(space.stacks) if stack.spec["mode"] == mode]
    assert rows
    for row in rows:
        told = space.parameters(row)
        assert space.choose(lambda name, _, told=told: told[name][0]) == row
        names = {name.partition(" among")[0] for name in told}
        assert ("dim" in names) == (mode != "sparse")
        assert ("fusion.method" in names) == (mode == "hybrid")
        assert ("fusion.alpha" in names) == (
            space.stacks[row].spec.get("fusion", {}).get("method") == "convex"
        )


def test_a_space_of_one_stack_has_no_parameters() -> None:
    space = Space([Stack({"mode": "sparse", "candidates": 5})])
    assert (len(space), space.parameters(0)) == (1, {})


def test_the_first_stacks_show_every_value() -> None:
    rows = SPACE.spread(6, np.random.default_rng(1))
    assert len({*rows}) == 6
    assert {SPACE.stacks[row].spec["mode"] for row in rows} == {"sparse", "dense", "hybrid"}


def test_a_parameter_has_the_same_choices_wherever_it_is_asked() -> None:
    specs = [{"reranker": each, "candidates": k} for each, k in (("none", 10), ("none", 20))]
    specs += [{**spec, "embedder": model} for spec in (*specs, {"candidates": 50}) for model in "mn"]
    space = Space([Stack(spec) for spec in specs])
    asked: dict[str, set[tuple[object, ...]]] = {}
    for row in range(len(space)):
        for name, (_, choices) in space.parameters(row).items():
            asked.setdefault(name, set()).add(choices)
    assert all(len(choices) == 1 for choices in asked.values())
    assert {name for name in asked if "embedder" in name} == {"embedder", "embedder among m, n, –"}
