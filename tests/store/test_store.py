"""Reading and writing, one process."""

from __future__ import annotations

import gc
import shutil
import threading
from datetime import UTC
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from core.errors import ClqError, InputError, StoreBusyError, StoreError, UnknownNameError
from core.records import Batch, Collection, GoldenSet, Stack
from core.store import Store, default_path
from core.store.layout import KEPT_CATALOGUES
from core.tables import TABLES, frame
from tests.store import material
from tests.store.material import judgements, rankings, run


def add(store: Store, batch: Batch) -> int:
    with store.write("import") as writer:
        writer.add(batch)
    return writer.revision


def files(store: Store) -> set[str]:
    return {str(path.relative_to(store.path)) for path in store.path.rglob("*") if path.name != "LOCK"}


def test_absent_store_reads_as_empty_and_is_not_made(store: Store) -> None:
    snapshot = store.read()
    assert (store.revision(), snapshot.revision) == (0, 0)
    listed = (
        snapshot.collections(),
        snapshot.golden_sets(),
        snapshot.runs(),
        snapshot.stacks(),
        snapshot.revisions(),
    )
    assert all(rows.is_empty() and rows.columns for rows in listed)
    assert not store.path.exists()


def test_default_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CLQ_STORE", raising=False)
    assert default_path().parts[-2:] == ("data", "store")
    monkeypatch.setenv("CLQ_STORE", str(tmp_path / "elsewhere"))
    assert Store.open().path == tmp_path / "elsewhere"


def test_everything_comes_back(filled: Store) -> None:
    given, snapshot = material.small().frames, filled.read()
    assert snapshot.revision == filled.revision() == 1
    read = {
        "queries": snapshot.queries("corpus"),
        "passages": snapshot.passages("corpus"),
        "judgements": snapshot.judgements("gold"),
        "rankings": snapshot.rankings(["a", "b"]),
        "timings": snapshot.timings(["a", "b"]),
        "usage": snapshot.usage(["a", "b"]),
        "aggregates": snapshot.aggregates(["a", "b"]),
        "signals": snapshot.signals(["a", "b"]),
        "answers": snapshot.answers(["a", "b"]),
        "chunks": snapshot.chunks("corpus"),
        "spans": snapshot.spans("gold"),
    }
    assert read.keys() == TABLES.keys()
    for table, rows in read.items():
        assert rows.schema == TABLES[table]
        assert rows.equals(given[table].select(rows.columns)) or rows.rows() == sorted(
            given[table].rows(), key=lambda row: (row[0], row[2], row[1])
        )


def test_records_come_back(filled: Store) -> None:
    snapshot = filled.read()
    assert snapshot.collections().rows() == [("corpus", "A corpus", "tests", "none", None, 3, 3)]
    assert snapshot.golden_sets("corpus").rows() == [
        ("gold", "corpus", "Gold", "1-5", "a person", "", None, 2, 3, 1)
    ]
    assert snapshot.golden_sets("other").is_empty()
    first = snapshot.runs().row(0, named=True)
    assert first["run_id"] == "a"
    assert first["spec"] == '{"name":"a","sparse":"bm25"}'
    assert first["environment"] == '{"cpu":"tests"}'
    assert first["created_at"] == material.WHEN
    assert (first["origin"], first["pool"], first["added_revision"], first["has_rankings"]) == (
        "run",
        "bm25@100",
        1,
        True,
    )
    assert snapshot.runs("other").is_empty()
    stack = Stack({"sparse": "bm25", "name": "a"})
    assert (stack.stack_id, '{"name":"a","sparse":"bm25"}', "BM25", 1) in snapshot.stacks().rows()
    revision = snapshot.revisions().row(0, named=True)
    assert (revision["revision"], revision["action"], revision["note"]) == (1, "import", "small")
    assert revision["at"].tzinfo is not None
    assert revision["at"].utcoffset() == UTC.utcoffset(None)


def test_rows_can_be_narrowed(filled: Store) -> None:
    snapshot = filled.read()
    assert snapshot.passages("corpus", ["p2", "gone", "p2"])["text"].to_list() == ["two"]
    assert snapshot.rankings(["a"], stage="pool")["passage_id"].to_list() == ["p1", "p2", "p3"]
    assert snapshot.rankings(["a", "b"], stage="final", query_id="q2")["run_id"].to_list() == ["a", "b", "b"]
    assert snapshot.rankings([]).is_empty()
    assert snapshot.timings(["b"]).schema == TABLES["timings"]


