"""Tables of nuggets: words and shares of support, columns that may be left out, what is refused."""

import json

import polars as pl
import pytest

from core.errors import InputError
from tests.importers.helpers import parquet, read, rows, up

TABLE = """\
query_id,nugget,importance,passage_id,support
q1,one fact,vital,p1,support
q1,one fact,vital,p2,Partial_Support
q1,"another, longer",okay,p3,1
q1,"another, longer",okay,p4,0
q1,a third,vital,,
"""
OFFERS = {"nugget-rows": ("nugget-rows", TABLE.encode())}
FRAME = pl.read_csv(TABLE.encode())


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("facts.csv", TABLE.encode()),
        ("facts.parquet", parquet(FRAME)),
        ("facts.jsonl", "\n".join(map(json.dumps, FRAME.to_dicts())).encode()),
    ],
)
def test_a_table_becomes_nuggets_and_grades(name, data):
    made = read(up(name, data))
    (golden,) = made.golden_sets
    assert golden.golden_set_id.endswith("facts-nuggets")
    judged = rows(made, "judgements").sort("passage_id")
    assert judged.select("passage_id", "grade").rows() == [("p1", 5), ("p2", 3), ("p3", 4), ("p4", 1)]
    assert rows(made, "nuggets").select("nugget", "text", "vital", "passage_id", "support").rows() == [
        (0, "one fact", True, "p1", 1.0),
        (0, "one fact", True, "p2", 0.5),
        (1, "another, longer", False, "p3", 1.0),
        (2, "a third", True, None, None),
    ]


def test_without_importance_and_support_a_nugget_is_vital_and_supported():
    made = read(up("facts.csv", "qid,fact,docid\nq1,one,p1\nq1,one,p2\n"))
    assert rows(made, "nuggets").select("vital", "support").rows() == [(True, 1.0)] * 2
    assert rows(made, "judgements")["grade"].to_list() == [5, 5]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("q1,one fact,rare,p1,support", "The importance is"),
        ("q1,one fact,vital,p1,perhaps", "The support is"),
        ("q1,one fact,vital,p1,", "The support is"),
        ("q1,one fact,vital,p1,2", "The support is"),
        ("q1,one fact,vital,p1,nan", "The support is"),
        ("q1,,vital,p1,support", "The nugget is empty"),
        ("q1,one fact,vital,p1,support\n,one fact,vital,p1,support", "The id is empty"),
        ("q1,one fact,vital,,", "No passage is said to support a nugget"),
        ("q1,one fact,vital,p1,support\nq1,one fact,okay,p2,support", "vital on one line"),
    ],
)
def test_what_cannot_be_used_is_refused(row, words):
    with pytest.raises(InputError, match=words):
        read(up("facts.csv", f"query_id,nugget,importance,passage_id,support\n{row}\n"))
