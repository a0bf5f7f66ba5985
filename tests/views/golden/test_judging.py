from pathlib import Path

import polars as pl
import pytest

from core.analysis.workspace.scope import Scope
from core.errors import InputError
from core.golden.book import Book, Item, Queue
from core.records import Batch
from core.store import Store
from core.tables import frame
from core.views.golden import judging
from core.views.golden.judging import begin, begin_settling, pool, progress, store_judged
from core.views.golden.soundness import compare, sentence
from tests.stores import HOSTILE, Lab

SCOPE = Scope("lab", "gold")
GOLD = {f"q{query}": {f"p{place}": 1 + (query + place) % 5 for place in range(6)} for query in range(4)}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    lab = Lab().judge(GOLD).judge({"q0": {"p0": 5, "p1": 2}}, "ben")
    lab.ask({query: f"question {query}" for query in GOLD})
    lab.hold({f"p{place}": HOSTILE[place] for place in range(8)})
    lab.run("r", final={query: ["p0", "p7", "p6", "gone"] for query in GOLD}).write(tmp_path / "store")
    return Store.open(tmp_path / "store")


@pytest.fixture
def book(store: Store) -> Book:
    return Book(judging.book_path(store))


def start(store: Store, book: Book, judge: str = "Anne", n: int = 8, **about: str) -> Queue:
    options = {"base": "gold", "sampling": "at random", **about}
    return begin(book, store.read(), SCOPE, judge=judge, n=n, k=3, **options)  # type: ignore[arg-type]


def test_the_pool_is_what_is_judged_and_what_stacks_show(store: Store):
    rows = pool(store.read(), SCOPE, "gold", 3)
    assert rows.height == 4 * 6 + 4 * 2  # p6 and p7 are holes; what has no text cannot be read
    assert rows.filter(pl.col("grade").is_null())["passage_id"].unique().sort().to_list() == ["p6", "p7"]
    assert rows.filter("disputed").select("query_id", "passage_id").rows() == [("q0", "p0")]
    assert pool(store.read(), SCOPE, None, 1)["passage_id"].unique().to_list() == ["p0"]


def test_nobody_judges_what_cannot_be_read(tmp_path: Path):
    Lab().judge(GOLD).write(tmp_path / "store")
    with pytest.raises(InputError, match="No text is stored"):
        pool(Store.open(tmp_path / "store").read(), SCOPE, "gold", 10)


def test_cards_tell_texts_and_nothing_else(store: Store, book: Book):
    queue = start(store, book, n=99)
    items = book.items(queue.queue_id)
    cards = judging.cards(store.read(), "lab", items)
    for item, card in zip(items, cards, strict=True):
        assert card.question == f"question {item.query_id}"
        assert card.text == HOSTILE[int(item.passage_id[1:])]


def test_names_are_people(store: Store, book: Book):
    start(store, book, "Anne")
    for name, found in (("", "Who judges"), ("anne", "known as 'Anne'")):
        with pytest.raises(InputError, match=found):
            start(store, book, name)
    Lab().judge(GOLD, "lab-Zoe").write(store.path)
    with pytest.raises(InputError, match="another one's"):
        start(store, book, "Zoe")


@pytest.mark.parametrize("name", [*HOSTILE, "Zoë Müller", "李"])
def test_any_name_is_one_persons(store: Store, book: Book, name: str):
    queue = start(store, book, name)
    book.grade(queue.queue_id, 0, 4, 2.0)
    golden = store_judged(store, book, queue)
    assert golden.judge == queue.judge == name
    assert store.read().judgements(golden.golden_set_id)["judge"].to_list() == [name]


@pytest.mark.slow
def test_landing_makes_one_golden_set_per_judge_and_goes_on(store: Store, book: Book):
    first, other = start(store, book, "Anne"), start(store, book, "Ben")
    for place in range(3):
        book.grade(first.queue_id, place, 4, 2.0)
        book.grade(other.queue_id, place, 1, 2.0)
    book.note(first.queue_id, 0, "=1+1")
    golden = store_judged(store, book, first)
    assert (golden.golden_set_id, golden.judge) == ("lab-Anne", "Anne")
    store_judged(store, book, other)
    again = start(store, book, "Anne")
    pairs = {(each.query_id, each.passage_id) for each in book.items(first.queue_id)[:3]}
    assert pairs.isdisjoint((each.query_id, each.passage_id) for each in book.items(again.queue_id))
    book.grade(again.queue_id, 0, 5, 2.0)
    golden = store_judged(store, book, again)
    snapshot = store.read()
    assert sorted(snapshot.judgements("lab-Anne")["grade"]) == [4, 4, 4, 5]
    assert sorted(snapshot.judgements("lab-Ben")["grade"]) == [1, 1, 1]
    acts = snapshot.gradings("lab-Anne")
    assert acts.height == 4
    assert set(acts["judge"]) == {"Anne"}
    assert acts["note"].drop_nulls().unique().sort().to_list() == ["", "=1+1"]
    assert acts["seconds"].to_list() == [2.0] * 4
    assert [each["queue"] for each in golden.manifest["queues"]] == [again.queue_id, first.queue_id]
    assert snapshot.judgements("gold").height == 24


