"""The figures that the CLQ paper prints, as runs of origin "published" (data/published/README.md).

There is one run per distinct stack. Nothing is computed that the paper does not print, with one exception,
labelled "modelled": the reranker's tokens, K × 500, from which the paper derives its costs (§3.2.1, Table 8).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from core.errors import InputError
from core.importers.base import Format, Import, Options, counted, merged
from core.importers.read.member import Archive, Member, head_lines, members_of
from core.importers.read.rows import again, refuse
from core.importers.read.text import shown, whole
from core.importers.report import TAKEN
from core.paths import PUBLISHED
from core.records import Basis, Batch, Collection, Origin, Run, Stack
from core.tables import frame

DEFAULT_PATH = PUBLISHED / "clq_tables.csv"
COLLECTION_ID = "clq-paper"
CITATION = "Dallaire, Practical RAG Evaluation, arXiv:2511.09545v1, 12 November 2025"
_TOKENS_PER_CANDIDATE = 500  # The paper's assumption for costs; it measured 513 to 516 (Table 14)

_COLLECTION = Collection(
    collection_id=COLLECTION_ID,
    name="CLQ paper corpus (published figures)",
    source=CITATION,
    notes=(
        "Paragraphs of scientific papers, 50 real questions (mostly French). Only the printed aggregates are "
        "known: no passages, judgements or per-query results. Costs cover the rerank call only."
    ),
)
_ENVIRONMENT = {
    "reported": "macOS 26.0, 24-core CPU, 192 GB; Elasticsearch 9.1.6; Voyage AI over the network"
}
_PUBLISHED_AT = datetime(2025, 11, 12, tzinfo=UTC)

_STACK = ["embedder", "dim", "mode", "ann", "reranker", "candidates_k"]
_CEILING_OF = ["embedder", "dim", "mode", "candidates_k", "pool_reranker"]
_MEASURES: Mapping[str, tuple[str, str | None, list[str]]] = {
    "ra_nwg": ("RA-nWG", None, _STACK),
    "n_recall_4plus": ("N-Recall4+", None, _STACK),
    "n_recall_5": ("N-Recall5", None, _STACK),
    "proc_ra_nwg": ("PROC[RA-nWG]", None, _CEILING_OF),
    "proc_n_recall_4plus": ("PROC[N-Recall4+]", None, _CEILING_OF),
    "proc_n_recall_5": ("PROC[N-Recall5]", None, _CEILING_OF),
    "embed_ms_p50": ("latency_p50", "embed", ["embedder", "dim", "mode"]),
    "retrieve_ms_p50": ("latency_p50", "retrieve", ["embedder", "dim", "mode", "ann"]),
    "rerank_ms_p50": ("latency_p50", "rerank", _STACK),
}
"""Printed quantity → measure and stage of the aggregate, and the part of a stack that it depends on: it holds
for every run that shares that part."""
_TAKEN_FIGURES = frozenset({*_MEASURES, "avg_quality", "efficiency", "tokens_per_candidate_mean"})
"""Printed quantities that a run has, as figures or in its manifest; the others follow from them."""
_POOL_RERANKER = pl.when(pl.col("mode") != "dense").then(pl.col("reranker")).alias("pool_reranker")
"""The reranker that shaped the pool: none for a dense pool, the stack's own for a hybrid one (§5.1)."""
_DEPTH_NOT_PRINTED = (
    "The paper reranks the fused list and keeps the first 50; how many candidates the reranker was sent is "
    "not printed, so neither its tokens nor its cost are known."
)
_SCENARIOS = ("Baseline", "Cost saver", "Quality push", "Efficient small-dim", "High-K check")

_HEADER = [
    "table", "embedder", "dim", "mode", "ann", "reranker", "candidates_k", "metric", "k", "value",
    "n_queries", "pool", "note",
]  # fmt: skip
_INDEX = "file,table,title,source"


def published_batch(source: Path | Member | None = None) -> Batch:
    """Read the printed tables into runs, aggregates and modelled usage.

    Args:
        source: The table of figures; None = the one that ships with the product.

    Returns:
        One collection, one run per stack, and the frames "aggregates" and "usage".

    Raises:
        InputError: If the file is missing or malformed, or two tables print different values of one quantity.
    """
    figures = read_figures(source)
    stacks = figures.filter(pl.col("embedder").is_not_null() & pl.col("reranker").is_not_null())
    stacks = stacks.select(_STACK).unique(maintain_order=True)
    runs = tuple(_run(row, figures) for row in stacks.iter_rows(named=True))
    identified = stacks.with_columns(pl.Series("run_id", [run.run_id for run in runs]))
    return Batch(
        collections=(_COLLECTION,),
        runs=runs,
        frames={"aggregates": _aggregates(figures, identified), "usage": _usage(identified)},
    )


