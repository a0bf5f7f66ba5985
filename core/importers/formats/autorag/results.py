"""Results of an AutoRAG module: ranked lists, axes, the measures and times of its summary, answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from core.errors import InputError
from core.importers.base import Import, LeftOut, counted, frames_of
from core.importers.formats.autorag.layout import Module, read_yaml
from core.importers.judgements import VALUE, graded_by
from core.importers.read.jsons import Json
from core.importers.read.member import Member
from core.importers.read.rows import numbers, refuse
from core.importers.read.tabular import Table
from core.importers.read.text import no_column, place, quoted, shown
from core.importers.runs import REPEATED
from core.importers.samples import UNNAMED
from core.records import Basis, Run

_NOT_MEASURES = {"filename", "module_name", "module_params", "execution_time", "is_best"}
_TOKENS = {"average_output_token": "output_tokens", "average_prompt_token": "input_tokens"}

RANKS = ("lexical_retrieval", "semantic_retrieval", "retrieval", "hybrid_retrieval", "passage_augmenter",
         "passage_reranker", "passage_filter")  # fmt: skip
"""Nodes whose modules return rankings."""
_STAGES: Mapping[str, str] = {
    "query_expansion": "rewrite", "lexical_retrieval": "sparse", "semantic_retrieval": "retrieve",
    "hybrid_retrieval": "fuse", "passage_augmenter": "augment", "passage_reranker": "rerank",
    "passage_filter": "cut", "passage_compressor": "compress", "prompt_maker": "prompt",
    "generator": "generate",
}  # fmt: skip
_FUSION = {"rrf": "rrf", "cc": "weighted"}


@dataclass(frozen=True)
class AutoRagLists:
    """Ranked lists of a module."""

    rows: pl.DataFrame  # query_id, rank, passage_id, score
    depth: int | None  # passages in the longest list; None if all are empty
    left_out: tuple[LeftOut, ...] = ()  # what was skipped of them

    def of(self, run_id: str, stage: str) -> pl.DataFrame:
        """Return the lists as rankings of a run."""
        return self.rows.with_columns(run_id=pl.lit(run_id), stage=pl.lit(stage))


def lists(module: Module, ids: pl.Series) -> AutoRagLists:
    """Read a module's ranked lists; a passage that is repeated in a list counts at its first position."""
    table = _joined(module, ids)
    leg = module.node.split("_", maxsplit=1)[0]
    passages = _column(table, ("retrieved_ids", f"retrieved_ids_{leg}"), pl.String)
    if passages is None:
        raise no_column("retrieved_ids", table.rows.columns, table.name)
    scores = _column(table, ("retrieve_scores", f"retrieve_scores_{leg}"), pl.Float64)
    rows = pl.DataFrame({"query_id": ids, "line": table.lines, "passage_id": passages})
    length, exploding = pl.col("passage_id").list.len(), ["passage_id"]
    if scores is not None and scores.null_count() < len(scores):
        rows, exploding = rows.with_columns(scores.alias("score")), ["passage_id", "score"]
        uneven = rows.filter(length != pl.col("score").list.len())
        problem = "The row has another number of scores than of passages."
        refuse(uneven, problem, table.name, "retrieve_scores")
    flat = rows.filter(length > 0).explode(exploding, empty_as_null=True)
    if len(exploding) == 1:
        flat = flat.with_columns(score=pl.lit(None, pl.Float64))
    named = flat.filter(pl.col("passage_id").fill_null("") != "")
    once = named.unique(["query_id", "passage_id"], keep="first", maintain_order=True)
    ranked = once.with_columns(
        rank=pl.int_range(1, pl.len() + 1).over("query_id"),
        score=pl.when(pl.col("score").is_finite()).then("score"),
    )
    left = {
        f"{REPEATED} ({module.node})": named.height - once.height,
        f"places of lists without a passage id ({module.node})": flat.height - named.height,
        f"questions with an empty list ({module.node})": rows.filter(length.fill_null(0) == 0).height,
    }
    deepest = ranked["rank"].max()
    depth = deepest if isinstance(deepest, int) else None
    return AutoRagLists(ranked.drop("line"), depth, counted(left, table.name))


