import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import StoreError, UnknownNameError
from core.golden.book import IDLE_S, Book, Queue

PAIRS = [(f"q{place // 3}", f"p{place}") for place in range(6)]


def book_of(path: Path, judge: str = "Anne", *, mode: str = "grade", queue_id: str = "") -> tuple[Book, str]:
    book = Book(path / "judging.sqlite")
    queue = Queue(queue_id=queue_id or f"{judge}-1", collection_id="lab", judge=judge, mode=mode)  # type: ignore[arg-type]
    book.start(queue, PAIRS)
    return book, queue.queue_id


def test_nothing_is_made_before_something_is_written(tmp_path: Path):
    book = Book(tmp_path / "judging.sqlite")
    assert book.queues() == []
    assert book.said("lab", "Anne").is_empty()
    assert not list(tmp_path.iterdir())
    with pytest.raises(UnknownNameError, match="No queue 'x'"):
        book.queue("x")


def test_a_keystroke_is_there_for_whoever_opens_the_file_next(tmp_path: Path):
    book, name = book_of(tmp_path)
    assert book.grade(name, 0, 4, 3.21)
    assert book.skip(name, [1], 2.0)
    book.note(name, 2, "unsure")
    other = Book(tmp_path / "judging.sqlite")
    first, second, third, *_ = other.items(name)
    assert (first.grade, first.seconds, first.skipped) == (4, 3.21, False)
    assert (second.grade, second.skipped) == (None, True)
    assert (third.note, third.at) == ("unsure", None)
    assert other.queue(name).judge == "Anne"


def test_what_comes_late_changes_nothing(tmp_path: Path):
    book, name = book_of(tmp_path)
    assert book.grade(name, 0, 4, 1.0)
    assert not book.grade(name, 0, 1, 1.0)
    assert not book.skip(name, [0], 1.0)
    assert not book.grade(name, 99, 3, 1.0)
    assert [each.grade for each in book.items(name)[:2]] == [4, None]
    assert book.strokes(name) == [(0, "grade 4", "0")]


def test_undo_goes_back_one_by_one_and_is_written_down(tmp_path: Path):
    book, name = book_of(tmp_path)
    book.grade(name, 0, 4, 1.0)
    book.skip(name, [1], 1.0)
    assert book.undo(name)
    assert book.undo(name)
    assert not book.undo(name)
    assert all(each.at is None and each.grade is None for each in book.items(name))
    assert [act for _, act, _ in book.strokes(name)] == ["grade 4", "skip", "undo", "undo"]
    book.grade(name, 0, 2, 1.0)
    assert book.items(name)[0].grade == 2


def test_a_note_that_says_the_same_is_no_keystroke(tmp_path: Path):
    book, name = book_of(tmp_path)
    for text in ("", "a", "a", "b", ""):
        book.note(name, 0, text)
    assert [said for _, _, said in book.strokes(name)] == ["a", "b", ""]


def test_idle_time_and_grades_beyond_the_rubric(tmp_path: Path):
    book, name = book_of(tmp_path)
    book.grade(name, 0, 4, IDLE_S + 1)
    assert book.items(name)[0].seconds is None
    with pytest.raises(StoreError, match="CHECK"):
        book.grade(name, 1, 6, 1.0)
    assert book.items(name)[1].at is None
    assert len(book.strokes(name)) == 1


def test_five_in_order_are_one_stroke(tmp_path: Path):
    book, name = book_of(tmp_path, mode="order")
    book.arrange(name, [2, 0, 1, 3, 4])
    assert [each.position for each in book.items(name)] == [2, 3, 1, 4, 5, None]
    assert all(each.at is None for each in book.items(name))
    assert book.order(name, [4, 2, 0, 1, 3], 10.0)
    assert [each.position for each in book.items(name)] == [3, 4, 2, 5, 1, None]
    assert [each.seconds for each in book.items(name)[:5]] == [2.0] * 5
    assert book.undo(name)
    assert all(each.at is None for each in book.items(name))


def test_skipped_ones_are_offered_again(tmp_path: Path):
    book, name = book_of(tmp_path)
    book.grade(name, 0, 4, 1.0)
    book.skip(name, [1], 1.0)
    book.offer_skipped(name)
    assert [each.at is None for each in book.items(name)[:2]] == [False, True]


def test_the_latest_of_several_queues_counts(tmp_path: Path):
    book, first = book_of(tmp_path)
    _, second = book_of(tmp_path, queue_id="Anne-2")
    book_of(tmp_path, "Ben")
    book.grade(first, 0, 1, 1.0)
    book.grade(second, 0, 5, 1.0)
    book.grade("Ben-1", 0, 3, 1.0)
    assert book.said("lab", "Anne").select("passage_id", "grade", "queue_id").rows() == [("p0", 5, second)]
    assert book.said("lab", "Ben")["grade"].to_list() == [3]


def test_a_passage_stands_in_a_queue_once(tmp_path: Path):
    book = Book(tmp_path / "judging.sqlite")
    queue = Queue(queue_id="a", collection_id="lab", judge="Anne")
    with pytest.raises(StoreError, match="UNIQUE"):
        book.start(queue, [("q", "p"), ("q", "p")])
    assert book.queues() == []


def test_a_file_of_a_newer_release_is_left_alone(tmp_path: Path):
    path = tmp_path / "judging.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version=99")
    with pytest.raises(StoreError, match="newer release"):
        Book(path).queues()


@pytest.mark.slow
def test_many_hands_at_once(tmp_path: Path):
    path = tmp_path / "judging.sqlite"
    pairs = [("q", f"p{place}") for place in range(60)]
    for judge in range(5):
        Book(path).start(Queue(queue_id=f"j{judge}", collection_id="lab", judge=f"j{judge}"), pairs)

    def work(hand: int) -> int:
        book = Book(path)  # a connection of its own, as another process has
        return sum(book.grade(f"j{hand % 5}", place, hand % 5 + 1, 1.0) for place in range(60))

    with ThreadPoolExecutor(10) as hands:
        assert sum(hands.map(work, range(10))) == 300  # two hands a judge: each card once
    for judge in range(5):
        assert set(Book(path).said("lab", f"j{judge}")["grade"]) == {judge + 1}


@pytest.mark.slow
@given(st.lists(st.sampled_from(["1", "3", "5", "s", "u"]), max_size=30))
def test_keys_do_what_a_list_would(tmp_path_factory: pytest.TempPathFactory, keys: list[str]):
    book, name = book_of(tmp_path_factory.mktemp("keys"))
    expected: list[int | None] = []
    for key in keys:
        place = next((each.place for each in book.items(name) if each.at is None), None)
        if key == "u":
            assert book.undo(name) == bool(expected)
            expected = expected[:-1]
        elif place is not None:
            assert place == len(expected)
            book.skip(name, [place], 1.0) if key == "s" else book.grade(name, place, int(key), 1.0)
            expected.append(None if key == "s" else int(key))
    done = [each.grade for each in book.items(name) if each.at is not None]
    assert done == expected


def test_answers_and_passages_of_one_judge_are_told_apart(tmp_path: Path):
    book, passages = book_of(tmp_path)
    _, answers = book_of(tmp_path, mode="answers", queue_id="Anne-2")
    book.grade(passages, 0, 1, 1.0)
    book.grade(answers, 0, 5, 1.0)
    assert book.said("lab", "Anne")["grade"].to_list() == [1]
    assert book.said("lab", "Anne", "answers")["grade"].to_list() == [5]
