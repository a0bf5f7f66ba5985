"""Two stacks without judgements: what they show differently, and what the grades of their queue decide."""

from __future__ import annotations

import json

import polars as pl
import pytest
from typer.testing import CliRunner

from core.analysis.between import begun, stand
from core.analysis.deciding import Contest, differences, draw, standing
from core.analysis.workspace.question import Question
from core.analysis.workspace.resolve import resolve
from core.cli.app import app
from core.errors import InputError
from core.golden.book import Book
from core.store import Snapshot, Store
from core.views.golden.judging import book_path
from core.views.golden.sections import begin
from tests.stores import Lab
from tests.views.made import BOOK

QUERIES = [f"q{number:02}" for number in range(60)]
CONTEST = Contest(now="old", to="new", k=3)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """On two of three questions the new stack shows a useful passage first, the old one a useless one."""
    made = Lab()
    made.run("old", final={query: ["same", "bad", "worse"] for query in QUERIES})
    new = {
        query: ["good", "same", "bad"] if number % 3 else ["same", "bad", "worse"]
        for number, query in enumerate(QUERIES)
    }
    made.run("new", final=new).run("twin", final=new).run("elsewhere", final={"q99": ["good"]})
    return made.write(tmp_path_factory.mktemp("s") / "s")


@pytest.fixture
def snapshot(store: Store) -> Snapshot:
    return store.read()


def test_what_two_stacks_show_differently(snapshot: Snapshot):
    rows = differences(snapshot, CONTEST)
    assert rows.height == 60
    changed = rows.row(0, named=True)
    assert (changed["other_first"], changed["only_now"], changed["only_to"]) == (True, 1, 1)
    assert changed["overlap"] == pytest.approx(2 / 3)
    # same at 1 and 2, bad at 2 and 3: the first counts from depth 2 on, the second from depth 3.
    p = 0.9
    expected = (1 - p) * (p / 2 + p**2 * 2 / 3) + p**3 * 2 / 3
    assert changed["rbo"] == pytest.approx(expected)
    alike = rows.row(-1, named=True)
    assert (alike["overlap"], alike["other_first"], alike["only_to"]) == (1, False, 0)
    assert alike["rbo"] == pytest.approx(1)


def test_only_passages_that_one_of_them_shows_are_judged(snapshot: Snapshot):
    rows = draw(snapshot, CONTEST)
    assert rows.height == 2 * 40
    assert set(rows["passage_id"]) == {"good", "worse"}
    assert rows["query_id"].rle().struct.field("len").to_list() == [2] * 40, "a question is read once"


def test_grades_decide_before_all_is_judged(store: Store):
    snapshot = store.read()
    scope = resolve(Question(together=True), snapshot, BOOK).scope
    book = Book(book_path(store))
    queue = begin(book, snapshot, scope, CONTEST)
    assert begin(book, snapshot, scope, CONTEST).queue_id == queue.queue_id
    assert begun(book, snapshot, scope, Contest(now="new", to="old", k=3)) is None
    told = stand(book, snapshot, queue)
    assert told is not None
    assert (told.done, told.open, told.questions, told.answer) == (0, 40, 60, None)
    book.take(queue.queue_id, "Ann")
    for item in book.items(queue.queue_id):
        book.grade(queue.queue_id, item.place, 5 if item.passage_id == "good" else 1, None)
        told = standing(snapshot, CONTEST, book.items(queue.queue_id))
        if told.answer is not None:
            break
    assert (told.answer, told.at) == ("switch", told.done)
    assert told.done < 40
    assert told.ends[0] > 0
    assert told.ends[0] <= 40 / 60 / 3 <= told.ends[1], "the difference in Precision4+@3"


def test_all_grades_give_the_difference_itself(store: Store):
    contest = Contest(now="old", to="new", k=2)
    snapshot = store.read()
    scope = resolve(Question(together=True), snapshot, BOOK).scope
    book = Book(book_path(store))
    queue = begin(book, snapshot, scope, contest)
    for item in book.items(queue.queue_id):
        if item.passage_id == "good":
            book.grade(queue.queue_id, item.place, 4, None)
        else:
            book.skip(queue.queue_id, [item.place], None)
    told = standing(snapshot, contest, book.items(queue.queue_id))
    assert told.value == pytest.approx(40 / 60 / 2)
    assert told.ends == pytest.approx((told.value, told.value))


def test_stacks_without_a_common_question_or_difference_are_refused(snapshot: Snapshot):
    with pytest.raises(InputError, match="no question in common"):
        differences(snapshot, Contest(now="old", to="elsewhere", k=3))
    with pytest.raises(InputError, match="show the same passages"):
        draw(snapshot, Contest(now="new", to="twin", k=3))


def test_the_command_says_the_same(store: Store):
    asked = ["golden", "between", "old", "new", "--measure", "Precision4+@3", "--queue", "--together"]
    told = CliRunner().invoke(app, ["--store", str(store.path), *asked, "--format", "json"])
    assert told.exit_code == 0, told.output
    found = json.loads(told.stdout)
    assert len(found["questions"]) == 60
    assert found["standing"]["questions"] == 60
    assert found["standing"]["measure"] == "Precision4+@3"
    assert pl.DataFrame(found["questions"])["only_to"].sum() == 40
