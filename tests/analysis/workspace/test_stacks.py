from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from core.analysis.workspace.resolve import taken
from core.analysis.workspace.scope import Ids, Latency, Quality, Scope, resolve_runs
from core.analysis.workspace.stacks import runs_in
from core.axes import as_offered
from core.errors import InputError, UnknownNameError
from core.prices import load_books
from core.prices.cost import cost_per_1k
from core.records import Origin, Stack
from core.store import Snapshot, Store
from core.views import text
from tests.metrics import oracle
from tests.stores import Lab
from tests.views.made import AT_10, BOOK, DEMO, LAB, PAPER, every_k, table

GRADES = {"q1": {"p1": 5, "p2": 1}, "q2": {"p1": 4}, "q3": {"p3": 2}}


@pytest.fixture(scope="module")
def demo(demo_store: Path) -> Snapshot:
    return Store.open(demo_store).read()


@pytest.fixture(scope="module")
def paper(published_store: Path) -> Snapshot:
    return Store.open(published_store).read()


def lists(rows: pl.DataFrame) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for run, query, passage in rows.sort("rank").select("run_id", "query_id", "passage_id").iter_rows():
        found[run, query].append(passage)
    return found


@pytest.mark.parametrize(("name", "k"), [("RA-nWG", 10), ("N-Recall4+", 5), ("Precision4+", 20), ("Hit", 10)])
def test_the_demo_table_equals_a_naive_recomputation(demo: Snapshot, name: str, k: int):
    found = table(demo, every_k(demo), Quality(name, k))
    judged: dict[str, dict[str, int]] = defaultdict(dict)
    for query, passage, grade in (
        demo.judgements("python-docs-graded").select("query_id", "passage_id", "grade").iter_rows()
    ):
        judged[query][passage] = grade
    final = lists(demo.rankings(found["run_id"].to_list(), stage="final"))
    pool = lists(demo.rankings(found["run_id"].to_list(), stage="pool"))
    assert found.height == 10
    deepest = found.filter(pl.col("candidates") == 50)
    kept_by = {row["name"].replace(", K = 50", ""): row["run_id"] for row in deepest.iter_rows(named=True)}
    for row in found.iter_rows(named=True):
        run = row["run_id"]
        kept = kept_by.get(row["name"], run)  # nothing reads K: the ceiling is of the deepest pool
        assert row["proc_pool"] == deepest.filter(run_id=kept)["pool"].item()
        values, best, holes = [], [], []
        for query, grades in judged.items():
            ranking = final.get((run, query), [])
            candidates = pool.get((kept, query)) or final.get((kept, query), [])
            values.append(oracle.value(name, ranking, grades, k))
            best.append(oracle.value(f"PROC[{name}]", ranking, grades, k, pool=candidates))
            holes.append(oracle.value("Hole", ranking, grades, k))
        known = [value for value in values if value is not None and not np.isnan(value)]
        ceiling = [value for value in best if value is not None and not np.isnan(value)]
        assert row["n"] == len(known)
        assert row["quality"] == pytest.approx(np.mean(known), abs=1e-12)
        assert row["proc"] == pytest.approx(np.mean(ceiling), abs=1e-12)
        share = np.mean(known) / np.mean(ceiling) if any(ceiling) else None
        assert row["pct_proc"] == (None if share is None else pytest.approx(share, abs=1e-12))
        assert row["hole"] == pytest.approx(np.mean(holes), abs=1e-12)
        assert row["quality_low"] <= row["quality"] <= row["quality_high"]
        assert row["quality"] <= row["proc"] + 1e-12
        assert row["quality_basis"] == "measured"


def test_demo_latency_and_cost_equal_a_naive_recomputation(demo: Snapshot):
    found = table(demo, DEMO)
    timings = demo.timings(found["run_id"].to_list())
    priced = cost_per_1k(demo.usage(found["run_id"].to_list()), BOOK)
    for row in found.iter_rows(named=True):
        own = timings.filter(pl.col("run_id") == row["run_id"])
        total = own.group_by("query_id", "repeat").agg(pl.col("ms").sum())
        medians = total.group_by("query_id").agg(pl.col("ms").median())["ms"].to_numpy()
        assert row["latency_ms"] == pytest.approx(np.median(medians))
        low, high = row["latency_low"], row["latency_high"]  # withheld where a busy machine leaves too few
        assert (low is None) == (high is None)
        assert low is None or low <= row["latency_ms"] <= high
        assert row["latency_n"] == len(medians)
        costs = priced.filter(pl.col("run_id") == row["run_id"])["usd_per_1k"]
        assert row["cost"] == pytest.approx(costs.sum())
        assert row["cost"] > 0


