"""Lots: large runs have parts of their own, small ones share; what is stored is the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from core.errors import InputError, StoreDamagedError
from core.records import Batch
from core.store import Store, doctor
from core.store.parts import _lots, stage
from core.store.read import graded
from core.tables import Frame, Pieces
from tests.store import material
from tests.store.material import CORPUS, GOLD, judgements, rankings, run

QUERIES, NAMES = 4, ("a", "b", "c", "d", "e")
DEPTHS = {"a": 9, "b": 1, "c": 2, "d": 8, "e": 3}
"""Passages per query of each run."""


@pytest.fixture(autouse=True)
def _small_lots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.store.parts.ALONE", 30)
    monkeypatch.setattr("core.store.parts.TOGETHER", 16)
    monkeypatch.setattr("core.store.parts._AT_ONCE", 7)
    graded.forget()


def ranked() -> pl.DataFrame:
    """Rankings of five runs, of which two are large."""
    draw = np.random.default_rng(3)
    return pl.concat(
        rankings(
            name,
            {f"q{query}": [f"p{each}" for each in draw.permutation(12)[:depth]] for query in range(QUERIES)},
        )
        for name, depth in DEPTHS.items()
    )


def offered(rows: pl.DataFrame) -> dict[str, Frame]:
    """The same rows in every form that frames come in."""
    mixed = rows.sample(fraction=1, shuffle=True, seed=1)
    return {
        "frame": rows,
        "lazy": mixed.lazy(),
        "pieces": Pieces(tuple(rows[at : at + 10].lazy() for at in range(0, rows.height, 10))),
        "mixed pieces": Pieces(tuple(mixed[at : at + 10].lazy() for at in range(0, rows.height, 10))),
    }


def batch(rows: Frame) -> Batch:
    grades = {f"q{query}": {f"p{each}": 1 + (each + query) % 5 for each in range(8)} for query in range(3)}
    return Batch(
        collections=(CORPUS,),
        golden_sets=(GOLD,),
        runs=tuple(map(run, NAMES)),
        frames={"rankings": rows, "judgements": judgements(grades)},
    )


def brought(path: Path, rows: Frame) -> Store:
    store = Store.open(path)
    with store.write("import") as writer:
        writer.add(batch(rows))
    return store


@pytest.mark.parametrize(
    ("counts", "lots"),
    [
        ([], []),
        ([1], [0]),
        ([1000], [0]),
        ([8, 8], [0, 0]),
        ([8, 8, 1], [0, 0, 1]),
        ([8, 30, 8], [0, 1, 2]),
        ([30, 31], [0, 1]),
        ([29, 1], [0, 1]),
    ],
)
def test_which_lot(counts: list[int], lots: list[int]) -> None:
    assert _lots(counts) == lots


@pytest.mark.parametrize("form", offered(ranked()))
def test_every_form_gives_the_same_lots(tmp_path: Path, form: str) -> None:
    files = stage("rankings", offered(ranked())[form], tmp_path)
    assert [set(pl.read_parquet(file)["run_id"]) for file in files] == [{"a"}, {"b", "c"}, {"d"}, {"e"}]
    assert sorted(tmp_path.iterdir()) == files
    key = ["run_id", "query_id", "rank"]
    assert pl.concat(map(pl.read_parquet, files)).sort(key).equals(ranked().sort(key))


@pytest.mark.slow
def test_lots_read_as_one_part_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut = brought(tmp_path / "cut", ranked())
    assert len(list(cut.path.rglob("rankings-*.codes.arrow"))) == 4
    assert doctor.examine(cut).sound
    monkeypatch.setattr("core.store.parts.ALONE", 1 << 18)
    whole = brought(tmp_path / "whole", ranked())
    assert len(list(whole.path.rglob("rankings*.parquet"))) == 1
    one, other = cut.read(), whole.read()
    assert one.rankings(NAMES).equals(other.rankings(NAMES))
    monkeypatch.setattr("core.store.read.graded._LOOKED_UP", 12)
    for wanted in (NAMES, ("d",), ("e", "a")):
        ours, theirs = (each.graded(wanted, "gold") for each in (one, other))
        assert np.array_equal(ours.grades, theirs.grades)
        assert np.array_equal(ours.unjudged_queries, theirs.unjudged_queries)


@pytest.mark.slow
def test_lots_are_there_already(tmp_path: Path) -> None:
    store = brought(tmp_path, ranked())
    assert material.add(store, batch(offered(ranked())["mixed pieces"])) == 1


def test_reading_a_run_touches_no_file_of_another(tmp_path: Path) -> None:
    store = brought(tmp_path, ranked())
    grades = store.read().graded(["d"], "gold").grades.copy()
    kept = next(file for file in store.path.rglob("rankings-*.parquet") if _owner(file) == {"d"})
    for file in store.path.rglob("rankings-*"):
        if file.name.partition(".")[0] != kept.stem:
            file.write_bytes(b"not what was written")
    graded.forget()
    snapshot = Store.open(tmp_path).read()
    rows = ranked().filter(run_id="d")
    assert snapshot.rankings(["d"]).equals(rows)
    assert np.array_equal(snapshot.graded(["d"], "gold").grades, grades)
    for name in set(NAMES) - {"d"}:
        with pytest.raises(StoreDamagedError):
            snapshot.rankings([name])


def _owner(file: Path) -> set[str]:
    return set(pl.read_parquet(file)["run_id"])


@pytest.mark.slow
def test_rows_without_an_owner_are_refused(store: Store) -> None:
    nobody = ranked().with_columns(pl.when(pl.col("run_id") != "a").then("run_id").alias("run_id"))
    for rows in offered(nobody).values():
        with pytest.raises(InputError, match="Run_id is missing"), store.write("import") as writer:
            writer.add(batch(rows))
