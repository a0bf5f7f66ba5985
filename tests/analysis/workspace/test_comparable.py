import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from core.analysis.workspace import comparable
from core.analysis.workspace.comparable import (
    at_machine,
    foreign_figures,
    machine,
    machines,
    timed_elsewhere,
)
from core.analysis.workspace.query_sets import QuerySets
from core.analysis.workspace.scope import Ids, Latency
from core.store import Store
from tests.stores import Lab
from tests.views.made import AT_10, DEMO, LAB, PAPER, stacks, table

BIG = json.dumps({"cpu": "Big", "cores": 64, "load_average": [1, 2, 3], "python": "3.11"})
BIG_LATER = json.dumps(
    {"cpu": "Big", "cores": 64, "load_average": [9, 9, 9], "python": "3.12", "system": "Linux"}
)
SMALL = json.dumps({"cpu": "Small", "cores": 2})


def timed(environments: list[str], origins: list[str] | None = None, **columns: list[object]) -> pl.DataFrame:
    count = len(environments)
    made = stacks(**{"latency_ms": [10.0] * count, "latency_basis": ["measured"] * count, **columns})
    return made.with_columns(
        environment=pl.Series(environments), origin=pl.Series(origins or ["run"] * count)
    )


@pytest.mark.parametrize(
    ("environment", "origin", "words"),
    [
        (BIG, "run", "Big, 64 cores"),
        (BIG_LATER, "run", "Big, 64 cores"),
        (SMALL, "import", "Small, 2 cores (imported)"),
        ("{}", "import", "machine not stated (imported)"),
        ("{}", "run", "machine not stated"),
        ('{"reported":"macOS, 24 cores"}', "published", "macOS, 24 cores (published)"),
        ('{"cores":1,"gpu":"T4","region":"eu"}', "run", "1 core, gpu T4, region eu"),
    ],
)
def test_a_machine_in_words(environment: str, origin: str, words: str):
    assert machine(environment, origin) == words


def test_machines_are_counted_where_latencies_are_known():
    rows = timed([BIG, BIG_LATER, SMALL, SMALL], latency_ms=[1.0, 2.0, 3.0, None])
    assert machines(rows) == {"Big, 64 cores": 2, "Small, 2 cores": 1}
    assert list(machines(timed([SMALL, BIG], ["import", "run"]))) == [
        "Big, 64 cores",
        "Small, 2 cores (imported)",
    ]
    assert machines(timed([SMALL, BIG], latency_ms=[None, None])) == {}


def test_latencies_of_another_machine_are_unknown_with_the_reason():
    rows = at_machine(
        timed(
            [BIG, SMALL, SMALL], latency_ms=[1.0, 3.0, None], latency_note=[None, None, "no timings recorded"]
        ),
        "Big, 64 cores",
    )
    assert rows["latency_ms"].to_list() == [1.0, None, None]
    assert rows["latency_basis"].to_list() == ["measured", None, "measured"]
    assert rows["latency_note"].to_list() == [
        None,
        "measured on another machine: not comparable",
        "no timings recorded",
    ]
    assert rows["name"].to_list() == ["stack 0", "stack 1", "stack 2"]


def test_new_stacks_that_were_timed_on_another_machine_than_the_others_are_named():
    rows = timed([BIG, BIG, SMALL, SMALL], latency_ms=[1.0, 2.0, 3.0, None])
    ids = rows["run_id"].to_list()
    assert timed_elsewhere(rows, ids[2:]).startswith(
        "Beside the others the latency of stack 2 counts as unknown: 2 stacks were timed on another machine "
        "(Big, 64 cores)."
    )
    assert timed_elsewhere(rows, ids[:2]) == ""
    assert timed_elsewhere(timed([SMALL, SMALL], latency_ms=[1.0, 2.0]), ids[:1]) == ""


@pytest.mark.slow
def test_the_table_of_one_machine(tmp_path: Path):
    lab = Lab().judge({"q1": {"p1": 5}})
    for run_id, environment in (("a", {"cpu": "Big"}), ("b", {"cpu": "Small"})):
        lab.run(run_id, final={"q1": ["p1"]}, ms={"sparse": [4.0]}, environment=environment)
    snapshot = lab.write(tmp_path / "store").read()
    assert list(machines(table(snapshot, LAB))) == ["Big (imported)", "Small (imported)"]
    rows = table(snapshot, LAB, latency=Latency(machine="Big (imported)"))
    assert rows["latency_ms"].to_list() == [4.0, None]
    assert rows["quality"].to_list() == [1.0, 1.0]


def averages(n: list[int | None], computed: list[bool]) -> pl.DataFrame:
    rows = stacks(quality=[0.5] * len(n), n=n)
    return rows.with_columns(
        unjudged_queries=pl.Series([0 if each else None for each in computed], dtype=pl.Int32)
    )


