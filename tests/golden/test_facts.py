"""Facts that judges write: how they are kept, undone and put together to nuggets of a golden set."""

from pathlib import Path

import polars as pl
import pytest

from core.errors import InputError
from core.golden.book import PAIR, Book, Queue
from core.golden.facts import LONGEST, by_query, lines_of, supported, together
from core.store import Store
from core.tables import NUGGETS, frame
from core.views.golden import judging
from tests.stores import HOSTILE, Lab

ROW = {"golden_set_id": "g", "query_id": "q", "nugget": 0, "support": 1.0, "judge": "Anne"}


def nuggets(*rows: tuple[str, bool, str | None]) -> pl.DataFrame:
    named = [dict(zip(("text", "vital", "passage_id"), row, strict=True)) for row in rows]
    return frame("nuggets", [{**ROW, **row} for row in named])


def test_lines_are_one_each_and_once():
    assert lines_of([" a\n fact ", "", "a fact", "b (okay)"], ["c"]) == ["a fact", "b (okay)"]


@pytest.mark.parametrize(
    ("texts", "words"),
    [(["x" * (LONGEST + 1)], "longer than"), (["one more"], f"more than {NUGGETS} facts")],
)
def test_what_is_too_much_is_refused(texts, words):
    with pytest.raises(InputError, match=words):
        lines_of(texts, [f"fact {n}" for n in range(NUGGETS)])


def test_facts_are_told_by_their_text_and_vital_where_one_says_so():
    said = pl.DataFrame({"query_id": ["q", "q"], "passage_id": ["p1", "p2"]})
    hand = supported(
        said, {("q", "p1"): ["b", "a (okay)"], ("q", "p2"): ["b (okay)"], ("q", "p9"): ["z"]}, "Anne"
    )
    rows = together([nuggets(("a", False, None), ("c", True, None)), hand], "new")
    assert rows.select("nugget", "text", "vital", "passage_id").rows() == [
        (0, "a", False, "p1"), (1, "b", True, "p1"), (1, "b", True, "p2"), (2, "c", True, None)
    ]  # fmt: skip
    assert set(rows["golden_set_id"]) == {"new"}
    assert by_query(rows) == {"q": ["a (okay)", "b", "c"]}
    with pytest.raises(InputError, match="more than"):
        together([nuggets(*((f"fact {n}", True, "p") for n in range(NUGGETS + 1)))], "new")


def test_facts_land_with_the_grades_of_their_passages(tmp_path: Path):
    lab = Lab().judge({"q": {"p1": 5, "p2": 3, "p3": 1}}).ask({"q": "a question"})
    lab.hold({name: name for name in ("p1", "p2", "p3")}).write(tmp_path / "store")
    store, book = Store.open(tmp_path / "store"), Book(tmp_path / "judging.sqlite")
    queue = Queue(queue_id="Anne-1", collection_id="lab", judge="Anne", base="gold")
    book.start(queue, [("q", "p1"), ("q", "p2"), ("q", "p3")])
    hostile = lines_of([HOSTILE[0]], ())
    book.write_facts("Anne-1", 0, ["gone"])
    book.write_facts("Anne-1", 0, ["one", *hostile])
    book.write_facts("Anne-1", 1, ["one"])
    book.write_facts("Anne-1", 2, ["of no grade"])
    assert judging.facts_of(book, queue, book.items("Anne-1")[1], ["stored"]) == (
        ["stored", "one", *hostile, "of no grade"], ["one"]
    )  # fmt: skip
    book.grade("Anne-1", 0, 5, 1.0)
    book.grade("Anne-1", 1, 3, 1.0)
    own = judging.store_judged(store, book, queue).golden_set_id
    rows = store.read().nuggets(own)
    assert set(rows.select("text", "passage_id").rows()) == {
        ("one", "p1"), ("one", "p2"), *((line, "p1") for line in hostile)
    }  # fmt: skip
    assert judging.known_facts(store.read(), queue) == by_query(rows)
    both = judging.store_judged(store, book, queue, onto="gold").golden_set_id
    assert store.read().nuggets(both).select(*PAIR, "text").equals(rows.select(*PAIR, "text"))
    book.write_facts("Anne-1", 0, [])
    judging.store_judged(store, book, queue)
    assert store.read().nuggets(own).select("text", "passage_id").rows() == [("one", "p2")]
