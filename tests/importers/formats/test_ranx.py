import gzip
import json
import sys

import cbor2
import lz4.frame
import polars as pl
import pytest

from tests.importers.helpers import parquet, read, refusal, rows, up, zipped

RUN = {"q1": {"b": 2.25, "a": 1.5, "c.d": 1.5}, "q.2": {"a": 3, "é\n": 0.5}, "q3": {}}
QRELS = {"q1": {"a": 0, "b": 1}, "q2": {"c": 2}}
DATA = json.dumps(RUN).encode()


def ranked(made):
    table = rows(made, "rankings").sort("query_id", "rank")
    return table.select("query_id", "rank", "passage_id", "score").rows()


EXPECTED = [("q.2", 1, "a", 3.0), ("q.2", 2, "é\n", 0.5),
            ("q1", 1, "b", 2.25), ("q1", 2, "c.d", 1.5), ("q1", 3, "a", 1.5)]  # fmt: skip


@pytest.mark.parametrize(
    "data",
    [
        DATA,
        b"\xef\xbb\xbf" + json.dumps(RUN, indent=2).encode(),
        gzip.compress(DATA),
        lz4.frame.compress(DATA),
    ],
    ids=["plain", "with a byte order mark", "gzip", "lz4"],
)
def test_a_run_packed_or_not(data):
    made = read(up("bm25.json", data))
    assert made.detected[0].format == "ranx-run"
    assert ranked(made) == EXPECTED
    assert made.runs[0].label == "bm25"
    assert made.runs[0].manifest["order"] == "score"


def test_a_file_as_ranx_packs_it():
    """Its .lz4 is CBOR, packed twice."""
    for content in (RUN, {}, {"q" * 300: {f"d{n}": n / 7 for n in range(300)}}):
        data = lz4.frame.compress(lz4.frame.compress(cbor2.dumps(content)))
        if content:
            made = read(up("bm25.lz4", data))
            assert made.detected[0].format == "ranx-run"
            assert made.taken["rankings"] == sum(map(len, content.values()))
            assert made.runs[0].label == "bm25"
        else:
            assert "known" in refusal(up("bm25.lz4", data))
    assert ranked(read(up("bm25.lz4", cbor2.dumps(RUN)))) == EXPECTED


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"q": {"a": 1.5}, 7: {"a": 1.5}}, "not a map of texts"),
        ({"q": {"a": 1.5, 7: 1.5}}, "not a map of texts"),
        ({"q": {"a": 1.5, "b": "high"}}, "not a finite number"),
        ({"q": {"a": 1.5, "b": float("nan")}}, "not a finite number"),
        ({"q": {"a": 1.5}, "r": [1]}, "It is a list"),
    ],
)
def test_refused_cbor(content, message):
    assert message in refusal(up("x", cbor2.dumps(content)))


def test_damaged_cbor():
    data = cbor2.dumps({"q": {f"d{n}": n / 7 for n in range(50)}})
    assert "This is not valid CBOR" in refusal(up("x", data[:-3]))
    assert "This is not valid CBOR" in refusal(up("x", b"\xa1\x61a\xbb" + b"\xff" * 8 + b"x"))
    assert "CBOR" in refusal(up("x", b"\xa1\x61a\xa1\x61b" + b"\x81" * 5000))


