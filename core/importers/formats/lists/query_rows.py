"""One row per query with lists of ids: what was retrieved for it, and what is known to be relevant.

CSV, TSV, JSON lines, Parquet, JSON (a list of objects, or columns and data as pandas splits them). A list is
native to the kind of file, or a text: in JSON or Python notation, or with bars, semicolons or commas between
ids. MLflow's evaluation table is also read; if its cells hold texts, not lists, they are answers.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from core.errors import InputError
from core.importers.base import LIKELY, SURE, Options
from core.importers.formats.lists import ListedResults, ResultLists
from core.importers.naming import ROLES, NamedValue, named, normal
from core.importers.read.jsons import at, items, kind_of_value, objects, outline, read_json
from core.importers.read.member import Archive, Member
from core.importers.read.rows import id_list
from core.importers.read.tabular import READ_ERRORS, columns, first_rows, kind_of, read_table
from core.importers.read.text import no_column, place, quoted, shown
from core.importers.report import AS_YOU_WISH, TAKEN, FileReport, settled
from core.importers.samples import FormatSample

_THINGS = ("", "ids", "docs", "doc_ids", "documents", "document_ids", "chunks", "chunk_ids", "passages",
           "passage_ids", "context_ids", "contexts_ids", "node_ids")  # fmt: skip
_LISTS = ("retrieved_ids", "expected_ids")
_EITHER = {"outputs": ("retrieved_ids", "answer"), "targets": ("expected_ids", "right")}
"""MLflow's role → its meaning if the cells hold lists, and if they hold texts."""
_SCORE = re.compile(r"(?:/v\d+)?/score$")
_PARTED = re.compile(rb'"columns"\s*:\s*(\[[^\[\]]{0,20000}\])')
_PARTS = re.compile(r"[|;,]")
_NO_NUMBERS = "holds no numbers, and is not a list that is known"
_Rows = list[tuple[str, Mapping[str, Any]]]


def _names(*heads: str) -> tuple[str, ...]:
    return tuple("_".join(filter(None, (head, thing))) for head in heads for thing in _THINGS)


_ROLES: Mapping[str, tuple[str, ...]] = {
    "query_id": ("query_id", "qid", "q_id", "question_id", "topic_id", "example_id", "sample_id", "id"),
    "text": ("query", "question", "text", "user_input", "query_text", "question_text", "inputs", "input"),
    "run": ("run", *ROLES["run"].aliases, "retriever"),
    "retrieved_ids": (
        *_names("retrieved", "predicted", "ranked", "returned", "top_k"), "doc_uris", "ranking",
    ),
    "expected_ids": _names(
        "expected", "relevant", "gold", "golden", "positive", "reference", "ground_truth"
    ),
    "outputs": ("outputs",),
    "targets": ("targets", "ground_truth"),
}  # fmt: skip


