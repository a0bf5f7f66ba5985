"""Runs from RAGGED's files: a retriever with the answers of every reader of its passages.

Readers answer from the first k passages, from gold passages, or without any.

A reader's folder holds a folder per mode and in it ``top_<k>`` for every k; ``gold`` and ``no_context`` have
no depth and belong to every retriever whose passages the same reader read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from core.answers import CLOSED_BOOK, GOLD, GOLD_ONLY, NO_GOLD, TOP_K
from core.contrib.importers.ragged.files import RIGHT, kind, lists, once
from core.errors import InputError
from core.importers.base import Import, LeftOut, Options, counted, frames_of, merged
from core.importers.judgements import VALUE, grade_measure, means, scores_of
from core.importers.read.jsons import MOST_BYTES, Json, json_rows, number, optional, texts
from core.importers.read.member import Archive, Member, digest_of
from core.importers.read.text import place, shown
from core.importers.runs import imported_run, run_labels
from core.records import JsonMap, Run

MODES: Mapping[str, str] = {
    "top_k": TOP_K, "top_positive": GOLD_ONLY, "top_negative": NO_GOLD, "gold": GOLD,
    "no_context": CLOSED_BOOK,
}  # fmt: skip
"""Folder → what answers were written from: the first k, the gold passages among all that were retrieved (the
first k of those), the first k that are not gold, all gold passages, nothing."""
_WITHOUT_K: Mapping[str, int | None] = {GOLD: None, CLOSED_BOOK: 0}
"""k of the modes without a depth: unknown, and no passage."""
_TOP = re.compile(r"top_?(\d{1,6})")
_DEFAULT_GRADE = "f1"
_SAID = pl.Schema({"id": pl.String(), "input": pl.String(), "text": pl.String(), "line": pl.Int64()})
_ROOTS = ("reader_results", "retriever_results", "predictions")
"""Folders of the tool that carry no information in a label."""
_ORACLES = (
    "gold_only took the first k gold passages of all that were retrieved, not those among the first k; "
    "answers from gold passages or without any stand with each retriever that their reader read."
)


@dataclass(frozen=True)
class RaggedAnswer:
    """The answers of one file."""

    member: Member  # the file
    rows: pl.DataFrame  # id, input, text of the answer, line
    values: pl.DataFrame  # columns of `VALUE`: measures of each answer
    right: pl.DataFrame  # query_id, answer: the correct answers
    left: tuple[LeftOut, ...]  # the parts that are not taken


@dataclass(frozen=True)
class RaggedReader:
    """Answers of one reader in one mode."""

    name: str  # path of the folder without mode and depth
    mode: str  # a value of `MODES`
    files: Mapping[int | None, RaggedAnswer]  # k → the answers; k is None if unknown

    @property
    def asked(self) -> pl.DataFrame:
        """The id and input of all its questions."""
        return pl.concat([file.rows.select("id", "input") for file in self.files.values()])


@dataclass(frozen=True)
class _Spot:
    name: str
    mode: str
    k: int | None


def readers(files: Sequence[tuple[Member, Archive]]) -> tuple[list[RaggedReader], dict[str, str]]:
    """Group the files of readers."""
    spots: dict[_Spot, Member] = {}
    lost: dict[str, str] = {}
    again: dict[str, str] = {}
    for member, archive in sorted(files, key=lambda entry: kind(entry[0]) == "raw"):
        spot = _spot(member, archive)
        if spot is None:
            lost[member.name] = "from how many passages its answers were written is not known"
        elif spot not in spots:
            spots[spot] = member
        elif kind(member) == "raw":
            again[member.name] = "its answers stand evaluated beside it"
        else:
            raise InputError(f"Two files hold the answers at k = {spot.k}.", where=member.name)
    if lost and not spots:
        raise InputError(
            "From how many passages these answers were written is not known.",
            where=next(iter(lost)),
            do="Offer the reader's folder, with its folders top_1, top_2…",
        )
    held: dict[tuple[str, str], dict[int | None, RaggedAnswer]] = {}
    modes = list(MODES.values())
    for spot in sorted(spots, key=lambda entry: (modes.index(entry.mode), entry.name, entry.k or 0)):
        held.setdefault((spot.name, spot.mode), {})[spot.k] = _read_answers(spots[spot])
    return [RaggedReader(*key, said) for key, said in held.items()], lost | again


def _spot(member: Member, archive: Archive) -> _Spot | None:
    """Return a file's place, by its nearest folder of a depth, or of a mode without one.

    It is None without both.
    """
    folders = [] if archive.name == member.relative else [archive.name, *member.relative.split("/")[:-1]]
    above = list(member.path.absolute().parts[:-1]) if member.path else folders or [archive.parent]
    near = above[-max(len(folders), 3) :]
    bare = [folder for folder in near if folder not in MODES and not _TOP.fullmatch(folder)]
    for folder, parent in zip(reversed(near), [*reversed(near[:-1]), ""], strict=True):
        top, mode = _TOP.fullmatch(folder), MODES.get(folder, "")
        if top and int(top[1]):
            return _Spot("/".join(bare), MODES.get(parent, TOP_K), int(top[1]))
        if mode in _WITHOUT_K:
            return _Spot("/".join(bare), mode, _WITHOUT_K[mode])
    return None


def _read_answers(member: Member) -> RaggedAnswer:
    said: list[tuple[str | None, str | None, str | None, int]] = []
    values: list[tuple[str, str, float | None]] = []
    right: list[tuple[str, str]] = []
    others = 0
    for line, row in json_rows(member, MOST_BYTES):
        where = place(member.name, line)
        query = row.get("id")
        if isinstance(query, int) and not isinstance(query, bool):
            query = str(query)
        query = query if isinstance(query, str) else ""
        said.append((query, optional(row, "input", str, where), optional(row, "answer", str, where), line))
        right += [(query, answer) for answer in texts(row, "gold_answers", where) or ()]
        given = optional(row, "answer_evaluation", dict, where) or {}
        measured = _measured(given, where)
        others += len(given) - len(measured)
        values += [(query, name, value) for name, value in measured.items()]
    rows = once(pl.DataFrame(said, schema=_SAID, orient="row"), member.name)
    left = {"entries of answer_evaluation that are not numbers": others}
    return RaggedAnswer(
        member=member,
        rows=rows,
        values=pl.DataFrame(values, schema=VALUE, orient="row"),
        right=pl.DataFrame(right, schema=RIGHT, orient="row"),
        left=counted(left, member.name),
    )


def _measured(given: Json, where: str) -> dict[str, float | None]:
    """Return measures of an answer: numbers, and flags as 1 and 0; a missing one is null."""
    flags = {name: float(value) for name, value in given.items() if isinstance(value, bool)}
    plain = {
        name: number(given, name, where)
        for name, value in given.items()
        if value is None or (isinstance(value, int | float) and name not in flags)
    }
    return flags | plain


def _answers(reader: RaggedReader, run: Run, name: str, options: Options) -> Import:
    parts = []
    for k, said in reader.files.items():
        key = {"run_id": run.run_id, "reader": name, "mode": reader.mode}
        own = [pl.lit(value).alias(column) for column, value in key.items()]
        own.append(pl.lit(k, pl.Int32).alias("k"))
        written = said.rows.filter(pl.col("text").is_not_null()).select("text", *own, query_id="id")
        known = said.values.filter(pl.col("value").is_finite())
        names = known["signal"].unique(maintain_order=True).to_list()
        default = _DEFAULT_GRADE if _DEFAULT_GRADE in names else None
        scores = scores_of(known, grade_measure(names, options.columns.get("grade") or default))
        lacking = {
            "measures without a value: missing, not 0": said.values.height - known.height,
            "queries without an answer": said.rows.height - written.height,
        }
        frames = frames_of(answers=written, answer_scores=scores.with_columns(own))
        parts.append(Import(frames=frames, left_out=(*counted(lacking, run.label), *said.left)))
    return merged(parts)


@dataclass(frozen=True)
class Retriever:
    """A retriever's lists: its path, its file, and its rows from `retrieved`."""

    name: str
    member: Member
    rows: pl.DataFrame

    @property
    def asked(self) -> pl.DataFrame:
        """The id and input of its questions."""
        return self.rows.select("id", "input")


