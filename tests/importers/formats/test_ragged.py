import json
from collections.abc import Mapping, Sequence
from statistics import mean

import polars as pl
import pytest

from core.store import Store
from tests.importers.helpers import graded, read, refusal, rows, up, zipped


def lines(items: Sequence[Mapping[str, object]]) -> str:
    return "".join(json.dumps(item) + "\n" for item in items)


def retrieved(query: object, *passages: tuple[object, object]) -> dict[str, object]:
    places = [
        {"page_id": page, "start_par_id": par, "text": f"{page} {par}", "score": 9.5 - rank}
        for rank, (page, par) in enumerate(passages)
    ]
    return {"id": query, "input": f"ask {query}", "output": [{"provenance": places}, {"answer": "x"}]}


def answered(query: object, answer: str | None, f1: float | None, rougel: float) -> dict[str, object]:
    return {"id": query, "answer": answer, "gold_answers": ["g"],
            "answer_evaluation": {"exact_match": 0.0, "f1": f1, "rougel": rougel, "parsed": "x"}}  # fmt: skip


RETRIEVER = lines([retrieved("1", ("p", 3), ("p", 4), ("p", 3)), retrieved("2", ("o", "1")), retrieved("3")])
READER = {
    "flan/nq/bm25/top_1/all_data_evaluated.jsonl": lines(
        [answered("1", "a", 0.5, 0.25), answered("2", None, None, 0.75)]
    ),
    "flan/nq/bm25/top_10/all_data_evaluated.jsonl": lines(
        [answered("1", "b", 1.0, 0.5), answered("2", "c", 0.0, 1.0)]
    ),
    "flan/nq/bm25/combined_metrics.json": json.dumps(
        {"top_1": {"f1": 0.5, "rougel": 99}, "top_10": {"f1": 1}}
    ),
}


def test_a_retriever_and_its_reader_are_one_run(tmp_path):
    made = read(up("out.zip", zipped({"bm25.jsonl": RETRIEVER, **READER})), collection_id="c")
    assert made.detected[0].format == "ragged"
    assert made.taken == {
        "collections": 1, "runs": 1, "answer_scores": 11, "answers": 3, "gold_answers": 2, "passages": 3,
        "queries": 3, "rankings": 3,
    }  # fmt: skip
    (run,) = made.runs
    assert run.stack.spec["sparse"] == "bm25"
    assert rows(made, "rankings").select("query_id", "rank", "passage_id", "score").rows() == [
        ("1", 1, "p:3", 9.5), ("1", 2, "p:4", 8.5), ("2", 1, "o:1", 9.5)
    ]  # fmt: skip
    scores = rows(made, "answer_scores").group_by("scorer", "k").agg(pl.col("value").mean(), n=pl.len())
    assert scores.sort("k", "scorer").select("scorer", "k", "value", "n").rows() == [
        ("exact_match", 1, 0.0, 2), ("f1", 1, 0.5, 1), ("rougel", 1, mean([0.25, 0.75]), 2),
        ("exact_match", 10, 0.0, 2), ("f1", 10, 0.5, 2), ("rougel", 10, mean([0.5, 1.0]), 2),
    ]  # fmt: skip
    assert set(rows(made, "answers").select("reader", "mode", "prompt", "pass").rows()) == {
        ("flan", "top_k", None, None)
    }
    assert rows(made, "gold_answers").rows() == [("c", "1", "g"), ("c", "2", "g")]
    answers = read(
        up("out.zip", zipped({"bm25.jsonl": RETRIEVER, **READER})), collection_id="c", columns={"grade": "f1"}
    )
    assert graded(answers).select("query_id", "k", "text", "grade", "judge").rows() == [
        ("1", 1, "a", 0.5, "f1"), ("1", 10, "b", 1.0, "f1"), ("2", 10, "c", 0.0, "f1")
    ]  # fmt: skip
    left = {(each.reason, each.count) for each in made.left_out}
    combined = "flan/nq/bm25/combined_metrics.json"
    assert (f"file `{combined}`: its mean of rougel is wrong; means are taken anew", 1) in left
    assert ("passages that a list repeats: the first place counts", 1) in left
    assert ("questions with an empty list", 1) in left
    assert ("queries without an answer", 1) in left
    assert ("measures without a value: missing, not 0", 1) in left
    store = Store.open(tmp_path / "store")
    with store.write("import") as writer:
        writer.add(made.batch)


