"""The database of Phoenix (SQLite): the spans that it can also export, in its own tables."""

import sqlite3
from collections.abc import Iterator, Sequence

import polars as pl

from core.errors import InputError
from core.importers.base import LOOK_ROWS, Import, LeftOut, Look, Options, counted, merged
from core.importers.formats.traces.questions import imported
from core.importers.formats.traces.spans import TraceSpan
from core.importers.formats.traces.tools import OpenSpans
from core.importers.read.database import MAGIC, columns_of, database
from core.importers.read.jsons import Json, parsed
from core.importers.read.member import Archive, Member, members_of, per_member
from core.importers.read.text import shown
from core.importers.report import TAKEN, FileReport, settled

_MOST_SPANS = 5_000_000
_NEEDS = {
    "projects": ("id", "name"),
    "traces": ("id", "project_rowid", "trace_id"),
    "spans": (
        "id", "trace_rowid", "span_id", "parent_id", "name", "span_kind", "start_time", "end_time",
        "attributes", "status_code",
    ),
}  # fmt: skip
_PARTS = {
    **{f"{table}.{column}": TAKEN for table, columns in _NEEDS.items() for column in columns},
    "spans.*": "follows from the attributes, or is of the server",
    "*": "of the server, or of its annotations: export these with the spans",
}
_QUERY = (
    "SELECT spans.span_id, spans.parent_id, spans.name, spans.span_kind, spans.start_time, spans.end_time,"
    " spans.status_code, spans.attributes, traces.trace_id, projects.name"
    " FROM spans JOIN traces ON traces.id = spans.trace_rowid"
    " JOIN projects ON projects.id = traces.project_rowid"
    " ORDER BY spans.id"
)
_UNTAKEN = {
    "spans without a trace or its project": (
        "spans WHERE trace_rowid IS NULL OR trace_rowid NOT IN"
        " (SELECT traces.id FROM traces JOIN projects ON projects.id = traces.project_rowid)"
    ),
    "traces without a span": (
        "traces WHERE id NOT IN (SELECT trace_rowid FROM spans WHERE trace_rowid NOTNULL)"
    ),
    "projects without a trace": (
        "projects WHERE id NOT IN (SELECT project_rowid FROM traces WHERE project_rowid NOTNULL)"
    ),
}
"""Reason → the rows that are left out for it."""
_IDS = {"projects": "id", "traces": "id", "spans": "span_id"}
"""Table → the column that identifies its rows."""
_NAMES = (
    "context.span_id", "parent_id", "name", "span_kind", "start_time", "end_time", "status_code",
    "attributes", "context.trace_id", "project_name",
)  # fmt: skip


class Phoenix(OpenSpans):
    """Spans in the database of a Phoenix server."""

    name, title = "phoenix", "Phoenix database (SQLite)"
    recognised = "a SQLite database with the tables projects, traces and spans"
    untried = "built from the documented schema: no database that Phoenix wrote was tried"

    def kind(self, member: Member) -> str | None:
        needed = {f"{table}.{column}" for table, columns in _NEEDS.items() for column in columns}
        return "spans" if needed <= _columns(member) else None

    def look(self, archive: Archive, options: Options) -> Look:  # noqa: ARG002
        with database(archive.members[0]) as (connection, _):
            cells = connection.execute(f"{_QUERY} LIMIT {LOOK_ROWS}").fetchall()
        rows = [[None if cell is None else str(cell) for cell in row] for row in cells]
        return Look(pl.DataFrame(rows, schema=dict.fromkeys(_NAMES, pl.String), orient="row"))

    def reports(self, archives: Sequence[Archive], options: Options) -> Iterator[FileReport]:  # noqa: ARG002
        for member in members_of(archives):
            yield settled(member.name, "column", sorted(_columns(member)), _PARTS)

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        """Read all spans; each project's traces become one run."""
        members, notes, steps, left = members_of(archives), list[str](), list[TraceSpan](), list[LeftOut]()
        for member in members:
            with database(member) as (connection, said):
                notes += said
                _told_apart(connection, member.name)
                counts = {
                    reason: connection.execute(f"SELECT COUNT(*) FROM {rows}").fetchone()[0]  # noqa: S608
                    for reason, rows in _UNTAKEN.items()
                }
                left += counted(counts, member.name)
                for number, cells in enumerate(connection.execute(_QUERY), 1):
                    if number > _MOST_SPANS:
                        raise InputError(f"It holds more than {_MOST_SPANS:,} spans.", where=member.name)
                    where = f"{member.name}, span {number}"
                    steps += self.spans(_row(cells, where), where)
        made = imported(steps, members, options, importer=self.name, source=self.source)
        return merged((made, Import(notes=tuple(notes), left_out=tuple(left))))


def _told_apart(connection: sqlite3.Connection, name: str) -> None:
    """Refuse a database in which several rows share an id, since their spans would be duplicated."""
    for table, column in _IDS.items():
        within = ", trace_rowid" if table == "spans" else ""
        query = (
            f"SELECT {column}, COUNT(*) FROM {table} GROUP BY {column}{within} HAVING COUNT(*) > 1 LIMIT 1"  # noqa: S608
        )
        for value, times in connection.execute(query):
            problem = f"The id {shown(value, 80)} stands {times} times."
            raise InputError(problem, where=f"{name}, {table}.{column}")


def _row(cells: Sequence[object], where: str) -> Json:
    row: Json = dict(zip(_NAMES, cells, strict=True))
    row["attributes"] = parsed(str(row["attributes"] or "{}"), where)
    return row


@per_member
def _columns(member: Member) -> frozenset[str]:
    if not member.head.startswith(MAGIC):
        return frozenset()
    try:
        with database(member) as (connection, _):
            return frozenset(columns_of(connection))
    except InputError:
        return frozenset()
