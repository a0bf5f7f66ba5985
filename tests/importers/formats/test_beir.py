from __future__ import annotations

import json

import pytest

from tests.importers.helpers import lost, read, refusal, rows, up, zipped

CORPUS = (
    '{"_id": "d1", "title": "T", "text": "one", "metadata": {"source": "book", "page": 3}}\n'
    '{"_id": 2, "title": "", "text": ""}\n'
)
QUERIES = (
    '{"_id": "q1", "text": "what?", "metadata": {"type": "narrow", "answers": ["x"]}}\n'
    '{"_id": "q2", "text": "why?"}\n'
)
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\t2\t0\n"
FILES = {"corpus.jsonl": CORPUS, "queries.jsonl": QUERIES, "qrels/test.tsv": QRELS}


@pytest.fixture
def folder(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / "tiny" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "tiny"


def test_folder_zip_and_loose_files_are_the_same_collection(folder):
    nested = zipped({f"tiny/{name}": text for name, text in FILES.items()})
    offers = [
        [folder],
        [up("tiny.zip", zipped(FILES))],
        [up("tiny.zip", nested)],
        [up(name, text) for name, text in FILES.items()],
    ]
    made = [read(*offer, collection_id="tiny") for offer in offers]
    for each in made:
        assert each.taken == {
            "collections": 1,
            "golden sets": 1,
            "judgements": 2,
            "passage_metadata": 1,
            "passages": 2,
            "queries": 2,
        }
        assert all(rows(each, table).equals(rows(made[0], table)) for table in each.frames)


def test_names_come_from_the_folder_and_the_split(folder):
    made = read(folder)
    assert made.collections[0].collection_id == "tiny"
    assert made.golden_sets[0].golden_set_id == "tiny-test"
    assert read(folder / "corpus.jsonl").collections[0].collection_id == "tiny"


def test_texts_titles_tags_and_sources():
    made = read(*(up(name, text) for name, text in FILES.items()))
    assert rows(made, "passages").select("passage_id", "title", "text", "source").rows() == [
        ("d1", "T", "one", "book"), ("2", None, "", None)
    ]  # fmt: skip
    assert rows(made, "queries").select("query_id", "text", "tags").rows() == [
        ("q1", "what?", ["type=narrow"]),
        ("q2", "why?", []),
    ]
    assert [(left.count, left.reason) for left in lost(made)] == [
        (1, "metadata of queries that is not a short text")
    ]
    assert "corpus.jsonl: 1 passages have no text but are kept." in made.notes


def test_parts_alone():
    assert read(up("a", CORPUS)).taken == {"collections": 1, "passage_metadata": 1, "passages": 2}
    assert read(up("a", QUERIES)).taken == {"collections": 1, "queries": 2}
    assert read(up("a", QRELS)).taken == {"collections": 1, "golden sets": 1, "judgements": 2}
    assert (
        read(up("docs.jsonl", CORPUS.replace('"title": "T", ', "").replace('"title": "", ', ""))).taken[
            "passages"
        ]
        == 2
    )


TITLED = '{"_id": "q1", "title": "T", "text": "what?"}\n{"_id": "q2", "title": "", "text": "why?"}\n'
INNER = '{"_id": "q1", "text": "what?", "metadata": {"title": "T"}}\n{"_id": "q2", "text": "why?"}\n'


@pytest.mark.parametrize("queries", [TITLED, INNER])
@pytest.mark.parametrize("name", ["queries.jsonl", "test_queries.jsonl", "Questions.jsonl"])
def test_the_name_of_a_file_decides_before_its_keys(queries, name):
    made = read(up("c.zip", zipped({"corpus.jsonl": CORPUS, name: queries})))
    assert made.taken["passages"] == made.taken["queries"] == 2
    assert [each.file for each in made.reports if "title" in each.left_out] == [f"c.zip/{name}"] * (
        queries is TITLED
    )


def test_unknown_ids_are_counted():
    made = read(up("queries.jsonl", QUERIES), up("test.tsv", QRELS + "q9\td1\t1\n"))
    assert "1 judgements name queries that the collection does not have." in made.notes


def test_splits_are_asked_for():
    files = FILES | {"qrels/dev.tsv": QRELS}
    offer = up("tiny.zip", zipped(files))
    assert "several splits: dev, test. Choose one (--split)" in refusal(offer)
    assert "No split 'train'. Found: dev, test." in refusal(offer, split="train")
    assert read(offer, split="dev").golden_sets[0].golden_set_id == "tiny-dev"
    assert [each.golden_set_id for each in read(offer, split="all").golden_sets] == ["tiny-dev", "tiny-test"]
    assert [each.golden_set_id for each in read(offer, split="all", golden_set_id="g").golden_sets] == [
        "g-dev",
        "g-test",
    ]


def test_other_files_of_the_folder_are_read_or_counted(folder):
    (folder / "README.md").write_text("# hello\n")
    (folder / "bm25.run").write_text("q1 Q0 d1 1 1.0 bm25\n")
    made = read(folder)
    assert made.taken["runs"] == 1
    assert made.runs[0].collection_id == "tiny"
    assert [(left.count, left.first) for left in made.left_out if left.part == "file"] == [
        (1, "tiny/README.md")
    ]


def test_scores_that_are_no_grades_make_a_ranking():
    made = read(up("x.tsv", QRELS.replace("\t1\n", "\t0.75\n")))
    assert made.taken["rankings"] == 2


BROKEN = {
    "no id": (CORPUS + '{"title": "x", "text": "y"}\n', "x:3, column `_id`: The id is empty."),
    "null id": (CORPUS + '{"_id": null, "title": "x", "text": "y"}\n', "x:3, column `_id`: The id is empty."),
    "no text": (CORPUS + '{"_id": "d3", "title": "x"}\n', "x:3, column `text`: The line has no text."),
    "twice": (CORPUS + '{"_id": "d1", "text": "y"}\n', "x:3, column `_id`: The id 'd1' occurs twice."),
    "bad JSON": (CORPUS + '{"_id": "d3", "title": "x", "text": "y"\n', "x:3: The line is not valid JSON"),
    "a list": (CORPUS + '["d3"]\n', "x:3: The line is not a JSON object."),
    "two objects": (CORPUS + '{"_id": "d3"} {"_id": "d4"}\n', "x:3: The line is not valid JSON: Extra data"),
    "depth": (CORPUS + "[" * 100_000 + "\n", "x:3: The JSON is nested too deeply."),
    "grade": (QRELS + "q1\t2\tgood\n", "x:4"),
    "two corpora": (None, "There are 2 corpus files: x, y."),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_broken_parts_name_file_and_line(text, message):
    offers = [up("x", text)] if text else [up("x", CORPUS), up("y", CORPUS)]
    assert message in refusal(*offers, format="beir" if text and text.startswith("{") else None)


def test_hostile_metadata_is_only_counted():
    lines = [
        {"_id": f"q{n}", "text": "t", "metadata": value}
        for n, value in enumerate(["text", 5, None, [1], {"a": "b" * 100}])
    ]
    made = read(up("queries.jsonl", "".join(json.dumps(line) + "\n" for line in lines)))
    assert rows(made, "queries")["tags"].to_list() == [[]] * 5
    assert sum(left.count for left in lost(made)) == 4


def test_a_backslash_or_a_tab_in_metadata_costs_no_tag_and_no_source():
    about = {"path": "C:\\new", "list": "a\tb", "title": "x", "source": "book \\ 1"}
    lines = [{"_id": "1", "text": "t", "metadata": about}]
    texts = {name: "".join(json.dumps(line) + "\n" for line in lines) for name in ("queries", "corpus")}
    made = read(*(up(f"{name}.jsonl", text) for name, text in texts.items()))
    assert rows(made, "queries")["tags"].to_list() == [[f"{name}={value}" for name, value in about.items()]]
    assert rows(made, "passages")["source"].to_list() == [about["source"]]
    assert not lost(made)


OFFERS = {
    "beir-corpus": ("beir", FILES["corpus.jsonl"].encode()),
    "beir-zip": ("beir", zipped(FILES)),
}
