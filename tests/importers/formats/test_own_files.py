"""Folders of the own format that people or other tools wrote: by hand, as CSV or Parquet, or broken."""

from __future__ import annotations

import json

import polars as pl
import pytest

from tests.importers.formats.test_own import everything
from tests.importers.helpers import read, refusal, rows, up, zipped


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
    assert [each.reason for each in made.left_out] == ["column `note`: unknown meaning"]
