"""The specification of a golden set: its questions, sources of candidates, judges, and refinement.

Written in TOML or YAML like a sweep, and read by the same reader: all mistakes at once, each with its line.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from core.analysis.deciding import DELTA
from core.errors import ClqError
from core.golden.refine.base import METHODS, RefineSettings
from core.pipeline.own.config import Positive
from core.pipeline.sweep.fields import Bm25, IndexChoice, Many, MethodChoice, Methodic, Named, Table, Under
from core.pipeline.sweep.model import (
    Budget,
    CollectionSource,
    Latency,
    OwnModels,
    Point,
    QuerySource,
    SweepSpec,
)
from core.work.golden.prompts import PromptLanguage

NONE, AUTO = "none", "auto"


class Leg(Table):
    """An index that provides candidates: sparse, dense, or both fused."""

    sparse: Literal["bm25"] | None = None
    bm25: Bm25 | None = None  # Its parameters
    embedder: Named | None = None
    dim: Positive | None = None  # Its dimension; None = its default
    index: IndexChoice | None = None  # Kind of vector index; exact search by default
    fusion: MethodChoice | None = None  # Fusion method if both are given

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if self.sparse is None and self.embedder is None:
            raise ValueError('Name sparse = "bm25", an embedder, or both.')
        return self

    def point(self, depth: int, rewrite: str) -> Point:
        """Return the stack that provides these candidates, in the form of a sweep."""
        mode: Literal["sparse", "dense", "hybrid"] = "dense" if self.sparse is None else "sparse"
        fusion = self.fusion
        if self.sparse is not None and self.embedder is not None:
            mode, fusion = "hybrid", fusion or Methodic.model_validate({"method": "rrf", "depth": depth})
        dense = {} if mode == "sparse" else {"embedder": self.embedder, "dim": self.dim, "index": self.index}
        return Point(
            mode=mode, bm25=self.bm25, candidates=depth, rewrite=rewrite,
            fusion=fusion if mode == "hybrid" else None, **dense,  # type: ignore[arg-type]
        )  # fmt: skip


class PoolSource(Table):
    """A source of candidates."""

    stack: Leg | None = None  # An index, searched now
    runs: Many[Named] = ()  # Instead, runs in the store, by id; "workspace" = all of the collection
    depth: Positive = 100  # Number of passages from each ranking

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.stack is None) == (not self.runs):
            raise ValueError("Give one of stack and runs.")
        return self


class Judges(Table):
    """The judges."""

    # Chat models; several are combined by `policy`. None = use only existing grades.
    models: Many[Named] = ()
    # "majority" (ties take the lower grade) or "mean" (rounded, halves down)
    policy: Literal["majority", "mean"] = "majority"
    # A golden set in the store whose grades are reused, so that only missing ones are judged
    grades: Named | None = None


class Prune(Table):
    """Passages to refine."""

    keep: Positive = 35  # Whole grades from 5 down are kept until this many passages of a query are


class Refine(Table):
    """How the best passages are ordered; besides these keys any of `RefineSettings`."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)

    # "locks", "map", "none", or "auto": measure the judge's noise first, and do what pays
    method: Literal["locks", "map", "none", "auto"] = "none"
    model: Named | None = None  # The chat model that orders; None = the first judge

    @model_validator(mode="after")
    def _readable(self) -> Self:
        try:
            self.settings("locks")
        except ClqError as error:
            raise ValueError(str(error)) from None
        return self

    def settings(self, method: str) -> RefineSettings:
        """Return the settings of one of the two methods."""
        return RefineSettings.read({"method": method if method in METHODS else METHODS[0], **self.extra})

    @property
    def extra(self) -> dict[str, Any]:
        """Settings beyond the defaults."""
        return dict(self.model_extra or {})


class Nuggets(Table):
    """Facts in good answers, listed by a model."""

    model: Named | None = None  # The chat model that lists them; None = no nuggets
    passages: Positive = 8  # Number of a question's best passages to show


class BetweenSource(Table):
    """Two stacks to decide between: the judge stops once its grades do."""

    now: Named  # The stack that runs today: a run in the store
    to: Named  # The candidate: a run in the store
    k: Positive = 10  # Passages of each that are compared
    margin: Annotated[float, Field(ge=0)] = 0.0  # What the candidate has to be better by
    alike: Annotated[float, Field(ge=0, le=1)] = DELTA  # Difference that does not matter


class Golden(Table):
    """The golden set to build."""

    rewrite: Named = "none"  # Rewrite of a question for the search (S1); judges always see the original
    language: PromptLanguage = "en"  # Language of the judges' instructions
    pool: Many[PoolSource] = ()  # Sources of candidates; none if only existing grades are refined
    between: BetweenSource | None = None  # Instead of a pool: passages that decide between two stacks
    judge: Judges = Judges()  # The judges
    prune: Prune = Prune()  # Passages to refine
    refine: Refine = Refine()
    nuggets: Nuggets = Nuggets()  # Facts to list

    @model_validator(mode="after")
    def _has_passages(self) -> Self:
        if self.between is not None:
            return self._decides()
        if not self.pool and self.judge.grades is None:
            raise ValueError("Name where candidates come from ([[golden.pool]]), or judge.grades.")
        if not self.judge.models and self.judge.grades is None:
            raise ValueError("Name who judges (judge.models), or judge.grades.")
        if self.refine.method != NONE and not (self.refine.model or self.judge.models):
            raise ValueError("Name the model that refines (refine.model).")
        return self

    def _decides(self) -> Self:
        if self.pool or self.rewrite != NONE or self.refine.method != NONE or self.nuggets.model:
            raise ValueError("Between two stacks nothing but their own passages is judged.")
        if len(self.judge.models) != 1:
            raise ValueError("Name the one model that judges (judge.models).")
        return self


class GoldenSpec(Table):
    """A whole specification."""

    name: Named = "golden"  # Display name; the golden set's id is derived from it
    # The collection to judge: in the store, or a path as in a sweep
    collection: Annotated[CollectionSource, Under("path")]
    # The questions; None = those of the collection
    queries: Annotated[QuerySource, Under("path")] = QuerySource()
    golden: Golden  # The golden set to build
    budget_usd: Annotated[float, Field(ge=0)] | None = None  # Hard limit in dollars; None = none
    prices: Named = "list"  # Name of a price book
    models: OwnModels = Field(default_factory=dict)  # Models missing from the catalogue, by name

    def sweep(self) -> SweepSpec:
        """Return the sweep that searches the candidates; without an index, a BM25 sweep that never runs."""
        legs = [source for source in self.golden.pool if source.stack is not None]
        points = [leg.stack.point(leg.depth, self.golden.rewrite) for leg in legs if leg.stack is not None]
        return SweepSpec(
            name=self.name,
            collection=self.collection,
            queries=self.queries,
            stack=tuple(points) or (Point(mode="sparse", candidates=1),),
            latency=Latency(repeats=0),
            budget=Budget(usd=self.budget_usd, prices=self.prices),
            models=self.models,
        )
