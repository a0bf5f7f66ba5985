"""Writing: what is taken, what is refused, and what is left behind."""

from __future__ import annotations

import threading
from dataclasses import replace

import polars as pl
import pytest

from core.errors import ClqError, InputError, StoreBusyError, StoreError, UnknownNameError
from core.records import Batch, Collection, Stack
from core.store import Store, doctor
from core.tables import TABLES, frame
from tests.store import material
from tests.store.material import add, files, judgements, rankings, run


def test_remove_and_restore_twice_in_one_transaction(filled: Store) -> None:
    with filled.write("delete") as writer:
        writer.remove("run", ["a", "a"])
        writer.restore("run", ["a"])
        writer.remove("run", ["a", "b"])
        writer.restore("run", ["b"])
    assert filled.read().runs()["run_id"].to_list() == ["b"]
    with pytest.raises(UnknownNameError, match="nope"), filled.write("delete") as writer:
        writer.remove("run", ["nope"])


@pytest.mark.slow
def test_adding_again_is_nothing_new(filled: Store) -> None:
    before = files(filled)
    again = material.small()
    lazily = Batch(
        collections=again.collections,
        golden_sets=again.golden_sets,
        runs=(run("a", created_at=material.WHEN.replace(year=2027)), run("b")),
        frames={table: rows.lazy().reverse() for table, rows in again.frames.items()},
    )
    assert add(filled, lazily) == 1
    assert files(filled) == before


def test_only_what_is_new_is_taken(filled: Store) -> None:
    batch = Batch(
        runs=(run("a"), run("c")),
        frames={
            "rankings": pl.concat(
                [material.small().frames["rankings"].filter(run_id="a"), rankings("c", {"q1": ["p2"]})]
            )
        },
    )
    assert add(filled, batch) == 2
    assert filled.read().rankings(["a", "c"]).height == 9


@pytest.mark.slow
def test_adding_a_removed_run_restores_it(filled: Store) -> None:
    with filled.write("delete") as writer:
        writer.remove("run", ["a"])
    add(filled, material.small())
    assert filled.read().runs()["run_id"].to_list() == ["a", "b"]


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (
            Batch(collections=(Collection(collection_id="corpus", name="Other"),)),
            "collection 'corpus'.*another name",
        ),
        (Batch(runs=(run("a", label="Other"),)), "run 'a'.*another label"),
        (Batch(runs=(run("a", stack=Stack({"x": 1})),)), "run 'a'.*another stack_id"),
        (Batch(frames={"rankings": rankings("a", {"q1": ["p1"]})}), "run 'a' has other rankings"),
        (
            Batch(frames={"judgements": judgements({"q1": {"p1": 4}})}),
            "golden set 'gold' has other judgements",
        ),
    ],
)
def test_same_id_with_other_content_is_refused(filled: Store, batch: Batch, message: str) -> None:
    before = files(filled)
    with pytest.raises(StoreError, match=message):
        add(filled, batch)
    assert files(filled) == before


def changed(table: str, **columns: object) -> Batch:
    rows = material.small().frames[table]
    return replaced(table, rows.with_columns(**{name: pl.lit(value) for name, value in columns.items()}))


def replaced(table: str, rows: pl.DataFrame) -> Batch:
    """`material.small` with other rows of a table, behind sound ones of another table."""
    batch = material.small()
    frames = {"queries": batch.frames["queries"], table: rows}
    return replace(batch, frames=frames)


_RANKINGS = material.small().frames["rankings"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (changed("judgements", grade=6), "judgements: Grade is not within 1 to 5.*query_id 'q"),
        (changed("judgements", grade=None), "Grade is missing"),
        (changed("judgements", grade=2.0), "Column 'grade' is Float64; it must be Int8"),
        (changed("judgements", grade=1000), "cannot be used"),
        (changed("rankings", rank=0), "Rank is less than 1"),
        (changed("rankings", stage="best"), "neither 'pool' nor 'final'"),
        (changed("rankings", query_id=""), "Query_id is empty"),
        (
            changed("rankings", passage_id="p1"),
            "More than one row.*run_id 'a'.*query_id 'q1'.*passage_id 'p1'",
        ),
        (changed("rankings", rank=1), "More than one row has this run_id, stage, query_id, rank"),
        (changed("rankings", extra=1), "Unknown column 'extra'"),
        (replaced("rankings", _RANKINGS.drop("rank")), "No column 'rank'.*Found: run_id"),
        (changed("timings", ms=-1.0), "negative"),
        (changed("timings", ms=float("nan")), "not a number"),
        (changed("usage", basis="guess"), "Basis is unknown"),
        (changed("aggregates", value=None), "Value is missing"),
        (changed("passages", text=None), "Text is missing"),
        (replaced("rankings", pl.concat([_RANKINGS, _RANKINGS])), "More than one row"),
    ],
)
def test_bad_rows_are_refused(store: Store, batch: Batch, message: str) -> None:
    with pytest.raises(InputError, match=message):
        add(store, batch)
    assert store.revision() == 0
    assert not list((store.path / "parts").iterdir())
    assert not list((store.path / "catalogue").iterdir())
    (table,) = batch.frames.keys() - {"queries"}
    assert add(store, replaced(table, material.small().frames[table])) == 1


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (Batch(frames={"rankings": rankings("nope", {"q": ["p"]})}), "No run 'nope'"),
        (Batch(frames={"judgements": judgements({"q": {"p": 1}}, "nope")}), "No golden set 'nope'"),
        (Batch(runs=(run("x", collection_id="nope"),)), "No collection 'nope'"),
        (Batch(frames={"nope": _RANKINGS}), "No table 'nope'"),
        (Batch(runs=(run(""),)), "empty id"),
        (Batch(runs=(run("x"), run("x", label="y"))), "Two records"),
        (Batch(runs=(run("x", environment={"load": float("nan")}),)), "JSON"),
        (Batch(frames={"rankings": pl.scan_csv("/absent/file.csv")}), "absent"),
    ],
)
def test_bad_references_are_refused(filled: Store, batch: Batch, message: str) -> None:
    with pytest.raises((ClqError, OSError), match=message):
        add(filled, batch)
    assert filled.revision() == 1


