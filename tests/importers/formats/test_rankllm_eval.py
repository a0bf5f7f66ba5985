"""rank_llm's ``trec_eval_aggregated_results_*.jsonl``, in both forms of `result`."""

from __future__ import annotations

import json

import pytest

from tests.importers.helpers import read, refusal, rows, up, zipped

FIRST = "rerank_results/BM25/gpt-4o_4096_100_rank_GPT_dl19_2024-02-01T10:00:00_window_20.txt"
SECOND = "rerank_results/BM25/gpt-4o_4096_100_rank_GPT_dl20_2024-02-01T11:00:00_window_20.txt"
LINES = [
    {"file": FIRST,
     "result": ["ndcg_cut_10           \tall\t0.7493", "map_cut_100 \tall\t0.3", "num_q\tall\t43"]},
    {"file": SECOND, "result": ["ndcg_cut_10           \tall\t0.7101", "recall_100\tall\t0.55"]},
]  # fmt: skip
OBJECTS = [
    {"file": FIRST,
     "result": [{"metric": "ndcg_cut_10", "value": 0.7493}, {"metric": "map_cut_100", "value": 0.3},
                {"metric": "num_q", "value": 43}]},
    {"file": SECOND,
     "result": [{"metric": "ndcg_cut_10", "value": 0.7101}, {"metric": "recall_100", "value": 0.55}]},
]  # fmt: skip


def jsonl(entries: list[dict[str, object]]) -> str:
    return "".join(json.dumps(entry) + "\n" for entry in entries)


NAME = "trec_eval_aggregated_results_gpt-4o.jsonl"


@pytest.mark.parametrize("entries", [LINES, OBJECTS], ids=["lines", "objects"])
@pytest.mark.parametrize("write", [jsonl, json.dumps], ids=["jsonl", "list"])
def test_both_forms_bring_the_same(entries, write):
    made = read(up(NAME, write(entries)))
    assert made.detected[0].format == "rank-llm-results"
    names = {run.run_id: (run.collection_id, run.label) for run in made.runs}
    found = {
        (*names[row["run_id"]][:1], row["measure"], row["k"], row["value"], row["n"])
        for row in rows(made, "aggregates").iter_rows(named=True)
    }
    assert found == {
        ("dl19", "nDCG", 10, 0.7493, 43), ("dl19", "AP", 100, 0.3, 43), ("dl20", "nDCG", 10, 0.7101, None),
        ("dl20", "R", 100, 0.55, None),
    }  # fmt: skip
    assert [label for _, label in names.values()] == [
        f"BM25 + {name.rsplit('/', 1)[1].removesuffix('.txt')}" for name in (FIRST, SECOND)
    ]
    assert [{**run.stack.spec, "name": ""} for run in made.runs] == [
        {"name": "", "mode": "sparse", "sparse": "bm25", "reranker": "gpt-4o", "candidates": 100}
    ] * 2
    assert not made.left_out


def test_a_folder_of_four_files():
    files = {
        f"results/trec_eval_aggregated_results_m{number}.jsonl": jsonl(entries).replace(
            "gpt-4o", f"m{number}"
        )
        for number, entries in enumerate([LINES, OBJECTS, LINES, OBJECTS])
    }
    made = read(up("x.zip", zipped(files)))
    assert len(made.runs) == sum(text.count('"file"') for text in files.values()) == 8
    assert made.taken["aggregates"] == 8 * 2
    assert {each.collection_id for each in made.collections} == {"dl19", "dl20"}


def test_what_is_no_mean_is_counted_and_the_last_line_counts():
    entries = [
        {"file": "a.txt", "result": ["ndcg_cut_10\tall\t0.1"]},
        {"file": "a.txt",
         "result": ["runid\tall\tbm25", "num_ret\tall\t900", "P_5\t301\t0.4", "P_5\tall\t0.6",
                    "Rprec\tall\t0.2", "recip_rank\tall\t0.7"]},
        {"file": "b.txt", "result": ["P_5\t301\t0.4"]},
    ]  # fmt: skip
    made = read(up("x.jsonl", jsonl(entries)), collection_id="c")
    assert [(run.label, run.collection_id) for run in made.runs] == [("a", "c")]
    assert set(rows(made, "aggregates").select("measure", "k", "value").rows()) == {
        ("P", 5, 0.6), ("Rprec", None, 0.2), ("RR", None, 0.7)
    }  # fmt: skip
    assert {each.reason: each.count for each in made.left_out} == {
        "earlier results of a file of rankings that has later ones": 1,
        "files of rankings without a mean over all queries": 1,
        "results that are not a measure over all queries": 4,
    }


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (["ndcg_cut_10 0.5", "a b c"], "'ndcg_cut_10 0.5' is not a measure, a query and a value"),
        (["ndcg_cut_10 all high"], "'value' is text, not a number"),
        (["ndcg_cut_10 all inf"], "infinite"),
        ([{"metric": 3, "value": 1}], "'metric' is an integer"),
        (["ndcg_cut_10 q1 0.5"], "No file of rankings has a result"),
        ([{"metric": "ndcg", "value": True}], "'value' is true or false"),
    ],
)
def test_refused(result, message):
    assert message in refusal(up("x.jsonl", jsonl([{"file": "a", "result": result}])))


OFFERS = {
    "rank-llm-results": ("rank-llm-results", jsonl(LINES).encode()),
    "rank-llm-metrics": ("rank-llm-results", json.dumps(OBJECTS).encode()),
}


@pytest.mark.parametrize(
    ("folder", "begins", "spec"),
    [("rerank_results/SPLADE_P_P/", "SPLADE_P_P + gpt", {"retriever": "SPLADE_P_P"}), ("", "gpt", {}),
     ("rerank_results/", "gpt", {})],
)  # fmt: skip
def test_two_first_stages_of_one_reranker_are_two_stacks(folder, begins, spec):
    name = FIRST.rsplit("/", 1)[1]
    lines = [{"file": f"{folder}{name}", "result": LINES[0]["result"]}, LINES[0]]
    first, second = read(up(NAME, jsonl(lines))).runs
    assert first.label.startswith(begins)
    assert first.stack.stack_id != second.stack.stack_id
    assert {key: first.stack.spec[key] for key in spec} == spec
    assert "sparse" not in first.stack.spec
