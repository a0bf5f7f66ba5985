from collections import Counter

import polars as pl
import pytest

from core.errors import InputError
from core.golden.by_hand import arranged, draw, fives


def pool(*rows: tuple[str, str, int | None, int, bool]) -> pl.DataFrame:
    columns = {"query_id": pl.String, "passage_id": pl.String, "grade": pl.Int8, "stacks": pl.Int64,
               "disputed": pl.Boolean}  # fmt: skip
    return pl.DataFrame(rows, schema=columns, orient="row")


def many(of_grade: dict[int | None, int], *, disputed: int = 0) -> pl.DataFrame:
    rows = [
        (f"q{place % 7}", f"{grade}-{place}", grade, place % 4, place < disputed)
        for grade, count in of_grade.items()
        for place in range(count)
    ]
    return pool(*rows)


def test_the_seed_alone_decides():
    rows = many({1: 50, 5: 5})
    assert draw(rows, "at random", 10, "a") == draw(rows.reverse(), "at random", 10, "a")
    assert draw(rows, "at random", 10, "a") != draw(rows, "at random", 10, "b")


def test_at_random_takes_judged_ones_alone_unless_there_are_none():
    assert all(name[0] != "N" for _, name in draw(many({1: 5, None: 50}), "at random", 99, "s"))
    assert len(draw(many({None: 50}), "at random", 99, "s")) == 50


def test_stratified_takes_as_many_of_each_as_there_are():
    drawn = draw(many({1: 500, 2: 100, 3: 60, 4: 3, 5: 40, None: 90}), "stratified", 53, "s")
    counts = Counter(name.split("-")[0] for _, name in drawn)
    assert counts == {"1": 10, "2": 10, "3": 10, "4": 3, "5": 10, "None": 10}


def test_disagreements_are_a_stratum():
    drawn = draw(many({1: 500}, disputed=4), "stratified", 10, "s")
    assert sum(int(name.split("-")[1]) < 4 for _, name in drawn) == 4


def test_holes_of_most_stacks_first():
    rows = pool(("q", "a", None, 1, False), ("q", "b", None, 9, False), ("q", "c", 3, 9, False))
    assert draw(rows, "holes of stacks", 1, "s") == [("q", "b")]
    with pytest.raises(InputError, match="nothing to draw"):
        draw(rows.filter(pl.col("grade") == 3), "holes of stacks", 1, "s")


def test_by_value_takes_the_likeliest():
    rows = many({None: 20}).with_columns(value=pl.int_range(pl.len()))
    assert {name for _, name in draw(rows, "by value", 3, "s")} == {"None-17", "None-18", "None-19"}


def test_a_question_is_read_once_and_order_tells_nothing():
    rows = many({1: 70, 5: 70})
    queries = [query for query, _ in arranged(rows, "s")]
    assert (
        len([query for query, before in zip(queries, ["", *queries], strict=False) if query != before]) == 7
    )
    of_first = [name[0] for query, name in arranged(rows, "s") if query == queries[0]]
    assert of_first not in (sorted(of_first), sorted(of_first, reverse=True))


def test_fives_are_of_one_query_each():
    rows = many({1: 100})
    drawn = fives(rows, 8, "s")
    assert len(drawn) == len(set(drawn)) == 40
    batches = [drawn[place : place + 5] for place in range(0, 40, 5)]
    assert all(len({query for query, _ in batch}) == 1 for batch in batches)
    assert len({batch[0][0] for batch in batches[:7]}) == 7
    with pytest.raises(InputError, match="No query has five"):
        fives(many({1: 20}), 8, "s")
