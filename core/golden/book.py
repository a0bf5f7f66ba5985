"""The book of the people who judge: their queues and every keystroke, in one SQLite file beside the store.

A keystroke is on disk, in that one file, when the call returns: a copy of the file holds it. A passage
is in a queue once and a queue has one judge, so nothing is judged twice and no two people's grades mix;
late input, from a second tab or a second press, changes nothing.
"""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Literal

import polars as pl

from core.errors import StoreError, UnknownNameError
from core.files import database, replacing, transaction
from core.golden.sealing import adopt, require_sound, seal
from core.records import now
from core.tables import schema

FILE = "judging.sqlite"
PAIR = ("query_id", "passage_id")  # What a card is
IDLE_S = 300.0  # Seconds on one card from which the judge counts as absent: they are not counted
QueueMode = Literal["grade", "order", "settle", "answers"]
"""What to do with the cards: grade each, put five in order, settle disagreements of two judges, or grade
answers, whose passage id is the key of the answer, see `answers.named`."""
_Said = Mapping[int, tuple[Literal["grade", "position"], int | None]]
"""Changes by the position of a card: the column and its new number; None = skipped."""

_VERSION = 2
_FACTS = "facts"  # The act of a keystroke that records the facts in a passage
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS queues (queue_id TEXT PRIMARY KEY, collection_id TEXT NOT NULL, judge TEXT "
    "NOT NULL, mode TEXT NOT NULL, base TEXT NOT NULL, other TEXT NOT NULL, sampling TEXT NOT NULL, "
    "seed TEXT NOT NULL, created_at TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS items (queue_id TEXT NOT NULL REFERENCES queues, place INTEGER NOT NULL, "
    "query_id TEXT NOT NULL, passage_id TEXT NOT NULL, grade INTEGER CHECK (grade BETWEEN 1 AND 5), "
    "position INTEGER, note TEXT NOT NULL DEFAULT '', seconds REAL, at TEXT, stroke INTEGER, "
    "PRIMARY KEY (queue_id, place), UNIQUE (queue_id, query_id, passage_id))",
    "CREATE TABLE IF NOT EXISTS strokes (stroke INTEGER PRIMARY KEY AUTOINCREMENT, queue_id TEXT NOT NULL, "
    "place INTEGER NOT NULL, act TEXT NOT NULL, said TEXT NOT NULL, seconds REAL, at TEXT NOT NULL)",
)
_ITEMS = "place, query_id, passage_id, grade, position, note, seconds, at"


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """Items assigned to one judge."""

    queue_id: str  # Its name, part of links; begins with the judge's
    collection_id: str  # The judged collection
    judge: str  # Who judges; "" while nobody has taken it
    mode: QueueMode = "grade"  # What to do with the cards
    # Golden set that the passages were drawn from; "" for none. The first of two to be settled.
    base: str = ""
    other: str = ""  # The second golden set of two to be settled, otherwise ""
    sampling: str = ""  # How the passages were drawn
    seed: str = ""  # Seed of the draw
    created_at: str = ""  # When, ISO with zone


@dataclass(frozen=True, slots=True)
class Item:
    """A passage of a queue and its judgement."""

    place: int  # Its position in the queue, from 0
    query_id: str
    passage_id: str  # The passage
    grade: int | None = None  # 1..5; None if it has none (yet), or was skipped
    # Its position among those that were put in order, from 1; None if no order is requested
    position: int | None = None
    note: str = ""  # The judge's note; "" for none
    seconds: float | None = None  # Time spent on it; None if the judge was absent, or it is not judged
    at: str | None = None  # When it was judged, ISO with zone; None = not yet

    @property
    def skipped(self) -> bool:
        """Whether it was skipped."""
        return self.at is not None and self.grade is None and self.position is None


