import json
import re

import polars as pl
import pytest

from core.store import Store
from tests.importers.helpers import graded, lost, read, refusal, rows, up, zipped

TEXTS = [
    {"id": "A-0", "q": "analysis", "p": ["p zero", "p one"], "n": ["n zero", "n one"], "c1": "math.ca"},
    {"id": "N-7", "q": "unused", "p": ["x"], "n": []},
]
RANKED = [
    {"id": "A-0", "E": "AM", "Nc": 4, "Np": 2, "K": [1, 2], "P": [1.0, 0.5], "R": [0.5, 0.5],
     "rank": [1, 2, 0, 3]},
]  # fmt: skip
GRADED = [
    {"id": "A-0", "E": "AM", "Nc": 4, "Np": 2, "K": k, "rank": [1, 2, 0, 3][:k], "inK": [1, 0, 1, 0][:k],
     "answer_ideal": "all", "answer_topK": f"answer {k}", "grade": grade, "P": 1.0, "R": 0.5}
    for k, grade in ((1, 3), (2, 4))
] + [
    {"id": "A-0", "E": "QM", "Nc": 3, "Np": 2, "K": 1, "rank": [2], "inK": [0],
     "answer_ideal": "all", "answer_topK": "none", "grade": None, "P": 0.0, "R": 0.0}
]  # fmt: skip


def lines(samples: list[dict[str, object]]) -> str:
    return "".join(json.dumps(sample) + "\n" for sample in samples)


FILES = {"texts.jsonl": lines(TEXTS), "ranked.json": json.dumps(RANKED), "graded.jsonl": lines(GRADED)}
UPLOADS = [up(name, content) for name, content in FILES.items()]


def test_texts_rankings_and_answers_come_together():
    made = read(*UPLOADS, collection_id="rr")
    assert made.taken == {
        "collections": 1, "golden sets": 1, "runs": 2, "queries": 2, "passages": 5, "judgements": 7,
        "rankings": 5, "answers": 3, "answer_scores": 2, "gold_answers": 2,
    }  # fmt: skip
    assert [run.label for run in made.runs] == ["AM", "QM"]
    first, second = (run.run_id for run in made.runs)
    assert rows(made, "queries").select("query_id", "text", "tags").sort("query_id").rows() == [
        ("A-0|Nc3|Np2", "analysis", ["subset=A", "Np=2"]),
        ("A-0|Nc4|Np2", "analysis", ["subset=A", "Np=2"]),
    ]
    ranked = rows(made, "rankings").filter(pl.col("run_id") == first)
    # the whole ranking counts, not the first K of it; 0 and 1 are p, 2 and 3 are n.
    assert ranked.select("rank", "passage_id").rows() == [
        (1, "A-0/p1"), (2, "A-0/n0"), (3, "A-0/p0"), (4, "A-0/n1")
    ]  # fmt: skip
    judged = rows(made, "judgements").filter(pl.col("query_id") == "A-0|Nc4|Np2")
    assert judged.select("passage_id", "grade", "raw").sort("passage_id").rows() == [
        ("A-0/n0", 1, 0), ("A-0/n1", 1, 0), ("A-0/p0", 5, 1), ("A-0/p1", 5, 1)
    ]  # fmt: skip
    answers = graded(made).select("run_id", "k", "text", "grade", "scale")
    assert answers.rows() == [
        (first, 1, "answer 1", 3.0, "1-5"), (first, 2, "answer 2", 4.0, "1-5"),
        (second, 1, "none", None, None),
    ]  # fmt: skip
    assert rows(made, "gold_answers").select("query_id", "answer").rows() == [
        ("A-0|Nc4|Np2", "all"), ("A-0|Nc3|Np2", "all")
    ]  # fmt: skip
    assert not [each for each in made.left_out if "ideal" in each.reason]
    assert [(each.count, each.reason.split(",")[0]) for each in lost(made)] == [
        (1, "answers without a grade (kept"),
        (1, "query texts without a ranking"),
    ]


def test_graded_answers_alone_are_enough():
    made = read(UPLOADS[2], collection_id="rr")
    assert made.taken["rankings"] == 3
    assert "passages" not in made.taken
    assert any("without a text" in each.reason for each in lost(made))


@pytest.mark.slow
def test_a_zip_of_them_is_the_same_and_goes_into_a_store(tmp_path):
    made = read(up("rr.zip", zipped(FILES)), collection_id="rr")
    assert made.taken == read(*UPLOADS, collection_id="rr").taken
    store = Store.open(tmp_path / "store")
    with store.write("import") as writer:
        writer.add(made.batch)
    assert store.read().answers([run.run_id for run in made.runs]).height == 3
    again = read(*UPLOADS, collection_id="rr")
    assert [run.label for run in again.runs] == [run.label for run in made.runs]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rank": [9]}, "names candidates that its pool does not have"),
        ({"rank": [1, 1]}, "or one twice"),
        ({"rank": [-1]}, "names candidates that its pool does not have"),
        ({"Np": 9}, "names candidates that its pool does not have"),
        ({"Nc": None}, "Sample 1 has no 'Nc'"),
        ({"K": "two"}, "graded.jsonl"),
    ],
)
def test_a_sample_that_contradicts_itself_is_refused(change, message):
    sample = lines([{**GRADED[0], **change}])
    assert message in refusal(up("graded.jsonl", sample), collection_id="rr")


def test_an_answer_twice_is_refused():
    assert re.search("K = 1 stands twice", refusal(up("g.jsonl", lines(GRADED[:1] * 2)), collection_id="rr"))


OFFERS = {
    "retrieval-response": ("retrieval-response", FILES["graded.jsonl"].encode()),
}
