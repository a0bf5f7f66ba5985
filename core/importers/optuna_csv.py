"""The CSV of optuna-dashboard: Number, State, the objectives, ``Param x``, ``UserAttribute x``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import isfinite

from core.errors import InputError
from core.importers.base import SURE, Format, Import, Options, merged
from core.importers.fields import numbers
from core.importers.optuna_trials import COMPLETE, Trial, trial_runs
from core.importers.piece import Piece, Tree
from core.importers.tabular import header, kind_of, read_table
from core.importers.text import place

_PARAM, _ATTRIBUTE = "Param ", "UserAttribute "
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,4})?")
_WHOLE = re.compile(r"[-+]?\d{1,18}")


class OptunaCsv(Format):
    """Trials of one study as a table."""

    name, title = "optuna-csv", "optuna-dashboard, syftr (CSV)"
    brings = ("aggregates",)
    takes = {"aggregates": "accuracy, F1, p50 and p80 latency, cost per 1,000 questions, or the objectives"}  # noqa: RUF012
    recognised = "a table with Number, State and Param … or UserAttribute … columns"
    units = "times from seconds to milliseconds, cost per question to cost per 1,000"
    traps = (
        "Trials whose State is not COMPLETE, and those that were pruned or failed, are left out and counted.",
        "Which objectives are maximised is not in the file; without syftr's figures all are kept as is.",
    )

    def sniff(self, probe: Tree) -> float:
        """Sure of the header that the dashboard writes."""
        if len(probe.pieces) != 1:
            return 0.0
        kind = kind_of(probe.pieces[0])
        if kind is None or kind in ("jsonl", "parquet"):
            return 0.0
        try:
            columns = header(probe.pieces[0], kind)
        except InputError:
            return 0.0
        prefixed = any(each.startswith((_PARAM, _ATTRIBUTE)) for each in columns)
        return SURE if columns[:2] == ["Number", "State"] and prefixed else 0.0

    def read(self, trees: Sequence[Tree], options: Options) -> Import:
        """Read the trials of every file; the study is called as the file is."""
        return merged(
            trial_runs(_trials(tree.pieces[0]), tree.pieces[0].digest, options, self.name) for tree in trees
        )


def _trials(piece: Piece) -> list[Trial]:
    table = read_table(piece, kind_of(piece) or ",")
    columns = table.rows.columns
    for needed in ("Number", "State"):
        if needed not in columns:
            raise InputError(f"There is no column {needed}.", where=piece.name)
    numbered = numbers(table.taking({"Number": "Number"}), "Number", piece.name, whole=True)
    other = [each for each in columns if not each.startswith((_PARAM, _ATTRIBUTE))]
    objectives = [each for each in other if each not in ("Number", "State")]
    trials = []
    for number, line, row in zip(numbered, table.lines, table.rows.iter_rows(named=True), strict=True):
        where = place(piece.name, line)
        if number is None:
            raise InputError("The trial has no number.", where=where)
        trials.append(
            Trial(
                study=piece.stem,
                number=number,
                state=str(row["State"] or "").upper().removeprefix("TRIALSTATE."),
                values=_objectives(row, objectives, str(row["State"])),
                params=_prefixed(row, _PARAM),
                attributes=_prefixed(row, _ATTRIBUTE),
                where=where,
            )
        )
    if not trials:
        raise InputError("The table has no rows.", where=piece.name)
    return trials


def _objectives(row: Mapping[str, object], columns: Sequence[str], state: str) -> dict[str, float]:
    """The objectives of a finished trial that are numbers."""
    found = {column: _value(row[column]) for column in columns} if COMPLETE in state.upper() else {}
    return {
        column: float(value)
        for column, value in found.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    }


def _prefixed(row: Mapping[str, object], prefix: str) -> dict[str, object]:
    """Cells of the columns with a prefix, empty ones left out."""
    return {
        column.removeprefix(prefix): _value(value)
        for column, value in row.items()
        if column.startswith(prefix) and value not in (None, "")
    }


def _value(cell: object) -> str | int | float | bool | None:
    """A cell as the value it was printed from."""
    text = "" if cell is None else str(cell).strip()
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else (text or None)
