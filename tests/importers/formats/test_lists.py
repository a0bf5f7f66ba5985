"""Lists of passages by query, of the tools that write them."""

import json

import polars as pl
import pytest

from tests.importers.helpers import lost, parquet, read, refusal, rows, up

FOUND = """\
Team Name,Case Name,Case ID,Query Text,Doc ID,Doc Position,Title,Rating
T,Case A,8,dog,d2,2,Dog two,
T,Case A,8,dog,d1,1,Dog one,3
T,Case A,8,cat,d3,1,Cat,0
T,Case B,9,cat,d4,1,Cat,1
T,Case B,9,emu,,,,
"""
SCORED = """\
Team Name,Case Name,Case ID,Query Text,Score,Date Last Scored,Count,Information Need,Notes,Options
T,Case A,8,dog,30,2015-07-14 16:08:55,,,nice,
T,Case A,8,cat,0,2015-07-14 16:08:55,,,x,
T,Case A,8,foo,,2015-07-14 16:08:55,,,y,
"""
RATINGS = 'query,docid,rating\nred shoes,77,3\nred shoes,78,0\n"shoes, red",77,\nblue,9,1\n'


def listed(made):
    """Label, query, rank, passage and score of everything that is ranked."""
    if "rankings" not in made.frames:
        return []
    labels = {run.run_id: run.label for run in made.runs}
    table = rows(made, "rankings").sort("run_id", "query_id", "rank").iter_rows(named=True)
    keys = ("query_id", "rank", "passage_id", "score")
    return sorted((labels[row["run_id"]], *(row[key] for key in keys)) for row in table)


def judged(made):
    return sorted(rows(made, "judgements").select("query_id", "passage_id", "raw", "grade").rows())


def measured(made):
    labels = {run.run_id: run.label for run in made.runs}
    table = rows(made, "aggregates").iter_rows(named=True)
    return {(labels[row["run_id"]], row["measure"], row["k"], row["value"], row["n"]) for row in table}


def unjudged(made):
    return sum(each.count for each in lost(made) if each.reason == "rows without a grade: not judged")


def test_what_quepid_found():
    made = read(up("found.csv", FOUND))
    assert listed(made) == [
        ("Case A", "cat", 1, "d3", None), ("Case A", "dog", 1, "d1", None), ("Case A", "dog", 2, "d2", None),
        ("Case B", "cat", 1, "d4", None),
    ]  # fmt: skip
    assert judged(made) == [("cat", "d3", 0, 1), ("cat", "d4", 1, 3), ("dog", "d1", 3, 5)]
    assert unjudged(made) == 1
    assert [each.count for each in lost(made) if each.reason == "queries without a document"] == [1]
    (report,) = made.reports
    assert report.left_out == {"Title": "a field of a document"}


def test_scores_of_quepid():
    made = read(up("scored.csv", SCORED))
    assert measured(made) == {("Case A", "Quepid score", 1, 15.0, 2)}
    assert sorted(rows(made, "signals").select("query_id", "value").rows()) == [("cat", 0.0), ("dog", 30.0)]


@pytest.mark.parametrize(
    "data", [RATINGS, RATINGS.replace("rating", "grade"), RATINGS.replace(",9,1", ",9,")]
)
def test_ratings_alone_are_judgements_and_blanks_are_counted(data):
    made = read(up("ratings.csv", data))
    grades = {row[:3] for row in judged(made)}
    assert grades == {("red shoes", "77", 3), ("red shoes", "78", 0)} | (
        {("blue", "9", 1)} if data.count(",\n") == 1 else set()
    )
    assert unjudged(made) == data.count(",\n")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (FOUND.replace("d1,1,", "d1,first,"), "found.csv:3, column `rank`: 'first' is not an integer"),
        (FOUND.replace("T,Case A,8,cat,d3,1,Cat,0", "T,Case A,8,,d3,1,Cat,0"), "The id is empty"),
        (FOUND.replace("Case A,8,cat", "Case A,,cat"), "found.csv:4, column `id`: The id is empty"),
        (FOUND.replace("Cat,0", "Cat,good"), "'good' is not an integer"),
        ("query,docid,rating\na,1,\n", "The grade is empty"),
    ],
)
def test_refused(content, said):
    assert said in refusal(up("found.csv", content))


