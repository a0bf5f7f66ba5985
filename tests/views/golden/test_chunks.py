"""Grades of chunks hold for whatever cuts the documents."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from core.analysis.workspace.scope import Scope
from core.analysis.workspace.scores import evidence
from core.cli.app import app
from core.golden.book import Book, Queue
from core.store import Snapshot, Store
from core.views.golden import judging
from core.views.golden.adding import parts_of, whole_of

WORDS = (
    "purring cats sleep at night on warm roofs",
    "barking dogs guard the yard by day",
    "cows moo in fields",
)
SPEC = """
name = "{name}"
collection = "{folder}/docs"
queries = "{folder}/questions.csv"
[axes]
mode = "sparse"
candidates = 5
chunker = {{ method = "sentence", size = {size}, overlap = 0 }}
[latency]
repeats = 0
"""


def run(folder: Path, name: str, size: int) -> None:
    (folder / f"{name}.toml").write_text(SPEC.format(folder=folder, name=name, size=size))
    words = ["--store", str(folder / "store"), "run", str(folder / f"{name}.toml")]
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 0, found.output


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    for number in range(4):
        text = " ".join(f"{words.capitalize()}, part {number}." for words in WORDS for _ in range(4))
        (tmp_path / "docs" / f"{number}.md").write_text(text)
    asked = ["cats at night", "who guards the yard", "what do cows do"]
    rows = [f"q{at},{text}" for at, text in enumerate(asked)]
    (tmp_path / "questions.csv").write_text("\n".join(["query_id,text", *rows]))
    run(tmp_path, "first", 30)
    return tmp_path


def judged(store: Store, book: Book, n: int) -> Queue:
    snapshot = store.read()
    scope = Scope(snapshot.runs()["collection_id"][0])
    asked = {"base": None, "sampling": "holes of stacks", "n": n, "k": 5}
    queue = judging.begin(book, snapshot, scope, judge="Ada", **asked)  # type: ignore[arg-type]
    cards = judging.cards(snapshot, queue.collection_id, book.items(queue.queue_id))
    assert all(card.text and card.question for card in cards)
    for place, card in enumerate(cards):
        book.grade(queue.queue_id, place, 5 if card.question.split()[0] in card.text.lower() else 2, 1.0)
    return queue


def graded(snapshot: Snapshot, golden: str) -> dict[str, int]:
    """How many judged passages each run ranks among its first five."""
    ids = snapshot.runs().filter("has_rankings")["run_id"].to_list()
    found = evidence(snapshot, ids, golden)
    return dict(zip(found.run_ids, (found.grades[:, :, :5] > 0).sum(axis=(1, 2)).tolist(), strict=True))


@pytest.mark.slow
def test_grades_of_chunks_are_grades_of_other_chunks_too(folder: Path):
    store, book = Store.open(folder / "store"), Book(folder / "judging.sqlite")
    queue = judged(store, book, 8)
    snapshot = store.read()
    collection = whole_of(snapshot, queue.collection_id)
    assert queue.collection_id in parts_of(snapshot, collection)
    assert [each.queue_id for each in judging.queues_of(book, snapshot, collection)] == [queue.queue_id]
    golden = judging.store_judged(store, book, queue).golden_set_id
    first = graded(store.read(), golden)
    assert list(first.values()) == [8], "each graded chunk counts in the run that ranked it, at once"
    run(folder, "second", 60)
    more = judged(store, book, 5)
    judging.store_judged(store, book, more)
    snapshot = store.read()
    assert snapshot.spans(golden).height >= 8, "earlier grades stay"
    both = graded(snapshot, golden)
    assert len(both) == 2
    assert all(both.values())
    grades = snapshot.judgements(f"{golden}@{queue.collection_id.partition('@')[2]}")
    assert set(grades["grade"].unique()) <= {2, 5}
    assert isinstance(grades, pl.DataFrame)
