import io
import sys

import h5py
import numpy as np
import polars as pl
import pytest

from core.importers import preview
from core.store import Store
from tests.importers.helpers import read, refusal, rows, up, zipped

TIMES = [0.001, 0.002, 0.0005]
NEIGHBORS = [[5, 7], [2, -1], [9, 9]]
DISTANCES = [[0.1, 0.5], [0.25, np.inf], [0.0, 0.0]]
ATTRIBUTES = {
    "algo": "hnswlib", "name": "hnsw(ef=10)", "dataset": "glove-25", "distance": "angular", "count": 2,
    "build_time": 1.5, "index_size": 100.0, "batch_mode": False, "best_search_time": 0.001,
}  # fmt: skip


def result(tables: dict[str, object] | None = None, **attributes: object) -> bytes:
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        for name, value in {**ATTRIBUTES, **attributes}.items():
            if value is not None:
                file.attrs[name] = value
        given = {"times": TIMES, "neighbors": NEIGHBORS, "distances": DISTANCES, **(tables or {})}
        for name, values in given.items():
            if values is not None:
                kind = "i4" if name == "neighbors" else "f4"
                file.create_dataset(
                    name, data=values if isinstance(values, np.ndarray) else np.array(values, kind)
                )
    return buffer.getvalue()


def truth() -> bytes:
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        file.create_dataset("test", data=np.zeros((3, 4), "f4"))
        file.create_dataset("neighbors", data=np.array([[5, 1, 7], [2, 3, 4], [8, 9, 1]], "i4"))
    return buffer.getvalue()


def test_a_result_brings_rankings_and_times():
    made = read(up("x.hdf5", result()))
    (run,) = made.runs
    assert (run.collection_id, run.label) == ("glove-25", "hnsw(ef=10)")
    assert run.stack.spec == {"index": "hnswlib", "name": "hnsw(ef=10)", "metric": "angular"}
    assert run.manifest["attributes"]["build_time"] == 1.5
    table = rows(made, "rankings").with_columns(pl.col("score").round(6))
    assert table.select("query_id", "rank", "passage_id", "score").rows() == [
        ("0", 1, "5", -0.1), ("0", 2, "7", -0.5), ("1", 1, "2", -0.25), ("2", 1, "9", 0.0)
    ]  # fmt: skip
    assert rows(made, "timings").select("stage", pl.col("ms").round(6)).rows() == [
        ("retrieve", 1.0), ("retrieve", 2.0), ("retrieve", 0.5)
    ]  # fmt: skip
    assert [(each.count, each.reason) for each in made.left_out] == [
        (1, "neighbours that were not found (−1)"),
        (1, "neighbours that a list repeats: the first place counts"),
    ]


def test_exact_neighbours_give_the_recall(tmp_path):
    files = {"glove-25.hdf5": truth(), "results/a.hdf5": result(), "results/b.hdf5": result(name="other")}
    made = read(up("x.zip", zipped(files)))
    (golden,) = made.golden_sets
    assert (golden.golden_set_id, golden.collection_id) == ("glove-25-nearest-2", "glove-25")
    judged = rows(made, "judgements").filter(pl.col("query_id") == "0")
    assert sorted(judged["passage_id"]) == ["1", "5"]
    assert len(made.runs) == 2
    store = Store.open(tmp_path / "store")
    with store.write("import") as writer:
        writer.add(made.batch)


def test_a_preview_says_what_a_file_says_of_itself():
    seen = dict(preview([up("x.hdf5", result())])[0].rows.rows())
    assert (seen["algo"], seen["queries"]) == ("hnswlib", "3")
    assert dict(preview([up("x.hdf5", truth())])[0].rows.rows()) == {"queries": "3", "exact neighbours": "3"}


def test_times_of_batches_and_missing_distances():
    made = read(up("x.hdf5", result({"distances": None}, batch_mode=True)))
    assert "timings" not in made.taken
    assert rows(made, "rankings")["score"].null_count() == 4
    assert any("in batches" in each.reason for each in made.left_out)
    unnamed = read(up("glove.hdf5", result(dataset=None)))
    assert unnamed.runs[0].collection_id == "glove"
    assert read(up("x.hdf5", result()), collection_id="mine").runs[0].collection_id == "mine"


def test_numbers_of_any_type():
    made = read(
        up("x.hdf5", result({"neighbors": np.array(NEIGHBORS, "f8"), "distances": np.ones((3, 2), "u1")}))
    )
    assert rows(made, "rankings").sort("query_id", "rank").select("passage_id", "score").rows() == [
        ("5", -1.0), ("7", -1.0), ("2", -1.0), ("9", -1.0)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"times": [0.1]}, "1 times for the neighbours of 3 queries"),
        ({"times": [0.1, -0.2, 0.3]}, "A time is negative"),
        ({"times": [0.1, np.nan, 0.3]}, "A time is negative or no number"),
        ({"times": np.array([0.1, 1e308, 0.3])}, "A time is negative or no number"),
        ({"neighbors": np.full((3, 2), np.nan)}, "A neighbour is not a whole number"),
        ({"neighbors": np.full((3, 2), 1.5)}, "A neighbour is not a whole number"),
        ({"neighbors": np.full((3, 2), 2**64 - 1, "u8")}, "A neighbour is not a whole number"),
        ({"neighbors": [1, 2, 3]}, "The table has 1 axes of int32"),
        ({"neighbors": np.zeros((0, 2), "i4"), "times": [], "distances": None}, "no neighbours"),
        ({"neighbors": np.array([["a"]], dtype="S1")}, "axes of |S1"),
        ({"times": None}, "it has neither times and neighbors"),
    ],
)
def test_refused(tables, message):
    assert message in refusal(up("x.hdf5", result(tables)))


def test_a_file_that_claims_more_than_it_holds():
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        file.create_dataset("times", (3,), "f4")
        file.create_dataset("neighbors", (1_000_000_000, 100), "i4", chunks=(1000, 100))
    assert "claims 400,000,000,000 bytes" in refusal(up("x.hdf5", buffer.getvalue()))
    data = result()
    assert "x.hdf5" in refusal(up("x.hdf5", data[: len(data) // 2]))


def test_without_its_reader_the_command_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyfive", None)
    assert "pip install pyfive" in refusal(up("other.hdf5", result(name="another")))


OFFERS = {
    "ann-benchmarks": ("ann-benchmarks", result()),
}