REQUEST = {
    "requests": [
        {"id": "q1", "request": {"query": {"match": {"t": "a"}}}, "ratings": [
            {"_index": "i", "_id": "d1", "rating": 3}, {"_index": "i", "_id": "d2", "rating": 0}]},
        {"id": "q2", "request": {}, "ratings": [{"_index": "i", "_id": "7", "rating": 1}]},
    ],
    "metric": {"precision": {"k": 20}},
}  # fmt: skip
RESPONSE = {
    "metric_score": 0.4,
    "details": {
        "q1": {
            "metric_score": 0.5,
            "unrated_docs": [{"_index": "i", "_id": "d9"}],
            "hits": [
                {"hit": {"_index": "i", "_id": "d1", "_score": 7.5}, "rating": 3},
                {"hit": {"_index": "i", "_id": "d9", "_score": 7.0}, "rating": None},
                {"hit": {"_index": "i", "_id": "d2", "_score": 1.5}, "rating": 0},
            ],
            "metric_details": {"precision": {"relevant_docs_retrieved": 1, "docs_retrieved": 2}},
        },
        "q2": {"metric_score": 0.3, "unrated_docs": [], "hits": [], "metric_details": {}},
    },
    "failures": {"q3": {"error": "x"}},
}
RELEVANCE = {
    "name": "n", "type": "IMPORT_JUDGMENT",
    "judgmentRatings": [
        {"query": "red dress", "ratings": [
            {"docId": "B1", "rating": "3.000"}, {"docId": "B2", "rating": "0.000"}]}
    ],
}  # fmt: skip
EVALUATIONS = {"took": 1, "hits": {"total": {"value": 2}, "hits": [
    {"_index": "e", "_id": "1", "_source": {
        "id": "1", "searchConfigurationId": "base", "searchText": "red dress", "judgmentIds": ["j"],
        "documentIds": ["B1", "B9"],
        "metrics": [{"metric": "NDCG@10", "value": 0.75}, {"metric": "Coverage@10", "value": "0.5"}]}},
    {"_index": "e", "_id": "2", "_source": {
        "id": "2", "searchConfigurationId": "hybrid", "searchText": "red dress", "documentIds": ["B9"],
        "metrics": []}},
]}}  # fmt: skip
PAIRWISE = {"hits": {"hits": [{"_source": {
    "id": "x", "type": "PAIRWISE_COMPARISON", "results": [
        {"queryText": "tv", "metrics": [{"metric": "jaccard", "value": 0.5}], "snapshots": [
            {"searchConfigurationId": "a", "docIds": ["1", "2"]},
            {"searchConfigurationId": "b", "docIds": ["2"]}]}],
}}]}}  # fmt: skip


def test_ratings_of_a_ranking_evaluation():
    made = read(up("request.json", json.dumps(REQUEST)))
    assert judged(made) == [("q1", "d1", 3, 5), ("q1", "d2", 0, 1), ("q2", "7", 1, 3)]
    assert not made.runs


@pytest.mark.parametrize("wrapped", [False, True])
def test_hits_of_a_ranking_evaluation(wrapped):
    made = read(up("response.json", json.dumps({"rank_eval": RESPONSE} if wrapped else RESPONSE)))
    assert listed(made) == [
        ("response", "q1", 1, "d1", 7.5), ("response", "q1", 2, "d9", 7.0), ("response", "q1", 3, "d2", 1.5)
    ]  # fmt: skip
    assert judged(made) == [("q1", "d1", 3, 5), ("q1", "d2", 0, 1)]
    assert unjudged(made) == 1
    assert measured(made) == {("response", "metric_score", 3, 0.4, 2)}
    assert [each.count for each in lost(made) if each.reason == "queries that failed"] == [1]


