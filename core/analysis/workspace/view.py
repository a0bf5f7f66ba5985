"""Basis of every page, command and record: the workspace, and the question to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import polars as pl

from core.analysis.cache import cached
from core.analysis.workspace.comparable import Comparability
from core.analysis.workspace.query_sets import paired
from core.analysis.workspace.scope import Latency, Quality, Scope, zone
from core.analysis.workspace.stacks import stack_table
from core.decide.rules import Constraints, Decision, Rule, decide
from core.decide.selection import Assessment
from core.decide.switching import Terms
from core.decide.ties import Paired
from core.prices import PriceBook
from core.stats.intervals import SEED
from core.store import Snapshot

P = ParamSpec("P")
R = TypeVar("R")


@cached("Scoring every query…", entries=8)
def _pairs(
    _table: pl.DataFrame, snapshot: Snapshot, scope: Scope, quality: Quality, seed: int
) -> Paired | None:
    """Return quality per query of the stacks; the table isn't hashed, as the other arguments determine it."""
    return paired(snapshot, _table, scope, quality, seed=seed)


@dataclass(frozen=True)
class Place:
    """The workspace, on pages that read no results."""

    snapshot: Snapshot  # the data at the chosen revision
    scope: Scope  # collection, golden set and runs


@dataclass(frozen=True, kw_only=True)
class View(Place):
    """The workspace and its question; derived results are computed on first access."""

    quality: Quality  # measure and cutoff
    latency: Latency  # percentile and scope
    book: PriceBook  # prices
    # SLA, budget, quality floor and jitter band
    constraints: Constraints = field(default_factory=Constraints)
    # Differences between the runs that are kept off the charts
    compared: Comparability = field(default_factory=Comparability)
    # The golden set whose grades are drawn in the chances; None = no judge noise
    noise: str | None = None
    rule: Rule = "quality"  # the rule that selects a stack within the constraints
    take: str | None = None  # run_id of the stack that a person takes instead
    incumbent: str | None = None  # run_id of the stack that runs today; None = not known
    terms: Terms = field(default_factory=Terms)  # what a move from it is judged by
    weak: bool = False  # whether the frontier takes the paper's form; see `core.decide.pareto.undominated`
    seed: int = SEED  # of the resampling
    given: pl.DataFrame | None = None  # the stack table, if already available

    @cached_property
    def table(self) -> pl.DataFrame:
        """The stack table, one row per run."""
        if self.given is not None:
            return self.given
        return stack_table(self.snapshot, self.scope, self.quality, self.latency, self.book)

    @cached_property
    def paired(self) -> Paired | None:
        """Quality per query of the stacks, if known."""
        return _pairs(self.table, self.snapshot, self.scope, self.quality, self.seed)

    @cached_property
    def decision(self) -> Decision:
        """The stack that the constraints select."""
        return decide(self.table, self.constraints, self.rule, paired=self.paired, take=self.take)

    @cached_property
    def feasible(self) -> pl.DataFrame:
        """The rows of the stack table within the limits."""
        return self.table.filter(pl.Series(self.decision.feasible))

    @cached_property
    def sure(self) -> Assessment:
        """Confidence in the decision, and the alternatives it gives up."""
        from core.analysis.workspace.sure import assessed  # noqa: PLC0415 - which looks at views

        return assessed(self)

    @property
    def indifference(self) -> float | None:
        """The indifference zone if it isn't the measure's default, otherwise None."""
        return None if self.constraints.delta == zone(self.quality, self.table) else self.constraints.delta

    @property
    def dropped(self) -> str | None:
        """The stack that a person took and that the limits now exclude: its name, or the text given."""
        chosen = self.decision.chosen
        if self.take is None or (chosen is not None and self.table["run_id"][chosen] == self.take):
            return None
        names = self.table.filter(run_id=self.take)["name"]
        return self.take if names.is_empty() else str(names[0])

    @property
    def running_row(self) -> int | None:
        """The row of the stack that runs today."""
        return None if self.incumbent is None else self.table["run_id"].index_of(self.incumbent)

    @property
    def running_name(self) -> str | None:
        """The name of the stack that runs today."""
        return None if self.running_row is None else str(self.table["name"][self.running_row])

    @cached_property
    def _made(self) -> dict[tuple[object, ...], Any]:
        return {}

    def once(self, make: Callable[Concatenate[View, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Compute something from the view, or return the cached result of the same function."""
        key = (make, args, *kwargs.items())
        if key not in self._made:
            self._made[key] = make(self, *args, **kwargs)
        return cast(R, self._made[key])

    def replace(self, **changes: Any) -> View:  # noqa: ANN401 - its fields
        """Return a view of the same table with another rule, other limits or other judge noise."""
        other = replace(self, **{"given": self.table, **changes})
        if "paired" in self.__dict__:
            other.__dict__["paired"] = self.paired
        return other
