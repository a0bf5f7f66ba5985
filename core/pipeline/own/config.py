"""Custom pipelines in a specification: location, parameters, version, price."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from core.providers.config import origin
from core.records import JsonMap

MatchBy = Literal["ids", "places", "headings"]
"""How a passage may be identified: by its id or whole text; also by place or words; also by its heading."""
OWN = "own"
"""The mode of stacks that are custom pipelines, and the kind of their step."""
MAX_K = 10_000
_CALL = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*(\(\))?")
_SECRET = re.compile(r"(?i)authorization|api[-_]?key|token|secret|cookie|password")

Positive = Annotated[int, Field(ge=1)]
Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Seconds = Annotated[float, Field(gt=0, le=3600)]
Scalar = str | int | float | bool


def _as_path(value: object) -> object:
    return Path(value) if isinstance(value, str) and value else value


def _several(value: object) -> object:
    """Return the values of every parameter as a list, wrapping single values."""
    if not isinstance(value, Mapping):
        return value
    return {
        key: tuple(values) if isinstance(values, list | tuple) else (values,) for key, values in value.items()
    }


AsPath = Annotated[Path, BeforeValidator(_as_path, json_schema_input_type=str)]
"""A path as text; relative to the folder of the specification until `load` has made it absolute."""
_Params = Annotated[
    dict[str, tuple[Scalar, ...]],
    BeforeValidator(_several, json_schema_input_type=dict[str, Scalar | list[Scalar]]),
]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Request(_Table):
    """Request to an endpoint; "{{ query }}", "{{ k }}" and names of parameters are filled in.

    Attributes:
        method: "GET" sends `query` in the address, "POST" sends `json` as well.
        path: Added to the address unless it already ends with it.
        query: The address's query string, key → value.
        json_: The body, under the key "json".
        headers: Further headers; an API key goes into key_env, not here.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)

    method: Literal["GET", "POST"] = "POST"
    path: str = ""
    query: dict[str, Scalar] = Field(default_factory=dict)
    json_: Any = Field(default=None, alias="json")
    headers: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _without_keys(self) -> Self:
        for name in (*self.headers, *self.query):
            if _SECRET.search(name):
                raise ValueError(f"{name} may hold a key: name the variable that holds it as key_env.")
        return self


class Response(_Table):
    """Paths (JMESPath) into a response: id to heading into each passage, the others into the whole.

    Attributes:
        hits: The passages, best first.
        id: A passage's id; empty = the passage itself is its id.
        score: A passage's score.
        text: A passage's text, if ids are not the collection's.
        source: A passage's document.
        start, end: The characters [start, end) of that document in a passage.
        heading: The heading above a passage.
        took_ms: Milliseconds that the server says it took.
        pool: The passages before the last order.
        answer: A generated answer.
        usd: Dollars that the query cost.
    """

    hits: str = "@"
    id: str = "id"
    score: str = ""
    text: str = ""
    source: str = ""
    start: str = ""
    end: str = ""
    heading: str = ""
    took_ms: str = ""
    pool: str = ""
    answer: str = ""
    usd: str = ""