def test_several_retrievers_are_told_apart_by_the_readers_path():
    dense = lines([retrieved("1", ("p", 4))])
    files = {"retrievers/bm25/nq.jsonl": RETRIEVER, "retrievers/colbert/nq.jsonl": dense, **READER}
    made = read(up("out.zip", zipped(files)), collection_id="c")
    assert [run.label for run in made.runs] == ["bm25 · nq", "colbert · nq"]
    assert set(rows(made, "answers")["run_id"]) == {made.runs[0].run_id}
    assert made.taken["answers"] == 3


def test_a_retriever_alone_and_a_reader_alone(tmp_path):
    assert read(up("bm25.jsonl", RETRIEVER), collection_id="c").taken["rankings"] == 3
    folder = tmp_path / "flan" / "top_5"
    folder.mkdir(parents=True)
    (folder / "all_data_evaluated.jsonl").write_text(lines([answered(7, "a", 0.5, 0.25)]))
    for offered in (folder / "all_data_evaluated.jsonl", folder.parent):
        made = read(offered, collection_id="c")
        assert rows(made, "answers").select("query_id", "k").rows() == [("7", 5)]
        assert "rankings" not in made.taken
        assert any("what it read is not known" in note for note in made.notes)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", lines([retrieved("", ("p", 1))]), "a.jsonl:1, column `id`: The line has no id"),
        ("a.jsonl", RETRIEVER + lines([retrieved("1", ("p", 1))]), "The question '1' stands twice"),
        ("a.jsonl", RETRIEVER + '{"id": "9", "output": 3}\n', "a.jsonl:4"),
        ("a.jsonl", RETRIEVER + '{"id": "9", "output": [{"provenance": [{"score": "x"}]}]}\n', "a.jsonl:4"),
        ("a.jsonl", lines([answered("1", "a", 1, 1)]), "From how many passages"),
        ("top_1.zip", zipped({"top_1/x.jsonl": lines([answered("1", "a", 1, 1)] * 2)}), "stands twice"),
        ("a.zip", zipped({"r/top_1/x.jsonl": lines([answered("1", "a", 1, 1)]),
                          "r/top_1/y.jsonl": lines([answered("1", "a", 1, 1)])}), "Two files hold"),
        ("a.zip", zipped({"top_2/x.jsonl": lines([answered(None, "a", 1, 1)])}), "no id"),
        ("a.zip", zipped({"top_2/x.jsonl": lines([answered("1", "a", float("inf"), 1)])}), "is infinite"),
    ],
)  # fmt: skip
def test_what_is_damaged_is_refused(name, content, message):
    assert message in refusal(up(name, content), collection_id="c")


def related(query: str, *passages: tuple[str, int]) -> dict[str, object]:
    places = [
        {"page_id": page, "title": "T", "start_par_id": par, "end_par_id": par} for page, par in passages
    ]
    return {
        "id": query,
        "input": f"ask {query}",
        "output": [{"answer": "g", "provenance": places}, {"answer": "h"}],
    }


def evaluated(query: str, key: str, **matches: bool) -> dict[str, object]:
    found = [
        {"page_id": name[0], "page_id_match": True, "answer_in_context": match, "page_par_id": name,
         "page_par_id_match": match}
        for name, match in matches.items()
    ]  # fmt: skip
    return {"id": query, "gold provenance metadata": {"num_page_ids": 1}, key: found}


GOLD = {
    "data/nq.jsonl": lines([related("1", ("p", 4)), related("2", ("o", 9), ("o", 1))]),
    "data/gold/gold_nq_compilation_file.json": json.dumps(
        [{"id": "1", "input": "?", "output": {"answer_set": ["g"], "page_id_set": ["p"],
                                              "page_par_id_set": ["p_4", "p_5"]}}]
    ),
}  # fmt: skip