FALLING, RISING = (
    {"q1": {"d1": 3, "d2": 2, "d3": 1}, "q2": {"d3": 3, "d1": 2}},
    {"q": {"a": 0, "b": 1}, "r": {"c": 1}},
)
BINARY, FEW = {"q": {"a": 1, "b": 1}, "r": {"c": 1}}, {"q1": {"d2": 1}, "q2": {"d3": 1}}
BY_NAME = {
    "a name that says run": ("bm25.json", FALLING, "ranx-run"),
    "an ending that says run": ("x.run", FALLING, "ranx-run"),
    "a folder that says run": ("runs.zip", FALLING, "ranx-run"),
    "a name that says run, in no order": ("my_run.json", RISING, "ranx-run"),
    "a name that says qrels": ("qrels.json", FALLING, "ranx-qrels"),
    "a name that says judgements": ("judgements-2024.json", FALLING, "ranx-qrels"),
    "few, but named": ("qrels.json", FEW, "ranx-qrels"),
    "more than 5, but named": ("qrels.json", {"q": {"a": 9, "b": 0}}, "ranx-qrels"),
    "no order": ("x.json", RISING, "ranx-qrels"),
    "all alike": ("x.json", BINARY, "ranx-qrels"),
    "numbers that fall": ("x.json", FALLING, None),
    "a name that says both": ("run_qrels.json", FALLING, None),
    "part of a word": ("prune.json", FALLING, None),
}  # fmt: skip


@pytest.mark.parametrize(("name", "content", "expected"), BY_NAME.values(), ids=BY_NAME.keys())
def test_whole_numbers_are_scores_or_grades_by_name_then_by_order_else_it_is_asked(name, content, expected):
    data = json.dumps(content)
    offer = up(name, zipped({"x.json": data}) if name.endswith("zip") else data)
    grades = "--grades" if "9" in data else None
    if expected is None:
        assert (
            refusal(offer)
            == f"{name}: This may be ranx-run or ranx-qrels. Say which (--as '{name}=ranx-run')."
        )
        for said in ("ranx-run", "ranx-qrels"):
            assert read(offer, formats={name: said}).detected[0].format == said
    else:
        assert read(offer, grades=grades and "0=1,9=5").detected[0].format == expected


def test_of_a_folder_nothing_that_may_be_a_run_or_qrels_is_left_out():
    folder = {"bm25.json": json.dumps(FALLING), "qrels.json": json.dumps(FEW)}
    made = read(up("t22.zip", zipped(folder)))
    assert (made.taken["rankings"], made.taken["judgements"]) == (5, 2)
    assert ranked(made)[:2] == [("q1", 1, "d1", 3.0), ("q1", 2, "d2", 2.0)]
    other = {"a.json": json.dumps(FALLING), "qrels.json": json.dumps(FEW)}
    assert "t22.zip/a.json: This may be ranx-run or ranx-qrels." in refusal(up("t22.zip", zipped(other)))
    said = read(up("t22.zip", zipped(other)), formats={"t22.zip/a.json": "ranx-run"})
    assert said.taken == made.taken


@pytest.mark.parametrize(
    "other",
    [
        {"Milvus": {}, "Zilliz": {"1cu": 0.159, "8cu": 1.272}},
        {"model": {"layers": 2, "heads": 4}},
    ],
)
def test_other_objects_of_numbers_are_no_runs(other):
    assert "known here" in refusal(up("x.json", json.dumps(other)))


def test_long_lists_need_no_order():
    long = {"q": {f"d{n}": (n * 7 % 12) / 3 for n in range(12)}}
    assert read(up("x.json", json.dumps(long))).taken["rankings"] == 12
    short = {"q": {"a": 0.5, "b": 0.75}}
    assert read(up("x.json", json.dumps(short)), format="ranx-run").taken["rankings"] == 2


def test_whole_numbers_with_a_point_are_asked():
    data = json.dumps({"q": {"a": 1.0}, "r": {"a": 1.0, "b": 2.0}})
    assert "may be ranx-run or ranx-qrels" in refusal(up("x.json", data))
    assert rows(read(up("x.json", data), format="ranx-qrels"), "judgements")["raw"].to_list() == [1, 1, 2]


