"""The [reader] of a specification: which models answer from the passages, how, and who scores the answers."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from core.pipeline.sweep.fields import Many, Named, Positive, Table, under

Mode = Literal["top_k", "gold_only", "no_gold", "gold", "none"]
Scorer = Literal["f1", "exact_match", "substring", "rougeL", "citation_precision", "citation_recall"]
JudgeScorer = Literal["correctness", "similarity", "faithfulness", "precision"]
WORKSPACE = "workspace"
"""In place of the ids of runs: every run of the collection that has rankings."""
BY_DEPTH = frozenset({"top_k", "gold_only", "no_gold"})
"""Modes that are asked at every k."""


class AnswerJudge(Table):
    """A model that scores answers; it should be another than the reader.

    Attributes:
        model: A chat model.
        scorers: "correctness", "similarity" (to the gold answers) and "faithfulness" (to the passages), 0 to
            5; "precision": share of the passages sent that help to answer, each judged yes or no.
    """

    model: Named
    scorers: Many[JudgeScorer] = ("correctness", "similarity", "faithfulness")


class Reader(Table):
    """Which models answer from the passages of runs, and how their answers are scored.

    Attributes:
        models: Chat models that answer.
        prompts: "short" (RAGGED's), "short-relevance", "grounded" (cites passages), or a path to one's own; a
            file "NAME.none.txt" beside "NAME.txt" is asked where no passage is sent.
        k: How many of the first passages are sent.
        modes: "top_k"; "gold_only" or "no_gold": those of them that are gold or are not; "gold": all gold
            passages; "none": no passage.
        temperatures: Of the models that take one.
        passes: How often every question is asked.
        max_tokens: Of an answer; None = the prompt's own.
        context_tokens: The most tokens of the passages together; what exceeds it is cut.
        scorers: How answers are compared with gold answers.
        judge: A model that scores answers, too.
        runs: Stored runs whose final rankings are read, by id or label, or "workspace"; in the specification
            of an evaluation its own runs, and not to be given.
        golden_set: Whose passages are gold, of the store; None = the collection's only one.
        gold_from: Least grade of a gold passage.
    """

    models: Annotated[Many[Named], Field(min_length=1)]
    prompts: Annotated[Many[Named], Field(min_length=1)] = ("short",)
    k: Many[Positive] = (1, 2, 5, 10, 20)
    modes: Annotated[Many[Mode], Field(min_length=1)] = ("top_k", "none")
    temperatures: Annotated[Many[Annotated[float, Field(ge=0, le=2)]], Field(min_length=1)] = (0.0,)
    passes: Annotated[int, Field(ge=1, le=100)] = 1
    max_tokens: Positive | None = None
    context_tokens: Positive | None = None
    scorers: Many[Scorer] = ("f1", "exact_match", "substring", "rougeL")
    judge: (
        Annotated[AnswerJudge, BeforeValidator(under("model"), json_schema_input_type=str | AnswerJudge)]
        | None
    ) = None
    runs: Many[Named] = ()
    golden_set: Named | None = None
    gold_from: Annotated[int, Field(ge=1, le=5)] = 4

    @model_validator(mode="after")
    def _has_depths(self) -> Self:
        if BY_DEPTH & set(self.modes) and not self.k:
            raise ValueError("Name how many passages are sent (k).")
        return self

    def depths(self, mode: Mode) -> tuple[int | None, ...]:
        """The k's of a mode, ascending; None = all gold passages."""
        if mode in BY_DEPTH:
            return tuple(sorted(set(self.k)))
        return (0,) if mode == "none" else (None,)

    @property
    def depth(self) -> int:
        """The deepest k."""
        return max(self.k, default=0)

    @property
    def asked(self) -> tuple[str, ...]:
        """Every model that is asked, each once."""
        judge = () if self.judge is None else (self.judge.model,)
        return tuple(dict.fromkeys((*self.models, *judge)))