EVALUATION = lines([evaluated("1", "passage-level results", p_3=False, p_4=True)])


@pytest.mark.parametrize("key", ["passage-level results", "page-level results"])
def test_gold_files_and_evaluations_are_judgements(key, tmp_path):
    found = lines([evaluated("1", key, p_3=False, p_4=True), evaluated("2", key, o_1=False)])
    files = {"bm25.jsonl": RETRIEVER, **READER, **GOLD, "evaluations/nq.jsonl": found}
    made = read(up("out.zip", zipped(files)), collection_id="c")
    judged = rows(made, "judgements").sort("query_id", "passage_id")
    assert judged.select("query_id", "passage_id", "raw", "grade").rows() == [
        ("1", "p:3", 0, 1), ("1", "p:4", 1, 5), ("1", "p:5", 1, 5), ("2", "o:1", 1, 5), ("2", "o:9", 1, 5)
    ]  # fmt: skip
    assert [each.golden_set_id for each in made.golden_sets] == ["c-gold"]
    assert made.taken["queries"] == 3  # of both files, each once
    store = Store.open(tmp_path / "store")
    with store.write("import") as writer:
        writer.add(made.batch)
    alone = read(up("gold.zip", zipped(GOLD)), collection_id="c")
    assert alone.taken == {
        "collections": 1,
        "golden sets": 1,
        "judgements": 4,
        "queries": 2,
        "gold_answers": 4,
    }


def evaluations(f1: float) -> str:
    measured = {"exact_match": True, "substring_match": False, "f1": f1, "rougel": 0.5}
    return lines([{"id": "1", "answer": "a", "input": "ask 1", "retrieved_passages": [{"page_id": "z"}],
                   "answer_evaluation": measured}])  # fmt: skip


MODES = {
    "flan/nq/bm25/top_k/top_5": ("", 5),
    "flan/nq/bm25/top_positive/top_5": ("gold_only", 5),
    "flan/nq/bm25/top_negative/top_5": ("no_gold", 5),
    "flan/nq/gold": ("gold", None),
    "flan/nq/no_context": ("none", 0),
}


def test_modes_stand_beside_the_first_k():
    files = {f"{folder}/all_data_evaluated.jsonl": evaluations(n / 10) for n, folder in enumerate(MODES)}
    files["flan/nq/gold/reader_results.jsonl"] = lines([{"id": "1", "answer": "a", "retrieved_passages": []}])
    files["flan/nq/gold/additional_metadata.jsonl"] = '[{"context_token_length_after_truncation": 3}]'
    files["flan/nq/gold/combined_metrics.json"] = '{"f1": 1.0}'
    made = read(up("out.zip", zipped({"bm25.jsonl": RETRIEVER, **files})), collection_id="c")
    assert [run.label for run in made.runs] == ["bm25"]
    said = graded(made).select("reader", "mode", "k", "grade", "judge").rows()
    assert said == [("flan", mode or "top_k", k, n / 10, "f1") for n, (mode, k) in enumerate(MODES.values())]
    scores = rows(made, "answer_scores").filter(mode="gold_only").select("scorer", "value", "scale")
    assert scores.sort("scorer").rows() == [
        ("exact_match", 1.0, "0-1"), ("f1", 0.1, "0-1"), ("rougel", 0.5, "0-1"),
        ("substring_match", 0.0, "0-1"),
    ]  # fmt: skip
    left = {name: why for each in made.reports for name, why in each.left_out.items() if each.kind == "file"}
    assert left == {
        "flan/nq/gold/reader_results.jsonl": "its answers stand evaluated beside it",
        "flan/nq/gold/additional_metadata.jsonl": "it does not say of which question",
        "flan/nq/gold/combined_metrics.json": "its mean of rougel is wrong; means are taken anew",
    }


