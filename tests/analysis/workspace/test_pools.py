"""The pool that a ceiling is of: one rule for every table, page and command."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from core.analysis.per_query import query_table
from core.analysis.scoring.table import figures
from core.analysis.workspace.pools import lost
from core.analysis.workspace.query_sets import chosen_runs
from core.analysis.workspace.question import Question
from core.analysis.workspace.resolve import resolve
from core.analysis.workspace.scope import Quality, Scope
from core.analysis.workspace.scores import at_cutoff, evidence
from core.metrics import Measure
from core.records import Origin
from core.store import Snapshot
from core.views.curves.page import as_deep, curve_table
from core.views.queries.one_query import one_query
from core.views.what_if.scenarios import ScenarioChoice, matrix
from tests.stores import Lab
from tests.views.made import AT_10, BOOK, LAB, table

PLAIN = {"name": "s", "mode": "dense", "embedder": "e", "index": "flat", "reranker": "none"}
OTSU = {"method": "otsu"}
RANKED = ["x1", "x2", "a", "b", "x3", "c"]  # only a, b and c are worth anything
GRADES = {query: {"a": 5, "b": 4, "c": 3} | {f"x{n}": 1 for n in (1, 2, 3)} for query in ("q1", "q2")}
PROC = Measure("PROC[RA-nWG]", 10)


def lab(**specs: dict[str, object]) -> Lab:
    """Runs that rank K passages; of those with a reranker the pool is stored apart."""
    made = Lab().judge(GRADES).ask(dict.fromkeys(GRADES, "?"))
    for run, more in specs.items():
        spec = {**PLAIN, **more}
        k = int(str(spec["candidates"]))
        asked = list(more.get("asked", GRADES)) if isinstance(more.get("asked"), list) else list(GRADES)
        spec.pop("asked", None)
        lists = dict.fromkeys(asked, RANKED[:k])
        stored = {"candidates": lists} if spec["reranker"] != "none" else {}
        final = {query: ranked[::-1] if stored else ranked for query, ranked in lists.items()}
        made.run(run, spec=spec, final=final, pool=f"dense@{k}", **stored)
    return made


CASES = {
    "without a reranker the deepest pool counts": (
        {"two": {"candidates": 2}, "four": {"candidates": 4}, "six": {"candidates": 6}},
        {"two": "dense@6", "four": "dense@6", "six": "dense@6"},
    ),
    "with one the candidates that it saw": (
        {"two": {"candidates": 2, "reranker": "r"}, "six": {"candidates": 6, "reranker": "r"}},
        {"two": "dense@2", "six": "dense@6"},
    ),
    "a cutoff looks at the scores of its K": (
        {
            "two": {"candidates": 2, "cut": {"method": "otsu"}},
            "six": {"candidates": 6, "cut": {"method": "otsu"}},
        },
        {"two": "dense@2", "six": "dense@6"},
    ),
    "another stack's pool is another's": (
        {"two": {"candidates": 2}, "six": {"candidates": 6, "index": "hnsw-f32"}},
        {"two": "dense@2", "six": "dense@6"},
    ),
    "a deeper run that was asked fewer queries cannot stand for it": (
        {"two": {"candidates": 2}, "four": {"candidates": 4}, "six": {"candidates": 6, "asked": ["q1"]}},
        {"two": "dense@4", "four": "dense@4", "six": "dense@6"},
    ),
}


def written(path: Path, specs: dict[str, dict[str, object]]) -> Snapshot:
    return lab(**specs).write(path).read()


@pytest.mark.parametrize("case", CASES)
def test_the_pool_of_every_stack(case: str, tmp_path: Path):
    specs, pools = CASES[case]
    snapshot = written(tmp_path / "store", specs)
    rows = table(snapshot, LAB)
    assert dict(rows.select("run_id", "proc_pool").iter_rows()) == pools
    for run, proc, pool in rows.select("run_id", "proc", "proc_pool").iter_rows():
        alone = evidence(snapshot, [run], "gold", [PROC])
        assert at_cutoff(alone, PROC).mean() == pytest.approx(proc)
        depth = int(pool.removeprefix("dense@"))
        (side,) = one_query(snapshot, LAB, AT_10, "q1", {run: run}).sides
        assert set(side.oracle["passage_id"]) == {"a", "b", "c"} & set(RANKED[:depth])
        assert query_table(snapshot, LAB, AT_10, run).filter(query_id="q1")["best"].item() == side.best


def test_each_run_at_its_own_k_where_that_is_asked(tmp_path: Path):
    snapshot = written(tmp_path / "store", {"two": {"candidates": 2}, "six": {"candidates": 6}})
    deep = evidence(snapshot, ["two", "six"], "gold", [PROC])
    own = evidence(snapshot, ["two", "six"], "gold", [PROC], own_pools=True)
    assert (deep.pool_runs, own.pool_runs) == (("six", "six"), ("two", "six"))
    assert at_cutoff(own, PROC).mean(axis=1).tolist() == [0.0, 1.0]
    assert at_cutoff(deep, PROC).mean(axis=1).tolist() == [1.0, 1.0]


def test_reported_ceilings_go_by_the_same_rule(tmp_path: Path):
    made = Lab()
    for k, proc in ((10, 0.5), (50, 0.8), (200, None)):
        figures = [{"measure": "RA-nWG", "k": 10, "value": 0.4, "n": 9}]
        figures += [{"measure": "PROC[RA-nWG]", "k": 10, "value": proc, "n": 9}] if proc else []
        made.run(f"r{k}", spec={**PLAIN, "candidates": k}, pool=f"dense@{k}", figures=figures)
    rows = table(made.write(tmp_path / "store").read(), Scope("lab"))
    assert rows.sort("candidates").select("proc", "proc_pool").rows() == [
        *[(0.8, "dense@50")] * 2,
        (None, None),
    ]


@pytest.mark.parametrize(
    ("actual", "proc", "ordering", "retrieval"),
    [(0.5, 0.9, 0.4, 0.1), (0.5, 0.5, 0.0, 0.5), (0.8, 0.79, 0.0, 0.2), (1.0, 1.0, 0.0, 0.0)],
)
def test_what_is_lost_adds_up_to_one(actual: float, proc: float, ordering: float, retrieval: float):
    parts = lost(actual, proc)
    assert (parts["ordering"], parts["retrieval"]) == (pytest.approx(ordering), pytest.approx(retrieval))
    assert actual + parts["ordering"] + parts["retrieval"] == pytest.approx(1.0)


@pytest.mark.parametrize(("cutoff", "kept"), [(0, "two"), (2, "two"), (3, "four"), (6, "six"), (9, "six")])
def test_the_row_of_a_stack_ranks_as_far_as_the_cutoff_looks(cutoff: int, kept: str, tmp_path: Path):
    """A ranking that ends before the cutoff would score less than its stack: it is no smaller K of it."""
    depths = {"two": 2, "four": 4, "six": 6}
    made = lab(**{run: {"candidates": k} for run, k in depths.items()})
    made.runs = [replace(run, origin=Origin.RUN) for run in made.runs]
    reranked = {**PLAIN, "candidates": 2, "reranker": "r"}
    made.run("other", spec=reranked, final=dict.fromkeys(GRADES, "ab"), origin=Origin.RUN)
    snapshot = made.write(tmp_path / "store").read()
    assert set(chosen_runs(snapshot, replace(LAB, cutoff=cutoff))["run_id"]) == {kept, "other"}
    question = Question(collection="lab", measure=f"RA-nWG@{max(1, cutoff)}")
    view = resolve(question, snapshot, BOOK)
    assert set(view.table["run_id"]) == {kept if cutoff else "two", "other"}


def test_a_curve_goes_as_far_as_any_run_of_the_stack(tmp_path: Path):
    snapshot = written(tmp_path / "store", {"two": {"candidates": 2}, "six": {"candidates": 6}})
    every = snapshot.runs("lab").with_columns(name="label")
    alone = as_deep(snapshot, every.filter(run_id="two"), "gold")
    assert alone.select("run_id", "name").rows() == [("six", "two")]
    assert as_deep(snapshot, every, "gold")["run_id"].to_list() == every["run_id"].to_list()
    points = curve_table(snapshot, alone, "gold", Measure("RA-nWG"))
    assert points.filter(measure="RA-nWG")["k"].to_list() == [1, 2, 3, 4, 5, 6]


def test_a_deeper_measure_beside_the_row_is_of_the_whole_ranking(tmp_path: Path):
    """Quality at 2 keeps the row of K = 2; what stands beside it at 6 is that of the stack."""
    made = lab(two={"candidates": 2}, six={"candidates": 6})
    made.runs = [replace(run, origin=Origin.RUN) for run in made.runs]
    snapshot = made.write(tmp_path / "store").read()
    view = resolve(Question(collection="lab", measure="RA-nWG@2"), snapshot, BOOK)
    assert view.table["run_id"].to_list() == ["two"]
    (row,) = figures(snapshot, view.scope, [Quality("RA-nWG", 6)]).iter_rows(named=True)
    whole = evidence(snapshot, ["six"], "gold", [Measure("RA-nWG", 6)])
    assert row["run_id"] == "two"
    assert row["RA-nWG@6"] == pytest.approx(at_cutoff(whole, Measure("RA-nWG", 6)).mean())
    choice = ScenarioChoice("any", "asked", "two", "own")
    asked = {"quality": view.quality, "latency": view.latency}
    (told,) = matrix(snapshot, view.table, view.scope, [choice], BOOK, **asked).iter_rows(named=True)
    assert told["RA-nWG@30"] == pytest.approx(row["RA-nWG@6"])
