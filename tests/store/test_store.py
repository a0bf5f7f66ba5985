"""Reading, one process."""

from __future__ import annotations

import gc
import shutil
import threading
from datetime import UTC
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from core.errors import StoreError, UnknownNameError
from core.records import Batch, Collection, GoldenSet, Stack
from core.store import Store, default_path
from core.store.layout import KEPT_CATALOGUES
from core.tables import TABLES
from tests.store import material
from tests.store.material import add, rankings, run


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
        "answer_scores": snapshot.answer_scores(["a", "b"]),
        "passage_metadata": snapshot.passage_metadata("corpus"),
        "query_filters": snapshot.query_filters("corpus"),
        "fields": snapshot.fields("corpus"),
        "clusters": snapshot.clusters("corpus"),
        "nuggets": snapshot.nuggets("gold"),
        "gold_answers": snapshot.gold_answers("corpus"),
        "chunks": snapshot.chunks("corpus"),
        "spans": snapshot.spans("gold"),
        "gradings": snapshot.gradings("gold"),
        "diagnostics": snapshot.diagnostics(["corpus"]),
        "orders": snapshot.orders("gold"),
        "criteria": snapshot.criteria(["a", "b"]),
        "ratings": snapshot.ratings(["a", "b"]),
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
        ("gold", "corpus", "Gold", "1-5", "a person", "", None, ["older"], '{"seed":7}', 2, 3, 1)
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
        writer.remove("run", ["a"])
    with filled.write("restore") as writer:
        writer.restore("run", ["a"])
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


@pytest.mark.slow
def test_a_snapshot_stays_what_it_is(filled: Store) -> None:
    before = filled.read()
    for number in range(KEPT_CATALOGUES + 6):
        add(filled, Batch(runs=(run(f"later-{number}"),)))
    gc.collect()
    assert before.runs()["run_id"].to_list() == ["a", "b"]
    assert len(before.rankings(["a"])) == 8
    assert len(list((filled.path / "catalogue").iterdir())) <= KEPT_CATALOGUES + 2


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
    name = "00000002-0badc0de.duckdb"
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


@pytest.mark.slow
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