def test_closed_book_stands_beside_every_retriever_that_its_reader_read():
    """The other reader read one of them, and the one of a mode only read none that is told."""
    dense = lines([retrieved("1", ("p", 4))])
    files = {"retrievers/bm25/nq.jsonl": RETRIEVER, "retrievers/colbert/nq.jsonl": dense}
    reader = "reader_results/{}/all_data_evaluated.jsonl"
    places = (
        "flan/nq/bm25/top_k/top_1", "flan/nq/colbert/top_k/top_1", "flan/nq/no_context",
        "llama/nq/colbert/top_k/top_1", "llama/nq/gold", "other/nq/no_context",
    )  # fmt: skip
    files |= {reader.format(place): evaluations(0.5) for place in places}
    made = read(up("out.zip", zipped(files)), collection_id="c")
    labels = {run.run_id: run.label for run in made.runs}
    assert list(labels.values()) == ["bm25 · nq", "colbert · nq", "other · nq · none"]
    said = rows(made, "answers").select(pl.col("run_id").replace(labels), "reader", "mode", "k").rows()
    assert said == [
        ("bm25 · nq", "flan", "top_k", 1), ("bm25 · nq", "flan", "none", 0),
        ("colbert · nq", "flan", "top_k", 1), ("colbert · nq", "llama", "top_k", 1),
        ("colbert · nq", "llama", "gold", None), ("colbert · nq", "flan", "none", 0),
        ("other · nq · none", "other · nq", "none", 0),
    ]  # fmt: skip


def test_readers_whose_folders_begin_alike_are_told_apart():
    reader = "flan/{}/bm25/top_1/all_data_evaluated.jsonl"
    files = {reader.format(each): evaluations(0.5) for each in ("short", "long")}
    made = read(up("out.zip", zipped({"bm25.jsonl": RETRIEVER, **files})), collection_id="c")
    assert sorted(rows(made, "answers")["reader"]) == ["flan · long", "flan · short"]


def test_a_mode_is_known_where_only_its_folder_is_offered(tmp_path):
    for folder in MODES:
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "all_data_evaluated.jsonl").write_text(evaluations(0.5))
    for folder, (mode, k) in MODES.items():
        for offered in (tmp_path / folder, tmp_path / folder / "all_data_evaluated.jsonl"):
            made = read(offered, collection_id="c")
            assert [run.manifest.get("passages", "") for run in made.runs] == [mode]
            assert rows(made, "answers")["k"].to_list() == [k]


def test_answers_that_were_not_evaluated_are_taken_without_grades():
    raw = lines([{"id": "1", "answer": "a", "retrieved_passages": []}])
    made = read(up("out.zip", zipped({"bm25.jsonl": RETRIEVER, "r/top_1/reader_results.jsonl": raw})))
    assert graded(made).select("text", "grade").rows() == [("a", None)]


def test_data_sets_that_share_no_question_are_collections_of_their_own():
    other = {"hotpot/dense.jsonl": lines([retrieved("h1", ("x", 1))]),
             "flan/hotpot/dense/top_1/a.jsonl": lines([answered("h1", "a", 1.0, 1.0)])}  # fmt: skip
    made = read(
        up("out.zip", zipped({"nq/bm25.jsonl": RETRIEVER, **READER, **other, **GOLD})), collection_id="c"
    )
    assert [(run.collection_id, run.label) for run in made.runs] == [
        ("c-dense", "dense"),
        ("c-bm25", "bm25"),
    ]  # fmt: skip
    assert [each.collection_id for each in made.golden_sets] == ["c-bm25"]
    assert {each.collection_id for each in made.collections} == {"c-dense", "c-bm25"}


def test_nan_is_missing():
    text = RETRIEVER.replace("9.5", "NaN")
    made = read(up("a.jsonl", text), collection_id="c")
    assert rows(made, "rankings")["score"].to_list() == [None, 8.5, None]


OFFERS = {
    "ragged": ("ragged", zipped({"bm25.jsonl": RETRIEVER, **READER}, 0)),
    "ragged-gold": ("ragged", zipped({"bm25.jsonl": RETRIEVER, **GOLD}, 0)),
    "ragged-evaluation": ("ragged", EVALUATION.encode()),
}
