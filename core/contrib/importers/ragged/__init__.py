"""RAGGED: retrievers' rankings, readers' answers, and relevant passages.

A retriever file holds {id, input, output[0].provenance[{page_id, start_par_id, text, score}]}, a reader a
folder per mode and k with {id, answer, gold_answers, answer_evaluation{…}}; gold passages come in KILT's
form, compiled, or as results by passage. A passage is a paragraph of a page: ``page_id:start_par_id``.
``combined_metrics.json`` is not taken: its mean of rougel is wrong; means are recomputed from the values of
each question. Files of several data sets, which share no question, are separate collections.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import polars as pl

from core.contrib.importers.ragged.files import (
    PARTS,
    RIGHT,
    SURELY,
    Gold,
    compilation,
    evaluation,
    judgements,
    kilt,
    kind,
    lacking,
    passage,
    retrieved,
)
from core.contrib.importers.ragged.runs import RaggedReader, Retriever, readers, runs
from core.errors import InputError
from core.importers.base import LIKELY, SURE, Format, Import, Options, counted, frames_of, merged, summed
from core.importers.read.member import Archive, Member
from core.importers.report import file_report
from core.importers.runs import collection_frames, collection_of, slug

_Kind = TypeVar("_Kind", Retriever, Gold, RaggedReader)
_GOLD = {"kilt": kilt, "compilation": compilation, "evaluation": evaluation}


_File = Retriever | Gold | RaggedReader


@dataclass(eq=False)
class _Dataset:
    """Files that share questions."""

    files: list[_File]
    ids: set[str]

    def of(self, kind: type[_Kind]) -> list[_Kind]:
        """Return the files of a kind."""
        return [file for file in self.files if isinstance(file, kind)]

    @property
    def ordered(self) -> list[_File]:
        """Files in order: retrievers, then gold passages, then readers."""
        return [*self.of(Retriever), *self.of(Gold), *self.of(RaggedReader)]

    @property
    def name(self) -> str:
        """Return the name of its first file."""
        first = self.ordered[0]
        return first.name.rsplit("/", 1)[-1] if isinstance(first, RaggedReader) else first.member.stem


class Ragged(Format):
    """Outputs of RAGGED's retrievers and readers."""

    name, title = "ragged", "RAGGED retriever and reader outputs"
    takes = {
        **dict.fromkeys(("queries", "passages"), ""),
        "judgements": "KILT provenance and gold compilation files (relevant); evaluations (gold or not)",
        "rankings": "provenance of the first output in its order; a passage is page_id:start_par_id",
        "answers": "answers of every reader, mode and top_<k>, with the run of the retriever that was read",
        "answer_scores": "every measure of every answer, flags as 1 and 0; the grade is f1, the measure "
        "closest to correctness or the mapped one",
        "gold_answers": "gold_answers of readers, answers of KILT's form, answer_set of compilations",
        "aggregates": "means of every measure at every k where no retriever's lists tell what was read",
    }
    recognised = (
        "output[].provenance[].page_id, answer_evaluation beside an id, page_par_id_set, or passage-level "
        "results"
    )
    traps = (
        "combined_metrics.json is ignored: its mean of rougel is wrong.",
        "The k of answers is the folder's: a reader's file without its top_<k> is left out, alone refused.",
        "Answers of other modes than top_k without their retriever are runs of their own without figures.",
        "retrieved_passages of answers hold one question's passages for all and are never used.",
        "top_positive: the first k gold passages of all that were retrieved, not those within the first k.",
    )
    names_collection = 1

    def sniff(self, probe: Archive) -> float:
        kinds = {kind(member) for member in probe.members}
        return SURE if kinds & SURELY else LIKELY if kinds == {"raw"} else 0.0

    def mine(self, probe: Archive) -> tuple[Member, ...]:
        """Return files of retrievers, readers and gold passages, and the tool's summaries (left out)."""
        return tuple(member for member in probe.members if kind(member))

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        """Read everything; a reader of one of the retrievers forms one run with it."""
        files = [(kind(member), member, archive) for archive in archives for member in archive.members]
        reading, unused = readers(
            [(member, archive) for what, member, archive in files if what in ("reader", "raw")]
        )
        datasets = _together(
            [
                *(Retriever(f"{archive.name}/{member.relative}", member, retrieved(member))
                  for what, member, archive in files if what == "retriever"),
                *(_GOLD[what](member) for what, member, _ in files if what in _GOLD),
                *reading,
            ]
        )  # fmt: skip
        if not datasets:
            raise InputError("It holds no output of a retriever or reader.", where=archives[0].name)
        whole = merged(
            _imported(dataset, own) for dataset, own in zip(datasets, _own(options, datasets), strict=True)
        )
        file_reports = tuple(
            file_report(member, unused.get(member.name, PARTS[what])) for what, member, _ in files
        )
        return replace(whole, left_out=summed(whole.left_out), reports=file_reports)


