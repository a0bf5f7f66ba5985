"""The specification of a set of questions: from which texts, by which method, how many, of which kinds."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from core.pipeline.sweep.fields import AsPath, Many, Named, Positive, Table, Under
from core.pipeline.sweep.model import CollectionSource, OwnModels
from core.work.questions.drafts import KINDS, LOG, Kind
from core.work.questions.known import HEADINGS, KNOWN_ITEM

BY_RULE = (KNOWN_ITEM, HEADINGS, LOG)  # Methods that need no model


class LogSource(Table):
    """Real questions that people asked."""

    path: AsPath | None = None  # A table with a row for each time one was asked
    stored: Named | None = None  # Instead, a stored collection whose questions are taken: traces, for example
    column: Named | None = None  # The column of the table; None = the one that is called like a question
    mask: AsPath | None = None  # A list of what is masked besides, a name or an address on each line
    names: Named | None = None  # A model of spaCy that finds names of people, which are masked; None = none

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.path is None) == (self.stored is None):
            raise ValueError("Give one of path and stored.")
        return self


class QuestionsSpec(Table):
    """A whole specification."""

    name: Named = "questions"  # What people read
    # What is asked about: of the store, or a path as a sweep has it
    collection: Annotated[CollectionSource, Under("path")]
    method: Named = HEADINGS  # "headings", "known-item", "log", or a chat model
    count: Positive = 64  # How many are wanted
    kinds: Annotated[Many[Kind], Field(min_length=1)] = (
        KINDS[0],
    )  # What a model is asked for, in equal parts
    log: Annotated[LogSource | None, Under("path")] = None  # Where the questions of "log" are
    language: Named | None = None  # Of the texts, in English ("french"); None = by their stop words
    closed_book: bool = True  # Whether the model is asked without the text, and what it knows is thrown out
    twins: bool = False  # Whether it says every question in other words, too
    seed: Named = "questions"  # Of all that is drawn
    out: AsPath | None = None  # The folder that takes the set; None = the one of this work
    budget_usd: Annotated[float, Field(ge=0)] | None = None  # Hard limit in dollars; None = none
    prices: Named = "list"  # Name of a price book
    models: OwnModels = Field(default_factory=dict)  # Models that no catalogue has, by name

    @model_validator(mode="after")
    def _readable(self) -> Self:
        if (self.method == LOG) != (self.log is not None):
            raise ValueError('Name where the log is (log), and method = "log".')
        return self

    @property
    def model(self) -> str:
        """The chat model that writes; empty where none is needed."""
        return "" if self.method in BY_RULE else self.method
