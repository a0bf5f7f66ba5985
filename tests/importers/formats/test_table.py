from __future__ import annotations

import polars as pl
import pytest

from core.importers import ReadLimits
from tests.importers.helpers import parquet, read, refusal, rows, up, zipped

CSV = "query_id,doc_id,rank,score\nq1,a,1,0.9\nq1,b,2,0.8\nq2,a,1,0.7\n"
FULL = """qid,docno,rank,sim,system,embed_ms,retrieve_latency_s,rerank_input_tokens,rerank_model
q1,a,1,0.9,bm25,10,0.020,500,rerank-2.5
q1,b,2,0.8,bm25,10,0.020,500,rerank-2.5
q2,a,1,0.7,bm25,12,,,
q1,a,1,0.9,dense,11,0.030,0,rerank-2.5
"""

HEADERS = [
    "qid,did,rank",
    "query_id,doc_id,score",
    "query-id,corpus-id,sim",
    "Query ID,Passage ID,Rank",
    "topic,docno,score",
    "q_id;passage_id;rank",
    "qid\tdoc_id\trank",
    "qid|pid|rank",
]


@pytest.mark.parametrize("header", HEADERS)
def test_columns_are_recognised_by_their_aliases(header):
    mark = next(each for each in "\t;|," if each in header)
    made = read(up("x", "\n".join([header, mark.join(["q1", "a", "1"]), mark.join(["q1", "b", "2"])])))
    assert made.taken == {"collections": 1, "runs": 1, "rankings": 2}
    assert made.runs[0].label == "x"


def test_a_cell_of_many_long_lines_is_read_and_the_line_after_it_is_named():
    cell = '"' + "a long line of a passage\n" * 10_000 + '"'
    made = read(up("x.csv", f"qid,did,rank,text\nq1,a,1,{cell}\nq1,b,2,short\n"))
    assert made.taken["rankings"] == 2
    assert "x.csv:10003" in refusal(up("x.csv", f"qid,did,rank,text\nq1,a,1,{cell}\nq1,,2,short\n"))


def test_csv_jsonl_and_parquet_bring_the_same_rankings():
    frame = pl.DataFrame({"qid": [1, 1, 2], "did": ["a", "b", "a"], "score": [0.9, 0.8, 0.7]})
    offers = [
        up("x.csv", frame.write_csv()),
        up("x.tsv", frame.write_csv(separator="\t")),
        up("x.jsonl", frame.write_ndjson()),
        up("x.parquet", parquet(frame)),
    ]
    tables = [rows(read(offer), "rankings").drop("run_id") for offer in offers]
    assert all(table.equals(tables[0]) for table in tables)
    assert tables[0]["query_id"].to_list() == ["1", "1", "2"]
    assert tables[0]["rank"].to_list() == [1, 2, 1]


def test_names_of_files_do_not_matter():
    assert read(up("image.png", CSV)).taken["rankings"] == 3


def test_latency_and_usage_columns():
    made = read(up("x.csv", FULL))
    ids = {run.label: run.run_id for run in made.runs}
    timings = rows(made, "timings").sort("run_id", "query_id", "stage")
    found = {
        (row["run_id"], row["query_id"], row["stage"]): row["ms"] for row in timings.iter_rows(named=True)
    }
    assert found == {
        (ids["bm25"], "q1", "embed"): 10.0,
        (ids["bm25"], "q1", "retrieve"): 20.0,
        (ids["bm25"], "q2", "embed"): 12.0,
        (ids["dense"], "q1", "embed"): 11.0,
        (ids["dense"], "q1", "retrieve"): 30.0,
    }
    usage = rows(made, "usage").sort("run_id", "query_id")
    assert {(row["run_id"], row["amount"]) for row in usage.iter_rows(named=True)} == {
        (ids["bm25"], 500.0),
        (ids["dense"], 0.0),
    }
    assert set(usage["item"]) == {"rerank-2.5"}
    assert set(usage["unit"]) == {"input_tokens"}
    assert set(usage["basis"]) == {"imported"}
    assert any("converted from seconds to milliseconds" in note for note in made.notes)
    left = {entry.reason: entry.count for entry in made.left_out}
    assert left["empty cells of `rerank_input_tokens`: missing, not 0"] == 1


def test_latency_of_the_whole_path_and_one_without_a_unit():
    made = read(up("x", "qid,did,rank,latency_ms,time\nq1,a,1,5.5,3\n"))
    assert rows(made, "timings").select("stage", "repeat", "ms").rows() == [("total", 1, 5.5)]
    assert any("name it time_ms or time_s" in left.reason for left in made.left_out)


