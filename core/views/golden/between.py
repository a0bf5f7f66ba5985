"""The queue of passages whose grades decide between two stacks."""

from __future__ import annotations

from core.analysis.deciding import Contest, Standing, draw, standing
from core.analysis.workspace.scope import Scope
from core.golden.book import Book, Queue
from core.golden.by_hand import BETWEEN
from core.store import Snapshot
from core.views.golden.chunks import ranked_in
from core.views.golden.judging import propose


def begun(book: Book, snapshot: Snapshot, scope: Scope, contest: Contest) -> Queue | None:
    """Return the latest queue of this contest, if any."""
    queues = book.queues(_within(snapshot, scope, contest))
    return next((queue for queue in queues if Contest.of(queue) == contest), None)


def begin(book: Book, snapshot: Snapshot, scope: Scope, contest: Contest) -> Queue:
    """Return the queue of this contest; record it if there is none, for a judge to take.

    Raises:
        InputError: If the two stacks show the same passages.
    """
    if (known := begun(book, snapshot, scope, contest)) is not None:
        return known
    rows = draw(snapshot, contest)
    within = _within(snapshot, scope, contest)
    return propose(book, within, rows, sampling=BETWEEN, seed=contest.seed)


def stand(book: Book, snapshot: Snapshot, queue: Queue) -> Standing | None:
    """Return what a queue's grades decide so far; None if it is a queue of another kind."""
    contest = Contest.of(queue)
    return None if contest is None else standing(snapshot, contest, book.items(queue.queue_id))


def _within(snapshot: Snapshot, scope: Scope, contest: Contest) -> str:
    return ranked_in(snapshot, [contest.now, contest.to], scope.collection_id)
