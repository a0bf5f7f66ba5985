"""What was asked in a decision record, in the names that the command line has for it: to ask it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from core.stats.intervals import SEED
from core.views.workspace.query_sets import WORDS
from core.views.workspace.scope import Latency
from core.views.workspace.stacks import runs_in

if TYPE_CHECKING:
    from core.report.data import Case

DEFAULTS: Mapping[str, object] = {
    "on": Latency().percentile,
    "latency": Latency().scope,
    "rule": "quality",
    "judged": "any",
    "seed": SEED,
    "together": False,
    "every_golden_set": False,
}
"""What the options stand at where nobody says; those that are not here at nothing."""


def question(case: Case) -> dict[str, object]:
    """What a case asks."""
    asked, limits = case.asked, case.asked.constraints
    model = asked.latency.generation
    return {
        "collection": case.scope.collection_id,
        "golden_set": case.scope.golden_set_id,
        "run": list(named(case, "run_id")),
        "measure": asked.quality.name,
        "sla_ms": limits.sla_ms,
        "on": asked.latency.percentile,
        "latency": asked.latency.scope,
        "budget": limits.budget,
        "min_quality": limits.floor,
        "max_harm": limits.max_harm,
        "rule": asked.rule,
        "judged": WORDS.get(case.scope.judging.least, DEFAULTS["judged"]),
        "jitter_ms": limits.jitter_ms,
        "prices": case.book.name,
        "price": list(case.book.changes),
        "seed": case.seed,
        "every_golden_set": case.scope.judging.everywhere,
        "together": bool(case.remarks and not narrowed(case)),
        "generation": None if model is None else asdict(model),
    }


def narrowed(case: Case) -> bool:
    """Whether something of the workspace was left out because it does not compare."""
    scope = case.scope
    return bool(scope.apart or scope.shared or scope.judging or case.asked.latency.machine)


def named(case: Case, column: str) -> tuple[str, ...]:
    """The chosen runs of a case by a column of the run table; none where all of the collection are."""
    chosen = set(case.scope.run_ids)
    whole = case.snapshot.runs(case.scope.collection_id)
    if not chosen or chosen == set(whole["run_id"]):
        return ()
    return tuple(runs_in(case.snapshot, case.scope)[column])