def read_figures(source: Path | Member | None = None) -> pl.DataFrame:
    """Return the printed figures, one row per table, stack, quantity and cutoff."""
    source = source or DEFAULT_PATH
    integers = ("table", "dim", "candidates_k", "k", "n_queries")
    try:
        figures = pl.read_csv(
            source if isinstance(source, Path) else whole(source), infer_schema=False
        ).with_columns(pl.col(integers).cast(pl.Int64), pl.col("value").cast(pl.Float64))
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"Not readable as published figures: {error}.", where=source.name) from error
    wrong = figures.filter(~pl.col("value").is_finite().fill_null(value=False) | pl.col("metric").is_null())
    if wrong.height:
        raise InputError("A row has no figure, or says not of what.", where=source.name)
    twice = again(figures, "table", *_STACK, "metric", "k")
    refuse(twice, "Table {table} prints {metric} of one stack twice.", source.name)
    return figures


def disagreements(figures: pl.DataFrame) -> pl.DataFrame:
    """Return the quantities that two tables print with different values."""
    groups = [
        rows.group_by(*(_MEASURES[metric][2] if metric in _MEASURES else _STACK), "metric", "k").agg(
            pl.col("table").alias("tables"), pl.col("value").alias("values")
        )
        for (metric,), rows in figures.with_columns(_POOL_RERANKER).group_by("metric", maintain_order=True)
    ]
    return pl.concat(groups, how="diagonal").filter(pl.col("values").list.n_unique() > 1)


def _run(row: Mapping[str, Any], figures: pl.DataFrame) -> Run:
    stack = Stack(_spec(row))
    same = figures.filter(pl.all_horizontal(pl.col(name).eq_missing(row[name]) for name in _STACK))
    return Run(
        run_id="-".join(["clq", *(str(value) for value in row.values() if value not in (None, "none"))]),
        collection_id=COLLECTION_ID,
        stack=stack,
        label=stack.label,
        origin=Origin.PUBLISHED,
        pool=_pool(row),
        environment=_ENVIRONMENT,
        manifest=_manifest(row, same, figures),
        created_at=_PUBLISHED_AT,
    )


def _spec(row: Mapping[str, Any]) -> dict[str, Any]:
    spec = {"embedder": row["embedder"], "dim": row["dim"], "index": row["ann"], "reranker": row["reranker"]}
    if row["candidates_k"] is not None:
        spec["candidates"] = row["candidates_k"]
    if row["mode"] == "dense":
        return {"mode": "dense", **spec}
    fusion = {"method": "rrf", "constant": 60, "depth": 100}
    return {"mode": "hybrid", "sparse": "bm25", "fusion": fusion, **spec}


def _pool(row: Mapping[str, Any]) -> str | None:
    depth = row["candidates_k"]
    if depth is None:
        return None
    if row["mode"] == "dense":
        return f"dense@{depth}"
    return f"rrf100@{depth}" if row["reranker"] == "none" else f"post-rerank@{depth}"


def _manifest(row: Mapping[str, Any], same: pl.DataFrame, figures: pl.DataFrame) -> dict[str, Any]:
    reranked, hybrid = row["reranker"] != "none", row["mode"] != "dense"
    notes = same["note"].drop_nulls().unique().sort().to_list()
    manifest: dict[str, Any] = {
        "source": CITATION,
        "tables": same["table"].unique().sort().to_list(),
        "stages": ["embed", "retrieve", *(["sparse", "fuse"] if hybrid else []), *(["rerank"] * reranked)],
        "cost_scope": "rerank",
        "notes": [note for note in notes if note not in _SCENARIOS],
    }
    if scenario := [note for note in notes if note in _SCENARIOS]:
        manifest["scenario"] = scenario[0]
    printed = same.filter(pl.col("metric").is_in(["avg_quality", "efficiency"]))
    if printed.height:
        manifest["printed"] = dict(printed.select("metric", "value").iter_rows())
    if reranked and hybrid:
        manifest["notes"].append(_DEPTH_NOT_PRINTED)
    elif reranked:
        measured = figures.filter(
            pl.col("metric") == "tokens_per_candidate_mean",
            pl.col("reranker") == row["reranker"],
            pl.col("candidates_k") == row["candidates_k"],
        )["value"]
        manifest["tokens_per_candidate"] = {
            "assumed": _TOKENS_PER_CANDIDATE,
            "measured": measured[0] if len(measured) else None,
        }
    return manifest


