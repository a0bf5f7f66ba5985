from pathlib import Path

import polars as pl
import pytest

from core.analysis.scoring.table import COLUMNS, NOT_ASKED, Over, score_table
from core.errors import InputError, UnknownNameError
from core.metrics import Measure, parse_list
from core.records import Origin
from core.stats.means import mean_interval
from core.store import Snapshot, Store
from tests.metrics import oracle
from tests.stores import Lab

GRADES = {"q1": {"p1": 5, "p2": 1, "p3": 4}, "q2": {"p1": 4}, "q3": {"p3": 2}}
RANKED = {"q1": ["p2", "p1"], "q3": ["p3"], "q9": ["p1"]}
MEASURES = parse_list("RA-nWG@2,N-Recall4+@2,Precision4+@2,Harm@2,Hole@2,Hit@2,PROC[RA-nWG]@2")
AGGREGATE = {"measure": "RA-nWG", "k": 10, "value": 0.5, "n": 30, "low": 0.4, "high": 0.6}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    made = Lab().judge(GRADES).run("a", final=RANKED).run("b", final={"q1": ["p1", "p3"]})
    made.run(
        "c", origin=Origin.PUBLISHED, figures=[AGGREGATE, {"measure": "latency_p50", "k": 10, "value": 9.0}]
    )
    return made.write(tmp_path_factory.mktemp("lab") / "s").read()


def test_per_query_scores_equal_the_oracle(lab: Snapshot):
    found = score_table(lab, lab.runs(), "gold", MEASURES, per_query=True)
    assert dict(found.schema) == COLUMNS
    assert found.height == 2 * len(GRADES) * len(MEASURES)
    for row in found.iter_rows(named=True):
        ranking = (RANKED if row["run"] == "a" else {"q1": ["p1", "p3"]}).get(row["query_id"], [])
        name = row["measure"].partition("@")[0]
        expected = oracle.value(name, ranking, GRADES[row["query_id"]], 2, pool=ranking)
        assert row["value"] == (None if expected is None else pytest.approx(expected))
        assert (row["reason"] is None) is (row["value"] is not None)
        assert row["n"] == (row["value"] is not None)


def test_means_their_n_and_their_intervals(lab: Snapshot):
    each = score_table(lab, lab.runs(), "gold", MEASURES, per_query=True)
    found = score_table(lab, lab.runs(), "gold", MEASURES)
    assert found.columns == [name for name in COLUMNS if name != "query_id"]
    for row in found.filter(pl.col("run") != "c").iter_rows(named=True):
        own = each.filter((pl.col("run") == row["run"]) & (pl.col("measure") == row["measure"]))
        values = own.sort("query_id")["value"]
        assert row["value"] == pytest.approx(values.mean())
        assert row["n"] == values.count()
        low, high = mean_interval(values.to_numpy(), "shares")
        assert (row["ci_low"], row["ci_high"]) == (pytest.approx(low[0]), pytest.approx(high[0]))
        assert row["k"] == 2


def test_a_run_with_aggregates_only_shows_what_it_reported(lab: Snapshot):
    runs = lab.runs().filter(pl.col("run_id") == "c")
    found = score_table(lab, runs, "gold", parse_list("RA-nWG@10,RA-nWG@5,RA-nWG@10(alpha=0.5)"))
    assert found["value"].to_list() == [0.5, None, None]
    assert found["reason"].to_list() == [None] + ["not among the figures of this run"] * 2
    assert found.row(0, named=True)["ci_low"] == 0.4
    assert score_table(lab, runs, "gold", parse_list("RA-nWG@10"), per_query=True).is_empty()


def test_averages_from_elsewhere_beside_scores_are_told(lab: Snapshot):
    told: list[str] = []
    for runs in (lab.runs(), lab.runs().filter(run_id="c")):
        score_table(lab, runs, "gold", parse_list("RA-nWG@10"), over=Over.SHARED, tell=told.append)
    assert len(told) == 2
    assert told[1].startswith("1 run comes as averages of an evaluation elsewhere")


def test_without_a_golden_set_rankings_have_a_reason(lab: Snapshot):
    found = score_table(lab, lab.runs(), None, parse_list("RA-nWG@10"))
    by_run = dict(found.select("run", "reason").iter_rows())
    assert by_run["c"] is None
    assert by_run["a"] == by_run["b"] == "no golden set: its rankings cannot be scored"


def test_a_measure_that_never_applies_says_so(tmp_path: Path):
    lab = Lab().judge({"q1": {"p1": 1}}).run("a", final={"q1": ["p1"]}).write(tmp_path / "s").read()
    row = score_table(lab, lab.runs(), "gold", [Measure("N-Recall4+", 3)]).row(0, named=True)
    assert (row["value"], row["n"], row["ci_low"]) == (None, 0, None)
    assert row["reason"] == (
        "applies to none of the 1 judged query: the grades found are 1 of 1 to 5, too low for it; if the "
        "judges counted otherwise, import the judgements again with another mapping (--grades)"
    )


