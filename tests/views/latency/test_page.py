from pathlib import Path

import numpy as np
import polars as pl
import pytest

from core.analysis.depth import latency_by_depth
from core.analysis.workspace.scope import Latency
from core.decide.rules import Constraints, decide
from core.records import Batch, Origin
from core.stats.latency import TOTAL, Generation, Speed
from core.store import Snapshot, Store
from core.tables import frame
from core.views.latency import charts
from core.views.latency import sections as page
from core.views.latency.data import (
    fitted,
    path_stages,
    percentile_table,
    shown_stages,
    stage_samples,
    stage_table,
    timed_answers,
    usual,
)
from tests.stores import Lab
from tests.views.made import DEMO, LAB, PAPER, table

N = 70
GENERATED = Generation(Speed(100, 50, 1), chunks=2, tokens_per_chunk=500, prompt_tokens=0, output_tokens=100)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """A fast stack timed often, a slow one timed too seldom for a p95, a reported one and an unknown one."""
    queries = [f"q{at}" for at in range(1, N + 1)]
    made = Lab().judge({query: {"a": 5} for query in queries})
    good, bad = {query: ["a"] for query in queries}, {query: ["b"] for query in queries}
    ms = np.arange(1.0, N + 1)
    own = {"embed": [1.0] * N, "retrieve": ms.tolist(), "strange": [0.5] * N}
    made.run("fast", final=bad, origin=Origin.RUN, ms=own)
    made.run("slow", final=good, origin=Origin.RUN, ms={"retrieve": (100 + ms[:20]).tolist()})
    figures = [{"measure": "latency_p50", "stage": stage, "value": 7.0, "n": 9} for stage in
               ("total", "retrieve")]  # fmt: skip
    made.run("told", final=bad, figures=figures)
    made.run("silent", final=good)
    return made.write(tmp_path_factory.mktemp("lab") / "s").read()


def test_every_percentile_of_every_stack_or_why_not(lab: Snapshot):
    rows = percentile_table(lab, table(lab, LAB), Latency())
    assert rows["name"].to_list() == ["told", "fast", "slow", "silent"]
    told, fast, slow, silent = rows.iter_rows(named=True)
    assert fast["p50"] == pytest.approx(37.0)
    assert fast["p50_low"] < fast["p50"] < fast["p50_high"]
    assert (fast["p95"] is None, fast["p99"] is None) == (False, True)
    assert "at least 299" in fast["p99_note"]
    assert (slow["p95"], slow["n"], slow["basis"]) == (None, 20, "measured")
    assert "20 queries are too few" in slow["p95_note"]
    assert (told["p50"], told["p95"], told["n"], told["basis"]) == (7.0, None, 9, "imported")
    assert (silent["p50"], silent["p50_note"]) == (None, "no timings recorded")


def test_stages_in_their_order_with_the_total_last(lab: Snapshot):
    runs = table(lab, LAB).filter(pl.col("name").is_in(["fast", "told"]))
    samples = stage_samples(lab, runs, Latency())
    assert shown_stages(samples) == ["embed", "retrieve", "strange", TOTAL]
    rows = stage_table(lab, runs, samples)
    assert rows.select("name", "stage", "p50", "basis").rows() == [
        ("fast", "embed", 1.0, "measured"),
        ("fast", "retrieve", 35.5, "measured"),
        ("fast", "strange", 0.5, "measured"),
        ("fast", "total", 37.0, "measured"),
        ("told", "retrieve", 7.0, "imported"),
        ("told", "total", 7.0, "imported"),
    ]
    assert rows.filter(pl.col("name") == "told")["p95_reason"].to_list() == ["not reported"] * 2


@pytest.mark.slow
def test_a_modelled_total_is_not_called_measured(lab: Snapshot):
    runs = table(lab, LAB).filter(pl.col("name") == "slow")
    both = Latency("p50", "end-to-end", generation=GENERATED)
    rows = stage_table(lab, runs, stage_samples(lab, runs, both))
    assert rows.select("stage", "basis").rows() == [("retrieve", "measured"), ("total", "modelled")]
    assert rows["p50"].to_list() == [110.5, 110.5 + 100 + 50 + 100]
    made = percentile_table(lab, table(lab, LAB, latency=both), both)
    assert made["basis"].drop_nulls().unique().to_list() == ["modelled"]