def _aggregates(figures: pl.DataFrame, stacks: pl.DataFrame) -> pl.DataFrame:
    if (conflicts := disagreements(figures)).height:
        first = conflicts.row(0, named=True)
        raise InputError(
            f"Tables {first['tables']} print {first['values']} for {first['metric']} of {first['embedder']}.",
            do="Correct the figures.",
        )
    figures, stacks = figures.with_columns(_POOL_RERANKER), stacks.with_columns(_POOL_RERANKER)
    of_figure = (
        pl.col("value").first(),
        pl.col("n_queries").min().alias("n"),
        pl.col("table").unique().sort(),
    )
    parts = []
    for metric, (measure, stage, on) in _MEASURES.items():
        printed = figures.filter(pl.col("metric") == metric).group_by(*on, "k").agg(of_figure)
        labels = {"measure": pl.lit(measure), "stage": pl.lit(stage, pl.String)}
        parts.append(stacks.join(printed, on=on, nulls_equal=True).with_columns(**labels))
    several = pl.when(pl.col("table").list.len() > 1).then(pl.lit("s")).otherwise(pl.lit(""))
    tables = pl.col("table").cast(pl.List(pl.String)).list.join(", ")
    together = pl.concat(parts).with_columns(source=pl.format("CLQ paper, Table{} {}", several, tables))
    columns = ["run_id", "measure", "k", "stage", "value", "n", "source"]
    return frame("aggregates", together.select(columns).sort("run_id", "measure", "stage", "k").to_dict())


def _usage(stacks: pl.DataFrame) -> pl.DataFrame:
    # What a hybrid stack sent to its reranker is not printed: no row, so its cost is unknown
    dense = (pl.col("mode") == "dense") & (pl.col("reranker") != "none")
    rows = stacks.filter(dense).select(
        "run_id",
        pl.lit("rerank").alias("stage"),
        pl.col("reranker").alias("item"),
        pl.lit("input_tokens").alias("unit"),
        (pl.col("candidates_k") * _TOKENS_PER_CANDIDATE).alias("amount"),
        pl.lit(Basis.MODELLED.value).alias("basis"),
    )
    return frame("usage", rows.to_dict())


class PublishedTables(Format):
    """The figures of the CLQ paper, one run per stack."""

    name, title = "published", "Published figures (data/published)"
    in_ranges = True
    takes = {"usage": "the reranker's tokens, modelled", "aggregates": "every printed figure of a stack"}
    recognised = "the header of clq_tables.csv; the other tables are named in index.csv beside it"
    traps = ("Tables without stacks are shown on the Data page and left out here.",)
    mixed = True
    known = {
        "": "a table without stacks: the Data page shows it",
        "figures": dict.fromkeys(_HEADER, TAKEN),
    }

    @staticmethod
    def kind(member: Member) -> str | None:
        return "figures" if head_lines(member, 1) == [",".join(_HEADER)] else None

    def mine(self, probe: Archive) -> tuple[Member, ...]:
        """Return the figures, the list of tables, and the tables that it names."""
        lists = [member for member in probe.members if head_lines(member, 1) == [_INDEX]]
        named = {line.split(",")[0] for member in lists for line in head_lines(member)[1:]}
        return tuple(
            member
            for member in probe.members
            if self.kind(member) or member in lists or member.relative.rsplit("/", 1)[-1] in named
        )

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        """Read the figures as shipped; none of the options applies."""
        return merged(_figures(member, options) for member in members_of(archives) if self.kind(member))


def _figures(member: Member, options: Options) -> Import:
    batch = published_batch(member)
    others = read_figures(member).filter(~pl.col("metric").is_in(_TAKEN_FIGURES)).group_by("metric").len()
    left = {
        f"figures of `{shown(metric)}`: not stored": count
        for metric, count in others.sort("metric").iter_rows()
    }
    fresh = [
        collection
        for collection in batch.collections
        if collection.collection_id not in options.known_collections
    ]
    frames = {table: rows for table, rows in batch.frames.items() if rows.lazy().collect().height}
    imported = Import.of(batch)
    return replace(imported, collections=tuple(fresh), frames=frames, left_out=counted(left, member.name))
