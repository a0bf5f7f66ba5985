"""One query of the queries page: against the table, as cards and as bars."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from core.analysis import per_query as queries
from core.analysis.workspace.scope import Quality, Scope
from core.records import Batch, Collection, GoldenSet
from core.store import Snapshot, Store
from core.tables import frame
from core.views.charts.queries import BARS, bars
from core.views.queries import words
from core.views.queries.one_query import LONGEST, one_query, shown_text
from tests.stores import Lab
from tests.views.queries.conftest import AT_2, HOSTILE, SCOPE, judged, ranked, run


def test_one_query_side_by_side(snapshot: Snapshot) -> None:
    found = one_query(snapshot, SCOPE, AT_2, "q1", {"a": "A", "b": "B"})
    (judged,) = found.judged
    assert judged.grades.rows() == [(5, 1, 1.0), (4, 2, 0.25), (3, 0, 0.0), (2, 0, 0.0), (1, 1, 0.0)]
    assert judged.ideal == pytest.approx(1.25)
    left, right = found.sides
    assert left.ranking.select("rank", "grade", "weight", "change", "passage_id").rows() == [
        (1, 1, 0.0, "▲ 1", "c"),
        (2, 5, 1.0, "▼ 1", "a"),
        (3, 4, None, "new", "b"),
    ]
    assert left.ranking["before"].to_list() == [2, 1, None]
    assert right.ranking["change"].to_list() == ["▲ 1", "▼ 1"]
    assert right.oracle.select("place", "grade", "weight", "now", "passage_id").rows() == [
        (1, 5, 1.0, 1, "a"),
        (2, 4, 0.25, None, "d"),
    ]
    assert left.missed["passage_id"].to_list() == ["d"]
    assert right.missed["passage_id"].to_list() == ["b"]
    assert (right.gain, right.reachable) == (pytest.approx(1.0), pytest.approx(1.25))


def test_holes_and_texts_of_a_ranking(snapshot: Snapshot) -> None:
    side = one_query(snapshot, SCOPE, AT_2, "q2", {"b": "B"}).sides[0]
    assert side.ranking["grade"].to_list() == [1, 5]
    assert side.ranking["change"].is_null().all()
    assert side.ranking["passage"].to_list() == ["b", HOSTILE]
    assert side.ranking["text"][0] == "text of\n b"
    hole = one_query(snapshot, SCOPE, AT_2, "q2", {"a": "A"}).sides[0]
    assert hole.ranking.select("grade", "weight", "text").row(0) == (None, 0.0, None)
    whole = side.ranking["text"][1]
    shown, rest = shown_text(whole)
    assert LONGEST // 2 < len(shown) <= LONGEST
    assert shown.split() + rest.split() == whole.split(), "nothing is lost"
    assert shown_text("short") == ("short", "")
    assert shown_text("x" * 5000) == ("x" * LONGEST, "x" * (5000 - LONGEST))


def test_a_query_that_is_not_ranked(snapshot: Snapshot) -> None:
    side = one_query(snapshot, SCOPE, AT_2, "q5", {"a": "A"}).sides[0]
    assert (side.ranked, side.asked, side.score, side.best, side.gain) == (0, False, None, None, 0.0)
    assert side.missed["passage_id"].to_list() == ["a"]


@pytest.mark.slow
@pytest.mark.parametrize("bare", ["RA-nWG", "RA-nWG(alpha=0.5,cap3=0.2)", "N-Recall4+", "Precision4+", "Hit"])
def test_one_query_says_what_the_table_says(tmp_path: Path, bare: str) -> None:
    """Random rankings, pools and grades: both ways to a score agree, and with G_obs / G_ideal."""
    rng = np.random.default_rng(11)
    letters, ids = "abcdefghijklmnop", [f"q{number}" for number in range(12)]
    draw = {query: "".join(rng.permutation(list(letters))) for query in ids}
    grades = {query: {p: int(rng.integers(1, 6)) for p in draw[query][4:12]} for query in ids}
    pool = {query: "".join(rng.permutation(list(draw[query][:9]))) for query in ids}
    final = {query: pool[query][: int(rng.integers(1, 10))] for query in ids}
    store = Store(tmp_path / "store")
    with store.write("seed") as writer:
        writer.add(
            Batch(
                collections=(Collection(collection_id="c", name="C"),),
                golden_sets=(GoldenSet(golden_set_id="g", collection_id="c", name="G"),),
                runs=(run("a"), run("b")),
                frames={
                    "judgements": judged(grades),
                    "rankings": pl.concat(
                        [ranked("a", "final", final), ranked("a", "pool", pool), ranked("b", "final", draw)]
                    ),
                },
            )
        )
    quality, snapshot = Quality(bare, 3), store.read()
    table = queries.query_table(snapshot, SCOPE, quality, "a", "b")
    for row in table.iter_rows(named=True):
        found = one_query(snapshot, SCOPE, quality, row["query_id"], {"a": "A", "b": "B"})
        assert [side.score for side in found.sides] == [row["score"], row["other"]]
        assert found.sides[0].best == row["best"]
        if bare.startswith("RA-nWG"):
            assert found.sides[0].gain / found.judged[0].ideal == pytest.approx(row["score"])
            assert found.sides[0].reachable / found.judged[0].ideal == pytest.approx(row["best"])


def test_bars(snapshot: Snapshot) -> None:
    table = queries.query_table(snapshot, SCOPE, AT_2, "b", "a")
    drawn = bars(queries.ordered(table, "worst first"), AT_2, {"B": "blue"}, selected="q1")
    assert drawn is not None
    assert drawn.drawn["query_id"].to_list() == ["q6", "q1", "q2"], "what is not ranked has no bar"
    marks = {trace.name: trace for trace in drawn.figure.data}
    assert marks["scores 0"].customdata.ravel().tolist() == [0]
    assert [trace.marker.symbol for trace in marks.values() if trace.type == "scatter"] == [
        "x-thin",
        "line-ew",
    ]
    assert "&lt;img" in marks["at least half of PROC"].hovertext[1]
    assert drawn.figure.layout.annotations[0].x == 1
    against = bars(table, AT_2, {"B": "blue", "A": "red"})
    assert against is not None
    assert [(trace.name, trace.marker.color) for trace in against.figure.data][:2] == [
        ("B better (1)", "blue"),
        ("A better (1)", "red"),
    ]
    assert bars(table.filter(pl.col("query_id") == "q3"), AT_2, {"B": "blue"}) is None


def test_bars_keep_both_ends_of_many(snapshot: Snapshot) -> None:
    row = queries.query_table(snapshot, SCOPE, AT_2, "b").filter(pl.col("query_id") == "q1")
    many = pl.concat([row] * 1000).with_columns(
        pl.format("q{}", pl.int_range(pl.len())).alias("query_id"),
        (pl.int_range(pl.len()) / 1000).alias("score"),
    )
    drawn = bars(many, AT_2, {"B": "blue"})
    assert drawn is not None
    assert drawn.drawn.height == BARS
    assert (drawn.drawn["score"].min(), drawn.drawn["score"].max()) == (0.0, 0.999)


def test_a_card_says_where_else_a_passage_ranks(snapshot: Snapshot) -> None:
    found = one_query(snapshot, SCOPE, AT_2, "q1", {"a": "A", "b": "B"})
    said = [words.card(row, against=True) for row in found.sides[0].ranking.iter_rows(named=True)]
    assert [each.split(" · ")[0] for each in said] == [
        "#2 of the other, up 1 here",
        "#1 of the other, down 1 here",
        "not ranked by the other",
    ]
    (now, left_out) = found.sides[1].oracle.iter_rows(named=True)
    assert words.card(now, against=False).startswith("now #1 · weight 1.000")
    assert words.card(left_out, against=False).startswith("left out of the ranking")


def test_the_reason_of_a_rating_stands_beside_its_passage(tmp_path: Path) -> None:
    lab = Lab().judge({"q1": {"a": 5}}).run("one", final={"q1": ["a", "b"]}).run("two", final={"q1": ["b"]})
    store = lab.write(tmp_path / "s")
    said = {"run_id": "one", "query_id": "q1", "rating": 8.0}
    rows = [
        {**said, "passage_id": "a", "position": 0, "reason": "says **how**"},
        {**said, "passage_id": "a", "position": 1},
    ]
    with store.write("more") as writer:
        writer.add(Batch(frames={"ratings": frame("ratings", rows)}))
    scope = Scope("lab", "gold")
    one, two = one_query(store.read(), scope, AT_2, "q1", {"one": "1", "two": "2"}).sides
    assert one.ranking.select("passage_id", "reason").rows() == [("a", "says **how**"), ("b", None)]
    cards = [words.card(row, against=False) for row in one.ranking.iter_rows(named=True)]
    assert ["rated so because: says **how**" in card for card in cards] == [True, False]
    assert "reason" not in two.ranking.columns
