"""The mark on the stack that runs today: one a collection, over revisions, backup, export, deletion."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.analysis.export import batch_of
from core.errors import UnknownNameError
from core.importers import export, load
from core.records import Batch
from core.store import Store, upkeep
from core.work.incumbent import mark, marked, unmark
from tests.stores import Lab


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Lab().judge({"q1": {"good": 5}})
    for name in ("old", "new"):
        made.run(name, final={"q1": ["good"]})
    return made.write(tmp_path / "s")


def today(store: Store) -> str | None:
    return store.read().incumbent("lab")


def test_one_stack_is_marked_until_another_is(store: Store):
    assert today(store) is None
    old, new = (mark(store, "lab", name) for name in ("old", "new"))
    assert (today(store), old != new) == (new, True)
    mark(store, None, new)
    assert store.read(store.revision() - 1).incumbent("lab") == old  # marking again made no revision
    assert marked(store.read()).rows() == [("lab", new, "new")]
    unmark(store, None)
    assert (today(store), marked(store.read()).height) == (None, 0)


def test_a_name_that_is_none_is_refused(store: Store):
    for collection, name in (("lab", "nope"), ("other", "old"), (None, "nope")):
        with pytest.raises(UnknownNameError):
            mark(store, collection, name)
    with pytest.raises(UnknownNameError), store.write("mark") as writer:
        writer.mark("nope")
    assert today(store) is None


def test_a_deleted_stack_runs_nowhere_until_it_is_restored(store: Store):
    run_id = mark(store, "lab", "old")
    with store.write("delete") as writer:
        writer.remove("run", [run_id])
    assert today(store) is None
    with store.write("restore") as writer:
        writer.restore("run", [run_id])
    assert today(store) == run_id


def test_backup_and_export_keep_it(store: Store, tmp_path: Path):
    run_id = mark(store, "lab", "old")
    upkeep.backup(store, tmp_path / "copy")
    assert today(Store.open(tmp_path / "copy")) == run_id
    export(batch_of(store.read()), tmp_path / "exported.zip")
    other = Store.open(tmp_path / "other")
    with other.write("import") as writer:
        writer.add(load([tmp_path / "exported.zip"]).batch)
    assert today(other) == run_id


def test_an_import_does_not_overrule_what_is_marked(store: Store):
    batch = batch_of(store.read())
    new = mark(store, "lab", "new")
    old = next(run.run_id for run in batch.runs if run.run_id != new)
    with store.write("import") as writer:
        writer.add(Batch(runs=batch.runs, incumbents=(old, "unknown")))
    assert today(store) == new


def test_the_list_of_changes_of_a_collection_says_that_it_was_marked(store: Store):
    before = store.revision()
    mark(store, "lab", "old")
    assert store.read().changes_of("lab", before)["action"].to_list() == ["mark"]
