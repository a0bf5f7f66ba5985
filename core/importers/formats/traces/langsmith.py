"""Runs of LangSmith: exported as JSON, JSON lines, CSV or Parquet, one row per step of a trace."""

from __future__ import annotations

from collections.abc import Iterator

from core.errors import InputError
from core.importers.account import TAKEN, UNKNOWN
from core.importers.formats.traces import TraceFormat, spans
from core.importers.read.jsons import Json

_KINDS: dict[str, spans.Kind] = {
    "retriever": "retriever",
    "llm": "model",
    "chat_model": "model",
    "embedding": "embedding",
}
_ALSO = frozenset({"trace_id", "parent_run_id", "dotted_order", "session_id", "start_time"})
_KEYS = (
    "id", "parent_run_id", "trace_id", "dotted_order", "run_type", "name", "inputs", "outputs", "extra",
    "start_time", "end_time", "first_token_time", "status", "error", "prompt_tokens", "completion_tokens",
    "session_name", "project_name", "session_id", "feedback_stats", "child_runs",
)  # fmt: skip
_OLD_UNITS = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"}
_MOST_SPANS = 5_000_000


class LangSmith(TraceFormat):
    """Exported runs with those of retrievers among them."""

    name, title = "langsmith", "LangSmith runs (JSON, CSV, Parquet)"
    takes = {**TraceFormat.takes, "answer_scores": "", "signals": "feedback on a trace"}
    recognised = "objects or rows with run_type, inputs and trace_id or parent_run_id"
    source = "LangSmith runs"
    keys = {
        **dict.fromkeys(_KEYS, TAKEN), "extra.*": UNKNOWN, "extra.metadata": TAKEN, "extra.model": TAKEN,
        "extra.model_name": TAKEN,
    }  # fmt: skip

    def is_mine(self, paths: frozenset[str]) -> bool:
        return {"run_type", "inputs"} <= paths and bool(_ALSO & paths)

    def spans(self, row: Json, where: str) -> Iterator[spans.Span]:
        """A run and those within it."""
        waiting: list[tuple[Json, str | None, str | None]] = [(row, None, None)]
        for count, (run, parent, trace) in enumerate(waiting):  # grows while it is read
            if count > _MOST_SPANS:
                raise InputError(f"The run holds more than {_MOST_SPANS:,} others.", where=where)
            span = _span(run, parent, trace, where)
            yield span
            children = run.get("child_runs")
            if isinstance(children, list):
                waiting += [(child, span.id, span.trace) for child in children if isinstance(child, dict)]


def _span(run: Json, parent: str | None, trace: str | None, where: str) -> spans.Span:
    own = spans.name_of(run.get("id"))
    if own is None:
        raise InputError("The run has no id.", where=where)
    kind = _KINDS.get(str(run.get("run_type")).lower(), "other")
    if kind == "other" and "rerank" in str(run.get("name")).lower():
        kind = "reranker"
    outputs = run.get("outputs")
    extra = run.get("extra")
    about = spans.first(extra, "metadata")
    settings = about if isinstance(about, dict) else {}
    status = str(run.get("status") or "").lower()
    stats = run.get("feedback_stats")
    feedback = stats.items() if isinstance(stats, dict) else ()
    averages = {str(name): spans.number_of(spans.first(stat, "avg")) for name, stat in feedback}
    return spans.Span(
        id=own,
        parent=spans.name_of(run.get("parent_run_id")) or parent or _parent(run),
        trace=spans.name_of(run.get("trace_id")) or trace or own,
        kind=kind,
        where=where,
        project=spans.name_of(spans.first(run, "session_name", "project_name", "session_id")) or "",
        start=spans.instant(run.get("start_time")),
        end=spans.instant(run.get("end_time")),
        first_token=spans.instant(run.get("first_token_time")),
        question=spans.question_of(run.get("inputs")),
        answer=spans.answer_of(outputs),
        documents=spans.documents_of(outputs) if kind in ("retriever", "reranker") else None,
        tokens=_tokens(run) if kind == "model" else {},
        model=spans.name_of(spans.first(settings, "ls_model_name"))
        or spans.name_of(spans.first(extra, "model", "model_name")),
        failed=bool(run.get("error")) or status == "error",
        settings={str(name).removeprefix("ls_"): value for name, value in settings.items()}
        if kind == "retriever"
        else {},
        scores={name: value for name, value in averages.items() if value is not None},
    )


def _parent(run: Json) -> str | None:
    """The run above, from the order of runs (``<time>Z<id>.<time>Z<id>``), where nothing else names it."""
    order = run.get("dotted_order")
    parts = order.split(".") if isinstance(order, str) else []
    return parts[-2].rpartition("Z")[2] or None if len(parts) > 1 else None


def _tokens(run: Json) -> dict[str, float]:
    """Tokens of a call; what its model said of them where the run has no counts (before it is sent)."""
    outputs = run.get("outputs")
    within = (
        spans.first(spans.first(run.get("extra"), "metadata"), "usage_metadata"),
        spans.first(outputs, "usage_metadata"),
        spans.first(spans.first(outputs, "llm_output"), "token_usage", "usage"),
    )
    usage = next((counts for counts in within if isinstance(counts, dict)), {})
    return spans.tokens(
        {"input_tokens": run.get("prompt_tokens"), "output_tokens": run.get("completion_tokens")},
        {unit: spans.first(usage, unit, old) for unit, old in _OLD_UNITS.items()},
    )