def _joined(module: Module, ids: pl.Series) -> Table:
    table = module.table
    if table is None:
        raise InputError(f"The results {quoted(module.file)} are not there.", where=module.summary)
    if table.rows.height != len(ids):
        raise InputError(
            f"{table.rows.height} rows, but there are {len(ids)} questions: they join by their order.",
            where=table.name,
        )
    return table


def _column(table: Table, names: tuple[str, ...], inner: type[pl.DataType]) -> pl.Series | None:
    name = next((candidate for candidate in names if candidate in table.rows.columns), None)
    if name is None:
        return None
    values = table.rows[name]
    if not isinstance(values.dtype, pl.List | pl.Array):
        raise InputError(f"{name!r} is {values.dtype}, not lists.", where=table.name)
    return values.cast(pl.List(inner))


def measures(module: Module, run: Run, ids: pl.Series, retrieved: AutoRagLists | None) -> Import:
    """Return the measures of a module's summary under their own names, at the requested length."""
    names = [name for name in module.row if name not in _NOT_MEASURES | set(_TOKENS)]
    depth = module.params.get("top_k")
    k = depth if isinstance(depth, int) and depth > 0 else retrieved.depth if retrieved else None
    values = {name: _number(module, name) for name in names}
    rows = [
        {"run_id": run.run_id, "measure": shown(name.removeprefix(f"{module.node}_"), 80), "k": k,
         "value": value, "n": len(ids), "source": "imported"}
        for name, value in values.items()
        if value is not None
    ]  # fmt: skip
    left = {"empty cells of a summary: missing, not 0": len(values) - len(rows)}
    return Import(frames=frames_of(aggregates=rows), left_out=counted(left, module.summary))


def milliseconds(module: Module) -> float | None:
    """Return the mean time per query of a module, converted from seconds, or None if it is not given."""
    seconds = _number(module, "execution_time")
    if seconds is not None and seconds < 0:
        raise InputError("The time is negative.", where=place(module.summary, module.line, "execution_time"))
    return None if seconds is None else seconds * 1000


def _number(module: Module, column: str) -> float | None:
    """Return a finite number from a summary's row, or None if the cell is empty or NaN."""
    text = (module.row.get(column) or "").strip()
    if not text or text.lower() == "nan":
        return None
    cell = pl.DataFrame({column: [text], "line": [module.line]})
    return float(numbers(cell, column, module.summary)[0])


def costs(module: Module, run: Run, before: dict[str, float]) -> Import:
    """Return mean latencies of the stages that a query passes through, and the tokens of a generator.

    Means of stages add up, unlike percentiles: the total sums all stages up to the list of passages.
    """
    own = milliseconds(module)
    times = before | ({stage_of(module): own} if own is not None else {})
    path = [ms for stage, ms in times.items() if stage not in ("prompt", "generate")]
    if path and (own is not None or module.node == "generator"):
        times = times | {"total": sum(path)}
    rows = [
        {"run_id": run.run_id, "measure": "latency_mean", "stage": stage, "value": ms, "source": "imported"}
        for stage, ms in times.items()
    ]
    tokens = _number(module, "average_output_token") if module.node == "generator" else None
    used = {
        "run_id": run.run_id, "stage": "generate", "item": str(run.stack.spec.get("generator", UNNAMED)),
        "unit": "output_tokens", "amount": tokens, "basis": Basis.IMPORTED.value,
    }  # fmt: skip
    return Import(frames=frames_of(aggregates=rows, usage=[used] if tokens is not None else []))


