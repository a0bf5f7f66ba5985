"""EnterpriseRAG-Bench (arXiv:2605.05253): questions, the answers of a system, their evaluation results.

Answers name the documents they are based on, in order. Evaluation results belong to the answers
offered along with them, or to those of a similar name if there are several.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from core.errors import InputError
from core.importers.base import Format, Import, Options, counted, frames_of, merged
from core.importers.judgements import golden_set
from core.importers.read.jsons import identifier, number, objects, optional, outline, text, texts
from core.importers.read.member import Archive, Member, members_of
from core.importers.read.paths import Fields, PathRow, keys_of
from core.importers.report import TAKEN
from core.importers.runs import collection_frames, collection_of
from core.importers.samples import AnsweredSamples, FormatSample, answered, assemble
from core.tables import Pieces

_LIST = "questions"
_QUESTION: Fields = {
    "id": ("question_id!", identifier), "text": ("question!", text), "type": ("question_type", text),
    "sources": ("source_types", texts), "documents": ("expected_doc_ids", texts),
    "right": ("gold_answer", text),
}  # fmt: skip
_ANSWER: Fields = {
    "id": ("question_id!", identifier), "answer": ("answer", text), "documents": ("document_ids", texts),
}  # fmt: skip
_FLAG = {"answer_correctness": "answer_correct"}
_PERCENT = {"completeness": "completeness_pct", "document_recall": "document_recall_pct"}
_COUNT = {"invalid_extra_docs": "invalid_extra_docs"}
_RESULT: Fields = {
    "id": ("question_id!", identifier),
    **{
        name: (key, lambda holder, key, where: optional(holder, key, bool, where))
        for name, key in _FLAG.items()
    },
    **{name: (key, number) for name, key in (_PERCENT | _COUNT).items()},
}
_ROWS = pl.Schema(
    {
        **dict.fromkeys(("query_id", "text"), pl.String()),
        **dict.fromkeys(("tags", "documents"), pl.List(pl.String)),
        "right": pl.String(),
    }
)
_NO_ANSWER = "info_not_found"  # The type of questions that the documents don't answer


class EnterpriseRag(Format):
    """Files of EnterpriseRAG-Bench."""

    name, title = "enterprise-rag-bench", "EnterpriseRAG-Bench (questions, answers, results)"
    takes = {
        "queries": "questions with their type and sources as tags",
        "judgements": "expected documents are relevant",
        "gold_answers": "gold answers",
        "rankings": "documents of an answer, in their order",
        "aggregates": "means of the results",
        "signals": "",
        "answers": "answers",
        "answer_scores": "correctness, completeness, recall of the documents, invalid extra ones",
    }
    units = "percentages to shares"
    recognised = (
        "JSON lines with question_id, question and expected_doc_ids; with question_id and document_ids; or "
        "JSON with questions of question_id and answer_correct"
    )
    traps = (
        "Questions of type info_not_found have no document: they are tagged unanswerable, not judged.",
        "The documents themselves are text files named by their id: a folder for `run`, not an import.",
        "Results without answers are left out: offer both.",
    )
    known = {
        "questions": {
            **dict.fromkeys(keys_of(_QUESTION), TAKEN),
            "answer_facts": "they are parts of the gold answer",
        },
        "answers": dict.fromkeys(keys_of(_ANSWER), TAKEN),
        "results": {
            **{f"{_LIST}.{key}": TAKEN for key in keys_of(_RESULT)},
            f"{_LIST}.question_type": "the questions' own file has it",
            f"{_LIST}.gold_answer_updated": "a note of the evaluation",
            "aggregate_stats": "they follow from the questions",
            "question_type_stats": "they follow from the questions",
            "updated_question_file": "a path of another machine",
        },
    }
    names_collection = 1

    def kind(self, member: Member) -> str | None:
        shape = {path.removeprefix("[]").removeprefix(".") for path in outline(member)}
        if {"question_id", "question", "expected_doc_ids"} <= shape:
            return "questions"
        if {"question_id", "document_ids"} <= shape:
            return "answers"
        return "results" if {f"{_LIST}[].question_id", f"{_LIST}[].answer_correct"} <= shape else None

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        """Read all files offered together."""
        files: dict[str, list[Member]] = {"questions": [], "answers": [], "results": []}
        for member in members_of(archives):
            files[self.kind(member) or "questions"].append(member)
        asked = [_Asked.read(member) for member in files["questions"]]
        known = {name: said for one in asked for name, said in one.texts.items()}
        of, alone = _paired(files["answers"], files["results"])
        runs = [_answers(member, of.get(member.name), known) for member in files["answers"]]
        made = [one.made(options) for one in asked]
        if runs:
            ran = assemble(runs, options, importer=self.name, source="imported: EnterpriseRAG-Bench")
            made.append(_without_texts(ran))
        elif not asked:
            raise InputError(
                "These results come without answers.", where=alone[0].name, do="Offer the answers, too."
            )
        left = counted({"results: their answers are not offered, or cannot be told": len(alone)}, "")
        return merged((*made, Import(left_out=left)))


@dataclass(frozen=True)
class _Asked:
    """The questions of a file."""

    member: Member
    rows: pl.DataFrame  # query_id, text, tags, documents, right
    texts: Mapping[str, str]  # texts of questions, by id

    @classmethod
    def read(cls, member: Member) -> _Asked:
        rows = []
        for where, entry in objects(member):
            row = PathRow(entry, _QUESTION, where)
            kind, sources = row["type"], row["sources"] or ()
            tags = [f"type={kind}"] if kind else []
            tags += [f"source={source}" for source in sources]
            tags += ["unanswerable"] if kind == _NO_ANSWER else []
            rows.append((row["id"], row["text"], tags, row["documents"] or [], row["right"]))
        table = pl.DataFrame(rows, _ROWS, orient="row")
        again = table.filter(pl.col("query_id").is_duplicated())
        if again.height:
            raise InputError(f"The question {again['query_id'][0]!r} stands twice.", where=member.name)
        return cls(member, table, dict(table.select("query_id", "text").iter_rows()))

    def made(self, options: Options) -> Import:
        """Return questions, gold answers and judgements."""
        queries = self.rows.select("query_id", "text", "tags")
        right = self.rows.select("query_id", answer="right").filter(pl.col("answer").fill_null("") != "")
        right = right.with_columns(collection_id=pl.lit(options.collection_id))
        plain = Import(
            collections=collection_of(options, "imported: EnterpriseRAG-Bench"),
            frames={**collection_frames(options, queries), **frames_of(gold_answers=right)},
        )
        pairs = self.rows.select("query_id", passage_id="documents").explode("passage_id", empty_as_null=True)
        pairs = pairs.drop_nulls().unique(maintain_order=True)
        if pairs.is_empty():
            return plain
        graded = pairs.with_columns(grade=pl.lit("1"), line=pl.int_range(1, pl.len() + 1))
        return merged(
            (plain, golden_set(graded, self.member.name, self.member.stem, options, "EnterpriseRAG-Bench"))
        )


def _paired(answers: Sequence[Member], results: Sequence[Member]) -> tuple[dict[str, Member], list[Member]]:
    """Return the results of each file of answers by its name, and those that match none."""
    if len(answers) == 1 and len(results) == 1:
        return {answers[0].name: results[0]}, []
    ends = {member.stem.removeprefix("results"): member for member in results}
    of = {
        member.name: ends[end] for member in answers if (end := member.stem.removeprefix("answers")) in ends
    }
    return of, [member for member in results if member not in of.values()]


def _answers(member: Member, results: Member | None, known: Mapping[str, str]) -> AnsweredSamples:
    found = {} if results is None else dict(_found(results))
    samples = []
    for where, entry in objects(member):
        row = PathRow(entry, _ANSWER, where)
        samples.append(
            FormatSample(
                text=known.get(row["id"], ""),
                query_id=row["id"],
                answer=row["answer"],
                context_ids=row["documents"] or [],
                values=found.pop(row["id"], {}),
            )
        )
    if len({sample.query_id for sample in samples}) < len(samples):
        raise InputError("A question is answered twice.", where=member.name, do="Keep one answer of each.")
    left = counted(
        {"results of questions without an answer": len(found)}, "" if results is None else results.name
    )
    return replace(answered(member, samples), rest=Import(left_out=left))


def _found(member: Member) -> Iterator[tuple[str, dict[str, float | None]]]:
    """Yield the evaluation results of each question, as shares and counts."""
    for where, entry in objects(member, _LIST):
        row = PathRow(entry, _RESULT, where)
        values = {name: None if row[name] is None else float(row[name]) for name in (*_FLAG, *_COUNT)}
        values |= {name: None if row[name] is None else row[name] / 100 for name in _PERCENT}
        yield row["id"], values


def _without_texts(ran: Import) -> Import:
    """Drop questions of which only the id is known: their own file has them."""
    queries = ran.frames.get("queries")
    if queries is None or isinstance(queries, Pieces):
        return ran
    kept = {name: rows for name, rows in ran.frames.items() if name != "queries"}
    return replace(ran, frames=kept)
