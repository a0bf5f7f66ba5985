"""Answers by reader, prompt, temperature, mode, k and pass; their scores; the one grade that pages read."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest

from core.answers import GRADE, graded, parted
from core.errors import InputError, StoreError
from core.records import Batch
from core.store import Store, doctor
from core.tables import TABLES, frame
from tests.store.material import CORPUS, run

ONE = {"run_id": "a", "query_id": "q1", "reader": "r", "prompt": "p", "temperature": 0.0, "mode": "top_k",
       "k": 3, "pass": 1}  # fmt: skip
OTHERS = [
    {"query_id": "q2"}, {"reader": "s"}, {"prompt": "o"}, {"temperature": 0.7}, {"mode": "gold_only"},
    {"k": 0}, {"pass": 2}, {"reader": None}, {"temperature": None}, {"mode": None},
]  # fmt: skip


def written(store: Store, **tables: list[dict[str, object]]) -> Store:
    frames = {table: frame(table, rows) for table, rows in tables.items()}
    with store.write("import") as writer:
        writer.add(Batch(collections=(CORPUS,), runs=(run("a"), run("b")), frames=frames))
    return store


def test_what_differs_in_any_part_of_the_key_is_another_answer(store: Store) -> None:
    rows = [ONE, *({**ONE, **other} for other in OTHERS)]
    scores = [{**row, "scorer": scorer, "value": 1.0} for row in rows for scorer in ("f1", "rougeL")]
    written(store, answers=rows, answer_scores=scores)
    snapshot = store.read()
    assert snapshot.answers(["a"]).height == len(rows)
    assert snapshot.answer_scores(["a"]).height == len(scores)
    assert snapshot.graded_answers(["a"], reader="s")["reader"].to_list() == ["s"]


@pytest.mark.slow
def test_a_run_gets_answers_of_more_readers_later(store: Store) -> None:
    """What is there is left alone, what is other under the same key is refused, and revisions stay."""
    score = {**ONE, "scorer": "f1", "value": 1.0}
    written(store, answers=[{**ONE, "text": "x"}], answer_scores=[score])
    more = [{**ONE, "text": "x"}, {**ONE, "text": "y", "reader": "s"}]
    written(store, answers=more, answer_scores=[score, {**score, "scorer": "rougeL"}])
    written(store, answers=[{**ONE, "reader": "t"}, {**ONE, "run_id": "b"}])
    assert store.revision() == 3
    assert written(store, answers=more).revision() == 3
    snapshot = store.read()
    assert snapshot.answers(["a", "b"]).select("run_id", "reader", "text").rows() == [
        ("a", "r", "x"), ("a", "s", "y"), ("a", "t", None), ("b", "r", None)
    ]  # fmt: skip
    assert snapshot.answer_scores(["a"])["scorer"].to_list() == ["f1", "rougeL"]
    assert sorted(snapshot.sizes("answers").select("id", "rows").rows()) == [("a", 3), ("b", 1)]
    assert [store.read(revision).answers(["a"]).height for revision in (1, 2)] == [1, 2]
    assert written(store, answers=[{**ONE, "text": "x", "input_tokens": 9}]).revision() == 3
    with pytest.raises(StoreError, match="other answers"):
        written(store, answers=[{**ONE, "text": "another"}])
    assert doctor.examine(store).sound


@pytest.mark.parametrize(
    ("table", "row"),
    [
        ("answers", {"mode": "all"}),
        ("answers", {"pass": 0}),
        ("answers", {"k": -1}),
        ("answers", {"temperature": -0.1}),
        ("answers", {"usd": float("nan")}),
        ("answers", {"output_tokens": -1}),
        ("answers", {}),
        ("answer_scores", {"scorer": "f1", "value": float("inf")}),
        ("answer_scores", {"value": 1.0}),
        ("answer_scores", {"scorer": "f1", "value": 1.0}),
    ],
)
def test_what_cannot_be_is_refused(store: Store, table: str, row: dict[str, object]) -> None:
    """The same row twice, and what no answer has."""
    rows = [{**ONE, **row}] * (2 if row.keys() <= {"scorer", "value"} and len(row) != 1 else 1)
    with pytest.raises(InputError):
        written(store, **{table: rows})


def test_grades_of_the_last_release_are_scores(tmp_path: Path) -> None:
    """`graded_answers.zip` was written when an answer had one grade, and one slot per run, query and k."""
    shutil.unpack_archive(Path(__file__).with_name("graded_answers.zip"), tmp_path / "store")
    store = Store.open(tmp_path / "store")
    assert store.catalogue().version == 4
    snapshot = store.read()
    answers = snapshot.answers(["a", "b"])
    assert answers.schema == TABLES["answers"]
    assert answers.select("run_id", "query_id", "k", "text", "reader").rows() == [
        ("a", "q1", 1, "Two.", None), ("a", "q1", 3, "One.", None), ("a", "q2", 3, "", None),
        ("b", "q1", None, "Three.", None),
    ]  # fmt: skip
    scores = snapshot.answer_scores(["a", "b"])
    assert scores.schema == TABLES["answer_scores"]
    expected = [("a", "q1", 1, "f1", 0.25, "0-1"), ("a", "q1", 3, "f1", 1.0, "0-1"),
                ("b", "q1", None, "grade", 4.0, "1-5")]  # fmt: skip
    assert scores.select("run_id", "query_id", "k", "scorer", "value", "scale").rows() == expected
    found = snapshot.graded_answers(["a", "b"]).select("run_id", "query_id", "k", "grade", "scale")
    assert found.rows() == [
        ("a", "q1", 1, 0.25, "0-1"), ("a", "q1", 3, 1.0, "0-1"), ("a", "q2", 3, None, None),
        ("b", "q1", None, 4.0, "1-5"),
    ]  # fmt: skip
    assert snapshot.existing("answers", ["a"], "reader") == [None]
    with store.write("import") as writer:  # what is there is seen as such
        writer.add(Batch(frames={"answers": answers, "answer_scores": scores}))
    assert store.read().answers(["a", "b"]).equals(answers)
    assert store.read().answer_scores(["a", "b"]).equals(scores)


def test_a_grade_of_the_last_release_stands_beside_a_persons(tmp_path: Path) -> None:
    shutil.unpack_archive(Path(__file__).with_name("graded_answers.zip"), tmp_path / "store")
    store = Store.open(tmp_path / "store")
    before = store.read().answer_scores(["a"])
    about = {"scorer": "correctness", "judge": "Anne", "value": 5, "scale": "1-5", "source": "judging"}
    row = {**before.row(0, named=True), **about}
    after = written(store, answer_scores=[row]).read().answer_scores(["a"])
    assert after.filter(pl.col("judge").ne_missing("Anne")).equals(before)
    assert after.height == before.height + 1


def test_a_grade_in_the_row_becomes_a_score() -> None:
    rows = pl.DataFrame(
        {"run_id": ["a"] * 3, "query_id": ["q1", "q2", "q3"], "k": [1] * 3, "grade": [1.0, None, 0.5],
         "judge": ["f1", None, None]}
    )  # fmt: skip
    made = parted(rows)
    assert made["answers"].height == 3
    assert made["answer_scores"].select("query_id", "scorer", "value", "source").rows() == [
        ("q1", "f1", 1.0, GRADE), ("q3", "grade", 0.5, GRADE)
    ]  # fmt: skip
    assert list(parted(rows.drop("grade", "judge"))) == ["answers"]


def row(value: float, scorer: str = "f1", **other: object) -> dict[str, object]:
    return {"run_id": "a", "query_id": "q", "k": 1, "scorer": scorer, "value": value, **other}


CASES = {
    "passes are averaged": (
        [row(1, **{"pass": 1}), row(0, **{"pass": 2})], {}, [("a", None, 0.5, "f1", None)]),
    "what an import says, before f1": (
        [row(1), row(3, "g", source=GRADE)], {}, [("a", None, 3.0, "g", None)],
    ),
    "f1 before the others that compare with a reference": (
        [row(0, "similarity"), row(1), row(0, "faithfulness")], {}, [("a", None, 1.0, "f1", None)],
    ),
    "what compares with no reference is no grade": ([row(1, "faithfulness")], {}, []),
    "unless it is asked for": (
        [row(1, "faithfulness", judge="m")], {"scorer": "faithfulness"},
        [("a", None, 1.0, "faithfulness", "m")],
    ),
    "the judge who scored most": (
        [row(1, "correctness", judge="x"), row(5, "correctness", judge="y"),
         row(4, "correctness", judge="y", query_id="r")],
        {}, [("a", None, 5.0, "correctness", "y"), ("a", None, 4.0, "correctness", "y")],
    ),
    "the judge who is asked for": (
        [row(1, "correctness", judge="x"), row(5, "correctness", judge="y")],
        {"judge": "x"}, [("a", None, 1.0, "correctness", "x")],
    ),
    "other modes and means are no answers from the first k": (
        [row(1, mode="gold"), row(1, query_id=None)], {}, [],
    ),
    "the reader of most runs": (
        [row(0.1, reader="s"), row(0.2, reader="r"), row(0.3, run_id="b", reader="r"),
         row(0.4, run_id="c", reader="s"), row(0.5, run_id="d", reader="r")],
        {}, [("a", "r", 0.2, "f1", None), ("b", "r", 0.3, "f1", None), ("c", "s", 0.4, "f1", None),
             ("d", "r", 0.5, "f1", None)],
    ),
    "of as many runs and scores, the better reader": (
        [row(0.2, reader="r", scale="0-1"), row(0.9, reader="s", scale="0-1")],
        {}, [("a", "s", 0.9, "f1", None)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_which_score_is_the_grade(name: str) -> None:
    rows, asked, expected = CASES[name]
    found = graded(frame("answers", []), frame("answer_scores", rows), **asked)
    assert found.select("run_id", "reader", "grade", "scorer", "judge").rows() == expected