def test_graded(filled: Store) -> None:
    found = filled.read().graded(["b", "a"], "gold")
    assert (found.run_ids, found.query_ids) == (("b", "a"), ("q1", "q2"))
    assert found.grades.dtype == np.int8
    assert found.grades.tolist() == [[[-1, -1, -1], [0, 4, -1]], [[5, 0, 1], [0, -1, -1]]]
    assert found.pool_counts.tolist() == [[1, 0, 0, 0, 1], [0, 0, 0, 1, 0]]
    assert found.unjudged_queries.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("stage", "depth", "shape"), [("pool", None, (1, 2, 3)), ("final", 2, (1, 2, 2)), ("final", 9, (1, 2, 9))]
)
def test_graded_stage_and_depth(filled: Store, stage: str, depth: int | None, shape: tuple[int, ...]) -> None:
    assert filled.read().graded(["a", "a"], "gold", stage=stage, depth=depth).grades.shape == shape


def test_graded_without_rankings_or_judgements(filled: Store) -> None:
    empty = GoldenSet(golden_set_id="empty", collection_id="corpus", name="Empty")
    add(filled, Batch(golden_sets=(empty,), runs=(run("bare"),)))
    snapshot = filled.read()
    bare = snapshot.graded(["bare"], "gold", depth=3)
    assert (bare.grades == -1).all()
    assert bare.grades.shape == (1, 2, 3)
    unjudged = snapshot.graded(["a"], "empty")
    assert unjudged.grades.shape[:2] == (1, 0)
    assert unjudged.unjudged_queries.tolist() == [3]


@pytest.mark.parametrize(
    "ask",
    [
        lambda snapshot: snapshot.queries("nope"),
        lambda snapshot: snapshot.judgements("nope"),
        lambda snapshot: snapshot.rankings(["a", "nope"]),
        lambda snapshot: snapshot.graded(["nope"], "gold"),
        lambda snapshot: snapshot.graded(["a"], "nope"),
    ],
)
def test_unknown_names_say_what_exists(filled: Store, ask) -> None:
    with pytest.raises(UnknownNameError, match=r"nope.*Found: "):
        ask(filled.read())


def test_names_are_never_sql(store: Store) -> None:
    hostile = "x'; DROP TABLE runs; --"
    add(
        store,
        Batch(
            collections=(Collection(collection_id="corpus", name=hostile),),
            runs=(run(hostile, label=hostile),),
            frames={"rankings": rankings(hostile, {hostile: [hostile]})},
        ),
    )
    assert store.read().rankings([hostile], query_id=hostile)["passage_id"].to_list() == [hostile]
    assert store.read().runs()["label"].to_list() == [hostile]


def test_pinned_revision_shows_what_was(filled: Store) -> None:
    add(
        filled,
        Batch(
            runs=(run("c"),),
            frames={"timings": material.small().frames["timings"].with_columns(run_id=pl.lit("b"))},
        ),
    )
    with filled.write("delete") as writer:
        writer.remove_runs(["a"])
    with filled.write("restore") as writer:
        writer.restore_runs(["a"])
    shown = [filled.read(revision).runs()["run_id"].to_list() for revision in range(5)]
    assert shown == [[], ["a", "b"], ["a", "b", "c"], ["b", "c"], ["a", "b", "c"]]
    assert filled.read(3).runs(removed=True)["run_id"].to_list() == ["a"]
    assert filled.read(3).stacks()["runs"].sum() == 2
    assert filled.read(1).timings(["b"]).is_empty()
    assert len(filled.read(2).timings(["b"])) == 1
    assert filled.read(2).revisions()["action"].to_list() == ["import", "import"]
    with pytest.raises(UnknownNameError):
        filled.read(3).rankings(["a"])
    for revision in (-1, 5):
        with pytest.raises(StoreError, match="no revision"):
            filled.read(revision)


def test_remove_and_restore_twice_in_one_transaction(filled: Store) -> None:
    with filled.write("delete") as writer:
        writer.remove_runs(["a", "a"])
        writer.restore_runs(["a"])
        writer.remove_runs(["a", "b"])
        writer.restore_runs(["b"])
    assert filled.read().runs()["run_id"].to_list() == ["b"]
    with pytest.raises(UnknownNameError, match="nope"), filled.write("delete") as writer:
        writer.remove_runs(["nope"])


