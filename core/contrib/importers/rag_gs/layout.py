"""The file layout of a rag-gs run folder, and the contents of its manifests."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import polars as pl

from core.errors import InputError
from core.importers.read.jsons import Json, at, expect, optional, outline, read_json
from core.importers.read.member import Archive, Member
from core.importers.read.rows import again, read_lines, refuse
from core.importers.read.text import quoted, shown
from core.importers.settings import kept
from core.tables import schema

_STAGE = re.compile(r"(?:(?P<root>.*)/)?q(?P<q>\d{1,9})/(?P<stage>s[1-6]_[a-z]+)/(?P<rest>.+)")
_KINDS = {
    "s1_rewrites": ("rewrites", "text"), "s2_candidates": ("", "doc_id"), "s3_merge": ("merge", "rank_rrf"),
    "s4_scores": ("scores", "grade_1_5"), "s5_pruned": ("pruned", "doc_id"),
    "s6_ranked": ("ranked", "doc_id"),
}  # fmt: skip
_MARKS = {"dense": "rank_dense", "sparse": "rank_sparse"}
_DEPTH = re.compile(r"\.top(\d{1,6})\w*\.jsonl")
_MANIFEST, _DONE, _QUESTIONS = "manifest.json", "_SUCCESS", "questions_manifest.json"
_MOST_MANIFESTS = 30
_DEPTHS = {"dense": "dense_k", "sparse": "sparse_k"}  # List → key of its depth in the manifest of its stage

LISTS = {
    "dense": ("rank_dense", "score_cos"),
    "sparse": ("rank_sparse", "score_bm25"),
    "merge": ("rank_rrf", "rrf_score"),
}
_RANKED = schema("doc_id final_rank:int64 final_score:float exposures:int64 info")
"""Columns of s6_ranked for a passage; `info`, its information, is a number, in other versions a map."""
_MOST_RANKED = 20_000
_SHOWN = 20


@dataclass(frozen=True)
class Stage:
    """A file of a stage: its kind ("dense", "merge"…; "" = unknown) and its question."""

    kind: str
    query_id: str
    member: Member
    place: str


@dataclass
class StudyFolder:
    """A run folder."""

    stages: list[Stage] = field(default_factory=list)  # files of stages that are taken or checked
    shorter: list[Stage] = field(default_factory=list)  # lists for which another one is as deep as requested
    other: list[Member] = field(default_factory=list)  # files without a stage
    texts: dict[str, str] = field(default_factory=dict)  # question → its text, in order
    rewritten: set[str] = field(default_factory=set)  # questions searched with a rewritten text
    embedder: Json = field(default_factory=dict)  # axes of the embedder, as named in the rewrites
    manifests: dict[str, object] = field(default_factory=dict)  # stage → content of its first manifest
    # list ("dense", "sparse") and question → its depth, from its manifest
    depths: dict[tuple[str, str], int] = field(default_factory=dict)
    questions: list[Member] = field(default_factory=list)  # lists of questions
    marks: list[Member] = field(default_factory=list)  # markers of finished stages
    kept: list[Member] = field(default_factory=list)  # the first manifest of every stage
    later: list[Member] = field(default_factory=list)  # the other manifests
    # stages of questions without a marker of completion, while others have one
    unfinished: list[str] = field(default_factory=list)

    @property
    def queries(self) -> set[str]:
        """Ids of all questions with a file."""
        return {stage.query_id for stage in self.stages}

    def depth(self, kind: str) -> int | None:
        """Return a list's depth for every question, from manifests, otherwise file names.

        It is None if unknown.
        """
        depths = {self.depths.get((kind, stage.query_id)) or _named_depth(stage) for stage in self.of(kind)}
        return depths.pop() or None if len(depths) == 1 else None

    def of(self, kind: str) -> list[Stage]:
        """Return files of a kind, by question."""
        return [stage for stage in self.stages if stage.kind == kind]


def is_stage(member: Member) -> bool:
    """Return whether a file's path and fields match a stage."""
    matched = _STAGE.fullmatch(member.relative)
    return matched is not None and bool(_kind(member, matched))


