import csv
import io
import json
from collections.abc import Mapping

import polars as pl
import pytest

from core.importers import ReadLimits, preview
from core.store import Store
from tests.importers.helpers import SHARED, graded, needs, parquet, read, refusal, rows, up, zipped

PROJECTS = SHARED / "peer_outputs" / "autorag"
REAL = PROJECTS / "result_project"

QA = pl.DataFrame(
    {
        "qid": ["q1", "q2", "q3"],
        "query": ["one", "two", "three"],
        "retrieval_gt": [[["a"]], [["b", "c"], ["d"]], []],
        "generation_gt": [["x"], ["y"], ["z"]],
    },
    schema_overrides={"retrieval_gt": pl.List(pl.List(pl.String))},
)
CORPUS = pl.DataFrame(
    {"doc_id": list("abcd"), "contents": [f"text {name}" for name in "abcd"], "metadata": [{"n": 1}] * 4}
)
LISTS: dict[str, list[list[str]]] = {
    "bm25": [["a", "a", "b"], ["b"], []],
    "dense": [["c", "a"], ["d", "b"], ["a", "b"]],
    "hybrid": [["a", "c", "b"], ["b", "d"], ["a", "b"]],
    "rerank": [["c", "a"], ["d"], ["b"]],
}


def returned(name: str) -> bytes:
    lists = LISTS[name]
    scores = [[1.0 - place / 10 for place in range(len(each))] for each in lists]
    return parquet(
        pl.DataFrame(
            {"retrieved_ids": lists, "retrieve_scores": scores, "retrieval_f1": [0.5] * 3},
            schema_overrides={"retrieved_ids": pl.List(pl.String), "retrieve_scores": pl.List(pl.Float64)},
        )
    )


def summary(
    *lines: tuple[str, str, Mapping[str, object], str, str, str], measure: str = "retrieval_f1"
) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["filename", "module_name", "module_params", "execution_time", measure, "is_best"])
    writer.writerows([file, name, str(dict(params)), *rest] for file, name, params, *rest in lines)
    return text.getvalue()


def project(**changes: str | bytes | None) -> dict[str, str | bytes]:
    """A project of one trial, with files replaced or left out; ``/`` is written ``__``."""
    generated = pl.DataFrame(
        {"generated_texts": ["A", None, "C"], "rouge": [0.25, 0.5, float("nan")], "bleu": [1.0, 2.0, 3.0]}
    )
    files: dict[str, str | bytes | None] = {
        "data/qa.parquet": parquet(QA),
        "data/corpus.parquet": parquet(CORPUS),
        "trial.json": "[]",
        "0/config.yaml": "vectordb:\n- name: small\n  embedding_model: voyage\nnode_lines: []\n",
        "0/summary.csv": "node_line_name,node_type\n",
        "0/line/query_expansion/summary.csv": summary(("0.parquet", "HyDE", {}, "0.5", "0.1", "True")),
        "0/line/query_expansion/0.parquet": parquet(pl.DataFrame({"queries": [["x"]] * 3})),
        "0/line/lexical_retrieval/summary.csv": summary(
            ("0.parquet", "BM25", {"top_k": 3}, "0.004", "0.25", "True")
        ),
        "0/line/lexical_retrieval/0.parquet": returned("bm25"),
        "0/line/semantic_retrieval/summary.csv": summary(
            ("0.parquet", "VectorDB", {"top_k": 3, "vectordb": "small"}, "0.25", "", "True"),
            ("1.parquet", "VectorDB", {"top_k": 3, "vectordb": "lost"}, "0.25", "nan", "False"),
        ),
        "0/line/semantic_retrieval/0.parquet": returned("dense"),
        "0/line/semantic_retrieval/1.parquet": returned("dense"),
        "0/line/hybrid_retrieval/summary.csv": summary(
            ("0.parquet", "HybridRRF", {"top_k": 3, "weight": 60}, "0.001", "0.5", "True")
        ),
        "0/line/hybrid_retrieval/0.parquet": returned("hybrid"),
        "0/line/passage_reranker/summary.csv": summary(
            ("0.parquet", "CohereReranker", {"top_k": 2, "model": "rerank-v3"}, "2", "0.75", "True"),
            measure="passage_reranker_retrieval_f1",
        ),
        "0/line/passage_reranker/0.parquet": returned("rerank"),
        "0/line/generator/summary.csv": "filename,module_name,module_params,execution_time,"
        "average_output_token,rouge,is_best\n0.parquet,OpenAILLM,"
        "{'llm': 'gpt-4o-mini'},1.5,120.5,0.375,True\n",
        "0/line/generator/0.parquet": parquet(generated),
    }
    files |= {name.replace("__", "/"): content for name, content in changes.items()}
    return {name: content for name, content in files.items() if content is not None}


