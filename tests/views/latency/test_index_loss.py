"""Percent of flat by index, what passes and what is taken; the demo's small grid has such stacks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from core.analysis.workspace.scope import Latency
from core.analysis.workspace.view import View
from core.cli.app import app
from core.store import Store
from core.views.ask import Given
from core.views.blocks import Answer, Chart, Table
from core.views.latency import index_loss
from core.views.latency.index_loss import effort_of, family_of, options_of, passing, percent
from tests.views.made import AT_10, BOOK, DEMO


def test_percent_of_flat_is_a_ratio_of_means_over_shared_queries():
    own, flat = np.array([0.5, 0.4, np.nan, 0.3]), np.array([0.5, 0.5, 0.9, 0.5])
    value, low, high, n = percent(own, flat, 1)
    assert value == pytest.approx(80.0)  # 1.2 / 1.5
    assert n == 3
    assert low < value < high
    assert percent(flat, flat, 1)[:3] == pytest.approx((100.0, 100.0, 100.0))
    assert np.isnan(percent(own, 0 * own, 1)[0])


@pytest.mark.parametrize(
    ("index", "options", "effort"),
    [
        ("hnsw-f32", {"efSearch": 64}, 64),
        ("hnsw-f32", {"M": 32}, 128),
        ("ivf-flat", {"nprobe": 4, "lists": 100}, 4),
        ("ivf-flat", None, 8),
        ("int8", None, None),
        ("pgvector", {"probes": 3}, 3),
        ("pgvector", {}, None),
        ("lancedb", {"refine": 2}, 20),
        ("lancedb", {"probes": 4, "ef_search": 9}, 4),
    ],
)
def test_what_a_search_looks_at(index: str, options: dict[str, int] | None, effort: float | None):
    told = {"hnsw-f32": {"M": 32, "efSearch": 128}, "ivf-flat": {"lists": 64, "nprobe": 8},
            "pgvector": {"ef_search": 40, "probes": 10},
            "lancedb": {"method": "ivf_pq", "ef_search": 128, "probes": 20}}  # fmt: skip
    assert effort_of({"index": index, "index_params": options}, told) == effort
    if index == "ivf-flat" and options is None:
        assert effort_of({"index": index}) is None


@pytest.mark.parametrize(
    ("change", "alike"),
    [
        ({"index": "hnsw-f32"}, True),
        ({"index": "hnsw-f32", "index_params": {"efSearch": 64}}, True),
        ({"index": "int8", "candidates": 50}, True),  # which nothing reads
        ({"index": "int8", "dim": 64}, False),
        ({"index": "int8", "reranker": "bm25"}, False),
    ],
)
def test_which_stacks_differ_in_their_index_alone(change: dict[str, object], alike: bool):
    flat = {
        "mode": "dense",
        "embedder": "e",
        "dim": 256,
        "index": "flat",
        "candidates": 10,
        "reranker": "none",
    }
    assert (family_of({**flat, **change}) == family_of(flat)) == alike


def test_a_k_that_is_read_tells_families_apart():
    deep = {"mode": "dense", "embedder": "e", "index": "flat", "candidates": 50, "reranker": "bm25"}
    assert family_of(deep) != family_of({**deep, "candidates": 10})


def test_the_least_effort_that_is_surely_bearable_is_taken():
    rows = pl.DataFrame(
        [
            {"family": "f", "name": name, "index": "hnsw-f32", "effort": effort, "low": low, "high": 101.0,
             "percent": 99.9, "pct_proc": proc, "flat_proc": 0.8, "n": 50, "latency_ms": 1.0}
            for name, effort, low, proc in (
                ("16", 16.0, 97.0, 0.8), ("32", 32.0, 98.5, 0.7), ("64", 64.0, 98.5, 0.8),
                ("128", 128.0, 99.5, 0.8),
            )
        ],
        schema=index_loss.ROWS,
    )  # fmt: skip
    marked = passing(rows, 2.0)
    assert marked["passes"].to_list() == [False, False, True, True]
    assert marked.filter("taken")["name"].to_list() == ["64"]
    assert not passing(rows, 0.1)["taken"].any()
    other = rows.filter(name="64").with_columns(index=pl.lit("int8"), effort=None, name=pl.lit("slow"))
    for latency, taken in ((2.0, "64"), (0.5, "slow")):  # a kind without an effort, slower and faster
        both = pl.concat([rows, other.with_columns(latency_ms=latency)])
        assert passing(both, 2.0).filter("taken")["name"].to_list() == [taken]
    twice = rows.with_columns(options=pl.lit("refine 2"), name=pl.col("name") + "r", latency_ms=pl.lit(0.1))
    twice = twice.with_columns(low=pl.col("low").fill_null(0) + 2)  # 32 would pass, had %PROC not fallen
    both = passing(pl.concat([rows, twice]), 2.0)  # built otherwise: of each the least, of these the fastest
    assert both.filter("taken")["name"].to_list() == ["16r"]
    assert passing(rows, 1.0, higher_is_better=False)["passes"].to_list() == [True, False, True, True]


@pytest.mark.parametrize(
    ("others", "taken"),
    [
        ({}, "16"),
        ({"low_30": [95.0, 97.9, 98.5, 99.0]}, "64"),  # as at 30 the settings below lose too much
        ({"low_10": [99.0, 99.0, 97.0, 99.0]}, "128"),  # below the first that fails none passes
        ({"low_10": [99.0] * 4, "low_30": [97.0] * 4}, None),
        ({"low_30": [None, None, 98.5, 99.0]}, "16"),  # not ranked so far: it does not count
    ],
)
def test_a_setting_must_keep_its_quality_at_every_cutoff(
    others: dict[str, list[float | None]], taken: str | None
):
    names = ["16", "32", "64", "128"]
    rows = pl.DataFrame(
        {"family": "f", "name": names, "index": "hnsw-f32", "effort": [float(name) for name in names],
         "low": 99.0, "high": 101.0, "percent": 100.0, "n": 50, "latency_ms": 1.0,
         **{name: pl.Series(values, dtype=pl.Float64) for name, values in others.items()}}
    )  # fmt: skip
    rows = pl.concat([pl.DataFrame(schema=index_loss.ROWS), rows], how="diagonal_relaxed")
    assert passing(rows, 2.0).filter("taken")["name"].to_list() == ([taken] if taken else [])


def test_options_are_told_beside_what_a_search_looks_at():
    spec = {
        "index": "lancedb",
        "index_params": {"refine": 2, "probes": 4, "url_env": "U", "method": "ivf_pq"},
    }
    assert options_of(spec) == "method ivf_pq, refine 2"
    assert options_of({"index": "flat"}) == ""


def test_the_section_on_real_runs(demo_store: Path):
    view = View(Store.open(demo_store).read(), DEMO, quality=AT_10, latency=Latency(), book=BOOK)
    blocks = list(index_loss.index_loss.draw(view, Given({"ixloss": ["1"]})))
    assert {type(block) for block in blocks} >= {Answer, Chart, Table}
    table = next(block for block in blocks if isinstance(block, Table)).rows
    assert set(table["index"]) == {"hnsw-f32"}
    assert table["percent"].is_between(50, 150).all()
    assert table["percent_10"].equals(table["percent"], null_equal=False)
    assert table["percent_30"].null_count() == 0
    for factor, across in ((1.05, [0, 1]), (2.0, [3.0, 6.0])):  # equal but for noise of timing, and apart
        timed = table.head(2).with_columns(latency_ms=pl.Series([3.0, factor * 3.0]))
        drawn = index_loss.chart(timed, 2.0, 10)
        assert sorted(x for trace in drawn.data for x in trace.x) == across
    assert "@10 and @30" in next(block.details for block in blocks if isinstance(block, Answer))


@pytest.mark.slow
def test_the_command_names_the_setting_to_take(demo_store: Path):
    asked = ["--store", str(demo_store), "indexes", "tune", "--collection", "python-docs", "--format", "json"]
    done = CliRunner().invoke(app, [*asked, "--bearable", "50"])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    assert {row["index"] for row in rows} == {"hnsw-f32"}
    assert CliRunner().invoke(app, [*asked, "--bearable", "51"]).exit_code == 2