@pytest.mark.slow
def test_landing_keeps_what_the_book_lacks(store: Store, book: Book, tmp_path: Path):
    queue = start(store, book)
    book.grade(queue.queue_id, 0, 4, 2.0)
    store_judged(store, book, queue)
    elsewhere = Book(tmp_path / "other" / "judging.sqlite")
    queue = start(store, elsewhere, n=99)
    items = elsewhere.items(queue.queue_id)
    known = set(store.read().judgements("lab-Anne").select("query_id", "passage_id").rows())
    place = next(each.place for each in items if (each.query_id, each.passage_id) not in known)
    elsewhere.grade(queue.queue_id, place, 2, 1.0)
    store_judged(store, elsewhere, queue)
    assert sorted(store.read().judgements("lab-Anne")["grade"]) == [2, 4]


def test_landing_twice_makes_no_revision(store: Store, book: Book):
    queue = start(store, book)
    with pytest.raises(InputError, match="Nothing is graded"):
        store_judged(store, book, queue)
    book.grade(queue.queue_id, 0, 4, 2.0)
    store_judged(store, book, queue)
    revision = store.revision()
    store_judged(store, book, queue)
    assert store.revision() == revision


def test_disagreements_are_settled_into_a_set_that_names_both(store: Store, book: Book):
    queue = begin_settling(book, store.read(), "gold", "ben", judge="Chris")
    items = book.items(queue.queue_id)
    assert [(each.query_id, each.passage_id) for each in items] == [("q0", "p0")]
    book.grade(queue.queue_id, 0, 3, 4.0)
    golden = store_judged(store, book, queue, "settled")
    assert golden.parents == ("gold", "ben")
    rows = store.read().judgements("settled")
    assert rows.height == 24
    assert rows.filter(query_id="q0", passage_id="p0").select("grade", "judge").row(0) == (3, "Chris")
    assert rows.filter(query_id="q0", passage_id="p1")["judge"][0] == "gold, ben"
    with pytest.raises(InputError, match="already"):
        store_judged(store, book, queue, "gold")
    with pytest.raises(InputError, match="disagree on nothing"):
        begin_settling(book, store.read(), "gold", "gold", judge="Chris")


def test_what_is_not_settled_is_left_out(store: Store, book: Book):
    queue = begin_settling(book, store.read(), "gold", "ben", judge="Chris")
    book.skip(queue.queue_id, [0], 1.0)
    golden = store_judged(store, book, queue, "settled")
    assert golden.manifest["left_out"] == 1
    assert store.read().judgements("settled").height == 23


@pytest.mark.parametrize(
    ("items", "mode", "done", "each_s", "left_s"),
    [
        ([], "grade", 0, None, None),
        ([Item(0, "q", "a"), Item(1, "q", "b", 4, seconds=6.0, at="t")], "grade", 1, 6.0, 6.0),
        ([Item(0, "q", "a", at="t"), Item(1, "q", "b")], "grade", 1, None, None),
        ([Item(n, "q", str(n), position=n, seconds=2.0, at="t") for n in range(5)], "order", 1, 10.0, 0.0),
    ],
)
def test_progress(items: list[Item], mode: str, done: int, each_s: float | None, left_s: float | None):
    found = progress(items, mode)  # type: ignore[arg-type]
    assert (found.done, found.each_s, found.left_s) == (done, each_s, left_s)