def _kind(member: Member, matched: re.Match[str]) -> str:
    kind, needed = _KINDS.get(matched["stage"], ("", ""))
    if not member.head.strip():  # an empty list
        return kind or next((name for name in _MARKS if matched["rest"].startswith(f"{name}/")), "")
    shape = outline(member)
    if not needed or needed not in shape:
        return ""
    return kind or next((name for name, mark in _MARKS.items() if mark in shape), "")


def folder(archives: Sequence[Archive]) -> StudyFolder:
    """Find the files of one run folder."""
    result, roots, done = StudyFolder(), set(), set()
    for archive in archives:
        for member in archive.members:
            name = member.relative.rsplit("/", 1)[-1]
            matched = _STAGE.fullmatch(member.relative)
            if matched is None:
                (result.questions if name == _QUESTIONS else result.other).append(member)
                continue
            roots.add(f"{archive.name}/{matched['root'] or ''}")
            spot = f"q{matched['q']}/{matched['stage']}"
            if name == _DONE:
                done.add(spot)
                result.marks.append(member)
            elif name == _MANIFEST:
                _manifest(member, matched["stage"], f"Q{int(matched['q'])}", result)
            else:
                stage = Stage(_kind(member, matched), f"Q{int(matched['q'])}", member, spot)
                result.stages += [stage] if stage.kind else []
                result.other += [] if stage.kind else [member]
    if len(roots) > 1:
        listed = ", ".join(map(shown, sorted(roots)[:4]))
        raise InputError(f"There are {len(roots)} run folders: {listed}.", do="Offer one at a time.")
    _choose(result)
    _texts(result)
    spots = {stage.place for stage in result.stages}
    result.unfinished = sorted(spots - done) if done else []
    return result


def _manifest(member: Member, stage: str, query: str, folder: StudyFolder) -> None:
    first = stage not in folder.manifests and len(folder.manifests) < _MOST_MANIFESTS
    (folder.kept if first else folder.later).append(member)
    if not first and stage != "s2_candidates":
        return
    whole = read_json(member)
    for kind, key in _DEPTHS.items() if stage == "s2_candidates" else ():
        depth = optional(whole, key, int, member.name)
        if depth is not None and depth > 0:
            folder.depths[kind, query] = depth
    if first:
        folder.manifests[stage] = kept(whole)


def _choose(folder: StudyFolder) -> None:
    """Choose a list per kind and question: of the manifest's depth, otherwise the longest, or enriched."""
    best: dict[tuple[str, str], Stage] = {}
    for stage in folder.stages:
        key = (stage.kind, stage.query_id)
        if key not in best or _rank(stage, folder) > _rank(best[key], folder):
            best[key] = stage
    chosen = list(best.values())
    folder.shorter = [stage for stage in folder.stages if stage not in chosen]
    folder.stages = sorted(chosen, key=lambda stage: (stage.kind, int(stage.query_id[1:])))


def _rank(stage: Stage, folder: StudyFolder) -> tuple[bool, int, bool, str]:
    depth, name = _named_depth(stage), stage.member.relative
    asked = depth > 0 and depth == folder.depths.get((stage.kind, stage.query_id))
    return asked, depth, "enriched" in name, name


def _named_depth(stage: Stage) -> int:
    """Return the depth in a file's name, or 0."""
    depth = _DEPTH.search(stage.member.relative)
    return int(depth[1]) if depth else 0


def _texts(folder: StudyFolder) -> None:
    for member in folder.questions:
        listed: set[str] = set()
        for index, item in enumerate(expect(read_json(member), "items", list, member.name)):
            where = at(member.name, "items", index)
            qid = expect(item, "qid", str, where)
            number = re.fullmatch(r"[Qq](\d{1,9})", qid.strip())
            if number is None:
                raise InputError(f"{quoted(qid)} is not a question id such as Q1.", where=where)
            query = f"Q{int(number[1])}"
            if query in listed:
                raise InputError(f"The question {query} stands twice.", where=where)
            listed.add(query)
            _text(folder, query, item, where)
    for stage in folder.of("rewrites"):
        where = stage.member.name
        item = read_json(stage.member)
        _text(folder, stage.query_id, item, where)
        model, dim = optional(item, "model", str, where), optional(item, "output_dimension", int, where)
        if model and not folder.embedder:
            folder.embedder = {"embedder": shown(model), **({"dim": dim} if dim and dim > 0 else {})}


