"""Lists of passages by query, of the tools that write them."""

import pytest

from tests.importers.helpers import lost, read, refusal, rows, up

FOUND = """\
Team Name,Case Name,Case ID,Query Text,Doc ID,Doc Position,Title,Rating
T,Case A,8,dog,d2,2,Dog two,
T,Case A,8,dog,d1,1,Dog one,3
T,Case A,8,cat,d3,1,Cat,0
T,Case B,9,cat,d4,1,Cat,1
T,Case B,9,emu,,,,
"""
SCORED = """\
Team Name,Case Name,Case ID,Query Text,Score,Date Last Scored,Count,Information Need,Notes,Options
T,Case A,8,dog,30,2015-07-14 16:08:55,,,nice,
T,Case A,8,cat,0,2015-07-14 16:08:55,,,x,
T,Case A,8,foo,,2015-07-14 16:08:55,,,y,
"""
RATINGS = 'query,docid,rating\nred shoes,77,3\nred shoes,78,0\n"shoes, red",77,\nblue,9,1\n'


def listed(made):
    """Label, query, rank, passage and score of everything that is ranked."""
    if "rankings" not in made.frames:
        return []
    labels = {run.run_id: run.label for run in made.runs}
    table = rows(made, "rankings").sort("run_id", "query_id", "rank").iter_rows(named=True)
    keys = ("query_id", "rank", "passage_id", "score")
    return sorted((labels[row["run_id"]], *(row[key] for key in keys)) for row in table)


def judged(made):
    return sorted(rows(made, "judgements").select("query_id", "passage_id", "raw", "grade").rows())


def measured(made):
    labels = {run.run_id: run.label for run in made.runs}
    table = rows(made, "aggregates").iter_rows(named=True)
    return {(labels[row["run_id"]], row["measure"], row["k"], row["value"], row["n"]) for row in table}


def unjudged(made):
    return sum(each.count for each in lost(made) if each.reason == "rows without a grade: not judged")


def test_what_quepid_found():
    made = read(up("found.csv", FOUND))
    assert listed(made) == [
        ("Case A", "cat", 1, "d3", None), ("Case A", "dog", 1, "d1", None), ("Case A", "dog", 2, "d2", None),
        ("Case B", "cat", 1, "d4", None),
    ]  # fmt: skip
    assert judged(made) == [("cat", "d3", 0, 1), ("cat", "d4", 1, 3), ("dog", "d1", 3, 5)]
    assert unjudged(made) == 1
    assert [each.count for each in lost(made) if each.reason == "queries without a document"] == [1]
    (report,) = made.reports
    assert report.left_out == {"Title": "a field of a document"}


def test_scores_of_quepid():
    made = read(up("scored.csv", SCORED))
    assert measured(made) == {("Case A", "Quepid score", None, 15.0, 2)}
    assert sorted(rows(made, "signals").select("query_id", "value").rows()) == [("cat", 0.0), ("dog", 30.0)]


@pytest.mark.parametrize(
    "data", [RATINGS, RATINGS.replace("rating", "grade"), RATINGS.replace(",9,1", ",9,")]
)
def test_ratings_alone_are_judgements_and_blanks_are_counted(data):
    made = read(up("ratings.csv", data))
    grades = {row[:3] for row in judged(made)}
    assert grades == {("red shoes", "77", 3), ("red shoes", "78", 0)} | (
        {("blue", "9", 1)} if data.count(",\n") == 1 else set()
    )
    assert unjudged(made) == data.count(",\n")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (FOUND.replace("d1,1,", "d1,first,"), "found.csv:3, column `rank`: 'first' is not an integer"),
        (FOUND.replace("T,Case A,8,cat,d3,1,Cat,0", "T,Case A,8,,d3,1,Cat,0"), "The id is empty"),
        (FOUND.replace("Cat,0", "Cat,good"), "'good' is not an integer"),
        ("query,docid,rating\na,1,\n", "The grade is empty"),
    ],
)
def test_refused(content, said):
    assert said in refusal(up("found.csv", content))


OFFERS = {
    "quepid": ("quepid", FOUND.encode()),
    "quepid-scores": ("quepid", SCORED.encode()),
}