@pytest.mark.parametrize(
    ("positions", "orders", "tau", "against"),
    [
        ([1, 2, 3, 4, 5], True, 1.0, "the refined order of gold"),
        ([5, 4, 3, 2, 1], True, -1.0, "the refined order of gold"),
        ([2, 1, 3, 4, 5], True, 0.8, "the refined order of gold"),
        ([1, 2, 3, 4, 5], False, 1.0, "the grades of gold"),
    ],
)
def test_orders_of_people_against_the_golden_sets(
    tmp_path: Path, positions: list[int], orders: bool, tau: float, against: str
):
    grades = {"q": {"a": 5, "b": 4, "c": 3, "d": 2, "e": 1}}
    store = Lab().judge(grades).write(tmp_path / "store")
    if orders:
        rows = [
            {"golden_set_id": "gold", "query_id": "q", "passage_id": name, "rank": rank}
            | {"score": -rank, "exposures": 2, "information": 1.0, "locks": 0, "contradictions": 0}
            for rank, name in enumerate("abcde", 1)
        ]
        with store.write("refine") as writer:
            writer.add(Batch(frames={"orders": frame("orders", pl.DataFrame(rows).to_dict())}))
    queue = Queue(queue_id="x", collection_id="lab", judge="Anne", mode="order", base="gold")
    items = [
        Item(place, "q", name, position=position, at="t")
        for place, (name, position) in enumerate(zip("abcde", positions, strict=True))
    ]
    found = compare(store.read(), queue, items)
    assert found.against == against
    assert found.tau == pytest.approx(tau)
    assert found.low is None, "one query has no interval"
    assert sentence(found).endswith("n = 1 batch of five.")
    undone = [*items[:4], Item(4, "q", "e")]
    assert compare(store.read(), queue, undone).tau is None


def answering(path: Path) -> tuple[Store, Book]:
    lab = Lab().judge(GOLD).ask({query: f"question {query}" for query in GOLD}).run("r").run("s")
    for run, k, reader, temperature in (("r", 5, "one", 0.1), ("r", 0, None, None), ("s", 5, "one", 0.7)):
        about = {"reader": reader, "mode": None if k else "none", "temperature": temperature}
        lab.answer(run, dict.fromkeys(GOLD, 0.5), k=k, **about)  # type: ignore[arg-type]
    store = lab.write(path)
    gold = frame("gold_answers", [{"collection_id": "lab", "query_id": "q1", "answer": HOSTILE[1]}])
    with store.write("gold") as writer:
        writer.add(Batch(frames={"gold_answers": gold}))
    return store, Book(judging.book_path(store))


@pytest.mark.slow
def test_answers_are_drawn_graded_and_written_once(tmp_path: Path):
    store, book = answering(tmp_path / "store")
    assert judging.answering(store.read(), SCOPE) == {"r": "r", "s": "s"}
    queue = judging.begin_answers(book, store.read(), "lab", ["r"], judge="Anne", n=99)
    items = book.items(queue.queue_id)
    cards = judging.answer_cards(store.read(), "lab", items)
    assert {(card.question[-2:], card.text, card.right) for card in cards} == {
        (query, "an answer", (HOSTILE[1],) if query == "q1" else ()) for query in GOLD
    }
    for item in items[:6]:
        book.grade(queue.queue_id, item.place, 1 + item.place % 5, 1.0)
    book.skip(queue.queue_id, [6], 1.0)
    before = store.read().answer_scores(["r", "s"])
    assert judging.store_answers(store, book, queue) == 6
    book.undo(queue.queue_id)
    book.undo(queue.queue_id)
    for place, grade in ((5, 5), (6, 3)):
        book.grade(queue.queue_id, place, grade, 1.0)
    assert judging.store_answers(store, book, queue) == 1, "what is written stays"
    with pytest.raises(InputError, match="No grade is new"):
        judging.store_answers(store, book, queue)
    after = store.read().answer_scores(["r", "s"])
    own = after.filter(judge="Anne")
    assert after.join(own, on=after.columns, how="anti", nulls_equal=True).equals(before)
    assert own.select("scorer", "scale", "source").unique().rows() == [("correctness", "1-5", "judging")]
    key = ["run_id", "query_id", "reader", "temperature", "mode", "k", "pass"]
    assert own.join(store.read().answers(["r"]), on=key, how="semi", nulls_equal=True).height == 7
    assert sorted(own["value"]) == [1, 1, 2, 3, 3, 4, 5]
    rest = judging.begin_answers(book, store.read(), "lab", ["r", "s"], judge="Anne", n=99)
    assert len(book.items(rest.queue_id)) == 12 - 7, "nothing is graded twice"


def test_nobody_grades_under_the_name_of_a_model(tmp_path: Path):
    store, book = answering(tmp_path / "store")
    key = {"run_id": "r", "query_id": "q0", "k": 5, "pass": 1}
    row = {**key, "scorer": "correctness", "judge": "gpt", "value": 5, "scale": "0-5"}
    with store.write("judged") as writer:
        writer.add(Batch(frames={"answer_scores": frame("answer_scores", [row])}))
    with pytest.raises(InputError, match="another name"):
        judging.begin_answers(book, store.read(), "lab", ["r"], judge="gpt", n=9)