class Book:
    """The book of one store. Making an instance touches nothing on disk.

    Args:
        path: The file; created on the first write.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = None

    def start(self, queue: Queue, items: Sequence[tuple[str, str]]) -> None:
        """Record a queue with its passages (query_id, passage_id) in judging order."""
        row = {**asdict(queue), "created_at": queue.created_at or now().isoformat()}
        marks = ", ".join(f":{name}" for name in row)
        with self._writing() as db:
            db.execute(f"INSERT INTO queues ({', '.join(row)}) VALUES ({marks})", row)  # noqa: S608 - own names
            db.executemany(
                "INSERT INTO items (queue_id, place, query_id, passage_id) VALUES (?, ?, ?, ?)",
                [(queue.queue_id, place, *pair) for place, pair in enumerate(items)],
            )

    def queues(self, collection_id: str | None = None) -> list[Queue]:
        """Return every queue, or those of a collection, the newest first."""
        if not self.path.exists():
            return []
        names = ", ".join(field.name for field in fields(Queue))
        asked = f"SELECT {names} FROM queues WHERE ?1 IS NULL OR collection_id = ?1 ORDER BY rowid DESC"  # noqa: S608
        with self._open() as db:
            return [
                Queue(**dict(zip(names.split(", "), row, strict=True)))
                for row in db.execute(asked, (collection_id,))
            ]

    def queue(self, queue_id: str) -> Queue:
        """Return one queue.

        Raises:
            UnknownNameError: If no queue has that name.
        """
        known = {queue.queue_id: queue for queue in self.queues()}
        if queue_id not in known:
            raise UnknownNameError("queue", queue_id, known)
        return known[queue_id]

    def take(self, queue_id: str, judge: str) -> Queue:
        """Assign a free queue to a judge; a queue already taken stays with its judge.

        Raises:
            UnknownNameError: If no queue has that name.
        """
        with self._writing() as db:
            asked = "UPDATE queues SET judge = ? WHERE queue_id = ? AND judge = ''"
            db.execute(asked, (judge, queue_id))
        return self.queue(queue_id)

    def items(self, queue_id: str) -> list[Item]:
        """Return the passages of a queue, in its order."""
        with self._open() as db:
            asked = f"SELECT {_ITEMS} FROM items WHERE queue_id = ? ORDER BY place"  # noqa: S608 - own names
            return [Item(*row) for row in db.execute(asked, (queue_id,))]

    def grade(self, queue_id: str, place: int, grade: int, seconds: float | None) -> bool:
        """Grade a passage; return False, changing nothing, if it is done already."""
        return self._do(queue_id, {place: ("grade", grade)}, f"grade {grade}", seconds)

    def skip(self, queue_id: str, places: Sequence[int], seconds: float | None) -> bool:
        """Skip passages; return False, changing nothing, if they are done already."""
        return self._do(queue_id, dict.fromkeys(places, ("position", None)), "skip", seconds)

    def order(self, queue_id: str, places: Sequence[int], seconds: float | None) -> bool:
        """Put passages in order, best first; return False, changing nothing, if they are done already."""
        said: _Said = {place: ("position", rank) for rank, place in enumerate(places, 1)}
        return self._do(queue_id, said, "order", seconds)

    def arrange(self, queue_id: str, places: Sequence[int]) -> None:
        """Save a provisional order of passages, which does not count as done."""
        with self._writing() as db:
            self._stroke(db, (queue_id, places[0], "move", " ".join(map(str, places))))
            db.executemany(
                "UPDATE items SET position = ? WHERE queue_id = ? AND place = ? AND at IS NULL",
                [(rank, queue_id, place) for rank, place in enumerate(places, 1)],
            )

    def note(self, queue_id: str, place: int, text: str) -> None:
        """Attach a note to a passage; "" removes it."""
        with self._writing() as db:
            asked = "UPDATE items SET note = ?1 WHERE queue_id = ?2 AND place = ?3 AND note <> ?1"
            if db.execute(asked, (text, queue_id, place)).rowcount:
                self._stroke(db, (queue_id, place, "note", text))

    def write_facts(self, queue_id: str, place: int, lines: Sequence[str]) -> None:
        """Save which facts a passage holds, one per line; they count once the passage is graded."""
        with self._writing() as db:
            self._stroke(db, (queue_id, place, _FACTS, "\n".join(lines)))

    def facts(self, collection_id: str, judge: str) -> dict[tuple[str, str], list[str]]:
        """Return the facts that a judge found, by query and passage, only the latest for each pair."""
        asked = (
            "SELECT query_id, passage_id, said FROM strokes JOIN items USING (queue_id, place) JOIN queues "
            "USING (queue_id) WHERE collection_id = ? AND judge = ? AND act = ? ORDER BY strokes.stroke"
        )
        if not self.path.exists():
            return {}
        with self._open() as db:
            rows = db.execute(asked, (collection_id, judge, _FACTS)).fetchall()
        return {(query, passage): said.split("\n") if said else [] for query, passage, said in rows}

    def undo(self, queue_id: str) -> bool:
        """Take back the last act, so that its card comes again; return False if there was none."""
        with self._writing() as db:
            asked = "SELECT stroke, min(place) FROM items WHERE queue_id = ? AND stroke = " \
                "(SELECT max(stroke) FROM items WHERE queue_id = ?)"  # fmt: skip
            stroke, place = db.execute(asked, (queue_id, queue_id)).fetchone()
            if stroke is None:
                return False
            self._stroke(db, (queue_id, place, "undo", f"stroke {stroke}"))
            db.execute(
                "UPDATE items SET grade = NULL, seconds = NULL, at = NULL, stroke = NULL WHERE queue_id = ? "
                "AND stroke = ?",
                (queue_id, stroke),
            )
        return True

    def offer_skipped(self, queue_id: str) -> None:
        """Offer skipped passages again."""
        with self._writing() as db:
            self._stroke(db, (queue_id, -1, "offer", "skipped"))
            db.execute(
                "UPDATE items SET at = NULL, stroke = NULL WHERE queue_id = ? AND at IS NOT NULL AND grade "
                "IS NULL AND position IS NULL",
                (queue_id,),
            )

    def said(self, collection_id: str, judge: str, mode: QueueMode = "grade") -> pl.DataFrame:
        """Return a judge's grades in a collection from all queues of a mode, only the latest for each pair.

        Returns:
            query_id, passage_id, grade, note, seconds, at, queue_id.
        """
        columns = schema("query_id passage_id grade:int8 note seconds:float at queue_id")
        asked = (
            f"SELECT {', '.join(columns)} FROM items JOIN queues USING (queue_id) "  # noqa: S608 - own names
            "WHERE collection_id = ? AND judge = ? AND mode = ? AND grade IS NOT NULL ORDER BY stroke"
        )
        rows = []
        if self.path.exists():
            with self._open() as db:
                rows = db.execute(asked, (collection_id, judge, mode)).fetchall()
        graded = pl.DataFrame(rows, schema=columns, orient="row")
        return graded.unique(PAIR, keep="last").sort(PAIR)

    def strokes(self, queue_id: str) -> list[tuple[int, str, str]]:
        """Return every keystroke of a queue in order: place, act, text."""
        with self._open() as db:
            asked = "SELECT place, act, said FROM strokes WHERE queue_id = ? ORDER BY stroke"
            return list(db.execute(asked, (queue_id,)))

    def _do(self, queue_id: str, said: _Said, act: str, seconds: float | None) -> bool:
        """Apply one keystroke to some cards, unless one of them is done already."""
        spent = None if seconds is None or seconds > IDLE_S else round(seconds / len(said), 2)
        with self._writing() as db:
            marks = ", ".join("?" * len(said))
            asked = f"SELECT count(*) FROM items WHERE queue_id = ? AND at IS NULL AND place IN ({marks})"  # noqa: S608
            if db.execute(asked, (queue_id, *said)).fetchone()[0] != len(said):
                return False
            words = " ".join(map(str, said))
            stroke = self._stroke(db, (queue_id, next(iter(said)), act, words), seconds)
            for place, (column, value) in said.items():
                db.execute(
                    f"UPDATE items SET {column} = ?, seconds = ?, at = ?, stroke = ? WHERE queue_id = ? AND "  # noqa: S608
                    "place = ?",
                    (value, spent, now().isoformat(), stroke, queue_id, place),
                )
        return True

    def _stroke(
        self, db: sqlite3.Connection, row: tuple[str, int, str, str], spent: float | None = None
    ) -> int:
        """Record a keystroke: queue, place, act, text."""
        cursor = db.execute(
            "INSERT INTO strokes (queue_id, place, act, said, seconds, at) VALUES (?, ?, ?, ?, ?, ?)",
            (*row, spent, now().isoformat()),
        )
        return int(cursor.lastrowid or 0)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Yield one transaction; its changes are sealed at its end."""
        with self._open() as db, transaction(db):
            yield db
            seal(db)

    def copy_to(self, target: Path) -> int:
        """Copy the present book while others continue to judge; the target appears in one step.

        Returns:
            How many keystrokes the copy holds; 0, and no copy, if there is no book.
        """
        if not self.path.exists():
            return 0
        with self._open() as db, replacing(target) as part, closing(sqlite3.connect(part)) as copy:
            db.backup(copy)
            return int(copy.execute("SELECT count(*) FROM strokes").fetchone()[0])

    def replace_by(self, source: Book) -> None:
        """Take over the contents of another book in place: whoever has the file open continues with them."""
        with source._open() as theirs, closing(sqlite3.connect(self.path)) as mine:
            theirs.backup(mine)

    def close(self) -> None:
        """Release the file."""
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    def strokes_of_all(self) -> list[tuple[object, ...]]:
        """Return every keystroke of every queue in order, which shows whether one book continues another."""
        if not self.path.exists():
            return []
        with self._open() as db:
            return db.execute("SELECT queue_id, place, act, said, at FROM strokes ORDER BY stroke").fetchall()

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                if self._db is None:
                    opened = database(self.path, _VERSION, _SCHEMA, upgrade=adopt)
                    require_sound(opened, str(self.path))
                    self._db = opened
                yield self._db
            except (sqlite3.Error, OSError) as error:
                raise StoreError(
                    f"The file of judgements cannot be used: {error}.",
                    where=str(self.path),
                    do="What was judged so far is kept. Check the disk and the folder's permissions.",
                ) from error