def test_rows_are_ordered_by_unique_names_and_k(demo: Snapshot, paper: Snapshot):
    for found in (table(demo, DEMO), table(paper, PAPER)):
        names = found["name"].str.replace(r"(, )?K = \d+", "").to_list()
        keys = list(zip(names, found["candidates"].fill_null(0), strict=True))
        assert keys == sorted(keys)
        assert found["name"].is_unique().all()


def test_a_k_that_nothing_reads_stands_in_no_name_but_of_runs_that_differ_in_it_alone(demo: Snapshot):
    found = runs_in(demo, every_k(demo))
    unread = found.filter(pl.col("reranker") == "none")
    assert set(unread.filter(candidates=10)["name"].str.contains("K = ")) == {False}
    assert set(unread.filter(candidates=50)["name"].str.ends_with("K = 50")) == {True}


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("BM25, K = 10", "BM25"),
        ("BM25", "BM25"),
        ("e + r, K = 10", "e + r, K = 10"),
        ("BM25 ⊕ e · rrf 1 : 2", "BM25 ⊕ e · rrf 1 : 2 constant 10"),
        ("BM25 ⊕ e, K = 50 · rrf 1 : 2", "BM25 ⊕ e · rrf 1 : 2 constant 10"),
        ("BM25 ⊕ e · rrf 1 : 3", "BM25 ⊕ e · rrf 1 : 3"),
        ("BM25 ⊕ e · rrf 1 : 4 constant 10", "BM25 ⊕ e · rrf 1 : 4"),
        ("BM25 ⊕ e, K = 50 · rrf 1 : 4 constant 10 depth 50", "BM25 ⊕ e · rrf 1 : 4"),
        ("BM25 ⊕ e · rrf constant 10", "BM25 ⊕ e · rrf constant 10"),
        ("BM25 ⊕ e · rrf 1 : 2 constant 20", "BM25 ⊕ e · rrf 1 : 2 constant 20"),
        (3, 3),
    ],
)
def test_links_to_names_of_before_still_find_their_stack(asked: object, found: object):
    names = ["BM25", "a + r, K = 1", 3, "BM25 ⊕ e · rrf 1 : 2 constant 10", "BM25 ⊕ e · rrf 1 : 4"]
    assert as_offered(asked, names) == found
    twice = [*names, "BM25 ⊕ e · rrf 1 : 2 constant 20"]  # a short name that now stands for two is neither
    assert as_offered("BM25 ⊕ e · rrf 1 : 2", twice) == "BM25 ⊕ e · rrf 1 : 2"


def test_a_stored_label_that_hides_a_setting_is_completed_and_still_finds_its_run(tmp_path: Path):
    weighted = {"method": "rrf", "constant": 10, "weights": [1, 2], "depth": 100}
    lab = (
        Lab()
        .run("a", label="BM25 ⊕ e · rrf 1 : 2", spec={"fusion": weighted})
        .run("b", label="BM25 ⊕ e · rrf 1 : 2 constant 20", spec={"fusion": {**weighted, "constant": 20}})
        .run("c", label="mine · rrf 1 : 2")
        .run("d", label="e · convex", spec={"fusion": {"method": "convex", "normalise": "minmax"}})
    )
    runs = runs_in(lab.write(tmp_path / "s").read(), Scope("lab"))
    assert dict(runs.select("run_id", "name").iter_rows()) == {
        "a": "BM25 ⊕ e · rrf 1 : 2 constant 10",
        "b": "BM25 ⊕ e · rrf 1 : 2 constant 20",
        "c": "mine · rrf 1 : 2",
        "d": "e · convex",
    }
    assert taken(runs, "BM25 ⊕ e · rrf 1 : 2") == "a"


@pytest.mark.parametrize(
    ("fusion", "said", "label"),
    [
        ({"constant": 10, "weights": [1, 1.3]}, "rrf 1 : 1.3", "rrf 1 : 1.3 constant 10"),
        ({"constant": 10, "depth": 50, "weights": [2, 1]}, "rrf 2 : 1", "rrf 2 : 1 depth 50 constant 10"),
        ({"constant": 10}, "rrf constant 10", "rrf constant 10"),
    ],
)
def test_a_name_holds_settings_that_set_apart_and_is_found_by_longer_and_shorter_ones(
    fusion: dict[str, object], said: str, label: str, tmp_path: Path
):
    spec = {"sparse": "bm25", "embedder": "e", "candidates": 50, "reranker": "none"}
    stack = Stack({**spec, "fusion": {"method": "rrf", "depth": 100, **fusion}})
    assert stack.label == f"BM25 ⊕ e, K = 50 · {label}"
    plain = Lab().run("a", label=stack.label, spec=stack.spec).run("b", label="BM25 ⊕ e, K = 50", spec=spec)
    snapshot = plain.write(tmp_path / "plain").read()
    runs = runs_in(snapshot, Scope("lab"))
    assert runs["name"].to_list() == ["BM25 ⊕ e", f"BM25 ⊕ e · {said}"]
    for name in (f"BM25 ⊕ e · {said}", f"BM25 ⊕ e · {label}", stack.label, f"BM25 ⊕ e, K = 50 · {said}", "a"):
        assert taken(runs, name) == "a"
        assert resolve_runs(snapshot.runs("lab"), [name]) == ["a"]
    with pytest.raises(UnknownNameError):
        taken(runs, f"BM25 ⊕ e · {label.replace('10', '20')}")


