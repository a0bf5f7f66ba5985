"""What an examination finds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from core.records import Batch, Collection, GoldenSet
from core.store import Store, upkeep
from core.store.doctor import Level, examine
from tests.store import material
from tests.store.material import judgements, rankings, run


def words(store: Store, level: Level) -> str:
    return "\n".join(finding.found for finding in examine(store).findings if finding.level is level)


def test_absent_store(store: Store) -> None:
    report = examine(store)
    assert report.sound
    assert (report.revision, report.findings) == (0, ())
    assert set(report.counts.values()) == {0}


def test_whole_store(filled: Store) -> None:
    with filled.write("delete") as writer:
        writer.remove("run", ["b"])
    report = examine(filled)
    assert report.sound
    assert not report.findings
    assert (report.counts["runs"], report.counts["runs (removed)"], report.counts["rankings"]) == (1, 1, 10)
    assert report.schema == report.newest_schema


def point(store: Store, name: str) -> None:
    (store.path / "CURRENT").write_text(f"{name}\n", encoding="ascii")


@pytest.mark.parametrize("back", [1, 2, None])
def test_a_newer_catalogue_that_the_pointer_passes_over(filled: Store, back: int | None) -> None:
    names = {1: (filled.path / "CURRENT").read_text().strip()}
    for revision, run_id in ((2, "a"), (3, "b")):
        with filled.write("delete") as writer:
            writer.remove("run", [run_id])
        names[revision] = (filled.path / "CURRENT").read_text().strip()
    assert filled.passed_over() is None
    point(filled, "nothing yet" if back is None else names[back])
    assert filled.passed_over() == 3
    report = examine(filled)
    assert not report.sound
    (found,) = (each for each in report.findings if each.level is Level.DAMAGE)
    assert found.found == f"CURRENT names revision {back or 0}, and {names[3]}, revision 3, lies beside it."
    assert "doctor --repair" in found.do
    assert upkeep.repair(filled) == ["Revision 3, which CURRENT did not name, is the current one."]
    assert examine(filled).sound
    assert filled.revision() == 3


def test_a_newer_catalogue_that_cannot_be_taken(filled: Store) -> None:
    first = (filled.path / "CURRENT").read_text().strip()
    for run_id in ("a", "b"):
        with filled.write("delete") as writer:
            writer.remove("run", [run_id])
    point(filled, first)
    with filled.write("delete") as writer:  # another revision 2, from which no 3 goes on
        writer.remove("run", ["b"])
    report = examine(filled)
    assert report.sound
    assert "revision 3, lies beside it and cannot be taken" in words(filled, Level.MISSING)
    assert upkeep.repair(filled) == []
    assert filled.revision() == 2


def test_a_catalogue_that_a_killed_writer_left_is_not_passed_over(filled: Store) -> None:
    first = (filled.path / "CURRENT").read_text().strip()
    with filled.write("delete") as writer:
        writer.remove("run", ["a"])
    left = (filled.path / "CURRENT").read_text().strip()
    (filled.path / "JOURNAL").write_text(f"catalogue/{left}\n")
    point(filled, first)
    assert filled.passed_over() is None
    assert examine(filled).sound


@pytest.mark.slow
def test_what_is_missing(filled: Store) -> None:
    other = Collection(collection_id="other", name="Other")
    gold = [GoldenSet(golden_set_id=name, collection_id="corpus", name=name) for name in ("stray", "bare")]
    with filled.write("import") as writer:
        writer.add(
            Batch(
                collections=(other,),
                golden_sets=tuple(gold),
                runs=(run("ranked"), run("empty")),
                frames={
                    "rankings": rankings("ranked", {"q1": ["p1"]}),
                    "judgements": judgements({"q1": {"p1": 3, "gone": 2}, "lost": {"p2": 1}}, "stray"),
                },
            )
        )
    found = words(filled, Level.MISSING)
    for expected in (
        "1 run with neither rankings nor aggregates: 'empty'",
        "1 run with no timings: 'ranked'",
        "1 run with no usage, so no cost: 'ranked'",
        "1 golden set with no judgements: 'bare'",
        "'stray' has 1 judgements of passages",
        "'stray' has 1 judged queries",
        "1 collection with no passages, so their texts cannot be shown: 'other'",
    ):
        assert expected in found
    assert examine(filled).sound


def _shorten(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def _flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize(
    ("harm", "expected"), [(Path.unlink, "is missing"), (_shorten, "bytes, not"), (_flip, "other bytes")]
)
def test_damage(filled: Store, harm: Callable[[Path], None], expected: str) -> None:
    harm(next(filled.path.rglob("rankings.parquet")))
    assert not examine(filled).sound
    assert expected in words(filled, Level.DAMAGE)
    assert "rankings.parquet" in words(filled, Level.DAMAGE)


@pytest.mark.slow
def test_leftovers_and_writers(filled: Store) -> None:
    for name in ("parts/00000002-dead", "parts/.00000002-dead"):
        (filled.path / name).mkdir()
    (filled.path / "catalogue" / ".00000002-dead.duckdb").write_text("x")
    (filled.path / "catalogue" / "00000002-dead.duckdb").write_text("x")
    assert "2 files or folders of writers" in words(filled, Level.NOTE)
    assert "2 files or folders that no revision" in words(filled, Level.NOTE)
    with filled.write("long import") as writer:
        assert "long import" in words(filled, Level.NOTE)
        writer.add(material.small())
    assert "2 files or folders of writers" not in words(filled, Level.NOTE)
    left = sorted(path.name.partition("-")[2] for path in (filled.path / "trash").iterdir())
    assert left == ["00000002-dead", "00000002-dead.duckdb"]
    assert (filled.path / "parts" / "00000002-dead").is_dir(), "nothing proves that a writer left it"
