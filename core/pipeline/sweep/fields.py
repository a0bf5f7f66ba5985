"""The parts of a specification: lists and tables that may be one value, axes, search, cluster and readers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from core.axes import AxisStep
from core.decide.axes import FORMER
from core.errors import InputError
from core.params import Method
from core.pipeline.index.scope import filter_way
from core.pipeline.own.config import Positive
from core.records import JsonMap, canonical_json

_Item = TypeVar("_Item")
Mode = Literal[
    "top_k",
    "gold_only",
    "no_gold",
    "gold",
    "none",
    "harm_before",
    "harm_after",
    "contradicted",
    "dated",
    "adversarial",
]
Scorer = Literal[
    "f1",
    "exact_match",
    "substring",
    "rougeL",
    "citation_precision",
    "citation_recall",
    "ideal_f1",
    "ideal_rougeL",
    "right_refusal",
    "no_wrong_refusal",
    "abstention",
]
JudgeScorer = Literal[
    "correctness",
    "similarity",
    "ideal",
    "faithfulness",
    "precision",
    "answer_relevancy",
    "hallucination",
    "specific_information_accuracy",
]
WORKSPACE = "workspace"  # In place of the ids of runs: every run of the collection that has rankings
BY_DEPTH = frozenset(
    {"top_k", "gold_only", "no_gold", "harm_before", "harm_after", "contradicted", "dated", "adversarial"}
)  # Modes that are asked at every k
IDEAL = frozenset({"ideal_f1", "ideal_rougeL", "ideal"})
"""Scorers beside the same reader's answer from all gold passages (recall_t_measure, A.1: answer_ideal)."""
JUDGED_USUALLY: tuple[JudgeScorer, ...] = ("correctness", "similarity", "faithfulness")


class Table(BaseModel):
    """Base of every table of the specification: unknown keys are refused and values are not converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    def plain(self) -> dict[str, Any]:
        """Return its fields that are set, as JSON."""
        return self.model_dump(mode="json", exclude_none=True)


def _listed(value: object) -> object:
    """Wrap a single value in a tuple; None gives an empty one."""
    if value is None:
        return ()
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


@dataclass(frozen=True)
class Registry:
    """Lists the methods of an axis."""

    methods: Mapping[str, Method]
    read: Callable[[JsonMap], JsonMap]  # checks a method with its parameters and fills in the defaults

    def fits(self, method: str, mode: str) -> bool:
        """Return whether stacks of a mode have what a method needs; an unknown method passes."""
        return mode != "sparse" or method not in self.methods or not self.methods[method].needs_vectors


@dataclass(frozen=True)
class Under:
    """Makes a table accept a single text as its key, in validation and in the JSON schema."""

    key: str

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        def table(value: object) -> object:
            return {self.key: value} if isinstance(value, str | Path) else value

        return core_schema.no_info_before_validator_function(table, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"anyOf": [{"type": "string"}, handler(schema)]}


class _OneOrMore:
    """Makes a tuple accept a single value, in validation and in the JSON schema."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(_listed, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        many = handler(schema)
        return {"anyOf": [many["items"], many]}


Many = Annotated[tuple[_Item, ...], _OneOrMore()]  # A list of values, or one value
Level = Annotated[int, Field(ge=0)]  # Of a perturbation of the queries; 0 = unchanged
NameForm = Annotated[str, BeforeValidator(_as_text, json_schema_input_type=int | str)]
"""A form of the names in queries; a number means that many wrong letters."""


def _as_way(value: object) -> object:
    if isinstance(value, str):
        try:
            filter_way(value)
        except InputError as error:
            raise ValueError(f"{error.found} {error.do}") from error
    return value


Filtering = Annotated[str, BeforeValidator(_as_way, json_schema_input_type=str)]
"""How filters of queries are honoured; see `core.pipeline.index.scope`."""
Named = Annotated[str, Field(min_length=1, max_length=200)]


def _kind_as_name(value: object) -> object:
    """Take `kind` for `name`, as a table of an index may be written."""
    if isinstance(value, Mapping) and "kind" in value and "name" not in value:
        return {"name" if key == "kind" else key: entry for key, entry in value.items()}
    return value


class Methodic(Table):
    """A method of a registry by its name, with parameters that the registry checks."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)

    method: Named


class Index(Table):
    """A kind of vector index by its name or `kind` ("flat", "pgvector"…), with its own parameters."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)

    name: Named


class Bm25(Table):
    """Parameters of BM25: k1 saturates the term count, b (0 to 1) normalises the length.

    The language is that of stemmer and stop words; None = the collection's.
    """

    k1: Annotated[float, Field(gt=0)] = 1.5
    b: Annotated[float, Field(ge=0, le=1)] = 0.75
    language: Named | None = None


class Encoder(Table):
    """A model from a catalogue, a local engine or under [models], with its own dimensions.

    The default dimensions come from the axis `dim`, otherwise from the model.
    """

    name: Named
    dim: Many[Positive] = ()


MethodChoice = Annotated[Methodic, Under("method")]  # Of a fusion, a suppression, a cut or a chunker
IndexChoice = Annotated[Index, BeforeValidator(_kind_as_name), Under("name")]
EncoderChoice = Annotated[Encoder, Under("name")]
ChunksSent = Positive | Literal["all"]


class TaskShare(Table):
    """A task's share of a machine: processors, graphics processors, memory (None = none is set aside)."""

    cpus: Annotated[float, Field(gt=0)] = 1.0
    gpus: Annotated[float, Field(ge=0)] = 0.0
    memory_gb: Annotated[float, Field(gt=0)] | None = None


