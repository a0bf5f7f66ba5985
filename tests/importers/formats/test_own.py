"""What is exported comes back as it was, and an export is there as a whole or not at all."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import polars as pl
import pytest

from core.analysis.export import batch_of
from core.answers import GRADE
from core.errors import InputError, UnknownNameError
from core.importers import export
from core.records import Batch, Collection
from core.store import Store
from core.tables import TABLES
from tests.importers.formats.everything import everything
from tests.importers.helpers import read, rows


def same(found: Batch, expected: Batch) -> None:
    assert found.collections == expected.collections
    assert found.golden_sets == expected.golden_sets
    assert [each.manifest for each in found.golden_sets] == [each.manifest for each in expected.golden_sets]
    assert found.runs == expected.runs
    assert [(each.stack.spec, each.environment, each.manifest) for each in found.runs] == [
        (each.stack.spec, each.environment, each.manifest) for each in expected.runs
    ]
    for table in TABLES:
        one, other = found.frames[table].lazy().collect(), expected.frames[table].lazy().collect()
        assert one.sort(pl.all(), nulls_last=True).equals(other.sort(pl.all(), nulls_last=True)), table


@pytest.mark.parametrize("name", ["out", "out.zip", "deep/er/out.zip"])
def test_export_and_import_give_the_same_batch(tmp_path, name):
    export(everything(), tmp_path / name)
    made = read(tmp_path / name)
    same(made.batch, everything())
    assert made.detected[0].format == "clq"
    assert made.left_out == ()
    assert sorted(path.name for path in (tmp_path / name).parent.iterdir()) == [name.rsplit("/", 1)[-1]]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["out", "out.zip"])
def test_export_and_import_give_the_same_store(tmp_path, name):
    first, second = Store.open(tmp_path / "first"), Store.open(tmp_path / "second")
    with first.write("fill") as writer:
        writer.add(everything())
    export(batch_of(first.read()), tmp_path / name)
    made = read(tmp_path / name)
    for _ in range(2):
        with second.write("import") as writer:
            writer.add(made.batch)
    assert second.revision() == 1
    same(batch_of(second.read()), batch_of(first.read()))
    same(batch_of(second.read()), everything())
    one, other = first.read(), second.read()
    for snapshot_table in ("collections", "golden_sets", "runs", "stacks"):
        assert getattr(one, snapshot_table)().equals(getattr(other, snapshot_table)())


@pytest.mark.slow
def test_parts_come_with_their_whole(tmp_path):
    store = Store.open(tmp_path / "store")
    with store.write("fill") as writer:
        writer.add(everything())
        writer.add(Batch(collections=(Collection(collection_id="other", name="Other"),)))
    found = batch_of(store.read(), run_ids=["r-1"])
    assert [each.collection_id for each in found.collections] == ["c", "c@page-1a2b"]
    assert [each.golden_set_id for each in found.golden_sets] == ["g", "g@page-1a2b"]
    assert [each.collection_id for each in batch_of(store.read(), collection_id="other").collections] == [
        "other"
    ]
    with pytest.raises(UnknownNameError, match="c@page-1a2b"):
        batch_of(store.read(), collection_id="c@page-1a2b")


def test_what_an_older_release_exported_reads(tmp_path):
    """Neither `part_of` nor `chunking`, and none of the tables that came with them."""
    old = everything()
    export(
        Batch(
            collections=old.collections[:1],
            golden_sets=old.golden_sets[:1],
            runs=old.runs,
            frames={table: old.frames[table] for table in list(TABLES)[:7]},
        ),
        tmp_path / "out",
    )
    for file, field in (("collections", "part_of"), ("golden_sets", "part_of"), ("runs", "chunking")):
        path = tmp_path / "out" / f"{file}.jsonl"
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for record in records:
            del record[field]
        path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    made = read(tmp_path / "out")
    assert made.batch.collections == old.collections[:1]
    assert made.batch.golden_sets == old.golden_sets[:1]
    assert [run.chunking for run in made.batch.runs] == [None, None]
    assert set(made.batch.frames) == set(list(TABLES)[:7])


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(InputError, match="The path exists already"):
        export(everything(), tmp_path / "out")


def test_what_cannot_be_written_leaves_nothing(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="It cannot be written"):
        export(everything(), tmp_path / "file" / "out")
    bad = Batch(frames={"rankings": pl.LazyFrame({"x": [1]})})
    with pytest.raises(pl.exceptions.ColumnNotFoundError):
        export(bad, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def exported() -> bytes:
    """An export with every kind of record and a row in every table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.zip"
        export(everything(), path)
        return path.read_bytes()


OFFERS = {
    "own": ("clq", exported()),
}


@pytest.mark.parametrize("form", ["parquet", "jsonl", "csv"])
def test_answers_of_an_earlier_release_have_their_grade_as_a_score(tmp_path, form):
    """They had one grade in their own row, and no table of scores stood beside them."""
    export(everything(), tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    for table in ("answers", "answer_scores", "gold_answers"):
        (tmp_path / "out" / manifest["tables"].pop(table)["file"]).unlink()
    manifest["tables"]["answers"] = {"file": f"answers.{form}", "rows": 3}
    (tmp_path / "out" / "manifest.json").write_text(json.dumps(manifest))
    earlier = pl.DataFrame(
        {"run_id": ["r-1"] * 3, "query_id": ["q"] * 3, "k": [1, 2, 3], "text": ["a", "b", "c"],
         "grade": [0.5, 4.0, None], "scale": ["0-1", "1-5", None], "judge": ["f1", None, None]},
        schema_overrides={"k": pl.Int32},
    )  # fmt: skip
    write = {"parquet": earlier.write_parquet, "jsonl": earlier.write_ndjson, "csv": earlier.write_csv}[form]
    write(tmp_path / "out" / f"answers.{form}")
    made = read(tmp_path / "out")
    assert rows(made, "answers").select("k", "text", "reader").rows() == [
        (1, "a", None), (2, "b", None), (3, "c", None)
    ]  # fmt: skip
    assert rows(made, "answer_scores").select("k", "scorer", "value", "scale", "source").rows() == [
        (1, "f1", 0.5, "0-1", GRADE), (2, "grade", 4.0, "1-5", GRADE)
    ]  # fmt: skip
    assert not [each for file_report in made.reports for each in file_report.left_out]