class QueryRows(ResultLists):
    """Tables with lists of ids in their cells."""

    name, title = "query-lists", "Lists of ids by query, MLflow evaluation table (CSV, JSON, JSONL, Parquet)"
    takes = {
        "rankings": "the list of what was retrieved, in its order; a run for each name of one",
        "judgements": "every id of the other list is relevant",
        "signals": "columns of numbers; of names with a cutoff (ndcg_at_3/score) the mean as that measure",
        "aggregates": "",
        "timings": "columns of times",
        "answers": "outputs of MLflow that are texts",
        "gold_answers": "its targets that are texts",
        "queries": "",
    }
    recognised = "a query beside retrieved_ids and expected_ids (or names like these), or columns NAME/score"
    untried = "MLflow's table is built from its documentation: no file that it wrote was tried"
    traps = ("Passages that the list of relevant ones does not name are unjudged.",)

    def sniff(self, probe: Archive) -> float:
        if len(probe.members) != 1:
            return 0.0
        names = column_names(probe.members[0])
        roles = _roles(names, {})
        if not roles.keys() & {"text", "query_id"}:
            return 0.0
        if "retrieved_contexts" in map(normal, names):
            return 0.0  # RAGAS, whose files hold texts too
        if any(_SCORE.search(name) for name in names):
            return SURE
        if "retrieved_ids" not in roles:
            return 0.0
        cells = [_first(probe.members[0], roles[role]) for role in _LISTS if role in roles]
        listed = any(_is_list(cell) or (isinstance(cell, str) and _PARTS.search(cell)) for cell in cells)
        return 0.0 if not listed else SURE if "expected_ids" in roles else LIKELY

    def reports(self, archives: Sequence[Archive], options: Options) -> Iterator[FileReport]:
        for member in (archive.members[0] for archive in archives):
            said = options.table_as(member.name)
            names = [name for name in column_names(member) if name not in said.without]
            rows = list(row_cells(member))
            taken = {*_roles(names, said.columns).values(), *number_columns(names, rows)}
            why = {**dict.fromkeys(names, _NO_NUMBERS), **dict.fromkeys(taken, TAKEN)}
            kind = "key" if outline(member) else "column"
            yield settled(
                member.name, kind, column_names(member), why | dict.fromkeys(said.without, AS_YOU_WISH)
            )

    def gather(self, member: Member, options: Options) -> ListedResults:
        said, listed = options.table_as(member.name), ListedResults()
        names = [name for name in column_names(member) if name not in said.without]
        rows, roles = list(row_cells(member)), _roles(names, said.columns)
        if not roles.keys() & {"text", "query_id"}:
            raise no_column("query", names, member.name)
        for role in _EITHER.keys() & roles.keys():
            filled = (row.get(roles[role]) for _, row in rows)
            first = next((cell for cell in filled if cell not in (None, "")), None)
            roles.setdefault(_EITHER[role][0 if _is_list(first) else 1], roles[role])
        placed = {*roles.values()}
        known = number_columns(names, rows)
        measures = {name: what for name, what in known.items() if name not in placed}
        listed.notes += [
            f"{member.name}: `{shown(name)}` {what.assumed}."
            for name, what in measures.items()
            if what and what.assumed
        ]
        seen: set[tuple[str, str]] = set()
        for where, row in rows:
            run, query, sample = _sample(row, roles, where)
            if (run, query) in seen:
                problem, do = (
                    f"The query {quoted(query)} stands twice.",
                    "Map a column to run (--column run=NAME).",
                )
                raise InputError(problem, where=where, do=do)
            seen.add((run, query))
            expected = _ids(row.get(roles.get("expected_ids", "")), where) or []
            listed.judged += [(query, passage, 1) for passage in expected]
            _measure(sample, row, measures)
            if roles.keys() & {"retrieved_ids", "answer"} or measures:
                listed.samples.setdefault(run, []).append(sample)
        listed.figures = {run: list(_figures(some, measures)) for run, some in listed.samples.items()}
        return listed


def column_names(member: Member) -> list[str]:
    """Return names of columns, or of keys."""
    shape = outline(member)
    if not shape or (kind_of(member) == "jsonl" and "columns" not in shape):
        return columns(member)
    if "object" in shape.get("", ()) and {"columns[]", "data[]"} <= shape.keys():
        parted = _PARTED.search(member.head)
        try:
            named_ = json.loads(parted[1]) if parted else []
        except ValueError:
            return []
        return [name for name in named_ if isinstance(name, str)]
    keys = [path.removeprefix("[].") for path in shape if path.startswith("[].")]
    return [key for key in keys if not re.search(r"[.\[]", key)]


