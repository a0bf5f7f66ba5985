"""What the stages of a rag-gs run hold: lists in their order, and the refined order of the last stage."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from core.errors import InputError
from core.importers.formats.rag_gs.folder import Folder, Stage
from core.importers.kept import kept
from core.importers.read.jsonl import read_lines
from core.importers.read.text import place, quoted, shown

LISTS = {
    "dense": ("rank_dense", "score_cos"),
    "sparse": ("rank_sparse", "score_bm25"),
    "merge": ("rank_rrf", "rrf_score"),
}
_RANKED = pl.Schema(
    {"doc_id": pl.String(), "final_rank": pl.Int64(), "final_score": pl.Float64(), "exposures": pl.Int64(),
     "info": pl.String()}
)  # fmt: skip
"""What s6_ranked says of a passage; `info`, its information, is a number, in other versions a map."""
_MOST_RANKED = 20_000
_SHOWN = 20


def stage_rows(stages: Sequence[Stage], schema: dict[str, pl.DataType]) -> pl.DataFrame:
    """Fields of the lines of files of a stage, with `line`, `query_id` and `file`."""
    made = {**schema, "line": pl.Int64(), "query_id": pl.String(), "file": pl.String()}
    parts = [pl.DataFrame(schema=made)]
    for stage in stages:
        rows = read_lines(stage.piece, schema)
        parts.append(rows.with_columns(query_id=pl.lit(stage.query_id), file=pl.lit(stage.piece.name)))
    return pl.concat(parts)


def identified(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows as they are, refused if one names no passage."""
    nameless = rows.filter(pl.col("doc_id").fill_null("") == "")
    if nameless.height:
        row = nameless.row(0, named=True)
        raise InputError("The line has no doc_id.", where=place(row["file"], row["line"], "doc_id"))
    return rows


def ranked_list(found: Folder, kind: str) -> pl.DataFrame:
    """The list of every question: query_id, rank, passage_id, score; the file's ranks decide the order."""
    rank, score = LISTS[kind]
    rows = identified(
        stage_rows(found.of(kind), {"doc_id": pl.String(), rank: pl.Int64(), score: pl.Float64()})
    )
    unranked = rows.filter(pl.col(rank).is_null())
    if unranked.height:
        row = unranked.row(0, named=True)
        raise InputError(f"The line has no {rank}.", where=place(row["file"], row["line"], rank))
    for key, what in ((["query_id", "doc_id"], "passage"), (["query_id", rank], "rank")):
        again = rows.filter(~pl.struct(key).is_first_distinct())
        if again.height:
            row = again.row(0, named=True)
            raise InputError(
                f"The {what} {quoted(row[key[1]])} stands twice.",
                where=place(row["file"], row["line"], key[1]),
            )
    return rows.sort("query_id", rank, maintain_order=True).select(
        "query_id",
        pl.col("doc_id").alias("passage_id"),
        pl.col(score).alias("score"),
        pl.int_range(1, pl.len() + 1).over("query_id").alias("rank"),
    )


def refined_order(found: Folder) -> dict[str, list[object]]:
    """Question → [passage, final rank, final score, exposures, information] of s6, in its order."""
    ranked = identified(stage_rows(found.of("ranked"), dict(_RANKED)))
    _check_refined(found, ranked)
    placed = ranked.sort("query_id", "final_rank", maintain_order=True, nulls_last=True).head(_MOST_RANKED)
    finite = pl.when(pl.col("final_score").is_finite()).then("final_score").alias("final_score")
    order: dict[str, list[object]] = {}
    for query, *item, info in placed.select("query_id", *_RANKED.names()).with_columns(finite).iter_rows():
        order.setdefault(query, []).append([*item, _number(info)])
    return order


def _number(info: str | None) -> object:
    try:
        return kept(float(info or ""))
    except ValueError:
        return kept(info)


def _check_refined(found: Folder, refined: pl.DataFrame) -> None:
    """Refuse passages of s6 that s5 of the same question does not have: they are another run's."""
    pruned = identified(stage_rows(found.of("pruned"), {"doc_id": pl.String()}))
    names = [stage.query_id for stage in found.of("pruned")]
    known = pl.DataFrame({"query_id": names}, schema={"query_id": pl.String()})
    strange = refined.join(known, on="query_id").join(pruned, on=["query_id", "doc_id"], how="anti")
    if strange.is_empty():
        return
    ids = [f"{row['query_id']} {shown(row['doc_id'])}" for row in strange.iter_rows(named=True)]
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    raise InputError(
        f"{len(ids)} passages of s6_ranked are not in s5_pruned, so they are of another run's checkpoint: "
        f"{', '.join(ids[:_SHOWN])}{more}.",
        where=strange["file"][0],
        do="Run the last stage again from an empty checkpoint, or offer the folder without s6_ranked.",
    )
