"""LangSmith, Langfuse and Phoenix / OpenInference: the paths at which each stores the fields of a span.

Whatever a file has beyond these paths is left out and counted: the report follows from these tables.
"""

from core.importers.formats.traces import TraceFormat
from core.importers.read.jsons import Json
from core.importers.read.paths import value
from core.importers.report import TAKEN, UNKNOWN

_ANY_RUN = frozenset({"trace_id", "parent_run_id", "dotted_order", "session_id", "start_time"})


class LangSmith(TraceFormat):
    """Runs of LangSmith, with one row per step of a trace, or with steps nested in it."""

    name, title = "langsmith", "LangSmith runs (JSON, CSV, Parquet)"
    takes = {**TraceFormat.takes, "answer_scores": "", "signals": "feedback on a trace"}
    recognised = "objects or rows with run_type, inputs and trace_id or parent_run_id"
    source = "LangSmith runs"
    step, no_id = "run", "The run has no id."
    children, alone = "child_runs", True
    paths = {
        "id": "id", "parent": "parent_run_id", "order": "dotted_order", "trace": "trace_id",
        "project": "session_name/project_name/session_id", "kind": "run_type",
        "start": "start_time", "end": "end_time", "first_token": "first_token_time",
        "question": "inputs", "answer": "outputs", "documents": "outputs",
        "model": "extra.metadata.ls_model_name|extra.model/model_name",
        "failed": "error|status=error", "scores": "feedback_stats",
        # last the model's own statement, if the run has no counts (before it is sent)
        "input_tokens": "prompt_tokens|extra.metadata.usage_metadata.input_tokens/prompt_tokens"
        "|outputs.usage_metadata.input_tokens/prompt_tokens"
        "|outputs.llm_output.token_usage/usage.input_tokens/prompt_tokens",
        "output_tokens": "completion_tokens|extra.metadata.usage_metadata.output_tokens/completion_tokens"
        "|outputs.usage_metadata.output_tokens/completion_tokens"
        "|outputs.llm_output.token_usage/usage.output_tokens/completion_tokens",
    }  # fmt: skip
    kind_by_name = ("reranker", "rerank")
    within = {"extra.*": UNKNOWN, "extra.metadata": TAKEN, "extra.model": TAKEN, "extra.model_name": TAKEN}

    def is_mine(self, keys: frozenset[str]) -> bool:
        return {"run_type", "inputs"} <= keys and bool(_ANY_RUN & keys)

    def settings(self, row: Json) -> Json:
        stated = value(row, "extra.metadata")
        pairs = stated.items() if isinstance(stated, dict) else ()
        return {str(key).removeprefix("ls_"): setting for key, setting in pairs}


class OpenSpans(TraceFormat):
    """OpenInference spans, in any container."""

    source = "OpenInference spans"
    flat = "attributes."
    paths = {
        "id": "context.span_id|span_id", "parent": "parent_id|parent_span_id",
        "trace": "context.trace_id|trace_id", "project": "project_name",
        "kind": "openinference.span.kind|span_kind", "start": "start_time", "end": "end_time",
        "question": "input.value", "answer": "output.value", "documents": "retrieval.documents|output",
        "model": "llm.model_name|reranker.model_name|embedding.model_name",
        "failed": "status_code=ERROR|status.code=ERROR",
        "input_tokens": "llm.token_count.prompt", "output_tokens": "llm.token_count.completion",
    }  # fmt: skip
    of_reranker = {"question": "reranker.query|input.value", "documents": "reranker.output_documents|output"}
    within = {"retrieval.documents.*": TAKEN, "reranker.output_documents.*": TAKEN}

    def is_mine(self, keys: frozenset[str]) -> bool:
        named = any(key.removeprefix(self.flat).startswith("openinference") for key in keys)
        return "context.trace_id" in keys and (named or "span_kind" in keys)


class OpenInference(OpenSpans):
    """Spans as Phoenix exports them: a table of spans, or objects with their attributes."""

    name, title = "openinference", "Phoenix / OpenInference spans (JSON, CSV, Parquet)"
    recognised = "spans with context.trace_id and the kind or attributes of OpenInference"


class Langfuse(TraceFormat):
    """Observations of Langfuse, alone or within their traces, in either spelling."""

    name, title = "langfuse", "Langfuse traces and observations (JSON, CSV, Parquet)"
    takes = {**TraceFormat.takes, "answer_scores": "", "signals": "numeric scores of a trace"}
    recognised = "observations with trace id, type and parent, or traces with their observations"
    traps = (
        *TraceFormat.traps,
        "A span counts as a retriever where its type says so, or its name does and it returned documents.",
    )
    source = "Langfuse traces"
    step, no_id = "observation", "The observation has no id, or that of its trace is missing."
    children = "observations"
    of_trace = {
        "id": "id", "start": "timestamp", "question": "input", "answer": "output", "failed": "level=ERROR",
        "scores": "scores",
    }  # fmt: skip
    paths = {
        "id": "id", "parent": "parentObservationId", "trace": "traceId", "kind": "type",
        "start": "startTime", "end": "endTime", "first_token": "completionStartTime",
        "question": "input", "answer": "output", "documents": "output",
        "model": "providedModelName/model", "failed": "level=ERROR",
        "input_tokens": "usageDetails/usage.input/promptTokens|promptTokens/inputTokens",
        "output_tokens": "usageDetails/usage.output/completionTokens|completionTokens/outputTokens",
    }  # fmt: skip
    kind_by_name = ("retriever", r"retriev|vector_?store|vector_?search|similarity_?search")
    within = {"observations.*": UNKNOWN, "scores.name": TAKEN, "scores.value": TAKEN}

    def is_mine(self, keys: frozenset[str]) -> bool:
        bare = {key.replace("_", "").lower() for key in keys if "." not in key and "[" not in key}
        is_trace = {"timestamp", "input", "output", "id"} <= bare
        return {"traceid", "type", "starttime", "parentobservationid"} <= bare or (
            is_trace and bool({"observations", "sessionid", "bookmarked"} & bare)
        )
