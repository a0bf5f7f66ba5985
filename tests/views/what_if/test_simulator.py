from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from core.analysis.families import (
    Option,
    Signal,
    available,
    families,
    refusal,
    stacks_as_options,
    with_replays,
)
from core.analysis.workspace.scope import Latency, Quality, Scope
from core.analysis.workspace.view import View
from core.decide.routing import Depths
from core.decide.rules import Constraints
from core.store import Snapshot, Store
from core.views.ask import Given
from core.views.what_if import words
from core.views.what_if.data import ask_options
from core.views.what_if.routing import Bounds, Routable, RoutingWay, gather
from core.views.what_if.simulator import NAMES, chart, drawable, nothing, simulate
from tests.views.made import AT_10, BOOK, DEMO, PAPER, every_k, table
from tests.views.what_if import routed

AT_5 = Quality("RA-nWG", 5)
N = 40


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """Each depth run by itself."""
    return routed.write(tmp_path_factory.mktemp("routed") / "s", (5, 10, 20)).read()


@pytest.fixture(scope="module")
def deepest(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """The reranker asked at the deepest only."""
    return routed.write(tmp_path_factory.mktemp("deepest") / "s", (5, 20), deepest=True).read()


def asked(snapshot: Snapshot, scope: Scope = routed.ROUTED, quality: Quality = AT_5) -> View:
    return View(snapshot, scope, quality=quality, latency=Latency(), book=BOOK)


def rows_of(snapshot: Snapshot, scope: Scope = routed.ROUTED, quality: Quality = AT_5) -> pl.DataFrame:
    return table(snapshot, scope, quality)


@pytest.mark.slow
def test_a_replay_equals_the_run_of_its_own(store: Snapshot):
    rows = rows_of(store)
    (family,) = families(rows)
    five, ten, twenty = family.options
    replays = [Option(each.label, twenty.run_id, each.depth, deep=20) for each in (five, ten)]
    own = gather(asked(store), [five, ten, twenty])
    again = gather(asked(store), [*replays, twenty])
    assert own is not None
    assert again is not None
    assert own.query_ids == again.query_ids
    assert again.depths.quality == pytest.approx(own.depths.quality)
    assert own.latency_basis == ("measured",) * 3
    assert again.latency_basis == ("modelled", "modelled", "measured")
    assert again.cost_basis == ("modelled", "modelled", "measured")
    assert (again.depths.latency_ms[0] < again.depths.latency_ms[2]).all()
    assert again.depths.cost[0, 0] < again.depths.cost[2, 0]
    assert any("modelled from the run at K = 20" in note for note in again.notes)


@pytest.mark.slow
def test_depths_without_a_latency_of_their_own_are_modelled(deepest: Snapshot):
    rows = rows_of(deepest)
    (family,) = families(rows)
    found = gather(asked(deepest), family.options)
    assert found is not None
    assert found.latency_basis == ("modelled", "measured")
    assert (found.depths.latency_ms[0] < found.depths.latency_ms[1]).all()
    assert "in proportion to K" in found.notes[0]


def test_a_family_offers_what_was_run_and_what_can_be_replayed(store: Snapshot):
    rows = rows_of(store)
    (family,) = families(rows)
    assert [option.label for option in family.options] == ["K = 5", "K = 10", "K = 20"]
    assert {name.replace(", K = 20", "") for name in rows.filter(candidates=20)["name"]} == {family.name}
    deepest_only = rows.filter(pl.col("candidates") == 20)
    deep = with_replays(store, deepest_only, families(deepest_only)[0])
    assert [(option.depth, option.deep) for option in deep.options] == [(10, 20), (20, None)]
    assert deep.refused == ""


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"reranker": "rebel-one-turn:gpt-4o-mini"}, "listwise"),
        ({"reranker": "house-ranker"}, "is not known here"),
        ({"spec": '{"cut": {"method": "otsu"}}'}, "was cut"),
        ({"spec": '{"chunks_sent": 3}'}, "was cut"),
        ({"manifest": '{"sweep": {"models": {"house": {"provider": "fake", "model": "m"}}}}',
          "reranker": "house"}, ""),
        ({}, ""),
    ],
)  # fmt: skip
def test_what_cannot_be_replayed_is_refused_with_the_reason(
    store: Snapshot, change: dict[str, str], reason: str
):
    run = rows_of(store).row(-1, named=True) | change
    said = refusal(store, run)
    assert (reason in said) if reason else said == ""


