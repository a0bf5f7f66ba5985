"""rag-gs run folders: questions, dense and sparse candidates, their merge, and the grades of the merged pool.

A question is a folder ``q01`` with one folder per stage: s1_rewrites, s2_candidates/{dense, sparse},
s3_merge, s4_scores, s5_pruned, s6_ranked. The lists of s2 and s3 are three stacks, the grades of s4 a golden
set on the rubric 1 to 5; s5 and s6 are steps on the way to that set and are checked, not taken.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from core.errors import InputError
from core.importers.base import (
    LOOK_ROWS,
    SURE,
    Format,
    Import,
    LeftOut,
    Look,
    Options,
    collection_of,
    imported_run,
    merged,
    run_labels,
)
from core.importers.jsonl import read_lines
from core.importers.judgements import golden_set
from core.importers.piece import Tree
from core.importers.rag_gs_folder import Folder, Stage, folder, is_stage
from core.importers.text import place, quoted, shown
from core.tables import frame

_LISTS = {
    "dense": ("rank_dense", "score_cos"),
    "sparse": ("rank_sparse", "score_bm25"),
    "merge": ("rank_rrf", "rrf_score"),
}
_NAMES = {"dense": "dense candidates", "sparse": "sparse candidates", "merge": "merged by rank (RRF)"}
_SHOWN = 20


class RagGs(Format):
    """Run folders of rag-gs, in both layouts."""

    name, title = "rag-gs", "rag-gs run folder"
    brings = ("queries", "passages", "rankings", "judgements")
    takes = {  # noqa: RUF012
        "rankings": "dense and sparse candidates and their merge, a run each",
        "judgements": "grades 1 to 5 of s4_scores, each with its judge",
        "queries": "the questions' own texts; rewrites are noted",
    }
    recognised = "folders s1 to s6 within qNN, in both layouts, whose files have the fields of their stage"
    traps = (
        "Passages of s6_ranked that s5_pruned does not have are another run's: refused with their list.",
        "Grades that the judge did not give are left out and counted.",
        "Of several lists of a question the longest counts.",
    )
    names_collection = 2

    def sniff(self, probe: Tree) -> float:
        """Stages of questions: folders s1 to s6 within qNN whose files have the stage's fields."""
        return SURE if any(map(is_stage, probe.pieces)) else 0.0

    def look(self, tree: Tree, options: Options) -> Look:  # noqa: ARG002
        """The files of every question's stages."""
        rows = [
            {"question": each.query_id, "stage": each.place.split("/")[-1], "list": each.kind,
             "file": each.piece.relative}
            for each in folder([tree]).stages
        ]  # fmt: skip
        return Look(pl.DataFrame(sorted(rows, key=str)[:LOOK_ROWS]))

    def read(self, trees: Sequence[Tree], options: Options) -> Import:
        """Read one run folder.

        Raises:
            InputError: Several run folders, a damaged file, or passages of s6 that s5 does not have.
        """
        found = folder(trees)
        if not found.stages and not found.texts:
            raise InputError("It holds no stage of a rag-gs run.", where=trees[0].name)
        _check_refined(found)
        lists = {kind: _ranked(found, kind) for kind in _LISTS}
        parts = [
            Import(collections=collection_of(options, "imported: rag-gs")),
            _queries(found, options),
            _passages(found, options),
            *_runs(found, lists, options),
            _grades(found, options),
            Import(left_out=tuple(_left_out(found)), notes=tuple(_notes(found))),
        ]
        return merged(parts)


def _rows(stages: Sequence[Stage], schema: dict[str, pl.DataType]) -> pl.DataFrame:
    """Lines of the files of a stage with `query_id` and `file`."""
    made = {**schema, "line": pl.Int64(), "query_id": pl.String(), "file": pl.String()}
    parts = [pl.DataFrame(schema=made)]
    for stage in stages:
        rows = read_lines(stage.piece, schema)
        parts.append(rows.with_columns(query_id=pl.lit(stage.query_id), file=pl.lit(stage.piece.name)))
    return pl.concat(parts)


def _without_id(rows: pl.DataFrame) -> pl.DataFrame:
    nameless = rows.filter(pl.col("doc_id").fill_null("") == "")
    if nameless.height:
        row = nameless.row(0, named=True)
        raise InputError("The line has no doc_id.", where=place(row["file"], row["line"], "doc_id"))
    return rows


def _ranked(found: Folder, kind: str) -> pl.DataFrame:
    """The list of every question: query_id, rank, passage_id, score; the file's ranks decide the order."""
    rank, score = _LISTS[kind]
    rows = _without_id(_rows(found.of(kind), {"doc_id": pl.String(), rank: pl.Int64(), score: pl.Float64()}))
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


