"""Answers with their retrieved passages: RAGChecker, MT-RAG, TruLens."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from core.errors import InputError
from core.importers.base import SURE, Options
from core.importers.formats.lists import ListedResults, ResultLists, scored, unseen
from core.importers.formats.lists.query_rows import column_names, number_columns, number_in, row_cells
from core.importers.read.jsons import (
    at,
    expect,
    identifier,
    items,
    mapping,
    number,
    objects,
    outline,
    read_object,
    text,
)
from core.importers.read.member import Archive, Member
from core.importers.report import AS_YOU_WISH, TAKEN, FileReport, settled
from core.importers.samples import FormatSample

_OF_JUDGING = "of judging, or holds no numbers"


def _contexts(sample: FormatSample, held: object, key: str, id_key: str, where: str) -> None:
    """Add the passages in a list of objects to a sample, with their ids, texts and scores."""
    listed = items(held, key, where)
    if listed is not None:
        sample.context_ids = [identifier(one, id_key, where) for one in listed]
        sample.contexts = [text(one, "text", where) for one in listed]
        sample.scores = [number(one, "score", where) for one in listed]


class RagChecker(ResultLists):
    """Results of RAGChecker."""

    name, title = "ragchecker", "RAGChecker results (JSON)"
    takes = {
        **dict.fromkeys(("queries", "passages", "answers"), ""),
        "rankings": "retrieved_context in its order",
        "gold_answers": "gt_answer",
        "answer_scores": "",
        **scored("the metrics of each result, as shares"),
    }
    recognised = "results with query, response and retrieved_context"
    untried = unseen("RAGChecker")
    traps = ("The metrics of the whole are percentages of the same: the means are computed here.",)
    known = {
        "results": {
            **{
                f"results.{key}": TAKEN
                for key in ("query_id", "query", "gt_answer", "response", "metrics",
                            "retrieved_context.doc_id", "retrieved_context.text")
            },
            "results.*": "claims and what entails them: the metrics follow from them",
            "metrics": "means of the results' metrics, which are computed",
        }
    }  # fmt: skip

    @staticmethod
    def kind(member: Member) -> str | None:
        wanted = {"results[].query", "results[].response", "results[].retrieved_context"}
        return "results" if wanted <= outline(member).keys() else None

    def gather(self, member: Member, options: Options) -> ListedResults:  # noqa: ARG002
        samples: list[FormatSample] = []
        for index, held in enumerate(expect(read_object(member), "results", list, member.name)):
            where = at(member.name, "results", index)
            right = text(held, "gt_answer", where)
            sample = FormatSample(
                text=expect(held, "query", str, where),
                query_id=identifier(held, "query_id", where),
                answer=text(held, "response", where),
                right=[right] if right else None,
            )
            _contexts(sample, held, "retrieved_context", "doc_id", where)
            metrics = mapping(held, "metrics", where) or {}
            sample.values = {key: number(metrics, key, where) for key in metrics}
            samples.append(sample)
        return ListedResults(samples={"": samples})


class MtRag(ResultLists):
    """Tasks of MT-RAG with retrieved contexts and answers."""

    name, title = "mt-rag", "MT-RAG tasks and predictions (JSONL)"
    takes = {
        **dict.fromkeys(("queries", "passages"), ""),
        "rankings": "contexts in their order, with their scores",
        "answers": "predictions",
        "gold_answers": "targets",
    }
    recognised = "JSON lines with task_id and contexts with document_id"
    untried = unseen("the benchmark")
    traps = ("The question is the last turn of the user; turns before it are left out.",)
    known = {
        "tasks": {
            **dict.fromkeys(
                ("task_id", "input.text", "input.speaker", "contexts.document_id", "contexts.text",
                 "contexts.score", "targets.text", "predictions.text"), TAKEN
            ),
            "*": "says of the task or the turn what has no place here",
            **dict.fromkeys(("input.*", "contexts.*", "targets.*", "predictions.*"), "has no place here"),
        }
    }  # fmt: skip

    @staticmethod
    def kind(member: Member) -> str | None:
        paths = {path.removeprefix("[].") for path in outline(member)}
        return "tasks" if {"task_id", "contexts[].document_id"} <= paths else None

    def gather(self, member: Member, options: Options) -> ListedResults:  # noqa: ARG002
        samples: list[FormatSample] = []
        for where, held in objects(member):
            turns = [turn for turn in items(held, "input", where) or () if _speaks(turn)]
            right = [said for said in _said(held, "targets", where) if said]
            sample = FormatSample(
                text=(text(turns[-1], "text", where) or "") if turns else "",
                query_id=expect(held, "task_id", str, where),
                answer=next(_said(held, "predictions", where), None),
                right=right or None,
            )
            _contexts(sample, held, "contexts", "document_id", where)
            samples.append(sample)
        return ListedResults(samples={"": samples})


def _speaks(turn: object) -> bool:
    return isinstance(turn, dict) and turn.get("speaker") == "user"


def _said(held: object, key: str, where: str) -> Iterator[str | None]:
    return (text(turn, "text", where) for turn in items(held, key, where) or ())


class TruLens(ResultLists):
    """Records of TruLens with its feedback."""

    name, title = "trulens", "TruLens records and feedback (CSV, JSON, JSONL, Parquet)"
    takes = {
        **dict.fromkeys(("queries", "answers", "answer_scores"), ""),
        **scored("every feedback, a column of numbers"),
        "timings": "latency, from seconds",
    }
    units = "latency (seconds) to milliseconds"
    recognised = "record_id and app_id or app_name beside input and output"
    untried = unseen("TruLens")
    traps = (
        "Costs and calls of a feedback are those of judging, not the stack's.",
        "Its events (OpenTelemetry spans, JSON or SQLite) are not read: offer records with their feedback.",
    )
    _own = ("record_id", "input", "output", "app_id", "app_name", "app_version", "latency")
    _idle = ("type", "tags", "ts", "total_tokens", "total_cost", "num_events", "cost_currency")

    def sniff(self, probe: Archive) -> float:
        names = set(column_names(probe.members[0])) if len(probe.members) == 1 else set()
        return SURE if {"record_id", "input", "output"} <= names and names & {"app_id", "app_name"} else 0.0

    def reports(self, archives: Sequence[Archive], options: Options) -> Iterator[FileReport]:
        for member in (archive.members[0] for archive in archives):
            names, without = column_names(member), options.table_as(member.name).without
            why = dict.fromkeys(names, _OF_JUDGING)
            why |= dict.fromkeys((*self._own, *self._feedback(names, list(row_cells(member)))), TAKEN)
            kind = "key" if outline(member) else "column"
            yield settled(member.name, kind, names, why | dict.fromkeys(without, AS_YOU_WISH))

    def _feedback(self, names: Sequence[str], rows: list[tuple[str, Mapping[str, Any]]]) -> list[str]:
        left = {*self._own, *self._idle}
        return [name for name in number_columns(names, rows) if name not in left and "cost" not in name]

    def gather(self, member: Member, options: Options) -> ListedResults:  # noqa: ARG002
        listed, rows = ListedResults(), list(row_cells(member))
        feedback = self._feedback(column_names(member), rows)
        for where, row in rows:
            asked = _plain(row.get("input"))
            if not asked:
                listed.left["records without an input"] += 1
                continue
            sample = FormatSample(
                text=asked,
                answer=_plain(row.get("output")),
                values={name: number_in(row.get(name), where) for name in feedback},
            )
            if (seconds := number_in(row.get("latency"), where)) is not None:
                if seconds < 0:
                    raise InputError("The latency is negative.", where=where)
                sample.times = {"total": seconds * 1000}
            app = [str(row[key]) for key in ("app_name", "app_version") if row.get(key)]
            listed.samples.setdefault(" ".join(app) or str(row.get("app_id") or ""), []).append(sample)
        return listed


def _plain(cell: object) -> str | None:
    """Return a cell as plain text, even if it is written as JSON."""
    said = str(cell or "").strip()
    if said[:1] == '"' == said[-1:]:
        try:
            said = str(json.loads(said))
        except ValueError:
            return said
    return said or None
