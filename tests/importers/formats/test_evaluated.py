"""Output of trec_eval and ir_measures; that of ir_measures 0.4.3 is as the tool wrote it."""

import pytest

from tests.importers.helpers import lost, read, refusal, rows, up

TREC_EVAL = """runid                 \tall\tbm25
num_q                 \tall\t2
num_ret               \tall\t20
map                   \tall\t0.2500
ndcg_cut_10           \tall\t0.4700
recip_rank            \tall\t0.6200
P_10                  \tall\t0.3300
iprec_at_recall_0.10  \tall\t0.5000
"""
BY_QUERY = "ndcg_cut_10           \tq1\t0.4000\nndcg_cut_10           \tq2\t0.5400\n"
OF_IR_MEASURES = """nDCG@10\t0.8100
R@100\t1.0000
AP\t0.7917
RR\t0.7500
P@5\t0.3000
Judged@10\t0.5833
AP(rel=2)\t0.1667
nDCG(gains={},judged_only=True)@10\t0.9299
Success@1\t0.5000
"""
IR_BY_QUERY = """q1\tAP\t0.5833
q1\tRR\t0.5000
q1\tnDCG@10\t0.6199
q2\tAP\t1.0000
q2\tRR\t1.0000
q2\tnDCG@10\t1.0000
all\tnDCG@10\t0.8100
all\tAP\t0.7917
all\tRR\t0.7500
"""
IR_LINES = """{"query_id": "q1", "measure": "AP", "value": 0.5}
{"query_id": "q2", "measure": "AP", "value": 1.0}
{"query_id": "all", "measure": "AP", "value": 0.75}
"""
CASES = {
    "trec_eval": (
        TREC_EVAL,
        "bm25",
        [("AP", None, 0.25, 2), ("nDCG", 10, 0.47, 2), ("RR", None, 0.62, 2), ("P", 10, 0.33, 2),
         ("iprec_at_recall_0.10", None, 0.5, 2)],
        [],
    ),
    "trec_eval -q": (
        f"{BY_QUERY}ndcg_cut_10           \tall\t0.4700\n",
        "x",
        [("nDCG", 10, 0.47, 2)],
        [("q1", "nDCG", 10, 0.4), ("q2", "nDCG", 10, 0.54)],
    ),
    "trec_eval -q, without all": (
        BY_QUERY.replace("0.54", "0.60"),
        "x",
        [("nDCG", 10, 0.5, 2)],
        [("q1", "nDCG", 10, 0.4), ("q2", "nDCG", 10, 0.6)],
    ),
    "ir_measures": (
        OF_IR_MEASURES,
        "x",
        [("nDCG", 10, 0.81, None), ("R", 100, 1.0, None), ("AP", None, 0.7917, None),
         ("RR", None, 0.75, None), ("P", 5, 0.3, None),
         ("Judged", 10, 0.5833, None), ("AP(rel=2)", None, 0.1667, None),
         ("nDCG(gains={},judged_only=True)", 10, 0.9299, None), ("Success", 1, 0.5, None)],
        [],
    ),
    "ir_measures -q": (
        IR_BY_QUERY,
        "x",
        [("nDCG", 10, 0.81, 2), ("AP", None, 0.7917, 2), ("RR", None, 0.75, 2)],
        [("q1", "AP", None, 0.5833), ("q1", "RR", None, 0.5), ("q1", "nDCG", 10, 0.6199),
         ("q2", "AP", None, 1.0), ("q2", "RR", None, 1.0), ("q2", "nDCG", 10, 1.0)],
    ),
    "ir_measures -q -o jsonl": (
        IR_LINES,
        "x",
        [("AP", None, 0.75, 2)],
        [("q1", "AP", None, 0.5), ("q2", "AP", None, 1.0)],
    ),
    "between blanks": (
        "P_10 all 0.5\nmap all 0.25\n", "x", [("P", 10, 0.5, None), ("AP", None, 0.25, None)], [],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "label", "figures", "signals"), CASES.values(), ids=CASES.keys())
def test_values_over_all_queries_and_of_each(text, label, figures, signals):
    made = read(up("x.txt", text))
    assert made.detected[0].format == "eval-output"
    assert [run.label for run in made.runs] == [label]
    assert rows(made, "aggregates").select("measure", "k", "value", "n").rows() == figures
    found = rows(made, "signals").select("query_id", "signal", "k", "value").rows() if signals else []
    assert found == signals


def test_counts_are_left_out_and_counted():
    made = read(up("x.txt", TREC_EVAL))
    (left,) = lost(made)
    assert (left.count, left.first) == (1, "x.txt:3")
    assert made.reports[0].taken == ("measure", "query", "value")


def test_lines_that_stand_twice_alike_count_once_and_counts_of_a_query_are_none():
    made = read(up("x.txt", f"{TREC_EVAL}{TREC_EVAL}num_q\tq1\t1\n"))
    assert rows(made, "aggregates").select("measure", "k", "value", "n").rows() == CASES["trec_eval"][2]
    assert {each.reason[:6]: (each.count, each.first) for each in lost(made)} == {
        "counts": (2, "x.txt:3"),
        "lines ": (8, "x.txt:9"),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            TREC_EVAL + "runid\tall\tb\n",
            "x.txt:9: 'runid' of 'all' stands twice. Offer the output of each run",
        ),
        (TREC_EVAL + "AP\tall\t0.3\n", "x.txt:9: 'AP' of 'all' stands twice."),
        (TREC_EVAL + "num_q\t\t2\n", "x.txt:9: The line is not a measure, a query and a value."),
        (IR_LINES.replace('"q2"', "null"), "x.txt:2: The line is not a measure, a query and a value."),
        (TREC_EVAL.replace("0.4700", "high"), "x.txt:5: 'high' is not a finite number."),
        (TREC_EVAL.replace("0.4700", "nan"), "x.txt:5: 'nan' is not a finite number."),
        (TREC_EVAL + "a line of words\n", "x.txt:9: The line is not a measure, a query and a value."),
        ("runid\tall\tbm25\n", "x.txt: The file holds no measure."),
    ],
)
def test_refused(text, message):
    assert refusal(up("x.txt", text), format="eval-output").startswith(message)


def test_other_measures_alone_are_of_no_format_known():
    assert "no format known" in refusal(up("x.txt", "Zmap\tq1\t0.5\nZP_5\tq1\t0.5\n"))


def test_names_of_pyterrier_in_a_table():
    head = "name,map,recip_rank,ndcg_cut_10,P_10,mrt"
    made = read(up("pt.csv", f"{head}\nBM25,0.2,0.6,0.47,0.3,12.5\nPL2,0.21,0.61,0.48,0.31,13.5\n"))
    (first, _) = made.runs
    table = rows(made, "aggregates")
    found = table.filter(table["run_id"] == first.run_id).select("measure", "k", "value").rows()
    assert found == [("MAP", None, 0.2), ("RR", None, 0.6), ("nDCG", 10, 0.47), ("P", 10, 0.3),
                     ("latency_mean", None, 12.5)]  # fmt: skip


OFFERS = {
    "trec_eval": ("eval-output", TREC_EVAL.encode()),
    "trec_eval by query": ("eval-output", BY_QUERY.encode()),
    "ir_measures": ("eval-output", IR_BY_QUERY.encode()),
}