def test_usage_that_is_not_named_says_so():
    made = read(up("x", "qid,did,rank,search_units\nq1,a,1,1\n"))
    assert rows(made, "usage")["item"].to_list() == ["not named"]
    assert any("it has no price" in note for note in made.notes)


def test_timings_in_a_table_of_their_own_join_the_run_of_the_same_name():
    ranking, cost = (
        up("r.csv", FULL.split("\n", 1)[0] + "\nq1,a,1,1,bm25,,,,\n"),
        up("t.csv", "qid,run,rerank_ms\nq1,bm25,5\nq1,bm25,6\n"),
    )
    made = read(ranking, cost)
    assert made.taken["runs"] == 1
    assert rows(made, "timings").select("run_id", "repeat", "ms").rows() == [
        (made.runs[0].run_id, 1, 5.0), (made.runs[0].run_id, 2, 6.0)
    ]  # fmt: skip


def test_timings_without_rankings_make_a_run():
    made = read(up("t.csv", "qid,latency_ms,input_tokens\nq1,5,10\nq1,6,20\n"))
    assert made.taken == {"collections": 1, "runs": 1, "timings": 2, "usage": 1}
    assert rows(made, "usage")["amount"].to_list() == [15.0]


def test_pool_and_final_lists():
    made = read(up("x", "qid,did,rank,stage\nq1,a,1,pool\nq1,b,2,pool\nq1,b,1,final\n"))
    assert made.runs[0].pool == "imported@2"
    assert rows(made, "rankings").select("stage", "rank", "passage_id").rows() == [
        ("final", 1, "b"), ("pool", 1, "a"), ("pool", 2, "b")
    ]  # fmt: skip
    assert read(up("x", "qid,did,rank,stage\nq1,a,1,pool\n"), pool="bm25@100").runs[0].pool == "bm25@100"


@pytest.mark.parametrize("column", ["judge", "annotator", "judge_model", "rater", "Judge ID"])
def test_judgements_with_more_columns(column):
    """The judge is the judge, whatever it is called; what a judgement has no place for is counted."""
    head = f"qid,doc,rel,{column},timestamp,rationale,latency_ms,score"
    table = f'{head}\nq1,a,3,me,2026-01-01,"so, it\nsays",12,0.5\nq1,b,0,,,,,\n'
    lines = pl.read_csv(table.encode()).write_ndjson()
    for made in (read(up("q.csv", table)), read(up("q.jsonl", lines))):
        assert rows(made, "judgements").select("grade", "judge").rows() == [(5, "me"), (1, None)]
        reasons = {each.reason.partition(":")[0] for each in made.left_out}
        assert reasons == {f"column `{each}`" for each in ("timestamp", "rationale", "latency_ms", "score")}


def test_table_of_judgements():
    made = read(up("q.csv", "qid,doc,rel,judge\nq1,a,3,me\nq1,b,0,\n"))
    assert made.taken == {"collections": 1, "golden sets": 1, "judgements": 2}
    assert rows(made, "judgements").select("grade", "raw", "judge").rows() == [(5, 3, "me"), (1, 0, None)]


def test_user_maps_the_columns():
    text = "frage,absatz,cosine\nq1,a,0.5\nq1,b,0.9\n"
    assert "of no format known" in refusal(up("x", text))
    made = read(up("x", text), columns={"query_id": "frage", "passage_id": "absatz", "score": "cosine"})
    assert rows(made, "rankings").sort("rank")["passage_id"].to_list() == ["b", "a"]


def test_quoted_cells_and_blank_lines_keep_line_numbers():
    text = 'qid,did,score\nq1,"a\nb",1\n\nq1,c,x\n'
    assert "x:5, column `score`: 'x' is not a finite number." in refusal(up("x", text))


