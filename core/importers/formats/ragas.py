"""RAGAS results: a row per question with contexts, response, reference and a column for every metric.

CSV, JSON lines or a JSON list of them; names of the older releases too. A JSON map of annotated metrics (what
people accepted of a judge's verdicts) is read as well.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from core.errors import InputError
from core.importers.account import TAKEN, account, settled
from core.importers.base import LOOK_ROWS, SURE, Format, Import, LeftOut, Look, Options, merged
from core.importers.formats.cells import id_list, text_list
from core.importers.read.jsons import (
    MOST_BYTES,
    Json,
    at,
    expect,
    json_rows,
    kind_of_value,
    number,
    optional,
    read_json,
    texts,
)
from core.importers.read.outline import outline
from core.importers.read.piece import Piece, Tree
from core.importers.read.tabular import PARQUET, Table, first_rows, header, kind_of, read_table
from core.importers.read.text import place, shown
from core.importers.samples import SAMPLE, VALUE, Answered, assemble, with_ids

_ROLES: Mapping[str, tuple[str, ...]] = {
    "text": ("user_input", "question"),
    "answer": ("response", "answer"),
    "contexts": ("retrieved_contexts", "contexts"),
    "context_ids": ("retrieved_context_ids",),
    "references": ("reference_contexts", "ground_truth_contexts"),
    "reference_ids": ("reference_context_ids",),
}
_OTHER = {"reference", "ground_truth", "ground_truths", "rubrics", "rubric", "id", "synthesizer_name",
          "persona_name", "query_style", "query_length", "multi_responses", "line"}  # fmt: skip
_NO_PLACE = "says of the question or its reference what has no place here"
_INDEX = ("", "Unnamed: 0")
"""What pandas calls the numbers of rows."""
_IDS = ("query_id", "question_id")
_LISTS = ("contexts", "context_ids", "references", "reference_ids")
_ID_LISTS = ("context_ids", "reference_ids")
_ANNOTATED = ("metric_input", "metric_output")


class Ragas(Format):
    """Results of RAGAS."""

    name, title = "ragas", "RAGAS results (CSV, JSONL, JSON)"
    brings = ("queries", "passages", "judgements", "rankings", "aggregates", "signals", "answers")
    takes = {  # noqa: RUF012
        "rankings": "retrieved contexts in their order; passages without ids are named by their text",
        "judgements": "reference contexts, where they are passages that were retrieved",
        "signals": "every column of numbers; its mean and n as an aggregate",
        "answers": "responses, graded by the metric closest to correctness or by the one that is mapped",
    }
    recognised = "user_input beside retrieved_contexts, response or reference; or question, contexts, answer"
    traps = (
        "Metrics without a value are missing, not 0, and counted.",
        "References that are no retrieved passage word for word make no judgements.",
        "Conversations of several turns have no single question and are left out.",
        "Lists that NumPy printed without commas are taken apart at their quotes.",
    )
    names_collection = 1

    def sniff(self, probe: Tree) -> float:
        """Questions beside contexts or responses under the names that RAGAS gives them."""
        return SURE if probe.pieces and all(map(_kind, probe.pieces)) else 0.0

    def look(self, tree: Tree, options: Options) -> Look:
        """The first rows, where they are a table."""
        piece = tree.pieces[0]
        rows = None if outline(piece) else first_rows(piece, LOOK_ROWS)
        return super().look(tree, options) if rows is None else Look(rows)

    def read(self, trees: Sequence[Tree], options: Options) -> Import:
        """Every file is a run; questions and passages of the same text are the same."""
        found = [_read(piece) for tree in trees for piece in tree.pieces]
        made = assemble([each for each, _ in found], options, importer=self.name, source="imported: RAGAS")
        return merged((made, *(rest for _, rest in found)))


def _kind(piece: Piece) -> str | None:
    """Rows in a table or in JSON, annotated metrics, or None; by the names in the file's head."""
    shape = outline(piece)
    if any(each.endswith(f"[].{_ANNOTATED[0]}.user_input") for each in shape):
        return "annotated"
    if shape:
        prefix = "[]." if "list" in shape[""] else ""
        names = {each.removeprefix(prefix) for each in shape if each.startswith(prefix)}
        return ("list" if prefix else "lines") if _looks(names) else None
    kind = kind_of(piece)
    if kind is None or kind == "jsonl":
        return None
    try:
        return "table" if _looks(set(header(piece, kind))) else None
    except InputError:
        return None


def _looks(names: set[str]) -> bool:
    new = "user_input" in names and bool({"retrieved_contexts", "response", "reference"} & names)
    return new or {"question", "contexts", "answer"} <= names


