"""Tables beside a collection: the metadata of its passages, and the filters of its questions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime

import polars as pl

from core.errors import InputError, UnknownNameError
from core.filters import decoded, fields_of, kinds, parse
from core.importers.base import LOOK_ROWS, Format, Import, Look, Options, counted, frames_of, merged
from core.importers.read.member import Archive, Member, members_of
from core.importers.read.rows import again, identified, refuse
from core.importers.read.tabular import READ_ERRORS, columns, kind_of, read_table
from core.importers.read.text import place, shown
from core.importers.report import TAKEN, FileReport, settled
from core.importers.runs import collection_of

FILTER = "filter"  # The column with the filters of questions
_NAMED = "metadata"  # What the name of a file with metadata holds
_QUERY_IDS = ("query_id", "qid", "question_id")
_PASSAGE_IDS = ("passage_id", "doc_id", "document_id", "chunk_id", "_id", "id")
_RANKED = {"rank", "score", "grade", "relevance", "run", "run_id"}
_TEXTS = {"text", "title", "content", "contents", "body"}
_NAMED_MOST = 5  # Questions named in a note
_OF_COLLECTION = "the texts of the collection count"


class FilterColumns(Format):
    """Filters of questions, and metadata of passages, as tables of their own."""

    name, title = "filters", "Filters of queries, metadata of passages (CSV, TSV, JSONL, Parquet)"
    takes = {
        "query_filters": "the column filter, by query_id",
        "passage_metadata": "all columns but the texts, by passage_id",
    }
    recognised = "the columns query_id and filter; or passage_id, in a file with metadata in its name"
    traps = (
        "Texts are not read: those of the collection count.",
        "A cell without a value is a field that the passage does not have.",
    )

    def kind(self, member: Member) -> str | None:
        with suppress(*READ_ERRORS, InputError):
            if kind_of(member) not in (None, "json"):
                return _kind(member, columns(member))
        return None

    def sniff(self, probe: Archive) -> float:
        return 1.0 if probe.members and all(self.kind(member) for member in probe.members) else 0.0

    def look(self, archive: Archive, options: Options) -> Look:  # noqa: ARG002
        member = archive.members[0]
        return Look(read_table(member, kind_of(member), LOOK_ROWS).texts)

    def read(self, archives: Sequence[Archive], options: Options) -> Import:
        """Read filters and metadata; they belong to the collection of the options."""
        read = [self._member(member, options) for member in members_of(archives)]
        return merged([Import(collections=collection_of(options, "imported: filters")), *read])

    def reports(self, archives: Sequence[Archive], options: Options) -> Iterator[FileReport]:  # noqa: ARG002
        for member in members_of(archives):
            names = columns(member)
            of_filters = dict.fromkeys(names, _OF_COLLECTION) | dict.fromkeys((*_QUERY_IDS, FILTER), TAKEN)
            of_fields = dict.fromkeys(names, TAKEN) | dict.fromkeys(_TEXTS, _OF_COLLECTION)
            known = of_filters if self.kind(member) == "queries" else of_fields
            yield settled(member.name, "column", names, known)

    def _member(self, member: Member, options: Options) -> Import:
        kind = kind_of(member)
        table = read_table(member, kind)
        of_queries = self.kind(member) == "queries"
        ids = _QUERY_IDS if of_queries else _PASSAGE_IDS
        column = next((name for name in ids if name in table.rows.columns), None)
        if column is None:
            found = f"There is no column {' or '.join(ids)}."
            raise InputError(found, where=member.name, do=f"Found: {', '.join(table.rows.columns)}.")
        rows = identified(table.taking({"id": column}), member.name, "id")
        refuse(again(rows, "id"), "The id {id} occurs twice.", member.name, column)
        if of_queries:
            given = table.taking({FILTER: FILTER})[FILTER]
            return filters_of(rows["id"], given, rows["line"], member.name, options)
        others = [name for name in table.rows.columns if name in {column, *_TEXTS}]
        known = field_columns(table.rows.drop(others), plain=kind not in ("jsonl", "parquet"))
        texts = pl.Series([written(of_one) for of_one in known], dtype=pl.String)
        return metadata_of(rows["id"], texts, options)


def _kind(member: Member, names: Sequence[str]) -> str | None:
    held = {name.lower() for name in names}
    if held & _RANKED:
        return None
    asked = not held.isdisjoint(_QUERY_IDS)
    if asked and FILTER in held and held.isdisjoint(("passage_id", "doc_id", "document_id")):
        return "queries"
    found = _NAMED in member.stem.lower() and not asked and not held.isdisjoint(_PASSAGE_IDS)
    return "passages" if found and len(held) > 1 else None


def filters_of(ids: pl.Series, given: pl.Series, lines: pl.Series, where: str, options: Options) -> Import:
    """Return the filters of questions, in canonical form; a question without one sees every passage.

    Raises:
        InputError: A filter cannot be read; the message names its line.
    """
    asked = pl.DataFrame({"query_id": ids, FILTER: given, "line": lines}).drop_nulls(FILTER)
    read = [parse(text, place(where, line)).text for _, text, line in asked.iter_rows()]
    own = asked.select("query_id", filter=pl.Series(read, dtype=pl.String))
    own = own.with_columns(collection_id=pl.lit(options.collection_id))
    free = ids.len() - own.height if own.height else 0
    left = counted({"questions without a filter, which may see every passage": free})
    return Import(frames=frames_of(query_filters=own), left_out=left)


def metadata_of(ids: pl.Series, known: pl.Series, options: Options) -> Import:
    """Return what is known of passages, a JSON object each; those of which nothing is known are left out."""
    rows = pl.DataFrame({"passage_id": ids, "metadata": known.str.strip_chars()})
    rows = rows.filter(pl.col("metadata").str.contains(r"^\{\s*[^\s}]"))
    own = rows.with_columns(collection_id=pl.lit(options.collection_id))
    return Import(frames=frames_of(passage_metadata=own))


def field_columns(rows: pl.DataFrame, *, plain: bool) -> Iterator[dict[str, object]]:
    """Yield the fields of each row of a table, a column each; the column "line" is none.

    Args:
        plain: Whether the cells are texts, as in CSV: numbers, and so on, where all of a column are.
    """
    fields = [name for name in rows.columns if name != "line"]
    cells = [_values(rows[name], plain=plain) for name in fields]
    for at in range(rows.height):
        yield {name: of_column[at] for name, of_column in zip(fields, cells, strict=True)}


def written(known: Mapping[str, object]) -> str:
    """Return fields as a JSON object, without those that have no value; dates as ISO texts."""
    kept = {name: value for name, value in known.items() if value is not None}
    return json.dumps(kept, ensure_ascii=False, sort_keys=True, default=_dated)


def _dated(value: object) -> str:
    return value.isoformat() if isinstance(value, date | datetime) else str(value)


def _values(cells: pl.Series, *, plain: bool) -> list[object]:
    """Return the values of a column; those of a file of plain text are numbers, and so on, where all are."""
    if not plain or cells.dtype != pl.String:
        return cells.to_list()
    texts = cells.str.strip_chars().replace("", None).to_list()
    read = [None if text is None else _json(text) for text in texts]
    kinds = {type(value) for value in read if value is not None}
    unread = any(text is not None and value is None for text, value in zip(texts, read, strict=True))
    alike = kinds <= {int, float} or kinds in ({bool}, {list})
    return read if alike and not unread else texts


def _json(text: str) -> object:
    """Return a cell as a number, true, false or a list; None for a text, such as one with leading zeros."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    written = isinstance(value, int | float) and not isinstance(value, bool) and str(value) == text
    return value if written or isinstance(value, bool | list) else None