BROKEN = {
    "no grade": (
        "qid,doc,wrong\nq1,a,1\n",
        {"columns": {"grade": "grade"}},
        "no column `grade` in x; found: qid, doc, wrong.",
    ),
    "no score": ("qid,doc\nq1,a\n", {"format": "table"}, "no column `rank` in x; found: qid, doc."),
    "no passage": (
        "qid,score\nq1,1\n",
        {"format": "table"},
        "no column `passage_id` in x; found: qid, score.",
    ),
    "no query": ("did,score\nq1,1\n", {"format": "table"}, "no column `query_id` in x; found: did, score."),
    "unknown role": (CSV, {"columns": {"speed": "query_id"}}, 'Unknown meaning "speed". Choose one of: '),
    "a reading": (CSV, {"columns": {"percent": "score"}}, "--numbers 'score=percent'"),
    "score": (CSV + "q3,a,1,?\n", {}, "x:5, column `score`: '?' is not a finite number."),
    "a unit": (
        CSV + "q3,a,1,3 ms\n",
        {},
        "'3 ms' is not a finite number. Write the unit into the column's name.",
    ),
    "score NaN": (CSV + "q3,a,1,nan\n", {}, "x:5, column `score`: 'nan' is not a finite number."),
    "rank": (CSV + "q3,a,1.5,1\n", {}, "x:5, column `rank`: '1.5' is not an integer."),
    "no id": (CSV + ",a,1,1\n", {}, "x:5, column `query_id`: The id is empty."),
    "blank id": (CSV + 'q3,"  ",1,1\n', {}, "x:5, column `passage_id`: The id is empty."),
    "duplicate": (CSV + "q1,a,2,0\n", {}, "x:5: Passage 'a' occurs twice for query 'q1'."),
    "too many cells": (CSV + "q3,a,1,1,9\n", {}, "x:5: 5 cells, the header has 4."),
    "open quote": (CSV + 'q3,"a,1,1\n', {}, "x:5: The line cannot be read"),
    "stray quote": (CSV + 'q3,"a ""b""",1,1\nq3,d"4,2,1\n', {}, "x:6: A quotation mark stands within a cell"),
    "repeated column": ("qid,did,rank,rank\nq1,a,1,1\n", {}, "x:1, column `rank`: The column occurs twice."),
    "no rows": ("qid,did,rank\n", {}, "x: The table has no rows."),
    "stage": (
        "qid,did,rank,stage\nq1,a,1,middle\n",
        {},
        "x:2, column `stage`: The stage of a ranking is 'middle'",
    ),
    "ranks with a gap": (
        "qid,did,rank\nq1,a,1\nq1,b,3\n",
        {},
        "The ranks of run '' are not 1..n in 1 of 1 queries",
    ),
    "negative latency": (
        "qid,did,rank,embed_ms\nq1,a,1,-5\n",
        {},
        "x:2, column `embed_ms`: The number is negative.",
    ),
    "latency differs": (
        "qid,did,rank,a_ms\nq1,a,1,5\nq1,b,2,6\n",
        {},
        "x:3, column `a_ms`: The value differs within a query",
    ),
    "grade": ("qid,did,grade\nq1,a,\n", {}, "x:2, column `grade`: The grade is empty."),
    "repeat": (
        "qid,repeat,a_ms\nq1,1,5\nq1,1,6\n",
        {},
        "x:3, column `repeat`: Repeat 1 of query 'q1' occurs twice.",
    ),
    "JSON": ('{"qid":"1","did":"a","rank":1}\n{"qid":"1",\n', {}, "x:2: The line is not valid JSON"),
    "JSON list": ('{"qid":"1","did":"a","rank":1}\n\n[1]\n', {}, "x:3: The line is not a JSON object."),
    "JSON NaN": (
        '{"qid":"1","did":"a","score":1}\n{"qid":"1","did":"b","score":NaN}\n',
        {},
        "x:2: The line is not valid JSON: NaN is not",
    ),
    "JSON depth": (
        '{"qid":"1","did":"a","rank":1}\n' + '{"a":' * 200_000 + "\n",
        {},
        "x:2: The JSON is nested too deeply.",
    ),
}


