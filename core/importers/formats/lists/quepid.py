"""Quepid: exports of a case with its results and their ratings, or with the score of each query.

Queries are identified by their text there. The export of ratings alone (query, docid, rating) is a table.
"""

from __future__ import annotations

import polars as pl

from core.importers.base import Options
from core.importers.formats.lists import ListedResults, ResultLists, scored, unseen
from core.importers.read.member import Member
from core.importers.read.rows import again, identified, numbers, refuse
from core.importers.read.tabular import columns, kind_of, read_table
from core.importers.report import TAKEN
from core.importers.samples import FormatSample

_CASE = {"team": "Team Name", "case": "Case Name", "id": "Case ID", "query_id": "Query Text"}
_FOUND = {"passage_id": "Doc ID", "rank": "Doc Position", "grade": "Rating"}
_SCORED = {"score": "Score"}
SCORE = "Quepid score"


class Quepid(ResultLists):
    """Exports of a case."""

    name, title = "quepid", "Quepid export of a case (CSV)"
    takes = {
        "rankings": "the documents of each query by their position, a run per case",
        "judgements": "their ratings; blank ones are not judged, and counted",
        **scored("the score of each query as its case's scorer gave it"),
        "queries": "",
    }
    recognised = "Team Name, Case Name, Case ID and Query Text beside Doc ID and Rating, or beside Score"
    untried = unseen("Quepid", "built from small inputs of the same layout")
    traps = ("Titles and other fields of a document are no text of it.",)
    known = {
        "found": {**dict.fromkeys((*_CASE.values(), *_FOUND.values()), TAKEN), "*": "a field of a document"},
        "scored": {
            **dict.fromkeys((*_CASE.values(), *_SCORED.values()), TAKEN),
            "*": "says of the query what has no place here",
        },
    }

    @staticmethod
    def kind(member: Member) -> str | None:
        names = set(columns(member))
        if not set(_CASE.values()) <= names:
            return None
        return "found" if set(_FOUND.values()) <= names else "scored" if "Score" in names else None

    def gather(self, member: Member, options: Options) -> ListedResults:  # noqa: ARG002
        found = self.kind(member) == "found"
        table = read_table(member, kind_of(member))
        rows = table.taking(_CASE | (_FOUND if found else _SCORED))
        identified(rows, member.name, "id", "query_id")
        column, listed = "rank" if found else "score", ListedResults()
        rows = rows.with_columns(
            numbers(rows, column, member.name, whole=found).alias(column),
            label=pl.coalesce("case", "id").fill_null(""),
        )
        if found:
            idle = rows["passage_id"].is_null()
            listed.left["queries without a document"] += int(idle.sum())
            rows = rows.filter(~idle)
            refuse(rows.filter(rows["rank"].is_null()), "The position is empty.", member.name, "Doc Position")
            rows = rows.sort("rank", maintain_order=True)
        else:
            problem = "The query {query_id} stands twice in a case of that name."
            refuse(again(rows, "label", "query_id"), problem, member.name, "Query Text")
        cases: dict[tuple[str, str], FormatSample] = {}
        for row in rows.iter_rows(named=True):
            label, query = row["label"], row["query_id"]
            sample = cases.get((label, query))
            if sample is None:
                sample = cases[label, query] = FormatSample(text=query, query_id=query)
                listed.samples.setdefault(label, []).append(sample)
            if found:
                sample.context_ids = [*(sample.context_ids or ()), row["passage_id"]]
                listed.judged.append((query, row["passage_id"], row["grade"]))
            else:
                sample.values = {SCORE: row["score"]}
        return listed
