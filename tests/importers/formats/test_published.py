import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from core.decide.marginal import COMPONENTS
from core.errors import InputError
from core.importers.formats.published import DEFAULT_PATH, disagreements, published_batch, read_figures
from core.prices import load_books
from core.prices.cost import cost_per_1k, scope_of, totals
from core.records import Origin
from core.store import Store
from core.tables import TABLES
from core.work.imports.imports import store_import
from tests.importers.helpers import read, refusal, rows, up

CASES = json.loads((Path(__file__).parents[2] / "cases" / "clq.json").read_text(encoding="utf-8"))
BATCH = published_batch()
RUNS = {run.run_id: run for run in BATCH.runs}
AGGREGATES = BATCH.frames["aggregates"]
FIGURES = read_figures()


def value(run_id, measure, k=None, stage=None):
    found = AGGREGATES.filter(
        (pl.col("run_id") == run_id)
        & (pl.col("measure") == measure)
        & pl.col("k").eq_missing(k)
        & pl.col("stage").eq_missing(stage)
    )
    return found["value"].item() if found.height else None


def by_label(label):
    return next(run for run in BATCH.runs if run.label == label)


def test_no_two_tables_disagree():
    assert disagreements(FIGURES).height == 0


def test_a_disagreement_is_found_and_refused(tmp_path):
    text = DEFAULT_PATH.read_text(encoding="utf-8")
    changed = tmp_path / "tables.csv"
    row = "8,voyage-3.5,1024,dense,flat,rerank-2.5,50,ra_nwg,10,0.804"
    assert row in text
    changed.write_text(text.replace(row, row.replace("0.804", "0.805")), encoding="utf-8")
    found = disagreements(read_figures(changed))
    assert found["tables"].to_list() == [[2, 5, 8]]
    with pytest.raises(InputError, match="ra_nwg"):
        published_batch(changed)


def test_ceilings_of_two_rerankers_must_agree(tmp_path):
    changed = tmp_path / "tables.csv"
    row = "21,voyage-3.5,512,dense,flat,,50,proc_ra_nwg,10,0.921"
    text = DEFAULT_PATH.read_text(encoding="utf-8")
    assert row in text
    changed.write_text(text.replace(row, row.replace("0.921", "0.920")), encoding="utf-8")
    assert disagreements(read_figures(changed))["tables"].to_list() == [[5, 21]]


@pytest.mark.parametrize("text", ["", "table,value\n1,x\n"])
def test_unreadable_figures_are_named(tmp_path, text):
    bad = tmp_path / "tables.csv"
    bad.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"tables\.csv"):
        published_batch(bad)
    with pytest.raises(InputError, match=r"absent\.csv"):
        published_batch(tmp_path / "absent.csv")


def test_runs_are_distinct_stacks_and_follow_the_schemas():
    assert len(RUNS) == len(BATCH.runs) == len({run.stack.stack_id for run in BATCH.runs}) == 54
    assert {run.origin for run in BATCH.runs} == {Origin.PUBLISHED}
    for name, held in BATCH.frames.items():
        assert held.schema == TABLES[name]
        assert set(held["run_id"]) <= set(RUNS)
    keys = AGGREGATES.select("run_id", "measure", "k", "stage")
    assert keys.is_duplicated().sum() == 0


def test_reading_twice_gives_the_same(tmp_path):
    again = published_batch()
    assert again.runs == BATCH.runs
    assert again.frames["aggregates"].equals(AGGREGATES)
    assert again.frames["usage"].equals(BATCH.frames["usage"])


def test_every_printed_quality_is_in_a_run():
    printed = FIGURES.filter(pl.col("metric").is_in(["ra_nwg", "n_recall_4plus", "n_recall_5"]))
    distinct = printed.select("embedder", "dim", "mode", "ann", "reranker", "candidates_k", "metric", "k")
    kept = AGGREGATES.filter(pl.col("measure").is_in(["RA-nWG", "N-Recall4+", "N-Recall5"]))
    assert kept.height == distinct.unique().height