def bring_back(book: Book, source: Path, *, back: bool = False) -> str:
    """Restore a book from a backup's copy; a replaced book stays beside it under another name.

    A book that continues the copy is kept. If the copy continues the book, the book takes over its strokes.
    If each has strokes that the other lacks, the book is kept unless `back` is true.

    Args:
        source: The copy, which may be missing.

    Returns:
        What was done, in words; "" if there is nothing to restore.

    Raises:
        StoreDamagedError: If the copy is damaged; nothing is changed then.
    """
    if not source.exists():
        return ""
    copy = Book(source)
    theirs = copy.strokes_of_all()
    count = f"{len(theirs):,} strokes of people's judging"
    try:
        mine: list[tuple[object, ...]] | None = book.strokes_of_all()
    except StoreError:
        mine = None
    book.close()
    if mine is not None and not back:
        if mine[: len(theirs)] == theirs and book.path.exists():
            return f"{count} are there already"
        if theirs[: len(mine)] != mine:
            return f"{count} differ from the {len(mine):,} here, which are kept; --back takes the backup's"
    if book.path.exists():
        aside = book.path.with_name(f"{FILE}.{now():%Y%m%d-%H%M%S-%f}.aside")
        shutil.copyfile(book.path, aside)
        if mine is None:  # its pages are too damaged to be written over
            book.path.unlink()
    book.path.parent.mkdir(parents=True, exist_ok=True)
    book.replace_by(copy)
    copy.close()
    return f"{count} were restored"
