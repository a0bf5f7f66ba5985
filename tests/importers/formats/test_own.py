from __future__ import annotations

import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from core.errors import InputError, UnknownNameError
from core.importers import export
from core.records import Batch, Collection, GoldenSet, Origin, Run, Stack
from core.store import Store
from core.tables import TABLES, frame
from core.views.library.export import batch_of
from tests.importers.helpers import read, refusal, rows, up, zipped


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


def test_written_by_hand_as_jsonl():
    manifest = {"format": "clq-explorer", "version": 1, "tables": {"timings": {"file": "t.jsonl"}}}
    run = {
        "run_id": "r",
        "collection_id": "c",
        "label": "L",
        "origin": "import",
        "spec": {"mode": "sparse"},
        "created_at": "2025-01-01T00:00:00+00:00",
    }
    made = read(
        up("hand.zip", zipped({
            "hand/manifest.json": json.dumps(manifest),
            "hand/collections.jsonl": '{"collection_id": "c", "name": "C"}\n',
            "hand/runs.jsonl": json.dumps(run),
            "hand/t.jsonl": '{"run_id": "r", "query_id": "q", "stage": "embed", "repeat": 1, "ms": 2}\n',
            "hand/notes.txt": "mine",
        }))
    )  # fmt: skip
    assert made.taken == {"collections": 1, "runs": 1, "timings": 1}
    assert rows(made, "timings")["ms"].to_list() == [2.0]
    assert [(left.count, left.first) for left in made.left_out] == [(1, "hand.zip/hand/notes.txt")]


def broken(**changes: object) -> bytes:
    manifest = {"format": "clq-explorer", "version": 1, "tables": {"timings": {"file": "t.jsonl", "rows": 1}}}
    files: dict[str, object] = {
        "manifest.json": json.dumps(manifest),
        "t.jsonl": '{"run_id": "r", "query_id": "q", "stage": "embed", "repeat": 1, "ms": 2}\n',
    }
    files |= {name.replace("_json", ".json", 1): content for name, content in changes.items()}
    return zipped({name: str(content) for name, content in files.items() if content is not None})


def manifest_with(**changes: object) -> str:
    return json.dumps({"format": "clq-explorer", "version": 1, "tables": {}} | changes)


RUN_LINE = (
    '{"run_id": "r", "collection_id": "c", "label": "L", "origin": "%s", "spec": %s, "created_at": "%s"}'
)
BROKEN = {
    "newer version": ({"manifest_json": manifest_with(version=2)}, "Version 2 of the format is not known"),
    "no version": ({"manifest_json": manifest_with(version=None)}, "Version None of the format is not known"),
    "not JSON": (
        {"manifest_json": '{"format": "clq-explorer"'},
        "manifest.json: The manifest is not valid JSON",
    ),
    "another format": ({"manifest_json": '{"name": "clq-explorer"}'}, "does not say format 'clq-explorer'"),
    "tables": ({"manifest_json": manifest_with(tables=[1])}, "`tables` is not a map of maps"),
    "unknown table": (
        {"manifest_json": manifest_with(tables={"x": {}})},
        "Unknown table 'x'; known: queries",
    ),
    "missing file": ({"t_jsonl": None}, "The file 't.jsonl' is listed but missing."),
    "wrong rows": ({"t_jsonl": ""}, "0 rows, the manifest says 1."),
    "fewer rows": ({"t_jsonl": '{"run_id": "r"}\n' * 2}, "t.jsonl: 2 rows, the manifest says 1."),
    "hash": (
        {"manifest_json": manifest_with(tables={"timings": {"file": "t.jsonl", "blake2b": "00"}})},
        "its hash differs",
    ),
    "record": ({"runs_jsonl": '{"run_id": "r"}\n'}, "runs.jsonl:1: There is no 'created_at' here."),
    "record is a list": ({"runs_jsonl": "\n[]\n"}, "runs.jsonl:2: The line is not a JSON object."),
    "origin": (
        {"runs_jsonl": RUN_LINE % ("x", "{}", "2025-01-01T00:00:00+00:00")},
        "'x' is not a valid Origin",
    ),
    "no zone": (
        {"runs_jsonl": RUN_LINE % ("run", "{}", "2025-01-01T00:00:00")},
        "created_at has no time zone",
    ),
    "created at": (
        {"runs_jsonl": RUN_LINE % ("run", "{}", "soon")},
        "runs.jsonl:1: The record cannot be used",
    ),
    "unknown field": (
        {"collections_jsonl": '{"collection_id": "c", "name": "C", "x": 1}'},
        "has no 'x'",
    ),
    "field of another kind": (
        {"golden_sets_jsonl": '{"golden_set_id": {}, "collection_id": "c", "name": "C"}'},
        "golden_sets.jsonl:1: 'golden_set_id' is an object, not text.",
    ),
    "infinite": (
        {"collections_jsonl": '{"collection_id": 1e999, "name": "C"}'},
        "Out of range float values are not JSON compliant",
    ),
}
SPECS = {
    "[]": "'spec' is a list, not an object",
    '{"candidates": "ten"}': "key `spec`: 'candidates' is text, not an integer",
    '{"candidates": -1}': "key `spec`: 'candidates' is -1",
    '{"dim": 4294967296}': "key `spec`: 'dim' is 4,294,967,296",
    '{"fusion": "rrf"}': "key `spec`: 'fusion' is text, not an object",
    '{"chunker": {"size": 1}}': "key `spec.chunker`: There is no 'method' here",
    '{"a": 1, "a": 2}': "the key 'a' stands twice",
    '{"a": "\\ud800"}': "half a character",
    "[" * 3_000 + "]" * 3_000: "nested too deeply",
}