def test_equal_ids_of_two_indexes_are_refused():
    other = {**REQUEST["requests"][0], "ratings": [{"_index": i, "_id": "d", "rating": 1} for i in "ab"]}
    assert "'d' stands in two indexes" in refusal(up("x.json", json.dumps({"requests": [other]})))


def test_judgements_of_search_relevance():
    made = read(up("judgements.json", json.dumps(RELEVANCE)))
    assert judged(made) == [("red dress", "B1", 3, 5), ("red dress", "B2", 0, 1)]
    assert rows(made, "queries")["text"].to_list() == ["red dress"]


def test_evaluations_of_search_relevance():
    made = read(up("evaluations.json", json.dumps(EVALUATIONS)))
    assert listed(made) == [
        ("base", "red dress", 1, "B1", None), ("base", "red dress", 2, "B9", None),
        ("hybrid", "red dress", 1, "B9", None),
    ]  # fmt: skip
    assert {each[:2] + each[3:] for each in measured(made)} == {
        ("base", "NDCG@10", 0.75, 1), ("base", "Coverage@10", 0.5, 1)
    }  # fmt: skip


def test_a_pairwise_comparison_is_two_runs():
    made = read(up("pairwise.json", json.dumps(PAIRWISE)))
    assert listed(made) == [("a", "tv", 1, "1", None), ("a", "tv", 2, "2", None), ("b", "tv", 1, "2", None)]


ROWS = [
    {"query_id": "q1", "query": "who?", "retrieved_ids": ["d1", "d2"], "expected_ids": ["d2"], "mrr": 0.5,
     "ndcg@2": 0.63, "latency_ms": 12.5},
    {"query_id": "q2", "query": "what?", "retrieved_ids": ["7"], "expected_ids": ["8", "9"], "mrr": 0.0,
     "ndcg@2": 0.0, "latency_ms": 10.0},
]  # fmt: skip
RANKED = [("rows", "q1", 1, "d1", None), ("rows", "q1", 2, "d2", None), ("rows", "q2", 1, "7", None)]


def as_cells(write):
    return [
        {key: write(cell) if isinstance(cell, list) else cell for key, cell in row.items()} for row in ROWS
    ]


def split(rows):
    return json.dumps({"columns": list(rows[0]), "data": [list(row.values()) for row in rows]})


LISTS = {
    "rows.json": json.dumps(ROWS),
    "rows.jsonl": "".join(json.dumps(row) + "\n" for row in ROWS),
    "rows.parquet": parquet(pl.DataFrame(ROWS)),
    "split/rows.json": split(ROWS),
    "json/rows.csv": pl.DataFrame(as_cells(json.dumps)).write_csv(),
    "python/rows.csv": pl.DataFrame(as_cells(str)).write_csv(),
    "tuples/rows.csv": pl.DataFrame(as_cells(lambda cell: str(tuple(cell)))).write_csv(),
    "numpy/rows.csv": pl.DataFrame(as_cells(lambda cell: str(cell).replace(",", ""))).write_csv(),
    "bars/rows.csv": pl.DataFrame(as_cells("|".join)).write_csv(),
    "semicolons/rows.csv": pl.DataFrame(as_cells("; ".join)).write_csv(),
    "commas/rows.tsv": pl.DataFrame(as_cells(", ".join)).write_csv(separator="\t"),
}


@pytest.mark.parametrize("name", LISTS)
def test_a_row_for_each_query_with_lists_of_ids(name):
    made = read(up(name.rsplit("/", 1)[-1], LISTS[name]))
    assert {each.format for each in made.detected} == {"query-lists"}
    assert listed(made) == RANKED
    assert [row[:3] for row in judged(made)] == [("q1", "d2", 1), ("q2", "8", 1), ("q2", "9", 1)]
    assert measured(made) == {("rows", "mrr", 2, 0.25, 2), ("rows", "nDCG", 2, 0.315, 2)}
    assert sorted(rows(made, "timings").select("query_id", "ms").rows()) == [("q1", 12.5), ("q2", 10.0)]
    assert dict(rows(made, "queries").select("query_id", "text").rows()) == {"q1": "who?", "q2": "what?"}
    (report,) = made.reports
    assert set(report.taken) == set(ROWS[0])