def with_permissions(imported: Import, options: Options) -> Import:
    """Return an import with its filters checked, and with the fields that the user marked as permissions.

    Raises:
        UnknownNameError: A filter, or the user, names a field that no passage of the import has.
        InputError: A filter asks a field for another type than it has; permissions without metadata.
    """
    found = imported.frames.get("passage_metadata")
    filters = imported.frames.get("query_filters")
    if found is None and options.permissions:
        do = "Offer the metadata of the passages with it."
        raise InputError("There is no metadata to hold a permission.", do=do)
    as_it_was = any(each.format == "clq" for each in imported.detected)
    if found is None or as_it_was or (filters is None and not options.permissions):
        return imported
    fields = fields_of(decoded(found.lazy().select("metadata").collect()["metadata"]))
    for name in sorted(options.permissions - set(fields.columns)):
        raise UnknownNameError("field of passages", name, fields.columns, where="--permission")
    asked = [] if filters is None else filters.lazy().select("query_id", "filter").collect().rows()
    first = {text: query for query, text in reversed(asked)}
    empty: list[str] = []
    for text, query in first.items():
        read = parse(text)
        read.check(fields, f"filter of query {shown(query, 40)}")
        empty += [] if read.mask(fields).any() else [name for name, other in asked if other == text]
    said = {name: kind.value for name, kind in kinds(fields).items()}
    listed = ", ".join(f"{shown(name, 40)} ({kind})" for name, kind in said.items())
    notes = [f"Fields of passages: {listed}."]
    several = "filters match" if len(empty) > 1 else "filter matches"
    named = ", ".join(shown(name, 40) for name in sorted(empty)[:_NAMED_MOST])
    others = f" and {len(empty) - _NAMED_MOST} more" if len(empty) > _NAMED_MOST else ""
    notes += [f"{len(empty)} {several} no passage: {named}{others}."] * bool(empty)
    marked = [
        {"collection_id": options.collection_id, "field": name, "permission": True}
        for name in sorted(options.permissions)
    ]
    more = Import(frames=frames_of(fields=marked), notes=tuple(notes))
    return merged([imported, more])
