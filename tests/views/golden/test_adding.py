"""Grades by hand added to what the store knows: the decision keeps its queries, and no grade is lost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from core.analysis.workspace.choices import choices, workspaces
from core.analysis.workspace.resolve import golden_set_of
from core.analysis.workspace.scope import Scope, audits
from core.analysis.workspace.scores import evidence
from core.cli.app import app
from core.errors import InputError, UnknownNameError
from core.golden.adding import AddedCounts
from core.golden.book import Book, Queue
from core.golden.by_hand import Sampling
from core.store import Snapshot, Store
from core.views.golden import adding, judging
from core.views.golden.adding import write_added
from core.views.words.facts import MADE_UP
from core.views.words.judging import ASK_REAL, KNOWN_PLACES, provenance
from core.views.words.verdict import SO_FAR
from core.work.questions.folder import QUERIES, QUOTES
from tests.stores import Lab
from tests.work.questions import texts

GOLD = {f"q{query}": {f"p{place}": 1 + (query + place) % 5 for place in range(3)} for query in range(4)}
Grades = Mapping[tuple[str, str], int]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    lab = Lab().judge(GOLD).ask({query: f"question {query}" for query in GOLD})
    lab.hold({f"p{place}": f"text {place}" for place in range(8)})
    lab.run("r", final={query: ["p0", "p7"] for query in GOLD})
    return lab.write(tmp_path / "store")


@pytest.fixture
def book(store: Store) -> Book:
    return Book(judging.book_path(store))


def judged(
    store: Store, book: Book, judge: str, given: Mapping[int, int], *, base: str = "gold",
    sampling: Sampling = "at random",
) -> Queue:  # fmt: skip
    asked = {"judge": judge, "base": base, "sampling": sampling, "n": 12, "k": 2}
    queue = judging.begin(book, store.read(), Scope("lab", "gold"), **asked)  # type: ignore[arg-type]
    for place, grade in given.items():
        book.grade(queue.queue_id, place, grade, 1.0)
    return queue


def graded(snapshot: Snapshot, name: str) -> dict[tuple[str, str], int]:
    rows = snapshot.judgements(name).select("query_id", "passage_id", "grade")
    return {(query, passage): grade for query, passage, grade in rows.iter_rows()}


def by_hand(book: Book, queue: Queue) -> dict[tuple[str, str], int]:
    return {(item.query_id, item.passage_id): item.grade for item in book.items(queue.queue_id) if item.grade}


def test_both_are_in_the_new_set_and_the_hand_wins(store: Store, book: Book):
    known = graded(store.read(), "gold")
    queue = judged(store, book, "Anne", dict.fromkeys(range(5), 3))
    golden = judging.store_judged(store, book, queue, onto="gold")
    hand = by_hand(book, queue)
    snapshot = store.read()
    assert golden.parents == ("gold", "lab-Anne")
    assert graded(snapshot, golden.golden_set_id) == known | hand
    assert graded(snapshot, "gold") == known, "the parents stay"
    assert graded(snapshot, "lab-Anne") == hand
    differ = sum(known[pair] != 3 for pair in hand)
    assert golden.notes.endswith(str(AddedCounts(5, differ)))
    assert set(snapshot.judgements(golden.golden_set_id)["judge"].drop_nulls()) == {"Anne"}
    assert audits(snapshot, "lab") == {"gold": "gold-and-Anne", "lab-Anne": "gold-and-Anne"}
    assert golden_set_of(snapshot, "lab", None) == workspaces(snapshot)["lab"][0] == "gold-and-Anne"


@pytest.mark.slow
def test_more_grades_make_a_later_version_and_another_judge_a_set_of_all(store: Store, book: Book):
    queue = judged(store, book, "Anne", {0: 1})
    first = judging.store_judged(store, book, queue, onto="gold")
    revision = store.revision()
    judging.store_judged(store, book, queue, onto="gold")
    assert store.revision() == revision, "nothing is new"
    book.grade(queue.queue_id, 1, 2, 1.0)
    assert judging.store_judged(store, book, queue, onto="gold").golden_set_id == first.golden_set_id
    versions = (store.read(revision), store.read())
    own = [each.judgements(first.golden_set_id).filter(judge="Anne").height for each in versions]
    assert own == [1, 2]
    anne = by_hand(book, queue)
    other = judged(store, book, "Ben", dict.fromkeys(range(12), 4), base="gold-and-Anne")
    both = judging.store_judged(store, book, other, onto="gold-and-Anne")
    assert both.parents == ("gold", "lab-Anne", "lab-Ben")
    known = graded(store.read(), "gold")
    assert graded(store.read(), both.golden_set_id) == known | anne | by_hand(book, other)
    again = judging.store_judged(store, book, queue, onto=both.golden_set_id)
    assert again.golden_set_id == both.golden_set_id
    assert graded(store.read(), both.golden_set_id) == known | by_hand(book, other) | anne, "the latest wins"
    assert judging.written_by(store.read(), queue, "gold") == "gold-and-Anne"
    assert judging.written_by(store.read(), queue) == "lab-Anne"


def test_what_is_offered_and_usual(store: Store, book: Book):
    snapshot = store.read()
    queue = judged(store, book, "Anne", {})
    assert (adding.base_of(snapshot, queue), adding.usual(snapshot, queue)) == ("gold", False)
    filling = judged(store, book, "Anne", {}, sampling="holes of stacks")
    assert adding.usual(snapshot, filling)
    for other in (replace(queue, base=""), replace(queue, base="gone"), replace(queue, mode="order")):
        assert (adding.base_of(snapshot, other), adding.usual(snapshot, other)) == ("", False)


def test_what_cannot_be_added(store: Store, tmp_path: Path):
    Lab("elsewhere").judge(GOLD, "other").judge({}, "empty").write(store.path)
    for hand, to, error, found in (
        ("gold", "gold", InputError, "to itself"),
        ("gold", "gone", UnknownNameError, "gone"),
        ("gone", "gold", UnknownNameError, "gone"),
        ("other", "gold", InputError, "different collections: elsewhere, lab"),
        ("empty", "other", InputError, "has no grades"),
    ):
        revision = store.revision()
        with pytest.raises(error, match=found):
            write_added(store, hand, to)
        assert store.revision() == revision
    Lab().judge(GOLD, "gold-and-Ben").judge(GOLD, "hand", by="Ben").write(store.path)
    with pytest.raises(InputError, match="another one"):
        write_added(store, "hand", "gold")


def command(store: Path, *words: object) -> str:
    told = CliRunner().invoke(app, ["--store", str(store), *map(str, words)])
    assert told.exit_code == 0, told.output
    return told.stdout


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of a run on questions that were made from documents, which are cut."""
    at = tmp_path_factory.mktemp("asked")
    folder = texts.folder_of(at)
    command(at / "store", "golden", "questions", folder, "--out", at / "set")
    (at / "runs.toml").write_text(
        f'name = "runs"\ncollection.path = "{folder}"\nqueries = "{at / "set" / QUERIES}"\n'
        f'golden_set = "{at / "set" / QUOTES}"\nlatency.repeats = 0\n[axes]\nmode = "sparse"\n'
        'candidates = 5\nchunker = { method = "sentence", size = 40, overlap = 0 }\n'
    )
    command(at / "store", "run", at / "runs.toml", "--yes")
    return at / "store"