def test_the_answer_is_about_the_stack_to_ship(lab: Snapshot):
    found = table(lab, LAB)
    rows, decision = percentile_table(lab, found, Latency()), decide(found, Constraints())
    assert usual(rows, found, decision)[0] == "slow"  # "silent" scores as well but its latency is not known
    runs = found.filter(pl.col("name").is_in(["slow", "fast"]))
    stages = path_stages(stage_table(lab, runs, stage_samples(lab, runs, Latency())), Latency())
    slow, fast = (rows.row(by_predicate=pl.col("name") == name, named=True) for name in ("slow", "fast"))
    assert page.answer(slow, stages) == "slow answers half of its queries within 110 ms."  # of one stage
    said = "Searching the vectors takes 95.9 % of a query's time, 35.5 ms (p50, n = 70)."
    assert page.answer(fast, stages) == said
    for chosen in (None, "slow", "silent"):
        why = page.instead(rows, "slow", chosen)
        assert why == ("No latency is known of silent: slow is shown." if chosen == "silent" else "")
    assert page.cards(slow, Latency()) == (
        ("Retrieval latency p50", "110 ms", "[106 ms, 115 ms] n = 20 · measured"),
        ("Retrieval latency p95", "withheld", "needs 60 queries, n = 20"),
        ("Retrieval latency p99", "withheld", "needs 299 queries, n = 20"),
    )
    more = page.caveats(rows, latency_by_depth(lab, LAB))
    assert "p95 is unknown for 2 of 3 stacks" in more["high percentiles"]
    assert more["some unknown"] == "1 stack has no known latency."
    assert more["jumps with K"] == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("took", "floor_ms", "said"),
    [
        (0.002, 0.00014, "An empty pipeline takes 0.00014 ms: a constant, no part of the jitter band."),
        (0.06, 0.012, "An empty pipeline takes 0.01 ms: a constant, no part of the jitter band."),
        (1.0, 0.009, None),  # less than 1 % of the time
    ],
)
def test_the_time_of_an_empty_pipeline_stands_beside_a_fast_one(
    tmp_path: Path, took: float, floor_ms: float, said: str | None
):
    lab = Lab().judge({f"q{at}": {"a": 5} for at in range(N)})
    ranked = {f"q{at}": ["a"] for at in range(N)}
    lab.run("fast", final=ranked, ms={"pipeline": [took] * N}, manifest={"own": {"floor_ms": floor_ms}})
    snapshot = lab.write(tmp_path / "s").read()
    found = table(snapshot, LAB)
    row = percentile_table(snapshot, found, Latency()).row(0, named=True)
    assert page.floor(found, row).get(page.FLOOR) == said
    assert ("an empty pipeline takes" in (row["p50_note"] or "")) == (said is not None)
    assert "0.00 ms" not in page.answer(row, pl.DataFrame(schema={"name": pl.String, "p50": pl.Float64}))


def test_no_latency_at_all_says_why(tmp_path: Path):
    lab = Lab().judge({"q1": {"a": 5}}).run("a", final={"q1": ["a"]}).write(tmp_path / "s").read()
    told = page.unknown(percentile_table(lab, table(lab, LAB), Latency()))
    assert told.sentence == "The only stack has no known latency."
    assert told.details.startswith("No timings recorded. ")
    assert "imported files" in told.details


@pytest.mark.slow
def test_the_discontinuity_of_the_paper_is_said_drawn_and_listed(published_store: Path):
    snapshot = Store.open(published_store).read()
    depths = latency_by_depth(snapshot, PAPER)
    found = table(snapshot, PAPER)
    rows = percentile_table(snapshot, found, Latency())
    said = page.caveats(rows, depths)["jumps with K"]
    assert "rerank-2.5 over voyage-3.5 leaves its line from K = 150 on, by up to 2.19 s." in said
    lines = charts.depth_lines(depths)
    at = dict(lines.select(pl.format("{} {}", "reranker", "embedder"), "breaks_at").iter_rows())
    assert at["rerank-2.5 voyage-3.5"] == 150
    said, more = page.per_candidate(lines)
    assert said == "Each further candidate adds 2.98 ms to rerank-2.5 (12 stacks, 4 depths)."
    assert more == "Embedder: voyage-3.5; 5 more pairs in the table."
    assert at["rerank-2.5 voyage-3-large"] is None
    drawn = charts.by_depth(depths)
    (ringed,) = (trace for trace in drawn.data if str(trace.name).startswith("leaves its line"))
    assert len(ringed.x) == depths["departs"].sum()
    assert sum(trace.mode == "lines" for trace in drawn.data) == lines["slope"].count()


@pytest.mark.parametrize("shape", ["ECDF", "box"])
def test_stages_are_drawn_with_one_legend_entry_per_stack(demo_store: Path, shape: charts.LatencyShape):
    snapshot = Store.open(demo_store).read()
    runs = table(snapshot, DEMO).gather([0, 4])
    samples = stage_samples(snapshot, runs, Latency())
    colours = dict.fromkeys(runs["name"], "#0072B2")
    drawn = charts.distributions(samples, colours, shape, 75.0)
    assert sum(bool(trace.showlegend) for trace in drawn.data) == 2
    assert len(drawn.data) == samples.select("name", "stage").n_unique()
    assert not drawn.layout.shapes  # the band would be wider than the plot


