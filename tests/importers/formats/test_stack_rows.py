import pytest

from tests.importers.helpers import lost, read, refusal, rows, up

BIG_ANN = """algorithm,parameters,dataset,count,qps,build,indexsize,mean_latency,recall/ap
cufe,"IVF nprobe 4",yfcc-10M,10,5540.7,-1,2921264.0,0,0.72
cufe,"IVF nprobe 8",yfcc-10M,10,4991.0,-1,2921264.0,0,
parlay,"L 10",other,10,37000.1,-1,100.0,2.5,0.90
parlay,"L 10",other,10,36000.1,-1,100.0,0,0.89
"""
IR = """\
epoch,steps,cosine-Accuracy@1,cosine-Precision@5,cosine-Recall@5,cosine-MRR@10,cosine-NDCG@10,dot-MAP@100
0.5,100,0.4,0.2,0.6,0.5,0.55,0.45
1.0,-1,0.5,0.25,0.7,0.6,0.65,0.5
"""
IR_FILE = "Information-Retrieval_evaluation_NanoFiQA_results.csv"


def figures(*offered, **options):
    made = read(*offered, **options)
    names = {run.run_id: (run.collection_id, run.label) for run in made.runs}
    table = rows(made, "aggregates").iter_rows(named=True)
    return made, {(*names[row["run_id"]], row["measure"], row["k"], row["value"]) for row in table}


def test_rows_of_big_ann():
    made, found = figures(up("big.csv", BIG_ANN))
    assert found == {
        ("yfcc-10M", "cufe IVF nprobe 4", "ANN-Recall", 10, 0.72),
        ("other", "parlay L 10", "ANN-Recall", 10, 0.9),
        ("other", "parlay L 10 (2)", "ANN-Recall", 10, 0.89),
    }
    assert {each.format for each in made.detected} == {"ann-rows"}
    assert [(each.count, each.reason, each.first) for each in lost(made)] == [
        (1, "empty cells: missing, not 0", "big.csv:3")
    ]
    (report,) = made.reports
    assert set(report.taken) == {"algorithm", "parameters", "dataset", "count", "recall/ap"}
    assert set(report.left_out) == {"qps", "build", "indexsize", "mean_latency"}
    assert len({run.stack.stack_id for run in made.runs}) == 3


def test_quantiles_of_ann_benchmarks_are_milliseconds():
    table = "algorithm,parameters,dataset,count,k-nn,p50,p95,p99,p999\nx,M 4,glove,100,0.9,1.5,2,0,9\n"
    _, found = figures(up("x.csv", table))
    assert {each[2:] for each in found} == {
        ("ANN-Recall", 100, 0.9), ("latency_p50", None, 1.5), ("latency_p95", None, 2.0)
    }  # fmt: skip


def test_a_latency_is_taken_where_its_unit_is_said_and_0_is_not_measured():
    made, found = figures(up("big.csv", BIG_ANN), columns={"latency_mean_ms": "mean_latency"})
    assert {each[1:] for each in found if each[2] == "latency_mean"} == {
        ("parlay L 10", "latency_mean", None, 2.5)
    }
    assert sum(each.count for each in lost(made) if "not measured" in each.reason) == 3


def test_rows_of_sentence_transformers():
    made, found = figures(up(IR_FILE, IR))
    assert {each.format for each in made.detected} == {"sentence-transformers"}
    assert {each[1:] for each in found} == {
        ("epoch 0.5, step 100 · cosine", "Success", 1, 0.4), ("epoch 0.5, step 100 · cosine", "P", 5, 0.2),
        ("epoch 0.5, step 100 · cosine", "R", 5, 0.6), ("epoch 0.5, step 100 · cosine", "RR", 10, 0.5),
        ("epoch 0.5, step 100 · cosine", "nDCG", 10, 0.55), ("epoch 0.5, step 100 · dot", "AP", 100, 0.45),
        ("epoch 1.0 · cosine", "Success", 1, 0.5), ("epoch 1.0 · cosine", "P", 5, 0.25),
        ("epoch 1.0 · cosine", "R", 5, 0.7), ("epoch 1.0 · cosine", "RR", 10, 0.6),
        ("epoch 1.0 · cosine", "nDCG", 10, 0.65), ("epoch 1.0 · dot", "AP", 100, 0.5),
    }  # fmt: skip
    assert {each[0] for each in found} == {"NanoFiQA"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (BIG_ANN.replace("0.72", "good"), "big.csv:2, column `recall/ap`: 'good' is not a finite number"),
        (BIG_ANN.splitlines()[0] + "\na,b,c,10,1,1,1,0,\n", "No row holds a measure"),
    ],
)
def test_refused(content, said):
    assert said in refusal(up("big.csv", content))


def test_columns_are_left_out_as_wished():
    made, found = figures(up(IR_FILE, IR), without=frozenset({"dot-MAP@100"}))
    assert "AP" not in {each[2] for each in found}
    assert made.reports[0].left_out == {"dot-MAP@100": "as you wish"}


OFFERS = {
    "ann-rows": ("ann-rows", BIG_ANN.encode()),
    "sentence-transformers": ("sentence-transformers", IR.encode()),
}
