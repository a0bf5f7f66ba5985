"""The queries page: its table against hand-made cases and the stack table, one query against the table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from core.paths import PRICES
from core.prices import load_books
from core.records import Batch, Collection, GoldenSet, Origin, Run, Stack
from core.stats.significance import Setup
from core.store import Snapshot, Store
from core.tables import TABLES
from core.views.queries import page as queries
from core.views.queries import words
from core.views.queries.bars import BARS, bars
from core.views.queries.one_query import LONGEST, one_query, shown_text
from core.views.queries.page import AS_ZERO, FOUND_NOTHING, NOT_RANKED, OTHER_NOT_RANKED, OUTSIDE
from core.views.workspace.scope import Latency, Quality, Scope
from core.views.workspace.stacks import stack_table
from tests.stores import Lab
from tests.views.made import LAB

SCOPE = Scope("c", "g")
AT_2 = Quality("RA-nWG", 2)
HOSTILE = "<img src=x onerror=alert(1)> **bold** $x$"


def run(run_id: str) -> Run:
    return Run(
        run_id=run_id,
        collection_id="c",
        stack=Stack({"name": run_id}),
        label=f"Stack {run_id}",
        origin=Origin.IMPORT,
    )


def rows(table: str, values: list[tuple[object, ...]]) -> pl.DataFrame:
    return pl.DataFrame(values, schema=dict(TABLES[table]), orient="row")


def ranked(run_id: str, stage: str, lists: dict[str, str]) -> pl.DataFrame:
    """Rankings of one-letter passages: {"q1": "abc"}."""
    return rows(
        "rankings",
        [
            (run_id, query, stage, rank, passage, 1 / rank)
            for query, passages in lists.items()
            for rank, passage in enumerate(passages, 1)
        ],
    )


def judged(grades: dict[str, dict[str, int]]) -> pl.DataFrame:
    return rows(
        "judgements",
        [
            ("g", query, passage, grade, grade, "")
            for query, given in grades.items()
            for passage, grade in given.items()
        ],
    )


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """Five stored queries and one that only the judgements name; run b has a pool, run a has none."""
    texts = [
        ("c", "q1", "Where is the First one?", ["package=numpy", "type=broad"]),
        ("c", "q2", HOSTILE, ["package=polars", "type=broad"]),
        ("c", "q3", "nobody judged this", []),
        ("c", "q4", "only bad passages", ["package=numpy"]),
        ("c", "q5", "nobody ranks this", None),
    ]
    grades = {
        "q1": {"a": 5, "b": 4, "c": 1, "d": 4},
        "q2": {"a": 5, "b": 1},
        "q4": {"a": 1, "b": 2},
        "q5": {"a": 5},
        "q6": {"a": 5},
    }
    passages = [("c", name, "", f"text of\n {name}", None, None, None) for name in "bcde"]
    passages.append(("c", "a", HOSTILE, HOSTILE * 200, None, None, None))
    store = Store(tmp_path_factory.mktemp("snapshot") / "store")
    with store.write("seed") as writer:
        writer.add(
            Batch(
                collections=(Collection(collection_id="c", name="C"),),
                golden_sets=(GoldenSet(golden_set_id="g", collection_id="c", name="G"),),
                runs=(run("a"), run("b")),
                frames={
                    "queries": rows("queries", texts),
                    "passages": rows("passages", passages),
                    "judgements": judged(grades),
                    "rankings": pl.concat(
                        [
                            ranked("a", "final", {"q1": "cab", "q2": "xb", "q3": "a", "q4": "a", "q6": "a"}),
                            ranked("b", "final", {"q1": "ac", "q2": "ba", "q4": "a", "q6": "x"}),
                            ranked("b", "pool", {"q1": "cad", "q2": "bxa", "q4": "a", "q6": "xa"}),
                        ]
                    ),
                },
            )
        )
    return store.read()


def by_id(table: pl.DataFrame, column: str) -> dict[str, object]:
    return dict(table.select("query_id", column).iter_rows())


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
    assert said.sentence.startswith("A beats B on 1 of 3 queries, loses on 1 and ties on 1 (RA-nWG@2, ")
    nearly = table.with_columns(pl.when(query_id="q6").then(0.005).otherwise("delta").alias("delta"))
    told = words.answer(nearly, nearly.height, AT_2, "A", "B").sentence
    assert "beats B on 0 of 3 queries, loses on 1 and ties on 2" in told
    assert f"ties up to {Setup().tolerance:g}" in told
    cards = {label: (value, note) for label, value, note in said.cards}
    assert cards["Mean difference"][0] == "0.000"
    assert cards["Without a score"][0] == "3"
    assert cards["Without a score"][1].startswith("1 of them not ranked")


def test_agrees_with_the_stack_table(snapshot: Snapshot) -> None:
    book = next(iter(load_books(PRICES).values()))
    for row in stack_table(snapshot, SCOPE, AT_2, Latency(), book).iter_rows(named=True):
        table = queries.query_table(snapshot, SCOPE, AT_2, row["run_id"], as_zero=True)
        assert table["score"].drop_nulls().to_numpy().mean() == pytest.approx(row["quality"], abs=1e-12)
        assert table["score"].count() == row["n"] == 4
        assert by_id(table, "note")["q5"] == AS_ZERO
    shared = replace(SCOPE, shared=True)
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
    assert queries.ordered(table, "most holes")["query_id"][0] == "q6"


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
    ],
)
def test_narrowing(snapshot: Snapshot, tags: list[str], words: str, found: list[str]) -> None:
    table = queries.query_table(snapshot, SCOPE, AT_2, "a")
    assert queries.narrowed(table, tags, words)["query_id"].to_list() == found


def test_tags(snapshot: Snapshot) -> None:
    table = queries.query_table(snapshot, SCOPE, AT_2, "a")
    assert queries.tags_of(table) == ["package=numpy", "package=polars", "type=broad"]


def test_answer_of_one_stack(snapshot: Snapshot) -> None:
    table = queries.query_table(snapshot, SCOPE, AT_2, "b")
    said = words.answer(table, table.height, AT_2, "B")
    assert said.sentence == "On 1 of 3 queries B finds less than half of what its pool holds (RA-nWG@2)."
    assert said.cards[0][:2] == ("Mean RA-nWG@2", "0.600")
    assert said.cards[1] == ("Worst", "0.000", "q6")
    zeros = queries.query_table(snapshot, SCOPE, AT_2, "b", as_zero=True)
    assert "on 1 the pool holds nothing" in words.answer(zeros, 6, AT_2, "B").cards[0][2]
    part = queries.narrowed(table, ["type=broad"], "")
    said = words.answer(part, table.height, AT_2, "B")
    assert said.sentence.startswith(
        "On none of the 2 queries shown B finds less than half of what its pool holds"
    )
    assert said.cards[1] == ("Worst", "0.800", "q1 “Where is the First one?”")


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
    table = queries.query_table(lab.write(tmp_path / "store").read(), replace(LAB, shared=True), AT_2, "a")
    assert by_id(table, "score") == {"q1": 1.0, "q2": None}
    assert by_id(table, "judged") == {"q1": 1, "q2": 1}
    assert by_id(table, "note") == {"q1": None, "q2": OUTSIDE}
    assert words.answer(table, 2, AT_2, "A").cards[0] == ("Mean RA-nWG@2", "1.000", "n = 1")


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
    drawn = bars(queries.ordered(table, "worst first"), AT_2, ("B",), selected="q1")
    assert drawn is not None
    assert drawn.drawn["query_id"].to_list() == ["q6", "q1", "q2"], "what is not ranked has no bar"
    marks = {trace.name: trace for trace in drawn.figure.data}
    assert marks["scores 0"].customdata.ravel().tolist() == [0]
    assert [trace.marker.symbol for trace in marks.values() if trace.type == "scatter"] == [
        "x-thin",
        "line-ew",
    ]
    assert "&lt;img" in marks["half or more of what its pool holds"].hovertext[1]
    assert drawn.figure.layout.annotations[0].x == 1
    against = bars(table, AT_2, ("B", "A"))
    assert against is not None
    assert {trace.name for trace in against.figure.data} == {"B better", "A better", "tie"}
    assert bars(table.filter(pl.col("query_id") == "q3"), AT_2, ("B",)) is None


def test_bars_keep_both_ends_of_many(snapshot: Snapshot) -> None:
    row = queries.query_table(snapshot, SCOPE, AT_2, "b").filter(pl.col("query_id") == "q1")
    many = pl.concat([row] * 1000).with_columns(
        pl.format("q{}", pl.int_range(pl.len())).alias("query_id"),
        (pl.int_range(pl.len()) / 1000).alias("score"),
    )
    drawn = bars(many, AT_2, ("B",))
    assert drawn is not None
    assert drawn.drawn.height == BARS
    assert (drawn.drawn["score"].min(), drawn.drawn["score"].max()) == (0.0, 0.999)


def test_nothing_to_show_says_what_to_do() -> None:
    assert "for example BM25" in words.nothing("Paper stack", "BM25")[1]
    assert "limit" in words.nothing(None, "BM25")[0]


def test_a_card_says_where_else_a_passage_ranks(snapshot: Snapshot) -> None:
    found = one_query(snapshot, SCOPE, AT_2, "q1", {"a": "A", "b": "B"})
    said = [words.card(row, against=True) for row in found.sides[0].ranking.iter_rows(named=True)]
    assert [each.split(" · ")[0] for each in said] == ["#2 there ▲ 1", "#1 there ▼ 1", "not ranked there"]
    (now, left_out) = found.sides[1].oracle.iter_rows(named=True)
    assert words.card(now, against=False).startswith("now #1 · weight 1.000")
    assert words.card(left_out, against=False).startswith("left out of the ranking")