def test_a_run_without_its_pool_cannot_be_replayed(demo_store: Path):
    snapshot = Store.open(demo_store).read()
    run = rows_of(snapshot, DEMO, AT_10).row(0, named=True) | {"reranker": "fake"}
    assert refusal(snapshot, run) == "its candidate pool is not stored"


def test_signals_are_recorded_computed_or_tags(store: Snapshot):
    five, _, twenty = families(rows_of(store))[0].options
    recorded = {each.key: each for each in available(store, five, "c")}
    replay = Option("K = 5", twenty.run_id, 5, deep=20)
    computed = {each.key: each for each in available(store, replay, "c")}
    assert {"top_margin", "score_entropy", "rerank_top_margin", "tag:type"} <= set(recorded)
    assert set(computed) == set(recorded)
    for key, signal in recorded.items():
        assert computed[key].values == pytest.approx(signal.values), key
        assert signal.known == ("before" if "tag" in key else "rerank" if "rerank" in key else "pool")
    assert set(recorded["tag:type"].tags.values()) == {"a", "b"}


@pytest.mark.slow
def test_a_signal_known_late_makes_a_deeper_query_wait(store: Snapshot):
    rows = rows_of(store)
    options = families(rows)[0].options
    probes = {}
    for known, way in {
        "pool": RoutingWay("pool"),
        "rerank": RoutingWay("rerank"),
        "listwise": RoutingWay("rerank", pointwise=False),
        "search": RoutingWay("pool", one_family=False),
    }.items():
        found = gather(asked(store), options, way=way)
        assert found is not None
        probes[known] = (found.depths.probe_ms.mean(), found.depths.probe_cost.mean())
    assert probes["pool"] == (0, 0)
    assert probes["search"][0] > probes["rerank"][0] > 0
    assert probes["search"][1] > probes["listwise"][1] > probes["rerank"][1] == 0


@pytest.mark.slow
def test_any_stacks_can_be_routed_between(demo_store: Path):
    snapshot = Store.open(demo_store).read()
    rows = rows_of(snapshot, DEMO, AT_10)
    options = stacks_as_options(rows, rows["name"].gather([0, 2, 4]).to_list())
    waits = [rows.row(by_predicate=pl.col("run_id") == each.run_id, named=True) for each in options]
    assert [each["latency_ms"] for each in waits] == sorted(each["latency_ms"] for each in waits)
    found = gather(asked(snapshot, DEMO, AT_10), options, way=RoutingWay("pool", one_family=False))
    assert found is not None
    assert found.depths.count == 3
    assert found.notes == (
        "The signal is known after the shallow search: a query sent deeper goes through both stacks.",
    )
    (tag,) = (each for each in available(snapshot, options[0], DEMO.collection_id) if each.key == "tag:type")
    made = simulate(found, tag, AT_10)
    assert made.thresholds == ()
    assert made.rows["kind"].to_list() == ["always"] * 3 + ["routed", "optimistic", "random", "oracle"]
    assert drawable(made.rows) == ["p50", "p95", "mean_ms", "cost"]


@pytest.mark.slow
def test_without_a_reranker_a_deeper_pool_changes_nothing_and_the_page_says_so(demo_store: Path):
    snapshot = Store.open(demo_store).read()
    scope = every_k(snapshot)
    rows = rows_of(snapshot, scope, AT_10).filter((pl.col("mode") == "dense") & (pl.col("index") == "flat"))
    (family,) = families(rows)
    found = gather(asked(snapshot, scope, AT_10), family.options)
    assert found is not None
    made = simulate(found, available(snapshot, family.options[0], DEMO.collection_id)[0], AT_10)
    assert made.sentence.startswith("Nothing to route: all 64 queries have the same RA-nWG@10")
    assert "nothing brings them up" in made.details["why"]


def test_published_averages_have_no_families(published_store: Path):
    assert families(rows_of(Store.open(published_store).read(), PAPER, AT_10)) == []


def routable(quality: np.ndarray, **more: object) -> Routable:
    count = len(quality)
    options = tuple(Option(f"K = {50 * (at + 1)}", "r", 50 * (at + 1)) for at in range(count))
    ids = tuple(f"q{at}" for at in range(quality.shape[1]))
    waits = np.arange(1, count + 1)[:, None] * 200.0
    depths = Depths.of(quality, waits, waits / 100, **more)
    return Routable(options, ids, 0, depths, ("measured",) * count, ("measured",) * count, ())


