import pytest

from core.store import Store
from tests.importers.helpers import graded, read, refusal, rows, up

HEAD = "query_id,query,query_run,passage_id,passage,generated_answer\n"
PLACES = (
    HEAD + 'q1,who?,1,[1],"first, text",she [1]\nq1,who?,1,[2],second text,\nq1,who?,1,[3],"first, text",\n'
    "q2,what?,1,[1],third text,it\nq2,what?,1,[2],,\nq3,when?,1,,,\n"
)
REPEATED = HEAD + "q1,who?,1,a,text a,one\nq1,who?,1,b,text b,one\nq1,who?,2,b,text b,two\n"


def test_rows_of_a_query_are_its_ranking(tmp_path):
    made = read(up("grid.csv", PLACES), collection_id="c")
    assert made.detected[0].format == "open-rag-eval"
    assert made.taken == {
        "collections": 1, "runs": 1, "answers": 2, "passages": 3, "queries": 3, "rankings": 3
    }  # fmt: skip
    names = dict(rows(made, "passages").select("passage_id", "text").iter_rows())
    ranked = rows(made, "rankings").select("query_id", "rank", "passage_id").rows()
    assert [(query, rank, names[passage]) for query, rank, passage in ranked] == [
        ("q1", 1, "first, text"), ("q1", 2, "second text"), ("q2", 1, "third text")
    ]  # fmt: skip
    assert graded(made).select("query_id", "k", "text", "grade").rows() == [
        ("q1", 3, "she [1]", None), ("q2", 1, "it", None)
    ]  # fmt: skip
    assert any("passage ids have several texts" in note for note in made.notes)
    left = {each.reason: each.count for each in made.left_out}
    assert left["rows without a passage"] == 2
    assert left["passages that a list repeats: the first place counts"] == 1
    store = Store.open(tmp_path / "store")
    with store.write("import") as writer:
        writer.add(made.batch)


def test_every_repeat_is_a_run_and_ids_that_name_texts_are_kept():
    made = read(up("grid.csv", REPEATED), collection_id="c")
    assert [run.label for run in made.runs] == ["grid · run 1", "grid · run 2"]
    assert rows(made, "rankings").select("rank", "passage_id").rows() == [(1, "a"), (2, "b"), (1, "b")]
    assert made.taken["queries"] == 1


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("q1,who?,1,a,x,one\nq1,whom?,1,b,y,one\n", "grid.csv:2, column `query`: The query 'q1' has 2 texts"),
        ("q1,who?,1,a,x,one\nq1,who?,1,b,y,two\n", "The query 'q1' has 2 answers"),
        (",who?,1,a,x,one\n", "The id is empty"),
        ("", "The table has no rows"),
    ],
)
def test_what_contradicts_itself_is_refused(lines, message):
    assert message in refusal(up("grid.csv", HEAD + lines), collection_id="c")


OFFERS = {
    "open-rag-eval": ("open-rag-eval", PLACES.encode()),
}
