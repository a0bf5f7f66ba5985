from __future__ import annotations

import inspect
import io
import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from core.errors import ClqError, StoreError
from core.importers import FORMATS, Options, load, preview
from core.paths import ROOT
from core.store import Store
from tests.importers.formats import test_mteb, test_vectordbbench
from tests.importers.fuzzing import OPTIONS
from tests.importers.helpers import members, read, refusal, rows, up, zipped
from tests.importers.samples import SAMPLES, TESTS

RUN = "q1 Q0 a 1 9.5 bm25\nq1 Q0 b 2 9.0 bm25\n"
QRELS = "q1 0 a 2\nq1 0 b 0\n"
TABLE = "qid,did,rank\nq1,a,1\n"


def test_every_format_says_what_it_brings():
    assert all(each.title and each.brings for each in FORMATS)
    assert len({each.name for each in FORMATS}) == len(FORMATS)


@pytest.mark.parametrize("each", FORMATS, ids=lambda each: each.name)
def test_an_importer_is_its_file_its_tests_and_its_part_of_the_reference(each):
    """A format of few people is named by the table of entry points, too; its tests offer a file."""
    own = Path(inspect.getfile(type(each))).relative_to(ROOT / "core").as_posix()
    if not own.startswith("importers/formats/"):
        assert own.startswith("contrib/importers/")
        assert type(each).__name__ in (ROOT / "core/contrib/__init__.py").read_text()
    assert [test for test in TESTS if each.name in dict(getattr(test, "OFFERS", {}).values())]
    assert each.title in (ROOT / "docs/reference/formats.md").read_text()