def margin(values: np.ndarray) -> Signal:
    numbers = {f"q{at}": float(value) for at, value in enumerate(values)}
    return Signal("top_margin", "top margin", "pool", hard_is_high=False, values=numbers, tags={})


HARD = np.arange(N) < 12
GAINS = np.vstack([np.where(HARD, 0.2, 0.8), np.where(HARD, 0.9, 0.7)])


def test_a_signal_that_parts_the_queries_is_worth_it():
    values = np.where(HARD, 0.1, 0.9) + np.linspace(0, 0.05, N)
    made = simulate(routable(GAINS), margin(values), AT_10)
    assert made.sentence == ("Worth it: sending 30 % to 100 candidates is better than always 100 candidates.")
    cards = {label: (value, about) for label, value, about in words.cards(made.rows, AT_10)}
    assert cards["RA-nWG@10 routed"][0] == "0.830"
    assert cards["RA-nWG@10 routed"][1].endswith("n = 40")
    assert cards["Against one stack for all"][0] == "+0.070"
    assert cards["Against one stack for all"][1].endswith("always 100 candidates, 0.760")
    routed_row = made.rows.row(by_predicate=pl.col("kind") == "routed", named=True)
    best = made.rows.row(by_predicate=pl.col("kind") == "oracle", named=True)
    assert routed_row["quality"] == pytest.approx(best["quality"])
    assert (routed_row["p50"], routed_row["mean_ms"], routed_row["cost"]) == pytest.approx((200, 260, 2.6))
    assert made.thresholds[0] == pytest.approx(0.5, abs=0.1)
    assert "K = 100 where the signal is below" in made.details["the rule"]


@pytest.mark.parametrize(("jitter", "said"), [(75.0, ""), (200.0, ""), (201.0, "the jitter of 201 ms")])
def test_medians_within_the_jitter_are_no_reason_to_route(jitter: float, said: str):
    made = simulate(routable(GAINS), margin(np.linspace(0, 1, N)), AT_10, jitter_ms=jitter)
    assert said in made.details["latency"]
    assert bool(said) == bool(made.details["latency"])


def test_a_useless_signal_is_not_worth_it():
    made = simulate(routable(GAINS), margin(np.random.default_rng(4).random(N)), AT_10)
    assert made.sentence == "Not worth it: the router (0.665) loses to one stack for all (0.760)."
    told = {kind: made.rows.row(by_predicate=pl.col("kind") == kind, named=True) for kind in NAMES if
            kind != "own"}  # fmt: skip
    assert told["routed"]["gain_low"] <= 1e-12
    assert told["optimistic"]["gain"] >= -1e-12
    assert told["optimistic"]["quality"] >= told["routed"]["quality"]


def test_a_deeper_pool_that_only_harms_is_left_alone():
    made = simulate(routable(GAINS[::-1] * [[1], [0.1]]), margin(np.linspace(0, 1, N)), AT_10)
    assert made.sentence.startswith("Not worth it: the learnt rule keeps 100 %")


def test_a_threshold_of_ones_own_stands_beside():
    values = np.where(HARD, 0.1, 0.9) + np.linspace(0, 0.05, N)
    made = simulate(routable(GAINS), margin(values), AT_10, own=[0.5])
    own = made.rows.row(by_predicate=pl.col("kind") == "own", named=True)
    assert own["deeper"] == pytest.approx(0.3)
    three = np.vstack([GAINS, GAINS[1] + 0.05])
    made = simulate(routable(three), margin(values), AT_10, most=1.0, own=[0.2, 0.95])
    own = made.rows.row(by_predicate=pl.col("kind") == "own", named=True)
    assert own["deeper"] > 0.9
    assert len(made.thresholds) == 2


def test_saving_cost_without_loss_is_worth_it():
    quality = np.vstack([np.where(HARD, 0.2, 0.8), np.where(HARD, 0.9, 0.8)])
    values = np.where(HARD, 0.1, 0.9) + np.linspace(0, 0.05, N)
    made = simulate(routable(quality), margin(values), AT_10)
    assert made.sentence.startswith("Worth it for what it saves, 35 % of the cost: sending ")
    assert made.sentence.endswith("shows no loss.")


