"""What is said of sweeps too large for one machine, or to run whole: shares of a cluster, and the search."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from core.pipeline.sweep.fields import Many, Named, Positive, Table
from core.records import JsonMap, canonical_json


class TaskShare(Table):
    """What a task of a cluster gets of a machine.

    Attributes:
        cpus: Processors.
        gpus: Graphics processors.
        memory_gb: Memory that is set aside; None = none is.
    """

    cpus: Annotated[float, Field(gt=0)] = 1.0
    gpus: Annotated[float, Field(ge=0)] = 0.0
    memory_gb: Annotated[float, Field(gt=0)] | None = None


class Resources(TaskShare):
    """What the tasks of a cluster get of a machine; of no concern to one machine.

    Attributes:
        embed: Embedding of a corpus, where it is not as the others.
        index: Building of an index.
        query: Asking the queries of stacks.
    """

    embed: TaskShare | None = None
    index: TaskShare | None = None
    query: TaskShare | None = None


class SearchLimits(Table):
    """Limits that good stacks keep; None = no limit.

    Attributes:
        sla: Milliseconds, the median of a query.
        budget: Dollars per 1,000 queries.
        floor: The least quality.
        harm: The highest Harm at the cutoff of the measure; Harm + Hole where over 5 % of the passages that
            any stack ranks so high are unjudged.
    """

    sla: Annotated[float, Field(gt=0)] | None = None
    budget: Annotated[float, Field(ge=0)] | None = None
    floor: float | None = None
    harm: Annotated[float, Field(ge=0, le=1)] | None = None


class Search(Table):
    """How axes of the method "search" are searched.

    Attributes:
        trials: How many stacks are begun at most.
        evaluations: How many queries stacks are asked in all at most; None = no limit.
        measure: What is good, with its cutoff.
        sampler: Who proposes stacks: "tpe" or "nsga2" of Optuna, or "random".
        seed: Of proposals and of the order of the queries.
        rounds: Queries asked in all after each round; the last round asks all that there are.
        level: Of the upper bound (a paired bootstrap) on what a stack has over a rival.
        margin: A stack is dropped when that bound is not above this.
        minutes: After so many no further stack is begun; None = no limit.
        usd: After so many dollars no further stack is begun; the rest of the budget ends what was begun and
            measures what came through. None = no limit of its own.
        limits: What a stack must keep to be looked for.
    """

    trials: Positive = 200
    evaluations: Positive | None = None
    measure: Named = "RA-nWG@10"
    sampler: Literal["tpe", "nsga2", "random"] = "tpe"
    seed: int = 0
    rounds: Many[Positive] = (32, 64, 128)
    level: Annotated[float, Field(gt=0.5, lt=1)] = 0.99
    margin: Annotated[float, Field(ge=0)] = 0.005
    minutes: Annotated[float, Field(gt=0)] | None = None
    usd: Annotated[float, Field(ge=0)] | None = None
    limits: SearchLimits = SearchLimits()


def searched_by(spec: JsonMap) -> Search | None:
    """Return how the stacks of a specification, as JSON, are searched; None where all of them run."""
    axes = spec.get("axes") or ()
    if not any(each.get("method") == "search" for each in axes):
        return None
    return Search.model_validate_json(canonical_json(spec.get("search", {})))
