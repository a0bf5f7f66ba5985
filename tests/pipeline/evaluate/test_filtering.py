"""Sweeps over ways of filtering: planned, run, killed and resumed."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from core.analysis.stack_cost import start_from
from core.errors import InputError
from core.paths import PRICES
from core.pipeline.evaluate import Job, run_job
from core.pipeline.evaluate.session import Site
from core.pipeline.index import expected_bytes
from core.pipeline.sweep import parse as parse_spec
from core.pipeline.sweep.plan import plan
from core.pipeline.sweep.problems import SpecError
from core.pipeline.sweep.read import read_job
from core.prices import load_books
from core.store import Snapshot, Store
from core.work.sweep.words import scale_rows
from tests import warm
from tests.pipeline.evaluate import paid
from tests.pipeline.evaluate.filtered import AXES, EVERY, QUERIES, TENANTS, allowed, beir


def read(folder: Path, filtering: str = EVERY) -> tuple[Job, list[str]]:
    job, problems = read_job(parse_spec(AXES.format(filtering=filtering), "toml", folder=folder))
    return job, [str(problem) for problem in problems]


def work(folder: Path, made: Path) -> None:
    """Run what is left of the sweep into a store."""
    store = Store.open(folder / "store")

    def sink(batch: Any) -> None:
        with store.write("evaluate") as writer:
            writer.add(batch)

    held = store.read().runs()["run_id"].to_list()
    run_job(read(made)[0], sink, site=Site(work=folder / "evaluations"), held=held)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    folder = tmp_path_factory.mktemp("ways")
    work(folder, beir(folder / "made"))
    return Store.open(folder / "store").read()


def test_no_stack_but_an_unfiltered_one_shows_what_is_forbidden(swept: Snapshot):
    runs = swept.runs()
    specs = {run_id: json.loads(spec) for run_id, spec in runs.select("run_id", "spec").iter_rows()}
    assert len(specs) == 4 * (1 + 2 + 2)
    stored = [getattr(swept, table)("c").height for table in ("query_filters", "passage_metadata")]
    assert stored == [4, len(TENANTS)]
    leaks = dict.fromkeys(("none", "pre", "post:4", "partition:tenant"), 0)
    lengths: dict[tuple[str, str], set[int]] = {}
    for run_id, spec in specs.items():
        for stage in ("final", "pool"):
            rows = swept.rankings([run_id], stage=stage)
            for query in QUERIES:
                found = set(rows.filter(query_id=query)["passage_id"])
                leaks[spec["filtering"]] += len(found - allowed(query))
                if spec.get("index") == "flat" and spec["mode"] == "dense" and stage == "final":
                    lengths.setdefault((spec["filtering"], query), set()).add(len(found))
    assert leaks.pop("none") > 0
    assert set(leaks.values()) == {0}
    for query in QUERIES:
        full = {min(5, len(allowed(query)))}
        assert lengths["pre", query] == lengths["partition:tenant", query] == full
    assert max(lengths["post:4", "q2"]) < 4  # what post-filtering leaves is short for a small tenant


def test_names_and_times_say_the_way(swept: Snapshot):
    runs = swept.runs()
    labels = dict(runs.select("run_id", "label").iter_rows())
    said = {label.rpartition(" · ")[2] for label in labels.values()}
    assert said == {"unfiltered", "pre-filter", "post-filter 4 ×", "partition by tenant"}
    timed = (
        swept.timings(list(labels))
        .group_by("run_id")
        .agg(pl.col("repeat").max(), pl.col("query_id").n_unique())
    )
    assert timed.select("repeat", "query_id").unique().rows() == [(2, len(QUERIES))]
    ways = {json.loads(spec)["filtering"] for spec in runs["spec"]}
    assert len(ways) == 4
    recalls = swept.signals(list(labels)).filter(pl.col("signal") == "ann_recall")
    by_run = dict(recalls.group_by("run_id").agg(pl.col("value").mean()).iter_rows())
    flat = {
        json.loads(spec)["filtering"]: by_run.get(run_id)
        for run_id, spec in runs.select("run_id", "spec").iter_rows()
        if json.loads(spec).get("index") == "flat" and json.loads(spec)["mode"] == "dense"
    }
    assert flat["none"] is flat["pre"] is None  # which compare all
    assert flat["post:4"] is not None
    assert flat["post:4"] < 1  # of what exact filtered search finds
    manifest = next(json.loads(m) for m, s in runs.select("manifest", "spec").iter_rows() if "partition" in s)
    assert {about["partitions"] for about in manifest["indexes"].values()} == {3}
    rows = runs.filter(pl.col("spec").str.contains("partition")).select(
        "run_id", pl.col("label").alias("name")
    )
    asked = {**rows.row(0, named=True), "embedder": None, "reranker": None, "candidates": 5}
    assert start_from(swept, asked).amounts["partitions"].value == 3  # as the bill takes it


def test_a_plan_counts_the_partitions(tmp_path: Path):
    job, said = read(beir(tmp_path), 'filtering = ["pre", "partition:tenant"]')
    assert said == ["filtering: 3 partitions by tenant hold 4 to 500 passages; each is an index."]
    planned = plan(job)
    assert planned.steps["index"] == 4  # two kinds, whole and partitioned
    assert planned.steps["bm25"] == 2
    whole = plan(read(tmp_path, 'filtering = "pre"')[0])
    assert planned.resources.index_bytes > whole.resources.index_bytes
    assert "filtering" not in str(job.stacks[0].spec.get("index_params"))


def test_the_bill_knows_what_partitions_cost(tmp_path: Path):
    """Every partition is an index, grown by its share, with what an index takes at the least."""
    text = AXES.replace('"flat", "hnsw-f32"', '"ivf-flat", "qdrant-edge", "milvus"')
    text = text.replace('["sparse", "dense", "hybrid"]', '"dense"')
    spec = parse_spec(
        text.format(filtering='filtering = ["pre", "partition:tenant"]'), "toml", folder=beir(tmp_path)
    )
    job, _ = read_job(spec, to_run=False)  # The engines' packages are extras; a bill needs none of them.
    planned = plan(job)
    assert planned.partitions == {"partition:tenant": (500, 200, 4)}
    rows = {
        (row["index"], row["indexes"]): row
        for row in scale_rows(planned, 704_000, load_books(PRICES)["list"]).filter("asked").to_dicts()
    }
    assert rows.keys() == {(name, each) for name in ("ivf-flat", "qdrant-edge", "milvus") for each in (1, 3)}
    parts = [expected_bytes("ivf-flat", dim=16, passages=part) for part in (500_000, 200_000, 4_000)]
    assert rows["ivf-flat", 3]["memory_bytes"] == sum(parts) > rows["ivf-flat", 1]["memory_bytes"]
    assert {row["passages"] for row in rows.values()} == {704_000}
    for index in ("ivf-flat", "qdrant-edge"):
        assert rows[index, 3]["usd_per_month"] > rows[index, 1]["usd_per_month"]
    assert rows["milvus", 1]["usd_per_month"] is not None
    assert rows["milvus", 3]["usd_per_month"] is None  # what a server takes per collection is not known


def test_filters_are_honoured_unless_a_specification_says_otherwise(tmp_path: Path):
    beir(tmp_path)
    job, _ = read(tmp_path, "")
    assert {stack.spec["filtering"] for stack in job.stacks} == {"pre"}
    assert [asked.text if asked else None for asked in job.filters][-2:] == [
        '{"public":true,"tenant":["small","tiny"]}',
        None,
    ]
    assert (
        job.evaluation_id
        != read(beir(tmp_path / "other", {**QUERIES, "q4": ("plot an array", {})}))[0].evaluation_id
    )


def test_partitions_are_by_the_field_that_all_filters_ask_for(tmp_path: Path):
    job, _ = read(beir(tmp_path), 'filtering = "partition"')
    assert {stack.spec["filtering"] for stack in job.stacks} == {"partition:tenant"}
    both = {name: (text, {"public": True, "tenant": "big"}) for name, (text, _) in QUERIES.items()}
    with pytest.raises(InputError, match="All filters ask for public, tenant") as refused:
        read(beir(tmp_path / "both", both), 'filtering = "partition"')
    assert refused.value.do == "Name it: partition:FIELD, one of public, tenant."


@pytest.mark.parametrize(
    ("filters", "filtering", "said"),
    [
        ({"q0": ("sort", None)}, 'filtering = "pre"', "No query has a filter, so that filtering = 'pre'"),
        ({}, 'filtering = "partition:nobody"', "The field 'nobody' is of no passage"),
        ({}, 'filtering = "post"', "There is no way of filtering 'post'. Choose among none, pre, post:4"),
        ({}, 'filtering = "pre"\nindex = {name = "pq", nbits = 4}', "The index pq cannot filter while it"),
        (
            {},
            'filtering = "partition:tenant"\nindex = {name = "ivf-flat", lists = 10, nprobe = 3}',
            "The smallest partition by tenant is too small for it: ",
        ),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused_before_anything_runs(
    tmp_path: Path, filters: Any, filtering: str, said: str
):
    made = beir(tmp_path, filters or QUERIES)
    text = AXES if "index" not in filtering else AXES.replace('index = ["flat", "hnsw-f32"]\n', "")
    with pytest.raises((InputError, SpecError)) as refused:
        read_job(parse_spec(text.format(filtering=filtering), "toml", folder=made))
    assert said in str(refused.value)


def test_without_filters_nothing_is_asked_for(tmp_path: Path):
    job, said = read(beir(tmp_path, {"q0": ("sort a frame", None)}), "")
    assert not any("filtering" in stack.spec for stack in job.stacks)
    assert job.filters == ()
    assert job.corpora[None].fields is None
    assert not said


@pytest.mark.slow
def test_killed_and_resumed_it_ends_with_the_same(tmp_path: Path, swept: Snapshot):
    made, draw, killed = beir(tmp_path / "made"), np.random.default_rng(49), 0
    while True:
        process = warm.process(work, tmp_path, made)
        if killed < 5:
            time.sleep(float(draw.uniform(0.05, 0.9)))
            process.kill()
        process.join()
        assert process.exitcode in (-9, 0)
        killed += process.exitcode == -9
        if process.exitcode == 0:
            break
    assert killed
    found = Store.open(tmp_path / "store").read()
    ids = swept.runs()["run_id"].sort().to_list()
    assert found.runs()["run_id"].sort().to_list() == ids
    for stage in ("final", "pool"):
        one, other = (
            each.rankings(ids, stage=stage).sort("run_id", "query_id", "rank") for each in (swept, found)
        )
        assert one.equals(other)
    assert paid.folder_of(tmp_path).status() is not None