@pytest.mark.parametrize(
    ("run_id", "pool", "candidates"),
    [
        ("clq-voyage-3.5-1024-dense-flat", None, None),
        ("clq-voyage-3.5-1024-dense-hnsw-int8", None, None),
        ("clq-voyage-3.5-512-dense-flat-rerank-2.5-200", "dense@200", 200),
        ("clq-voyage-3.5-1024-hybrid-rrf-flat-100", "rrf100@100", 100),
        ("clq-voyage-3.5-1024-hybrid-rrf-flat-rerank-2.5-50", "post-rerank@50", 50),
    ],
)
def test_pool_conventions(run_id, pool, candidates):
    run = RUNS[run_id]
    assert (run.pool, run.stack.spec.get("candidates")) == (pool, candidates)


def test_ceilings_stay_with_their_pool():
    lite = by_label("voyage-3.5-lite 1024 d + rerank-2.5-lite, K = 100")
    full = by_label("voyage-3.5-lite 1024 d + rerank-2.5, K = 100")
    assert value(lite.run_id, "PROC[RA-nWG]", 10) == value(full.run_id, "PROC[RA-nWG]", 10) == 0.887
    hybrid = "clq-voyage-3.5-1024-hybrid-rrf-flat-rerank-2.5-50"
    assert value(hybrid, "PROC[RA-nWG]", 30) == 0.988
    assert value(f"{hybrid[:-3]}-lite-50", "PROC[RA-nWG]", 30) is None
    assert value("clq-voyage-3.5-1024-dense-flat", "PROC[RA-nWG]", 10) is None


def test_no_quality_exceeds_its_ceiling():
    pairs = AGGREGATES.join(
        AGGREGATES.with_columns(pl.col("measure").str.extract(r"^PROC\[(.+)\]$")).drop_nulls("measure"),
        on=["run_id", "measure", "k"],
        suffix="_proc",
    )
    assert pairs.height > 200
    assert (pairs["value"] <= pairs["value_proc"]).all()


@pytest.mark.parametrize("row", CASES["pct_proc"]["rows"], ids=lambda row: f"{row['measure']}@{row['k']}")
def test_percentage_of_the_ceiling_from_the_stored_runs(row):
    run_id = "clq-voyage-3.5-1024-hybrid-rrf-flat-rerank-2.5-50"
    actual = value(run_id, row["measure"], row["k"])
    proc = value(run_id, f"PROC[{row['measure']}]", row["k"])
    assert 100 * actual / proc == pytest.approx(row["percent"], abs=0.05)


@pytest.mark.parametrize("row", CASES["efficiency"]["rows"], ids=lambda row: row["stack"])
def test_efficiency_from_the_stored_runs(row):
    run = by_label(row["stack"])
    parts = [value(run.run_id, measure, k) for measure, k in COMPONENTS]
    quality = run.manifest["printed"]["avg_quality"] if None in parts else parts
    latency = value(run.run_id, "latency_p50", stage="rerank")
    assert np.mean(quality) / (latency / 1000) == pytest.approx(row["efficiency"], abs=0.002)
    assert run.manifest["printed"]["efficiency"] == row["efficiency"]


def test_every_stage_of_a_dense_path_has_a_latency_and_a_hybrid_one_has_none():
    printed = AGGREGATES.filter(pl.col("measure") == "latency_p50")
    for run in BATCH.runs:
        found = printed.filter(pl.col("run_id") == run.run_id)["stage"].to_list()
        expected = [] if run.stack.spec["mode"] == "hybrid" else run.manifest["stages"]
        assert sorted(found) == sorted(expected), run.run_id
    reranked = "clq-voyage-3.5-1024-dense-flat-rerank-2.5-50"
    stages = ("embed", "retrieve", "rerank")
    assert [value(reranked, "latency_p50", stage=stage) for stage in stages] == [138.8, 47.6, 332.9]
    hnsw = "clq-voyage-3.5-1024-dense-hnsw-f32"
    assert [value(hnsw, "latency_p50", stage=stage) for stage in stages] == [138.8, 35.4, None]