def _read(piece: Piece) -> tuple[Answered, Import]:
    """The run of a file, and what was left out."""
    kind = _kind(piece)
    if kind == "annotated":
        return _annotated(piece)
    if kind == "list":
        value = read_json(piece)
        held = {"rows": value}
        return _objects(piece, [(None, row) for row in expect(held, "rows", list, piece.name)])
    if kind == "lines":
        return _objects(piece, list(json_rows(piece, MOST_BYTES)))
    form = "parquet" if piece.head.startswith(PARQUET) else kind_of(piece)
    if form is None or form == "jsonl":
        raise InputError("This is neither a table nor JSON with questions in it.", where=piece.name)
    return _table(read_table(piece, form), piece)


def _roles(names: Sequence[str], where: str) -> dict[str, str]:
    """Role → column that has it."""
    found = {
        role: next((alias for alias in aliases if alias in names), "") for role, aliases in _ROLES.items()
    }
    if not found["text"]:
        raise InputError(
            f"No column 'user_input'; found: {', '.join(shown(name, 40) for name in names[:12])}.",
            where=where,
        )
    return {role: name for role, name in found.items() if name}


def _table(table: Table, piece: Piece) -> tuple[Answered, Import]:
    names = table.rows.columns
    roles = _roles(names, piece.name)
    own = next((name for name in _IDS if name in names), None)
    known = table.taking({**roles, **({"query_id": own} if own else {})})
    lists = {
        role: [
            (id_list if role in _ID_LISTS else text_list)(cell, place(piece.name, line, roles[role]))
            for cell, line in known.select(role, "line").iter_rows()
        ]
        for role in _LISTS
        if role in roles and not isinstance(table.rows[roles[role]].dtype, pl.List)
    }
    native = {
        role: table.rows[roles[role]].cast(pl.List(pl.String))
        for role in _LISTS
        if role in roles and role not in lists
    }
    rows = known.with_columns(
        *(pl.Series(role, cells, dtype=pl.List(pl.String)) for role, cells in lists.items()),
        *(cells.alias(role) for role, cells in native.items()),
    )
    rest = _numbered(names, roles, own)
    cells = table.taking({name: name for name in rest}) if rest else pl.DataFrame()
    metrics = {
        name: cells[name].cast(pl.Float64, strict=False)
        for name in rest
        if not (cells[name].is_not_null() & cells[name].cast(pl.Float64, strict=False).is_null()).any()
    }
    done = _finished(piece, rows, metrics)
    return _accounted(done, piece, "column", names, {*roles.values(), own or "", *metrics})


def _objects(piece: Piece, objects: Sequence[tuple[int | None, Any]]) -> tuple[Answered, Import]:
    names = list(dict.fromkeys(key for _, each in objects if isinstance(each, dict) for key in each))
    roles = _roles(names, piece.name)
    own = next((name for name in _IDS if name in names), None)
    rest = _numbered(names, roles, own)
    rows: list[Json] = []
    for index, (line, each) in enumerate(objects):
        where = at(piece.name, line=line) if line else at(piece.name, index)
        made: Json = {"line": line or index + 1, "query_id": _id(each, own, where)}
        for role, name in roles.items():
            made[role] = _part(each, name, where, role)
        rows.append(made)
    metrics = {}
    for name in rest:
        values = [each.get(name) for _, each in objects]
        if all(
            value is None or (isinstance(value, int | float) and not isinstance(value, bool))
            for value in values
        ):
            checked = [
                number(each, name, at(piece.name, line=line) if line else at(piece.name, index))
                for index, (line, each) in enumerate(objects)
            ]
            metrics[name] = pl.Series(name, checked, dtype=pl.Float64)
    frame = pl.DataFrame(rows, schema_overrides=_schema(roles), infer_schema_length=None)
    done = _finished(piece, frame, metrics)
    return _accounted(done, piece, "key", names, {*roles.values(), own or "", *metrics})


def _schema(roles: Mapping[str, str]) -> dict[str, Any]:
    return {role: dtype for role, dtype in SAMPLE.items() if role in roles or role == "query_id"}


def _id(row: object, own: str | None, where: str) -> str | None:
    value = row.get(own) if own and isinstance(row, dict) else None
    if value is None or isinstance(value, str):
        return value or None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise InputError(f"{shown(own)!r} is {kind_of_value(value)}, not an id.", where=where)


def _part(row: object, name: str, where: str, role: str) -> object:
    """A text or a list of them; ids may be integers."""
    if role in ("text", "answer"):
        return _text_or_none(row, name, where, role)
    if role in _ID_LISTS and isinstance(row, dict) and isinstance(row.get(name), list):
        row = {name: [str(each) if type(each) is int else each for each in row[name]]}
    return texts(row, name, where)