def _text(folder: StudyFolder, query: str, item: object, where: str) -> None:
    text, other = optional(item, "text", str, where), optional(item, "text_rewrite", str, where)
    if other and text and other.strip() != text.strip():
        folder.rewritten.add(query)
    folder.texts[query] = folder.texts.get(query) or text or ""


def stage_rows(stages: Sequence[Stage], schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Return the fields of the lines in a stage's files, with `line`, `query_id` and `file`.

    Each line names its passage.
    """
    columns = {**schema, "line": pl.Int64(), "query_id": pl.String(), "file": pl.String()}
    parts = [pl.DataFrame(schema=columns)]
    for stage in stages:
        rows = read_lines(stage.member, schema)
        parts.append(rows.with_columns(query_id=pl.lit(stage.query_id), file=pl.lit(stage.member.name)))
    rows = pl.concat(parts)
    refuse(rows.filter(pl.col("doc_id").fill_null("") == ""), "The line has no doc_id.", column="doc_id")
    return rows


def ranked_list(folder: StudyFolder, kind: str) -> pl.DataFrame:
    """Return each question's ranking: query_id, rank, passage_id, score, in the order of the file's ranks."""
    rank, score = LISTS[kind]
    schema = {"doc_id": pl.String(), rank: pl.Int64(), score: pl.Float64()}
    rows = stage_rows(folder.of(kind), schema)
    refuse(rows.filter(pl.col(rank).is_null()), f"The line has no {rank}.", column=rank)
    refuse(again(rows, "query_id", "doc_id"), "The passage {doc_id} stands twice.", column="doc_id")
    refuse(again(rows, "query_id", rank), f"The rank {{{rank}}} stands twice.", column=rank)
    return rows.sort("query_id", rank, maintain_order=True).select(
        "query_id",
        passage_id="doc_id",
        score=score,
        rank=pl.int_range(1, pl.len() + 1).over("query_id"),
    )


def refined_order(folder: StudyFolder) -> dict[str, list[object]]:
    """Return question → [passage, final rank, final score, exposures, information] of s6, in order."""
    ranked = stage_rows(folder.of("ranked"), _RANKED)
    _check_refined(folder, ranked)
    placed = ranked.sort("query_id", "final_rank", maintain_order=True, nulls_last=True).head(_MOST_RANKED)
    finite = pl.when(pl.col("final_score").is_finite()).then("final_score").alias("final_score")
    order: dict[str, list[object]] = {}
    for query, *item, info in placed.select("query_id", *_RANKED).with_columns(finite).iter_rows():
        information: object = info
        with suppress(ValueError):
            information = float(info or "")
        order.setdefault(query, []).append([*item, kept(information)])
    return order


def _check_refined(folder: StudyFolder, refined: pl.DataFrame) -> None:
    """Refuse passages of s6 missing from s5 of the same question: they belong to another run."""
    pruned = stage_rows(folder.of("pruned"), {"doc_id": pl.String()})
    known = pl.col("query_id").is_in([stage.query_id for stage in folder.of("pruned")])
    strange = refined.filter(known).join(pruned, on=["query_id", "doc_id"], how="anti", maintain_order="left")
    if strange.is_empty():
        return
    ids = [f"{query} {shown(passage)}" for query, passage in strange.select("query_id", "doc_id").iter_rows()]
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    raise InputError(
        f"{len(ids)} passages of s6_ranked are not in s5_pruned, so they are of another run's checkpoint: "
        f"{', '.join(ids[:_SHOWN])}{more}.",
        where=strange["file"][0],
        do="Run the last stage again from an empty checkpoint, or offer the folder without s6_ranked.",
    )
