"""RAGAS results: a row per question with contexts, response, reference and a column for every metric.

They come as CSV, JSON lines or a JSON list, with names of older releases too. A JSON map of annotated metrics
(which of a judge's verdicts people accepted) is read as well.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import polars as pl

from core.errors import InputError
from core.importers.base import LOOK_ROWS, Format, Import, Look, Options, counted
from core.importers.judgements import VALUE
from core.importers.read.jsons import (
    MOST_BYTES,
    Json,
    at,
    expect,
    identifier,
    items,
    number,
    objects,
    optional,
    outline,
    read_json,
    text,
    texts,
    words,
)
from core.importers.read.member import Archive, Member, members_of
from core.importers.read.paths import Fields, PathRow, keys_of
from core.importers.read.rows import id_list, text_list
from core.importers.read.tabular import Table, columns, first_rows, kind_of, read_table
from core.importers.read.text import no_column, place
from core.importers.report import AS_YOU_WISH, TAKEN, FileReport, file_report, settled
from core.importers.samples import SAMPLE, AnsweredSamples, assemble, completed

_OTHER = {"rubrics", "rubric", "id", "synthesizer_name",
          "persona_name", "query_style", "query_length", "multi_responses", "line"}  # fmt: skip
_NO_PLACE = "says of the question or its reference what has no place here"
_INDEX = ("", "Unnamed: 0")  # pandas' names for a column of row numbers
_IDS = ("query_id", "question_id")
_LISTS = ("contexts", "context_ids", "references", "reference_ids", "right")
_ID_LISTS = ("context_ids", "reference_ids")
_SEVERAL = "ground_truths"  # The name that older releases gave to lists of right answers
_ANNOTATED = ("metric_input", "metric_output")


def _ids(holder: object, key: str, where: str) -> list[str] | None:
    listed = items(holder, key, where)
    named = listed and [str(item) if type(item) is int else item for item in listed]
    return texts({key: named}, key, where)


def _right(holder: object, key: str, where: str) -> list[str] | None:
    value = holder.get(key) if isinstance(holder, dict) else None
    return [value] if isinstance(value, str) else texts(holder, key, where)


_ROLES: Fields = {
    "text": ("user_input/question", words),
    "answer": ("response/answer", text),
    "contexts": ("retrieved_contexts/contexts", texts),
    "context_ids": ("retrieved_context_ids", _ids),
    "references": ("reference_contexts/ground_truth_contexts", texts),
    "reference_ids": ("reference_context_ids", _ids),
    "right": ("reference/ground_truth/ground_truths", _right),
}
_GIVEN: Fields = {
    role: (path.partition("/")[0], reader)
    for role, (path, reader) in _ROLES.items()
    if not role.endswith("_ids")
}
"""Fields of an annotated metric's input."""


class Ragas(Format):
    """Results of RAGAS."""

    name, title = "ragas", "RAGAS results (CSV, JSONL, JSON)"
    takes = {
        **dict.fromkeys(("queries", "passages"), ""),
        "judgements": "reference contexts, where they are passages that were retrieved",
        "rankings": "retrieved contexts in their order; passages without ids are named by their text",
        "aggregates": "",
        "signals": "every column of numbers; its mean and n as an aggregate",
        "answers": "responses",
        "answer_scores": "every column of numbers; the grade is the one closest to correctness, or as mapped",
        "gold_answers": "references, ground truths",
    }
    recognised = "user_input beside retrieved_contexts, response or reference; or question, contexts, answer"
    traps = (
        "Metrics without a value are missing, not 0, and counted.",
        "References that are no retrieved passage word for word make no judgements.",
        "Conversations of several turns have no single question and are left out.",
        "Lists that NumPy printed without commas are taken apart at their quotes.",
    )
    names_collection = 1

    @staticmethod
    def kind(member: Member) -> str | None:
        """Return a file's kind by its head: rows in a table or in JSON, annotated metrics, or None."""
        shape = outline(member)
        if any(path.endswith(f"[].{_ANNOTATED[0]}.user_input") for path in shape):
            return "annotated"
        prefix = "[]." if "list" in shape.get("", ()) else ""
        keys = {path.removeprefix(prefix) for path in shape if path.startswith(prefix)}
        names = keys if shape else set(columns(member))
        new = "user_input" in names and names & {"retrieved_contexts", "response", "reference"}
        if not new and not {"question", "contexts", "answer"} <= names:
            return None
        return "objects" if shape else "table"

    def look(self, archive: Archive, options: Options) -> Look:
        rows = None if outline(archive.members[0]) else first_rows(archive.members[0], LOOK_ROWS)
        return super().look(archive, options) if rows is None else Look(rows)

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        """Read every file as a run; questions and passages with the same text are the same."""
        runs = [_read(member, options.table_as(member.name).without) for member in members_of(archives)]
        return assemble(runs, options, importer=self.name, source="imported: RAGAS")