@pytest.mark.parametrize(("text", "options", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_broken_tables_name_file_line_and_column(text, options, message):
    assert message in refusal(up("x", text), **options)


def test_limits_of_columns_and_cells():
    wide = ",".join(["qid", "did", "rank", *(f"c{number}" for number in range(10_000))])
    assert "x:1: 10,003 columns; the limit is 10,000." in refusal(up("x", wide + "\n"), format="table")
    small = ReadLimits(cell_bytes=100)
    assert "x:5, column `doc_id`: The cell is longer than 100 bytes." in refusal(
        up("x", CSV + f"q3,{'a' * 101},1,1\n"), limits=small
    )
    assert "x:2, column `did`: The cell is longer" in refusal(
        up("x", '{"qid":"1","did":"a","rank":1}\n' + '{"qid":"1","did":"%s","rank":2}\n' % ("a" * 101)),
        limits=small,
    )


def test_a_parquet_file_that_claims_too_many_rows():
    data = parquet(pl.DataFrame({"qid": ["q"] * 400_000, "did": ["a"] * 400_000, "rank": [1] * 400_000}))
    limits = ReadLimits(grace_bytes=1000, ratio=10)
    assert "The file claims 400,000 rows" in refusal(up("x", data), limits=limits)


def test_parquet_garbage():
    assert "cannot be read" in refusal(up("x", b"PAR1" + bytes(50) + b"PAR1"), format="table")


def test_formulas_and_markup_stay_text():
    made = read(up("x", 'qid,did,rank,run\n=1+1,"<b>a</b>",1,=cmd()\n'))
    assert made.runs[0].label == "=cmd()"
    assert rows(made, "rankings").select("query_id", "passage_id").row(0) == ("=1+1", "<b>a</b>")


def test_every_percentile_is_taken():
    made = read(up("board.csv", "stack,ndcg@10,latency_p50_ms,latency_p95_ms,latency_ms_p99\nA,0.5,1,2,3\n"))
    found = rows(made, "aggregates").filter(stage="total").select("measure", "value").rows()
    assert sorted(found) == [("latency_p50", 1.0), ("latency_p95", 2.0), ("latency_p99", 3.0)]


AGGREGATED = """\
stack,embedder,dim,reranker,candidates,RA-nWG@10,ndcg@10,n-recall4+@30,PROC[ra_nwg]@10,\
latency_p50_ms,rerank_p95_s,usd_per_1k,n
A,voyage-3.5,512,none,,0.71,0.5,0.9,0.95,120,0.3,,50
B,voyage-3.5,512,rerank-2.5,50,0.85,,0.97,0.95,420,,1.25,50
"""


def test_results_per_stack():
    made = read(up("board.csv", AGGREGATED))
    assert made.taken == {"collections": 1, "runs": 2, "aggregates": 11}
    first, second = made.runs
    assert dict(first.stack.spec) == {"embedder": "voyage-3.5", "dim": 512, "reranker": "none"}
    assert second.stack.label == "voyage-3.5 512 d + rerank-2.5, K = 50"
    table = rows(made, "aggregates").filter(pl.col("run_id") == second.run_id)
    found = {(row["measure"], row["k"], row["stage"]): row["value"] for row in table.iter_rows(named=True)}
    assert found == {
        ("RA-nWG", 10, None): 0.85, ("N-Recall4+", 30, None): 0.97, ("PROC[RA-nWG]", 10, None): 0.95,
        ("latency_p50", None, "total"): 420.0, ("usd_per_1k", None, "total"): 1.25,
    }  # fmt: skip
    assert set(table["n"]) == {50}
    assert rows(made, "aggregates").filter(measure="latency_p95", stage="rerank")["value"].to_list() == [
        300.0
    ]
    left = {entry.reason: entry.count for entry in made.left_out}
    assert left == {
        f"empty cells of `{name}`: missing, not 0": 1 for name in ("ndcg@10", "rerank_p95_s", "usd_per_1k")
    }


BROKEN_BOARDS = {
    "no name": ("RA-nWG@10\n0.5\n", "of no format known"),
    "no name, two measures": ("RA-nWG@10,Hit@10\n0.5,1\n", "x: No column names the stacks."),
    "empty name": ("stack,RA-nWG@10\n,0.5\n", "x:2: The row names no stack."),
    "twice": ("stack,RA-nWG@10\nA,0.5\nA,0.6\n", "x:3: The stack 'A' occurs twice. Keep one"),
    "word": ("stack,RA-nWG@10\nA,good\n", "x:2, column `RA-nWG@10`: 'good' is not a finite number."),
    "infinite": ("stack,RA-nWG@10\nA,inf\n", "x:2, column `RA-nWG@10`: 'inf' is not a finite number."),
    "dimension": ("stack,dim,RA-nWG@10\nA,big,1\n", "x:2, column `dim`: 'big' is not an integer."),
}


@pytest.mark.parametrize(("text", "message"), BROKEN_BOARDS.values(), ids=BROKEN_BOARDS.keys())
def test_broken_results_per_stack(text, message):
    assert message in refusal(up("x", text))


FRAME = pl.DataFrame(
    {"qid": ["q1", "q1", "q2"] * 5, "did": [f"d{n}" for n in range(15)], "score": [n / 3 for n in range(15)]}
)
OFFERS = {
    "csv": ("table", CSV.encode()),
    "csv-full": ("table", FULL.encode()),
    "csv-aggregated": ("table", AGGREGATED.encode()),
    "jsonl": ("table", FRAME.write_ndjson().encode()),
    "parquet": ("table", parquet(FRAME)),
}


LABELLED = "qid,docid,gpt-4o,llama,human,words,length\n" + "".join(
    f"q{n},d{n % 7},{n % 4},{(n + 1) % 4},{'' if n % 3 else n % 2},w{n},{100 + n}\n" for n in range(20)
)


def test_columns_of_grades_are_a_judge_each():
    made = read(up("x.csv", LABELLED), collection_id="c")
    assert [each.judge for each in made.golden_sets] == ["gpt-4o", "human", "llama"]
    sizes = rows(made, "judgements").group_by("golden_set_id").len().sort("golden_set_id").rows()
    assert sizes == [("c-x-gpt-4o", 20), ("c-x-human", 7), ("c-x-llama", 20)]
    assert [each.reason for each in made.left_out] == [
        "column `words`: unknown meaning", "column `length`: unknown meaning"
    ]  # fmt: skip
    first = rows(made, "judgements").filter(golden_set_id="c-x-gpt-4o")
    assert first["raw"].to_list() == [n % 4 for n in range(20)]


@pytest.mark.parametrize(
    ("header", "pattern", "judges"),
    [
        ("qid,docid,label_a,label_b,other", "label_*", ["label_a", "label_b"]),
        ("qid,docid,relevance,llm_b,other", "*", ["relevance", "llm_b", "other"]),
    ],
)
def test_columns_of_grades_by_a_pattern(header, pattern, judges):
    text = f"{header}\n" + "".join(f"q{n},d,{n % 2},{n % 3},{n % 2}\n" for n in range(9))
    made = read(up("x.csv", text), columns={"grade": pattern})
    assert sorted(each.judge for each in made.golden_sets) == sorted(judges)
    assert "no column `nothing*`" in refusal(up("x.csv", text), columns={"grade": "nothing*"})


def test_a_cell_that_is_no_grade_names_its_column():
    bad = LABELLED.replace("q9,d2,1,2", "q9,d2,1,two")
    assert "x.csv:11, column `llama`" in refusal(up("x.csv", bad), columns={"grade": "[gl]*[oa]"})


def test_one_column_of_small_numbers_is_no_judge():
    assert "no column `rank`" in refusal(up("x.csv", "qid,docid,chunk\nq1,a,1\nq1,b,2\n"))


PLACED = {
    "texts": ("qid,rank,text\nq1,1,cats purr\nq1,2,dogs bark\nq2,1,cats  purr\n", {"text": "cats purr"}, 2),
    "characters": (
        "qid,rank,file_path,start_index,end_index\nq1,1,a.md,0,9\nq1,2,a.md,10,12\n",
        {"source": "a.md", "start": 0, "end": 9},
        2,
    ),
    "headings": ("qid,rank,source,section\nq1,1,a.md,Cats\n", {"source": "a.md", "heading": "Cats"}, 1),
    "beside ids": (
        "qid,did,rank,text,source\nq1,a,1,cats purr,a.md\n",
        {"text": "cats purr", "source": "a.md"},
        1,
    ),
    "a document's id beside": (
        "qid,doc_id,chunk_id,rank,text\nq1,a.md,7,1,cats purr\nq1,a.md,8,2,dogs bark\n",
        {"text": "cats purr", "source": "a.md"},
        2,
    ),
}


@pytest.mark.parametrize("case", PLACED)
def test_where_passages_are_from_is_told_beside_their_ids(case):
    text, told, passages = PLACED[case]
    made = read(up("x.csv", text))
    assert rows(made, "rankings")["passage_id"].n_unique() == passages
    first = made.told.row(0, named=True)
    assert {name: value for name, value in first.items() if value is not None} == {
        "passage_id": rows(made, "rankings").sort("query_id", "rank")["passage_id"][0], **told
    }  # fmt: skip
    assert "queries" not in made.frames
    (report,) = made.reports
    assert {*report.taken, *report.left_out} == set(text.splitlines()[0].split(","))


@pytest.mark.parametrize(
    "text",
    [
        "qid,text,score\nq1,why?,0.5\n",  # a question and its score
        "qid,rank,source\nq1,1,a.md\n",  # which part of the document is not said
        "qid,rank,heading\nq1,1,Cats\n",
    ],
)
def test_a_table_that_tells_no_passages_is_no_ranking(text):
    assert "no column `passage_id`" in refusal(up("x.csv", text))


NEAREST = {
    "passages without ids": ("query,method,rank,doc_title\nWho?,bm25,1,Page A\n", "no column `passage_id`"),
    "words between commas": (
        "what people asked,the system that answered it,good enough\nwhy is it,the bm25 one,3\n",
        "no column `query_id`",
    ),
    "words between semicolons": ("a question;an answer b;c\nx y z;b c;1\n", "no column `query_id`"),
}


@pytest.mark.parametrize("case", NEAREST)
def test_the_column_that_is_missing_is_named_and_no_fields_of_trec(case):
    text, message = NEAREST[case]
    said = refusal(up("x.csv", text))
    assert message in said
    assert "comes nearest to Table" in said


def test_where_passages_are_from_may_be_said_of_any_column():
    text = "qid,rank,body,origin\nq1,1,cats purr,a.md\n"
    made = read(up("x.csv", text), columns={"passage_text": "body", "source": "origin"})
    assert made.told.select("text", "source").rows() == [("cats purr", "a.md")]
    said = refusal(up("x.csv", text), columns={"quote of it": "body"})
    assert "source, passage_text, start_char, end_char, heading" in said


NAMED = {
    "qrels.csv": ("query_id,doc_id,score", "judgements"),
    "qrels/test.tsv": ("query_id,doc_id,score", "judgements"),
    "my_judgments.csv": ("qid,docno,sim", "judgements"),
    "test-00000.csv": ("query-id,corpus-id,score", "judgements"),  # as BEIR has them
    "run.csv": ("query-id,corpus-id,score", "rankings"),
    "bm25.tsv": ("query-id,corpus-id,score", "rankings"),
    "x.csv": ("query_id,doc_id,score", "rankings"),
}


@pytest.mark.parametrize(("name", "header", "table"), [(name, *case) for name, case in NAMED.items()])
@pytest.mark.parametrize("kind", ["text", "parquet", "jsonl"])
def test_whole_scores_are_grades_where_the_file_is_called_so(name, header, table, kind):
    columns = dict(zip(header.split(","), (["q1", "q1", "q2"], ["a", "b", "c"], [1, 0, 2]), strict=True))
    made = pl.DataFrame(columns)
    texts = {"text": made.write_csv(separator="\t" if name.endswith("tsv") else ",").encode(),
             "parquet": parquet(made), "jsonl": made.write_ndjson().encode()}  # fmt: skip
    found = read(up("offer.zip", zipped({name: texts[kind]})))
    assert found.taken[table] == 3


def test_scores_are_scores_where_they_are_no_whole_numbers_or_said_to_be():
    head = "query_id,doc_id,score\n"
    assert read(up("qrels.csv", f"{head}q,a,0.5\nq,b,0.25\n")).taken["rankings"] == 2
    said = read(up("qrels.csv", f"{head}q,a,2\nq,b,1\n"), columns={"score": "score"})
    assert said.taken["rankings"] == 2


def test_rankings_with_german_headers():
    made = read(
        up(
            "x.csv",
            "Frage-ID;System;Rang;Dokument;Score\nq1;bm25;1;d1;7,1\nq1;bm25;2;d2;6,0\nq2;bm25;1;d1;0,8\n",
        )
    )
    ranked = rows(made, "rankings").select("query_id", "passage_id", "rank")
    assert ranked.rows() == [("q1", "d1", 1), ("q1", "d2", 2), ("q2", "d1", 1)]


def test_texts_beside_ids_in_german():
    made = read(up("x.csv", "Frage-ID;Frage;chunk_id;Dokument;Rang\nq1;Was?;c1;d1;1\nq2;Wer?;c2;d1;1\n"))
    assert rows(made, "rankings").select("query_id", "passage_id").rows() == [("q1", "c1"), ("q2", "c2")]


@pytest.mark.parametrize(
    ("header", "cells", "kind"),
    [
        ("Query-ID;System;Rank;Document;Score", "bm25;1;d1;7,1", "rankings"),
        ("Query;Document;Relevance", "d1;2", "judgements"),
        ("Query;doc_id;Document;Rank", "d1;Title;1", "rankings"),
    ],
)
def test_a_column_document_holds_the_ids_that_no_other_column_does(header: str, cells: str, kind: str):
    made = read(up("x.csv", f"{header}\nq1;{cells}\nq2;{cells}\n"))
    assert rows(made, kind).select("query_id", "passage_id").rows() == [("q1", "d1"), ("q2", "d1")]
