"""Trials of a study as a table, of optuna-dashboard or of Optuna itself.

The dashboard writes Number, State, the objectives, ``Param x`` and ``UserAttribute x``; ``trials_dataframe``
has number, value or ``values_x``, ``params_x``, ``user_attrs_x`` and state, beside times of the trial.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from core.errors import InputError
from core.importers.account import TAKEN, Parts
from core.importers.base import SURE, Format, Import, Options, merged
from core.importers.formats.optuna import COMPLETE, Trial, trial_runs
from core.importers.read.piece import Piece, Tree
from core.importers.read.rows import numbers
from core.importers.read.tabular import columns, header, kind_of, read_table
from core.importers.read.text import place


@dataclass(frozen=True, slots=True)
class _Layout:
    """How a table names its columns: the trial, and what begins the others."""

    number: str
    state: str
    param: str
    attribute: str


_DASHBOARD = _Layout("Number", "State", "Param ", "UserAttribute ")
_FRAME = _Layout("number", "state", "params_", "user_attrs_")
_VALUE, _VALUES = "value", "values_"
"""The objective of a frame, or what begins several."""
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,4})?")
_WHOLE = re.compile(r"[-+]?\d{1,18}")


class OptunaCsv(Format):
    """Trials of one study as a table."""

    name, title = "optuna-csv", "optuna-dashboard, syftr (CSV)"
    brings = ("aggregates",)
    takes = {"aggregates": "accuracy, F1, p50 and p80 latency, cost per 1,000 questions, or the objectives"}  # noqa: RUF012
    recognised = (
        "a table with Number, State and Param … or UserAttribute … columns, or Optuna's trials_dataframe "
        "(number, state, value or values_…)"
    )
    units = "times from seconds to milliseconds, cost per question to cost per 1,000"
    traps = (
        "Trials whose State is not COMPLETE, and those that were pruned or failed, are left out and counted.",
        "Which objectives are maximised is not in the file; without syftr's figures all are kept as is.",
    )

    def sniff(self, probe: Tree) -> float:
        """Sure of the headers that the dashboard and Optuna write."""
        piece = probe.pieces[0]
        text = len(probe.pieces) == 1 and kind_of(piece) not in ("jsonl", "parquet")
        return SURE if text and _layout(columns(piece)) else 0.0

    def parts(self, piece: Piece, options: Options) -> Parts | str:  # noqa: ARG002
        """The trial, its objectives, parameters and attributes."""
        names = header(piece, kind_of(piece) or ",")
        layout = _layout(names) or _DASHBOARD
        known = (layout.number, layout.state, *_named(names, layout))
        return dict.fromkeys((*known, f"{layout.param}*", f"{layout.attribute}*"), TAKEN)

    def read(self, trees: Sequence[Tree], options: Options) -> Import:
        """Read the trials of every file; the study is called as the file is."""
        return merged(
            trial_runs(_trials(tree.pieces[0]), tree.pieces[0].digest, options, self.name) for tree in trees
        )


def _layout(names: Sequence[str]) -> _Layout | None:
    begun = [each for each in names if each.startswith((_DASHBOARD.param, _DASHBOARD.attribute))]
    if names[:2] == ["Number", "State"] and begun:
        return _DASHBOARD
    told = any(each == _VALUE or each.startswith(_VALUES) for each in names)
    return _FRAME if told and {"number", "state"} <= set(names) else None


def _named(names: Sequence[str], layout: _Layout) -> dict[str, str]:
    """Column of an objective → its name."""
    if layout is _FRAME:
        several = {each: each.removeprefix(_VALUES) for each in names if each.startswith(_VALUES)}
        return several or {_VALUE: "Objective"}
    begun = (layout.param, layout.attribute)
    other = [each for each in names if not each.startswith(begun)]
    return {each: each for each in other if each not in (layout.number, layout.state)}


def _trials(piece: Piece) -> list[Trial]:
    table = read_table(piece, kind_of(piece) or ",")
    names = table.rows.columns
    layout = _layout(names) or _DASHBOARD
    for needed in (layout.number, layout.state):
        if needed not in names:
            raise InputError(f"There is no column {needed}.", where=piece.name)
    numbered = numbers(table.taking({"Number": layout.number}), "Number", piece.name, whole=True)
    objectives = _named(names, layout)
    trials = []
    for number, line, row in zip(numbered, table.lines, table.rows.iter_rows(named=True), strict=True):
        where = place(piece.name, line)
        if number is None:
            raise InputError("The trial has no number.", where=where)
        trials.append(
            Trial(
                study=piece.stem,
                number=number,
                state=str(row[layout.state] or "").upper().removeprefix("TRIALSTATE."),
                values=_objectives(row, objectives, str(row[layout.state])),
                params=_prefixed(row, layout.param),
                attributes=_prefixed(row, layout.attribute),
                where=where,
            )
        )
    if not trials:
        raise InputError("The table has no rows.", where=piece.name)
    return trials


def _objectives(row: Mapping[str, object], named: Mapping[str, str], state: str) -> dict[str, float]:
    """The objectives of a finished trial that are numbers."""
    done = COMPLETE in state.upper()
    found = {name: _value(row[column]) for column, name in named.items()} if done else {}
    return {
        name: float(value)
        for name, value in found.items()
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
