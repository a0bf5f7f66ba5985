"""What an examination finds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from core.records import Batch, Collection, GoldenSet
from core.store import Store
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