def _runs(found: Folder, lists: dict[str, pl.DataFrame], options: Options) -> list[Import]:
    there = [kind for kind, rows in lists.items() if rows.height]
    labels = run_labels([(_NAMES[kind], "") for kind in there], options)
    dense = {"mode": "dense", **found.embedder}
    axes = {
        "dense": dense,
        "sparse": {"mode": "sparse", "sparse": "bm25"},
        "merge": {**dense, "mode": "hybrid", "sparse": "bm25", "fusion": {"method": "rrf"}},
    }
    rewrite = {"rewrite": "rewritten"} if found.rewritten else {}
    parts = []
    for kind, label in zip(there, labels, strict=True):
        digest = "-".join(stage.piece.digest for stage in found.of(kind))
        run = imported_run(
            options,
            label,
            digest,
            importer=RagGs.name,
            decided={"stage": kind, "manifests": found.manifests},
            spec={**axes[kind], **rewrite, "name": shown(label, 200)},
        )
        rows = lists[kind].with_columns(run_id=pl.lit(run.run_id), stage=pl.lit("final"))
        parts.append(Import(runs=(run,), frames={"rankings": frame("rankings", rows.to_dict())}))
    return parts


def _queries(found: Folder, options: Options) -> Import:
    rows: list[dict[str, object]] = [
        {"collection_id": options.collection_id, "query_id": query, "text": text, "tags": []}
        for query, text in found.texts.items()
        if text
    ]
    silent = sorted(found.queries - {query for query, text in found.texts.items() if text})
    why = "questions without a text (no questions_manifest.json and no s1_rewrites of them)"
    left = (LeftOut(len(silent), why, silent[0]),) if silent else ()
    return Import(frames={"queries": frame("queries", rows)} if rows else {}, left_out=left)


def _passages(found: Folder, options: Options) -> Import:
    """Texts of everything that a list holds, each passage once."""
    stages = [stage for kind in _LISTS for stage in found.of(kind)]
    rows = _without_id(_rows(stages, {"doc_id": pl.String(), "text": pl.String(), "metadata": pl.String()}))
    texts = rows.filter(pl.col("text").is_not_null()).unique("doc_id", keep="first", maintain_order=True)
    silent = rows["doc_id"].n_unique() - texts.height
    source = pl.coalesce(
        pl.col("metadata").str.json_path_match(f"$.{key}") for key in ("source", "url", "doc", "file")
    )
    made = texts.select(
        pl.lit(options.collection_id).alias("collection_id"),
        pl.col("doc_id").alias("passage_id"),
        pl.col("metadata").str.json_path_match("$.title").alias("title"),
        "text",
        source.alias("source"),
    )
    left = (LeftOut(silent, "passages without a text", stages[0].piece.name),) if silent else ()
    return Import(
        frames={"passages": frame("passages", made.to_dict())} if made.height else {}, left_out=left
    )


def _grades(found: Folder, options: Options) -> Import:
    """The golden set: grades of the judge, as they are."""
    stages = found.of("scores")
    rows = _without_id(_rows(stages, {"doc_id": pl.String(), "grade_1_5": pl.Int64(), "model": pl.String()}))
    if rows.is_empty():
        return Import()
    graded = rows.filter(pl.col("grade_1_5").is_not_null())
    wrong = graded.filter(~pl.col("grade_1_5").is_between(1, 5))
    if wrong.height:
        row = wrong.row(0, named=True)
        raise InputError(
            f"The grade {row['grade_1_5']} is not within 1 to 5.",
            where=place(row["file"], row["line"], "grade_1_5"),
        )
    again = graded.filter(~pl.struct("query_id", "doc_id").is_first_distinct())
    if again.height:
        row = again.row(0, named=True)
        raise InputError(
            f"Passage {quoted(row['doc_id'])} is graded twice.", where=place(row["file"], row["line"])
        )
    pairs = graded.select(
        "query_id", "line", pl.col("doc_id").alias("passage_id"), pl.col("grade_1_5").alias("grade"),
        pl.col("model").alias("judge"),
    )  # fmt: skip
    judges = ", ".join(sorted(map(shown, pairs["judge"].drop_nulls().unique())))
    chosen = Options(
        golden_set_id=options.golden_set_id,
        collection_id=options.collection_id,
        grades=options.grades or "1-5",
    )
    made = golden_set(pairs, stages[0].piece.name, "s4", chosen, judges) if pairs.height else Import()
    failed = rows.height - graded.height
    left = (LeftOut(failed, "passages that the judge gave no grade", stages[0].piece.name),) if failed else ()
    return merged((made, Import(left_out=left)))


def _check_refined(found: Folder) -> None:
    """Refuse passages of s6 that s5 of the same question does not have: they are another run's."""
    schema: dict[str, pl.DataType] = {"doc_id": pl.String()}
    pruned, refined = (_without_id(_rows(found.of(kind), schema)) for kind in ("pruned", "ranked"))
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


def _left_out(found: Folder) -> list[LeftOut]:
    counted = (
        (found.of("pruned"), "files of s5_pruned: checked against s6_ranked only"),
        (found.of("ranked"), "files of s6_ranked (refined order): the grades of s4 stand"),
        (found.shorter, "shorter lists of a question that has a longer one"),
        (found.other, "other files of the run folder"),
    )
    return [LeftOut(len(some), why, some[0].piece.name) for some, why in counted if some]


def _notes(found: Folder) -> list[str]:
    notes = []
    if found.rewritten:
        notes.append(
            f"{len(found.rewritten)} questions were searched with a rewritten text; the first is shown."
        )
    if found.unfinished:
        notes.append(
            f"{len(found.unfinished)} stages have no _SUCCESS mark, so they may be incomplete "
            f"(first: {shown(found.unfinished[0])})."
        )
    return notes
