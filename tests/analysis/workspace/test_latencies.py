from pathlib import Path

import polars as pl
import pytest

from core.analysis.workspace.figures.latencies import latencies
from core.analysis.workspace.scope import Latency, Scope
from core.analysis.workspace.stacks import runs_in
from core.records import Origin
from core.stats.latency import Generation, Speed
from core.store import Store
from tests.stores import Lab
from tests.views.made import PAPER

HYBRID = {"mode": "hybrid", "reranker": "r"}
DENSE = {"mode": "dense", "reranker": "none"}


def one(tmp_path: Path, latency: Latency | None = None, **run: object) -> dict[str, object]:
    snapshot = Lab().run("a", **run).write(tmp_path / "s").read()
    found = latencies(snapshot, runs_in(snapshot, Scope("lab")), latency or Latency())
    assert found.columns[0] == "run_id"
    return found.row(0, named=True)


def stage(
    name: str | None, value: float, measure: str = "latency_p50", n: int | None = 50
) -> dict[str, object]:
    return {"measure": measure, "stage": name, "value": value, "n": n}


def test_published_latencies_are_sums_of_stage_medians_and_say_so(published_store: Path):
    snapshot = Store.open(published_store).read()
    runs = runs_in(snapshot, PAPER)
    found = latencies(snapshot, runs, Latency()).join(runs.select("run_id", "mode", "reranker"), on="run_id")
    dense = found.filter(pl.col("mode") == "dense")
    figures = snapshot.aggregates(runs["run_id"].to_list()).filter(pl.col("measure") == "latency_p50")
    assert dense["latency_ms"].is_not_null().all()
    for row in dense.iter_rows(named=True):
        parts = figures.filter(pl.col("run_id") == row["run_id"])
        assert row["latency_ms"] == pytest.approx(parts["value"].sum())
        stages = 2 if row["reranker"] == "none" else 3
        assert parts.height == stages
        assert row["latency_note"] == f"sum of {stages} stage medians"
        assert row["latency_basis"] == "published"
        assert row["latency_low"] is None


def test_a_hybrid_published_stack_has_an_unknown_latency(published_store: Path):
    snapshot = Store.open(published_store).read()
    runs = runs_in(snapshot, PAPER).filter(pl.col("mode") == "hybrid")
    found = latencies(snapshot, runs, Latency())
    assert found.height == 3
    assert found["latency_ms"].is_null().all()
    assert found["latency_basis"].is_null().all()
    assert found["latency_note"].str.starts_with("not reported: ").all()
    assert found["latency_note"].str.contains("sparse").all()


@pytest.mark.parametrize(
    ("figures", "latency", "value", "note"),
    [
        ([], Latency(), None, "not reported: embed, retrieve"),
        ([stage("total", 9.0)], Latency(), 9.0, None),
        ([stage("embed", 1.0), stage("retrieve", 2.0)], Latency(), 3.0, "sum of 2 stage medians"),
        ([stage("embed", 1.0)], Latency(), None, "not reported: retrieve"),
        ([stage("embed", 1.0), stage("retrieve", 2.0), stage("total", 9.0)], Latency(), 9.0, None),
        ([stage("embed", 1.0, "latency_p95"), stage("retrieve", 2.0, "latency_p95")], Latency("p95"), None,
         "p95 of single stages do not add up"),
        ([stage("total", 9.0, "latency_p95")], Latency("p95"), 9.0, None),
        ([stage("total", 9.0)], Latency("p95"), None, "not reported: embed, retrieve"),
        ([stage("total", 9.0)], Latency("p50", "rerank"), None, "this stack has no reranker"),
    ],
)  # fmt: skip
def test_reported_latencies_of_a_dense_stack(
    tmp_path: Path, figures: list[dict[str, object]], latency: Latency, value: float | None, note: str | None
):
    row = one(tmp_path, latency, spec=DENSE, figures=figures)
    assert row["latency_ms"] == value
    assert row["latency_note"] == note
    assert row["latency_basis"] == (None if value is None else "imported")


@pytest.mark.parametrize(
    ("figures", "latency", "value", "note"),
    [
        ([stage("rerank", 5.0)], Latency("p50", "rerank"), 5.0, None),
        ([stage("rerank", 5.0, "latency_p95")], Latency("p95", "rerank"), 5.0, None),
        ([stage("rerank", 5.0)], Latency(), None, "not reported: embed, retrieve, sparse"),
        ([stage("total", 5.0)], Latency("p50", "rerank"), None, "not reported: rerank"),
    ],
)
def test_reported_latencies_of_a_hybrid_stack_with_reranker(
    tmp_path: Path, figures: list[dict[str, object]], latency: Latency, value: float | None, note: str | None
):
    row = one(tmp_path, latency, spec=HYBRID, figures=figures)
    assert (row["latency_ms"], row["latency_note"]) == (value, note)


def test_the_reranker_alone_is_not_the_path_of_a_stack_of_unknown_mode(tmp_path: Path):
    row = one(tmp_path, spec={"reranker": "r"}, figures=[stage("rerank", 5.0)])
    assert (row["latency_ms"], row["latency_note"]) == (None, "not reported: retrieve")


def test_a_stack_of_unknown_mode_without_figures_has_no_timings(tmp_path: Path):
    row = one(tmp_path, spec={})
    assert (row["latency_ms"], row["latency_note"]) == (None, "no timings recorded")