def answers(
    module: Module, run: Run, ids: pl.Series, retrieved: AutoRagLists | None, grade: str | None
) -> Import:
    """Return generated texts as answers, and their measures per question as signals."""
    table = _joined(module, ids)
    if "generated_texts" not in table.rows.columns:
        raise no_column("generated_texts", table.rows.columns, table.name)
    values = table.rows.select(pl.col(pl.Float64, pl.Float32)).with_columns(ids.alias("query_id"))
    long = values.unpivot(index="query_id", variable_name="signal", value_name="value")
    texts, reader = table.rows["generated_texts"].cast(pl.String), run.stack.spec.get("generator")
    written = pl.DataFrame({"query_id": ids, "text": texts}).with_columns(
        reader=pl.lit(reader if isinstance(reader, str) else None, pl.String),
        k=pl.lit(retrieved.depth if retrieved else None, pl.Int32),
    )
    return graded_by(written, long.cast(VALUE), run.run_id, table.name, wanted=grade)


def stage_of(module: Module) -> str:
    """Return the name of the stage that a module's time belongs to."""
    if module.node == "retrieval":
        return {"sparse": "sparse", "hybrid": "fuse"}.get(_searches(module), "retrieve")
    return _STAGES.get(module.node, shown(module.node, 40))


def embedders(files: Sequence[Member]) -> dict[str, str]:
    """Map names of vector stores to the embedding model that fills each, from configurations."""
    models: dict[str, str] = {}
    for member in files:
        value = read_yaml(member)
        stores = value.get("vectordb") if isinstance(value, dict) else None
        for store in stores if isinstance(stores, list) else []:
            if isinstance(store, dict) and "name" in store and isinstance(store.get("embedding_model"), str):
                models[str(store["name"])] = store["embedding_model"]
    return models


def axes(module: Module, before: Json, models: Mapping[str, str], depth: int | None) -> Json:
    """Return the stack after a module is added to what came before it."""
    if _bare(module.name).startswith("pass") or module.node in ("passage_augmenter", "passage_compressor"):
        return before
    model = shown(module.params.get("model") or module.params.get("llm") or module.name)
    if module.node == "query_expansion":
        return {**before, "rewrite": shown(module.name)}
    if module.node == "generator":
        return {**before, "generator": model}
    if module.node == "passage_filter":
        return {**before, "cut": {"method": shown(module.name)}}
    if module.node == "passage_reranker":
        return {**before, "reranker": model, **({"candidates": depth} if depth else {})}
    return _search(module, before, models)


def _search(module: Module, before: Json, models: Mapping[str, str]) -> Json:
    mode, params, added = _searches(module), module.params, Json()
    if mode == "hybrid":
        legs = params.get("target_module_params")
        for leg in legs if isinstance(legs, list) else []:
            added |= {"embedder": _embedder(leg, models)} if "vectordb" in str(leg) else {}
        sparse = "bm25" in str(params.get("target_modules", "")).lower()
        added |= {"sparse": "bm25"} if sparse else {}
        added["fusion"] = _fusion(module)
    elif mode:
        added = {"embedder": _embedder(params, models)} if mode == "dense" else {"sparse": "bm25"}
    return {**before, **added, **({"mode": mode} if mode else {})}


def _embedder(params: object, models: Mapping[str, str]) -> str:
    known = params if isinstance(params, dict) else {}
    store = str(known.get("vectordb", "default"))
    return shown(known.get("embedding_model") or models.get(store) or f"vectordb {store}")


def _searches(module: Module) -> str:
    name = _bare(module.name)
    if name.startswith("hybrid"):
        return "hybrid"
    return "sparse" if name.startswith("bm25") else "dense" if name.startswith("vectordb") else ""


def _fusion(module: Module) -> Json:
    name = _bare(module.name).removeprefix("hybrid")
    fusion: Json = {"method": _FUSION.get(name, name)}
    weight = module.params.get("weight")
    if name == "rrf" and (constant := module.params.get("rrf_k", weight)) is not None:
        fusion["constant"] = constant
    elif weight is not None:
        fusion["weight"] = weight
    if isinstance(depth := module.params.get("top_k"), int):
        fusion["depth"] = depth
    return fusion


def _bare(name: str) -> str:
    return name.lower().replace("_", "")