def test_the_chart_shows_every_way_and_the_stacks_behind(store: Snapshot):
    made = simulate(routable(GAINS), margin(np.linspace(0, 1, N)), AT_10)
    drawn = chart(made.rows, made.path, rows_of(store), AT_10, "cost")
    names = [trace.name for trace in drawn.data]
    shown = made.rows.filter(pl.col("kind").is_in(["always", "routed", "oracle"]))["way"]
    assert names == ["other stacks", "any share, picked at random", *shown]


def test_too_few_queries_and_no_score():
    assert nothing(None) == "No query has a score at every one of these depths."
    assert "Too few to learn a rule from: 5 queries" in str(nothing(routable(GAINS[:, :5])))
    assert nothing(routable(GAINS)) is None


def test_a_way_that_breaks_a_limit_is_no_option():
    """Always K = 100 takes 400 ms, K = 50 200 ms; routed, half of the queries wait 200 ms, on average 260."""
    values = np.where(HARD, 0.1, 0.9) + np.linspace(0, 0.05, N)
    sent = partial(simulate, routable(GAINS), margin(values), AT_10)
    within = sent(bounds=Bounds(sla_ms=200.0))
    assert dict(within.rows.select("way", "beyond").rows()) == {
        "always 50 candidates": None,
        "always 100 candidates": "200 ms over the SLA",
        **dict.fromkeys((NAMES[kind] for kind in ("routed", "optimistic", "random", "oracle")), None),
    }
    assert within.sentence.endswith(
        "to 100 candidates is better than always 50 candidates."
    )  # the one that may be shipped
    top = words.best_single(within.rows, AT_10)
    assert top["way"] == "always 50 candidates"
    routed_row = within.rows.row(by_predicate=pl.col("kind") == "routed", named=True)
    assert routed_row["over"] == pytest.approx(routed_row["quality"] - top["quality"])
    none = sent(bounds=Bounds(sla_ms=100.0))
    assert none.sentence == ("Beyond your limits: sending 30 % to 100 candidates is 100 ms over the SLA.")
    assert (
        words.best_single(none.rows, AT_10)["way"] == "always 100 candidates"
    )  # the best of all, named as beyond
    assert none.rows["beyond"].null_count() == 0


@pytest.mark.parametrize(
    ("bounds", "way", "said"),
    [
        (Bounds(), {}, None),
        (Bounds(sla_ms=100.0), {}, None),
        (Bounds(sla_ms=90.0), {}, "10.0 ms over the SLA"),
        (Bounds(sla_ms=90.0, percentile="p95"), {}, None),  # of 64 queries it is withheld: unknown
        (Bounds(sla_ms=90.0), {"p50": None}, None),
        (Bounds(budget=1.5), {}, "$0.50 / 1k over the budget"),
        (Bounds(floor=0.6), {}, "under the quality floor"),
        (Bounds(floor=0.4, higher_is_better=False), {}, "over the quality floor"),
        (Bounds(beside=("", "over the harm cap")), {}, "over the harm cap"),
        (Bounds(sla_ms=90.0, budget=1.5), {}, "10.0 ms over the SLA and $0.50 / 1k over the budget"),
    ],
)
def test_the_limits_that_a_way_breaks(bounds: Bounds, way: dict[str, object], said: str | None):
    numbers = {"p50": 100.0, "p95": None, "cost": 2.0, "quality": 0.5, **way}
    assert bounds.broken(numbers, [0, 1]) == said


def test_what_is_routed_between_is_within_the_limits(store: Snapshot):
    """Unasked, no option takes longer than the limits allow: neither a depth nor a stack."""
    rows = rows_of(store).with_columns(latency_ms=10.0 * pl.col("candidates"))
    free = replace(asked(store), given=rows)
    for sla, depths in ((None, [5, 20]), (150.0, [5, 10])):
        view = replace(free, constraints=Constraints(sla_ms=sla))
        _, options = ask_options(view, Given({}))
        _, own = ask_options(view, Given({}), of_my_choice=True)
        assert [option.depth for option in options] == depths
        assert [option.depth for option in own] == depths
    family, options = ask_options(replace(free, constraints=Constraints(sla_ms=60.0)), Given({}))
    assert family is None
    assert [option.depth for option in options] == [5]