@pytest.mark.slow
def test_a_workspace_of_made_questions_keeps_its_queries(asked: Path):
    store = Store.open(asked)
    book, snapshot = Book(judging.book_path(store)), store.read()
    (known,) = snapshot.golden_sets()["golden_set_id"]
    collection = snapshot.runs()["collection_id"][0]
    scope = Scope(collection, known)
    asking = {"judge": "Anne", "base": known, "sampling": "stratified", "n": 6, "k": 5}
    queue = judging.begin(book, snapshot, scope, **asking)  # type: ignore[arg-type]
    assert adding.usual(snapshot, queue), "a few grades would take the place of all that is known"
    for place in range(6):
        book.grade(queue.queue_id, place, 1 + place % 5, 1.0)
    golden = judging.store_judged(store, book, queue, onto=adding.base_of(snapshot, queue))
    snapshot = store.read()
    assert golden.parents == (known, f"{collection}-Anne")
    queries = set(snapshot.spans(known)["query_id"])
    assert set(snapshot.spans(golden.golden_set_id)["query_id"]) == queries
    chunking = queue.collection_id.partition("@")[2]
    found = graded(snapshot, f"{golden.golden_set_id}@{chunking}")
    for pair, grade in by_hand(book, queue).items():
        assert found[pair] == grade, "the grade by hand wins"
    runs = snapshot.runs()["run_id"].to_list()
    scored = [evidence(snapshot, runs, name).query_ids for name in (known, golden.golden_set_id)]
    assert scored[0] == scored[1]
    assert choices(snapshot, Scope(collection, golden.golden_set_id)).measures[0] == "RR"
    told = json.loads(command(asked, "decide", "--collection", collection, "--format", "json"))
    assert told["golden_set"] == golden.golden_set_id
    assert (told["verdict"], told["doubt"]) == (SO_FAR, ASK_REAL), "some grades make no question real"
    assert MADE_UP in told["warnings"]
    assert golden.judge == "Anne", "a set of known places is no judge"
    of = provenance(snapshot, Scope(collection, golden.golden_set_id))
    assert of.endswith(f"; {KNOWN_PLACES}, some graded by Anne.")


@pytest.mark.slow
def test_by_command(asked: Path):
    store = Store.open(asked)
    (known,) = store.read().golden_sets().filter(pl.col("parents").list.len() == 0, judge="")["golden_set_id"]
    chunks = store.read().collections(parts=True).drop_nulls("part_of")["collection_id"][0]
    rows = store.read().judgements(f"{known}@{chunks.partition('@')[2]}").unique("query_id").head(2)
    lines = [
        f"{chunks},q,Zoe,{query},,{passage},,,2,"
        for query, passage in rows.select("query_id", "passage_id").iter_rows()
    ]
    names = "collection,queue,judge,query_id,question,passage_id,title,passage,grade,note"
    sheet = asked.parent / "sheet.csv"
    sheet.write_text("\n".join([names, *lines]))
    command(asked, "import", sheet, "--golden-set", "zoe")
    (row,) = json.loads(command(asked, "judges", "add", "zoe", "--to", known, "--format", "json"))
    assert row["parents"] == [known, "zoe"]
    assert row["notes"].endswith("Of 2 known places graded by hand too, 2 differ: the grade by hand counts.")
    found = graded(store.read(), f"{row['golden_set_id']}@{chunks.partition('@')[2]}")
    assert [found[pair] for pair in graded(store.read(), "zoe")] == [2, 2]
