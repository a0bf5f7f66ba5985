"""What few grades decide between two stacks is one answer on every surface."""

from __future__ import annotations

import html
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from core.agents.answers import Answers
from core.analysis.between import between, book_of, decided
from core.analysis.deciding import Contest
from core.analysis.moves.switching import switch
from core.analysis.workspace.question import Question
from core.analysis.workspace.resolve import resolve
from core.api import open as open_store
from core.cli.app import app
from core.store import Store
from core.views.ask import Given
from core.views.blocks import Control, Fold, Table, Text, Way
from core.views.decision.sections import moving
from core.views.golden.sections import begin
from core.views.what_if.moving import staying
from core.views.what_if.sections import few_grades
from core.views.words.deciding import errs, stands
from tests.stores import Lab
from tests.views.made import BOOK

QUERIES = [f"q{number:02}" for number in range(40)]
NAMES = ("old", "new")


def made() -> Lab:
    """On two of three questions the new stack shows useful passages, the old one useless ones."""
    lab = Lab().judge({query: {"good": 5, "same": 3, "bad": 1} for query in QUERIES})
    lab.run("old", final={query: ["same", "bad", "worse"] for query in QUERIES})
    new = {
        query: ["good", "same", "bad"] if number % 3 else ["same", "bad", "worse"]
        for number, query in enumerate(QUERIES)
    }
    return lab.run("new", final=new)


def call(store: Path, *words: str) -> str:
    done = CliRunner().invoke(app, ["--store", str(store), *words])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("graded", [0, 1, 7, 20, 52])
def test_every_surface_says_the_same(graded: int, tmp_path: Path):
    store = made().write(tmp_path / "s")
    call(store.path, "incumbent", "old")
    view = resolve(Question(measure="Precision4+@3"), store.read(), BOOK)
    contest = Contest(now="old", to="new", k=3)
    book = book_of(view.snapshot)
    queue = begin(book, view.snapshot, view.scope, contest)
    book.take(queue.queue_id, "Ann")
    for item in book.items(queue.queue_id)[:graded]:
        book.grade(queue.queue_id, item.place, 5 if item.passage_id == "good" else 1, None)

    found = between(view, contest)
    assert found.standing is not None
    assert found.standing.graded == graded
    told, asked = found.to_dict(), ("golden", "between", *NAMES, "--measure", "Precision4+@3")
    assert json.loads(call(store.path, *asked, "--format", "json")) == told
    results = open_store(store.path)
    space = results.workspace("lab")
    assert space.between(*NAMES, measure="Precision4+@3") == told

    words = stands(found.standing)
    told_of = f"By few grades, new: {words}"
    few = {**found.standing.to_dict(), "in_words": told_of} if found.standing.done else None
    assert space.switch()["few_grades"] == few
    record = space.decide().record(tmp_path / "r.json", tmp_path / "r.html")
    assert json.loads(record[0].read_text())["stay_or_switch"]["few_grades"] == few
    assert (told_of in html.unescape(record[1].read_text())) == bool(few)
    agents = Answers(results, tmp_path).stay_or_switch("lab", {}, {})["few_grades"]
    assert agents == few
    page = [*few_grades.draw(view.replace(incumbent="old"), Given({})), *staying.draw(view, Given({}))]
    control = next(block for block in page if isinstance(block, Control))
    fewer = few_grades.draw(view.replace(incumbent="old"), Given({"fewk": ["1"]}))
    assert next(block for block in fewer if isinstance(block, Control)).given["contest"].k == 1
    assert [block.words for block in control.others()] == [words]
    assert (told_of in [block.words for block in page if isinstance(block, Text)]) == bool(few)


def test_nothing_is_told_of_a_move_that_nobody_judged(tmp_path: Path):
    view = resolve(Question(), made().write(tmp_path / "s").read(), BOOK)
    assert decided(view, *NAMES) is None