def row_cells(member: Member) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield rows, each with its location."""
    shape = outline(member)
    if "columns[]" in shape:
        whole, names = read_json(member), column_names(member)
        for index, row in enumerate(items(whole, "data", member.name) or ()):
            where = at(member.name, "data", index)
            if not isinstance(row, list) or len(row) != len(names):
                raise InputError(f"It is {kind_of_value(row)}, not a row of {len(names)}.", where=where)
            yield where, dict(zip(names, row, strict=True))
    elif "[]" in shape:
        yield from objects(member)
    else:
        table = read_table(member, kind_of(member))
        for line, row in zip(table.lines, table.rows.iter_rows(named=True), strict=True):
            yield place(member.name, line), row


def _first(member: Member, column: str) -> object:
    with suppress(InputError, *READ_ERRORS):  # a file that only resembles a table
        if {"[]", "columns[]"} & outline(member).keys():
            return next((row.get(column) for _, row in row_cells(member)), None)
        rows = first_rows(member, 1)
        return rows[column][0] if rows is not None and column in rows.columns and rows.height else None
    return None


def _roles(names: Sequence[str], said: Mapping[str, str]) -> dict[str, str]:
    """Return role → column, as the user says, or else by name; the first name of a role wins."""
    by_name = {normal(name): name for name in reversed(names)}
    by_name |= {name.lower(): name for name in reversed(names)}
    found = {
        role: next((by_name[alias] for alias in aliases if alias in by_name), "")
        for role, aliases in _ROLES.items()
    }
    if not any(_SCORE.search(name) for name in names):
        found |= {"outputs": "", "targets": ""}
    found |= {role: column for role, column in said.items() if role in found}
    return {role: column for role, column in found.items() if column in names}


def _is_list(cell: object) -> bool:
    return isinstance(cell, list) or (isinstance(cell, str) and cell.strip()[:1] in ("[", "("))


def _ids(cell: object, where: str) -> list[str] | None:
    if isinstance(cell, list):
        wrong = next((item for item in cell if type(item) not in (str, int)), None)
        if wrong is not None or None in cell:
            raise InputError(f"A list of ids holds {kind_of_value(wrong)}.", where=where)
        return [str(item) for item in cell]
    text = "" if cell is None else str(cell).strip()
    if text[:1] == "(" and text[-1:] == ")":
        text = f"[{text[1:-1].rstrip(',')}]"
    if text[:1] == "[":
        return id_list(text, where)
    mark = next((mark for mark in "|;," if mark in text), None)
    return [part.strip() for part in text.split(mark) if part.strip()] if text else None


def _sample(row: Mapping[str, Any], roles: Mapping[str, str], where: str) -> tuple[str, str, FormatSample]:
    def said(role: str) -> str | None:
        cell = row.get(roles.get(role, ""))
        return None if cell is None or isinstance(cell, list | dict) else str(cell).strip() or None

    asked = said("text")
    query = said("query_id") or asked
    if not query:
        raise InputError("The row names no query.", where=where)
    retrieved = _ids(row.get(roles.get("retrieved_ids", "")), where)
    right = said("right")
    sample = FormatSample(
        text=asked or "", query_id=query, context_ids=retrieved, answer=said("answer"),
        right=[right] if right else None,
    )  # fmt: skip
    return said("run") or "", query, sample


def number_columns(names: Sequence[str], rows: _Rows) -> dict[str, NamedValue | None]:
    """Return the columns that hold only numbers, each with the meaning of its name."""
    found: dict[str, NamedValue | None] = {}
    for name in names:
        cells = [_number(row.get(name)) for _, row in rows]
        known = [cell for cell in cells if cell is not None]
        if known and all(cell is not False for cell in known):
            found[name] = named(_SCORE.sub("", name), name)
            if name == "latency" and any(map(_SCORE.search, names)):  # MLflow gives seconds
                found[name] = NamedValue(name, "ms", "total", factor=1000.0)
    return found


def _number(cell: object) -> float | bool | None:
    """Return a number; None for an empty cell, False for a cell that is not a number."""
    if cell is None or cell == "" or cell != cell:  # noqa: PLR0124
        return None
    if isinstance(cell, bool | list | dict):
        return False
    try:
        value = float(str(cell))
    except ValueError:
        return False
    return value if math.isfinite(value) else False


def number_in(cell: object, where: str) -> float | None:
    """Return the number of a cell, or None if it is empty."""
    value = _number(cell)
    if value is False:
        raise InputError(f"{quoted(str(cell))} is not a number.", where=where)
    return value


def _measure(sample: FormatSample, row: Mapping[str, Any], measures: Mapping[str, NamedValue | None]) -> None:
    values: dict[str, float | None] = {}
    for name, meant in measures.items():
        value = _number(row.get(name))
        if meant is not None and meant.measure == "ms":
            sample.times |= {} if value is None else {meant.stage or "total": value * meant.factor}
        elif meant is not None and meant.k is not None:
            sample.signals |= {} if value is None else {shown(name, 80): float(value)}
        else:
            # MLflow asks models for grades from 1 to 5
            values[re.sub(r"/v\d+/score$", ", 1 to 5", name).removesuffix("/score")] = value
    sample.values = values


def _figures(
    samples: Sequence[FormatSample], measures: Mapping[str, NamedValue | None]
) -> Iterator[dict[str, Any]]:
    """Yield the means of measures whose names state their cutoff."""
    for name, meant in measures.items():
        known = [sample.signals[key] for sample in samples if (key := shown(name, 80)) in sample.signals]
        if meant is not None and meant.k is not None and meant.measure != "ms" and known:
            yield {
                "measure": meant.measure, "k": meant.k, "stage": meant.stage, "n": len(known),
                "value": sum(value / len(known) for value in known) * meant.factor, "source": "imported",
            }  # fmt: skip