def _read(member: Member, without: Collection[str]) -> AnsweredSamples:
    kind = Ragas.kind(member)
    if kind == "annotated":
        return _annotated(member)
    if kind == "objects":
        return _objects(member, list(objects(member, most=MOST_BYTES)), without)
    form = kind_of(member)
    if form is None or form == "jsonl":
        raise InputError("This is neither a table nor JSON with questions in it.", where=member.name)
    return _table(read_table(member, form), member, without)


def _roles(names: Sequence[str], where: str) -> dict[str, str]:
    aliases = {role: path.split("/") for role, (path, _) in _ROLES.items()}
    roles = {role: next((name for name in aliases[role] if name in names), "") for role in _ROLES}
    if not roles["text"]:
        raise no_column("user_input", names, where)
    return {role: name for role, name in roles.items() if name}


def _table(table: Table, member: Member, without: Collection[str]) -> AnsweredSamples:
    names = [name for name in table.rows.columns if name not in without]
    roles = _roles(names, member.name)
    own = next((name for name in _IDS if name in names), None)
    known = table.taking({**roles, **({"query_id": own} if own else {})})
    lists: list[pl.Series | pl.Expr] = []
    for role in (name for name in _LISTS if name in roles):
        column = roles[role]
        if isinstance(table.rows[column].dtype, pl.List):
            lists.append(table.rows[column].cast(pl.List(pl.String)).alias(role))
        elif role == "right" and column != _SEVERAL:
            lists.append(pl.when(pl.col(role).is_not_null()).then(pl.concat_list(role)).alias(role))
        else:
            parse = id_list if role in _ID_LISTS else text_list
            cells = known.select(role, "line").iter_rows()
            parsed = [parse(cell, place(member.name, line, column)) for cell, line in cells]
            lists.append(pl.Series(role, parsed, dtype=pl.List(pl.String)))
    rest = _numbered(names, roles, own)
    texts_of = table.taking({name: name for name in rest})
    values = {name: texts_of[name].cast(pl.Float64, strict=False) for name in rest}
    metrics = {
        name: series for name, series in values.items() if series.null_count() == texts_of[name].null_count()
    }
    there = _account(member, "column", table.rows.columns, {*roles.values(), own or "", *metrics}, without)
    return _finished(member, known.with_columns(lists), metrics, there)


def _objects(member: Member, spots: Sequence[tuple[str, Json]], without: Collection[str]) -> AnsweredSamples:
    keys = list(dict.fromkeys(key for _, row in spots for key in row))
    names = [name for name in keys if name not in without]
    roles = _roles(names, member.name)
    own = next((name for name in _IDS if name in names), None)
    table = {role: (name, _ROLES[role][1]) for role, name in roles.items()}
    table |= {"query_id": (own, identifier)} if own else {}
    read = [PathRow(row, table, where) for where, row in spots]
    rows = [{role: row[role] for role in table} for row in read]
    metrics = {
        name: pl.Series(name, [number(row, name, where) for where, row in spots], dtype=pl.Float64)
        for name in _numbered(names, roles, own)
        if all(type(row.get(name)) in (int, float, type(None)) for _, row in spots)
    }
    dtypes = {role: dtype for role, dtype in SAMPLE.items() if role in roles or role == "query_id"}
    frame = pl.DataFrame(rows, schema_overrides=dtypes, infer_schema_length=None)
    there = _account(member, "key", keys, {*roles.values(), own or "", *metrics}, without)
    return _finished(member, frame, metrics, there)


