from pathlib import Path

import polars as pl
import pytest

from core.analysis.workspace.choices import Choices, choices, measured_first, workspaces
from core.analysis.workspace.scope import Scope
from core.metrics import REGISTRY
from core.store import Store
from tests.stores import Lab
from tests.views.made import DEMO, PAPER


def test_the_demo_offers_what_can_be_computed(demo_store: Path):
    found = choices(Store.open(demo_store).read(), DEMO)
    assert len(found.runs) == 5, "a K that nothing reads makes no other stack"
    assert found.measures[0] == "RA-nWG"
    assert found.computed
    assert not found.reranked
    for name in found.measures:
        assert not name.startswith(("PROC", "%PROC"))
    assert {name for name in found.measures if not REGISTRY[name].higher_is_better} == {
        "Harm",
        "HarmUpper",
        "Hole",
    }
    assert 10 in found.cutoffs("RA-nWG")
    assert found.cutoffs("RA-nWG")[0] == 1


def test_published_figures_offer_what_was_printed(published_store: Path):
    snapshot = Store.open(published_store).read()
    found = choices(snapshot, PAPER)
    assert found.reranked
    assert not found.computed
    assert found.measures == ("RA-nWG", "N-Recall4+", "N-Recall5")
    printed = snapshot.aggregates(list(found.runs.values())).filter(pl.col("measure") == "N-Recall5")
    assert found.cutoffs("N-Recall5") == sorted(printed["k"].unique())


def test_a_choice_of_runs_does_not_narrow_the_offer(demo_store: Path):
    snapshot = Store.open(demo_store).read()
    one = snapshot.runs("python-docs")["run_id"][0]
    assert choices(snapshot, Scope("python-docs", "python-docs-graded", (one,))) == choices(snapshot, DEMO)


def test_an_empty_workspace_still_offers_a_measure_and_a_cutoff(tmp_path: Path):
    found = choices(Lab().judge({"q": {"p": 1}}).write(tmp_path / "s").read(), Scope("lab", "gold"))
    assert found == Choices({}, ("RA-nWG",), computed=False, reported={}, reranked=False)
    assert found.cutoffs("RA-nWG") == [10]


def test_measures_of_others_come_last_and_costs_are_no_quality(tmp_path: Path):
    names = ("zeta", "nDCG", "N-Recall5", "latency_p50", "usd_per_1k", "PROC[RA-nWG]", "%PROC[RA-nWG]")
    lab = Lab().run("a", figures=[{"measure": name, "k": k, "value": 0.5} for name in names for k in (5, 20)])
    found = choices(lab.write(tmp_path / "s").read(), Scope("lab"))
    assert found.measures == ("nDCG", "N-Recall5", "zeta")
    assert found.cutoffs("nDCG") == [5, 20]
    assert found.cutoffs("absent") == [10]


FIRST = {
    # measure: how many of three stacks report it, and which is the default
    "most stacks decide": ({"nDCG": 2, "R": 3}, "R"),
    "of equal ones the usual": ({"R": 3, "nDCG": 3, "RA-nWG": 3}, "RA-nWG"),
    "of equal ones what judges retrieval": (
        {"faithfulness": 3, "context_recall": 3, "Answer": 3},
        "context_recall",
    ),
    "computed names before others": ({"context_recall": 3, "RR": 3}, "RR"),
    "the higher the better": ({"Harm": 3, "R": 3}, "R"),
    "by name": ({"context_recall": 3, "context_precision": 3}, "context_precision"),
    "answers where most have them": ({"faithfulness": 3, "context_recall": 2}, "faithfulness"),
}


@pytest.mark.parametrize(("having", "first"), FIRST.values(), ids=FIRST)
def test_the_measure_that_most_stacks_have_is_the_default(having: dict[str, int], first: str, tmp_path: Path):
    lab = Lab()
    for place in range(3):
        kept = [name for name, stacks in having.items() if place < stacks]
        lab.run(f"r{place}", figures=[{"measure": name, "k": 5, "value": 0.5} for name in kept])
    assert choices(lab.write(tmp_path / "s").read(), Scope("lab")).quality.bare == first


def test_the_cutoff_that_most_stacks_have_is_the_default(tmp_path: Path):
    lab = Lab()
    for run_id, cutoffs in {"a": (3, 5, 10), "b": (3, 5), "c": (3, 5, 20)}.items():
        lab.run(run_id, figures=[{"measure": "nDCG", "k": k, "value": 0.5} for k in cutoffs])
    assert choices(lab.write(tmp_path / "s").read(), Scope("lab")).quality.name == "nDCG@3"


@pytest.mark.parametrize(
    ("origins", "expected"),
    [({}, []), ({"b": "published", "a": "published"}, ["a", "b"]),
     ({"a": "published", "b": "run"}, ["b", "a"]),
     ({"a": "published", "c": "import", "b": "run"}, ["b", "c", "a"])],
)  # fmt: skip
def test_results_of_ones_own_come_first(origins: dict[str, str], expected: list[str]):
    runs = pl.DataFrame(
        {"collection_id": list(origins), "origin": list(origins.values())},
        schema_overrides={"collection_id": pl.String, "origin": pl.String},
    )
    assert measured_first(runs.select("collection_id"), runs) == expected


def test_workspaces_name_the_golden_sets_that_judge_something(demo_store: Path, tmp_path: Path):
    found = workspaces(Store.open(demo_store).read())
    assert next(iter(found)) == "python-docs"
    assert found["python-docs"] == ("python-docs-graded", "python-docs-second")
    assert workspaces(Lab().run("a").write(tmp_path / "s").read()) == {"lab": ()}
    assert workspaces(Store.open(tmp_path / "absent").read()) == {}


@pytest.mark.parametrize(("ranked", "first"), [(2, "part"), (10, "gold")])
def test_a_golden_set_that_runs_answer_comes_first(tmp_path: Path, ranked: int, first: str):
    grades = {f"q{number}": {"p": 5} for number in range(10)}
    lab = Lab().judge(grades).judge({name: grades[name] for name in ("q0", "q1")}, "part")
    lab.run("a", final={name: ["p"] for name in list(grades)[:ranked]})
    assert next(iter(workspaces(lab.write(tmp_path / "s").read())["lab"])) == first


@pytest.mark.parametrize("averages", [1, 2])
def test_a_few_averages_beside_rankings_have_no_say_in_the_measure(averages: int, tmp_path: Path):
    lab = Lab().judge({"q1": {"a": 5, "b": 3}, "q2": {"a": 4, "b": 5}})
    for name in ("one", "two"):
        lab.run(name, final={"q1": ["a", "b"], "q2": ["b", "a"]})
    usual = choices(lab.write(tmp_path / "before").read(), Scope("lab", "gold")).quality
    for place in range(averages):
        lab.run(f"r{place}", figures=[{"measure": "nDCG", "k": 10, "value": 0.5}])
    assert choices(lab.write(tmp_path / "after").read(), Scope("lab", "gold")).quality == usual