NEAREST = {
    "five fields": ("301 Q0 a 1 2.5\n", "comes nearest to TREC run: line 1 has 5 fields, '301 Q0 a 1 2.5'"),
    "grades in words": ("301 0 a high\n", "comes nearest to TREC qrels: line 1 has 4 fields"),
    "table without a meaning": (
        "qid,did\nq1,a\n",
        "comes nearest to Table (CSV, TSV, JSON, JSONL, Parquet): no column `rank`",
    ),
    "prose": (
        "This is a letter, and it has commas.\nMore of it follows, with words.\n",
        "of no format known here",
    ),
    "PDF": (b"%PDF-1.7\n\x00\xff\x00", "This is of no format known here. The list of formats"),
    "broken JSON": (
        '{"q1": {"a": 1.5,\n "b": }}',
        "x:2: This is not valid JSON: Expecting value, at character 7 of",
    ),
    "broken JSON line": ('{"q1": 1}\n{"q2": 2}\n{"q3": \n', "x:3: This is not valid JSON: Expecting value"),
    "sound JSON of no format": ('{"a": {"b": "hello"}}', "of no format known here"),
    "a first line that goes on": (
        f'{{"query_id": "q", "passage_id": "p", "rank": 1, "note": "{"x" * 70_000}"}}\n{{"query_id": "q"}}\n',
        "by its first 65,536 bytes, in which its first line does not end. Name the format (--as table,",
    ),
    "pickle": (b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00", "looks like a Python pickle"),
    "half a Parquet file": (b"PAR1\x15\x00\x15", "was cut off"),
    "blank": (" \n\n", "The file is empty."),
}


@pytest.mark.parametrize(("content", "message"), NEAREST.values(), ids=NEAREST.keys())
def test_what_is_not_understood_is_refused_with_the_nearest_format(content, message):
    assert message in refusal(up("x", content))


def test_one_file_that_is_not_understood_refuses_all_that_was_named():
    assert "notes.txt" in refusal(up("x", RUN), up("notes.txt", "hello"))


def test_in_a_folder_it_is_left_out_and_counted():
    made = read(up("x.zip", zipped({"run.txt": RUN, "README": "hello", "LICENSE": "free"})))
    assert made.taken["runs"] == 1
    assert [(left.count, left.first) for left in made.left_out] == [(1, "x.zip/LICENSE"), (1, "x.zip/README")]


def test_a_file_that_two_formats_would_read_asks(monkeypatch):
    table = next(each for each in FORMATS if each.name == "table")
    monkeypatch.setattr(type(table), "sniff", lambda *_: 0.95)
    assert "x: This may be trec-run or table. Say which (--as 'x=trec-run')." in refusal(up("x", RUN))


def test_unknown_format_lists_the_known_ones():
    assert "No format 'word'. Found: ann-benchmarks, ann-rows, autorag, beir, " in refusal(
        up("x", RUN), format="word"
    )


def test_formats_mix_in_one_import():
    made = read(up("r", RUN), up("g", QRELS), up("t.csv", TABLE), collection_id="c")
    assert made.taken == {"collections": 1, "golden sets": 1, "runs": 2, "judgements": 2, "rankings": 3}
    assert rows(made, "rankings")["run_id"].n_unique() == 2
    assert {run.collection_id for run in made.runs} == {"c"}


def test_the_same_file_twice_is_refused():
    assert "Two files make the same run" in refusal(up("x", RUN), up("x", RUN))


@pytest.mark.slow
def test_reimport_into_a_store_changes_nothing_and_a_changed_file_makes_a_new_run(tmp_path):
    store = Store.open(tmp_path / "store")
    for _ in range(2):
        with store.write("import") as writer:
            writer.add(read(up("r", RUN), up("g", QRELS)).batch)
    assert store.revision() == 1
    known = frozenset(store.read().collections()["collection_id"])
    with store.write("import") as writer:
        writer.add(read(up("r", RUN.replace("9.5", "9.7")), collection_id="g", known_collections=known).batch)
    assert store.read().runs().height == 2
    changed = read(up("g", QRELS.replace("a 2", "a 1")), known_collections=known, grades="0-2")
    with pytest.raises(StoreError), store.write("import") as writer:
        writer.add(changed.batch)
    assert store.revision() == 2


WITHOUT = {
    "a measure of MTEB": (("SciFact.json", test_mteb.file(test_mteb.NEW)), "ndcg_at_10", ("nDCG", 10)),
    "a measure of VectorDBBench": (
        ("x.json", test_vectordbbench.file(test_vectordbbench.entry())), "ANN-nDCG", ("ANN-nDCG", 100)
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WITHOUT)
def test_a_measure_is_left_out_of_any_format(case):
    (name, content), unwanted, measure = WITHOUT[case]
    measures = [
        set(
            rows(read(up(name, content), without=frozenset(names)), "aggregates")
            .select("measure", "k")
            .rows()
        )
        for names in ([], [unwanted])
    ]
    assert measures[0] - measures[1] == {measure}


@pytest.mark.parametrize("name", SAMPLES)
def test_leaving_out_what_is_not_there_is_never_ignored(name):
    with pytest.raises(ClqError, match="no such column"):
        load([up("x", SAMPLES[name][1])], replace(OPTIONS, without=frozenset({"no such column"})))


def test_preview_looks_without_refusing():
    seen = preview(
        [up("r", RUN), up("bad", "hello"), up("gone.zip", b"PK\x03\x04"), up("t", "wonach,did\nq1,a\n")],
        Options(),
    )
    assert [each.format for each in seen] == ["trec-run", None, None, "table"]
    assert seen[0].problem == ""
    assert seen[0].rows["line"].to_list() == RUN.splitlines()
    assert "of no format" in seen[1].problem
    assert "cannot be read" in seen[2].problem
    assert seen[3].columns == ("wonach", "did")
    assert seen[3].mapping == {"passage_id": "did"}
    assert seen[3].rows.rows() == [("q1", "a")]
    assert "no column" in seen[3].problem
    mapped = preview(
        [up("t", "wonach,did,wert\nq1,a,1\n")], Options(columns={"query_id": "wonach", "score": "wert"})
    )
    assert mapped[0].problem == ""
    assert mapped[0].mapping == {"query_id": "wonach", "score": "wert", "passage_id": "did"}


def test_preview_shows_a_mapping_that_does_not_hold():
    (seen,) = preview([up("t", TABLE)], Options(columns={"score": "wert"}))
    assert "no column `wert` in t; found: qid, did, rank." in seen.problem


def test_files_are_left_out_by_name():
    both = up("both.zip", zipped({"good.run": RUN, "bad.qrels": QRELS + QRELS.replace(" 0\n", " 1\n")}))
    assert "both.zip/bad.qrels" in refusal(both)
    made = read(both, skip=frozenset({"both.zip/bad.qrels"}))
    assert made.taken["rankings"] == len(RUN.splitlines())
    assert [(each.count, each.first) for each in made.left_out] == [(1, "both.zip/bad.qrels")]
    assert "Every file is left out." in refusal(both, skip=frozenset({"both.zip"}))


def test_a_preview_shows_text_where_there_is_no_table():
    line = json.dumps({"context_recall": [{"metric_input": {"user_input": "x" * 300}, "metric_output": 1}]})
    (seen,) = preview([up("annotated.json", line)])
    assert not seen.problem
    assert seen.rows.height > 2


def test_lists_in_cells_are_shown_as_json():
    packed = io.BytesIO()
    pl.DataFrame({"user_input": ["q"], "retrieved_contexts": [["é", "b"]]}).write_parquet(packed)
    (seen,) = preview([up("ragas.parquet", packed.getvalue())])
    assert seen.rows["retrieved_contexts"].to_list() == ['["é", "b"]']


def test_runs_of_files_that_differ_in_their_ending_only_have_names_of_their_own():
    asked = [{"input": "q", "actualOutput": "a", "retrievalContext": ["p"]}]
    rows = json.dumps({"testCases": asked})
    other = json.dumps({"testCases": [{**asked[0], "actualOutput": "b"}]})
    made = read(up("cases.json", rows), up("cases.txt", other))
    assert [run.label for run in made.runs] == ["cases.json", "cases.txt"]


FOREIGN = {
    "README.md": b"# About\nSome words.\n",
    "plot.png": b"\x89PNG\r\n\x1a\n" + bytes(200),
    "settings.json": b'{"a": {"b": [1, 2]}, "seed": 3}',
    "params.csv": b"key,value\nlr,0.1\n",
    "words.txt": b"one two three four five six\nthis is a note of six\n",
    "log.jsonl": b'{"a": 1, "n": 0.5, "b": 2}\n{"a": 1, "n": 0.5, "b": 2}\n',
    "scores.jsonl": b'{"q": 1, "d": 2, "s": 3, "n": 0.5 }\n',
    "empty.txt": b"",
    "conf.yaml": b"a: 1\nb: [1, 2]\n",
    "costs.csv": b"stack,latency\nA,fast\nB,slow\n",
}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_foreign_file_in_a_folder_is_left_out_by_name(name):
    files = members(SAMPLES[name][1])
    own = {f"d/{name if file == 'x' else file}": data for file, data in files.items()}
    alone = load([up("x.zip", zipped(own, 0))], OPTIONS)
    foreign = {f"d/{file}": data for file, data in FOREIGN.items() if len(files) > 1 or file != "costs.csv"}
    made = load([up("x.zip", zipped({**own, **foreign}, 0))], OPTIONS)
    assert made.taken == alone.taken
    left = {each.file for each in made.reports if each.kind == "file" and each.left_out}
    assert {f"x.zip/{file}" for file in foreign} <= left


def test_a_damaged_file_among_equals_refuses_them_all():
    good, bad = "stack,latency\nA,1\n", "stack,latency\nA,fast\n"
    assert "x.zip/b.csv:2" in refusal(up("x.zip", zipped({"a.csv": good, "b.csv": bad})))


NO_TREC = {
    "JSON of six words": b'{"a": 1, "b": 2, "c": 0.5}\n' * 3,
    "JSON of four words": b'{"a": 1, "b": 2}\n' * 3,
    "header of six": b"query_id\tit\tdoc_id\trank\tscore\ttag\nq1\t0\td1\t1\t0.5\tx\n",
    "header of four": b"query_id\tit\tdoc_id\tgrade\nq1\t0\td1\t1\nq1\t0\td2\t2\n",
    "six words": b"a b c d e f\n" + b"1 2 3 4 5 6\n" * 20,
}


@pytest.mark.parametrize("name", NO_TREC)
def test_what_is_no_trec_file(name):
    (seen,) = preview([up("x", NO_TREC[name])])
    assert seen.problem or seen.format == "table"
    assert (seen.format == "table") or name == "six words"


@pytest.mark.parametrize("name", [name for name in NO_TREC if name.startswith("JSON")])
def test_json_is_not_read_as_trec_even_when_asked(name):
    form = "trec-run" if "six" in name else "trec-qrels"
    assert "x:1" in refusal(up("x", NO_TREC[name]), format=form)


def test_a_folder_of_nothing_known_blames_no_file():
    said = refusal(up("x.zip", zipped({"a.md": "hello, a text", "b.png": b"\x89PNG", "c.md": "more"})))
    assert said.startswith("x.zip: None of its 3 files is of a format known here: .md (2), .png (1).")
    assert "TREC" not in said


def test_a_folder_of_nothing_readable_says_what_is_broken():
    assert "b.json:1: This is not valid JSON" in refusal(
        up("x.zip", zipped({"a.md": "hello, a text", "b.json": '{"q": }'}))
    )


@pytest.mark.slow
@pytest.mark.parametrize("bad", ["7", "99999", "x y", "1.5"])
def test_one_bad_file_of_many_names_the_way_to_the_others(bad):
    files = {f"judge{n}.csv": f"query_id,passage_id,grade\nq1,a,1\nq1,b,{n % 2}\n" for n in range(33)}
    files["judge5.csv"] += f"q1,c,{bad}\n"
    offer = up("judges.zip", zipped(files))
    assert "--skip 'judges.zip/judge5.csv'" in refusal(offer)
    assert len(read(offer, skip=frozenset({"judges.zip/judge5.csv"})).golden_sets) == 32
    assert "--skip" not in refusal(up("judge5.csv", files["judge5.csv"]))


def test_a_long_name_of_a_file_is_the_name_of_its_run():
    name = "a-stack-of-many-parts-" * 8
    assert read(up(f"{name}.csv", TABLE)).runs[0].label == name


WIDE = "x" * 10_000_000
TEN_MEGABYTES = {
    "r.trec": f"q1 Q0 p1 1 2.0 {WIDE}\nq1 Q0 p2 2 1.0 mine\n",
    "q.qrels": f"q1 0 {WIDE} 1\nq1 0 p2 1\n",
    "t.csv": f"query_id,passage_id,rank,note\nq1,p1,1,{WIDE}\nq1,p2,2,b\n",
    "t.tsv": f"query_id\tpassage_id\trank\nq1\t{WIDE}\t1\nq1\tp2\t2\n",
    "t.jsonl": f'{{"query_id": "q1", "passage_id": "p1", "rank": 1, "note": "{WIDE}"}}\n',
    "t.json": f'[{{"query_id": "q1", "passage_id": "p1", "rank": 1, "note": "{WIDE}"}}]',
    "corpus.jsonl": f'{{"_id": "p1", "title": "t", "text": "{WIDE}"}}\n',
    "t.md": f"| stack | nDCG@10 |\n| --- | --- |\n| {WIDE} | 0.5 |\n",
    "header.csv": ",".join(f"c{at}" for at in range(1_000_000)) + "\n1,2\n",
    "deep.json": "[" * 5_000_000,
    "key.jsonl": f'{{"{WIDE}": 1}}\n',
    "plain.txt": WIDE,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TEN_MEGABYTES)
def test_a_line_of_ten_megabytes_is_read_or_refused_in_a_short_message(name):
    said = ""
    try:
        made = read(up(name, TEN_MEGABYTES[name]), collection_id="c")
    except ClqError as error:
        said = str(error)
    assert sum(made.taken.values()) if not said else name in said
    assert len(said) < 800