def test_what_cannot_be_told_apart_is_a_strip_and_a_decade_is_logarithmic():
    ms = pl.DataFrame(
        {"name": ["a"] * 100, "stage": [TOTAL] * 100, "ms": [float(at) for at in range(50, 150)]}
    )
    narrow, wide = (charts.distributions(ms, {"a": "#0072B2"}, "ECDF", band) for band in (5.0, 75.0))
    (strip,) = narrow.layout.shapes
    assert (strip.x0, strip.x1) == (94.5, 104.5)
    assert not wide.layout.shapes
    assert narrow.layout.xaxis.type is None
    tenfold = ms.with_columns(ms=pl.col("ms") ** 3)
    assert charts.distributions(tenfold, {"a": "#0072B2"}, "box", 5.0).layout.xaxis.type == "log"


def test_the_stages_of_a_stack_are_one_bar(lab: Snapshot):
    runs = table(lab, LAB).filter(pl.col("name").is_in(["fast", "told"]))
    stages = path_stages(stage_table(lab, runs, stage_samples(lab, runs, Latency())), Latency())
    assert set(stages["stage"]) == {"embed", "retrieve", "strange"}
    drawn = charts.stage_bars(stages, ["told", "fast", "silent"])
    assert [(trace.name, list(trace.x)) for trace in drawn.data] == [
        ("embed", [None, 1.0]), ("retrieve", [7.0, 35.5]), ("strange", [None, 0.5])
    ]  # fmt: skip
    assert list(drawn.layout.yaxis.ticktext) == ["▸ told", "fast"]


def test_long_samples_are_drawn_by_their_quantiles():
    ms = np.random.default_rng(1).random(5000)
    samples = pl.DataFrame({"name": ["a"] * 5000, "stage": [TOTAL] * 5000, "ms": ms})
    (trace,) = charts.distributions(samples, {"a": "#0072B2"}, "ECDF", 0.0).data
    assert len(trace.x) == 400
    assert trace.x[-1] == ms.max()


def test_a_generator_is_fitted_to_its_timings_and_drawn(tmp_path: Path):
    prompts = [1000.0 + 100 * at for at in range(20)]
    made = Lab().run("a", spec={"mode": "dense"}, ms={"generate": [200 + 0.05 * each for each in prompts],
                                                      "first_token": [100.0] * 20})  # fmt: skip
    made._rows["usage"] += [
        {"run_id": "a", "query_id": f"q{at}", "stage": "generate", "item": "g", "unit": "input_tokens",
         "amount": prompt, "basis": "measured"}
        for at, prompt in enumerate(prompts, 1)
    ]  # fmt: skip
    snapshot = made.write(tmp_path / "s").read()
    timed = timed_answers(snapshot, LAB)
    found = fitted(timed)
    assert page.speed(found) == (
        "Fitted to the timings of all stacks: 200 ms + 50.0 ms per 1,000 prompt tokens + 0.00 ms "
        "per output token (R² 1.00, n = 20)."
    )
    drawn = charts.generator(timed, GENERATED, [1000.0])
    assert [trace.name for trace in drawn.data] == [
        "first token, timed", "first token, modelled", "whole answer, timed", "whole answer, modelled"
    ]  # fmt: skip
    assert page.speed(fitted(timed.clear())).startswith("No speed can be fitted: 0 timed answers")


def test_timed_answers_are_those_of_readers_too(tmp_path: Path):
    """Of a run with timings its timings count, of another one its answers from the first passages."""
    lab = Lab().run("a", spec={"mode": "dense"}, ms={"generate": [200.0]}).run("b", spec={"mode": "dense"})
    store = lab.write(tmp_path / "s")
    names = ("run_id", "query_id", "reader", "mode", "ms", "first_token_ms", "input_tokens", "output_tokens")
    said = [("a", "q1", "r", None, 9.0, None, 1, 1), ("b", "q1", "r", "top_k", 30.0, 8.0, 100, 5),
            ("b", "q1", "s", None, 40.0, None, None, None), ("b", "q1", "r", "gold", 50.0, 9.0, 10, 5),
            ("b", "q2", "r", None, None, None, 10, 5)]  # fmt: skip
    rows = [dict(zip(names, row, strict=True)) for row in said]
    with store.write("answers") as writer:
        writer.add(Batch(frames={"answers": frame("answers", rows)}))
    timed = timed_answers(store.read(), LAB)
    assert timed.select("run_id", "stage", "ms", "input_tokens").rows() == [
        ("a", "generate", 200.0, None), ("b", "generate", 30.0, 100.0), ("b", "generate", 40.0, None),
        ("b", "first_token", 8.0, 100.0),
    ]  # fmt: skip
