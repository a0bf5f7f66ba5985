"""“Measure what you have”: the form for a custom pipeline, its specification, and its outcome."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from core.analysis.workspace.figures.latencies import empty_pipeline
from core.number_format import count, ms
from core.pipeline.own.config import MatchBy
from core.pipeline.own.passages import PlacedBy
from core.pipeline.own.signature import fewer_words
from core.records import JsonMap
from core.toml_text import toml, toml_text

MATCHES: Mapping[MatchBy, str] = {
    "ids": "ids or texts", "places": "ids, texts, places", "headings": "also headings",
}  # fmt: skip
"""How a pipeline's passages may be recognised, in words."""
CLEAR_PARAMS = re.compile(r"\s*([\w.-]+)\s*=\s*(.+)")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SHOWN = 3
_COUNTED = {
    "repeated": "{} stood twice in an answer; the first place counts.",
    "not_a_number": "{} had a score that is not a number; the order is that in which they came.",
    "beside_pool": "{} were returned but are not in the pool that came with them, and were added to it.",
}
WAYS: Mapping[PlacedBy, str] = {
    "id": "id", "source": "path of the document", "text": "text", "span": "place in the document",
    "quote": "quote", "heading": "source and heading",
}  # fmt: skip
"""How a passage was recognised, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnForm:
    """Values of the form for a custom pipeline, as text; empty = not specified."""

    target: str  # MODULE:NAME, or the address of an endpoint
    collection: str  # a stored collection
    golden_set: str = ""  # a stored golden set; "" = that of the collection
    name: str = ""  # display name; "" = the target
    preset: str = ""  # of an endpoint
    python: str = ""  # the interpreter; "" = this one
    path: str = ""  # the folder of the module
    entry: str = ""  # input of a Haystack pipeline
    output: str = ""  # component of a Haystack pipeline
    body: JsonMap | None = None  # the request body of an endpoint, replacing the preset's
    response: Mapping[str, str] = field(default_factory=dict)  # the locations of values in its response
    key_env: str = ""
    params: Mapping[str, Sequence[object]] = field(default_factory=dict)
    match: MatchBy = "places"  # how a passage may be recognised
    candidates: int = 50  # K
    version: str = ""
    version_cmd: str = ""
    timeout_s: float | None = None
    usd_per_query: float | None = None
    usd_per_hour: float | None = None
    limit: int | None = None  # number of questions; None = all
    repeats: int = 3
    incumbent: bool = False  # whether it is the stack that runs today
    warm_up: int = 10  # questions that are asked once before, which also shows whether the order is stable
    budget: float | None = None

    @property
    def is_endpoint(self) -> bool:
        """Whether the target is a URL."""
        return self.target.startswith(("http://", "https://"))

    @property
    def title(self) -> str:
        """Return the pipeline's name."""
        return self.name or self.target.partition("?")[0].rpartition("//")[2]


def specification(form: OwnForm) -> str:
    """Return the form as the text of a specification (TOML)."""
    stack: dict[str, object] = {
        "name": form.title,
        "url" if form.is_endpoint else "call": form.target,
        "preset": form.preset,
        "python": form.python,
        "path": form.path,
        "input": form.entry,
        "output": form.output,
        "request": {"json": form.body} if form.body is not None else None,
        "response": {key: path for key, path in form.response.items() if path} or None,
        "key_env": form.key_env,
        "match": form.match if form.match != "places" else None,
        "candidates": form.candidates,
        "version": form.version,
        "version_cmd": form.version_cmd,
        "timeout_s": form.timeout_s,
        "usd_per_query": form.usd_per_query,
        "usd_per_hour": form.usd_per_hour,
        **{f"params.{_key(name)}": list(values) for name, values in form.params.items()},
    }
    head = {
        "name": f"{form.title} on {form.collection}",
        "collection.stored": form.collection,
        "golden_set.stored": form.golden_set,
        "queries.limit": form.limit,
        "latency.repeats": form.repeats,
        "latency.warm_up": form.warm_up,
        "budget.usd": form.budget,
        "incumbent": form.title if form.incumbent else None,
    }
    return toml_text(("", head), ("[stack]", stack))


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else toml(name)


def read_params(texts: Sequence[str]) -> dict[str, list[object]]:
    """Parse parameters: "alpha=0.3,0.5" → alpha: [0.3, 0.5].

    Raises:
        ValueError: If one has another form; with that text.
    """
    params: dict[str, list[object]] = {}
    for text in texts:
        written = CLEAR_PARAMS.fullmatch(text)
        if written is None:
            raise ValueError(text)
        params[written[1]] = [_value(part.strip()) for part in written[2].split(",")]
    return params


def _value(text: str) -> object:
    """Parse a whole number, a number, true or false, otherwise return the text."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def fault_words(report: JsonMap, asked: int) -> list[str]:
    """Describe in sentences what went wrong in measuring a custom pipeline, or return "" if nothing did.

    Args:
        report: "own" of a run's manifest.
        asked: Number of questions.
    """
    words = []
    if report.get("failed"):
        kinds = Counter(str(fault["kind"]) for fault in report["faults"])
        listed = ", ".join(f"{kind} ({number})" for kind, number in kinds.most_common())
        words.append(
            f"{report['failed']} of {count(asked, 'question')} failed and count as answered with nothing:"
            f" {listed}."
        )
        words += [_fault(fault) for fault in report["faults"][:_SHOWN]]
    if report.get("unmatched"):
        named = ", ".join(map(str, report.get("unmatched_passages", ())[:_SHOWN]))
        words.append(
            f"{count(report['unmatched'], 'passage')} of its answers match nothing in the collection, and are"
            f" left out: {named}…"
        )
    if report.get("headed"):
        words.append(f"Source and heading would tell {report['headed']} of them: --match headings.")
    if report.get("most_returned") is not None:
        words.append(fewer_words(report["most_returned"], report["wanted"], report.get("size")))
    for key, said in _COUNTED.items():
        if report.get(key):
            words.append(said.format(count(report[key], "passage")))
    if report.get("retried"):
        words.append(f"{count(report['retried'], 'request')} were sent again; times are those of the last.")
    if report.get("in_another_order"):
        words.append(
            f"Not deterministic: of {count(report['asked_again'], 'answer')} to questions asked before"
            f" {report['in_another_order']} came in another order; the first order counts."
        )
    return words


def _fault(fault: JsonMap) -> str:
    where = f" ({fault['where']})" if fault.get("where") else ""
    return f"{fault['query_id']}: {fault['kind']}: {fault['text']}{where}"


def _known(report: JsonMap) -> str:
    """Describe how passages were recognised; earlier releases used id and text alone."""
    ways = report.get("known_by") or {"text": report.get("by_text", 0)}
    told = [f"{number:,} by {WAYS[way]}" for way, number in ways.items() if number]
    return f"passages known: {', '.join(told)}" if told else ""


def about_words(report: JsonMap) -> str:
    """Describe in a line how a pipeline was called and started."""
    packages = ", ".join(f"{name} {version}" for name, version in report.get("packages", {}).items())
    parts = [
        f"understood as {' or '.join(report['understood_as'])}" if report.get("understood_as") else "",
        f"Python {report['python']}" if report.get("python") else "",
        packages,
        f"loaded in {ms(1000 * report['start_s'])}" if report.get("start_s") is not None else "",
        _known(report),
        empty_pipeline(report["floor_ms"]) if report.get("floor_ms") is not None else "",
    ]
    return "; ".join(filter(None, parts))
