"""Grades of people survive copies, backups, kills and bad disks, or the file says that they did not."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from core.cli.app import app
from core.errors import StoreDamagedError, StoreError
from core.golden.book import FILE, Book, Queue, bring_back
from tests import warm
from tests.golden.judging import judging
from tests.stores import Lab

CARDS = 300
KILLS = 20
COPIES = 20


def begun(path: Path, cards: int = CARDS) -> Book:
    book = Book(path)
    queue = Queue(queue_id="Anne-1", collection_id="lab", judge="Anne")
    book.start(queue, [(f"q{at // 10}", f"p{at}") for at in range(cards)])
    return book


def judged(path: Path, cards: int = CARDS, grades: int = CARDS) -> Book:
    book = begun(path, cards)
    for at in range(grades):
        assert book.grade("Anne-1", at, 1 + at % 5, 1.0)
    return book


def whole(book: Book) -> object:
    return book.queues(), book.items("Anne-1"), book.strokes("Anne-1")


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("book") / FILE
    judged(path).close()
    return path


@pytest.mark.slow
def test_a_plain_copy_of_the_open_file_holds_every_grade(tmp_path: Path):
    book = judged(tmp_path / FILE)
    shutil.copyfile(tmp_path / FILE, tmp_path / "copy.sqlite")  # the book stays open
    assert whole(Book(tmp_path / "copy.sqlite")) == whole(book)
    assert not list(tmp_path.glob("*-wal"))


@pytest.mark.slow
def test_no_flipped_bit_changes_a_grade_in_silence(full: Path, tmp_path: Path):
    wanted, data, luck = whole(Book(full)), full.read_bytes(), random.Random(7)  # noqa: S311
    refused = 0
    for number in range(300):
        bit = luck.randrange(8 * len(data))
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << (bit % 8)
        path = tmp_path / f"{number}.sqlite"
        path.write_bytes(flipped)
        book = Book(path)
        try:
            assert whole(book) == wanted, f"bit {bit}"
        except StoreError:
            refused += 1
        book.close()
    assert refused > 100


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("UPDATE items SET grade = 5 WHERE place = 3", "row of items"),
        ("DELETE FROM items WHERE place = 3", "row of queues"),
        ("DELETE FROM strokes WHERE stroke = 9", "1 strokes are missing"),
        ("UPDATE queues SET judge = 'Eve'", "row of queues"),
        ("DELETE FROM queues", "cards belong to no queue"),
    ],
)
def test_what_nobody_judged_is_told(full: Path, tmp_path: Path, change: str, says: str):
    shutil.copyfile(full, tmp_path / FILE)
    with sqlite3.connect(tmp_path / FILE) as db:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f"DROP TRIGGER {name}")
        db.execute(change)
    db.close()
    with pytest.raises(StoreDamagedError, match=says):
        Book(tmp_path / FILE).queues()


def test_a_file_of_the_last_release_is_taken_over(tmp_path: Path):
    book = judged(tmp_path / FILE, 6, 4)
    wanted = whole(book)
    book.close()
    with sqlite3.connect(tmp_path / FILE) as db:
        for table in ("queues", "items", "strokes"):
            db.execute(f"DROP TRIGGER {table}_changed")
            db.execute(f"ALTER TABLE {table} DROP COLUMN mark")
        db.execute("PRAGMA user_version=1")
    db.execute("PRAGMA journal_mode=WAL")
    db.close()
    taken = Book(tmp_path / FILE)
    assert whole(taken) == wanted
    assert taken.grade("Anne-1", 5, 2, 1.0)
    taken.close()
    assert [each.grade for each in Book(tmp_path / FILE).items("Anne-1")] == [1, 2, 3, 4, None, 2]


def test_what_may_only_be_read_is_read_at_once(full: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    shutil.copyfile(full, tmp_path / FILE)
    before = (tmp_path / FILE).read_bytes()
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and access(path, mode))
    start = time.monotonic()
    assert len(Book(tmp_path / FILE).strokes("Anne-1")) == CARDS
    with pytest.raises(StoreError, match="readonly"):
        Book(tmp_path / FILE).take("Anne-1", "Eve")
    assert time.monotonic() - start < 10
    assert (tmp_path / FILE).read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.slow
def test_no_acknowledged_grade_is_lost_by_a_kill(tmp_path: Path):
    begun(tmp_path / FILE, 5000).close()
    told, luck = tmp_path / "told.txt", random.Random(3)  # noqa: S311
    told.touch()
    for _ in range(KILLS):
        before = told.stat().st_size
        process = warm.process(judging, tmp_path / FILE, told)
        while told.stat().st_size == before and process.is_alive():
            time.sleep(0.01)
        time.sleep(luck.random() / 10)
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
    grades = [each.grade for each in Book(tmp_path / FILE).items("Anne-1")]
    acknowledged = [int(line) for line in told.read_text().splitlines()]
    assert len(acknowledged) > KILLS
    assert [grades[at] for at in acknowledged] == [1 + at % 5 for at in acknowledged]
    assert sum(grade is not None for grade in grades) - len(acknowledged) <= KILLS


@pytest.mark.slow
def test_a_copy_while_somebody_judges_holds_every_acknowledged_grade(tmp_path: Path):
    """Of a file that changes while it is copied, a torn copy is told; it never lacks a grade in silence."""
    begun(tmp_path / FILE, 5000).close()
    told, luck = tmp_path / "told.txt", random.Random(5)  # noqa: S311
    told.touch()
    process = warm.process(judging, tmp_path / FILE, told)
    sound = 0
    for number in range(COPIES):
        before = told.stat().st_size
        while told.stat().st_size == before and process.is_alive():
            time.sleep(0.001)
        time.sleep(luck.random() / 50)
        assert process.is_alive()
        acknowledged = [int(line) for line in told.read_text().splitlines()]
        copy = tmp_path / f"{number}.sqlite"
        shutil.copyfile(tmp_path / FILE, copy)
        book = Book(copy)
        try:
            items = book.items("Anne-1")
        except StoreError:
            continue
        finally:
            book.close()
        sound += 1
        assert [items[at].grade for at in acknowledged] == [1 + at % 5 for at in acknowledged]
    os.kill(process.pid or 0, signal.SIGKILL)
    process.join()
    assert sound >= COPIES // 2


def run(store: Path, *words: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["--store", str(store), *words, "--format", "json"])
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture
def kept(tmp_path: Path) -> tuple[Path, Book]:
    Lab().judge({"q1": {"p1": 5}}).run("a", final={"q1": ["p1"]}).write(tmp_path / "here" / "store")
    return tmp_path / "here" / "store", judged(tmp_path / "here" / FILE, 20, 12)


def test_a_backup_holds_the_grades_and_brings_them_back(kept: tuple[Path, Book], tmp_path: Path):
    store, book = kept
    wanted = whole(book)
    assert json.loads(run(store, "store", "backup", str(tmp_path / "copy")))[0]["judging"].startswith("12 ")
    book.grade("Anne-1", 15, 5, 1.0)  # goes on while the backup is there
    assert "already" in run(store, "store", "restore", str(tmp_path / "copy"))
    assert book.items("Anne-1")[15].grade == 5
    book.close()
    (store.parent / FILE).unlink()
    assert "restored" in run(store, "store", "restore", str(tmp_path / "copy"))
    assert whole(Book(store.parent / FILE)) == wanted


def test_a_damaged_book_is_told_and_set_aside(kept: tuple[Path, Book], tmp_path: Path):
    store, book = kept
    run(store, "store", "backup", str(tmp_path / "copy"))
    wanted = whole(book)
    book.close()
    assert "12 strokes" in run(store, "doctor")
    damaged = bytearray((store.parent / FILE).read_bytes())
    damaged[100:4000] = bytes(3900)
    (store.parent / FILE).write_bytes(damaged)
    assert '"damaged"' in run(store, "doctor", code=1)
    run(store, "store", "restore", str(tmp_path / "copy"))
    assert whole(Book(store.parent / FILE)) == wanted
    (aside,) = store.parent.glob("*.aside")
    assert aside.read_bytes() == bytes(damaged)
    assert '"sound"' in run(store, "doctor")


def test_books_that_went_apart_are_not_mixed(tmp_path: Path):
    judged(tmp_path / "copy.sqlite", 20, 12).close()
    book = judged(tmp_path / FILE, 20, 3)
    mine = whole(book)
    assert "kept" in bring_back(book, tmp_path / "copy.sqlite")
    assert whole(book) == mine
    other = Book(tmp_path / FILE)  # somebody has it open
    assert len(other.strokes("Anne-1")) == 3
    assert "restored" in bring_back(book, tmp_path / "copy.sqlite", back=True)
    assert len(other.strokes("Anne-1")) == 12
    assert len(list(tmp_path.glob("*.aside"))) == 1
