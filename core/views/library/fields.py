"""The fields of a collection's passages, and which of them say what an asker may see."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import polars as pl

from core.analysis.cache import cached
from core.errors import UnknownNameError
from core.filters import Kind, decoded, fields_of, kinds, parse
from core.records import Batch
from core.store import Snapshot, Store
from core.tables import frame
from core.views import columns as cols
from core.views import text

FIELDS = cols.Rows(
    "fields",
    cols.text("field", width=200),
    cols.text("kind", "type", "That of most of its values, unless it is declared."),
    cols.count("passages", "passages that have it"),
    cols.count("queries", "questions that filter by it"),
    cols.text("permission", help="A stack that shows what it forbids is not shipped."),
)
YES = "permission"


@cached("Reading metadata…")
def fields(snapshot: Snapshot, collection_id: str) -> pl.DataFrame:
    """Return the fields of a collection's passages or documents, by name; without rows if it has none."""
    known = snapshot.passage_metadata(collection_id)["metadata"].to_list()
    declared = snapshot.fields(collection_id)
    said = dict(declared.select("field", "kind").drop_nulls().iter_rows())
    typed = fields_of(decoded(known), {name: Kind(kind) for name, kind in said.items()})
    marked = set(declared.filter("permission")["field"])
    texts = snapshot.query_filters(collection_id)["filter"].to_list()
    of_text = {each: parse(each).names for each in set(texts)}
    asked = Counter(name for each in texts for name in of_text[each])
    rows = [
        (name, kind.value, len(typed) - typed[name].null_count(), asked[name], YES if name in marked else "")
        for name, kind in kinds(typed).items()
    ]
    return FIELDS.frame(rows)


def mark(store: Store, collection_id: str, names: Sequence[str]) -> str:
    """Mark these fields as permissions, and no others, in one transaction; return what was done, in words.

    Earlier revisions keep the marks that they had.

    Raises:
        UnknownNameError: If one of the names is a field of no passage.
    """
    snapshot = store.read()
    known, before = fields(snapshot, collection_id), snapshot.fields(collection_id)
    for name in names:
        if name not in set(known["field"]):
            raise UnknownNameError("field of passages", name, known["field"])
    declared = dict(before.select("field", "kind").iter_rows())
    said = ", ".join(names) or "none"
    rows = [
        {
            "collection_id": collection_id,
            "field": name,
            "kind": declared.get(name),
            "permission": name in names,
        }
        for name in sorted({*declared, *names})
    ]
    if rows:
        with store.write("fields", f"{collection_id}: permissions {said}"[:400]) as writer:
            writer.add(Batch(frames={"fields": frame("fields", rows)}), replacing=[collection_id])
    return f"{text.count(len(names), 'permission')} of {collection_id}: {said}."
