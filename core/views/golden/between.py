"""The queue of passages whose grades decide between two stacks."""

from __future__ import annotations

from core.analysis.between import begun, judged_within
from core.analysis.deciding import Contest, draw
from core.analysis.workspace.scope import Scope
from core.golden.book import Book, Queue
from core.golden.by_hand import BETWEEN
from core.store import Snapshot
from core.views.golden.judging import propose


def begin(book: Book, snapshot: Snapshot, scope: Scope, contest: Contest) -> Queue:
    """Return the queue of this contest; record it if there is none, for a judge to take.

    Raises:
        InputError: If the two stacks show the same passages.
    """
    if (known := begun(book, snapshot, scope, contest)) is not None:
        return known
    rows = draw(snapshot, contest)
    within = judged_within(snapshot, scope, contest)
    return propose(book, within, rows, sampling=BETWEEN, seed=contest.seed)