def test_a_choice_of_runs_changes_no_name_and_two_constants_stay_in_both_names(tmp_path: Path):
    fusion = {"method": "rrf", "depth": 100, "weights": [1, 2]}
    lab = Lab()
    for run, constant in (("a", 10), ("b", 20)):
        lab = lab.run(
            run, label=f"e · rrf 1 : 2 constant {constant}", spec={"fusion": {**fusion, "constant": constant}}
        )
    snapshot = lab.write(tmp_path / "s").read()
    runs = runs_in(snapshot, Scope("lab", None, ("b",)))
    assert runs["name"].to_list() == ["e · rrf 1 : 2 constant 20"]
    with pytest.raises(UnknownNameError):
        taken(runs_in(snapshot, Scope("lab")), "e · rrf 1 : 2")
    with pytest.raises(InputError, match="2 runs"):
        resolve_runs(snapshot.runs("lab"), ["e · rrf 1 : 2"])


def test_runs_that_share_a_label_are_told_apart(tmp_path: Path):
    lab = Lab().run("a", label="same").run("b", label="same").run("c", label="own")
    runs = runs_in(lab.write(tmp_path / "s").read(), Scope("lab"))
    assert runs["name"].to_list() == ["own", "same · a", "same · b"]


def test_axes_of_the_wrong_kind_are_unknown_and_break_nothing(tmp_path: Path):
    lab = Lab().run("a", spec={"dim": "many", "candidates": 20, "mode": ["odd"], "index": None})
    row = runs_in(lab.write(tmp_path / "s").read(), Scope("lab")).row(0, named=True)
    assert row["dim"] is None
    assert row["candidates"] == 20


def test_a_run_that_is_not_there_is_an_error_that_names_it(demo: Snapshot):
    with pytest.raises(UnknownNameError, match="gone"):
        runs_in(demo, Scope("python-docs", None, ("gone",)))


def test_an_empty_collection_has_an_empty_table(tmp_path: Path):
    found = table(Lab().judge(GRADES).write(tmp_path / "s").read(), LAB)
    assert found.is_empty()
    assert {"quality", "latency_ms", "cost", "name"} <= set(found.columns)


def test_a_choice_of_runs_is_a_part_of_the_table(demo: Snapshot):
    whole = table(demo, DEMO)
    some = tuple(whole["run_id"][1:4])
    part = table(demo, Scope("python-docs", "python-docs-graded", some))
    assert_frame_equal(part, whole[1:4])


def test_ranked_queries_without_judgements_are_left_out_and_counted(tmp_path: Path):
    lab = Lab().judge(GRADES).run("a", final={"q1": ["p1"], "q9": ["p1"], "q8": ["p1"]})
    row = table(lab.write(tmp_path / "s").read(), LAB).row(0, named=True)
    assert row["unjudged_queries"] == 2
    assert row["n"] == 2  # q3 has nothing that counts; q2 is judged, not ranked, and scores 0
    assert row["quality"] == pytest.approx(0.5)


def test_a_run_without_pool_could_choose_from_its_own_ranking(tmp_path: Path):
    lab = Lab().judge(GRADES)
    lab.run("own", final={"q1": ["p2", "p1"], "q2": ["p9"]})
    lab.run("pooled", final={"q1": ["p2"], "q2": ["p9"]}, candidates={"q1": ["p2", "p1"], "q2": ["p1", "p9"]})
    found = table(lab.write(tmp_path / "s").read(), LAB, Quality("RA-nWG", 1))
    assert dict(found.select("name", "proc").iter_rows()) == {"own": 0.5, "pooled": 1.0}


def test_nothing_known_is_null_with_a_reason_and_never_zero(tmp_path: Path):
    row = table(Lab().run("a").write(tmp_path / "s").read(), Scope("lab")).row(0, named=True)
    for name in ("quality", "quality_low", "n", "proc", "hole", "latency_ms", "latency_basis", "cost"):
        assert row[name] is None
    assert row["latency_note"] == "no timings recorded"
    assert row["cost_note"] == "usage not recorded"


def test_a_price_that_is_not_in_the_book_makes_the_cost_unknown(tmp_path: Path):
    lab = Lab().run(
        "a", usage=[("rerank", "rerank-9", "input_tokens", 100.0), ("retrieve", "local-cpu", "cpu_ms", 1.0)]
    )
    row = table(lab.write(tmp_path / "s").read(), Scope("lab")).row(0, named=True)
    assert row["cost"] is None
    assert "rerank-9" in row["cost_note"]