class OwnStack(_Table):
    """A custom pipeline: a Python function or an HTTP endpoint.

    Attributes:
        name: Display name.
        call: MODULE:FUNCTION, MODULE:CLASS.METHOD or an object with retrieve, invoke, run or search; with
            "()" at the end it is called once with the parameters and returns the object to query.
        python: The interpreter that has its packages; None = the one that runs this.
        path: The folder in which to look for its module; None = the specification's folder.
        input: Input of a Haystack pipeline that takes the query, COMPONENT.NAME.
        output: Component of a Haystack pipeline whose documents count.
        url: Address of an endpoint.
        preset: Engine behind it, whose request and response are known; see data/endpoints.
        request: The request sent, if not the preset's.
        response: Paths into its response, if not the preset's.
        key_env: Variable that holds its key, sent as a bearer token; CLQ_ALLOW_KEYS has to allow it.
        key_header: Header that takes the key as it is, instead.
        params: Keyword arguments; several values make an axis.
        method: How params are combined: "grid"; "one-factor" = all first values, and each other value alone;
            "search" = the stacks of the grid that a search begins.
        match: How its passages are identified: "ids" = id or whole text; "places" = also place or words;
            "headings" = also source and heading.
        candidates: K, the number of passages requested.
        version: Identifies this state of the pipeline.
        version_cmd: A command that prints it, run in `path`.
        timeout_s: Seconds after which a query is given up.
        start_s: Most seconds for loading it.
        retries: How often a query is resent to a busy or failing endpoint.
        restarts: How often a process that ended is restarted.
        memory_mb: The most memory that its process may take; None = no limit.
        answer_mb: The most that one answer may take.
        usd_per_query: What a query costs.
        usd_per_hour: What the machine that answers costs, busy with one query at a time.
    """

    name: Annotated[str, Field(min_length=1, max_length=200)]
    call: str | None = None
    python: AsPath | None = None
    path: AsPath | None = None
    input: str = ""
    output: str = ""
    url: str | None = None
    preset: str | None = None
    request: Request | None = None
    response: Response | None = None
    key_env: str | None = None
    key_header: str = ""
    params: _Params = Field(default_factory=dict)
    method: Literal["grid", "one-factor", "search"] = "grid"
    match: MatchBy = "places"
    candidates: Annotated[int, Field(ge=1, le=MAX_K)] = 50
    version: Annotated[str, Field(max_length=200)] = ""
    version_cmd: str = ""
    timeout_s: Seconds = 60.0
    start_s: Seconds = 300.0
    retries: Annotated[int, Field(ge=0, le=10)] = 0
    restarts: Annotated[int, Field(ge=0, le=100)] = 10
    memory_mb: Positive | None = None
    answer_mb: Annotated[float, Field(gt=0, le=100)] = 8.0
    usd_per_query: Dollars | None = None
    usd_per_hour: Dollars | None = None

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.call is None) == (self.url is None):
            raise ValueError("Give one of call and url.")
        if self.call is not None and (not _CALL.fullmatch(self.call) or ".py:" in self.call):
            raise ValueError("call is MODULE:NAME, such as shop.search:retrieve, without .py.")
        if self.url is not None and origin(self.url) is None:
            raise ValueError("url is an address such as http://localhost:8000/search, without a user name.")
        if self.url is not None and _SECRET.search(self.url.partition("?")[2]):
            raise ValueError("url may hold a key: name the variable that holds it as key_env.")
        if self.usd_per_query is not None and self.usd_per_hour is not None:
            raise ValueError("Give one of usd_per_query and usd_per_hour.")
        return self

    @property
    def place(self) -> str:
        """Return the called function, or the address without its query string."""
        return self.call or (self.url or "").partition("?")[0]

    def points(self) -> Iterator[dict[str, Scalar]]:
        """Yield every combination of parameters to run, in order."""
        values = self.params
        if self.method != "one-factor":
            for point in product(*values.values()):
                yield dict(zip(values, point, strict=True))
            return
        first = {key: levels[0] for key, levels in values.items() if levels}
        yield first
        for key, levels in values.items():
            for value in levels[1:]:
                yield {**first, key: value}

    def spec(self, params: Mapping[str, Scalar]) -> JsonMap:
        """Return the specification of one of its stacks: all that distinguishes it, without local paths."""
        where = {"call": self.call} if self.call else {"url": self.place}
        spec: dict[str, Any] = {"mode": OWN, "name": self.name, **where}
        if params:
            spec["params"] = dict(params)
        if self.version:
            spec["version"] = self.version
        return {**spec, "candidates": self.candidates}

    def identity(self) -> JsonMap:
        """Return all that could change its answers or how it is asked, as JSON, except its parameters."""
        beside = {"params", "method", "name", "usd_per_query", "usd_per_hour", "candidates", "version_cmd"}
        return self.model_dump(mode="json", exclude=beside, exclude_defaults=True, by_alias=True)


def own_of(stack_spec: JsonMap) -> bool:
    """Return whether a stack's specification is a custom pipeline's."""
    return stack_spec.get("mode") == OWN