def test_measured_times_win_over_reported_ones(tmp_path: Path):
    times = {"embed": [1.0] * 9, "retrieve": [2.0] * 9}
    row = one(tmp_path, spec=DENSE, origin=Origin.RUN, ms=times, figures=[stage("total", 99.0)])
    assert (row["latency_ms"], row["latency_basis"], row["latency_n"]) == (3.0, "measured", 9)
    assert row["latency_low"] == row["latency_high"] == 3.0


@pytest.mark.parametrize(
    ("origin", "basis"),
    [(Origin.RUN, "measured"), (Origin.IMPORT, "imported"), (Origin.PUBLISHED, "published")],
)
def test_times_of_single_queries_are_measured_only_where_the_stack_ran_here(
    tmp_path: Path, origin: Origin, basis: str
):
    row = one(tmp_path, spec=DENSE, origin=origin, ms={"retrieve": [2.0] * 9})
    assert row["latency_basis"] == basis


@pytest.mark.parametrize(("n", "known"), [(59, False), (60, True)])
def test_a_p95_needs_sixty_queries(tmp_path: Path, n: int, known: bool):
    times = {"retrieve": [float(ms) for ms in range(1, n + 1)]}
    row = one(tmp_path, Latency("p95"), spec=DENSE, origin=Origin.RUN, ms=times)
    assert (row["latency_ms"] is not None) is known
    assert (row["latency_basis"] == "measured") is known
    if not known:
        assert "59 queries are too few" in str(row["latency_note"])


def test_the_n_of_a_sum_is_that_of_its_smallest_part(tmp_path: Path):
    figures = [stage("embed", 1.0, n=50), stage("retrieve", 2.0, n=20)]
    row = one(tmp_path, spec=DENSE, origin=Origin.PUBLISHED, figures=figures)
    assert (row["latency_n"], row["latency_basis"]) == (20, "published")


@pytest.mark.parametrize(("n", "known"), [(298, False), (299, True)])
def test_a_p99_needs_299_queries(tmp_path: Path, n: int, known: bool):
    row = one(tmp_path, Latency("p99"), spec=DENSE, ms={"retrieve": [float(ms) for ms in range(1, n + 1)]})
    assert (row["latency_ms"] is not None) is known
    assert known or "at least 299" in str(row["latency_note"])


def test_a_withheld_percentile_does_not_hide_a_reported_one(tmp_path: Path):
    figures = [stage("total", 9.0, "latency_p95")]
    row = one(tmp_path, Latency("p95"), spec=DENSE, ms={"retrieve": [1.0] * 20}, figures=figures)
    assert (row["latency_ms"], row["latency_basis"], row["latency_n"]) == (9.0, "imported", 50)


SPEED = Speed(100, 50, 10)
MODEL = Generation(SPEED, chunks=10, tokens_per_chunk=100, prompt_tokens=0, output_tokens=5)
BOTH = Latency("p50", "end-to-end", generation=MODEL)


def test_end_to_end_adds_the_timed_generator(tmp_path: Path):
    times = {"retrieve": [1.0, 2.0, 3.0], "generate": [10.0, 20.0, 30.0], "first_token": [1.0] * 3}
    row = one(tmp_path, BOTH, spec=DENSE, origin=Origin.RUN, ms=times)
    assert (row["latency_ms"], row["latency_basis"], row["latency_note"]) == (22.0, "measured", None)


@pytest.mark.parametrize(
    ("run", "added"),
    [
        ({}, 100 + 50 + 50),
        ({"spec": {**DENSE, "chunks_sent": 2}}, 100 + 10 + 50),
        ({"usage": [("generate", "g", "input_tokens", 4000.0)]}, 100 + 200 + 50),
    ],
)
def test_end_to_end_models_a_generator_that_was_not_timed(
    tmp_path: Path, run: dict[str, object], added: float
):
    row = one(tmp_path, BOTH, **{"spec": DENSE, "ms": {"retrieve": [1.0, 2.0, 3.0]}, **run})
    assert (row["latency_ms"], row["latency_basis"]) == (2 + added, "modelled")
    assert row["latency_note"] == "retrieval imported, generation modelled"


def test_end_to_end_adds_to_reported_figures(tmp_path: Path):
    row = one(tmp_path, BOTH, spec=DENSE, figures=[stage("embed", 1.0), stage("retrieve", 2.0)])
    assert (row["latency_ms"], row["latency_basis"]) == (203.0, "modelled")
    assert row["latency_note"] == "retrieval imported (sum of 2 stage medians), generation modelled"


@pytest.mark.parametrize("run", [{"ms": {"retrieve": [1.0] * 3}}, {"figures": [stage("total", 3.0)]}, {}])
def test_end_to_end_without_a_model_is_unknown(tmp_path: Path, run: dict[str, object]):
    row = one(tmp_path, Latency("p50", "end-to-end"), spec=DENSE, **run)
    assert row["latency_ms"] is None
    assert row["latency_note"] == "generation was not timed: give its speed in Settings"


def test_a_mean_is_told_and_is_no_percentile(tmp_path: Path):
    figures = [stage("total", 12.34, "latency_mean"), stage("retrieve", 2.0, "latency_mean")]
    found = one(tmp_path, spec=DENSE, figures=figures)
    assert found["latency_ms"] is None
    assert found["latency_note"] == "only a mean was reported: 12.3 ms a query"
