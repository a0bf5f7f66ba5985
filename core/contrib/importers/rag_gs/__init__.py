"""rag-gs run folders: questions, dense and sparse candidates, their merge, and the grades of the merged pool.

A question is a folder ``q01`` with one folder per stage: s1_rewrites, s2_candidates/{dense, sparse},
s3_merge, s4_scores, s5_pruned, s6_ranked. The lists of s2 and s3 are three stacks, the grades of s4 a golden
set on the rubric 1 to 5. The order of s6 comes from those grades: it isn't a stack, but kept with the merged
run; s5 only checks it. The depth of the lists, which defines the pool, comes from the manifest of s2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import polars as pl

from core.contrib.importers.rag_gs import layout
from core.errors import InputError
from core.importers.base import (
    LOOK_ROWS,
    SURE,
    Format,
    Import,
    LeftOut,
    Look,
    Options,
    counted,
    frames_of,
    merged,
)
from core.importers.judgements import golden_set
from core.importers.read.jsons import Json, number
from core.importers.read.member import Archive
from core.importers.read.rows import again, refuse
from core.importers.read.text import shown
from core.importers.report import TAKEN, FileReport, file_report
from core.importers.runs import collection_frames, collection_of, imported_run, run_labels

_NAMES = {"dense": "dense candidates", "sparse": "sparse candidates", "merge": "merged by rank (RRF)"}

_COPY = "it stands in another file of the run too"
_REWRITE = "the text that was searched has no place"
_SEARCHED = {
    "qid": TAKEN, "doc_id": TAKEN, "text": TAKEN, "metadata": TAKEN, "question": TAKEN,
    "query_rewrite": _REWRITE, "score_es": "the cosine is taken",
    "vector_field": _COPY, "similarity": _COPY, "embed_dim": _COPY,
    "retrieval": _COPY, "generated_from": _REWRITE,
    "bm25_query": _REWRITE,
}  # fmt: skip
_GRADED = {
    "qid": TAKEN, "doc_id": TAKEN, "grade_1_5": TAKEN, "model": TAKEN, "temperature": _COPY,
    "top_p": _COPY, "ts": "times of judgements have no place",
    **dict.fromkeys(
        ("source", "rank_dense", "rank_sparse", "score_cos", "score_es", "score_bm25", "rrf_score",
         "rank_rrf"), _COPY,
    ),
}  # fmt: skip
_PRUNED = {
    **_GRADED, "doc_id": TAKEN, "grade_1_5": _COPY, "model": _COPY,
    "text": _COPY, "metadata": _COPY, "question": _COPY, "cut_stage": _COPY, "cut_size": _COPY,
    "cut_ts": _COPY,
}  # fmt: skip
PARTS: Mapping[str, Mapping[str, str]] = {
    "questions": {
        "items.qid": TAKEN, "items.text": TAKEN, "items.text_rewrite": TAKEN, "run_id": _COPY,
        "pack": _COPY, "selected_qids": _COPY, "count": _COPY,
    },
    "rewrites": {
        "text": TAKEN, "text_rewrite": TAKEN, "model": TAKEN, "output_dimension": TAKEN, "qid": TAKEN,
        "input_type": _COPY, "truncation": _COPY, "bm25_query": _REWRITE,
        "embedding": "not stored: vectors of questions",
    },
    "dense": {**_SEARCHED, "rank_dense": TAKEN, "score_cos": TAKEN},
    "sparse": {**_SEARCHED, "rank_sparse": TAKEN, "score_bm25": TAKEN},
    "merge": {
        **_SEARCHED, "rank_rrf": TAKEN, "rrf_score": TAKEN,
        **dict.fromkeys(("source", "rank_dense", "rank_sparse", "score_cos", "score_bm25"), _COPY),
    },
    "scores": _GRADED,
    "pruned": _PRUNED,
    "ranked": {
        **_PRUNED, "final_rank": TAKEN, "final_score": TAKEN, "exposures": TAKEN, "info": TAKEN,
    },
}  # fmt: skip
"""Kind of a file → the part of it that is taken."""


class RagGs(Format):
    """Run folders of rag-gs, in both layouts."""

    name, title = "rag-gs", "rag-gs run folder"
    takes = {
        "queries": "the questions' own texts; rewrites are noted",
        "passages": "",
        "rankings": "dense and sparse candidates and their merge, a run each with its pool; rank, score, "
        "exposures and information of s6_ranked are kept with the merge",
        "judgements": "grades 1 to 5 of s4_scores, each with its judge",
    }
    recognised = "folders s1 to s6 within qNN, in both layouts, whose files have the fields of their stage"
    traps = (
        "Passages of s6_ranked that s5_pruned does not have are another run's: refused with their list.",
        "Grades that the judge did not give are left out and counted.",
        "Of several lists of a question the one as deep as its manifest says counts, else the longest.",
        "s6_ranked is made from the grades: it is no stack. The lines of s5_pruned only check it.",
    )
    names_collection = 2

    def sniff(self, probe: Archive) -> float:
        return SURE if any(map(layout.is_stage, probe.members)) else 0.0

    def look(self, archive: Archive, options: Options) -> Look:  # noqa: ARG002
        """Return the files of every question's stages."""
        rows = [
            {"question": stage.query_id, "stage": stage.place.split("/")[-1], "list": stage.kind,
             "file": stage.member.relative}
            for stage in layout.folder([archive]).stages
        ]  # fmt: skip
        return Look(pl.DataFrame(sorted(rows, key=str)[:LOOK_ROWS]))

    def reports(self, archives: Sequence[Archive], options: Options) -> Iterator[FileReport]:  # noqa: ARG002
        folder = layout.folder(archives)
        for stage in folder.stages:
            yield file_report(stage.member, PARTS[stage.kind])
        for member in folder.questions:
            yield file_report(member, PARTS["questions"])
        for member in folder.kept:
            yield file_report(member, {"*": TAKEN})
        for member in folder.marks:
            yield FileReport(member.name, "file", (member.relative,))
        left = (
            (
                [stage.member for stage in folder.shorter],
                "another list of the question is as deep as was asked",
            ),
            (folder.later, "of every stage the first manifest is kept"),
            (folder.other, "it is not a file of a stage"),
        )
        for members, why in left:
            yield from (file_report(member, why) for member in members)

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        folder = layout.folder(archives)
        if not folder.stages and not folder.texts:
            raise InputError("It holds no stage of a rag-gs run.", where=archives[0].name)
        refined = layout.refined_order(folder)
        lists = {kind: layout.ranked_list(folder, kind) for kind in layout.LISTS}
        parts = [
            Import(collections=collection_of(options, "imported: rag-gs")),
            _queries(folder, options),
            _passages(folder, options),
            *_runs(folder, lists, refined, options),
            _grades(folder, options),
            Import(notes=tuple(_notes(folder)), left_out=_unkept(folder, refined)),
        ]
        return merged(parts)