def runs(retrievers: Sequence[Retriever], reading: Sequence[RaggedReader], options: Options) -> list[Import]:
    """Return a run per retriever with its readers' answers; per reader and mode if none was read."""
    read = [(reader, _read_by(reader, retrievers, reading)) for reader in reading]
    alone = [reader for reader, theirs in read if not theirs]
    own = []
    for retriever in retrievers:
        folder = retriever.name.split("/")[:-1][-1:] if len(retrievers) > 1 else []
        own.append((" · ".join([*folder, retriever.member.stem]), retriever.member.stem))
    modes = [[] if reader.mode == TOP_K else [reader.mode] for reader in alone]
    own += [(" · ".join([*_folders(reader), *mode]), "") for reader, mode in zip(alone, modes, strict=True)]
    labels = run_labels(own, options)
    parts = []
    for retriever, label in zip(retrievers, labels, strict=False):
        theirs = [reader for reader, them in read if any(other is retriever for other in them)]
        parts.append(_searched(retriever, _named(theirs, retrievers), label, options))
    parts += [
        _alone(reader, label, options) for reader, label in zip(alone, labels[len(retrievers) :], strict=True)
    ]
    return [*parts, Import(notes=(_ORACLES,) * any(reader.mode != TOP_K for reader in reading))]


