"""Parts of golden sets and collections go with their whole into a new version, or into its place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from core.analysis.export import batch_of
from core.importers import Import, export, load
from core.store import Store
from core.work.imports.background import ChangedError
from core.work.imports.imports import store_import
from tests.work.imports.test_anchored import CSV, SIZES, cut, grades, offer, store

__all__ = ["store"]
CHUNKS = cut(SIZES[0]).name


def exported(store: Store, path: Path) -> Import:
    export(batch_of(store.read()), path)
    return load([path])


def golden_sets(store: Store) -> list[tuple[str, str, str | None]]:
    found = store.read().golden_sets(parts=True)
    return sorted(found.select("golden_set_id", "collection_id", "part_of").iter_rows())


@pytest.mark.slow
def test_parts_of_a_golden_set_go_with_it(store: Store, tmp_path: Path):
    offer(store)
    first = exported(store, tmp_path / "first.zip")
    offer(store, CSV.replace(".,5", ".,3"), "replace")
    second = exported(store, tmp_path / "second.zip")
    other = Store(tmp_path / "other")
    store_import(other, first, "")
    with pytest.raises(ChangedError) as refused:
        store_import(other, second, "")
    assert [str(each) for each in refused.value.changes] == ["golden set 'c-spans'"]
    store_import(other, second, "", choice="new")
    part = f"c-spans@{CHUNKS}"
    new = part.replace("spans@", "spans-2@")
    assert golden_sets(other) == sorted(
        [
            ("c-spans", "c", None),
            (part, f"c@{CHUNKS}", "c-spans"),
            ("c-spans-2", "c", None),
            (new, f"c@{CHUNKS}", "c-spans-2"),
        ]
    )
    assert (grades(other, part)["grade"].max(), grades(other, new)["grade"].max()) == (5, 4)
    assert not store_import(other, second, "").fresh, "both are known now"
    offer(store, CSV.replace(".,5", ".,1"), "replace")
    store_import(other, exported(store, tmp_path / "third.zip"), "", choice="replace")
    assert grades(other, new).filter(query_id="q1")["grade"].to_list() == [1]
    assert grades(other, part).filter(query_id="q1")["grade"].to_list() == [5]


@pytest.mark.slow
def test_chunks_go_with_their_collection(store: Store, tmp_path: Path):
    offer(store)
    first = exported(store, tmp_path / "first.zip")
    other = Store(tmp_path / "other")
    store_import(other, first, "")
    louder = first.frames["passages"].lazy().with_columns(pl.col("text").str.to_uppercase())
    changed = replace(first, frames={**first.frames, "passages": louder})
    with pytest.raises(ChangedError, match="collection 'c'"):
        store_import(other, changed, "")
    store_import(other, changed, "", choice="new")
    found = other.read().collections(parts=True)
    assert set(found.select("collection_id", "part_of").iter_rows()) == {
        ("c", None),
        (f"c@{CHUNKS}", "c"),
        ("c-2", None),
        (f"c-2@{CHUNKS}", "c-2"),
    }
    texts = other.read().passages(f"c-2@{CHUNKS}")["text"].to_list()
    assert texts == [text.upper() for text in texts]
    assert other.read().passages(f"c@{CHUNKS}")["text"].to_list() != texts
    assert (f"c-spans-2@{CHUNKS}", f"c-2@{CHUNKS}", "c-spans-2") in golden_sets(other)
    assert not store_import(other, changed, "").fresh, "both are known now"
