"""What brings a section of a page forward that else stands behind "More": data of the workspace.

A section names one of these where it is declared; whoever draws a page's sections asks, once a revision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl

from core.analysis.workspace.answers import TRIAL
from core.analysis.workspace.scope import Scope
from core.analysis.workspace.unanswerable import without_answer
from core.answers import BY_PEOPLE
from core.diagnostics.noise import perturbed_runs
from core.importers.samples import ASKED_AT
from core.store import Snapshot
from core.tables import FIRST_TOKEN, GENERATE

Tells = Callable[[Snapshot, str], bool]
"""Whether a section tells something of a collection that its data alone can tell."""


def seldom(snapshot: Snapshot, collection_id: str) -> bool:
    """Tell that no data bring a section forward: few ask what it answers."""
    del snapshot, collection_id
    return False


def real_answers(snapshot: Snapshot, collection_id: str) -> bool:
    """Tell whether any reader answered, or was scored, that does not make its answers up."""
    readers = {*_of_runs(snapshot, collection_id, "answers", "reader")}
    return not {*readers, *_of_runs(snapshot, collection_id, "answer_scores", "reader")} <= {TRIAL}


def answers_by_depth(snapshot: Snapshot, collection_id: str) -> bool:
    """Tell whether it is known from how many passages real answers come."""
    depths = _of_runs(snapshot, collection_id, "answer_scores", "k")
    return any(k is not None for k in depths) and real_answers(snapshot, collection_id)


def answers_of_rankings(snapshot: Snapshot, collection_id: str) -> bool:
    """Tell whether real answers come from passages that are known."""
    ranked = snapshot.runs(collection_id).filter("has_rankings")["run_id"]
    answered = {*_having(snapshot, collection_id, "answers")} & {*ranked}
    return bool(answered) and real_answers(snapshot, collection_id)


def scored_by(*scorers: str) -> Tells:
    """Have a section come forward where real answers are scored by each of some scorers."""

    def tells(snapshot: Snapshot, collection_id: str) -> bool:
        known = {*_of_runs(snapshot, collection_id, "answer_scores", "scorer")}
        return {*scorers} <= known and real_answers(snapshot, collection_id)

    return tells


def graded_answers(snapshot: Snapshot, collection_id: str) -> bool:
    """Tell whether people graded answers."""
    return BY_PEOPLE in _of_runs(snapshot, collection_id, "answer_scores", "source")


def timed_reader(snapshot: Snapshot, collection_id: str) -> bool:
    """Tell whether the stages behind retrieval were timed, or readers answered that take time."""
    stages = _of_runs(snapshot, collection_id, "timings", "stage")
    return not {GENERATE, FIRST_TOKEN}.isdisjoint(stages) or real_answers(snapshot, collection_id)


def rated(snapshot: Snapshot, collection_id: str) -> bool:
    """Tell whether a reranker rated passages by several criteria."""
    return bool(_having(snapshot, collection_id, "criteria"))


def perturbed(snapshot: Snapshot, collection_id: str) -> bool:
    """Tell whether any stack was asked perturbed queries."""
    return perturbed_runs(snapshot.runs(collection_id)).height > 0


def dated(snapshot: Snapshot, collection_id: str) -> bool:
    """Tell whether any stack says when its queries were asked."""
    return ASKED_AT in _of_runs(snapshot, collection_id, "signals", "signal")


def approximate(snapshot: Snapshot, collection_id: str) -> bool:
    """Tell whether stacks with rankings search by different kinds of index."""
    kinds = snapshot.runs(collection_id).filter("has_rankings")["spec"].str.json_path_match("$.index")
    return kinds.drop_nulls().n_unique() > 1


def unanswerable(snapshot: Snapshot, collection_id: str) -> bool:
    """Tell whether any question is known to have no answer, by its tags or the golden set of most grades."""
    first = next(iter(_judged(snapshot, collection_id)), None)
    return bool(without_answer(snapshot, Scope(collection_id, first)))


def several_judges(snapshot: Snapshot, collection_id: str) -> bool:
    """Tell whether more than one golden set judges passages."""
    return len(_judged(snapshot, collection_id)) > 1


def graded_by_hand(snapshot: Snapshot, collection_id: str) -> bool:
    """Tell whether any grade was given without a prompt, and so by a person."""
    return None in snapshot.existing("gradings", _judged(snapshot, collection_id), "prompt")


def _judged(snapshot: Snapshot, collection_id: str) -> list[str]:
    """Return the golden sets of a collection that have judgements, those of most first."""
    sets = snapshot.golden_sets(collection_id).filter(pl.col("judgements") > 0)
    return sets.sort("judgements", descending=True, maintain_order=True)["golden_set_id"].to_list()


def _of_runs(snapshot: Snapshot, collection_id: str, table: str, column: str) -> Sequence[str | None]:
    """Return the values of a column of what the runs of a collection have in a table."""
    having = _having(snapshot, collection_id, table)
    return snapshot.existing(table, having, column) if having else ()


def _having(snapshot: Snapshot, collection_id: str, table: str) -> list[str]:
    """Return the runs of a collection that have rows of a table."""
    there = snapshot.sizes(table).filter(pl.col("rows") > 0)["id"].to_list()
    return snapshot.runs(collection_id).filter(pl.col("run_id").is_in(there))["run_id"].to_list()