def _runs(
    folder: layout.StudyFolder,
    lists: dict[str, pl.DataFrame],
    refined: dict[str, list[object]],
    options: Options,
) -> list[Import]:
    there = [kind for kind, rows in lists.items() if rows.height]
    labels = run_labels([(_NAMES[kind], "") for kind in there], options)
    rewrite = {"rewrite": "rewritten"} if folder.rewritten else {}
    dense, sparse = {"mode": "dense", **folder.embedder}, {"mode": "sparse", "sparse": "bm25"}
    hybrid = {**dense, "mode": "hybrid", "sparse": "bm25", "fusion": _fusion(folder)}
    axes, pools = {"dense": dense, "sparse": sparse, "merge": hybrid}, _pools(folder)
    parts = []
    for kind, label in zip(there, labels, strict=True):
        digest = "-".join(stage.member.digest for stage in folder.of(kind))
        run = imported_run(
            options,
            label,
            digest,
            importer=RagGs.name,
            decided={"stage": kind, "manifests": folder.manifests},
            spec={**axes[kind], **rewrite, "name": shown(label, 200)},
            pool=pools[kind],
        )
        if kind == "merge" and refined:
            run = replace(run, manifest={**run.manifest, "s6_ranked": refined})
        stages = ("pool", "final") if pools[kind] else ("final",)
        rows = pl.concat(
            lists[kind].with_columns(run_id=pl.lit(run.run_id), stage=pl.lit(stage)) for stage in stages
        )
        parts.append(Import(runs=(run,), frames=frames_of(rankings=rows)))
    return parts


def _fusion(folder: layout.StudyFolder) -> Json:
    """Return how the lists were fused, according to the manifests, with their depth if both have one."""
    manifest = folder.manifests.get("s3_merge")
    constant = number(manifest, "rrf_c", "s3_merge") if isinstance(manifest, dict) else None
    deep = {folder.depth("dense"), folder.depth("sparse")}
    return {
        "method": "rrf",
        **({"constant": int(constant) if constant.is_integer() else constant} if constant else {}),
        **({"depth": min(deep, key=str)} if len(deep) == 1 and None not in deep else {}),
    }


