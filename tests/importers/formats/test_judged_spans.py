"""Judged quotes and places become a golden set of the collection that has the documents."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest

from core.importers import Import, Options, load
from tests.importers.formats.test_excel import book
from tests.importers.helpers import lost, parquet, read, refusal, rows, up

TEXTS = {"a.txt": "The wing lifts.\nDrag slows the wing.", "b.txt": "Zebras run."}
CORPUS = "".join(json.dumps({"_id": name, "title": "", "text": text}) + "\n" for name, text in TEXTS.items())
CSV = (
    "query_id,source,quote,grade,judge\n"
    "q1,a.txt,wing lifts. Drag,2,ann\nq1,b.txt,Zebras,0,ann\nq2,b.txt,run.,1,bob\n"
)
TABLE = pl.read_csv(CSV.encode(), schema_overrides={"grade": pl.Int64})
FORMS = {
    "s.csv": CSV,
    "s.tsv": CSV.replace(",", "\t"),
    "s.jsonl": TABLE.write_ndjson(),
    "s.parquet": parquet(TABLE),
    "s.xlsx": book({"Notes": [["just", "words"], [1, 2]], "Spans": [TABLE.columns, *TABLE.rows()]}),
}
PLACES = [
    ("q1", "a.txt", 4, 20, 5, 2, "ann"),
    ("q1", "b.txt", 0, 6, 1, 0, "ann"),
    ("q2", "b.txt", 7, 11, 3, 1, "bob"),
]


def at_hand(collection_id: str, sources: Sequence[str]) -> pl.DataFrame:
    """What a store has: the documents in each collection."""
    del collection_id
    found = [(name, TEXTS[name]) for name in sources if name in TEXTS]
    return pl.DataFrame(found, schema={"source": pl.String, "text": pl.String}, orient="row")


STORED: dict[str, Any] = {"known_collections": frozenset({"c"}), "documents": at_hand}


def offered(text: str | bytes, name: str = "s.csv", **options: Any) -> Import:
    return load([up(name, text)], Options(**{**STORED, **options}))


def test_ids_are_taken_where_texts_of_questions_stand_beside_them():
    head, *lines = CSV.splitlines()
    asked = [line.replace(",", ",what is it?,", 1) for line in lines]
    text = "\n".join([head.replace("query_id", "query_id,query"), *asked, ""])
    assert rows(offered(text), "spans")["query_id"].to_list() == ["q1", "q1", "q2"]


@pytest.mark.parametrize("name", FORMS)
def test_every_kind_of_table(name):
    made = offered(FORMS[name], name)
    assert [each.format for each in made.detected] == ["judged-spans"]
    assert rows(made, "spans").drop("golden_set_id").rows() == PLACES
    (golden,) = made.golden_sets
    assert (golden.golden_set_id, golden.collection_id, golden.mapping[:3]) == ("c-s", "c", "0-2")
    assert not made.collections
    assert any("documents of the collection c" in note for note in made.notes)


def test_documents_of_the_same_offer():
    made = read(up("c.jsonl", CORPUS), up("s.csv", CSV))
    assert made.golden_sets[0].collection_id == made.collections[0].collection_id == "c"
    assert rows(made, "spans").height == 3
    said = refusal(up("s.csv", CSV))
    assert "No collection has the documents a.txt, b.txt. There are no collections yet." in said
    assert "--collection" in said


def test_what_stands_nowhere_is_left_out_and_counted():
    more = CSV + "q3,a.txt,Wing,1,\nq3,a.txt,nowhere,1,\nq4,gone.txt,x,1,\nq5,a.txt,wing,1,\n"
    made = offered(more)
    assert rows(made, "spans").height == 3
    assert {each.reason: (each.count, each.first) for each in made.left_out} == {
        "quotes that are not in their document": (
            2, "s.csv:5, column `quote`: The quote 'Wing' stands 0 times in 'a.txt'."
        ),
        "spans of documents that are not there": (
            1, "s.csv:7, column `source`: There is no document 'gone.txt'."
        ),
        "quotes that stand more than once in their document": (
            1, "s.csv:8, column `quote`: The quote 'wing' stands 2 times in 'a.txt'."
        ),
    }  # fmt: skip
    places = "query_id,source,start_char,end_char,grade\nq,b.txt,0,99,1\n"
    assert "None of its 1 spans stands in a document of the collection c; the first: Characters 0 to 99" in (
        refusal(up("s.csv", places), **STORED)
    )


def test_which_collection():
    both = {**STORED, "known_collections": frozenset({"c", "d", "s"})}
    assert offered(CSV, **both).golden_sets[0].collection_id == "s", "the one of the file's name"
    assert offered(CSV, collection_id="d", **both).golden_sets[0].collection_id == "d"
    assert "in several collections: c, d, s. Say which" in refusal(up("t.csv", CSV), **both)
    said = refusal(up("t.csv", CSV), collection_id="x", **both)
    assert "There is no collection x. At hand: c, d, s. Name the collection" in said


def test_the_grades_are_mapped_as_asked():
    made = offered(CSV, grades="0→2, 1→3, 2→4", golden_set_id="mine")
    assert rows(made, "spans")["grade"].to_list() == [4, 2, 3]
    assert made.golden_sets[0].golden_set_id == "mine"


def test_several_judges_of_one_span_are_golden_sets_of_their_own():
    made = offered(CSV + "q1,b.txt,Zebras,2,bob\nq1,b.txt,Zebras,2,bob\n")
    assert [each.judge for each in made.golden_sets] == ["ann", "bob"]
    assert rows(made, "spans")["golden_set_id"].to_list() == ["c-s-ann", "c-s-ann", "c-s-bob", "c-s-bob"]
    assert [(each.count, each.reason) for each in lost(made)] == [
        (1, "spans that stand twice: they count once")
    ]
    said = refusal(up("s.csv", CSV + "q1,b.txt,Zebras,2,ann\n"), **STORED)
    assert "Characters 0 to 6 of 'b.txt' are judged twice by 'ann' for query 'q1'" in said


@pytest.mark.parametrize(
    ("head", "form"),
    [
        ("qid,doc_id,quote,rel", "judged-spans"),
        ("qid,doc_id,start_char,end_char,rel", "judged-spans"),
        ("qid,url,evidence,rel", "judged-spans"),
        ("qid,doc_id,evidence,rel", "table"),
        ("qid,passage_id,quote,rel", "table"),
    ],
)  # fmt: skip
def test_spans_are_told_from_judgements_of_passages(head, form):
    cells = "q,b.txt,0,6,1\n" if "start_char" in head else "q,b.txt,Zebras,1\n"
    assert [each.format for each in offered(f"{head}\n{cells}").detected] == [form]
    assert rows(offered(f"{head}\n{cells}", format="judged-spans"), "spans").height == 1


def test_a_missing_column_is_named():
    assert "no column `source`" in refusal(up("s.csv", "query_id,quote,grade\nq,Zebras,1\n"))


@pytest.mark.slow
def test_two_sheets_of_spans_are_asked_about():
    sheet = [TABLE.columns, *TABLE.rows()]
    data = book({"One": sheet, "Two": sheet})
    assert "Several sheets hold spans: One, Two. Choose one" in refusal(up("s.xlsx", data), **STORED)
    assert rows(offered(data, "s.xlsx", sheet="Two"), "spans").height == 3


OFFERS = {
    "judged-spans": ("judged-spans", CSV.encode()),
}
