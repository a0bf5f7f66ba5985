"""Which passages are worth judging."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from core.golden.value import contest, overlaid, worth
from core.metrics import Measure, score_at
from core.stats.intervals import weights

MEASURE = Measure.parse("RA-nWG@2")


def scoring(grades, counts):
    return score_at(MEASURE, grades, counts)


def ranked(**stacks: dict[str, str]) -> pl.DataFrame:
    """Stack → query → passages by rank, a letter each."""
    rows = [
        (name, query, passage, rank)
        for name, of in stacks.items()
        for query, passages in of.items()
        for rank, passage in enumerate(passages, 1)
    ]
    return pl.DataFrame(rows, schema=["run_id", "query_id", "passage_id", "rank"], orient="row")


def grades(**queries: dict[str, int]) -> pl.DataFrame:
    rows = [(query, passage, grade) for query, of in queries.items() for passage, grade in of.items()]
    return pl.DataFrame(rows, schema=["query_id", "passage_id", "grade"], orient="row")


CLOSE = ranked(one={"q": "ab", "r": "ab", "s": "ax"}, other={"q": "ba", "r": "ac", "s": "ay"})
JUDGED = grades(q={"a": 5, "b": 1}, r={"a": 5, "b": 3}, s={"a": 4, "x": 2})


def test_the_contest_has_what_is_ranked_and_judged():
    field = contest(CLOSE, JUDGED, ("one", "other"), 2)
    assert field.queries == ("q", "r", "s")
    assert field.grades.tolist() == [[[5, 1], [5, 3], [4, 2]], [[1, 5], [5, 0], [4, 0]]]
    assert field.counts.tolist() == [[1, 0, 0, 0, 1], [0, 0, 1, 0, 1], [0, 1, 0, 1, 0]]
    assert sorted(field.held().tolist()) == [0, 0, 1, 2, 3, 4, 5, 5]


def test_only_what_is_unjudged_and_separates_stacks_has_a_value():
    both = ranked(one={"q": "ab", "r": "az"}, other={"q": "ac", "r": "az"})
    found = worth(contest(both, grades(q={"a": 5, "b": 3}, r={"a": 4}), ("one", "other"), 2), scoring, seed=1)
    value = dict(found.rows.select("passage_id", "value").iter_rows())
    assert set(value) == {"c", "z"}
    assert value["c"] > 0 == value["z"]
    assert found.rows["passage_id"][0] == "c"
    assert found.best.sum() == pytest.approx(1.0)


def test_where_everything_is_judged_nothing_waits():
    field = contest(CLOSE, overlaid(JUDGED, grades(r={"c": 1}, s={"y": 1})), ("one", "other"), 2)
    assert worth(field, scoring, seed=1).rows.is_empty()


def test_equal_stacks_are_one():
    field = contest(
        ranked(one={"q": "ab"}, twin={"q": "ab"}, other={"q": "ba"}), JUDGED, ("one", "twin", "other"), 2
    )
    assert field.distinct().stacks == ("one", "other")


def test_the_grades_on_top_win():
    rows = overlaid(JUDGED, grades(q={"a": 2, "n": 3}))
    assert rows.filter(query_id="q").sort("passage_id")["grade"].to_list() == [2, 1, 3]


def test_chances_are_those_of_drawing_one_grade_again():
    """Two stacks that differ in one unjudged passage: the best changes when its grade crosses the other's."""
    one = ranked(one={"q": "ab"}, other={"q": "ac"})
    field = contest(one, grades(q={"a": 5, "b": 3}), ("one", "other"), 2)
    found = worth(field, scoring, seed=3, worlds=4000)
    row = found.rows.row(0, named=True)
    # The other stack is ahead where the passage has grade 4 or 5; the chance is 2 p (1 − p).
    share = found.best[1]
    assert row["chance"] == pytest.approx(2 * share * (1 - share), abs=0.05)
    assert 0 < share < 1
    assert np.isfinite(row["saved"])


def test_a_world_scores_all_its_grades_together():
    """Two holes that would each fill the Top-2 cannot both bring what each brings alone."""
    stacks = ranked(one={"q": "xy", "r": "ab"}, other={"q": "ab", "r": "ba"})
    field = contest(stacks, grades(q={"a": 5, "b": 4}, r={"a": 5, "b": 1}), ("one", "other"), 2)
    found = worth(field, scoring, seed=5, worlds=400)
    assert found.means.shape == (2, 400)
    assert (found.means <= 1 + 1e-9).all()
    assert (found.means >= 0).all()
    judged = field.means(scoring)
    assert found.means[0].mean() > judged[0]  # its holes may be something
    assert found.means[1].mean() < judged[1]  # and then the ideal is more than it has


def test_worlds_without_holes_are_the_bootstrap():
    field = contest(CLOSE, overlaid(JUDGED, grades(r={"c": 1}, s={"y": 1})), ("one", "other"), 2)
    found = worth(field, scoring, seed=1, worlds=50)
    values, drawn = scoring(field.grades, field.counts), weights(3, 50, 1)
    np.testing.assert_allclose(found.means, values @ drawn.T / drawn.sum(axis=1))
