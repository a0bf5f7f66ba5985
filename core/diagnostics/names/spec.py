"""The specification of a diagnosis of names; the command line builds one, or reads it from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from core.diagnostics.names.bundles import Language
from core.pipeline.sweep.fields import Encoder, Many, Named, Positive, Table
from core.pipeline.sweep.model import OwnModels


class NamesSpec(Table):
    """A whole specification."""

    name: Named = "names"  # What people read
    embedder: Annotated[Many[Encoder], Field(min_length=1)]  # Whose margins are measured
    # Of the phrases and of the shipped works
    language: Annotated[Many[Language], Field(min_length=1)] = ("en",)
    entities: Named | None = None  # A table of one's own instead, with entity, topic and title
    collection: Named | None = None  # A stored collection instead, whose passages have sources and titles
    runs: Positive = 15  # How often bundles are drawn anew
    queries: Positive = 100  # Bundles of a run
    seed: Named = "names"  # Of all that is drawn
    budget_usd: Annotated[float, Field(ge=0)] | None = None  # Hard limit in dollars; None = none
    prices: Named = "list"  # Name of a price book
    models: OwnModels = Field(default_factory=dict)  # Models that no catalogue has, by name

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.entities is not None and self.collection is not None:
            raise ValueError("Give one of entities and collection.")
        return self

    @property
    def own(self) -> str:
        """What is drawn from instead of the shipped works; empty for these."""
        return self.collection or ("" if self.entities is None else Path(self.entities).name)