def offer(**changes: str | bytes | None):
    return up("rag.zip", zipped(project(**changes)))


def test_a_project_becomes_runs_judgements_and_answers():
    made = read(offer())
    assert made.taken == {
        "collections": 1, "golden sets": 1, "runs": 6, "aggregates": 31, "answers": 2, "judgements": 4,
        "answer_scores": 3, "gold_answers": 3,
        "passages": 4, "queries": 3, "rankings": 44, "signals": 5, "usage": 1,
    }  # fmt: skip
    assert [run.label for run in made.runs] == [
        "lexical_retrieval · BM25", "semantic_retrieval · VectorDB · 0", "semantic_retrieval · VectorDB · 1",
        "hybrid_retrieval · HybridRRF", "passage_reranker · CohereReranker", "generator · OpenAILLM",
    ]  # fmt: skip
    specs = [{key: value for key, value in run.stack.spec.items() if key != "name"} for run in made.runs]
    hybrid = {
        "rewrite": "HyDE", "mode": "hybrid", "sparse": "bm25", "embedder": "voyage",
        "fusion": {"method": "rrf", "constant": 60, "depth": 3},
    }  # fmt: skip
    reranked = {**hybrid, "reranker": "rerank-v3", "candidates": 3}
    assert specs == [
        {"rewrite": "HyDE", "mode": "sparse", "sparse": "bm25"},
        {"rewrite": "HyDE", "mode": "dense", "embedder": "voyage"},
        {"rewrite": "HyDE", "mode": "dense", "embedder": "vectordb lost"},
        hybrid, reranked, {**reranked, "generator": "gpt-4o-mini"},
    ]  # fmt: skip
    assert [run.pool for run in made.runs] == [None] * 4 + ["hybrid_retrieval@3"] * 2
    assert made.runs[4].manifest["params"] == {"top_k": 2, "model": "rerank-v3"}
    assert made.runs[4].manifest["config"]["vectordb"][0]["embedding_model"] == "voyage"


def test_lists_keep_their_order_and_a_passage_once():
    made = read(offer())
    ranked = rows(made, "rankings").filter(run_id=made.runs[0].run_id)
    assert ranked.select("query_id", "rank", "passage_id", "score").rows() == [
        ("q1", 1, "a", 1.0), ("q1", 2, "b", 0.8), ("q2", 1, "b", 1.0)
    ]  # fmt: skip
    pool = rows(made, "rankings").filter(run_id=made.runs[4].run_id, stage="pool")
    assert pool.select("query_id", "passage_id").rows() == [
        (query, passage) for query, each in zip(QA["qid"], LISTS["hybrid"], strict=True) for passage in each
    ]
    judged = rows(made, "judgements").select("query_id", "passage_id", "grade", "raw")
    assert judged.rows() == [("q1", "a", 5, 1), ("q2", "b", 5, 1), ("q2", "c", 5, 1), ("q2", "d", 5, 1)]
    assert made.golden_sets[0].mapping == "binary: 0→1, 1→5"
    left = {each.reason: each.count for each in made.left_out}
    assert left["passages that a list repeats: the first place counts (lexical_retrieval)"] == 1
    assert left["questions with an empty list (lexical_retrieval)"] == 1
    assert left["questions without a relevant passage"] == 1
    assert left["empty cells of a summary: missing, not 0"] == 1
    assert any("1 alternatives of the same evidence" in note for note in made.notes)


