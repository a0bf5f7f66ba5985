"""The specification of readers on stored runs; that of an evaluation holds the same table under [reader]."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator

from core.pipeline.sweep.fields import Named, Table, under
from core.pipeline.sweep.model import CollectionSource, OwnModels
from core.pipeline.sweep.reader import Reader


class ReaderSpec(Table):
    """A whole specification.

    Attributes:
        name: What people read.
        collection: The stored collection whose runs are read.
        reader: Who answers, from what, and how answers are scored.
        budget_usd: Hard limit in dollars; None = none.
        prices: Name of a price book.
        models: Models that no catalogue has, by name.
    """

    name: Named = "readers"
    collection: Annotated[
        CollectionSource, BeforeValidator(under("path"), json_schema_input_type=str | CollectionSource)
    ]
    reader: Reader
    budget_usd: Annotated[float, Field(ge=0)] | None = None
    prices: Named = "list"
    models: OwnModels = Field(default_factory=dict)

    @model_validator(mode="after")
    def _is_stored(self) -> Self:
        if self.collection.stored is None:
            raise ValueError("Readers answer from stored runs: name a collection of the store.")
        if not self.reader.runs:
            raise ValueError('Name the runs that are read (reader.runs), or "workspace".')
        return self
