from __future__ import annotations

import json
from collections import Counter

import pytest

from core.errors import InputError
from core.pipeline import demo_data
from core.tables import TABLES

HEADER = "query_id\tpassage_id\tgrade"
QUESTIONS = {"q01", "q02"}


def write(path, *lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def judged(tmp_path):
    def judge(*lines, known=("a.b", "a.c")):
        return demo_data.judgements(known, write(tmp_path / "judgements.tsv", *lines), QUESTIONS)

    return judge


def test_judgements_of_passages_that_exist(judged):
    rows, missing = judged(HEADER, "q01\ta.b\t5", "q01\ta.c\t1", "", "q02\ta.b\t3")
    assert rows.schema == TABLES["judgements"]
    assert rows.select("query_id", "passage_id", "grade", "raw").rows() == [
        ("q01", "a.b", 5, 5),
        ("q01", "a.c", 1, 1),
        ("q02", "a.b", 3, 3),
    ]
    assert set(rows["golden_set_id"]) == {demo_data.golden_set().golden_set_id}
    assert missing == []


def test_judgements_whose_passage_is_gone_are_reported(judged):
    rows, missing = judged(HEADER, "q01\ta.b\t5", "q02\ta.gone\t4")
    assert rows.height == 1
    assert missing == [("q02", "a.gone")]
    said = demo_data.describe(rows, missing)
    assert said.startswith("1 judgements of 1 questions (1 of grade 5, 0 of grade 4")
    assert "1 left out" in said
    assert "left out" not in demo_data.describe(rows, [])


@pytest.mark.parametrize(
    ("lines", "where", "found"),
    [
        (["query\tpassage\tgrade"], "line 1", "header"),
        ([], "judgements.tsv", "header"),
        ([HEADER, "q01\ta.b\t5", "q01 a.c 5"], "line 3", "1 columns"),
        ([HEADER, "q01\ta.b\t6"], "line 2", "'6'"),
        ([HEADER, "q01\ta.b\t"], "line 2", "''"),
        ([HEADER, "q01\ta.b\t4.0"], "line 2", "'4.0'"),
        ([HEADER, "q03\ta.b\t4"], "line 2", "'q03'"),
        ([HEADER, "q01\ta.b\t4", "", "q01\ta.b\t4"], "line 4", "line 2"),
    ],
)
def test_a_bad_line_is_named(judged, lines, where, found):
    with pytest.raises(InputError, match=found) as caught:
        judged(*lines)
    assert where in caught.value.where
    assert "judgements.tsv" in caught.value.where


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.tsv"):
        demo_data.judgements({"a.b"}, tmp_path / "nowhere.tsv", QUESTIONS)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("{", "not JSON"),
        ("[1]", "not a JSON object"),
        ('{"query_id": "q02", "text": "", "tags": ["a=b"]}', "'text'"),
        ('{"query_id": "q02", "text": "t", "tags": "a=b"}', "'tags'"),
        ('{"query_id": "q01", "text": "t", "tags": ["a=b"]}', "stands twice"),
    ],
)
def test_a_bad_question_is_named(tmp_path, line, found):
    good = json.dumps({"query_id": "q01", "text": "sort by two keys", "tags": ["package=numpy"]})
    path = write(tmp_path / "queries.jsonl", good, line)
    with pytest.raises(InputError, match=found) as caught:
        demo_data.queries(path)
    assert caught.value.where == "queries.jsonl line 2"


def test_the_questions_cover_packages_types_and_styles():
    queries = demo_data.queries()
    assert queries.schema == TABLES["queries"]
    assert queries.height >= 40
    tags = Counter(tag for tags in queries["tags"] for tag in tags)
    assert all(tags[f"package={name}"] >= 15 for name in ("numpy", "polars", "streamlit"))
    assert min(tags[name] for name in ("package=mixed", "style=misspelt", "style=chatty", "type=broad")) >= 5
    assert tags["language=en"] == queries.height


def test_every_question_has_answers_in_mind():
    answers = demo_data.expected_answers()
    assert answers.keys() == set(demo_data.queries()["query_id"])
    assert all(answers.values())


def test_collection_and_golden_set_belong_together():
    assert demo_data.golden_set().collection_id == demo_data.collection().collection_id
    assert "numpy" in demo_data.collection().source


def test_the_readme_states_the_number_of_questions():
    readme = (demo_data.DEMO / "README.md").read_text(encoding="utf-8")
    assert f"{demo_data.queries().height} questions" in readme
