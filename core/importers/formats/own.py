"""The product's own format, version 1: a folder or zip that holds everything and restores it exactly.

``manifest.json``
    {"format": "clq-explorer", "version": 1, "tables": {table: {"file", "rows", "blake2b"}}}, and under
    "incumbents" the runs of the stacks that run today, if any are marked
``collections.jsonl``, ``golden_sets.jsonl``, ``runs.jsonl``
    One record per line, fields as in `core.records`; a run has `spec` (its stack) and `created_at` (ISO
    8601). Later fields (`part_of`, `chunking`, `parents`, `manifest`) may be absent.
``queries``, ``passages``, ``judgements``, ``rankings``, ``timings``… (the names of `core.tables.TABLES`)
    Parquet with the columns declared there; tables without rows may be absent. JSONL and CSV are read too,
    and ``doc_id`` for ``passage_id``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, fields
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from core.answers import EARLIER, parted
from core.axes import KEYS
from core.errors import InputError
from core.files import target
from core.importers.base import Format, Import, Options, merged
from core.importers.read.jsons import Json, expect, json_rows, optional
from core.importers.read.member import Archive, Member
from core.importers.read.tabular import PARQUET, READ_ERRORS, kind_of, read_objects, read_table
from core.importers.read.text import place, quoted, shown
from core.importers.report import TAKEN, FileReport, ReportParts, file_report
from core.records import Batch, Collection, GoldenSet, Origin, Run, Stack
from core.tables import TABLES

NAME, VERSION = "clq-explorer", 1
MANIFEST = "manifest.json"
_MANIFEST_BYTES = 1 << 20
_LEVEL = 8  # zstd level: as fast as the usual 3, and files are a twentieth smaller
_RECORD_FILES = ("collections.jsonl", "golden_sets.jsonl", "runs.jsonl")

Record = TypeVar("Record", Collection, GoldenSet, Run)
_Small = TypeVar("_Small", Collection, GoldenSet)
_KINDS: Mapping[str, Mapping[str, type]] = {
    "spec": {name: key.kind for name, key in KEYS.items()},
    "environment": {"cpu": str, "cores": int, "reported": str},
    "manifest": {"cost_scope": str, "scenario": str, "sweep": dict, "printed": dict},
}
"""Keys that are read from each map, with their types."""
_READ: Mapping[str, pl.Schema] = {"answers": pl.Schema({**TABLES["answers"], **EARLIER})}
"""Columns that are read from a table that had different ones in an earlier release."""
_MAY_LACK = {
    "answers": set(_READ["answers"]) - {"run_id", "query_id", "k", "text"},
    "ratings": {"reason"},
    "timings": {"place"},
}
"""Columns that only one of the releases writes."""
_MADE: Mapping[str, type] = {"parents": list, "manifest": dict}
"""Fields on how a golden set was made, and of which kind it is."""
_LARGEST = 1 << 31


class Own(Format):
    """An export of this product."""

    name, title = "clq", "CLQ Explorer export"
    in_ranges = True
    takes = dict.fromkeys(TABLES, "")
    recognised = "A manifest that names the format"

    def sniff(self, probe: Archive) -> float:
        manifest = _member(probe, MANIFEST)
        return 1.0 if manifest and f'"{NAME}"'.encode() in manifest.head else 0.0

    def reports(self, archives: Sequence[Archive], options: Options) -> Iterator[FileReport]:  # noqa: ARG002
        """Report records as read whole, tables by their columns, and other files as left out."""
        for archive in archives:
            manifest = _manifest(archive)
            root, listed = manifest.relative.removesuffix(MANIFEST), _listed(manifest, _said(manifest))
            known: dict[str, ReportParts] = {root + name: {"*": TAKEN} for name in (MANIFEST, *_RECORD_FILES)}
            for table, entry in listed.items():
                columns = (*_READ.get(table, TABLES[table]), "doc_id")
                known[root + entry["file"]] = dict.fromkeys(columns, TAKEN)
            for member in archive.members:
                yield file_report(member, known.get(member.relative, "the manifest does not list it"))

    def read(self, archives: Sequence[Archive], options: Options) -> Import:  # noqa: ARG002
        """Read exports unchanged; none of the options applies."""
        return merged(_read(archive) for archive in archives)


def _member(archive: Archive, name: str) -> Member | None:
    """Return a file of the export; an archive may hold it within one folder."""
    matches = [
        member
        for member in archive.members
        if member.relative == name or member.relative.endswith(f"/{name}")
    ]
    return min(matches, key=lambda member: member.relative.count("/"), default=None)


def _read(archive: Archive) -> Import:
    manifest = _manifest(archive)
    root = manifest.relative.removesuffix(MANIFEST)
    members = {
        member.relative.removeprefix(root): member
        for member in archive.members
        if member.relative.startswith(root)
    }
    said = _said(manifest)
    listed = _listed(manifest, said)
    frames: dict[str, pl.DataFrame] = {}
    for table, entry in listed.items():
        file = entry["file"]
        if file not in members:
            raise InputError(f"The file {quoted(file)} is listed but missing.", where=manifest.name)
        rows = _table(members[file], table, entry)
        frames |= parted(rows) if table == "answers" else {table: rows}
    return Import(
        collections=_small(Collection, members.get("collections.jsonl"), "collection_id"),
        golden_sets=_small(GoldenSet, members.get("golden_sets.jsonl"), "golden_set_id"),
        runs=tuple(_records(members.get("runs.jsonl"), _run, "run_id")),
        frames=frames,
        incumbents=tuple(map(str, marked)) if isinstance(marked := said.get("incumbents"), list) else (),
    )


def _manifest(archive: Archive) -> Member:
    manifest = _member(archive, MANIFEST)
    if manifest is None:
        do = "Offer the whole exported folder or zip."
        raise InputError(f"There is no {MANIFEST}.", where=archive.name, do=do)
    return manifest


def _said(manifest: Member) -> Mapping[str, Any]:
    with manifest.stream() as stream:
        text = stream.read(_MANIFEST_BYTES)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"The manifest is not valid JSON: {shown(error)}.", where=manifest.name) from error
    if not isinstance(content, dict) or content.get("format") != NAME:
        raise InputError(f"The manifest does not say format {NAME!r}.", where=manifest.name)
    version = content.get("version")
    if version != VERSION:
        problem = (
            f"Version {shown(version)} of the format is not known; this release reads version {VERSION}."
        )
        do = "Update CLQ Explorer, or export again with this release."
        raise InputError(problem, where=manifest.name, do=do)
    return content


def _listed(manifest: Member, content: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    tables = content.get("tables", {})
    if not isinstance(tables, dict) or not all(isinstance(entry, dict) for entry in tables.values()):
        raise InputError("`tables` is not a map of maps.", where=manifest.name)
    if unknown := sorted(set(tables) - set(TABLES)):
        problem = f"Unknown table {quoted(unknown[0])}; known: {', '.join(TABLES)}."
        raise InputError(problem, where=manifest.name)
    return {
        table: {**entry, "file": str(entry.get("file", f"{table}.parquet"))}
        for table, entry in tables.items()
    }


def _table(member: Member, table: str, entry: Mapping[str, Any]) -> pl.DataFrame:
    content = member.read()
    if "blake2b" in entry and entry["blake2b"] != _hash(content):
        raise InputError("The file was changed after the export: its hash differs.", where=member.name)
    schema = _READ.get(table, TABLES[table])
    try:
        rows = _rows(member, content, schema)
        if "passage_id" in schema and "passage_id" not in rows.columns and "doc_id" in rows.columns:
            rows = rows.rename({"doc_id": "passage_id"})
        missing = [column for column in schema if column not in {*rows.columns, *_MAY_LACK.get(table, ())}]
        if missing:
            listed = ", ".join(map(shown, rows.columns[:20]))
            raise InputError(f"no column `{missing[0]}` in {member.name}; found: {listed}.")
        if table not in _READ:  # columns that an earlier release did not write are unknown
            rows = rows.with_columns(
                pl.lit(None, schema[name]).alias(name) for name in {*schema} - {*rows.columns}
            )
        rows = rows.select(
            _typed(rows, name, dtype) for name, dtype in schema.items() if name in rows.columns
        )
    except READ_ERRORS as error:
        raise InputError(f"The table cannot be read: {shown(error, 200)}", where=member.name) from error
    if "rows" in entry and entry["rows"] != rows.height:
        raise InputError(f"{rows.height} rows, the manifest says {shown(entry['rows'])}.", where=member.name)
    return rows


def _typed(rows: pl.DataFrame, name: str, dtype: pl.DataType) -> pl.Expr:
    """Return a column in its declared type; delimited tables write true and false as words."""
    if dtype == pl.Boolean and rows.schema[name] == pl.String:
        words = {"true": True, "false": False}
        return pl.col(name).str.to_lowercase().replace_strict(words, return_dtype=pl.Boolean)
    return pl.col(name).cast(dtype)


def _rows(member: Member, content: bytes, schema: pl.Schema) -> pl.DataFrame:
    """Return the rows unchanged.

    They come from Parquet, JSON lines, or a delimited table (lists as JSON, empty = unknown).
    """
    if content.startswith(PARQUET):
        return read_table(member, "parquet").rows
    if content.lstrip()[:1] in (b"{", b""):
        # Polars reads no small integers from JSON.
        wide = {name: pl.Int64() if dtype.is_integer() else dtype for name, dtype in schema.items()}
        return read_objects(content, wide)
    kind = kind_of(member)
    if kind is None:
        raise InputError("It is neither Parquet, nor JSON lines, nor a table.", where=member.name)
    rows = read_table(member, kind).rows.with_columns(pl.col(pl.String).replace("", None))
    return rows.with_columns(
        pl.col(name).str.json_decode(dtype)
        for name, dtype in schema.items()
        if isinstance(dtype, pl.List) and rows.schema.get(name) == pl.String
    )


def _hash(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def export(batch: Batch, path: Path) -> None:
    """Write a batch in the own format; all or nothing.

    Args:
        path: A new folder, or a file that ends in ``.zip``.

    Raises:
        InputError: The path exists already or cannot be written.
    """
    with target(path) as folder:
        _write(batch, folder)


def _write(batch: Batch, folder: Path) -> None:
    records: dict[str, list[dict[str, Any]]] = {
        "collections": [asdict(collection) for collection in batch.collections],
        "golden_sets": [asdict(golden_set) for golden_set in batch.golden_sets],
        "runs": [_run_row(run) for run in batch.runs],
    }
    for kind, rows in records.items():
        text = "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
        (folder / f"{kind}.jsonl").write_text(text, encoding="utf-8")
    tables: dict[str, dict[str, Any]] = {}
    for table, rows_of_table in batch.frames.items():
        file = folder / f"{table}.parquet"
        held = rows_of_table.lazy().select(list(TABLES[table])).collect()
        if held.height:
            held.write_parquet(file, compression_level=_LEVEL)
            tables[table] = {"file": file.name, "rows": held.height, "blake2b": _hash(file.read_bytes())}
    manifest = {"format": NAME, "version": VERSION, "tables": tables}
    if batch.incumbents:
        manifest["incumbents"] = list(batch.incumbents)
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def _run_row(run: Run) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "collection_id": run.collection_id,
        "label": run.label,
        "origin": run.origin.value,
        "pool": run.pool,
        "spec": dict(run.stack.spec),
        "environment": dict(run.environment),
        "manifest": dict(run.manifest),
        "created_at": run.created_at.isoformat(),
        "chunking": run.chunking,
    }


def _records(member: Member | None, make: Callable[[Json, str], Record], key: str) -> Iterator[Record]:
    """Yield the records of a file, each id only once."""
    if member is None:
        return
    ids: set[str] = set()
    for line, row in json_rows(member):
        where = place(member.name, line)
        try:
            json.dumps(row, allow_nan=False)
            record = make(row, where)
        except (TypeError, ValueError) as error:
            raise InputError(f"The record cannot be used: {shown(error, 200)}.", where=where) from error
        own = getattr(record, key)
        if own in ids:
            raise InputError(f"The {key} {quoted(own)} stands twice.", where=where)
        ids.add(own)
        yield record


def _small(kind: type[_Small], member: Member | None, key: str) -> tuple[_Small, ...]:
    """Return records whose fields are texts; fields without a default are required."""
    known = {field.name: field for field in fields(kind)}

    def make(row: Json, where: str) -> _Small:
        _refuse_unknown(row, set(known), where)
        given: dict[str, Any] = {}
        for name, declared in known.items():
            ask = expect if declared.default is MISSING and name not in _MADE else optional
            given[name] = ask(row, name, _MADE.get(name, str), where)
        if given.get("parents") is not None:
            given["parents"] = tuple(map(str, given["parents"]))
        return kind(**{name: value for name, value in given.items() if value is not None})

    return tuple(_records(member, make, key))


def _run(row: Json, where: str) -> Run:
    _refuse_unknown(row, {field.name for field in fields(Run)} - {"stack"} | {"spec"}, where)
    created = datetime.fromisoformat(expect(row, "created_at", str, where))
    if created.tzinfo is None:
        raise ValueError("created_at has no time zone")
    kept = {name: _kept(row, name, where) for name in _KINDS}
    return Run(
        run_id=expect(row, "run_id", str, where),
        collection_id=expect(row, "collection_id", str, where),
        stack=Stack(kept["spec"]),
        label=expect(row, "label", str, where),
        origin=Origin(expect(row, "origin", str, where)),
        pool=optional(row, "pool", str, where),
        environment=kept["environment"],
        manifest=kept["manifest"],
        created_at=created,
        chunking=optional(row, "chunking", str, where),
    )


def _refuse_unknown(row: Json, known: set[str], where: str) -> None:
    if strange := sorted(set(row) - known):
        raise InputError(f"A record of this kind has no {shown(strange[0])!r}.", where=where)


def _kept(row: Json, name: str, where: str) -> Json:
    """Return one of a run's maps, limited to the keys known for its kind."""
    held = expect(row, name, dict, where) if name == "spec" else optional(row, name, dict, where) or {}
    spot = f"{where}, key `{name}`"
    for key, kind in _KINDS[name].items():
        value: Any = optional(held, key, kind, spot)
        if kind is int and value is not None and not 0 <= value < _LARGEST:
            raise InputError(f"{key!r} is {value:,}.", where=spot)
        if value is not None and name == "spec" and KEYS[key].names_method:
            expect(value, "method", str, f"{where}, key `{name}.{key}`")
    return held
