"""Sweeps over ways of filtering whose indexes are databases: stopped, killed and resumed."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from core.pipeline.evaluate import Job, Status, run_job
from core.pipeline.evaluate.session import Site
from core.pipeline.index.outside import ALLOW
from core.pipeline.sweep import parse as parse_spec
from core.pipeline.sweep.plan import plan
from core.pipeline.sweep.read import read_job
from core.store import Snapshot, Store
from tests import warm
from tests.pipeline.engines import FILTERING, kind_of
from tests.pipeline.evaluate.filtered import AXES, QUERIES, allowed, beir

pytestmark = [
    pytest.mark.slow,
    pytest.mark.extras,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
WAYS = 'filtering = ["none", "pre", "post:4", "partition:tenant"]\nchunks_sent = 5'
KILLS = 6
TOLD = "told.txt"
MEASURED = ("ms", "cpu_ms", "amount")
"""Columns that differ from one run to the next."""


def read(made: Path, name: str, options: Mapping[str, str]) -> Job:
    """The sweep over the ways of filtering with an index of an engine."""
    index = ", ".join(f'{key} = "{value}"' for key, value in {"kind": kind_of(name), **options}.items())
    text = AXES.replace("{filtering}", WAYS).replace('"flat", "hnsw-f32"', f"{{{index}}}")
    return read_job(
        parse_spec(text.replace('["sparse", "dense", "hybrid"]', '"dense"'), "toml", folder=made)
    )[0]


def work(folder: Path, job: Job, told: Callable[[Status], None]) -> None:
    """Run what is left of the sweep into a store."""
    store = Store.open(folder / "store")

    def sink(batch: Any) -> None:
        with store.write("evaluate") as writer:
            writer.add(batch)

    held = store.read().runs()["run_id"].to_list()
    run_job(job, sink, site=Site(work=folder / "evaluations", progress=told), held=held)


@pytest.fixture
def options(name: str, address: dict[str, str]) -> dict[str, str]:
    """How the engine is asked: where its graph leaves out what it should find, exactly."""
    # The graph of Milvus Lite finds two of the smallest tenant's four passages.
    return {**address, **({"exact": "yes"} if name.startswith("milvus") else {})}


@pytest.mark.parametrize("name", FILTERING)
def test_databases_filter_in_a_sweep(tmp_path: Path, name: str, options: dict[str, str]):
    job = read(beir(tmp_path / "made"), name, options)
    assert plan(job).steps["index"] == 3  # whole, partitioned, and exact to compare with

    def stop(status: Status) -> None:
        if status.done > status.total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work(tmp_path, job, stop)
    assert Store.open(tmp_path / "store").read().runs().height < 4
    work(tmp_path, job, lambda _: None)
    found = Store.open(tmp_path / "store").read()
    assert found.runs().height == 4
    timed = found.timings(found.runs()["run_id"].to_list()).group_by("run_id").agg(pl.col("repeat").max())
    assert timed["repeat"].to_list() == [2] * 4
    for run_id, spec in found.runs().select("run_id", "spec").iter_rows():
        rows = found.rankings([run_id], stage="pool")
        shown = {query: set(rows.filter(query_id=query)["passage_id"]) for query in QUERIES}
        leaks = sum(len(passages - allowed(query)) for query, passages in shown.items())
        filtering = json.loads(spec)["filtering"]
        assert (leaks > 0) == (filtering == "none")
        if filtering in ("pre", "partition:tenant"):
            assert [len(each) for each in shown.values()] == [
                min(5, len(allowed(query))) for query in QUERIES
            ]


def child(folder: Path, made: Path, name: str, options: dict[str, str], environ: dict[str, str]) -> None:
    """In a process that is killed: do what is left of the sweep, and write down each unit of work."""
    os.environ.update(environ)
    with (folder / TOLD).open("a", encoding="utf-8") as lines:

        def told(status: Status) -> None:
            print(f"{status.done} {status.stage}", file=lines, flush=True)

        work(folder, read(made, name, options), told)


def units(folder: Path) -> list[str]:
    """What processes wrote down."""
    path = folder / TOLD
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def rows_of(found: Snapshot, table: str) -> pl.DataFrame:
    """A table of the runs without what differs from time to time, in one order."""
    ids = found.runs()["run_id"].sort().to_list()
    if table == "rankings":
        rows = pl.concat([found.rankings(ids, stage=stage) for stage in ("final", "pool")])
    else:
        rows = getattr(found, table)(ids)
    rows = rows.drop(MEASURED, strict=False)
    return rows.sort(rows.columns)


@pytest.mark.parametrize("name", [name for name in FILTERING if "wire" not in name])
def test_killed_and_resumed_a_database_has_all_of_it_once(
    tmp_path: Path, name: str, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
):
    options["exact"] = "yes"  # a graph that is built twice may find something else
    made, draw = beir(tmp_path / "made"), np.random.default_rng(49)
    environ = {each: os.environ[each] for each in ("SOME_URL", ALLOW) if each in os.environ}
    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    for folder in (whole, resumed):
        folder.mkdir()
    child(whole, made, name, options, environ)
    every, killed, done = len(units(whole)), list[str](), False
    while not done:
        before = len(units(resumed))
        process = warm.process(child, resumed, made, name, options, environ)
        if len(killed) < KILLS:
            after = before + int(draw.integers(0, max(2, every // KILLS)))
            while process.is_alive() and len(units(resumed)) <= after:
                time.sleep(0.002)
            time.sleep(float(draw.uniform(0, 0.05)))
            process.kill()
        process.join()
        assert process.exitcode in (-9, 0)
        done = process.exitcode == 0
        killed += [] if done else units(resumed)[-1:]
    assert len(killed) >= 3, killed
    one, other = (Store.open(folder / "store").read() for folder in (whole, resumed))
    assert other.runs().height == 4
    for table in ("rankings", "timings", "signals", "usage"):
        wanted, had = rows_of(one, table), rows_of(other, table)
        assert had.rows() == wanted.rows(), table
