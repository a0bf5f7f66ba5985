"""Judged spans as a golden set: quotes or places in documents of the store or of the same offer.

Only the spans are read here. Their grades for the chunks of each chunker are derived when they
are written, with the chunkings that the store has then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import polars as pl

from core.errors import InputError
from core.importers import base
from core.importers.base import Format, Import, LeftOut, Look, Options, merged
from core.importers.formats.excel import sheet_table, tables
from core.importers.formats.spans import placing
from core.importers.formats.spans.placing import NEEDS, ROLES, are_spans, texts
from core.importers.naming import normal, roles_by
from core.importers.read.member import Archive, Member
from core.importers.read.tabular import Table, columns, kind_of, read_table
from core.importers.read.text import no_column, shown
from core.importers.read.workbook import is_workbook, open_workbook
from core.importers.report import TAKEN, FileReport, settled

_OF_CHARACTERS = frozenset({"quote", "start_char", "char_start", "start_offset"})
"""Names that only columns of spans have."""
_NO_DOCUMENTS = (
    "Name the collection of the documents (--collection), offer them along with the file (a BEIR "
    "corpus or an export), or evaluate them first (python -m core run)."
)


class JudgedSpans(Format):
    """Tables of quotes or places with grades."""

    name, title = "judged-spans", "Judged quotes or places in documents (CSV, TSV, JSONL, Parquet, Excel)"
    takes = {"spans": "each row; the grades of every chunking's chunks follow from them"}
    needs_documents = True
    recognised = (
        "columns query_id, source (the document), grade, and quote or start_char and end_char; the documents "
        "are in the store or in the same offer"
    )
    traps = (
        "Quotes that are not in their document, or more than once, are left out and counted; blanks and line "
        "breaks do not matter.",
        "Places outside of their document and spans of blanks are left out and counted.",
        "A table with passage_id and a quote is taken for judgements of passages, unless it is named "
        "(--as judged-spans).",
    )

    def sniff(self, probe: Archive) -> float:
        if len(probe.members) != 1:
            return 0.0
        member = probe.members[0]
        if is_workbook(member):
            sheets = _sheets(member)
            return (
                0.0
                if not sheets
                else base.LIKELY
                if set(tables(member, Options())) - set(sheets)
                else base.SURE
            )
        roles = roles_by(columns(member), {}, ROLES, member.name)
        if are_spans(roles):
            anchors = {normal(roles[role]) for role in ("quote", "start_char") if role in roles}
            sure = anchors & _OF_CHARACTERS and normal(roles["source"]) != "passage_id"
            return base.SURE if sure else base.LIKELY - 0.1
        return base.RESEMBLES + 0.15 if {"quote", "grade"} <= roles.keys() else 0.0

    def why_not(self, probe: Archive) -> str:
        member = probe.members[0]
        names = columns(member)
        roles = roles_by(names, {}, ROLES, member.name)
        missing = next((role for role in ("query_id", "source", "grade") if role not in roles), "quote")
        return str(no_column(missing, names, member.name, NEEDS))

    def look(self, archive: Archive, options: Options) -> Look:
        return Look(_opened(archive.members[0], options, base.LOOK_ROWS).texts)

    def reports(self, archives: Sequence[Archive], options: Options) -> Iterator[FileReport]:
        for member in (archive.members[0] for archive in archives):
            names = _opened(member, options, base.LOOK_ROWS).rows.columns
            roles = roles_by(names, options.columns, ROLES, member.name)
            yield settled(member.name, "column", names, dict.fromkeys(roles.values(), TAKEN))

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        """Read all files, each as a golden set."""
        return merged(_read(archive.members[0], options) for archive in archives)


def _sheets(member: Member) -> tuple[str, ...]:
    try:
        book = open_workbook(member)
        roles = {sheet: roles_by(book.columns(sheet), {}, ROLES, member.name) for sheet in book.sheets}
    except InputError:
        return ()
    return tuple(sheet for sheet, known in roles.items() if are_spans(known))


def _opened(member: Member, options: Options, most: int | None = None) -> Table:
    if is_workbook(member):
        sheets = (options.sheet,) if options.sheet else _sheets(member)
        if len(sheets) != 1:
            listed = ", ".join(map(shown, sheets[:12]))
            said = f"Several sheets hold spans: {listed}." if sheets else "No sheet holds spans."
            raise InputError(said, where=member.name, do="Choose one (--sheet)." if sheets else NEEDS)
        return sheet_table(member, sheets[0], most)
    return read_table(member, kind_of(member), most, do=NEEDS)


def _read(member: Member, options: Options) -> Import:
    table = _opened(member, options)
    rows = placing.span_rows(table, options)
    home, documents = _home(rows, table.name, options)
    placed = placing.placed(rows, documents, table.name)
    if placed.rows.is_empty():
        first, count = placed.misplaced[0].first, sum(group.count for group in placed.misplaced)
        said = (
            f"None of its {count:,} spans stands in a document of the collection {shown(home)}; the first: "
        )
        raise InputError(said + first.found, where=first.where, do=first.do or _NO_DOCUMENTS)
    imported = placing.span_set(placed.rows, table.name, member.stem, replace(options, collection_id=home))
    note = f"{member.name}: anchored to documents of the collection {home}."
    left = (
        LeftOut(group.count, group.reason, f"{group.first.where}: {group.first.found}")
        for group in placed.misplaced
    )
    return replace(imported, notes=(*imported.notes, note), left_out=(*imported.left_out, *left))


def _home(rows: pl.DataFrame, name: str, options: Options) -> tuple[str, pl.DataFrame]:
    """Return the collection whose documents are quoted, and those documents.

    It is the one that the user named, or else the one in the same offer or with the file's name, or else
    the only one that has documents of these names.
    """
    sources, known = rows["source"].unique().sort().to_list(), sorted(options.known_collections)
    wanted = options.collection_id or ""
    if options.collection_given:
        if wanted not in known:
            problem = f"There is no collection {shown(wanted)}."
            raise InputError(problem, where=name, do=f"{_known(known)} {_NO_DOCUMENTS}")
        return wanted, texts(options.documents, wanted, sources)
    offered = {collection: texts(options.documents, collection, sources) for collection in known}
    having = {collection: held for collection, held in offered.items() if held.height}
    if wanted in having:
        return wanted, having[wanted]
    if len(having) > 1:
        listed = ", ".join(map(shown, list(having)[:12]))
        problem = f"Documents of these names are in several collections: {listed}."
        raise InputError(problem, where=name, do="Say which (--collection).")
    if not having:
        some = ", ".join(shown(source, 40) for source in sources[:3])
        problem = f"No collection has the documents {some}{'…' if sources[3:] else ''}."
        raise InputError(problem, where=name, do=f"{_known(known)} {_NO_DOCUMENTS}")
    return next(iter(having.items()))


def _known(names: Sequence[str]) -> str:
    listed = ", ".join(map(shown, names[:12])) + (f" and {len(names) - 12} more" if names[12:] else "")
    return f"At hand: {listed}." if listed else "There are no collections yet."