@pytest.mark.parametrize(("changes", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_broken_exports_are_refused(changes, message):
    assert message in refusal(up("x.zip", broken(**changes)))


@pytest.mark.parametrize(("spec", "message"), SPECS.items(), ids=SPECS.values())
def test_what_pages_read_of_a_stack_is_of_its_kind(spec, message):
    line = RUN_LINE % ("run", spec, "2025-01-01T00:00:00+00:00")
    assert message in refusal(up("x.zip", broken(runs_jsonl=line)))


def test_parquet_with_other_columns():
    from tests.importers.helpers import parquet

    data = zipped({
        "manifest.json": manifest_with(tables={"timings": {"file": "t.parquet"}}),
        "t.parquet": parquet(pl.DataFrame({"run_id": ["r"], "query_id": ["q"], "stage": ["s"], "ms": [1.0]})),
    })  # fmt: skip
    assert "no column `repeat` in x.zip/t.parquet; found: run_id, query_id, stage, ms." in refusal(
        up("x.zip", data)
    )


@pytest.mark.parametrize("named", ["passage_id", "doc_id"])
def test_tables_may_be_csv(named):
    """Lists as JSON, an empty cell for what is unknown; quotes, commas and line ends survive."""
    batch = everything()
    files, listed, expected = {}, {}, {}
    for table, rows_of_table in batch.frames.items():
        held = rows_of_table.lazy().collect()
        texts = [name for name, dtype in held.schema.items() if dtype == pl.String]
        expected[table] = held.with_columns(pl.col(texts).replace("", None))
        lists = [name for name, dtype in held.schema.items() if isinstance(dtype, pl.List)]
        plain = held.with_columns(
            pl.Series(
                name, [None if each is None else json.dumps(list(each)) for each in held[name]], pl.String
            )
            for name in lists
        )
        renamed = plain.rename({"passage_id": named} if "passage_id" in plain.columns else {})
        files[f"{table}.csv"] = renamed.write_csv()
        listed[table] = {"file": f"{table}.csv", "rows": held.height}
    made = read(up("x.zip", zipped({"manifest.json": manifest_with(tables=listed), **files})))
    assert made.frames.keys() == expected.keys()
    for table, rows_of_table in expected.items():
        assert rows(made, table).equals(rows_of_table), table


def test_columns_that_a_table_does_not_have_are_named():
    table = "run_id,query_id,doc_id,rank,score,stage,note\nr1,q1,a,1,0.5,final,x\n"
    listed = {"rankings": {"file": "r.csv"}}
    made = read(up("x.zip", zipped({"manifest.json": manifest_with(tables=listed), "r.csv": table})))
    assert [each.reason for each in made.left_out] == ["column `note`: not recognised"]


def exported() -> bytes:
    """An export with every kind of record and a row in every table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.zip"
        export(everything(), path)
        return path.read_bytes()


OFFERS = {
    "own": ("clq", exported()),
}
