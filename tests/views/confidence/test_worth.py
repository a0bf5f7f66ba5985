"""The plan of the next evaluation on stacks made by hand."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from core import extras
from core.analysis.workspace.scope import Latency
from core.analysis.workspace.view import View
from core.decide.joint import JointSample
from core.decide.planner import bill
from core.decide.rules import Constraints, Rule, decide
from core.pipeline.search.unmeasured import COUNT
from core.records import stack_label
from core.store import Store
from core.views.confidence import charts, data, words, worth
from core.views.confidence.hold import shares
from tests.views.made import AT_10, BOOK, DEMO, PAPER, asking, stacks, table

RNG = np.random.default_rng(9)
PER_QUERY = np.clip(RNG.normal([[0.60], [0.61], [0.2]], 0.2, size=(3, 40)), 0, 1)
MEANS = PER_QUERY.mean(axis=1)
TABLE = stacks(
    name=["one", "other", "bad"],
    quality=MEANS.tolist(),
    quality_low=(MEANS - 0.06).tolist(),
    quality_high=(MEANS + 0.06).tolist(),
    n=[40] * 3,
    latency_ms=[100.0, 110.0, 90.0],
    cost=[1.0, 2.0, None],
    candidates=[50, 100, 20],
)
NONE = np.full(3, np.nan)
TIMES = RNG.normal([[100.0], [110.0], [90.0]], 1.0, size=(3, 40))
SAMPLE = JointSample(PER_QUERY, TIMES, np.array([1.0, 2.0, np.nan]), NONE, NONE)
FREE = Constraints()
PRICE = bill(np.array([1.0, 2.0, np.nan]), judgements=20, usd_per_judgement=0.01)


def found(sample: JointSample = SAMPLE, constraints: Constraints = FREE):
    decision = decide(TABLE, constraints)
    chances = shares(TABLE, sample, (constraints, "quality"), resamples=200, seed=1)
    rows = worth.leading(TABLE, decision, chances)
    more = worth.amounts(25)
    return decision, worth.plan(TABLE, rows, sample, (constraints, "quality"), more)


def test_leading_are_those_that_may_be_chosen_and_todays_choice_is_first():
    decision, made = found()
    assert made.rows[0] == decision.chosen == 0
    assert set(made.rows) == {0, 1}  # the last one never wins, and its cost is unknown
    assert made.queries == 40
    assert made.judged.now == 0


def test_amounts_hold_what_the_money_pays_for():
    assert worth.amounts(25) == (10, 20, 25, 40, 80, 160, 320, 640, 1280)
    assert worth.amounts(None) == worth.amounts(0) == worth.USUAL
    assert worth.amounts(10**9) == worth.USUAL
    assert worth.amounts(25, 30, 40) == (10, 20, 25, 30, 40, 80, 160, 320, 640, 1280)


def test_the_rows_begin_with_today_and_carry_n_and_money():
    rows = worth.plan_rows(found()[1], PRICE)
    assert rows.row(0) == (0, 40, 0.0, 0.0, rows["left"][0])
    assert rows.filter(more=25).select("n", "usd").row(0) == (65, pytest.approx(25 * 0.203))


@pytest.mark.parametrize(
    ("flip", "affordable", "sentence", "details"),
    [
        ([0.0, 0.1, 0.3], 10, "10 more queries would change the choice in 10.0 %",
         "$2.00 pay for 10 more queries."),
        ([0.0, 0.1, 0.3], None, "20 more queries would change the choice in 30.0 %",
         "$4.00 pay for 20 more queries."),
        ([0.0, 0.0, 0.0], 20, "20 more queries would not change the choice.",
         "$4.00 pay for 20 more queries."),
        ([0.0, 0.0, 0.0], 0, "Your budget pays for 0 more", ""),
        ([0.0, 0.0, 0.0], 7, "Your budget pays for 7 more", ""),
    ],
)  # fmt: skip
def test_the_answer(flip, affordable, sentence, details):
    rows = pl.DataFrame({"more": [0, 10, 20], "n": [40, 50, 60], "usd": [0.0, 2.0, 4.0], "flip": flip})
    averages = asking(stacks(name=["a", "b"], quality=[0.5, 0.6]))
    said = words.plan_answer(averages, rows, affordable)
    assert said[0].startswith(sentence)
    assert len(said[0].split()) <= 14
    assert said[1] == details
    marked = words.plan_answer(averages, rows, affordable, assumed_usd=0.01)[1]
    assert marked == (f"{details[:-1]} at an assumed $0.01 a judgement." if details else "")


def test_the_chart_shows_how_often_the_choice_changes_and_the_money():
    rows = worth.plan_rows(found()[1], PRICE)
    drawn = charts.plan_chart(rows, 25)
    assert [list(trace.y) for trace in drawn.data] == [rows["flip"][1:].to_list()]
    assert drawn.layout.shapes[0].x0 == 25
    assert not charts.plan_chart(rows, None).layout.shapes
    better = charts.plan_chart(rows, None, (40, 0.03), 0.01).data[1]
    assert (better.name, *better.x, *better.y) == ("one better by 0.01 or more", 40, 0.03)


def test_rivals_are_the_stacks_that_some_world_chooses():
    decision, made = found()
    rows = worth.rival_rows(TABLE, made, decision)
    assert rows["name"].to_list() == sorted(
        rows["name"], key=lambda name: -dict(rows.select("name", "final").rows())[name]
    )
    assert rows["final"].sum() == pytest.approx(1.0)
    assert dict(rows.select("name", "today").rows())["one"] == "chosen"
    shares = dict(rows.select("name", "final").rows())
    first, second = rows["name"].to_list()
    assert words.rival_words(rows) == (
        f"With endless queries {first} would win in {100 * shares[first]:.1f} % of simulations, "
        f"{second} in {100 * shares[second]:.1f} %."
    )
    assert words.rival_words(rows.clear()).startswith("No stack is chosen")


def test_timings_far_from_any_limit_change_nothing_and_near_one_they_do():
    assert "changes nothing" in words.timing_words(found()[1], PRICE)
    near = found(constraints=Constraints(sla_ms=float(np.median(TIMES[0])) + 0.05))[1]
    assert "changes the choice: 1 round more: " in words.timing_words(near, PRICE)
    assert "($0.12 a round)" in words.timing_words(near, PRICE)
    still = JointSample(
        PER_QUERY, np.full((3, 40), np.nan), SAMPLE.cost, NONE, TABLE["latency_ms"].to_numpy()
    )
    assert "unknown" in words.timing_words(found(still)[1], PRICE)


def test_the_price_of_a_query_says_what_is_not_in_it():
    assert words.price_words(PRICE, 3) == (
        "One query: $0.20 for judging, $0.003 for running 3 leading stacks (1 of unknown cost left out)."
    )
    unknown = bill(np.array([np.nan]), judgements=1, usd_per_judgement=1.0)
    assert "of unknown cost for running 1 leading stack." in words.price_words(unknown, 1)


def test_without_results_per_query_the_page_says_so():
    said = words.unknown_answer(TABLE, decide(TABLE, FREE), AT_10)
    assert "n = 40" in said
    assert "averages only" in said
    assert "Nothing is chosen" in words.unknown_answer(
        TABLE, decide(TABLE, Constraints(min_quality=1.0)), AT_10
    )


def test_stacks_to_add_are_guessed_from_published_figures(
    published_store: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(extras, "installed", lambda _: False)
    whole = table(Store.open(published_store).read(), PAPER)
    limits = Constraints(sla_ms=600.0)
    decision = decide(whole, limits)
    rows = worth.next_rows(whole, decision, limits)
    assert rows["chance"].to_list() == sorted(rows["chance"], reverse=True)
    assert 0 < rows["chance"][0] < 1
    assert " → " in rows["step"][0]
    likely = rows.filter(pl.col("beyond").is_null())["chance"].max()
    said = words.next_stack_words(rows)
    assert said.startswith("No untested stack is likely to beat the choice; ") == (likely < 0.05)
    assert (", better than the choice with a chance of " in said) == (likely >= 0.05)
    assert words.next_stack_words(rows.clear()).startswith("No stack one step")
    nothing = Constraints(min_quality=1.0)
    assert worth.next_rows(whole, decide(whole, nothing), nothing).is_empty()
    assert rows["said_by"].unique().to_list() == [worth.EFFECTS]
    assert "pip install -r requirements-search.txt" in (worth.missing_model() or "")


PARTS = [("none", 10), ("none", 50), ("none", 200), ("r", 10), ("r", 200), ("s", 50)] * 2
SLOW = {"none": 0.1, "r": 3.0, "s": 50.0}


@pytest.mark.parametrize(
    ("limits", "beyond"),
    [
        (Constraints(), [None, None, None]),
        # r at K = 50 takes at least what it takes at K = 10; of s at K = 10 nothing is known
        (Constraints(sla_ms=100.0), [None, None, "over the SLA"]),
        (
            Constraints(sla_ms=100.0, budget=1.0),
            [None, "over the budget", "over the SLA and over the budget"],
        ),
    ],
)
def test_a_depth_that_nothing_reads_is_never_modelled_and_what_breaks_a_limit_is_named(
    limits: Constraints, beyond: list[str | None], monkeypatch: pytest.MonkeyPatch
):
    """Whatever its K, without a reranker the stack is one, and measured."""
    monkeypatch.setattr(extras, "installed", lambda _: False)
    specs = [
        {"mode": "sparse", "sparse": "bm25", "reranker": reranker, "candidates": k} for reranker, k in PARTS
    ]
    ms = [SLOW[reranker] * k for reranker, k in PARTS]
    rows = stacks(
        quality=[0.4, 0.4, 0.4, 0.5, 0.55, 0.6] * 2, spec=list(map(json.dumps, specs)), latency_ms=ms,
        cost=[value / 20 for value in ms], **{name: [spec[name] for spec in specs] for name in specs[0]},
    )  # fmt: skip
    made = worth.next_rows(rows, decide(rows, Constraints()), limits)
    found = dict(made.select("stack", "beyond").rows())
    assert found == dict(
        zip(("BM25 + s, K = 10", "BM25 + r, K = 50", "BM25 + s, K = 200"), beyond, strict=True)
    )
    within = [stack for stack, why in found.items() if why is None]
    assert made["stack"].head(len(within)).sort().to_list() == sorted(within)
    outside = f"{3 - len(within)} untested stack"
    assert (outside in words.next_stack_words(made)) == (len(within) < 3)


@pytest.mark.extras
def test_the_model_of_a_search_names_stacks_to_add(published_store: Path):
    pytest.importorskip("optuna", reason="optuna is not installed")
    whole = table(Store.open(published_store).read(), PAPER)
    limits = Constraints(sla_ms=600.0)
    rows = worth.next_rows(whole, decide(whole, limits), limits)
    assert rows.equals(worth.next_rows(whole, decide(whole, limits), limits))
    named = rows.filter(pl.col("place").is_not_null())
    assert named["place"].sort().to_list() == [*range(1, named.height + 1)]
    assert named["beyond"].is_null().to_list() == sorted(named["beyond"].is_null(), reverse=True)
    assert named.filter(pl.col("beyond").is_null())["place"].is_sorted()
    assert named.height == COUNT
    assert not {*named["said_by"]} & {worth.EFFECTS}
    assert rows.filter(said_by=worth.EFFECTS)["chance"].is_sorted(descending=True)
    assert rows.filter(said_by=worth.BOTH)["chance"].null_count() == 0
    unguessed = words.next_stack_words(rows.with_columns(chance=pl.lit(None, pl.Float64)))
    first = rows.filter(pl.col("beyond").is_null(), pl.col("place").is_not_null())["stack"][0]
    assert unguessed.startswith(f"To try next: {first}. Its quality is not predicted.")
    assert "To try next" not in words.next_stack_words(rows)
    assert worth.missing_model() is None


def tagged(**groups):
    """tag → differences; every query also has a tag that parts nothing."""
    rows = [
        {"query_id": f"{tag}-{i}", "tags": [tag.replace("_", "="), "all=yes"], "delta": delta, "judged": 1}
        for tag, deltas in groups.items()
        for i, delta in enumerate(deltas)
    ]
    return pl.DataFrame(rows, schema_overrides={"delta": pl.Float64})


def test_shares_follow_size_times_spread():
    made = tagged(kind_calm=[0.0, 0.1] * 10, kind_wild=[-0.4, 0.4] * 5)
    rows = worth.tag_rows(made)
    assert rows["tag"].to_list() == ["kind=wild", "kind=calm"]
    wild, calm = rows.iter_rows(named=True)
    assert (wild["n"], calm["n"]) == (10, 20)
    assert wild["share"] == pytest.approx(1 / 3)
    ratio = 10 * wild["spread"] / (20 * calm["spread"])
    assert wild["best"] / calm["best"] == pytest.approx(ratio)
    assert wild["best"] + calm["best"] == pytest.approx(1.0)
    said = words.tag_words(rows, made, "a", "b")
    assert "kind=wild" in said
    assert "instead of 33.3 %" in said


def test_tags_that_are_rare_alone_or_without_key():
    assert worth.tag_rows(tagged(kind_one=[0.1, 0.2] * 3)).is_empty()  # parts nothing
    assert worth.tag_rows(tagged(kind_one=[0.1, 0.2] * 3, kind_two=[0.1] * 4)).is_empty()  # too rare
    assert set(worth.tag_rows(tagged(one=[0.1, 0.2] * 3, two=[0.1, 0.3] * 3))["tag"]) == {"one", "two"}


def test_nothing_stands_out():
    same = tagged(kind_one=[0.1, 0.2] * 5, kind_two=[0.1, 0.2] * 5)
    assert "no tag stands out" in words.tag_words(worth.tag_rows(same), same, "a", "b")
    still = tagged(kind_one=[0.1] * 5, kind_two=[0.1] * 5)
    assert "no tag stands out" in words.tag_words(worth.tag_rows(still), still, "a", "b")
    unknown = same.with_columns(pl.lit(None, pl.Float64).alias("delta"), pl.lit(0).alias("judged"))
    assert words.tag_words(worth.tag_rows(unknown), unknown, "a", "b").startswith(
        "20 stored queries without judgements"
    )


@pytest.mark.extras  # the search proposes them
def test_parameters_of_own_pipelines_are_axes_that_no_step_leaves():
    """One of four points of each pipeline is left out; K of other stacks is no step of theirs."""
    grid = [(alpha, ef) for alpha in (0.3, 0.5) for ef in (64, 256)]
    shop = {"mode": "own", "name": "shop", "candidates": 50}
    own = [
        {**shop, "version": version, "params": {"alpha": alpha, "ef": ef}}
        for version in ("", "v2")
        for alpha, ef in grid[:3]
    ]  # fmt: skip
    sparse = [{"mode": "sparse", "sparse": "bm25", "candidates": k} for k in (10, 20, 50)]
    specs = [*own, *sparse]
    quality = [0.50, 0.52, 0.60, 0.51, 0.53, 0.61, 0.3, 0.31, 0.32]
    made = stacks(
        name=[stack_label(spec) for spec in specs],
        quality=quality,
        candidates=[spec["candidates"] for spec in specs],
    ).with_columns(
        pl.Series("mode", [spec["mode"] for spec in specs]),
        pl.Series("sparse", [spec.get("sparse") for spec in specs]),
        pl.Series("spec", [json.dumps(spec) for spec in specs]),
    )
    decision = decide(made, FREE)
    rows = worth.next_rows(made, decision, FREE)
    assert set(rows["stack"]) == {"shop, K = 50 · alpha 0.5, ef 256", "shop, K = 50 · alpha 0.5, ef 256, v2"}
    steps = dict(rows.select("stack", "step").rows())
    assert steps["shop, K = 50 · alpha 0.5, ef 256, v2"] in ("ef 64 → 256", "alpha 0.3 → 0.5")
    assert worth.Levels.of(made[:6]).frame.width == 6  # alpha, ef and K of each


def test_stacks_that_state_no_axis_have_none_to_add():
    known = stacks(quality=[0.5, 0.6])
    assert worth.next_rows(known, decide(known, FREE), FREE).is_empty()


@pytest.mark.parametrize("rule", ["quality", "cost", "latency"])
def test_the_look_ahead_begins_with_what_is_decided_today(rule: Rule, demo_store: Path):
    """The jitter that was measured holds in the simulations too."""
    view = View(Store.open(demo_store).read(), DEMO, quality=AT_10, latency=Latency(), book=BOOK, rule=rule)
    known = data.sample(view)
    assert known is not None
    assert known.band.tolist() == pytest.approx(view.decision.band.tolist())
    rows = worth.leading(view.table, view.decision, shares(view.table, known, (FREE, rule)))
    ahead = worth.plan(view.table, rows, known, (FREE, rule), (10,))
    assert ahead.rows[ahead.judged.now] == view.decision.chosen