def _pools(folder: layout.StudyFolder) -> dict[str, str | None]:
    """Return the convention of every list's pool, from its search depth."""
    dense, sparse = folder.depth("dense"), folder.depth("sparse")
    depths = str(dense) if dense == sparse else f"{dense}+{sparse}"
    return {
        "dense": f"dense@{dense}" if dense else None,
        "sparse": f"bm25@{sparse}" if sparse else None,
        "merge": f"rrf{depths}@{dense + sparse}" if dense and sparse else None,
    }


def _queries(folder: layout.StudyFolder, options: Options) -> Import:
    known = {query: text for query, text in folder.texts.items() if text}
    rows = pl.DataFrame({"query_id": list(known), "text": list(known.values())})
    silent = sorted(folder.queries - known.keys())
    why = "questions without a text (no questions_manifest.json and no s1_rewrites of them)"
    left = counted({why: len(silent)}, silent[0] if silent else "")
    return Import(frames=collection_frames(options, rows), left_out=left)


def _passages(folder: layout.StudyFolder, options: Options) -> Import:
    stages = [stage for kind in layout.LISTS for stage in folder.of(kind)]
    rows = layout.stage_rows(stages, dict.fromkeys(("doc_id", "text", "metadata"), pl.String()))
    texts = rows.filter(pl.col("text").is_not_null()).unique("doc_id", keep="first", maintain_order=True)
    silent = rows["doc_id"].n_unique() - texts.height
    source = pl.coalesce(
        pl.col("metadata").str.json_path_match(f"$.{key}") for key in ("source", "url", "doc", "file")
    )
    passages = texts.select(
        pl.col("doc_id").alias("passage_id"),
        pl.col("metadata").str.json_path_match("$.title").alias("title"),
        "text",
        source.alias("source"),
    )
    left = counted({"passages without a text": silent}, stages[0].member.name)
    return Import(frames=collection_frames(options, passages=passages), left_out=left)


def _grades(folder: layout.StudyFolder, options: Options) -> Import:
    stages = folder.of("scores")
    schema = {"doc_id": pl.String(), "grade_1_5": pl.Int64(), "model": pl.String()}
    rows = layout.stage_rows(stages, schema)
    if rows.is_empty():
        return Import()
    graded = rows.filter(pl.col("grade_1_5").is_not_null())
    wrong = graded.filter(~pl.col("grade_1_5").is_between(1, 5))
    refuse(wrong, "The grade {grade_1_5} is not within 1 to 5.", column="grade_1_5")
    refuse(again(graded, "query_id", "doc_id"), "Passage {doc_id} is graded twice.")
    pairs = graded.select("query_id", "line", passage_id="doc_id", grade="grade_1_5", judge="model")
    judges = ", ".join(sorted(map(shown, pairs["judge"].drop_nulls().unique())))
    chosen = replace(options, grades=options.grades or "1-5")
    imported = golden_set(pairs, stages[0].member.name, "s4", chosen, judges) if pairs.height else Import()
    left = {"passages that the judge gave no grade": rows.height - graded.height}
    return replace(imported, left_out=counted(left, stages[0].member.name))


def _unkept(folder: layout.StudyFolder, refined: dict[str, list[object]]) -> tuple[LeftOut, ...]:
    """Return lines of s5, and the lines of s6 that are not kept.

    They are too many, or there is no merged run to keep them.
    """
    pruned = layout.stage_rows(folder.of("pruned"), {"doc_id": pl.String()}).height
    total = layout.stage_rows(folder.of("ranked"), {"doc_id": pl.String()}).height
    kept = sum(map(len, refined.values())) if folder.of("merge") else 0
    left = {
        "passages of s5_pruned: they only check those of s6_ranked": pruned,
        "passages of s6_ranked beyond what can be kept with a merged run": total - kept,
    }
    return counted(left)


def _notes(folder: layout.StudyFolder) -> Iterator[str]:
    if folder.rewritten:
        yield f"{len(folder.rewritten)} questions were searched with a rewritten text; the first is shown."
    if folder.unfinished:
        first = shown(folder.unfinished[0])
        count = len(folder.unfinished)
        yield f"{count} stages have no _SUCCESS mark, so they may be incomplete (first: {first})."
    if folder.of("ranked") and folder.of("merge"):
        yield (
            "The order of s6_ranked comes from the grades, so that it is no stack: its ranks, scores, "
            "exposures and information are kept with the merged run."
        )