MLFLOW = [
    {"question": "who?", "outputs": ["a.md", "b.md"], "ground_truth": ["b.md"], "precision_at_3/score": 0.5,
     "ndcg_at_3/score": 0.6, "note": "x"},
    {"question": "what?", "outputs": ["c.md"], "ground_truth": ["d.md"], "precision_at_3/score": 0.0,
     "ndcg_at_3/score": None, "note": "y"},
]  # fmt: skip
ANSWERS = [{"inputs": "who?", "outputs": "she", "targets": "her", "answer_correctness/v1/score": 4,
            "latency": 1.5, "token_count": 7}]  # fmt: skip


@pytest.mark.parametrize("write", [split, json.dumps])
def test_an_evaluation_table_of_mlflow(write):
    made = read(up("eval_results_table.json", write(MLFLOW)))
    label = "eval_results_table"
    assert listed(made) == [
        (label, "what?", 1, "c.md", None), (label, "who?", 1, "a.md", None), (label, "who?", 2, "b.md", None)
    ]  # fmt: skip
    assert measured(made) == {(label, "Precision", 3, 0.25, 2), (label, "nDCG", 3, 0.6, 1)}
    assert [row[:3] for row in judged(made)] == [("what?", "d.md", 1), ("who?", "b.md", 1)]
    assert list(made.reports[0].left_out) == ["note"]


def test_answers_of_mlflow():
    made = read(up("eval_results_table.json", split(ANSWERS)))
    assert rows(made, "answers")["text"].to_list() == ["she"]
    assert rows(made, "gold_answers")["answer"].to_list() == ["her"]
    assert rows(made, "timings")["ms"].to_list() == [1500.0]
    assert ("eval_results_table", "answer_correctness, 1 to 5", 1, 4.0, 1) in measured(made)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"retrieved_ids": [["d1"]]}, "A list of ids holds a list"),
        ({"query_id": None, "query": None}, "The row names no query"),
        ({"query_id": "q2"}, "The query 'q2' stands twice"),
    ],
)
def test_rows_that_are_refused(change, said):
    found = refusal(up("rows.json", json.dumps([{**ROWS[0], **change}, ROWS[1]])))
    assert said in found


def test_counts_are_no_lists():
    counts = "query,retrieved,relevant,run,ndcg@10\nq1,5,3,a,0.5\nq2,6,3,a,0.6\n"
    assert {each.format for each in read(up("x.csv", counts)).detected} == {"table"}


CHECKED = {
    "results": [
        {"query_id": "q1", "query": "who?", "gt_answer": "her", "response": "she",
         "retrieved_context": [{"doc_id": "d1", "text": "a b"}, {"doc_id": "d2", "text": "c"}],
         "response_claims": [["s", "p", "o"]], "answer2response": ["Entailment"],
         "metrics": {"precision": 0.5, "claim_recall": 1.0}},
        {"query_id": "q2", "query": "what?", "gt_answer": "it", "response": "that",
         "retrieved_context": [], "metrics": {"precision": 1.0, "claim_recall": 0.0}},
    ],
    "metrics": {"overall_metrics": {"precision": 75.0}},
}  # fmt: skip
TURNS = [
    {"conversation_id": "c", "task_id": "c::1", "Collection": "clapnq", "turn": 1,
     "input": [{"speaker": "user", "text": "first?"}, {"speaker": "agent", "text": "a"},
               {"speaker": "user", "text": "and now?"}],
     "contexts": [{"document_id": "d2", "text": "x", "score": 27.5}, {"document_id": "d1", "score": 2.0}],
     "predictions": [{"text": "now"}], "targets": [{"text": "then", "speaker": "agent"}]},
    {"task_id": "c::2", "contexts": [{"document_id": "d1", "score": 1.5}], "input": [],
     "Collection": "clapnq"},
]  # fmt: skip
RECORDS = [
    {"app_name": "rag", "app_version": "v1", "record_id": "r1", "input": "who?", "output": '"she"',
     "latency": 1.5, "total_cost": 0.01, "Groundedness": 0.75, "Groundedness_calls": "[{}]",
     "Groundedness feedback cost in USD": 0.1},
    {"app_name": "rag", "app_version": "v2", "record_id": "r2", "input": "who?", "output": "her",
     "latency": 0.5, "total_cost": 0.01, "Groundedness": 1.0, "Groundedness_calls": "[{}]",
     "Groundedness feedback cost in USD": 0.1},
]  # fmt: skip


