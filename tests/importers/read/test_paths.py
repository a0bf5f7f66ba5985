import pytest

from core.errors import InputError
from core.importers.read.jsons import amount, identifier, items, text, words
from core.importers.read.paths import Fields, PathRow, keys_of

TABLE: Fields = {
    "id": ("query.queryId!", identifier),
    "text": ("query.text/question", text),
    "said": ("answer", words),
    "seconds": ("completionTime", amount),
    "steps": ("trace.steps!", items),
    "calls": ("calls", {"model": ("modelName", text)}),
}
HOLDER = {
    "query": {"query_id": 7, "text": None, "question": "who?"},
    "answer": ["a text", {"image": "x"}],
    "completion_time": 2,
}


@pytest.mark.parametrize(("name", "value"), [("id", "7"), ("text", "who?"), ("said", None), ("seconds", 2.0)])
def test_a_field_is_read_under_each_of_its_names(name, value):
    assert PathRow(HOLDER, TABLE, "x.json")[name] == value


@pytest.mark.parametrize(
    ("holder", "name", "found", "where"),
    [
        (HOLDER, "steps", "There is no 'trace' here.", "x.json"),
        ({"trace": {}}, "steps", "There is no 'steps' here.", "x.json, trace"),
        ({"query": {"queryId": ""}}, "id", "There is no 'queryId' here.", "x.json, query"),
        ({"query": {"queryId": True}}, "id", "'queryId' is true or false, not an id.", "x.json, query"),
        ({"query": "who?"}, "id", "'query' is text, not an object.", "x.json"),
        ({"completionTime": -1}, "seconds", "'completionTime' is negative.", "x.json"),
        (
            {"calls": [{}, {"modelName": 1}]},
            "calls",
            "'modelName' is an integer, not text.",
            "x.json, calls 1",
        ),
        ([], "seconds", "It is a list, not an object.", "x.json"),
    ],
)
def test_what_is_of_another_kind_is_refused_with_its_place(holder, name, found, where):
    with pytest.raises(InputError) as caught:
        [call["model"] for call in PathRow(holder, TABLE, "x.json")[name]]
    assert (caught.value.found, caught.value.where) == (found, where)


def test_the_keys_that_a_table_takes_in_all_spellings():
    assert [call["model"] for call in PathRow({"calls": [{"model_name": "m"}, {}]}, TABLE, "x")["calls"]] == [
        "m",
        None,
    ]
    assert list(keys_of({"calls": TABLE["calls"]})) == [
        "calls.modelName",
        "calls.modelname",
        "calls.model_name",
    ]
    assert list(keys_of({"seconds": TABLE["seconds"], "text": TABLE["text"]}, "cases.")) == [
        "cases.completionTime", "cases.completiontime", "cases.completion_time",
        "cases.query.text", "cases.query.question",
    ]  # fmt: skip