def test_a_snapshot_stays_what_it_is(filled: Store) -> None:
    before = filled.read()
    for number in range(KEPT_CATALOGUES + 6):
        add(filled, Batch(runs=(run(f"later-{number}"),)))
    gc.collect()
    assert before.runs()["run_id"].to_list() == ["a", "b"]
    assert len(before.rankings(["a"])) == 8
    assert len(list((filled.path / "catalogue").iterdir())) <= KEPT_CATALOGUES + 2


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


def test_adding_a_removed_run_restores_it(filled: Store) -> None:
    with filled.write("delete") as writer:
        writer.remove_runs(["a"])
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
    batch = material.small()
    rows = batch.frames[table].with_columns(**{name: pl.lit(value) for name, value in columns.items()})
    return Batch(
        collections=batch.collections,
        golden_sets=batch.golden_sets,
        runs=batch.runs,
        frames={**batch.frames, table: rows},
    )


def replaced(table: str, rows: pl.DataFrame) -> Batch:
    batch = material.small()
    return Batch(
        collections=batch.collections,
        golden_sets=batch.golden_sets,
        runs=batch.runs,
        frames={**batch.frames, table: rows},
    )


_RANKINGS = material.small().frames["rankings"]


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
    assert add(store, material.small()) == 1


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
                writer.remove_runs(["nope"])
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


def test_places_that_are_not_stores(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(StoreError, match="a store is a folder"):
        Store.open(file)
    with pytest.raises(StoreError, match="not a store and is not empty; it holds file"):
        Store.open(tmp_path)
    with pytest.raises(StoreError, match="not a store"), Store(tmp_path).write("import"):
        pass
    empty = tmp_path / "empty"
    empty.mkdir()
    assert Store.open(empty).revision() == 0


@pytest.mark.parametrize("pointer", ["", "../../etc/passwd", "00000009-absent.duckdb", "\udcff"])
def test_damaged_pointer(filled: Store, pointer: str) -> None:
    (filled.path / "CURRENT").write_bytes(pointer.encode(errors="surrogateescape"))
    with pytest.raises(StoreError):
        filled.read()


def test_damaged_catalogue(filled: Store) -> None:
    name = "00000002-damaged.duckdb"
    (filled.path / "catalogue" / name).write_bytes(b"not a database")
    (filled.path / "CURRENT").write_text(name)
    with pytest.raises(StoreError, match="cannot be opened"):
        filled.read()


def test_a_store_made_again_in_the_same_place(filled: Store) -> None:
    assert filled.read().runs().height == 2
    shutil.rmtree(filled.path)
    assert filled.read().runs().is_empty()
    add(filled, Batch(collections=(material.CORPUS,), runs=(run("z"),)))
    assert filled.read().runs()["run_id"].to_list() == ["z"]


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


def test_threads_never_see_half_a_run(filled: Store) -> None:
    problems: list[str] = []
    stop = threading.Event()

    def read() -> None:
        try:
            while not stop.is_set():
                snapshot = filled.read()
                runs = snapshot.runs().filter(pl.col("run_id").str.starts_with("new"))
                sizes = {snapshot.rankings([run_id]).height for run_id in runs["run_id"][-2:]}
                if sizes - {500} or len(runs) != snapshot.revision - 1:
                    problems.append(f"revision {snapshot.revision}: {len(runs)} runs of {sizes} rows")
        except Exception as error:
            problems.append(repr(error))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for thread in readers:
        thread.start()
    for number in range(15):
        ranked = {f"q{query}": [f"p{rank}" for rank in range(50)] for query in range(10)}
        add(
            filled,
            Batch(runs=(run(f"new-{number}"),), frames={"rankings": rankings(f"new-{number}", ranked)}),
        )
    stop.set()
    for thread in readers:
        thread.join()
    assert problems == []


def test_frame_helper_and_store_agree(store: Store) -> None:
    assert all(frame(table, []).schema == schema for table, schema in TABLES.items())
    add(store, Batch(frames={table: frame(table, []) for table in TABLES}))
    assert store.revision() == 0
