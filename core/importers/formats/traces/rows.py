"""Rows in the exports of tools that record traces: JSON, JSON lines, CSV or Parquet."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress

from core.errors import InputError
from core.importers.read.jsons import Json, json_rows, kind_of_value, outline, parsed, read_json
from core.importers.read.member import Member, per_member
from core.importers.read.tabular import columns, kind_of, read_table
from core.importers.read.text import place

WRAPPERS = ("data", "runs", "observations", "spans", "traces")  # Keys under which an export may hold its list
_LITERAL_BYTES = 1_000_000
_BROKEN = (ValueError, SyntaxError, MemoryError, RecursionError)
_MOST_VALUES = 200_000
_MOST_DOCUMENTS = 100_000
_IN_DOCUMENT = re.compile(r"(?P<list>.*?documents)\.(?P<place>\d{1,6})(?:\.(?:document\.)?(?P<field>.+))?")


@per_member
def key_paths(member: Member) -> frozenset[str]:
    """Return column names, or keys of the first objects (nested ones joined by dots), from the head."""
    kinds = outline(member)
    if not kinds:
        return frozenset(columns(member))
    roots = ("[]", *(f"{name}[]" for name in WRAPPERS), "")
    root = next((path for path in roots if "object" in kinds.get(path, ())), None)
    if root is None:
        return frozenset()
    return frozenset(path[len(root) :].lstrip(".") for path in kinds if path.startswith(root))


def entries(member: Member) -> Iterator[tuple[str, Json]]:
    """Yield the rows of an export with their locations, in order."""
    kind = kind_of(member)
    head = member.head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if head[:1] in (b"[", b"{"):
        first, _, rest = head.partition(b"\n")  # an object on its own line, followed by another
        lines = kind == "jsonl" and first.rstrip().endswith(b"}") and rest.lstrip()[:1] in (b"{", b"")
        yield from _from_json(member, lines=lines)
        return
    if kind is None:
        raise InputError("This is neither JSON nor a table.", where=member.name)
    table = read_table(member, kind)
    for line, row in zip(table.lines, table.rows.iter_rows(named=True), strict=True):
        yield place(member.name, line), {key: cell(value) for key, value in row.items()}


def _from_json(member: Member, *, lines: bool) -> Iterator[tuple[str, Json]]:
    if lines:
        rows = (
            (place(member.name, line), row) for line, holder in json_rows(member) for row in _held(holder)
        )
    else:
        rows = ((f"{member.name}, entry {at}", row) for at, row in enumerate(_held(read_json(member)), 1))
    for where, row in rows:
        if not isinstance(row, dict):
            raise InputError(f"It is {kind_of_value(row)}, not an object.", where=where)
        yield where, row


def _held(value: object) -> list[object]:
    """Return the list in an object that holds nothing else (but a link to the next page), or the value."""
    if isinstance(value, list):
        return value
    holder = value if isinstance(value, dict) and "id" not in value else {}
    lists = [holder[key] for key in WRAPPERS if isinstance(holder.get(key), list)]
    return lists[0] if len(lists) == 1 else [value]


def cell(value: object) -> object:
    """Parse a text cell that holds JSON, or lists and maps as Python prints them."""
    if not isinstance(value, str) or value[:1] not in ("{", "[", '"') or len(value) > _LITERAL_BYTES:
        return value
    with suppress(InputError):
        return parsed(value, "cell")
    try:
        literal: object = ast.literal_eval(value)
    except _BROKEN:
        return value
    return literal if isinstance(literal, dict | list) else value


def flattened(row: Json, prefix: str, where: str) -> Json:
    """Return every value by its dotted path, without a prefix; lists of documents are put together again.

    A value may hold what lies below it as a list or a map, or in its keys (``documents.0.document.id``).
    """
    flat: Json = {}
    waiting: list[tuple[str, object]] = [("", row)]
    for count, (path, value) in enumerate(waiting):  # grows while it is read
        if count > _MOST_VALUES:
            raise InputError(f"The span holds more than {_MOST_VALUES:,} values.", where=where)
        if isinstance(value, dict):
            waiting += [(f"{path}.{key}" if path else str(key), held) for key, held in value.items()]
        elif isinstance(value, list) and "documents" in path:
            waiting += [(f"{path}.{at}", held or "") for at, held in enumerate(value)]
        elif value is not None:
            flat.setdefault(path.removeprefix(prefix), value)
    return {**flat, "output": row.get("output"), **_documents(flat)}


def _documents(flat: Json) -> Json:
    """Return lists of documents by their paths, each in the order of their numbers."""
    lists: dict[str, dict[int, Json]] = defaultdict(dict)
    for key, value in flat.items():
        matched = _IN_DOCUMENT.fullmatch(key) if "documents." in key else None
        if matched and len(lists[matched["list"]]) < _MOST_DOCUMENTS:
            document = lists[matched["list"]].setdefault(int(matched["place"]), {"metadata": {}})
            name = matched["field"] or ""  # "" = no object: the list cannot be restored
            holder = document["metadata"] if name.startswith("metadata.") else document
            holder[name.removeprefix("metadata.")] = value
    return {path: [by_place[at] for at in sorted(by_place)] for path, by_place in lists.items() if by_place}