class Resources(TaskShare):
    """Shares of tasks of a cluster: those that embed a corpus, build an index or ask queries.

    Anything not set for a kind of task is as for all; ignored on a single machine.
    """

    embed: TaskShare | None = None
    index: TaskShare | None = None
    query: TaskShare | None = None


class SearchLimits(Table):
    """Limits that good stacks keep; None = no limit.

    `sla_ms` is the median milliseconds of a query, the budget dollars per 1,000 queries, `min_quality` the
    least quality, and `max_harm` the highest Harm at the cutoff of the measure; Harm + Hole if over 5 % of
    the passages that any stack ranks so high are unjudged. `max_step` is the most that a move from the stack
    that runs today may need, and `max_switching_usd` what it may cost once: stacks beyond are not begun.
    """

    sla_ms: Annotated[float, Field(gt=0)] | None = None
    budget: Annotated[float, Field(ge=0)] | None = None
    min_quality: float | None = None
    max_harm: Annotated[float, Field(ge=0, le=1)] | None = None
    max_step: AxisStep | None = None
    max_switching_usd: Annotated[float, Field(ge=0)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _renamed(cls, given: object) -> object:
        """Accept the limit names of release 0.2; a limit given under both names is refused."""
        if not isinstance(given, Mapping):
            return given
        return {name if (now := FORMER.get(name, name)) in given else now: given[name] for name in given}


class Search(Table):
    """Search settings of the axes of the method "search".

    Attributes:
        trials: How many stacks are started at most.
        evaluations: How many queries stacks are asked in all at most; None = no limit.
        measure: What is good, with its cutoff.
        sampler: Proposes stacks: "tpe" or "nsga2" of Optuna, or "random".
        seed: For proposals and the order of the queries.
        rounds: Queries asked in all after each round; the last round asks all that there are.
        level: Confidence level of the upper bound (paired bootstrap) on a stack's lead over a rival.
        margin: A stack is dropped when that bound does not exceed this.
        minutes: No stack is started after this time; None = no limit.
        usd: No stack is started once this is spent; the rest of the budget finishes started stacks and
            measures the survivors. None = no separate limit.
        limits: Limits within which stacks are sought.
        move: Terms of a move by name, as of `--move`, for the limit on its cost.
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
    move: Mapping[str, float] = {}


def searched_by(spec: JsonMap) -> Search | None:
    """Return the search settings in a specification, as JSON, or None if all stacks run."""
    parts = [*(spec.get("axes") or ()), *(spec.get("stack") or ())]
    if not any(part.get("method") == "search" for part in parts):
        return None
    return Search.model_validate_json(canonical_json(spec.get("search", {})))


class AnswerJudge(Table):
    """Models that score answers, each on its own; they should be others than the readers.

    Attributes:
        model: A chat model, or several.
        scorers: 0 to 5, 5 being best: "correctness" and "similarity" beside gold answers, "ideal" beside the
            same reader's answer from all gold passages (its mode "gold"), "faithfulness",
            "hallucination" (5 = none) and "specific_information_accuracy" beside the passages,
            "answer_relevancy" beside the question; "precision": share of the passages sent that help to
            answer, each judged yes or no.
    """

    model: Annotated[Many[Named], Field(min_length=1)]
    scorers: Many[JudgeScorer] = JUDGED_USUALLY


class Reader(Table):
    """Which models answer from the passages of runs, and how their answers are scored.

    Attributes:
        models: Chat models that answer.
        prompts: "short" (RAGGED's), "short-relevance", "grounded" (cites passages), or a path to one's own; a
            file "NAME.none.txt" beside "NAME.txt" is asked if no passage is sent.
        k: How many of the first passages are sent.
        modes: "top_k"; "gold_only" or "no_gold": those of them that are gold or are not; "gold": all gold
            passages; "none": no passage; "harm_before" or "harm_after": all gold passages, with the first k
            candidates of grade 1 or 2 before or after them; "contradicted", "dated" or "adversarial": all
            gold passages, then k made of the first of them: with other numbers, the same as an old version,
            or an order to answer something else.
        temperatures: Of the models that take one.
        passes: How often every question is asked.
        max_tokens: Of an answer; None = the prompt's own.
        context_tokens: The most tokens of the passages together; what exceeds it is cut.
        scorers: How answers are compared with gold answers; "citation_precision" and "citation_recall" with
            gold passages; "ideal_f1" and "ideal_rougeL" with the same reader's answer from all gold passages
            (its mode "gold"), as the T measure's paper does; "right_refusal" (of questions without an
            answer, 1 = refused), "no_wrong_refusal" (of the others, 1 = answered) and "abstention" (both) by
            whether they refuse.
        judge: Models that score answers, too.
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
    judge: Annotated[AnswerJudge, Under("model")] | None = None
    runs: Many[Named] = ()
    golden_set: Named | None = None
    gold_from: Annotated[int, Field(ge=1, le=5)] = 4

    @model_validator(mode="after")
    def _has_depths(self) -> Self:
        if BY_DEPTH & set(self.modes) and not self.k:
            raise ValueError("Name how many passages are sent (k).")
        judged = self.judge.scorers if self.judge else ()
        if "gold" not in self.modes and IDEAL & {*self.scorers, *judged}:
            raise ValueError('The ideal answer is that of mode "gold": add it to the modes.')
        return self

    def depths(self, mode: Mode) -> tuple[int | None, ...]:
        """Return the k's of a mode, ascending; None = all gold passages."""
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
        return tuple(dict.fromkeys((*self.models, *self.judges)))

    @property
    def judges(self) -> tuple[str, ...]:
        """Every model that judges, each once."""
        return () if self.judge is None else tuple(dict.fromkeys(self.judge.model))
