import json
from collections.abc import Mapping, Sequence
from statistics import mean

import pytest

from core.store import Store
from tests.importers.helpers import read, refusal, rows, up, zipped


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
        "collections": 1, "runs": 1, "aggregates": 6, "answers": 3, "passages": 3, "queries": 3,
        "rankings": 3, "signals": 11,
    }  # fmt: skip
    (run,) = made.runs
    assert run.stack.spec["sparse"] == "bm25"
    assert rows(made, "rankings").select("query_id", "rank", "passage_id", "score").rows() == [
        ("1", 1, "p:3", 9.5), ("1", 2, "p:4", 8.5), ("2", 1, "o:1", 9.5)
    ]  # fmt: skip
    figures = rows(made, "aggregates").sort("k", "measure").select("measure", "k", "value", "n").rows()
    assert figures == [
        ("exact_match", 1, 0.0, 2), ("f1", 1, 0.5, 1), ("rougel", 1, mean([0.25, 0.75]), 2),
        ("exact_match", 10, 0.0, 2), ("f1", 10, 0.5, 2), ("rougel", 10, mean([0.5, 1.0]), 2),
    ]  # fmt: skip
    answers = read(
        up("out.zip", zipped({"bm25.jsonl": RETRIEVER, **READER})), collection_id="c", columns={"grade": "f1"}
    )
    assert rows(answers, "answers").select("query_id", "k", "text", "grade", "judge").rows() == [
        ("1", 1, "a", 0.5, "f1"), ("1", 10, "b", 1.0, "f1"), ("2", 10, "c", 0.0, "f1")
    ]  # fmt: skip
    left = {(each.reason, each.count) for each in made.left_out}
    assert ("files of combined measures: their mean of rougel is wrong; means are taken anew", 1) in left
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
    assert [run.label for run in made.runs] == ["nq + out.zip · flan · nq · bm25", "nq"] or len(
        made.runs
    ) == 2
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


def test_nan_is_missing():
    text = RETRIEVER.replace("9.5", "NaN")
    made = read(up("a.jsonl", text), collection_id="c")
    assert rows(made, "rankings")["score"].to_list() == [None, 8.5, None]
