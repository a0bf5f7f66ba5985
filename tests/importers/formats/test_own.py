"""What is exported comes back as it was, and an export is there as a whole or not at all."""

from __future__ import annotations

import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from core.answers import GRADE
from core.errors import InputError, UnknownNameError
from core.importers import export
from core.records import Batch, Collection, GoldenSet, Origin, Run, Stack
from core.store import Store
from core.tables import TABLES, frame
from core.views.library.export import batch_of
from tests.importers.helpers import read, rows


def everything() -> Batch:
    """A batch with every kind of record and a row in every table, with awkward values."""
    run = Run(
        run_id="r-1",
        collection_id="c",
        stack=Stack({"mode": "hybrid", "fusion": {"method": "rrf", "constant": 60}, "candidates": 50}),
        label='=1+1 <b>"é"</b>\n',
        origin=Origin.RUN,
        pool="rrf100@50",
        environment={"cpu": "x", "cores": 2},
        manifest={"seed": 7},
        created_at=datetime(2025, 5, 1, 12, 30, 15, 123456, tzinfo=UTC),
    )
    bare = Run(
        run_id="r-2",
        collection_id="c",
        stack=Stack({}),
        label="",
        origin=Origin.PUBLISHED,
        created_at=run.created_at,
        chunking="page-1a2b",
    )
    golden = GoldenSet(
        golden_set_id="g", collection_id="c", name="G", mapping="binary: 0→1, 1→5",
        parents=("f",), manifest={"prompts": {"grade.en": "ab12"}},
    )  # fmt: skip
    part = "page-1a2b"
    return Batch(
        collections=(
            Collection(collection_id="c", name="C", source="s", notes="n\nn"),
            Collection(collection_id=f"c@{part}", name="C, pages", part_of="c"),
        ),
        golden_sets=(
            golden,
            GoldenSet(golden_set_id=f"g@{part}", collection_id=f"c@{part}", name="G, pages", part_of="g"),
        ),
        runs=(run, bare),
        frames={
            "queries": frame(
                "queries", [{"collection_id": "c", "query_id": "q", "text": "?", "tags": ["a=b", "c=d,e"]}]
            ),
            "passages": frame(
                "passages",
                [
                    {
                        "collection_id": "c",
                        "passage_id": "p",
                        "title": None,
                        "text": "",
                        "tokens": 3,
                        "tokenizer": "t",
                        "source": None,
                    }
                ],
            ),
            "judgements": frame(
                "judgements",
                [
                    {
                        "golden_set_id": "g",
                        "query_id": "q",
                        "passage_id": "p",
                        "grade": 5,
                        "raw": 1,
                        "judge": None,
                    }
                ],
            ),
            "rankings": frame(
                "rankings",
                [
                    {
                        "run_id": "r-1",
                        "query_id": "q",
                        "stage": s,
                        "rank": 1,
                        "passage_id": "p",
                        "score": None,
                    }
                    for s in ("pool", "final")
                ],
            ),
            "timings": frame(
                "timings", [{"run_id": "r-1", "query_id": "q", "stage": "embed", "repeat": 1, "ms": 0.1}]
            ),
            "usage": frame(
                "usage",
                [
                    {
                        "run_id": "r-1",
                        "query_id": None,
                        "stage": "embed",
                        "item": "i",
                        "unit": "cpu_ms",
                        "amount": 1e-9,
                        "basis": "measured",
                    }
                ],
            ),
            "aggregates": frame(
                "aggregates",
                [
                    {
                        "run_id": "r-2",
                        "measure": "Hit",
                        "k": 10,
                        "stage": None,
                        "value": 0.5,
                        "n": None,
                        "low": None,
                        "high": None,
                        "source": None,
                    }
                ],
            ),
            "signals": frame(
                "signals", [{"run_id": "r-1", "query_id": "q", "signal": "gap", "k": None, "value": -0.5}]
            ),
            "answers": frame("answers", [{"run_id": "r-1", "query_id": "q", "k": 0, "text": "=1\u2028"}]),
            "answer_scores": frame(
                "answer_scores", [{"run_id": "r-1", "query_id": "q", "k": 0, "scorer": "f1", "value": 0.5}]
            ),
            "gold_answers": frame("gold_answers", [{"collection_id": "c", "query_id": "q", "answer": "=1"}]),
            "diagnostics": frame(
                "diagnostics",
                [
                    {
                        "collection_id": "c",
                        "diagnosis": "names",
                        "condition": "base",
                        "measure": "d_name",
                        "value": 0.5,
                    }
                ],
            ),
            "chunks": frame(
                "chunks",
                [
                    {
                        "collection_id": f"c@{part}",
                        "passage_id": f"d#{part}:0",
                        "source": "d",
                        "start_char": 0,
                        "end_char": 7,
                    }
                ],
            ),
            "spans": frame(
                "spans",
                [
                    {
                        "golden_set_id": "g",
                        "query_id": "q",
                        "source": "d",
                        "start_char": 2,
                        "end_char": 2**40,
                        "grade": 5,
                        "raw": 1,
                    }
                ],
            ),
            "gradings": frame(
                "gradings",
                [
                    {
                        "golden_set_id": "g",
                        "query_id": "q",
                        "passage_id": "p",
                        "judge": "a model",
                        "grade": 5,
                        "at": "2026-11-01T12:30:00+00:00",
                        "seconds": 1.5,
                        "prompt": "ab12",
                        "input_tokens": 2**40,
                        "usd": 0.25,
                    }
                ],
            ),
            "orders": frame(
                "orders",
                [
                    {
                        "golden_set_id": "g",
                        "query_id": "q",
                        "passage_id": "p",
                        "rank": 1,
                        "score": -0.5,
                        "exposures": 0,
                    }
                ],
            ),
        },
    )


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
    assert not [each for account in made.accounts for each in account.left_out]
