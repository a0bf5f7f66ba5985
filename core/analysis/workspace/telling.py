"""Functions that say whether a workspace's data move a section of a page out of "More".

A section names one of them in its declaration; they are called once per revision for a page.
"""

from __future__ import annotations

import json
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

SURFACE = "rebel-rules"  # Stands in for a model: tuning its weights says nothing of one
Tells = Callable[[Snapshot, str], bool]
"""Whether a section is informative for a collection, judging by its data alone."""


def seldom(snapshot: Snapshot, collection_id: str) -> bool:
    """Return False: no data bring the section forward, because few people need it."""
    del snapshot, collection_id
    return False


def incumbent_known(snapshot: Snapshot, collection_id: str) -> bool:
    """Return whether a stack is marked as the one that runs today."""
    return snapshot.incumbent(collection_id) is not None


def real_answers(snapshot: Snapshot, collection_id: str) -> bool:
    """Return whether any reader answered, or was scored, that does not make its answers up."""
    readers = {*_of_runs(snapshot, collection_id, "answers", "reader")}
    return not {*readers, *_of_runs(snapshot, collection_id, "answer_scores", "reader")} <= {TRIAL}


def answers_by_depth(snapshot: Snapshot, collection_id: str) -> bool:
    """Return whether it is known how many passages real answers come from."""
    depths = _of_runs(snapshot, collection_id, "answer_scores", "k")
    return any(k is not None for k in depths) and real_answers(snapshot, collection_id)


def answers_of_rankings(snapshot: Snapshot, collection_id: str) -> bool:
    """Return whether real answers come from known passages."""
    ranked = snapshot.runs(collection_id).filter("has_rankings")["run_id"]
    answered = {*_having(snapshot, collection_id, "answers")} & {*ranked}
    return bool(answered) and real_answers(snapshot, collection_id)


def scored_by(*scorers: str) -> Tells:
    """Bring a section forward if real answers are scored by each of some scorers."""

    def tells(snapshot: Snapshot, collection_id: str) -> bool:
        known = {*_of_runs(snapshot, collection_id, "answer_scores", "scorer")}
        return {*scorers} <= known and real_answers(snapshot, collection_id)

    return tells


def graded_answers(snapshot: Snapshot, collection_id: str) -> bool:
    """Return whether people graded answers."""
    return BY_PEOPLE in _of_runs(snapshot, collection_id, "answer_scores", "source")


def timed_reader(snapshot: Snapshot, collection_id: str) -> bool:
    """Return whether the stages after retrieval were timed, or the latency of readers was."""
    stages = _of_runs(snapshot, collection_id, "timings", "stage")
    return not {GENERATE, FIRST_TOKEN}.isdisjoint(stages) or real_answers(snapshot, collection_id)


def rated(snapshot: Snapshot, collection_id: str) -> bool:
    """Return whether a reranker other than the rules rated passages by several criteria."""
    having = pl.col("run_id").is_in(_having(snapshot, collection_id, "criteria"))
    specs = snapshot.runs(collection_id).filter(having)["spec"]
    return any(json.loads(spec).get("reranker") != SURFACE for spec in specs)


def perturbed(snapshot: Snapshot, collection_id: str) -> bool:
    """Return whether any stack was run on perturbed queries."""
    return perturbed_runs(snapshot.runs(collection_id)).height > 0


def dated(snapshot: Snapshot, collection_id: str) -> bool:
    """Return whether any stack records when its queries were run."""
    return ASKED_AT in _of_runs(snapshot, collection_id, "signals", "signal")


def filtered(snapshot: Snapshot, collection_id: str) -> bool:
    """Return whether any question has a filter."""
    return snapshot.access(collection_id) is not None


def approximate(snapshot: Snapshot, collection_id: str) -> bool:
    """Return whether stacks with rankings search different kinds of index."""
    kinds = snapshot.runs(collection_id).filter("has_rankings")["spec"].str.json_path_match("$.index")
    return kinds.drop_nulls().n_unique() > 1


def unanswerable(snapshot: Snapshot, collection_id: str) -> bool:
    """Return whether any question has no answer, by its tags or the golden set with most grades."""
    first = next(iter(_judged(snapshot, collection_id)), None)
    return bool(without_answer(snapshot, Scope(collection_id, first)))


def several_judges(snapshot: Snapshot, collection_id: str) -> bool:
    """Return whether more than one golden set judges passages."""
    return len(_judged(snapshot, collection_id)) > 1


def graded_by_hand(snapshot: Snapshot, collection_id: str) -> bool:
    """Return whether any grade was given without a prompt, and so by a person."""
    return None in snapshot.existing("gradings", _judged(snapshot, collection_id), "prompt")


def _judged(snapshot: Snapshot, collection_id: str) -> list[str]:
    """Return the golden sets of a collection that have judgements, those with the most first."""
    sets = snapshot.golden_sets(collection_id).filter(pl.col("judgements") > 0)
    return sets.sort("judgements", descending=True, maintain_order=True)["golden_set_id"].to_list()


def _of_runs(snapshot: Snapshot, collection_id: str, table: str, column: str) -> Sequence[str | None]:
    having = _having(snapshot, collection_id, table)
    return snapshot.existing(table, having, column) if having else ()


def _having(snapshot: Snapshot, collection_id: str, table: str) -> list[str]:
    there = snapshot.sizes(table).filter(pl.col("rows") > 0)["id"].to_list()
    return snapshot.runs(collection_id).filter(pl.col("run_id").is_in(there))["run_id"].to_list()
