"""Traces of answered questions as queries, rankings, timings, usage and answers, with one run per project.

A tool that records traces is described by a table of paths (`tools`); here its rows become spans.
"""

import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from core.errors import InputError
from core.importers.base import Format, Import, Options
from core.importers.formats.traces.questions import imported
from core.importers.formats.traces.rows import WRAPPERS, entries, flattened, key_paths
from core.importers.formats.traces.spans import KINDS, READERS, SpanKind, TraceSpan, amount, name_of
from core.importers.read.jsons import Json
from core.importers.read.member import Archive, Member, members_of
from core.importers.read.paths import spellings, value, values
from core.importers.report import TAKEN, ReportParts

_UNITS = ("input_tokens", "output_tokens")
_MOST_SPANS = 5_000_000


class TraceFormat(Format):
    """A tool that records traces: every exported row is a span, or holds several."""

    takes = {
        **dict.fromkeys(("queries", "passages"), ""),
        "rankings": "documents of the reranker of each trace, else of its retriever",
        "timings": "retrieve, rerank and generate from start and end of their steps",
        "usage": "input (prompt) and output (completion) tokens of each model",
        "signals": "when each trace began (asked_at, seconds since 1970)",
        "answers": "",
    }
    units = "start and end to milliseconds"
    traps: tuple[str, ...] = (
        "Traces that ended with an error are left out and counted.",
        "Where several retrievers ran in a trace, none of their lists is the ranking.",
        "Token counts that are 0 throughout mean that nobody counted: they are missing.",
    )
    names_collection = 1
    source: str
    step: str = "span"  # the tool's name for a row
    no_id: str = "The span has no id, or that of its trace is missing."
    # field of a span, or unit of its tokens → paths to it (`read.paths`); ways of both units go together
    paths: Mapping[str, str]
    of_reranker: Mapping[str, str] = {}  # paths that differ if the span is a reranker
    of_trace: Mapping[str, str] = {}  # the keys for a row that is a whole trace, which has no "trace"
    kind_by_name: tuple[SpanKind, str] = ("other", "")  # kind of a span whose name matches, if none is known
    children: str = ""  # key of the rows within a row
    alone: bool = False  # whether a row without a trace id is a trace by itself
    flat: str = ""  # prefix of attributes whose dotted and nested keys are equivalent
    within: ReportParts = {}  # parts of a file below the first keys of the paths

    @abstractmethod
    def is_mine(self, keys: frozenset[str]) -> bool:
        """Return whether columns or keys (nested ones joined by dots) are those of this tool."""

    def settings(self, row: Json) -> Json:
        """Return the retriever's configuration in a row."""
        return {"retriever": name_of(value(row, "name")) or ""}

    def kind(self, member: Member) -> str | None:
        return "spans" if self.is_mine(key_paths(member)) else None

    @cached_property
    def keys(self) -> ReportParts:
        """The parts of a row that the paths lead to."""
        paths = [*self.paths.values(), *self.of_reranker.values(), *self.of_trace.values(), "name"]
        ways = [way.partition("=")[0] for path in paths for way in path.split("|")]
        if self.flat:
            keys = {**dict.fromkeys(ways, TAKEN), **self.within}
            return keys | {f"{self.flat}{key}": why for key, why in keys.items() if "." in key}
        names = [name for way in ways for name in way.partition(".")[0].split("/")]
        keys = {form: TAKEN for name in names for form in spellings(name)}
        inner = {f"{self.children}.{key}": TAKEN for key in keys} if self.of_trace else {}
        return {**keys, **inner, **({self.children: TAKEN} if self.children else {}), **self.within}

    def parts(self, member: Member, options: Options) -> ReportParts:  # noqa: ARG002
        """Return the use of each key, also below each key that may wrap the rows."""
        places = ("", *(f"{wrapper}." for wrapper in WRAPPERS))
        return {f"{place}{name}": why for place in places for name, why in self.keys.items()}

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        """Read all spans, including nested ones; a run is made of each project's traces."""
        members = members_of(archives)
        rows = (entry for member in members for entry in entries(member))
        steps = [span for where, row in rows for span in self.spans(row, where)]
        return imported(steps, members, options, importer=self.name, source=self.source)

    def spans(self, row: Json, where: str) -> Iterator[TraceSpan]:
        """Yield the span of a row and the spans nested in it."""
        waiting: list[tuple[Json, TraceSpan | None]] = [(row, None)]
        for count, (step, above) in enumerate(waiting):  # grows while it is read
            if count > _MOST_SPANS:
                raise InputError(f"The {self.step} holds more than {_MOST_SPANS:,} others.", where=where)
            span = self._span(flattened(step, self.flat, where) if self.flat else step, above, where)
            yield span
            children = step.get(self.children)
            if isinstance(children, list):
                waiting += [(child, span) for child in children if isinstance(child, dict)]

    def _span(self, row: Json, above: TraceSpan | None, where: str) -> TraceSpan:
        whole = bool(self.of_trace) and above is None and value(row, self.paths["trace"]) is None
        kind = "other" if whole else self._kind(row)
        paths = self.of_trace if whole else {**self.paths, **(self.of_reranker if kind == "reranker" else {})}
        names = READERS if kind in ("retriever", "reranker") else READERS.keys() - {"documents"}
        step = {name: _read(row, paths[name], name) for name in names if name in paths}
        own, order = step["id"], step.pop("order", None)
        trace = step.get("trace") or (above.trace if above else own if whole or self.alone else None)
        if own is None or trace is None:
            raise InputError("The trace has no id." if whole else self.no_id, where=where)
        if whole:
            step |= {"id": f"trace {own}", "parent": None}
        else:
            outer = f"trace {trace}" if self.of_trace else above.id if above else order
            step["parent"] = step.get("parent") or outer
        tokens = _tokens(row, paths) if kind == "model" else {}
        settings = self.settings(row) if kind == "retriever" else {}
        return TraceSpan(
            **step | {"trace": trace, "kind": kind}, where=where, tokens=tokens, settings=settings
        )

    def _kind(self, row: Json) -> SpanKind:
        kind = KINDS.get(str(_read(row, self.paths["kind"], "kind")).upper(), "other")
        named, pattern = self.kind_by_name
        if kind != "other" or not pattern or not re.search(pattern, str(value(row, "name")), re.IGNORECASE):
            return kind
        # A tool may be named after a search and return something else.
        listed = named != "retriever" or _read(row, self.paths["documents"], "documents") is not None
        return named if listed else kind


def _read(row: Json, path: str, name: str) -> Any:  # noqa: ANN401
    """Return a field of a span, from the first of its paths with a readable value, or None."""
    readings = map(READERS[name], values(row, path))
    return next((reading for reading in readings if reading is not None), None)


def _tokens(row: Json, paths: Mapping[str, str]) -> dict[str, float]:
    """Return tokens by unit, from the first place with any; all zeros mean that they were not counted."""
    for ways in zip(*(paths[unit].split("|") for unit in _UNITS), strict=True):
        counts = [amount(value(row, way)) for way in ways]
        if any(counts):
            pairs = zip(_UNITS, counts, strict=True)
            return {unit: count for unit, count in pairs if count is not None}
    return {}