def _finished(
    member: Member, rows: pl.DataFrame, metrics: Mapping[str, pl.Series], there: FileReport
) -> AnsweredSamples:
    rows = rows.with_columns(*metrics.values())
    silent = (pl.col("text").fill_null("").str.strip_chars() == "") | (
        pl.col("text").str.contains(r"^\[(\{|\w+Message\()")
    )
    asked = rows.filter(~silent)
    if asked.is_empty():
        raise InputError("No row holds a question.", where=member.name)
    asked = completed(asked)
    values = asked.select("query_id", *metrics).unpivot(
        index="query_id", variable_name="signal", value_name="value"
    )
    again = asked.height - asked["text"].n_unique()
    repeated = f"{member.name}: {again} rows repeat a question; each counts as a question of its own."
    left = {"rows without a single question (empty, or a conversation)": rows.height - asked.height}
    return AnsweredSamples(
        member=member,
        rows=asked,
        values=values.cast(VALUE) if metrics else VALUE.to_frame(),
        decided={"metrics": sorted(metrics)},
        rest=Import(
            left_out=counted(left, member.name), notes=(repeated,) if again else (), reports=(there,)
        ),
    )


def _numbered(names: Sequence[str], roles: Mapping[str, str], own: str | None) -> list[str]:
    return [name for name in names if name not in (*roles.values(), own, *_OTHER, *_INDEX)]


def _account(
    member: Member, kind: str, names: Sequence[str], taken: Collection[str], without: Collection[str]
) -> FileReport:
    why = dict.fromkeys(names, "holds no numbers") | dict.fromkeys(_OTHER, _NO_PLACE)
    why |= dict.fromkeys(_INDEX, "numbers the rows")
    named = [name for name in names if name != "line"]
    why |= {**dict.fromkeys(taken, TAKEN), **dict.fromkeys(without, AS_YOU_WISH)}
    return settled(member.name, kind, named, why)


def _annotated(member: Member) -> AnsweredSamples:
    """Return judges' verdicts, metric by metric, with people's annotations."""
    value = read_json(member)
    if not isinstance(value, dict):
        raise InputError("It is not a map of metrics.", where=member.name)
    rows: list[Json] = []
    values: list[dict[str, float | None]] = []
    for metric in value:
        for index, item in enumerate(expect(value, metric, list, member.name)):
            where = at(member.name, metric, index)
            given = PathRow(expect(item, _ANNOTATED[0], dict, where), _GIVEN, where)
            rows.append({role: given[role] for role in _GIVEN})
            accepted = optional(item, "is_accepted", bool, where)
            values.append({metric: number(item, _ANNOTATED[1], where)})
            if accepted is not None:
                values[-1][f"{metric} accepted"] = float(accepted)
    if not rows:
        raise InputError("It holds no annotated sample.", where=member.name)
    frame = pl.DataFrame(rows, schema={role: SAMPLE[role] for role in ("query_id", *_GIVEN)}, orient="row")
    metrics = pl.DataFrame(values, infer_schema_length=None).cast(pl.Float64)
    keys = keys_of(_GIVEN, f"*.{_ANNOTATED[0]}.")
    parts = dict.fromkeys((*keys, *(f"*.{name}" for name in (_ANNOTATED[1], "is_accepted"))), TAKEN)
    return _finished(member, frame, {column.name: column for column in metrics}, file_report(member, parts))