def test_narrower_and_wider_types_are_cast(store: Store) -> None:
    rows = rankings("a", {"q1": ["p1", "p2"]}).with_columns(
        pl.col("rank").cast(pl.UInt64), pl.col("score").cast(pl.Float32), pl.col("stage").cast(pl.Categorical)
    )
    add(store, Batch(collections=(material.CORPUS,), runs=(run("a"),), frames={"rankings": rows}))
    assert store.read().rankings(["a"])["score"].to_list() == [1.0, 0.5]


def test_an_exception_changes_nothing(filled: Store) -> None:
    before = files(filled)

    def interrupted() -> None:
        with filled.write("import") as writer:
            writer.add(Batch(runs=(run("c"),), frames={"rankings": rankings("c", {"q1": ["p1"]})}))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert files(filled) == before
    assert filled.read().runs().height == 2


def test_a_swallowed_error_cannot_be_published(filled: Store) -> None:

    def swallow() -> None:
        with filled.write("import") as writer:
            writer.add(Batch(runs=(run("c"),)))
            with pytest.raises(UnknownNameError):
                writer.remove("run", ["nope"])
            with pytest.raises(StoreError, match="failed"):
                writer.add(Batch())

    with pytest.raises(StoreError, match="step of this transaction failed"):
        swallow()
    assert filled.revision() == 1


def test_several_batches_make_one_revision(store: Store) -> None:
    with store.write("run") as writer:
        assert writer.revision == 1
        writer.add(Batch(collections=(material.CORPUS,)))
        writer.add(Batch(runs=(run("a"),), frames={"rankings": rankings("a", {"q1": ["p1"]})}))
        writer.add(Batch(frames={"timings": material.small().frames["timings"]}))
        assert store.revision() == 0
    assert store.revision() == 1
    assert store.read().timings(["a"]).height == 1


def test_a_busy_store_is_given_up_with_the_holders_name(filled: Store) -> None:
    waits: list[float] = []
    started, finish = threading.Event(), threading.Event()

    def hold() -> None:
        with filled.write("long import"):
            started.set()
            finish.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    started.wait(10)
    try:
        with (
            pytest.raises(StoreBusyError, match=r"long import.*within 1.2 s"),
            filled.write("second", wait_s=1.2, on_wait=waits.append),
        ):
            pass
        assert len(waits) == 2
        assert filled.read().runs().height == 2
    finally:
        finish.set()
        thread.join()
    add(filled, Batch(runs=(run("c"),)))


def test_frame_helper_and_store_agree(store: Store) -> None:
    assert all(frame(table, []).schema == schema for table, schema in TABLES.items())
    add(store, Batch(frames={table: frame(table, []) for table in TABLES}))
    assert store.revision() == 0


def test_replaced_rows_take_the_place_of_others_and_stay_readable_at_earlier_revisions(filled: Store) -> None:
    batch = material.small()
    before, gold = filled.read(), batch.golden_sets[0]
    changed = Batch(
        golden_sets=(replace(gold, mapping="other"),),
        frames={"judgements": judgements({"q1": {"p1": 2}}, gold.golden_set_id)},
    )
    with pytest.raises(StoreError, match="another mapping"):
        add(filled, changed)
    for _ in range(2):
        with filled.write("import") as writer:
            writer.add(changed, replacing=[gold.golden_set_id])
    assert filled.revision() == before.revision + 1
    after = filled.read()
    assert after.judgements(gold.golden_set_id).height == 1
    assert after.golden_sets()["mapping"].to_list() == ["other"]
    assert after.golden_sets()["judgements"].to_list() == [1]
    assert after.graded(["a"], gold.golden_set_id).grades.shape[1] == 1
    earlier = filled.read(before.revision)
    assert earlier.judgements(gold.golden_set_id).equals(before.judgements(gold.golden_set_id))
    assert doctor.examine(filled).sound