def _text_or_none(row: object, name: str, where: str, role: str) -> str | None:
    """A text; a conversation (a list of messages) has none."""
    if role == "text" and isinstance(row, dict) and isinstance(row.get(name), list):
        return None
    return optional(row, name, str, where)


def _finished(piece: Piece, rows: pl.DataFrame, metrics: Mapping[str, pl.Series]) -> tuple[Answered, Import]:
    """Give the rows the columns of samples; leave out those without a question."""
    missing = [pl.lit(None, dtype).alias(name) for name, dtype in SAMPLE.items() if name not in rows.columns]
    rows = rows.with_columns(*missing, *metrics.values())
    silent = (pl.col("text").fill_null("").str.strip_chars() == "") | (
        pl.col("text").str.contains(r"^\[(\{|\w+Message\()")
    )
    asked = rows.filter(~silent)
    if asked.is_empty():
        raise InputError("No row holds a question.", where=piece.name)
    asked = with_ids(asked)
    values = asked.select("query_id", *metrics).unpivot(
        index="query_id", variable_name="signal", value_name="value"
    )
    answered = Answered(
        label="",
        name=piece.name,
        stem=piece.stem,
        digest=piece.digest,
        rows=asked.select(list(SAMPLE)),
        values=values.cast(VALUE) if metrics else pl.DataFrame(schema=VALUE),
        decided={"metrics": sorted(metrics)},
    )
    left = []
    if asked.height < rows.height:
        why = "rows without a single question (empty, or a conversation)"
        left.append(LeftOut(rows.height - asked.height, why, piece.name))
    return answered, Import(left_out=tuple(left), notes=_notes(asked, piece))


def _numbered(names: Sequence[str], roles: Mapping[str, str], own: str | None) -> list[str]:
    """The columns or keys that may be metrics."""
    return [name for name in names if name not in (*roles.values(), own, *_OTHER, *_INDEX)]


def _accounted(
    done: tuple[Answered, Import], piece: Piece, kind: str, names: Sequence[str], taken: Collection[str]
) -> tuple[Answered, Import]:
    """What was read, with what was taken and left out of the columns or keys of a file."""
    why = dict.fromkeys(names, "holds no numbers") | dict.fromkeys(_OTHER, _NO_PLACE)
    why |= dict.fromkeys(_INDEX, "numbers the rows")
    there = settled(piece.name, kind, [name for name in names if name != "line"],
                    {**why, **dict.fromkeys(taken, TAKEN)})  # fmt: skip
    return done[0], replace(done[1], accounts=(there,))


def _notes(asked: pl.DataFrame, piece: Piece) -> tuple[str, ...]:
    again = asked.height - asked["text"].n_unique()
    if not again:
        return ()
    return (f"{piece.name}: {again} rows repeat a question; each counts as a question of its own.",)


def _annotated(piece: Piece) -> tuple[Answered, Import]:
    """Verdicts of judges, metric by metric, with what people thought of them."""
    value = read_json(piece)
    if not isinstance(value, dict):
        raise InputError("It is not a map of metrics.", where=piece.name)
    rows: list[Json] = []
    metrics: dict[str, list[float | None]] = {}
    for metric in value:
        for index, item in enumerate(expect(value, metric, list, piece.name)):
            where = at(piece.name, metric, index)
            given = expect(item, _ANNOTATED[0], dict, where)
            row: Json = {
                "text": _text_or_none(given, "user_input", where, "text"),
                "answer": optional(given, "response", str, where),
                "contexts": texts(given, "retrieved_contexts", where),
                "references": texts(given, "reference_contexts", where),
            }
            accepted = optional(item, "is_accepted", bool, where)
            seen = {metric: number(item, _ANNOTATED[1], where)}
            if accepted is not None:
                seen[f"{metric} accepted"] = float(accepted)
            for name, found in seen.items():
                metrics.setdefault(name, [None] * len(rows)).append(found)
            rows.append(row)
            for column in metrics.values():
                column.extend([None] * (len(rows) - len(column)))
    if not rows:
        raise InputError("It holds no annotated sample.", where=piece.name)
    roles = {role: role for role in ("text", "answer", "contexts", "references")}
    frame = pl.DataFrame(rows, schema=_schema(roles) | {"query_id": pl.String()}, orient="row")
    columns = {name: pl.Series(name, cells, dtype=pl.Float64) for name, cells in metrics.items()}
    done, rest = _finished(piece, frame, columns)
    known = ("user_input", "response", "retrieved_contexts", "reference_contexts")
    parts = {f"*.{_ANNOTATED[0]}.{name}": TAKEN for name in known}
    parts |= {f"*.{name}": TAKEN for name in (_ANNOTATED[1], "is_accepted")}
    return done, replace(rest, accounts=(account(piece, parts),))
