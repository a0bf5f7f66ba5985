"""The queries page: its table against hand-made cases and the stack table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from core.analysis import per_query as queries
from core.analysis.per_query import AS_ZERO, FOUND_NOTHING, NOT_RANKED, OTHER_NOT_RANKED, OUTSIDE
from core.analysis.workspace.query_sets import query_sets
from core.analysis.workspace.scope import Ids, Latency, Quality, Scope
from core.analysis.workspace.stacks import stack_table
from core.analysis.workspace.unanswerable import WITHOUT
from core.paths import PRICES
from core.prices import load_books
from core.records import Batch, Collection
from core.stats.significance import Setup
from core.store import Snapshot, Store
from core.views.queries import words
from core.views.queries.one_query import one_query
from tests.stores import Lab
from tests.views.made import LAB
from tests.views.queries.conftest import AT_2, SCOPE, by_id, ranked, run


def test_scores_of_one_stack(snapshot: Snapshot) -> None:
    table = queries.query_table(snapshot, SCOPE, AT_2, "a")
    assert table["query_id"].to_list() == ["q1", "q2", "q3", "q4", "q5", "q6"]
    # q1: w5 = 1, w4 = .5·1/2 = .25; Top-2 = c, a → 1 of the ideal 1.25; without a pool stage the ranking
    # is its own pool.
    assert by_id(table, "score") == {
        "q1": pytest.approx(0.8),
        "q2": 0.0,
        "q3": None,
        "q4": None,
        "q5": None,
        "q6": 1.0,
    }
    assert by_id(table, "best") == {"q1": 1.0, "q2": 0.0, "q3": None, "q4": None, "q5": None, "q6": 1.0}
    assert by_id(table, "share")["q1"] == pytest.approx(0.8)
    assert by_id(table, "share")["q2"] is None
    assert by_id(table, "holes") == {"q1": 0, "q2": 1, "q3": None, "q4": 0, "q5": None, "q6": 0}
    assert by_id(table, "judged") == {"q1": 4, "q2": 2, "q3": 0, "q4": 2, "q5": 1, "q6": 1}
    assert table["other"].is_null().all()
    assert table["delta"].is_null().all()


def test_every_missing_score_has_a_reason(snapshot: Snapshot) -> None:
    notes = by_id(queries.query_table(snapshot, SCOPE, AT_2, "a"), "note")
    assert notes["q3"] == queries.UNJUDGED
    assert notes["q4"] == "No judged passage of the query carries weight."
    assert notes["q5"] == NOT_RANKED
    assert notes["q1"] is notes["q2"] is notes["q6"] is None


def test_against_a_second_stack(snapshot: Snapshot) -> None:
    table = queries.query_table(snapshot, SCOPE, AT_2, "a", "b")
    delta = by_id(table, "delta")
    assert delta == {"q1": pytest.approx(0.0), "q2": -1.0, "q3": None, "q4": None, "q5": None, "q6": 1.0}
    assert queries.ordered(table, "largest loss")["query_id"][0] == "q2"
    assert queries.ordered(table, "largest gain")["query_id"][0] == "q6"
    said = words.answer(table, table.height, AT_2, "A", "B")
    assert said.sentence == "A equals B: 1 won, 1 lost, 1 equal (RA-nWG@2)."
    nearly = table.with_columns(pl.when(query_id="q6").then(0.005).otherwise("delta").alias("delta"))
    told = words.answer(nearly, nearly.height, AT_2, "A", "B")
    assert told.sentence == "A loses to B: 0 won, 1 lost, 2 equal (RA-nWG@2)."
    assert told.details == f"Equal: within {Setup().tolerance:g}."
    cards = {label: (value, note) for label, value, note in said.cards}
    assert cards["Without a score"][0] == "3"
    assert cards["Without a score"][1].startswith("1 of them not ranked")


@pytest.mark.slow
def test_agrees_with_the_stack_table(snapshot: Snapshot) -> None:
    book = next(iter(load_books(PRICES).values()))
    for row in stack_table(snapshot, SCOPE, AT_2, Latency(), book).iter_rows(named=True):
        table = queries.query_table(snapshot, SCOPE, AT_2, row["run_id"], as_zero=True)
        assert table["score"].drop_nulls().to_numpy().mean() == pytest.approx(row["quality"], abs=1e-12)
        assert table["score"].count() == row["n"] == 4
        assert by_id(table, "note")["q5"] == AS_ZERO
    shared = replace(SCOPE, shared=query_sets(snapshot, SCOPE, AT_2).shared)
    stacks = stack_table(snapshot, shared, AT_2, Latency(), book)
    assert stacks["n"].to_list() == [3, 3]
    for row in stacks.iter_rows(named=True):
        table = queries.query_table(snapshot, shared, AT_2, row["run_id"])
        assert table["score"].drop_nulls().to_numpy().mean() == pytest.approx(row["quality"], abs=1e-12)
        said = {
            words.answer(queries.ordered(table, sort), table.height, AT_2, "A").cards[0]
            for sort in queries.SORTS
        }
        assert len(said) == 1
        label, value, note = said.pop()
        bounds = f"[{row['quality_low']:.3f}, {row['quality_high']:.3f}]"
        assert (label, value) == ("Mean RA-nWG@2", f"{row['quality']:.3f}")
        assert note.split(" · ")[:2] == [bounds, f"n = {row['n']}"]


def test_order(snapshot: Snapshot) -> None:
    table = queries.query_table(snapshot, SCOPE, AT_2, "b")
    worst = queries.ordered(table, "worst first")["query_id"].to_list()
    assert worst == ["q6", "q1", "q2", "q3", "q4", "q5"], "what is not ranked is not the worst"
    assert queries.ordered(table, "best first")["query_id"].to_list() == ["q2", "q1", "q6", "q3", "q4", "q5"]
    zeros = queries.query_table(snapshot, SCOPE, AT_2, "b", as_zero=True)
    worst = queries.ordered(zeros, "worst first")["query_id"].to_list()
    assert worst[:2] == ["q6", "q5"], "q6 before q5: its pool held the answer"
    assert queries.ordered(table, "id")["query_id"].to_list() == sorted(worst)
    assert queries.ordered(table, "most unjudged")["query_id"][0] == "q6"


@pytest.mark.parametrize(
    ("tags", "words", "found"),
    [
        ([], "", ["q1", "q2", "q3", "q4", "q5", "q6"]),
        (["package=numpy"], "", ["q1", "q4"]),
        (["package=numpy", "package=polars"], "", ["q1", "q2", "q4"]),
        (["package=numpy", "type=broad"], "", ["q1"]),
        ([], "FIRST where", ["q1"]),
        ([], "**bold** $x$", ["q2"]),
        ([], ".*", []),
        ([], "broad", ["q1", "q2"]),
        ([], "q6", ["q6"]),
        (["package=numpy"], "bad", ["q4"]),
        ([WITHOUT], "", ["q4"]),
    ],
)
def test_narrowing(snapshot: Snapshot, tags: list[str], words: str, found: list[str]) -> None:
    table = queries.query_table(snapshot, SCOPE, AT_2, "a")
    assert queries.narrowed(table, tags, words)["query_id"].to_list() == found


def test_tags(snapshot: Snapshot) -> None:
    table = queries.query_table(snapshot, SCOPE, AT_2, "a")
    assert queries.tags_of(table) == ["package=numpy", "package=polars", "type=broad", WITHOUT]


def test_answer_of_one_stack(snapshot: Snapshot) -> None:
    table = queries.query_table(snapshot, SCOPE, AT_2, "b")
    said = words.answer(table, table.height, AT_2, "B")
    assert said.sentence == "B finds nothing useful on 1 of 3 queries (RA-nWG@2)."
    assert said.details == "On 0 of these no candidate was useful either."
    assert said.cards[0][:2] == ("Mean RA-nWG@2", "0.600")
    ceiling = "best order of its candidates"
    assert said.cards[1] == ("PROC", "1.000", ceiling)
    zeros = queries.query_table(snapshot, SCOPE, AT_2, "b", as_zero=True)
    said_of_zeros = words.answer(zeros, 6, AT_2, "B")
    none = zeros.filter(pl.col("score") == 0)
    assert f"B finds nothing useful on {none.height} of" in said_of_zeros.sentence
    assert said_of_zeros.details == "On 1 of these no candidate was useful either."
    part = queries.narrowed(table, ["type=broad"], "")
    said = words.answer(part, table.height, AT_2, "B")
    assert said.sentence.startswith("Ordering loses over half of what B found on none of the 2 queries shown")
    assert said.cards[-1] == ("Worst query", "0.800", "q1 “Where is the First one?”")


def test_answer_without_anything_to_say(snapshot: Snapshot) -> None:
    table = queries.query_table(snapshot, SCOPE, AT_2, "b")
    assert words.answer(table.clear(), 6, AT_2, "B").sentence == "None of 6 queries matches."
    unjudged = table.filter(pl.col("query_id") == "q3")
    said = words.answer(unjudged, 6, AT_2, "B")
    assert said.sentence == "No query shown has a score (RA-nWG@2)."
    assert said.details.startswith(queries.UNJUDGED)


def test_without_judgements(snapshot: Snapshot) -> None:
    table = queries.query_table(snapshot, Scope("c"), AT_2, "a", "b")
    assert table["query_id"].to_list() == ["q1", "q2", "q3", "q4", "q5"]
    assert table["score"].is_null().all()
    assert set(table["note"]) == {queries.UNJUDGED}
    found = one_query(snapshot, Scope("c"), AT_2, "q1", {"a": "A", "b": "B"})
    assert [each.passages.height for each in found.judged] == [0]
    assert found.sides[0].score is None
    assert found.sides[0].ranking["passage_id"].to_list() == ["c", "a", "b"]
    assert found.sides[0].ranking["grade"].is_null().all()
    assert found.sides[0].missed.is_empty()


def test_ranked_queries_are_listed_where_no_texts_are_stored(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    with store.write("seed") as writer:
        writer.add(
            Batch(
                collections=(Collection(collection_id="c", name="C"),),
                runs=(run("a"),),
                frames={"rankings": ranked("a", "final", {"q2": "a", "q1": "ab"})},
            )
        )
    table = queries.query_table(store.read(), Scope("c"), AT_2, "a")
    assert table["query_id"].to_list() == ["q1", "q2"]
    found = one_query(store.read(), Scope("c"), AT_2, "q1", {"a": "A"})
    assert found.sides[0].ranking["passage"].to_list() == ["a", "b"]
    assert found.sides[0].ranking["text"].is_null().all()


def test_a_measure_that_is_not_computed_here(snapshot: Snapshot) -> None:
    table = queries.query_table(snapshot, SCOPE, Quality("house-score", 2), "a", "b")
    assert table["score"].is_null().all()
    assert by_id(table, "note")["q1"] == "house-score is known from aggregates only."
    found = one_query(snapshot, SCOPE, Quality("house-score", 2), "q1", {"a": "A"})
    assert found.sides[0].score is None
    assert found.sides[0].gain == pytest.approx(1.0)


@pytest.mark.slow
def test_found_nothing_is_0_and_never_asked_is_unknown(tmp_path: Path) -> None:
    """Timed without a ranking: asked. Candidates without a ranking: asked. Neither: not known."""
    lab = Lab().judge({f"q{number}": {"p": 5} for number in range(1, 5)})
    lab.run(
        "a", final={"q1": ["p"], "q2": ["x"]}, candidates={"q1": ["p"], "q3": ["p"]}, ms={"sparse": [1.0] * 2}
    )
    lab.run("b", final={"q1": ["p"], "q3": ["p"]}, ms={"sparse": [1.0] * 4})
    snapshot = lab.write(tmp_path / "store").read()
    a, b = (queries.query_table(snapshot, LAB, AT_2, run_id) for run_id in "ab")
    assert by_id(a, "score") == {"q1": 1.0, "q2": 0.0, "q3": 0.0, "q4": None}
    assert by_id(a, "best") == {"q1": 1.0, "q2": 0.0, "q3": 1.0, "q4": None}
    assert list(by_id(a, "note").values()) == [None, None, FOUND_NOTHING, NOT_RANKED]
    assert by_id(b, "score") == {"q1": 1.0, "q2": 0.0, "q3": 1.0, "q4": 0.0}
    both = queries.query_table(snapshot, LAB, AT_2, "b", "a")
    assert by_id(both, "delta") == {"q1": 0.0, "q2": 0.0, "q3": 1.0, "q4": None}
    assert by_id(both, "note")["q4"] == OTHER_NOT_RANKED
    sides = one_query(snapshot, LAB, AT_2, "q4", {"a": "A", "b": "B"}).sides
    assert [(side.asked, side.score) for side in sides] == [(False, None), (True, 0.0)]


def test_a_query_outside_those_that_are_shared_says_so(tmp_path: Path) -> None:
    lab = Lab().judge({"q1": {"p": 5}, "q2": {"p": 5}})
    lab.run("a", final={"q1": ["p"], "q2": ["p"]}).run("b", final={"q1": ["p"]})
    table = queries.query_table(
        lab.write(tmp_path / "store").read(), replace(LAB, shared=Ids.of(["q1"])), AT_2, "a"
    )
    assert by_id(table, "score") == {"q1": 1.0, "q2": None}
    assert by_id(table, "judged") == {"q1": 1, "q2": 1}
    assert by_id(table, "note") == {"q1": None, "q2": OUTSIDE}
    assert words.answer(table, 2, AT_2, "A").cards[0] == ("Mean RA-nWG@2", "1.000", "n = 1")


def test_nothing_to_show_says_what_to_do() -> None:
    assert "for example BM25" in words.nothing("Paper stack", "BM25")[1]
    assert "limit" in words.nothing(None, "BM25")[0]