def _together(files: Sequence[_File]) -> list[_Dataset]:
    datasets: list[_Dataset] = []
    for file in files:
        ids = set(file.asked["id"])
        same = [dataset for dataset in datasets if dataset.ids & ids]
        at = datasets.index(same[0]) if same else len(datasets)
        files_of = [part for one in same for part in one.files]
        datasets = [dataset for dataset in datasets if dataset not in same]
        datasets.insert(at, _Dataset([*files_of, file], ids.union(*(dataset.ids for dataset in same))))
    return datasets


def _own(options: Options, datasets: Sequence[_Dataset]) -> list[Options]:
    """Return the options of every data set.

    If there are several, the names of collection and golden set include the data set's.
    """
    if len(datasets) == 1:
        return [options]
    names = [slug(dataset.name) for dataset in datasets]
    names = [f"{name}-{at}" if names.count(name) > 1 else name for at, name in enumerate(names, 1)]
    golden = options.golden_set_id
    return [
        replace(
            options,
            collection_id=slug(f"{options.collection_id}-{name}"),
            golden_set_id=f"{golden}-{name}" if golden else None,
        )
        for name in names
    ]


def _imported(dataset: _Dataset, options: Options) -> Import:
    return merged(
        (
            Import(collections=collection_of(options, "imported: RAGGED")),
            _collection(dataset, options),
            judgements(dataset.of(Gold), options),
            *runs(dataset.of(Retriever), dataset.of(RaggedReader), options),
        )
    )


def _collection(dataset: _Dataset, options: Options) -> Import:
    retrievers, asked = dataset.of(Retriever), pl.concat([file.asked for file in dataset.ordered])
    known = asked.drop_nulls("input").unique("id", keep="first", maintain_order=True)
    queries = known.select(query_id="id", text="input")
    passages = None
    if retrievers:
        rows = pl.concat([retriever.rows for retriever in retrievers])
        there = rows.filter((pl.col("page_id").fill_null("") != "") & pl.col("text").is_not_null())
        named = there.with_columns(passage_id=passage())
        passages = named.unique("passage_id", keep="first", maintain_order=True).select(
            "passage_id", "text", source="page_id"
        )
    said = (said.right for reader in dataset.of(RaggedReader) for said in reader.files.values())
    right = pl.concat([RIGHT.to_frame(), *(gold.right for gold in dataset.of(Gold)), *said])
    once = right.filter(pl.col("answer") != "").unique(maintain_order=True)
    known_answers = once.with_columns(collection_id=pl.lit(options.collection_id))
    return Import(
        frames={**collection_frames(options, queries, passages), **frames_of(gold_answers=known_answers)},
        left_out=(
            *counted({"questions without a text": len(dataset.ids) - queries.height}, dataset.name),
            *(entry for retriever in retrievers for entry in lacking(retriever.rows, retriever.member)),
        ),
        notes=("A passage is named page_id:start_par_id; lists keep their order.",)[: len(retrievers)],
    )
