"""Where the jitter band of a workspace comes from, and what the prompt of its stacks is."""

import numpy as np
import polars as pl
import pytest

from core.analysis.workspace.figures.latencies import UNSURE, assumed, jitter_words
from core.analysis.workspace.query_sets import paired
from core.analysis.workspace.scope import Ids, Latency, Quality, Scope
from core.analysis.workspace.stacks import runs_in, stack_table
from core.decide.rules import Constraints, decide
from core.records import Origin
from tests.stores import Lab
from tests.views.made import AT_10, BOOK, DEMO, LAB, PAPER

PASSES = ([10.0, 11.0, 12.0], [20.0, 21.0, 25.0], [10.0, 14.0, 12.0])


def timed(lab, run_id, passes, *, origin=Origin.RUN, stage="retrieve", usage=()):
    """A run that was timed in several passes over q1, q2, q3."""
    lab.run(run_id, origin=origin, final={"q1": ["p"]}, usage=usage)
    lab._rows["timings"] += [
        {"run_id": run_id, "query_id": f"q{at}", "stage": stage, "repeat": number, "ms": ms}
        for number, times in enumerate(passes, 1)
        for at, ms in enumerate(times, 1)
    ]
    return lab


@pytest.fixture
def store(tmp_path):
    lab = Lab().judge({"q1": {"p": 5}})
    timed(lab, "here", PASSES, usage=[("retrieve", "local-cpu", "cpu_ms", 1.0)])
    timed(lab, "also", PASSES[:2])
    timed(lab, "once", PASSES[:1])
    timed(lab, "remote", PASSES, usage=[("embed", "voyage-3.5", "input_tokens", 9.0)])
    timed(lab, "answers", PASSES, usage=[("generate", "some", "input_tokens", 9.0)])
    timed(lab, "brought", PASSES, origin=Origin.IMPORT)
    return lab.write(tmp_path / "store").read()


def bands(snapshot, scope=LAB, latency=None):
    table = stack_table(snapshot, scope, AT_10, latency or Latency(), BOOK)
    return dict(table.select("run_id", "jitter_ms").iter_rows())


def test_only_what_was_timed_here_in_several_passes_is_measured(store):
    # medians of the passes: 11, 21, 12 and 11, 21
    expected = np.quantile([10.0, 1.0, 9.0] * 2 + [10.0], 0.95)
    found = bands(store)
    measured = {name for name, ms in found.items() if ms != 75.0}
    assert measured == {"here", "also", "answers"}
    assert [found[name] for name in measured] == pytest.approx([expected] * 3)
    end_to_end = bands(store, latency=Latency("p50", "end-to-end"))
    assert {name for name, ms in end_to_end.items() if ms != 75.0} == {"here", "also"}


def test_the_noise_of_a_cost_is_the_share_of_the_latency_that_a_measured_band_is(store):
    table = stack_table(store, LAB, AT_10, Latency(), BOOK)
    for row in table.select("jitter_ms", "latency_ms", "cost_noise").iter_rows(named=True):
        measured = row["jitter_ms"] != 75.0 and row["latency_ms"] is not None
        share = min(row["jitter_ms"] / row["latency_ms"], UNSURE) if measured else None
        assert row["cost_noise"] == (pytest.approx(share) if measured else None)
    assert table["cost_noise"].count() > 0


def test_the_band_does_not_depend_on_which_stacks_are_shown(store):
    one = bands(store, Scope("lab", "gold", ("also",)))
    assert one["also"] == bands(store)["also"]


def test_the_band_does_not_depend_on_stacks_set_apart(store):
    alone = bands(store, Scope("lab", "gold", apart=Ids.of(["also", "answers"])))
    assert alone["here"] == pytest.approx(np.quantile([10.0, 1.0, 9.0], 0.95))
    assert bands(store)["here"] > alone["here"]


@pytest.mark.slow
def test_the_store_is_read_as_often_for_many_stacks_as_for_few(tmp_path, monkeypatch):
    from core.store.engine import Catalogue

    reads = []
    read = Catalogue.frame
    monkeypatch.setattr(
        Catalogue, "frame", lambda self, sql, *rest: reads.append(sql) or read(self, sql, *rest)
    )
    counts = []
    for stacks in (2, 9):
        lab = Lab().judge({"q1": {"p": 5}})
        for place in range(stacks):
            timed(lab, f"stack {place}", PASSES, usage=[("retrieve", "local-cpu", "cpu_ms", 1.0)])
        snapshot = lab.write(tmp_path / str(stacks)).read()
        reads.clear()
        bands(snapshot)
        counts.append(len(reads))
    assert counts[0] == counts[1] > 0