def test_a_model_decides_by_its_grades_and_its_mistakes_are_stated(shipped_store: Path):
    asked = Question(collection="docs-search", incumbent="BM25")
    view = resolve(asked, Store.open(shipped_store).read(), BOOK)
    runs = dict(view.table.select("name", "run_id").iter_rows())
    contest = Contest(now=runs["BM25"], to=runs["BM25 ⊕ MiniLM"], k=10)
    found = between(view, contest, "docs-search-graded")
    assert found.standing is not None
    assert found.standing.done > 100
    assert found.mistakes is not None
    assert found.mistakes.golden_set == "docs-search-second"
    own, other = (
        view.snapshot.judgements(name).select("query_id", "passage_id", useful=pl.col("grade") >= 4)
        for name in ("docs-search-graded", "docs-search-second")
    )
    both = own.join(other, on=["query_id", "passage_id"])
    truly = both.filter("useful_right")["useful"].mean()
    wrongly = both.filter(~pl.col("useful_right"))["useful"].mean()
    assert (found.mistakes.passages, found.mistakes.found, found.mistakes.wrong) == (240, truly, wrongly)
    page = [
        *few_grades.draw(view, Given({"from": ["BM25"], "to": ["BM25 ⊕ MiniLM"], "gby": [str(found.by)]}))
    ]
    said = f"{stands(found.standing)} {errs(found)}"
    assert said in [block.words for block in page if isinstance(block, Text)]


def test_mistakes_alike_on_both_shrink_a_lead_and_do_not_turn_it():
    """A judge that finds 80 % and calls 30 % of the rest useful leaves half of the difference."""
    random = np.random.default_rng(3)
    useful = random.random((2, 200_000)) < np.array([[0.6], [0.4]])
    said = np.where(useful, random.random(useful.shape) < 0.8, random.random(useful.shape) < 0.3)
    lead, told = (np.subtract(*each.mean(axis=1)) for each in (useful, said))
    assert told / lead == pytest.approx(0.5, abs=0.02)


def test_kinds_are_told_by_tag_without_judgements(shipped_store: Path):
    view = resolve(Question(collection="docs-search"), Store.open(shipped_store).read(), BOOK)
    page = [*few_grades.draw(view, Given({"from": ["BM25"], "to": ["BM25 ⊕ MiniLM"]}))]
    fold = next(block for block in page if isinstance(block, Fold) and block.title == "By kind of query")
    table = next(block.rows for block in fold.blocks if isinstance(block, Table))
    asked = view.snapshot.queries("docs-search").select("query_id", "tags")
    runs = dict(view.table.select("name", "run_id").iter_rows())
    contest = Contest(now=runs["BM25"], to=runs["BM25 ⊕ MiniLM"], k=10)
    whole = between(view, contest).questions.join(asked, on="query_id")
    for row in table.filter(pl.col("kind").str.contains("=")).iter_rows(named=True):
        own = whole.filter(pl.col("tags").list.contains(row["kind"]))
        assert (row["n"], row["overlap"]) == (own.height, pytest.approx(own["overlap"].mean()))
    assert {"type=narrow", "type=broad"} <= set(table["kind"])


def test_a_golden_set_that_nobody_else_graded_has_unknown_mistakes(tmp_path: Path):
    store = made().write(tmp_path / "s")
    view = resolve(Question(), store.read(), BOOK)
    (name,) = view.snapshot.golden_sets()["golden_set_id"]
    found = between(view, Contest(now="old", to="new", k=3), name)
    assert found.mistakes is None
    assert "not known" in errs(found)


@pytest.mark.slow
def test_without_any_judgement_few_grades_are_named_as_the_way(tmp_path: Path):
    """Nobody graded anything: the answer is unknown, and the contest's queue is the one that counts."""
    lab = Lab()
    lab.run("old", final={query: ["same", "bad", "worse"] for query in QUERIES})
    store = lab.run("new", final={query: ["good", "same", "bad"] for query in QUERIES}).write(tmp_path / "s")
    view = resolve(Question(incumbent="old"), store.read(), BOOK)
    assert switch(view).verdict.answer == "unknown"
    ways = [block.section for block in moving(view) if isinstance(block, Way)]
    assert ways == ["stay or switch", "few grades"]
    book, contest = book_of(view.snapshot), Contest(now="old", to="new", k=3)
    queue = begin(book, view.snapshot, view.scope, contest)
    book.take(queue.queue_id, "Ann")
    for item in book.items(queue.queue_id):
        book.grade(queue.queue_id, item.place, 5 if item.passage_id == "good" else 1, None)
    few = decided(view, "old", None)
    assert few is not None
    assert few.answer == "switch"
    said = [block.words for block in moving(view) if isinstance(block, Text)]
    assert said[1].startswith("By few grades, new: Decided after")