def test_a_reported_cost_and_latency_win_over_nothing(tmp_path: Path):
    figures = [
        {"measure": "usd_per_1k", "value": 1.5},
        {"measure": "latency_p50", "stage": "total", "value": 120.0, "n": 30},
        {"measure": "RA-nWG", "k": 10, "value": 0.5, "low": 0.4, "high": 0.6, "n": 30},
        {"measure": "PROC[RA-nWG]", "k": 10, "value": 0.8, "n": 30},
    ]
    row = table(Lab().run("a", figures=figures).write(tmp_path / "s").read(), Scope("lab")).row(0, named=True)
    assert (row["cost"], row["cost_basis"], row["cost_note"]) == (1.5, "imported", None)
    assert (row["latency_ms"], row["latency_basis"], row["latency_n"]) == (120.0, "imported", 30)
    assert (row["quality"], row["quality_low"], row["quality_high"], row["n"]) == (0.5, 0.4, 0.6, 30)
    assert (row["proc"], row["pct_proc"], row["quality_basis"]) == (0.8, 0.625, "imported")


def test_a_measure_that_is_not_computed_here_comes_from_aggregates(tmp_path: Path):
    lab = Lab().judge(GRADES)
    lab.run("a", final={"q1": ["p1"]}, figures=[{"measure": "GMAP", "k": 10, "value": 0.7}])
    lab.run("b", origin=Origin.PUBLISHED, figures=[{"measure": "GMAP", "k": 5, "value": 0.1}])
    found = table(lab.write(tmp_path / "s").read(), LAB, Quality("GMAP", 10))
    assert found["quality"].to_list() == [0.7, None]
    assert found["n"].to_list() == [None, None]


def test_published_rows_say_what_their_cost_covers(paper: Snapshot):
    found = table(paper, PAPER)
    plain = found.filter((pl.col("reranker") == "none") & (pl.col("mode") == "dense"))
    embedding = {"voyage-3-large": 0.0036, "voyage-3.5": 0.0012, "voyage-3.5-lite": 0.0004}
    assert set(plain.select("embedder", pl.col("cost").round(9)).iter_rows()) == set(embedding.items())
    assert plain["cost_note"].unique().to_list() == ["the query's embedding is modelled at 20 tokens"]
    paid = found.filter((pl.col("reranker") == "rerank-2.5") & (pl.col("mode") == "dense"))
    assert set(paid.select("embedder", "candidates", pl.col("cost").round(9)).iter_rows()) == {
        (embedder, depth, round(0.025 * depth + embedding[embedder], 9))
        for embedder, depth in paid.select("embedder", "candidates").iter_rows()
    }
    assert found["cost_missing"].drop_nulls().unique().to_list() == ["reranking not recorded"]


def test_a_cost_of_which_a_stage_is_unpriced_is_a_lower_bound(paper: Snapshot):
    found = table(paper, PAPER, book=load_books()["clq-paper"])
    dense = found.filter(pl.col("mode") == "dense")
    assert dense["cost_missing"].unique().to_list() == ["embedding not priced"]
    assert dense["cost_least"].to_list() == dense["cost"].to_list()
    assert set(dense.filter(pl.col("reranker") == "rerank-2.5")["cost"].round(9)) == {1.25, 2.5, 3.75, 5.0}
    row = dense.filter(pl.col("candidates") == 50, pl.col("reranker") == "rerank-2.5").row(0, named=True)
    assert text.cost_of(row) == "≥ $1.25 / 1k, embedding not priced"
    hybrid = found.filter(pl.col("mode") == "hybrid", pl.col("reranker") != "none")
    assert hybrid["cost"].is_null().all()
    assert set(hybrid["cost_missing"]) == {"embedding not priced, reranking not recorded"}
    assert found["quality_basis"].unique().to_list() == ["published"]


def test_latency_of_the_reranker_alone(paper: Snapshot):
    found = table(paper, PAPER, AT_10, Latency("p50", "rerank"))
    plain = found.filter(pl.col("reranker") == "none")
    assert plain["latency_ms"].is_null().all()
    assert plain["latency_note"].unique().to_list() == ["this stack has no reranker"]


def test_runs_without_a_judged_query_in_common_have_no_quality(tmp_path: Path):
    lab = Lab().judge(GRADES).run("a", final={"q1": ["p1"]}).run("b", final={"q2": ["p1"]})
    found = table(lab.write(tmp_path / "s").read(), replace(LAB, shared=Ids.of(["q0"])))
    assert found.select("quality", "quality_low", "n").rows() == [(None, None, 0)] * 2
