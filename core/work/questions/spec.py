"""The specification of a set of questions: source texts, method, number and kinds."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from core.pipeline.own.config import AsPath, Positive
from core.pipeline.sweep.fields import Many, Named, Table, Under
from core.pipeline.sweep.model import CollectionSource, OwnModels
from core.work.questions.drafts import KINDS, LOG, DraftKind
from core.work.questions.known import HEADINGS, KNOWN_ITEM

BY_RULE = (KNOWN_ITEM, HEADINGS, LOG)  # Methods that need no model


class LogSource(Table):
    """Real questions asked by people."""

    path: AsPath | None = None  # A table with a row for each time one was asked
    stored: Named | None = None  # Instead, a stored collection whose questions are used: traces, for example
    column: Named | None = None  # The column of the table; None = the one whose name means a question
    mask: AsPath | None = None  # A list of further text to mask, a name or an address on each line
    names: Named | None = None  # A spaCy model that finds names of people, which are masked; None = none

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.path is None) == (self.stored is None):
            raise ValueError("Give one of path and stored.")
        return self


class QuestionsSpec(Table):
    """A whole specification."""

    name: Named = "questions"  # Display name
    # The documents: in the store, or a path as in a sweep
    collection: Annotated[CollectionSource, Under("path")]
    method: Named = HEADINGS  # "headings", "known-item", "log", or a chat model
    count: Positive = 64  # Number of questions requested
    kinds: Annotated[Many[DraftKind], Field(min_length=1)] = (
        KINDS[0],
    )  # Kinds for the model, in equal parts
    log: Annotated[LogSource | None, Under("path")] = None  # Source of the questions for method "log"
    language: Named | None = None  # Of the texts, in English ("french"); None = by their stop words
    closed_book: bool = True  # Whether to ask the model without the text, and drop what it knows
    twins: bool = False  # Whether it also paraphrases every question
    seed: Named = "questions"  # For all random draws
    out: AsPath | None = None  # The folder for the set; None = this work's own
    budget_usd: Annotated[float, Field(ge=0)] | None = None  # Hard limit in dollars; None = none
    prices: Named = "list"  # Name of a price book
    models: OwnModels = Field(default_factory=dict)  # Models missing from the catalogue, by name

    @model_validator(mode="after")
    def _readable(self) -> Self:
        if (self.method == LOG) != (self.log is not None):
            raise ValueError('Name where the log is (log), and method = "log".')
        return self

    @property
    def model(self) -> str:
        """The chat model that writes; "" if none is needed."""
        return "" if self.method in BY_RULE else self.method
