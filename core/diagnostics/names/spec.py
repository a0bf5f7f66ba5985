"""The specification of a diagnosis of names; the command line builds one, or reads it from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from core.diagnostics.names.bundles import Language
from core.pipeline.sweep.fields import Encoder, Many, Named, Positive, Table
from core.pipeline.sweep.model import OwnModels


class NamesSpec(Table):
    """A whole specification.

    Attributes:
        name: What people read.
        embedder: Whose margins are measured.
        language: Of the phrases and of the shipped works.
        entities: A table of one's own instead, with entity, topic and title.
        collection: A stored collection instead, whose passages have sources and titles.
        runs: How often bundles are drawn anew.
        queries: Bundles of a run.
        seed: Of all that is drawn.
        budget_usd: Hard limit in dollars; None = none.
        prices: Name of a price book.
        models: Models that no catalogue has, by name.
    """

    name: Named = "names"
    embedder: Annotated[Many[Encoder], Field(min_length=1)]
    language: Annotated[Many[Language], Field(min_length=1)] = ("en",)
    entities: Named | None = None
    collection: Named | None = None
    runs: Positive = 15
    queries: Positive = 100
    seed: Named = "names"
    budget_usd: Annotated[float, Field(ge=0)] | None = None
    prices: Named = "list"
    models: OwnModels = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.entities is not None and self.collection is not None:
            raise ValueError("Give one of entities and collection.")
        return self

    @property
    def own(self) -> str:
        """What is drawn from instead of the shipped works; empty for these."""
        return self.collection or ("" if self.entities is None else Path(self.entities).name)