def test_times_are_milliseconds_and_answers_have_grades():
    made = read(offer())
    figures = rows(made, "aggregates")
    times = figures.filter(run_id=made.runs[4].run_id, measure="latency_mean")
    assert dict(times.select("stage", "value").iter_rows()) == {
        "rewrite": 500.0, "sparse": 4.0, "retrieve": 250.0, "fuse": 1.0, "rerank": 2000.0,
        "total": 2755.0,
    }  # fmt: skip
    after = figures.filter(run_id=made.runs[5].run_id, measure="latency_mean")
    assert dict(after.select("stage", "value").iter_rows())["total"] == 2755.0
    assert any("converted from seconds to milliseconds" in note for note in made.notes)
    quality = figures.filter(pl.col("measure") == "retrieval_f1").select("run_id", "k", "value", "n")
    assert quality.rows() == [
        (made.runs[0].run_id, 3, 0.25, 3), (made.runs[3].run_id, 3, 0.5, 3), (made.runs[4].run_id, 2, 0.75, 3)
    ]  # fmt: skip
    answers = graded(made).select("query_id", "k", "text", "grade", "scale", "judge")
    assert answers.rows() == [("q1", 2, "A", 0.25, "0-1", "rouge"), ("q3", 2, "C", None, None, None)]
    assert rows(made, "answers")["reader"].unique().to_list() == ["gpt-4o-mini"]
    assert rows(made, "gold_answers").rows() == [("rag", "q1", "x"), ("rag", "q2", "y"), ("rag", "q3", "z")]
    other = read(offer(), columns={"grade": "bleu"})
    assert graded(other).select("grade", "scale").rows() == [(1.0, None), (3.0, None)]
    used = rows(made, "usage").select("query_id", "item", "unit", "amount").rows()
    assert used == [(None, "gpt-4o-mini", "output_tokens", 120.5)]


@pytest.mark.slow
def test_it_goes_into_a_store_and_again_is_the_same(tmp_path):
    folder = tmp_path / "rag"
    for name, content in project().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    made = read(folder)
    store = Store.open(tmp_path / "store")
    with store.write("import") as writer:
        writer.add(made.batch)
    assert store.read().answers([run.run_id for run in made.runs]).height == 2
    assert [run.run_id for run in read(offer(), collection_id="rag").runs] == [
        run.run_id for run in made.runs
    ]


def test_data_without_results_is_a_collection():
    made = read(up("qa.parquet", parquet(QA)), up("corpus.parquet", parquet(CORPUS)), collection_id="c")
    assert made.taken == {
        "collections": 1, "golden sets": 1, "gold_answers": 3, "judgements": 4, "passages": 4, "queries": 3
    }  # fmt: skip


def test_lists_that_unfold_to_far_more_than_the_file_are_refused():
    bomb = parquet(QA[:1].with_columns(retrieval_gt=pl.lit([["a"] * 40_000])))
    found = refusal(up("qa.parquet", bomb), collection_id="c", limits=ReadLimits(grace_bytes=1000, ratio=100))
    assert "claims 40,001 values of lists" in found


def test_a_copy_stands_in_for_results_and_questions_that_are_not_there():
    copy = QA.with_columns(
        retrieved_ids_lexical=pl.Series(LISTS["bm25"], dtype=pl.List(pl.String)),
        retrieved_ids=pl.Series([["z"]] * 3),
    )
    files = {
        "0/line/lexical_retrieval/summary.csv": project()["0/line/lexical_retrieval/summary.csv"],
        "0/line/lexical_retrieval/best_0.parquet": parquet(copy.drop("retrieved_ids")),
    }
    made = read(up("trial.zip", zipped(files)))
    assert made.taken["rankings"] == 3
    assert rows(made, "rankings")["score"].null_count() == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data__qa.parquet": None}, "There are results but no questions"),
        ({"data__qa.parquet": parquet(pl.concat([QA, QA[:1]]))}, "'q1' stands twice"),
        ({"data__qa.parquet": parquet(QA[:2])}, "3 rows, but there are 2 questions"),
        ({"data__qa.parquet": parquet(QA.with_columns(retrieval_gt=pl.lit(1)))}, "not lists of passage ids"),
        ({"data__corpus.parquet": parquet(pl.concat([CORPUS, CORPUS]))}, "'a' stands twice"),
        ({"other__qa.parquet": parquet(QA)}, "There are 2 tables of questions"),
        ({"0__config.yaml": "a: &x [1]\nb: *x\n"}, "anchors or aliases"),
        ({"0__config.yaml": "a: [1\nb: 2\n"}, "not valid YAML"),
        ({"0__config.yaml": "[" * 100 + "]" * 100}, "nested deeper"),
        ({"0__config.yaml": "a: 2024-99-99"}, "not valid YAML"),
        ({"0__config.yaml": "!!python/object/apply:os.system ['true']"}, "not valid YAML"),
        ({"0__line__lexical_retrieval__0.parquet": b"PAR1 no"}, "lexical_retrieval/0.parquet"),
        ({"0__line__lexical_retrieval__0.parquet": parquet(QA.select("qid", "query", "generation_gt"))},
         "no column `retrieved_ids`"),
        ({"0__line__generator__0.parquet": returned("bm25")}, "no column `generated_texts`"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(change, message):
    assert message in refusal(offer(**change))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ("__import__('os').system('true')", "not a plain literal"),
        ("[1]", "not a map"),
        ("(" * 5000, "not a plain literal"),
        ("9" * 200_000, "not a map"),
        ("{'a': " * 500 + "1" + "}" * 500, "not a plain literal"),
    ],
)
def test_parameters_are_literals_only(params, message):
    head = "filename,module_name,module_params,execution_time,is_best\n"
    text = f'{head}0.parquet,BM25,"{params}",1,True\n'
    found = refusal(offer(**{"0__line__lexical_retrieval__summary.csv": text}))
    assert message in found
    assert "summary.csv:2" in found