def test_reranker_latency_is_over_fifteen_queries():
    rows = AGGREGATES.filter(pl.col("stage") == "rerank")
    assert rows.height == 40
    assert set(rows["n"]) == {15}


def test_costs_are_the_papers_and_unknown_stays_unknown():
    costs = cost_per_1k(BATCH.frames["usage"], load_books()["clq-paper"])
    scope = {run.run_id: scope_of(run.manifest, run.stack.spec) for run in BATCH.runs}
    found = totals(costs, list(RUNS), scope)
    assert dict(
        found.filter(pl.col("run_id").str.contains("hybrid")).select("run_id", "usd_per_1k").rows()
    ) == {
        "clq-voyage-3.5-1024-hybrid-rrf-flat-100": 0.0,
        "clq-voyage-3.5-1024-hybrid-rrf-flat-rerank-2.5-50": None,
        "clq-voyage-3.5-1024-hybrid-rrf-flat-rerank-2.5-lite-50": None,
    }
    by_run = dict(found.select("run_id", "usd_per_1k").rows())
    assert by_run["clq-voyage-3.5-1024-dense-flat"] == 0.0
    printed = FIGURES.filter(pl.col("metric") == "rerank_usd_per_1k_queries")
    assert printed.height == 5
    for row in printed.iter_rows(named=True):
        label = f"{row['embedder']} {row['dim']} d + {row['reranker']}, K = {row['candidates_k']}"
        assert by_run[by_label(label).run_id] == pytest.approx(row["value"])
    assert set(found.filter(pl.col("usd_per_1k") > 0)["basis"]) == {"modelled"}


def test_scenarios_are_named():
    named = {run.manifest["scenario"]: run.label for run in BATCH.runs if "scenario" in run.manifest}
    assert named == {
        "Baseline": "voyage-3.5 1024 d + rerank-2.5, K = 50",
        "Cost saver": "voyage-3.5-lite 1024 d + rerank-2.5-lite, K = 50",
        "Quality push": "voyage-3.5 2048 d + rerank-2.5, K = 100",
        "Efficient small-dim": "voyage-3.5 512 d + rerank-2.5, K = 100",
        "High-K check": "voyage-3.5 1024 d + rerank-2.5, K = 200",
    }


def test_high_k_discontinuity_is_noted():
    noted = [
        run.label for run in BATCH.runs if any("discontinuity" in note for note in run.manifest["notes"])
    ]
    assert len(noted) == 5
    assert all("+ rerank-2.5, K = " in label for label in noted)


@pytest.mark.slow
def test_the_folder_is_imported_as_any_other(tmp_path):
    made = read(DEFAULT_PATH.parent)
    assert {run.run_id for run in made.runs} == {run.run_id for run in BATCH.runs}
    assert len(made.runs) == 54
    assert {table: rows(made, table).height for table in made.frames} == {
        table: frame.lazy().collect().height for table, frame in BATCH.frames.items()
    }
    assert made.collections == BATCH.collections
    files = {path.name for path in DEFAULT_PATH.parent.iterdir()}
    file_reports = {each.file.rsplit("/", 1)[-1]: each for each in made.reports}
    assert file_reports.keys() == files
    assert not file_reports["clq_tables.csv"].left_out
    assert {name for name, each in file_reports.items() if each.kind == "file"} == files - {"clq_tables.csv"}
    store = Store.open(tmp_path / "store")
    assert store_import(store, made, "published").fresh
    again = read(DEFAULT_PATH.parent, known_collections=frozenset({"clq-paper"}))
    assert not store_import(store, again, "published").fresh


@pytest.mark.parametrize("value", ["", "NaN", "inf", "high"])
def test_a_row_without_a_figure_is_refused(value, tmp_path):
    lines = DEFAULT_PATH.read_text().splitlines()
    cells = lines[5].split(",")
    cells[9] = value
    lines[5] = ",".join(cells)
    assert "clq.csv" in refusal(up("clq.csv", "\n".join(lines)))


OFFERS = {
    "published": ("published", DEFAULT_PATH.read_bytes()),
}
