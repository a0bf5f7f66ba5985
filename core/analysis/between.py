"""Two stacks of a workspace without judgements: what they show differently, by kind, and what grades decide.

The grades are those of the contest's queue, given by a person, or those of a stored golden set, such as one
by a model, whose mistakes are then stated.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from core.analysis.deciding import USEFUL, Contest, Standing, differences, draw, standing
from core.analysis.kinds import tagged
from core.analysis.workspace.noise import auditors
from core.analysis.workspace.scope import Scope
from core.analysis.workspace.view import View
from core.golden.book import FILE, PAIR, Book, Item, Queue
from core.store import Snapshot
from core.tables import schema

KINDS = schema("kind n:int64 overlap:float rbo:float other_first:float")
"""Means over the questions of a kind, by tag and by length."""


@dataclass(frozen=True, slots=True)
class Mistakes:
    """How well the judge of a golden set tells useful passages, by another set that grades the same ones."""

    golden_set: str  # the other golden set, whose grades count as the truth
    passages: int  # that both grade
    found: float | None  # share of the useful passages that the judge calls useful; None = there is none
    wrong: float | None  # share of the others that the judge calls useful

    @property
    def keeps(self) -> float | None:
        """The share of a true difference that is left if the judge errs alike on both stacks."""
        return None if self.found is None or self.wrong is None else self.found - self.wrong


@dataclass(frozen=True, slots=True, eq=False)
class Between:
    """What two stacks show differently, and what grades decide between them so far."""

    contest: Contest
    now: str  # name of the stack that runs today
    to: str  # name of the candidate
    questions: pl.DataFrame  # `DIFFERENCES`
    kinds: pl.DataFrame  # `KINDS`
    queue: Queue | None  # the contest's queue
    by: str | None  # golden set whose grades count; None = those of the queue
    standing: Standing | None  # None = there are no grades to look at
    mistakes: Mistakes | None  # of the golden set; None = nobody else grades enough of the same passages

    def to_dict(self) -> dict[str, Any]:
        """Return the output of `golden between --format json`."""
        return {
            "now": self.now,
            "to": self.to,
            "queue": self.queue and self.queue.queue_id,
            "by": self.by,
            "standing": self.standing and self.standing.to_dict(),
            "mistakes": self.mistakes and {**asdict(self.mistakes), "keeps": self.mistakes.keeps},
            "kinds": self.kinds.to_dicts(),
            "questions": self.questions.to_dicts(),
        }


def between(view: View, contest: Contest, by: str | None = None) -> Between:
    """Compare two stacks without judgements, and say what the grades so far decide.

    Args:
        by: A golden set whose grades count in place of those of the contest's queue.

    Raises:
        InputError: If the two have no question in common, or with `by` show the same passages.
    """
    snapshot, names = view.snapshot, dict(view.table.select("run_id", "name").iter_rows())
    questions = differences(snapshot, contest)
    book = book_of(snapshot)
    queue = begun(book, snapshot, view.scope, contest)
    found = None if queue is None else stand(book, snapshot, queue)
    if by is not None:
        found = _by_set(snapshot, contest, by)
    return Between(
        contest=contest,
        now=str(names[contest.now]),
        to=str(names[contest.to]),
        questions=questions,
        kinds=_by_kind(view, questions),
        queue=queue,
        by=by,
        standing=found,
        mistakes=None if by is None else mistakes(snapshot, view.scope, by),
    )


def decided(view: View, now: str, to: str | None) -> Standing | None:
    """Return what the latest queue between the running stack and others decides so far.

    Args:
        now: The run of the stack that runs today.
        to: The run of a candidate, whose queue comes first.

    Returns:
        None if no question of such a queue is judged.
    """
    book, runs = book_of(view.snapshot), set(view.table["run_id"])
    contests = ((Contest.of(queue), queue) for queue in book.queues())
    known = [(contest, queue) for contest, queue in contests if contest is not None and contest.now == now]
    for contest, queue in sorted(known, key=lambda each: each[0].to != to):
        found = stand(book, view.snapshot, queue) if {contest.now, contest.to} <= runs else None
        if found is not None and found.done:
            return found
    return None


def book_of(snapshot: Snapshot) -> Book:
    """Return the book of judgements beside the store."""
    return Book(snapshot.path.parent / FILE)


def begun(book: Book, snapshot: Snapshot, scope: Scope, contest: Contest) -> Queue | None:
    """Return the latest queue of this contest, if any."""
    queues = book.queues(judged_within(snapshot, scope, contest))
    return next((queue for queue in queues if Contest.of(queue) == contest), None)


def judged_within(snapshot: Snapshot, scope: Scope, contest: Contest) -> str:
    """Return the collection whose passages the two stacks rank."""
    return ranked_in(snapshot, [contest.now, contest.to], scope.collection_id)


def ranked_in(snapshot: Snapshot, run_ids: list[str], collection_id: str) -> str:
    """Return the collection whose passages most of some runs rank: the given one, or one with its chunks."""
    counts = Counter(snapshot.searched(run_ids).values())
    return min(counts, key=lambda name: (-counts[name], name), default=collection_id)


def stand(book: Book, snapshot: Snapshot, queue: Queue) -> Standing | None:
    """Return what a queue's grades decide so far; None if it is a queue of another kind."""
    contest = Contest.of(queue)
    return None if contest is None else standing(snapshot, contest, book.items(queue.queue_id))


def _by_set(snapshot: Snapshot, contest: Contest, golden_set_id: str) -> Standing:
    """Say what the grades of a golden set decide, in the order of the draw."""
    graded = snapshot.within(golden_set_id).select(*PAIR, "grade")
    rows = draw(snapshot, contest).join(graded, on=PAIR, how="left", maintain_order="left")
    ungraded = set(snapshot.gradings(golden_set_id).filter(pl.col("grade").is_null())["query_id"])
    items = [
        Item(
            place,
            query_id,
            passage_id,
            grade=grade,
            at=None if grade is None and query_id not in ungraded else "",
        )
        for place, (query_id, passage_id, grade) in enumerate(rows.iter_rows())
    ]
    return standing(snapshot, contest, items)


def mistakes(snapshot: Snapshot, scope: Scope, golden_set_id: str) -> Mistakes | None:
    """Compare a golden set with the one by another judge that grades most of the same passages."""
    other = next(iter(auditors(snapshot, replace(scope, golden_set_id=golden_set_id))), None)
    if other is None:
        return None
    own, reference = (
        snapshot.within(name).select(*PAIR, useful=pl.col("grade") >= USEFUL)
        for name in (golden_set_id, other)
    )
    both = own.join(reference, on=PAIR, suffix="_truly")
    said, true = (both[name].to_numpy().astype(np.bool_) for name in ("useful", "useful_truly"))
    return Mistakes(other, both.height, _share(said[true]), _share(said[~true]))


def _share(of: np.ndarray) -> float | None:
    return float(of.mean()) if len(of) else None


def _by_kind(view: View, questions: pl.DataFrame) -> pl.DataFrame:
    """Return the means of `DIFFERENCES` for each kind of question; the most changed kind first."""
    rows = []
    for kind, mask in tagged(view, tuple(questions["query_id"])).items():
        own = questions.filter(pl.Series(mask)).select(pl.col("overlap", "rbo", "other_first").mean())
        rows.append({"kind": kind, "n": int(mask.sum()), **own.row(0, named=True)})
    return pl.DataFrame(rows, schema=KINDS).sort("rbo", "kind")