def test_no_run_and_no_measure_are_empty_tables(lab: Snapshot):
    assert score_table(lab, lab.runs().clear(), "gold", MEASURES).is_empty()
    assert score_table(lab, lab.runs().clear(), "gold", MEASURES, per_query=True).is_empty()


def test_labels_are_those_of_the_runs(demo_store: Path):
    snapshot = Store.open(demo_store).read()
    runs = snapshot.runs("python-docs")
    found = score_table(snapshot, runs, "python-docs-graded", parse_list("RA-nWG@10"))
    assert dict(found.select("run", "stack").iter_rows()) == dict(runs.select("run_id", "label").iter_rows())


def test_what_cannot_be_scored_is_an_error(lab: Snapshot):
    with pytest.raises(InputError, match="no cutoff"):
        score_table(lab, lab.runs(), "gold", [Measure("RA-nWG")])
    with pytest.raises(UnknownNameError, match="gone"):
        score_table(lab, lab.runs(), "gone", MEASURES)


ASKED = {query: {f"p-{query}": 5} for query in (f"q{number:02}" for number in range(1, 21))}
HITS = {query: [f"p-{query}"] for query in ASKED}
OVER = {
    # which count: (value, n) of a (1 to 20), b (3 to 20, right from 9 on) and c (1 to 3), and what is said
    "by itself": (None, [(1.0, 20), (0.6, 20), (None, 0)], "compared on n = 20. One for which a compared"),
    Over.SHARED: (Over.SHARED, [(1.0, 20), (0.6, 20), (None, 0)], "own scores each"),
    Over.OWN: (Over.OWN, [(1.0, 20), (12 / 18, 18), (1.0, 3)], "asked 3 to 20; each is scored on its own"),
    Over.ALL: (Over.ALL, [(1.0, 20), (12 / 20, 20), (3 / 20, 20)], "counts as 0 here"),
}


@pytest.fixture
def overlapping(tmp_path: Path) -> Snapshot:
    some = list(ASKED)
    made = Lab().judge(ASKED).run("a", final={query: HITS[query] for query in some})
    made.run("b", final={query: HITS[query] if query > "q08" else ["x"] for query in some[2:]})
    made.run("c", final={query: HITS[query] for query in some[:3]})
    return made.write(tmp_path / "s").read()


@pytest.mark.parametrize(("over", "expected", "said"), OVER.values(), ids=OVER)
def test_which_queries_count(
    overlapping: Snapshot, over: Over | None, expected: list[tuple[float | None, int]], said: str
):
    told: list[str] = []
    measures = parse_list("RR@5")
    found = score_table(overlapping, overlapping.runs(), "gold", measures, over=over, tell=told.append)
    assert found.select("value", "n").rows() == [
        (None if value is None else pytest.approx(value), n) for value, n in expected
    ]
    assert said in told[0]
    each = score_table(overlapping, overlapping.runs(), "gold", measures, per_query=True, over=over)
    means = each.group_by("run", maintain_order=True).agg(pl.col("value").mean(), pl.col("n").sum())
    assert means.select("value", "n").rows() == found.select("value", "n").rows()
    assert (each["reason"].is_null() == each["value"].is_not_null()).all()
    if expected[2][0] is None:
        assert found["reason"][2] == "was asked 3 of 20 judged queries"
        assert set(each.filter(run="c")["reason"]) == {found["reason"][2]}
    if over is Over.OWN:
        assert set(each.filter(pl.col("value").is_null())["reason"]) == {NOT_ASKED}


def test_queries_that_no_run_was_asked_count_as_0_and_are_told(overlapping: Snapshot):
    runs, told = overlapping.runs().filter(run_id="c"), list[str]()
    found = score_table(overlapping, runs, "gold", parse_list("RR@5"), over=None, tell=told.append)
    assert found.select("value", "n").row(0) == (pytest.approx(0.15), 20)
    assert told[0].startswith("17 of 20 judged queries are ranked by no stack and count as 0. (--queries: ")
    found = score_table(overlapping, runs, "gold", parse_list("RR@5"), over=Over.SHARED)
    assert found.select("value", "n").row(0) == (1.0, 3)


@pytest.mark.parametrize(("measures", "named"), [("nDCG@1,Hole@1", "late, other"), ("nDCG@2", "other")])
def test_runs_of_which_nothing_within_the_cutoff_is_judged_are_named(
    tmp_path: Path, measures: str, named: str
):
    made = Lab().judge(GRADES).run("first", final=RANKED).run("late", final={"q1": ["x", "p1"]})
    made.run("other", final={"q1": ["x", "y"]}).run("nothing", final={"q9": ["p1"]})
    snapshot, said = made.write(tmp_path / "s").read(), []
    score_table(snapshot, snapshot.runs(), "gold", parse_list(measures), tell=said.append)
    told = [words for words in said if "judged, so" in words]
    assert [words.rpartition(": ")[2] for words in told] == [f"{named}."]
