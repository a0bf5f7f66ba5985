"""The section on drift: traces that say when they were asked, with and without judgements."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from core.analysis.workspace.scope import Latency, Quality
from core.analysis.workspace.view import View
from core.importers.samples import ASKED_AT
from core.records import Batch, Origin, Run, Stack
from core.stats.alarm import watch
from core.store import Store
from core.tables import frame
from core.views.ask import Given
from core.views.blocks import Answer, Table
from core.views.diagnostics import drifting, watching
from core.views.diagnostics.sections import live
from tests.views.made import BOOK
from tests.views.what_if import routed

DAY = 86_400.0


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return routed.write(tmp_path_factory.mktemp("drift") / "s", (10,))


def view_of(store: Store) -> View:
    return View(store.read(), routed.ROUTED, quality=Quality("RA-nWG", 3), latency=Latency(), book=BOOK)


def test_without_times_it_says_how_to_have_some(store: Store):
    blocks = list(live.draw(view_of(store), Given()))
    assert isinstance(blocks[0], Answer)
    assert blocks[0].sentence == drifting.NOTHING


def traced(folder: Path) -> tuple[Store, str, list[str]]:
    """A stack whose queries were asked day by day: its store, run and queries."""
    store = routed.write(folder / "s", (10,))
    read = store.read()
    run_id, names = "live", read.queries("c")["query_id"].to_list()
    run = Run(
        run_id=run_id, collection_id="c", stack=Stack({"name": "live"}), label="live", origin=Origin.IMPORT
    )
    asked = [
        {"run_id": run_id, "query_id": name, "signal": ASKED_AT, "value": at * DAY}
        for at, name in enumerate(names)
    ]
    ranked = read.rankings([read.runs()["run_id"].item()], stage="final").with_columns(run_id=pl.lit(run_id))
    frames = {"signals": frame("signals", asked), "rankings": frame("rankings", ranked.to_dict())}
    with store.write("times") as writer:
        writer.add(Batch(runs=(run,), frames=frames))
    return store, run_id, names


def test_live_quality_is_watched_in_the_order_of_time(tmp_path: Path):
    store, run_id, names = traced(tmp_path)
    view = view_of(store)
    few = list(watching.live_quality.draw(view, Given()))
    assert few[0].sentence.startswith(f"Too few to watch RA-nWG@3: {len(names)} of 31")
    blocks = list(watching.live_quality.draw(view, Given({"before": ["10"]})))
    table = next(block for block in blocks if isinstance(block, Table)).rows.sort("number")
    assert table["query_id"].to_list() == names
    expected = dict(zip(names, watching.watched(view, run_id, 100.0)["value"], strict=True))
    np.testing.assert_allclose(
        table["evidence"],
        watch(np.array([expected[name] for name in names]), first=10, seed=view.seed).evidence,
    )
    assert blocks[0].sentence.startswith(("No alarm: RA-nWG@3", "Quality has fallen: RA-nWG@3"))


def test_a_larger_sample_holds_the_smaller_one(tmp_path: Path):
    names = [f"q{number}" for number in range(2000)]
    tenth, third = ([name for name in names if watching.in_sample(name, share)] for share in (10, 30))
    assert set(tenth) < set(third)
    assert (len(tenth), len(third)) == (pytest.approx(200, abs=40), pytest.approx(600, abs=60))
    assert all(watching.in_sample(name, 100) for name in names)
    store, run_id, _ = traced(tmp_path)
    part = watching.watched(view_of(store), run_id, 50.0)
    assert part["query_id"].to_list() == [
        name
        for name in watching.watched(view_of(store), run_id, 100.0)["query_id"]
        if watching.in_sample(name, 50)
    ]


def test_windows_have_proxies_and_t_where_queries_are_judged(tmp_path: Path):
    store, run_id, _ = traced(tmp_path)
    read, view = store.read(), view_of(store)
    blocks = list(live.draw(view, Given({"wins": ["3"]})))
    (table,) = [block for block in blocks if isinstance(block, Table)]
    rows = table.rows
    assert rows["n"].to_list() == [8, 8, 8]
    assert rows["from"].to_list() == ["1970-01-01 00:00", "1970-01-09 00:00", "1970-01-17 00:00"]
    assert rows["T_n"].sum() == rows["F_e_n"].sum() > 0
    assert rows["shift"].null_count() == 3
    said = next(block for block in blocks if isinstance(block, Answer)).sentence
    assert said.startswith("Too few queries to tell a drift of best score")
    words = drifting.drifted(view, run_id, drifting.WORDS, 1)
    texts = read.queries("c").select(pl.col("text").str.split(" ").list.len().mean()).item()
    assert words["mean"].item() == pytest.approx(texts)


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ([(0.0, DAY), (DAY, 2 * DAY)], ["1970-01-01 00:00", "1970-01-02 00:00"]),
        ([(0.0, 0.5), (0.7512, 1.0)], ["1970-01-01 00:00:00.000", "1970-01-01 00:00:00.751"]),
        ([], []),
    ],
)
def test_windows_that_are_short_are_told_to_the_millisecond(ends: list[tuple[float, float]], said: list[str]):
    rows = pl.DataFrame(ends, schema={"begin": pl.Float64, "end": pl.Float64}, orient="row")
    dated = drifting.dated(rows.with_columns(drifted=pl.lit(None, pl.Boolean), p=pl.lit(1e-9)))
    assert set(dated["p_said"]) <= {"< 0.0001"}
    assert dated["from"].to_list() == said