def test_results_of_ragchecker():
    made = read(up("checked.json", json.dumps(CHECKED)))
    assert listed(made) == [("checked", "q1", 1, "d1", None), ("checked", "q1", 2, "d2", None)]
    assert measured(made) == {
        ("checked", "precision", 2, 0.75, 2), ("checked", "claim_recall", 2, 0.5, 2)
    }  # fmt: skip
    assert rows(made, "answers").sort("query_id")["text"].to_list() == ["she", "that"]
    assert rows(made, "gold_answers").sort("query_id")["answer"].to_list() == ["her", "it"]
    assert dict(rows(made, "passages").select("passage_id", "text").rows()) == {"d1": "a b", "d2": "c"}


def test_tasks_of_mt_rag():
    made = read(up("tasks.jsonl", "".join(json.dumps(turn) + "\n" for turn in TURNS)))
    assert listed(made) == [
        ("tasks", "c::1", 1, "d2", 27.5), ("tasks", "c::1", 2, "d1", 2.0), ("tasks", "c::2", 1, "d1", 1.5)
    ]  # fmt: skip
    assert rows(made, "queries").select("query_id", "text").rows() == [("c::1", "and now?")]
    assert rows(made, "answers")["text"].to_list() == ["now"]
    assert rows(made, "gold_answers")["answer"].to_list() == ["then"]


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_records_of_trulens(form):
    table = pl.DataFrame(RECORDS)
    content = {"csv": table.write_csv(), "json": json.dumps(RECORDS), "parquet": parquet(table)}[form]
    made = read(up(f"records.{form}", content))
    assert {each.format for each in made.detected} == {"trulens"}
    assert measured(made) == {
        ("rag v1", "Groundedness", 1, 0.75, 1), ("rag v2", "Groundedness", 1, 1.0, 1)
    }  # fmt: skip
    assert sorted(rows(made, "answers")["text"]) == ["her", "she"]
    assert sorted(rows(made, "timings")["ms"]) == [500.0, 1500.0]
    (report,) = made.reports
    assert {"total_cost", "Groundedness_calls", "Groundedness feedback cost in USD"} == set(report.left_out)


OFFERS = {
    "rank-eval-request": ("rank-eval", json.dumps(REQUEST).encode()),
    "rank-eval-response": (
        "rank-eval",
        json.dumps({**RESPONSE, "details": {"q1": RESPONSE["details"]["q1"]}}).encode(),
    ),
    "search-relevance": ("search-relevance", json.dumps(EVALUATIONS).encode()),
    "search-relevance-judgements": ("search-relevance", json.dumps(RELEVANCE).encode()),
    "query-lists-json": ("query-lists", LISTS["rows.json"].encode()),
    "query-lists-parquet": ("query-lists", LISTS["rows.parquet"]),
    "query-lists-csv": ("query-lists", LISTS["json/rows.csv"].encode()),
    "mlflow": ("query-lists", json.dumps(MLFLOW).encode()),
    "ragchecker": ("ragchecker", json.dumps(CHECKED).encode()),
    "mt-rag": ("mt-rag", "".join(json.dumps(turn) + "\n" for turn in TURNS).encode()),
    "trulens": ("trulens", json.dumps(RECORDS).encode()),
    "quepid": ("quepid", FOUND.encode()),
    "quepid-scores": ("quepid", SCORED.encode()),
}
