"""What the gate reads of a decision record, and which question it asks again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, PrivateAttr, ValidationError, model_validator

from core.analysis.workspace.noise import OFF
from core.analysis.workspace.query_sets import LeastJudged
from core.analysis.workspace.scope import AUTO, Answering, LatencyScope, Per, Percentile
from core.axes import AxisStep
from core.decide.axes import BESIDE, MOVING
from core.decide.rules import Rule
from core.errors import InputError
from core.importers.read.jsons import parsed
from core.importers.read.text import shown
from core.pipeline.sweep.problems import problems
from core.records import JsonMap
from core.report.data import FORMAT, VERSION
from core.report.gate_results import Given
from core.stats.latency import Generation

_AGAIN = "Write the record again, as JSON."

Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Again(BaseModel):
    """The question to ask again; see `core.report.words.question`."""

    collection: str
    golden_set: str | None
    run: list[str]
    measure: str
    sla_ms: Amount | None
    on: Percentile
    latency: LatencyScope
    budget: Amount | None
    min_quality: Amount | None
    beside: dict[str, Amount | AxisStep | None] = {}  # the limits on numbers other than quality
    rule: Rule
    judged: LeastJudged
    jitter_ms: Amount | None
    indifference: Amount | None = None
    take: str | None = None
    incumbent: str | None = None
    move: list[str] = []
    prices: str
    price: list[str] = []
    seed: Annotated[int, Field(ge=0)]
    every_golden_set: bool
    cluster_by: str = AUTO
    judge_noise: str = OFF
    reader: str = Answering().reader
    scorer: str = Answering().scorer
    cost_per: Per = "query"
    correct_from: Annotated[float, Field(gt=0, le=1)] = Answering().least
    together: bool
    generation: Generation | None

    @model_validator(mode="before")
    @classmethod
    def _gathered(cls, data: Any) -> Any:  # noqa: ANN401 - of a file
        """Gather the limits on numbers other than quality, each of which an older record may lack."""
        if not isinstance(data, dict):
            return data
        return {
            **data,
            "beside": {axis.limit: data[axis.limit] for axis in (*BESIDE, *MOVING) if axis.limit in data},
        }


class _Row(BaseModel):
    run_id: str
    stack: str


class _Made(BaseModel):
    stack_id: str
    spec: JsonMap = {}


class _Taken(BaseModel):
    given_up: float  # quality, minus the rule's choice's


class _Form(BaseModel):
    frontier: Literal["usual", "weak"]


class Recorded(BaseModel):
    """The parts of a decision record that the gate needs."""

    format: Literal["clq-explorer/decision-record"]
    version: Annotated[int, Field(le=VERSION)]
    chosen: _Row  # the chosen stack, by its run and name
    stack: _Made  # its components
    frontier: list[_Row]  # the stacks not dominated then
    asked: _Form  # the form of the frontier
    question: Again  # the question to ask again
    command: str | None  # the command line that decides the same; None if there is none
    decided_by: int = 1  # version of the rule
    taken: _Taken | None = None  # the stack that a person took, and the quality given up
    revision: int | None = None  # revision of the store that it was made from
    _data: dict[str, Any] = PrivateAttr(default_factory=dict)
    _given: frozenset[str] = PrivateAttr(default=frozenset())

    @property
    def given(self) -> frozenset[str]:
        """The ids of runs that a gate was given: among the recorded stack's runs these count first."""
        return self._given

    def beside_results(self, given: Given | None) -> Recorded:
        """Return the record together with the runs of the results that a gate was given."""
        self._given = frozenset() if given is None else given.runs
        return self

    def in_workspace(self, name: str) -> None:
        """Refuse to judge the record in a workspace that it is not of.

        Raises:
            InputError: If it is of another one.
        """
        of = self.question.collection
        if name != of:
            raise InputError(
                f"The record is of workspace {shown(of)}, not of {shown(name)}.",
                do=f"Judge it in {shown(of)}, or record a decision of {shown(name)}.",
            )

    @property
    def compared(self) -> frozenset[str]:
        """The ids of the runs that it compared."""
        return frozenset(str(row.get("run_id")) for row in self.data.get("stacks", ()))

    def excluded(self, run_id: str) -> bool:
        """Return whether a stack was out of the limits already."""
        return any(row.get("run_id") == run_id and row.get("reason") for row in self.data.get("stacks", ()))

    @property
    def others(self) -> frozenset[str]:
        """The names of the stacks that it compared with the chosen one."""
        return frozenset(str(row.get("stack")) for row in self.data.get("stacks", ())) - {self.chosen.stack}

    @property
    def accepted(self) -> float:
        """The quality given up by hand, 0 or more."""
        return 0.0 if self.taken is None else max(0.0, self.taken.given_up)

    @property
    def data(self) -> Mapping[str, Any]:
        """The whole record."""
        return self._data


def recorded(data: object, name: str) -> Recorded:
    """Return the part of a record that the gate needs.

    Raises:
        InputError: If it isn't a record, has another version, or chose nothing.
    """
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InputError("This is not a decision record.", where=name, do=_AGAIN)
    if "chosen" in data and data["chosen"] is None:
        raise InputError(
            "This record chose no stack, so there is nothing to hold.", where=name, do="Loosen its limits."
        )
    try:
        was = Recorded.model_validate(data)
    except ValidationError as error:
        _, problem = next(iter(problems(error, Recorded, data)))
        raise InputError(f"{problem.where}: {problem.found}", where=name, do=_AGAIN) from None
    was._data = data
    return was


def record_of(path: Path) -> Recorded:
    """Read a record from its file.

    Raises:
        InputError: If it cannot be read, or like `recorded`.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"The record cannot be read: {error.strerror}.",
            where=shown(path, 200),
            do="Give the JSON that `record` wrote.",
        ) from None
    return recorded(parsed(data, path.name), path.name)