FIGURES = {
    "scores only": ([50, 50], [True, True], set()),
    "averages of one n": ([50, 50], [False, False], set()),
    "averages of two n": ([50, 50, 15], [False] * 3, {"r2"}),
    "averages of nearly one n": ([34, 35, 36], [False] * 3, set()),
    "within a tenth of the largest": ([100, 90, 89], [False] * 3, {"r2"}),
    "most within a tenth": ([34, 35, 36, 40], [False] * 4, {"r3"}),
    "as many, the larger": ([10, 40], [False] * 2, {"r0"}),
    "unknown n": ([50, None], [False, False], set()),
    "averages beside scores": ([50, 50], [True, False], {"r1"}),
    "none": ([], [], set()),
}


@pytest.mark.parametrize(("n", "computed", "foreign"), FIGURES.values(), ids=FIGURES)
def test_averages_from_elsewhere(n: list[int | None], computed: list[bool], foreign: set[str]):
    found, words = foreign_figures(averages(n, computed))
    assert set(found) == foreign
    differ = len({number for number in n if number}) > 1 or len(set(computed)) > 1
    assert bool(words) == differ


def test_averages_beside_scores_without_a_value_do_not_matter():
    rows = averages([50, 50], [True, False]).with_columns(quality=pl.Series([0.5, None]))
    assert foreign_figures(rows) == ({}, "")


@pytest.mark.parametrize("scope", [DEMO, PAPER])
def test_the_demo_and_the_paper_compare(demo_store: Path, scope: object):
    rows = table(Store.open(demo_store).read(), scope, AT_10)  # type: ignore[arg-type]
    assert foreign_figures(rows) == ({}, "")
    assert len(machines(rows)) == 1


def test_what_is_said():
    some = Ids.of(map(str, range(48)))
    sets = QuerySets(judged=50, fewest=4, most=50, shared=some, apart={"c": 4}, differ=True)
    said = comparable.about_queries(sets, shared=True)
    assert said.startswith(
        "Not every stack was asked the same queries (4 to 50 of 50 judged). They are compared on n = 48."
    )
    assert "Set apart for want of more than 10.0 % of these: 1 stack." in said
    assert "counts as 0 here" in comparable.about_queries(sets, shared=False)
    cells = replace(sets, ranked=False, apart={})
    assert "0" not in comparable.about_queries(cells, shared=True).replace("50", "")
    assert "the mean of its own here" in comparable.about_queries(cells, shared=False)
    assert comparable.about_queries(QuerySets(), shared=True) == ""
    alike = QuerySets(judged=50, fewest=30, most=30, shared=Ids.of(map(str, range(30))), unasked=20)
    assert comparable.about_queries(alike, shared=False) == (
        "20 of 50 judged queries are ranked by no stack and count as 0; “shared queries” in Settings "
        "leaves them out."
    )
    assert "left out: n = 30;" in comparable.about_queries(alike, shared=True)
    assert "sidebar" not in comparable.about_queries(alike, shared=True, offer=False)
    assert "set apart" in comparable.about_figures("Words", odd=True, together=False)
    assert "one scale because" in comparable.about_figures("Words", odd=True, together=True)
    assert "sidebar" not in comparable.about_figures("Words", odd=True, together=True, offer=False)
    assert comparable.about_figures("Words", odd=False, together=False) == "Words."
    assert comparable.about_figures("", odd=False, together=True) == ""
    assert "1 stack keeps quality and cost only" in comparable.about_machines({"A": 3, "B": 1}, "A")
    assert "do not compare" in comparable.about_machines({"A": 3, "B": 1}, None)
    assert comparable.about_machines({"A": 3}, None) == ""
    assert comparable.about_pools(["dense@50", None, "dense@50"]).endswith("dense@50, not stated.")
    assert comparable.about_pools(["dense@50"]) == ""


def test_the_chip_says_what_differs_most():
    half = stacks(hole=[0.1, 0.46])
    assert (
        comparable.Comparability(offers=("more",)).chip(half) == "up to 46 % of results of 1 stack unjudged"
    )
    assert "note" in comparable.Comparability(("one", "two")).chip(half)
    apart = pl.DataFrame([("a", "elsewhere")], schema=comparable.APART, orient="row")
    assert comparable.Comparability(("one",), apart, ("more",)).chip(half) == "1 stack set apart"


@pytest.mark.parametrize(
    ("holes", "named"),
    [
        ([0.1, None], ()),
        ([0.46, 0.1, 0.0], ("b",)),
        ([0.2, 0.46, 0.0], ("b", "c")),
        ([0.2, 0.3, 0.4], ("d",)),
    ],
)
def test_stacks_with_many_unjudged_results_are_named(holes: list[float | None], named: tuple[str, ...]):
    table = stacks(name=["b", "c", "d"][: len(holes)], hole=holes)
    said = comparable.unjudged_words(table, "Top-10", among=table.height)
    assert [name for name in "bcd" if f"% of {name}" in said] == list(named)
