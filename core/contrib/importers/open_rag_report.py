"""open-rag-eval reports: the JSON at the end of an evaluation, a query with its repeats and their scores.

UMBRELA's scores of passages (0 to 3) are judgements. Passage ids are often positions (``[1]``, ``[2]``) that
restart with every query: if one id has several texts, passages are named by their texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from core.errors import InputError
from core.importers.base import Format, Import, Options, counted, merged
from core.importers.judgements import golden_set
from core.importers.read.jsons import Json, identifier, items, mapping, number, objects, outline, text
from core.importers.read.member import Archive, Member, members_of
from core.importers.read.paths import Fields, PathRow, ValueReader, keys_of
from core.importers.report import TAKEN
from core.importers.samples import AnsweredSamples, FormatSample, answered, assemble, text_id

_LIST = "evaluation"
_SCORES = (
    "retrieval_score_mean_umbrela_score", "generation_score_mean_nugget_assignment_score",
    "generation_score_vital_nuggetizer_score", "generation_score_hallucination_score",
    "generation_score_hallucination_scores", "generation_score_citation_f1_score",
    "generation_score_semantic_similarity", "generation_score_factual_correctness_precision",
    "generation_score_factual_correctness_recall", "generation_score_factual_correctness_f1",
    "generation_score_faithfulness_score",
)  # fmt: skip
_HEAD = ("retrieval_score_", "generation_score_")
_ENTRY: Fields = {"id": ("query_id!", identifier), "query": ("query!", text), "runs": ("runs!", items)}


def _known(reader: ValueReader) -> ValueReader:
    """Make a reader treat NaN as missing: a report writes NaN if a repeat of a query lacks the value."""

    def read(holder: object, key: str, where: str) -> Any:  # noqa: ANN401 - whatever the reader gives
        value = holder.get(key) if isinstance(holder, dict) else None
        return None if isinstance(value, float) and value != value else reader(holder, key, where)  # noqa: PLR0124

    return read


_RUN: Fields = {
    "passages": ("retrieved_passages", _known(mapping)),
    "answer": ("generated_answer", _known(lambda holder, key, _: holder.get(key))),  # type: ignore[attr-defined]
    "grades": ("retrieval_score_umbrela_scores", _known(mapping)),
    **{name: (name, number) for name in _SCORES},
}
_PARTS = {
    **{f"{_LIST}.{key}": TAKEN for key in keys_of(_ENTRY) if key != "runs"},
    **{f"{_LIST}.runs.{key}": TAKEN for key in keys_of(_RUN) if key != "generated_answer"},
    f"{_LIST}.runs.generated_answer.text": TAKEN,
    f"{_LIST}.runs.generated_answer.citations": "citations are not kept apart from the answer",
    f"{_LIST}.runs.retrieval_score_precision_metrics": "they follow from the scores of the passages",
    f"{_LIST}.runs.generation_score_autonugget_scores": "their means are taken",
    f"{_LIST}.runs.generation_score_citation_scores": "their F1 is taken",
    f"{_LIST}.runs.generation_score_no_answer_score": "a yes or no in words",
    f"{_LIST}.consistency": "how alike the repeats are, which is worked out from them here",
    "version": "of the tool",
    "generated_at": "when it was written",
}


class OpenRagReport(Format):
    """Reports that open-rag-eval writes in addition to its tables."""

    name, title = "open-rag-report", "open-rag-eval report (JSON)"
    takes = {
        **dict.fromkeys(("queries", "passages"), ""),
        "judgements": "UMBRELA's scores of passages, 0 to 3",
        "rankings": "retrieved passages in their order; every repeat of the queries is a run",
        "aggregates": "means of the scores",
        "signals": "",
        "answers": "generated answers, their parts put together",
        "answer_scores": "scores of a query: nuggets, citations, hallucination, factual correctness",
    }
    recognised = "evaluation, a list of query_id and runs with retrieved_passages or generated_answer"
    traps = (
        "Passage ids that have several texts are places: passages are then named by their text.",
        "A passage that repeats of a query graded differently keeps the first grade.",
    )
    known = {"report": _PARTS}
    names_collection = 1

    def kind(self, member: Member) -> str | None:
        shape = outline(member)
        run = f"{_LIST}[].runs[]"
        there = f"{_LIST}[].query_id" in shape and run in shape
        return (
            "report"
            if there and {f"{run}.retrieved_passages", f"{run}.generated_answer"} & set(shape)
            else None
        )

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        """Read every repeat of the queries as a run."""
        read = [_Report(member) for member in members_of(archives)]
        parts = [part for report in read for part in report.parts()]
        made = assemble(parts, options, importer=self.name, source="imported: open-rag-eval")
        graded = [imported for report in read if (imported := report.judged(options)) is not None]
        return merged((made, *graded))


@dataclass
class _Report:
    """A parsed report."""

    member: Member
    samples: dict[int, list[FormatSample]] = field(default_factory=dict)  # samples by the index of the repeat
    grades: dict[tuple[str, str], tuple[int, str]] = field(
        default_factory=dict
    )  # query, passage → grade, where
    left: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        entries = [PathRow(entry, _ENTRY, where) for where, entry in objects(self.member, _LIST)]
        if not entries:
            raise InputError("The report holds no query.", where=self.member.name)
        runs = [(entry, at, PathRow(run, _RUN, f"{entry.where}, runs {at}")) for entry in entries
                for at, run in enumerate(entry["runs"], 1)]  # fmt: skip
        texts: dict[str, set[str]] = {}
        for _, _, run in runs:
            for own, said in _texts(run):
                texts.setdefault(own, set()).add(said)
        self.by_place = any(len(said) > 1 for said in texts.values())
        for entry, at, run in runs:
            self._take(entry, at, run)

    def _take(self, entry: PathRow, at: int, run: PathRow) -> None:
        held = list(_texts(run))
        ids = [text_id(said, "t") if self.by_place else own for own, said in held]
        values = {name.removeprefix(_HEAD[0]).removeprefix(_HEAD[1]): run[name] for name in _SCORES}
        self.samples.setdefault(at, []).append(
            FormatSample(
                text=entry["query"],
                query_id=entry["id"],
                answer=_answer(run),
                contexts=[said for _, said in held],
                context_ids=None if self.by_place else ids,
                values={name: value for name, value in values.items() if value is not None},
            )
        )
        self._grade(entry["id"], dict(zip((own for own, _ in held), ids, strict=True)), run)

    def _grade(self, query_id: str, named: Mapping[str, str], run: PathRow) -> None:
        scores = run["grades"] or {}
        for own in scores:
            if own not in named:
                self.left["UMBRELA scores of passages that are not listed"] += 1
                continue
            grade = number(scores, own, run.where)
            if grade is None:
                continue
            first = self.grades.setdefault((query_id, named[own]), (round(grade), run.where))
            self.left["grades that differ from those of an earlier repeat"] += first[0] != round(grade)

    def parts(self) -> Iterator[AnsweredSamples]:
        """Yield a run for each repeat of the queries."""
        notes = [
            f"{self.member.name}: its passage ids have several texts, so passages are named by their text."
        ]
        rest = Import(
            notes=tuple(notes if self.by_place else ()), left_out=counted(self.left, self.member.name)
        )
        for at, samples in sorted(self.samples.items()):
            made = answered(self.member, samples)
            label = "" if len(self.samples) == 1 else f"{self.member.stem} · run {at}"
            yield replace(
                made, label=label, decided={"run": at}, rest=rest if at == min(self.samples) else Import()
            )

    def judged(self, options: Options) -> Import | None:
        """Return the grades as a golden set, or None if there are none."""
        if not self.grades:
            return None
        rows = [(query, passage, str(grade)) for (query, passage), (grade, _) in self.grades.items()]
        table = pl.DataFrame(rows, ["query_id", "passage_id", "grade"], orient="row")
        table = table.with_columns(line=pl.int_range(1, pl.len() + 1))
        return golden_set(
            table, self.member.name, f"{self.member.stem}-umbrela", options, "UMBRELA", from_zero=True
        )


def _texts(run: PathRow) -> Iterator[tuple[str, str]]:
    """Yield the id and the text of a repeat's passages, in order."""
    held: Json = run["passages"] or {}
    for own in held:
        if said := text(held, own, f"{run.where}, retrieved_passages"):
            yield own, said


def _answer(run: PathRow) -> str | None:
    said = run["answer"]
    if isinstance(said, list):
        return " ".join(part for entry in said if (part := text(entry, "text", run.where))).strip() or None
    if said is not None and not isinstance(said, str):
        raise InputError("The answer is neither a text nor a list of parts.", where=run.where)
    return said or None
