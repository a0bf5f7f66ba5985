from __future__ import annotations

import io
import json
import re
from datetime import date

import polars as pl
import pytest

from core.errors import InputError
from core.pipeline.sweep.sources import read_filters
from tests.importers.helpers import read, refusal, rows, up

METADATA = (
    "passage_id,tenant,pages,acl,day,text\n"
    'd1,a,3,"[""group:sales"", 17]",2025-01-31,one\n'
    "d2,b,,[],2025-02-01,two\n"
    "d3,007,4.5,,,\n"
)
FILTERS = (
    "query_id,filter,note\n"
    'q1,"{""tenant"": ""a"", ""acl"": {""any"": [17]}}",x\n'
    "q2,,y\n"
    'q3,"{""pages"": {""gte"": 4}}",z\n'
)
OFFERS = {"filters": ("filters", FILTERS.encode())}


def known(made):
    found = rows(made, "passage_metadata").select("passage_id", "metadata").rows()
    return {passage: json.loads(text) for passage, text in found}


def asked(made):
    return dict(rows(made, "query_filters").select("query_id", "filter").rows())


def test_metadata_and_filters_are_tables_beside_a_collection():
    made = read(up("metadata.csv", METADATA), up("filters.csv", FILTERS), collection_id="c")
    assert [each.format for each in made.detected] == ["filters", "filters"]
    assert known(made) == {
        "d1": {"tenant": "a", "pages": 3, "acl": ["group:sales", 17], "day": "2025-01-31"},
        "d2": {"tenant": "b", "acl": [], "day": "2025-02-01"},
        "d3": {"tenant": "007", "pages": 4.5},
    }
    assert asked(made) == {"q1": '{"acl":{"any":["17"]},"tenant":"a"}', "q3": '{"pages":{"gte":4}}'}
    said = "Fields of passages: acl (list of texts), day (date), pages (number), tenant (text)."
    assert said in made.notes
    left = {report.file: set(report.left_out) for report in made.reports}
    assert left == {"metadata.csv": {"text"}, "filters.csv": {"note"}}


def test_parquet_and_json_lines_keep_their_types():
    frame = pl.DataFrame(
        {"passage_id": ["d1"], "tenant": [7], "day": [date(2025, 1, 31)], "acl": [["x"]], "open": [True]}
    )
    data = io.BytesIO()
    frame.write_parquet(data)
    lines = '{"passage_id": "d1", "tenant": 7, "day": "2025-01-31", "acl": ["x"], "open": true}\n'
    for offer in (up("metadata.parquet", data.getvalue()), up("corpus-metadata.jsonl", lines)):
        made = read(offer, collection_id="c")
        assert known(made) == {"d1": {"tenant": 7, "day": "2025-01-31", "acl": ["x"], "open": True}}
    line = '{"query_id": "q1", "filter": {"tenant": 7, "acl": {"any": ["x"]}}}\n{"query_id": "q2"}\n'
    assert asked(read(up("f.jsonl", line), collection_id="c")) == {"q1": '{"acl":{"any":["x"]},"tenant":7}'}


BEIR = {
    "corpus.jsonl": '{"_id": "d1", "text": "one", "metadata": {"tenant": "a", "acl": ["x"]}}\n'
    '{"_id": "d2", "text": "two", "metadata": {}}\n{"_id": "d3", "text": "three"}\n',
    "queries.jsonl": '{"_id": "q1", "text": "what?", "filter": {"tenant": "a"}}\n'
    '{"_id": "q2", "text": "why?"}\n',
}


def test_a_beir_collection_brings_its_metadata_and_filters():
    made = read(*(up(*file) for file in BEIR.items()), collection_id="c", permissions=frozenset({"acl"}))
    assert known(made) == {"d1": {"tenant": "a", "acl": ["x"]}}
    assert asked(made) == {"q1": '{"tenant":"a"}'}
    assert rows(made, "fields").rows() == [("c", "acl", None, True)]


@pytest.mark.parametrize(
    ("files", "options", "said"),
    [
        ({"metadata.csv": METADATA, "f.csv": FILTERS.replace("tenant", "tenent")}, {}, "'tenent'.*tenant"),
        ({"metadata.csv": METADATA, "f.csv": FILTERS.replace("4", "'4'")}, {}, "f.csv:4.*no JSON"),
        ({"metadata.csv": METADATA.replace("4.5", "many"), "f.csv": FILTERS}, {}, "'pages' holds text"),
        ({"metadata.csv": METADATA + "d1,a,,,,\n"}, {}, "id 'd1' occurs twice"),
        ({"metadata.csv": METADATA}, {"permissions": frozenset({"acls"})}, "'acls'.*acl"),
        ({"f.csv": FILTERS}, {"permissions": frozenset({"acl"})}, "no metadata"),
    ],
)
def test_what_cannot_hold_is_refused_by_name(files, options, said):
    found = refusal(*(up(*file) for file in files.items()), collection_id="c", **options)
    assert re.search(said, found, re.DOTALL)


def test_filters_that_match_nothing_are_counted():
    files = up("metadata.csv", METADATA), up("f.csv", FILTERS.replace("4}", "400}"))
    assert "1 filter matches no passage: q3." in read(*files, collection_id="c").notes


def test_questions_of_a_specification_bring_their_filters(tmp_path):
    path = tmp_path / "asked.csv"
    path.write_text('query_id,text,filter\nq1,what?,"{""tenant"": ""a""}"\nq2,why?,\n')
    assert read_filters(path, "c").rows() == [("c", "q1", '{"tenant":"a"}')]
    path.write_text("query_id,text\nq1,what?\n")
    assert read_filters(path, "c") is None
    lines = tmp_path / "queries.jsonl"
    lines.write_text('{"_id": "q1", "text": "what?", "filter": {"tenant": ["a"]}}\n')
    assert read_filters(lines, "c").rows() == [("c", "q1", '{"tenant":"a"}')]
    path.write_text("query_id,text,filter\nq1,what?,tenant=a\n")
    with pytest.raises(InputError, match=r"asked.csv:2.*no JSON"):
        read_filters(path, "c")