def test_a_table_of_ranx_is_a_table():
    table = pl.DataFrame({"q_id": ["q", "q"], "doc_id": ["a", "b"], "score": [1.0, 2.0]})
    made = read(up("run.parq", parquet(table)))
    assert (made.detected[0].format, made.taken["rankings"]) == ("table", 2)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ('{"q": {"a": 1.5, "b": NaN}}', "key `q.b`: The score is not a finite number"),
        ('{"q": {"a": 1.5, "b": true}}', "not a finite number"),
        ('{"q": {"a": 1.5}, "r": [1]}', "key `r`: It is a list, not an object"),
        ('{"q": {"a": 1.5, "a": 2.5}}', "'a' stands twice"),
        ('{"q": {"a": 1.5', "x.json:1"),
        ('{"": {"a": 1.5}}', "The id is empty"),
        ('{"q": {}}', "no pair of query and passage"),
        ('{"q": {"a": ' + "9" * 400 + "}}", "not a finite number"),
        ("[1.5]", "not an object"),
    ],
)
def test_refused(data, message):
    assert message in refusal(up("x.json", data), format="ranx-run")


def test_grades_are_integers():
    assert "not an integer" in refusal(up("x.json", '{"q": {"a": 1.5}}'), format="ranx-qrels")


def test_figures_per_configuration_are_no_run():
    figures = json.dumps({"bm25": {"AP": 0.3, "nDCG@10": 0.4}, "dense": {"AP": 0.35, "nDCG@10": 0.45}})
    made = read(up("x.json", figures))
    assert (made.taken["runs"], made.taken["aggregates"], "rankings" in made.taken) == (2, 4, False)
    assert read(up("x.json", json.dumps({"q": {"p_1": 0.3, "map_2": 0.2}}))).taken["rankings"] == 2


def test_damaged_lz4():
    packed = lz4.frame.compress(DATA * 50)
    assert "x.lz4" in refusal(up("x.lz4", packed[: len(packed) // 2]))
    assert "x.lz4" in refusal(up("x.lz4", packed[:8] + b"\xff" * 40))


@pytest.mark.parametrize(
    ("package", "data"), [("lz4", lz4.frame.compress(DATA)), ("cbor2", cbor2.dumps(RUN))]
)
def test_without_a_reader_the_command_is_named(monkeypatch, package, data):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setitem(sys.modules, f"{package}.frame", None)
    assert f"pip install {package}" in refusal(up("x", data))


@pytest.mark.parametrize(
    "head",
    [b'{"' + b"\\" * 60_000, b'{"a":{' * 10_000, b'{"a":{"b":' + b"1" * 60_000, b"{" * 65_000],
    ids=["backslashes", "nested", "digits", "braces"],
)
def test_heads_that_would_keep_a_pattern_busy(head):
    assert refusal(up("x.json", head))


def test_qrels_as_ranx_writes_them_into_parquet():
    """Its runs have the same columns; only the kind of their scores tells them apart."""
    columns = {"q_id": ["q1", "q1", "q2"], "doc_id": ["a", "b", "c"], "score": [1, 0, 2]}
    made = read(up("qrels.parquet", parquet(pl.DataFrame(columns))))
    assert made.detected[0].format == "ranx-qrels"
    table = rows(made, "judgements").select("query_id", "passage_id", "raw")
    assert table.rows() == [("q1", "a", 1), ("q1", "b", 0), ("q2", "c", 2)]
    run = pl.DataFrame(columns, schema_overrides={"score": pl.Float64})
    assert "rankings" in read(up("run.parquet", parquet(run))).taken
    assert "not an integer" in refusal(
        up("x.parquet", parquet(run.with_columns(pl.col("score") / 2))), format="ranx-qrels"
    )
    gap = pl.DataFrame({**columns, "score": [1, None, 2]})
    assert "x.parquet:2: The score is not an integer" in refusal(up("x.parquet", parquet(gap)))


OFFERS = {
    "ranx": ("ranx-run", DATA),
    "ranx-lz4": ("ranx-run", lz4.frame.compress(lz4.frame.compress(cbor2.dumps(RUN)))),
    "ranx-cbor": ("ranx-run", cbor2.dumps(RUN)),
    "ranx-qrels": ("ranx-qrels", json.dumps(QRELS).encode()),
}
