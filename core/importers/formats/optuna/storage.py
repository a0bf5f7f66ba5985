"""An Optuna storage: a SQLite file with studies, trials, their values, parameters and user attributes.

Its schema is checked before anything is read.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import polars as pl

from core.errors import InputError
from core.importers.base import LOOK_ROWS, RESEMBLES, SURE, Format, Import, Look, Options, counted, merged
from core.importers.formats.optuna import TAKES, UNITS, OptunaTrial, trial_runs
from core.importers.read.database import MAGIC, columns_of, database
from core.importers.read.jsons import parsed
from core.importers.read.member import Archive, Member, members_of, per_member
from core.importers.read.text import shown
from core.importers.report import TAKEN, FileReport, settled

_SYSTEM = "study_system_attributes"
_NAMES = {_SYSTEM: frozenset({"study_id", "key", "value_json"})}
_NEEDS: dict[str, frozenset[str]] = {
    "studies": frozenset({"study_id", "study_name"}),
    "trials": frozenset({"trial_id", "number", "study_id", "state"}),
    "trial_values": frozenset({"trial_id", "objective", "value"}),
    "trial_params": frozenset({"trial_id", "param_name", "param_value", "distribution_json"}),
    "trial_user_attributes": frozenset({"trial_id", "key", "value_json"}),
    "study_directions": frozenset({"study_id", "objective", "direction"}),
}
_PARTS = {f"{table}.{column}": TAKEN for table, columns in (_NEEDS | _NAMES).items() for column in columns}
_MOST_ROWS = 5_000_000

_Row = tuple[Any, ...]

_KEYS = {
    "studies": ("study_id", "study_id"),
    "study_directions": ("study_id", "objective"),
    "trial_values": ("trial_id", "objective"),
    "trial_params": ("trial_id", "param_name"),
    "trial_user_attributes": ("trial_id", "key"),
}
"""Table → the column that refers to a trial, and the one that identifies a row of a trial or study."""
_ODD = {
    "directions of no objective": ("study_directions", "typeof(objective) <> 'integer'"),
    "values of no objective": ("trial_values", "typeof(objective) <> 'integer'"),
    "values of objectives that are not finite numbers: missing, not 0": (
        "trial_values", "typeof(value) NOT IN ('integer', 'real') OR value IN (9e999, -9e999)",
    ),
    "attributes of studies other than the names of objectives": (_SYSTEM, "key IS NOT 'study:metric_names'"),
}  # fmt: skip
"""Reason → the table, and which of its rows are left out for it."""


class OptunaStorage(Format):
    """Studies in a SQLite file, for example of syftr."""

    name, title = "optuna", "Optuna storage, syftr (SQLite)"
    takes = TAKES
    recognised = "a SQLite database with the tables studies, trials, trial_values…"
    units = UNITS
    traps = (
        "Trials that were pruned, failed or did not finish are left out and counted.",
        "Rows that belong to no trial, such as those of studies without one, are left out and counted.",
        "Times include answering: they are of the whole flow.",
    )

    def sniff(self, probe: Archive) -> float:
        if len(probe.members) != 1 or not probe.members[0].head.startswith(MAGIC):
            return 0.0
        return RESEMBLES if _problem(probe.members[0]) else SURE

    def why_not(self, probe: Archive) -> str:
        return _problem(probe.members[0])

    def reports(self, archives: Sequence[Archive], options: Options) -> Iterator[FileReport]:  # noqa: ARG002
        for member in members_of(archives):
            with _database(member) as reader:
                yield settled(member.name, "column", reader.columns, _PARTS)

    def look(self, archive: Archive, options: Options) -> Look:  # noqa: ARG002
        with _database(archive.members[0]) as reader:
            first = _trials(reader)[:LOOK_ROWS]
        rows = [
            {"study": trial.study, "trial": str(trial.number), "state": trial.state}
            | {name: str(value) for name, value in trial.values.items()}
            for trial in first
        ]
        return Look(pl.DataFrame(rows, infer_schema_length=None))

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        parts = []
        for member in members_of(archives):
            with _database(member) as reader:
                trials = _trials(reader)
                left = counted(_untaken(reader), member.name)
            parts.append(trial_runs(trials, member.digest, options, self.name))
            parts.append(Import(notes=reader.notes, left_out=left))
        return merged(parts)


@per_member
def _problem(member: Member) -> str:
    try:
        with _database(member):
            return ""
    except InputError as error:
        return error.found


@contextmanager
def _database(member: Member) -> Iterator[_Reader]:
    with database(member) as (connection, notes):
        yield _Reader(connection, member.name, notes)


class _Reader:
    def __init__(self, connection: sqlite3.Connection, name: str, notes: tuple[str, ...]) -> None:
        self._connection, self.name, self.notes = connection, name, notes
        self._left = _MOST_ROWS
        columns = columns_of(connection)
        plain = {column.partition(".")[0] for column in columns}
        if missing := sorted(set(_NEEDS) - plain):
            problem = f"This SQLite database has no table {missing[0]}; an Optuna storage has."
            raise InputError(problem, where=name)
        self.columns = columns
        self.has_names = _SYSTEM in plain
        for table, needed in (_NEEDS | (_NAMES if self.has_names else {})).items():
            if lacks := sorted(column for column in needed if f"{table}.{column}" not in self.columns):
                raise InputError(f"Its table {table} has no column {lacks[0]}.", where=name)

    def rows(self, query: str) -> Iterator[_Row]:
        """Yield the rows of a query defined below."""
        for row in self._connection.execute(query):
            self._left -= 1
            if self._left < 0:
                raise InputError(f"The database holds more than {_MOST_ROWS:,} rows.", where=self.name)
            yield row


def _trials(reader: _Reader) -> list[OptunaTrial]:
    studies = {key: str(name) for key, name in reader.rows("SELECT study_id, study_name FROM studies")}
    directions = reader.rows("SELECT study_id, objective, direction FROM study_directions")
    up = {tuple(of) for *of, direction in directions if str(direction).upper() in ("MAXIMIZE", "2")}
    values: dict[object, dict[int, float]] = defaultdict(dict)
    for trial, objective, value in reader.rows("SELECT trial_id, objective, value FROM trial_values"):
        if isinstance(value, float | int) and isinstance(objective, int) and abs(value) < float("inf"):
            values[trial][objective] = float(value)
    params, attributes, names = _params(reader), _attributes(reader), _names(reader)
    trials = []
    query = "SELECT trial_id, number, study_id, state FROM trials ORDER BY study_id, number"
    for key, number, study, state in reader.rows(query):
        if study not in studies or not isinstance(number, int):
            raise InputError("A trial belongs to no study, or has no number.", where=reader.name)
        known = names.get(study, {})
        called = {index: known.get(index, f"Objective {index}") for index in sorted(values[key])}
        trials.append(
            OptunaTrial(
                study=studies[study],
                number=number,
                state=str(state),
                values={name: values[key][index] for index, name in called.items()},
                maximised=frozenset(name for index, name in called.items() if (study, index) in up),
                params=params[key],
                attributes=attributes[key],
                where=f"{reader.name}, trial {number}",
            )
        )
    if not trials:
        raise InputError("The storage holds no trial.", where=reader.name)
    return trials


def _names(reader: _Reader) -> dict[object, dict[int, str]]:
    """Name the objectives of each study, if all of them have distinct names."""
    named: dict[object, dict[int, str]] = {}
    if not reader.has_names:
        return named
    query = "SELECT study_id, value_json FROM study_system_attributes WHERE key = 'study:metric_names'"
    for study, stored in reader.rows(query):
        names = None if stored is None else parsed(str(stored), f"{reader.name}, names of objectives")
        known = [shown(name) for name in names if isinstance(name, str)] if isinstance(names, list) else []
        if isinstance(names, list) and len(set(known) - {""}) == len(names):
            named[study] = dict(enumerate(known))
    return named


def _params(reader: _Reader) -> dict[object, dict[str, object]]:
    """Return trial → parameters as suggested: choices by their position, integers as integers."""
    params: dict[object, dict[str, object]] = defaultdict(dict)
    known: dict[str, object] = {}
    query = "SELECT trial_id, param_name, param_value, distribution_json FROM trial_params"
    for trial, name, value, distribution in reader.rows(query):
        text = str(distribution)
        if text not in known:
            known[text] = parsed(text, f"{reader.name}, parameter {shown(name)}")
        params[trial][str(name)] = _suggested(value, known[text])
    return params


def _suggested(value: object, distribution: object) -> object:
    if not isinstance(distribution, dict) or not isinstance(value, int | float):
        return value
    inner = distribution.get("attributes")
    choices = inner.get("choices") if isinstance(inner, dict) else None
    if isinstance(choices, list):
        whole = float(value).is_integer() and 0 <= value < len(choices)
        return choices[int(value)] if whole else value
    is_whole = "Int" in str(distribution.get("name")) and float(value).is_integer()
    return int(value) if is_whole else value


def _attributes(reader: _Reader) -> dict[object, dict[str, object]]:
    attributes: dict[object, dict[str, object]] = defaultdict(dict)
    query = "SELECT trial_id, key, value_json FROM trial_user_attributes"
    for trial, key, value in reader.rows(query):
        place = f"{reader.name}, attribute {shown(key)}"
        attributes[trial][str(key)] = None if value is None else parsed(str(value), place)
    return attributes


def _untaken(reader: _Reader) -> dict[str, int]:
    """Count the rows that do not become trials, by reason."""
    counts: dict[str, str] = {}
    for table, (key, own) in _KEYS.items():
        led = f"COUNT(CASE WHEN {key} IN (SELECT {key} FROM trials) THEN 1 END)"  # noqa: S608
        single = f"(SELECT COUNT(*) FROM (SELECT DISTINCT {key}, {own} FROM {table}))"  # noqa: S608
        counts[f"rows of `{table}` without a trial"] = f"COUNT(*) - {led} FROM {table}"
        counts[f"rows of `{table}` that stand twice: one counts"] = f"COUNT(*) - {single} FROM {table}"
    for reason, (table, odd) in _ODD.items():
        if table != _SYSTEM or reader.has_names:
            counts[reason] = f"COUNT(*) FROM {table} WHERE {odd}"
    return {reason: next(reader.rows(f"SELECT {query}"))[0] for reason, query in counts.items()}
