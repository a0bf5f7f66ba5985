"""Schema steps: forward, failing, and from the future."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from core.errors import StoreError, StoreVersionError
from core.records import Batch
from core.store import Store, doctor, layout, migrations, upkeep
from core.store.engine import ENGINE
from core.store.migrations import MIGRATIONS, Migration
from tests.store import material
from tests.store.material import run

NEXT = MIGRATIONS[-1].number + 1
GOOD = Migration(
    NEXT, "test step", "ALTER TABLE runs ADD COLUMN owner VARCHAR; INSERT INTO stacks VALUES ('s', '{}', 's')"
)
BAD = Migration(NEXT + 1, "bad step", "CREATE TABLE half (x BIGINT); SELECT * FROM nowhere")


def files(store: Store) -> set[str]:
    return {str(path) for path in store.path.rglob("*")}


def test_numbers_are_consecutive() -> None:
    assert [step.number for step in MIGRATIONS] == list(range(1, len(MIGRATIONS) + 1))


def test_every_prefix_opens_in_this_release(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store of an earlier release, and one of this release under the next."""
    full = (*MIGRATIONS, GOOD)
    for count in range(1, len(full)):
        old = Store.open(store.path.parent / f"release-{count}")
        monkeypatch.setattr(migrations, "MIGRATIONS", full[:count])
        with old.write("import") as writer:
            writer.add(Batch())
            writer._ledger.add_revision(run("a").created_at, "seed", "")
            writer._cursor.execute("DELETE FROM revisions")
        monkeypatch.setattr(migrations, "MIGRATIONS", full)
        snapshot = old.read()
        assert snapshot.catalogue.version == len(full)
        assert snapshot.revision == 2
        assert snapshot.revisions()["action"].to_list() == ["import", "upgrade"]


def test_upgrade_keeps_what_was_there(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    before = filled.read()
    monkeypatch.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, GOOD))
    after = filled.read()
    assert (before.revision, after.revision) == (1, 2)
    assert after.runs().equals(before.runs())
    assert filled.read(1).rankings(["a"]).equals(before.rankings(["a"]))
    assert after.catalogue.column("SELECT owner FROM runs") == [None, None]
    assert doctor.examine(filled).sound


@pytest.mark.slow
def test_a_store_of_the_first_release_opens(tmp_path: Path) -> None:
    """`first_light.zip` was written by the first release: `material.small` of then, and run b removed."""
    shutil.unpack_archive(Path(__file__).with_name("first_light.zip"), tmp_path / "store")
    store = Store.open(tmp_path / "store")
    assert store.catalogue().version == 1
    snapshot = store.read()
    assert (snapshot.revision, snapshot.catalogue.version) == (3, MIGRATIONS[-1].number)
    assert snapshot.runs().select("run_id", "chunking").rows() == [("a", None)]
    assert snapshot.collections()["part_of"].to_list() == [None]
    assert snapshot.golden_sets().select("part_of", "parents", "manifest").rows() == [(None, [], "{}")]
    assert snapshot.rankings(["a"]).height == 8
    assert store.read(1).runs()["run_id"].to_list() == ["a", "b"]
    with store.write("import") as writer:  # what is there is seen as such; the tables of today are new
        batch = material.small()
        timings = batch.frames["timings"].with_columns(place=pl.lit(None, pl.Int32))  # not known then
        writer.add(replace(batch, frames={**batch.frames, "timings": timings}), replacing=["gold"])
    assert store.read().golden_sets()["parents"].to_list() == [["older"]]
    assert store.read().gradings("gold").height == store.read().orders("gold").height == 2
    assert store.read().runs()["run_id"].to_list() == ["a", "b"]
    assert store.read().spans("gold").height == 1
    assert doctor.examine(store).sound


def without_checksum(store: Store) -> Path:
    """Name the current catalogue as the last release did; nothing vouches for its bytes then."""
    path = store.path / "catalogue" / (store.path / "CURRENT").read_text().strip()
    old = path.rename(path.with_name(f"{path.name[:8]}-0123abcd.duckdb"))
    (store.path / "CURRENT").write_text(old.name + "\n")
    return old


def test_a_store_without_checksums_opens_and_the_next_write_adds_them(filled: Store) -> None:
    before = filled.read().runs()
    old = without_checksum(filled)
    assert filled.read().runs().equals(before)
    report = doctor.examine(filled)
    assert report.sound
    assert "no checksum" in report.findings[0].found
    material.add(filled, Batch(runs=(run("c"),)))
    assert layout.sealed(old) is None
    assert layout.sealed(filled.catalogue().path) is not None
    assert not any("no checksum" in finding.found for finding in doctor.examine(filled).findings)
    assert upkeep.repair(filled) == []


def test_a_damaged_catalogue_without_checksum_is_found_by_reading_it(filled: Store) -> None:
    material.add(filled, Batch(runs=(run("c"),)))
    old = without_checksum(filled)
    data = old.read_bytes()
    old.write_bytes(data[:20_000] + bytes(len(data) - 20_000))
    ENGINE._cache.clear()
    assert not doctor.examine(filled).sound
    told = upkeep.repair(filled)
    assert any("Lost: what revision 2 changed" in each for each in told)
    assert filled.read().runs()["run_id"].to_list() == ["a", "b"]
    assert doctor.examine(filled).sound
    assert (filled.path / "aside" / old.name).is_file()


def test_a_failing_step_leaves_the_store_as_it_was(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    before = files(filled)
    monkeypatch.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, GOOD, BAD))
    for _ in range(2):
        with pytest.raises(StoreError, match=rf"Step {BAD.number} \(bad step\)"):
            filled.read()
        with pytest.raises(StoreError, match="bad step"), filled.write("import"):
            pass
    assert files(filled) == before
    monkeypatch.setattr(migrations, "MIGRATIONS", MIGRATIONS)
    assert filled.read().runs().height == 2
    assert filled.read().catalogue.version == len(MIGRATIONS)


def test_steps_roll_back_together(filled: Store) -> None:
    alias = ENGINE.attach(None, read_only=False)
    cursor = ENGINE.cursor(alias)
    cursor.execute("BEGIN")
    migrations.migrate(cursor, empty=True)
    cursor.execute("ROLLBACK")
    assert cursor.execute(
        "SELECT count(*) FROM duckdb_tables() WHERE database_name = current_database()"
    ).fetchall() == [(0,)]
    cursor.close()
    ENGINE.detach(alias)


def test_a_newer_store_is_refused(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, GOOD))
    filled.read()
    monkeypatch.setattr(migrations, "MIGRATIONS", MIGRATIONS)
    ENGINE._cache.clear()
    before = files(filled)
    with pytest.raises(
        StoreVersionError, match=f"schema {NEXT}; this release knows schemas up to {NEXT - 1}"
    ):
        filled.read()
    with pytest.raises(StoreVersionError), filled.write("import"):
        pass
    assert files(filled) == before