def test_halves_of_characters_do_not_reach_the_manifest():
    head = "filename,module_name,module_params,execution_time,is_best\n"
    text = head + "0.parquet,BM25,\"{'model': '\\ud800'}\",1,True\n"
    config = 'vectordb: [{name: small, embedding_model: "\\ud800"}]\n'
    made = read(offer(**{"0__line__lexical_retrieval__summary.csv": text, "0__config.yaml": config}))
    assert made.runs[0].manifest["params"] == {"model": "?"}
    assert made.runs[1].stack.spec["embedder"] == "?"


@pytest.mark.slow
@needs(PROJECTS)
def test_the_real_project_is_counted_as_its_files_are():
    made = read(REAL)
    qa, corpus = (pl.read_parquet(REAL / "data" / f"{name}.parquet") for name in ("qa", "corpus"))
    nodes = {}
    for path in sorted(REAL.glob("*/*/*/summary.csv")):
        with path.open() as file:
            nodes[path.parent] = list(csv.DictReader(file))
    ranked = [
        (path, row) for path, lines in nodes.items() for row in lines
        if path.name in ("lexical_retrieval", "semantic_retrieval", "hybrid_retrieval", "passage_reranker")
    ]  # fmt: skip
    generators = [row for path, lines in nodes.items() for row in lines if path.name == "generator"]
    lists = {
        (path.parent.parent.name, path.name): pl.read_parquet(path / row["filename"])[
            "retrieved_ids"
        ].to_list()
        for path, row in ranked
    }
    expected = sum(len(set(each)) for found in lists.values() for each in found)
    expected += sum(
        len(each) for (_, node), found in lists.items() if node == "hybrid_retrieval" for each in found
    )
    # the generator was given the list of the best reranker, which chose from that of the hybrid
    expected += sum(
        len(each) for node in ("passage_reranker", "hybrid_retrieval") for each in lists["0", node]
    )
    relevant = sum(len({doc for group in each for doc in group}) for each in qa["retrieval_gt"].to_list())
    right = {(row["qid"], said) for row in qa.iter_rows(named=True) for said in row["generation_gt"]}
    assert made.taken == {
        "collections": 1, "golden sets": 1, "runs": len(ranked) + len(generators),
        "aggregates": len(ranked) * 3 + 3 + 3 * (3 + 3 + 5 + 6) + 8, "answers": qa.height * len(generators),
        "judgements": relevant, "passages": corpus.height, "queries": qa.height, "rankings": expected,
        "signals": qa.height * 3, "usage": 1, "answer_scores": qa.height * 3, "gold_answers": len(right),
    }  # fmt: skip
    times = rows(made, "aggregates").filter(
        measure="latency_mean", run_id=made.runs[0].run_id, stage="sparse"
    )
    seconds = next(float(row["execution_time"]) for path, row in ranked if path.name == "lexical_retrieval")
    assert times["value"].to_list() == [pytest.approx(seconds * 1000)]
    repeated = sum(len(each) - len(set(each)) for found in lists.values() for each in found)
    assert sum(each.count for each in made.left_out if "repeats" in each.reason) == repeated
    assert "Trials with a configuration only: 3." in made.notes
    assert json.dumps(made.runs[0].manifest)


@needs(PROJECTS)
def test_the_real_sample_is_a_collection():
    made = read(PROJECTS / "sample_project")
    assert made.taken == {
        "collections": 1, "golden sets": 1, "gold_answers": 10, "judgements": 10, "passages": 30,
        "queries": 10,
    }  # fmt: skip


def test_a_preview_shows_the_modules():
    (seen,) = preview([offer()])
    assert (seen.format, seen.problem) == ("autorag", "")
    assert seen.rows.row(0) == ("0", "query_expansion", "HyDE", "0.parquet", "True")
    (data,) = preview([up("qa.parquet", parquet(QA))])
    assert data.rows["qid"].to_list() == ["q1", "q2", "q3"]


OFFERS = {
    "autorag": ("autorag", zipped(project(), 0)),
}