def test_where_the_band_comes_from_is_said(store):
    table = stack_table(store, LAB, Quality("RR", 10), Latency(), BOOK)
    for limits, words in (
        (Constraints(jitter_ms=5.0), "5 ms (as typed)"),
        (
            Constraints(),
            "(measured: 95th percentile of 7 differences of the p50 "
            "between passes of the same questions, 3 timed runs of the collection)",
        ),
    ):
        decision = decide(table.filter(pl.col("run_id").is_in(["here", "also", "answers"])), limits)
        assert jitter_words(table.filter(pl.col("jitter_ms") < 75), decision, limits).endswith(words)


def test_published_stacks_have_the_papers_band(published_store):
    from core.store import Store

    assert set(bands(Store.open(published_store).read(), PAPER).values()) == {75.0}


def test_the_demo_is_told_apart(demo_store):
    from core.store import Store

    snapshot = Store.open(demo_store).read()
    table = stack_table(snapshot, DEMO, AT_10, Latency(), BOOK)
    pairs = paired(snapshot, table, DEMO, AT_10)
    assert table["jitter_ms"].max() < 75
    ties = decide(table, Constraints(), paired=pairs).ties
    assert set(ties) <= set(decide(table, Constraints(jitter_ms=75.0), paired=pairs).ties)


@pytest.mark.parametrize(
    ("origin", "spec", "usage", "sent"),
    [
        (Origin.RUN, {"candidates": 50}, (), (50, None)),
        (Origin.RUN, {"candidates": 50, "chunks_sent": 10}, (), (10, None)),
        (Origin.RUN, {"candidates": 50, "cut": {"method": "knee"}}, (), (None, None)),
        (Origin.IMPORT, {"candidates": 50}, (), (None, None)),
        (Origin.IMPORT, {"chunks_sent": 5}, (), (5, None)),
        (
            Origin.RUN,
            {"candidates": 50, "chunks_sent": 10, "chunker": {"method": "sentence", "size": 200}},
            (),
            (10, 2000),
        ),
        (Origin.RUN, {"candidates": 50}, [("generate", "gpt", "input_tokens", 1234.0)], (50, 1234)),
        (Origin.IMPORT, {"chunks_sent": "ten"}, (), (None, None)),
    ],
)
def test_what_a_stack_sends(tmp_path, origin, spec, usage, sent):
    lab = Lab().judge({"q1": {"p": 5}})
    lab.run("a", origin=origin, spec=spec, final={"q1": ["p"]}, usage=usage)
    snapshot = lab.write(tmp_path / "store").read()
    assert runs_in(snapshot, LAB).height == 1
    row = stack_table(snapshot, LAB, AT_10, Latency(), BOOK).row(0, named=True)
    assert (row["passages_sent"], row["tokens_sent"]) == sent


def test_the_answer_of_a_workspace_uses_the_results_per_query(tmp_path):
    queries = [f"q{number}" for number in range(40)]
    lab = Lab().judge({query: {"p": 5, "x": 1} for query in queries})
    for name, missing in (("all", 0), ("most", 8)):
        found = {query: ["p"] if at >= missing else ["x", "p"] for at, query in enumerate(queries)}
        lab.run(name, spec={"candidates": 50 if name == "all" else 10}, final=found)
    snapshot = lab.write(tmp_path / "store").read()
    table = stack_table(snapshot, LAB, Quality("RR", 10), Latency(), BOOK)
    pairs = paired(snapshot, table, LAB, Quality("RR", 10))
    assert table["run_id"][decide(table, Constraints(), paired=pairs).chosen] == "all"
    assert paired(snapshot, table, Scope("lab"), Quality("RR", 10)) is None
    assert paired(snapshot, table, LAB, Quality("GMAP", 10)) is None


@pytest.mark.parametrize(
    ("origin", "passes", "limits", "said"),
    [
        (Origin.IMPORT, 1, Constraints(), "Latencies less than 75 ms apart count as alike here: assumed"),
        (Origin.IMPORT, 1, Constraints(jitter_ms=75.0), ""),
        (Origin.RUN, 2, Constraints(), ""),
    ],
)
def test_a_tie_by_a_band_that_nobody_measured_says_so(tmp_path, origin, passes, limits, said):
    lab = Lab().judge({"q1": {"p": 5}})
    timed(lab, "fast", [[10.0] * 3, [40.0] * 3][:passes], origin=origin)
    timed(lab, "slow", [[30.0] * 3, [60.0] * 3][:passes], origin=origin)
    table = stack_table(lab.write(tmp_path / "s").read(), LAB, AT_10, Latency(), BOOK)
    decision = decide(table, limits)
    assert len(decision.ties) == 2
    assert assumed(table, decision, limits).partition(",")[0] == said