def _read_by(
    reader: RaggedReader, retrievers: Sequence[Retriever], reading: Sequence[RaggedReader]
) -> list[Retriever]:
    """Return the retrievers whose output a reader read: the only one, or the only one named in its path.

    If the path names none, gold and no-context answers belong to all retrievers of the same reader.
    """
    if len(retrievers) == 1:
        return list(retrievers)
    parts = [_parts(retriever.name) for retriever in retrievers]
    named = [
        retriever
        for retriever, mine in zip(retrievers, parts, strict=True)
        if (mine - set().union(*(other for other in parts if other is not mine))) & _parts(reader.name)
    ]
    if len(named) == 1 or reader.mode not in (GOLD, CLOSED_BOOK):
        return named if len(named) == 1 else []
    base = _base(reader, retrievers)
    same = [
        candidate for candidate in reading if candidate.mode == TOP_K and _base(candidate, retrievers) == base
    ]
    ids = {id(retriever) for candidate in same for retriever in _read_by(candidate, retrievers, reading)}
    return [retriever for retriever in retrievers if id(retriever) in ids]


def _parts(path: str) -> set[str]:
    return {part.removesuffix(".jsonl") for part in path.lower().split("/")}


def _folders(reader: RaggedReader) -> list[str]:
    folders = reader.name.split("/")
    root = next((at for at, folder in enumerate(folders, 1) if folder in _ROOTS), 0)
    return folders[root:] or folders


def _base(reader: RaggedReader, retrievers: Sequence[Retriever]) -> tuple[str, ...]:
    """Return the folders of a reader that no retriever has: its name, and the data set's if known."""
    known = set().union(*(_parts(retriever.name) for retriever in retrievers))
    folders = _folders(reader)
    return tuple(folder for folder in folders if folder.lower() not in known) or (folders[-1],)


def _named(
    reading: Sequence[RaggedReader], retrievers: Sequence[Retriever]
) -> list[tuple[RaggedReader, str]]:
    """Name the readers of one retriever, by the first of their own folders if that is unique."""
    bases = [_base(reader, retrievers) for reader in reading]
    short = Counter((base[0], reader.mode) for base, reader in zip(bases, reading, strict=True))
    whole = any(times > 1 for times in short.values())
    names = [" · ".join(base) if whole else base[0] for base in bases]
    return [(reader, shown(name, 200)) for reader, name in zip(reading, names, strict=True)]


def _searched(
    retriever: Retriever, reading: Sequence[tuple[RaggedReader, str]], label: str, options: Options
) -> Import:
    """Return the run of a retriever; the answers aren't part of its identity."""
    sparse = "bm25" in retriever.name.lower()
    kind = {"mode": "sparse", "sparse": "bm25"} if sparse else {"retriever": shown(retriever.member.stem)}
    decided = {"retriever": shown(retriever.name), "ks": []}
    run = _run([retriever.member], label, decided, kind, options)
    rows = lists(retriever.rows, retriever.member)
    ranked = rows.with_columns(run_id=pl.lit(run.run_id), stage=pl.lit("final"))
    said = [_answers(reader, run, name, options) for reader, name in reading]
    return merged((Import(runs=(run,), frames=frames_of(rankings=ranked)), *said))


def _alone(reader: RaggedReader, label: str, options: Options) -> Import:
    """Return the run of a reader whose retriever is unknown, or of one of its other modes."""
    oracle = reader.mode != TOP_K
    decided = {"retriever": None, "ks": list(reader.files), **({"passages": reader.mode} if oracle else {})}
    run = _run([said.member for said in reader.files.values()], label, decided, {}, options)
    said = _answers(reader, run, shown(" · ".join(_folders(reader)), 200), options)
    if oracle:
        return merged((Import(runs=(run,)), said))
    figures = pl.concat([means(said.values, run.run_id, k) for k, said in reader.files.items()])
    note = f"{shown(label)}: what it read is not known, so it has no rankings."
    return merged((Import(runs=(run,), notes=(note,), frames=frames_of(aggregates=figures)), said))


def _run(members: Sequence[Member], label: str, decided: JsonMap, axes: JsonMap, options: Options) -> Run:
    spec = {"name": shown(label, 200), **axes}
    return imported_run(options, label, digest_of(members), importer="ragged", decided=decided, spec=spec)
