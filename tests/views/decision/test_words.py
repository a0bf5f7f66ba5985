from typing import Any

import numpy as np
import polars as pl
import pytest

from core.analysis.status import marked
from core.analysis.workspace.scope import Latency, Quality
from core.decide.axes import COST, LATENCY
from core.decide.joint import JointSample
from core.decide.rules import Constraints, decide
from core.views.decision.tiles import cards, firmness
from core.views.decision.words import (
    answer,
    lacking,
    note,
    numbers,
    sure_words,
    title,
    why,
)
from core.views.words.advice import NOTHING
from core.views.words.choice import limits, meaning
from core.views.words.late import late_chip, may_break, slow_words
from core.views.words.trade import side_by_side, trade
from tests.views.made import AT_10, asking, stacks

TABLE = stacks(
    name=["slow <b>best</b>", "fast", "dear", "unknown"],
    quality=[0.8, 0.7, 0.6, None],
    quality_low=[0.75, None, None, None],
    quality_high=[0.85, None, None, None],
    latency_ms=[900.0, 100.0, 300.0, None],
    cost=[1.25, 0.5, 9.0, None],
    n=[50, None, 7, None],
)


def said(constraints: Constraints, table: pl.DataFrame = TABLE):
    return answer(asking(table, constraints))


@pytest.mark.parametrize(
    ("constraints", "words"),
    [
        (Constraints(), ""),
        (Constraints(sla_ms=500), " within 500 ms (p50)"),
        (Constraints(budget=2.5), " within $2.50 / 1k"),
        (Constraints(min_quality=0.75), " above a quality of 0.75"),
        (Constraints(sla_ms=1500, budget=0.01, min_quality=0.5),
         " within 1.50 s (p50) and $0.01 / 1k above a quality of 0.50"),
    ],
)  # fmt: skip
def test_limits_in_words(constraints: Constraints, words: str):
    assert limits(constraints, Latency()) == words


def test_the_answer_names_the_stack_its_numbers_and_what_would_be_cheaper():
    found = said(Constraints())
    assert found.sentence == (
        "Best so far: slow <b>best</b>; confidence unknown. "
        "RA-nWG@10 0.800 [0.750, 0.850], n = 50; 900 ms; $1.25 / 1k."
    )
    assert "3 of 4 stacks" in found.reason
    assert "How sure this is, is unknown: there are no results per query." in found.reason
    offered = "fast: −0.100, saves $0.75 / 1k and 800 ms."
    assert found.reason.endswith(f"Cheaper or faster, by RA-nWG@10: {offered}"), "dear is worse and dearer"


def test_a_limit_changes_the_answer():
    found = said(Constraints(sla_ms=500))
    assert found.sentence.startswith("Best so far within 500 ms (p50): fast; confidence unknown. ")
    assert "2 of 4 stacks" in found.reason
    assert "Cheaper or faster" not in found.reason


def test_nothing_left_names_the_nearest_miss_of_every_limit():
    found = said(Constraints(sla_ms=50, min_quality=0.9))
    assert found.sentence == "No stack within 50.0 ms (p50) above a quality of 0.90 is left."
    assert found.reason == "Nearest: fast, 50 ms over the SLA and 0.200 under the quality floor."


def test_what_breaks_one_limit_is_nearer_than_what_breaks_two():
    table = stacks(name=["both", "slow"], quality=[0.89, 0.95], latency_ms=[51.0, 400.0])
    found = answer(asking(table, Constraints(sla_ms=50.0, min_quality=0.9)))
    assert found.reason == "Nearest: slow, 350 ms over the SLA."
    assert "$0.40 / 1k over the budget" in said(Constraints(budget=0.1)).reason
    assert said(Constraints(min_quality=0.9)).reason.endswith(", 0.100 under the quality floor.")


@pytest.mark.parametrize("table", [stacks(2), stacks(0)])
def test_nothing_known_is_said(table: pl.DataFrame):
    found = said(Constraints(), table)
    assert found.sentence == "No stack here has a known RA-nWG@10."
    assert "import what is missing" in found.reason


@pytest.mark.parametrize(
    ("limits", "rule", "said"),
    [
        (
            Constraints(budget=1.0),
            "quality",
            f"The budget asks for it: {COST.remedy}.",
        ),
        (Constraints(), "cost", f"The rule asks for it: {COST.remedy}."),
        (Constraints(sla_ms=100.0), "quality", f"The SLA asks for it: {LATENCY.remedy}."),
    ],
)
def test_what_no_stack_is_known_on_but_is_asked_for_is_said(limits: Constraints, rule: str, said: str):
    found = answer(asking(stacks(quality=[0.5, 0.6]), limits, rule))
    assert found.sentence.startswith("No stack here has a known ")
    assert found.reason == said


QUERIES = np.full((2, 20), 0.8)
QUERIES[1] = 0.795
TWO = stacks(
    name=["deep", "shallow"], quality=[0.80, 0.795], latency_ms=[300.0, 290.0], cost=[2.0, 1.0], n=[20, 20]
)


def of_queries(table: pl.DataFrame, values: np.ndarray) -> JointSample:
    latency = table["latency_ms"].to_numpy()
    none, untimed = np.full(len(values), np.nan), np.full(values.shape, np.nan)
    return JointSample(values, untimed, table["cost"].to_numpy(), none, latency)


def test_a_tie_says_within_what_it_is_one_and_how_it_was_broken():
    view = asking(TWO, Constraints(delta=0.01), sample=of_queries(TWO, QUERIES))
    found = answer(view)
    assert found.sentence.startswith("Ship shallow")
    assert "2 stacks tie: surely within 0.01 of the highest estimate. Chosen by lower cost." in found.reason
    assert "0.795 expected on new queries, 0.800 of the runner-up." in found.reason
    said = "One of 2 surely within 0.01 of the highest estimate; chosen by lower cost."
    assert why(view) == said
    assert firmness(TWO, view.decision, view.sure) == ("100.0 %", "chance to be within 0.01 of the best")


@pytest.mark.parametrize(
    ("columns", "limits", "said"),
    [
        ({}, {}, ": both stacks score 0.800; take the cheapest, shallow"),
        ({"cost": [2.0, 2.0]}, {}, ": both stacks score 0.800; take the cheapest, shallow"),
        ({"cost": [None, 2.0]}, {}, ": both stacks score 0.800; take the fastest, shallow"),
        ({"cost": [2.0, None]}, {}, ": both stacks score 0.800; take deep"),
        ({}, {"sla_ms": 310.0}, " within 310 ms (p50): both stacks score 0.800; take the cheapest, shallow"),
    ],
)
def test_where_all_score_alike_no_difference_is_seen_and_the_lightest_is_taken(
    columns: dict[str, Any], limits: dict[str, float], said: str
):
    alike = TWO.with_columns(quality=pl.lit(0.8), **{name: pl.Series(of) for name, of in columns.items()})
    sample = of_queries(alike, np.full((2, 20), 0.8))
    view = asking(alike, Constraints(delta=0.01, jitter_ms=1.0, **limits), sample=sample)
    found = answer(view)
    assert found.sentence.startswith(f"No difference seen{said}: RA-nWG@10 0.800")
    assert title(view) == f"No difference seen{said.replace(' within 310 ms (p50)', '')}"
    assert why(view) == "All score alike on each of 20 queries; only other queries could tell."
    alone = asking(TWO, Constraints(sla_ms=295.0, delta=0.01), sample=sample)
    assert title(alone) == "Ship shallow", "one that is left by itself is no choice among equals"


def test_what_is_not_surely_as_good_never_ties_but_is_offered_with_its_price():
    view = asking(TWO, Constraints(delta=0.001), sample=of_queries(TWO, QUERIES))
    found = answer(view)
    assert found.sentence.startswith("Ship deep")
    assert "Surely ahead of all others." in found.reason
    assert why(view) == f"The best RA-nWG@10 of both stacks, surely ahead of each. {NOTHING}"
    assert found.reason.endswith("shallow: −0.005 [−0.005, −0.005], saves $1.00 / 1k.")
    noisy = QUERIES + np.random.default_rng(1).normal(0, 0.2, QUERIES.shape)
    table = TWO.with_columns(quality=pl.Series(noisy.mean(axis=1)))
    assert "urely" not in answer(asking(table, sample=of_queries(table, noisy))).reason


@pytest.mark.parametrize(
    ("loss", "cost", "ms", "paid"),
    [
        (0.005, 0.4, 90.0, "20 % of the cost"),
        (0.005, 0.04, 90.0, "1/50 of the cost"),
        (0.005, 0.04, 1.0, "1/90 of the time"),
        (0.005, 2.0, 10.0, "11 % of the time"),
        (0.005, 0.0, 90.0, "no cost"),
        (0.005, 1.2, 90.0, None),  # less than half is saved
        (0.3, 0.4, 90.0, None),  # surely better
    ],
)
def test_what_a_much_lighter_stack_gives_up_stands_beside_a_choice_that_is_not_surely_better(
    loss: float, cost: float, ms: float, paid: str | None
):
    random = np.random.default_rng(8)
    values = np.stack([random.normal(0.6, 0.1, 40), random.normal(0.6, 0.1, 40)])
    values += np.array([[0.6], [0.6 - loss]]) - values.mean(axis=1, keepdims=True)
    table = stacks(
        name=["heavy", "light"], quality=values.mean(axis=1).tolist(), latency_ms=[90.0, ms],
        cost=[2.0, cost], n=[40, 40],
    )  # fmt: skip
    view = asking(table, Constraints(delta=0.001), sample=of_queries(table, values))
    found = trade(view)
    if paid is None:
        assert found is None
        assert "may be as good for" not in answer(view).reason
        return
    assert found is not None
    other = view.sure.alternatives[0]
    assert found.sentence == (
        f"light may be as good for {paid}: −0.005 [−{-other.low:.3f}, +{other.high:.3f}] RA-nWG@10."
    )
    assert found.sentence in answer(view).reason
    assert [row["name"] for row in found.sides] == ["heavy", "light"]
    assert [new["expected_quality"] for new in found.expected] == [view.sure.expected, other.expected]
    shown = side_by_side(view, found).rows
    assert shown["took"].to_list() == ["90.0 ms", f"{ms:.1f} ms" if ms >= 10 else f"{ms:.2f} ms"]
    assert shown["expected"][1].startswith(f"{other.expected:.3f} [{other.expected_low:.3f}, ")


def test_of_averages_only_a_much_lighter_stack_stands_beside_the_choice_within_delta_alone():
    for loss, stands in ((0.005, True), (0.02, False)):
        table = stacks(name=["heavy", "light"], quality=[0.6, 0.6 - loss], latency_ms=[90.0, 90.0],
                       cost=[2.0, 0.1])  # fmt: skip
        found = trade(asking(table, Constraints(delta=0.01)))
        assert (found is not None) is stands
        if found is not None:
            assert found.sentence == "light may be as good for 1/20 of the cost: −0.005 RA-nWG@10."


def test_a_stack_that_a_person_takes_says_in_whose_place_and_is_dropped_aloud():
    sample = of_queries(TWO, QUERIES)
    taken = asking(TWO, sample=sample, take="r1")
    assert answer(taken).sentence.startswith("Taken by hand: shallow; surely worse than deep. ")
    assert "Taken by hand in place of deep." in answer(taken).reason
    assert why(taken).startswith("Taken by hand in place of deep.")
    dropped = asking(TWO, Constraints(sla_ms=295.0), sample=sample, take="r0")
    assert answer(dropped).sentence.startswith("Ship shallow")
    assert "deep was taken, but does not meet these limits." in answer(dropped).reason
    assert "deep was taken, but does not meet these limits." in why(dropped)


def test_unknown_figures_read_as_unknown():
    row = stacks(quality=[0.5], n=[None]).row(0, named=True)
    assert numbers(row, AT_10, Latency()) == "RA-nWG@10 0.500, n unknown; latency unknown; cost unknown"


def test_a_stack_that_was_clicked_says_what_became_of_it():
    limited = Constraints(sla_ms=500, budget=2.5)
    rows = marked(TABLE, decide(TABLE, limited))
    names = dict(rows.select("name", "run_id").iter_rows())
    assert note(rows, LATENCY, names["dear"]) == "dear is excluded: $6.50 / 1k over the budget."
    assert "400 ms over the SLA" in note(rows, LATENCY, names["slow <b>best</b>"])
    assert "cost and quality" in note(rows, COST, None), "the line is of two axes"


def test_dollars_too_small_to_read_are_per_million():
    row = {**TABLE.row(0, named=True), "cost": 0.0000066, "cost_basis": "measured"}
    row |= {"cost_shown_per": 1_000_000, "cost_digits": 2}
    assert cards(row, AT_10, Latency(), BILL, late="", paid="list price")[2] == (
        "Cost per million queries", "$0.0066", ["embed"], "list price",
    )  # fmt: skip


BILL = pl.DataFrame({"stage": ["embed"], "unit": ["input_tokens"], "usd_per_1k": [0.0000066]})
OF_TWO = pl.DataFrame(
    {"stage": ["embed", "sparse"], "item": ["local-cpu"] * 2, "unit": ["cpu_hour"] * 2}
    | {"usd_per_1k": [0.3, 0.1], "units_per_query": [0.006, 0.002]}
)


def test_the_card_of_a_cost_says_its_largest_stage_its_prices_and_that_idle_time_is_not_in_it():
    row = {**TABLE.row(0, named=True), "cost": 0.4, "cost_basis": "measured"}
    shown = cards(row, AT_10, Latency(), OF_TWO, late="", paid="assumed price")[2]
    assert shown[2:] == (
        ["machine time", "mostly embed", "idle time excluded; a machine costs $36.50 monthly"],
        "assumed price",
    )
    reported = cards({**row, "cost_basis": "published"}, AT_10, Latency(), BILL, late="", paid="list price")
    assert reported[2][3] == "published", "its source's own figure has no price of ours"


def test_the_card_of_a_latency_says_the_p95_beside_the_p50_and_that_of_quality_what_is_measured():
    late = {"ms": 17.7, "low": 16.1, "high": 24.0, "n": 64, "note": None}
    shown = cards(TABLE.row(0, named=True), AT_10, Latency(), BILL, late=slow_words(late), paid="list price")
    assert shown[1][2][-1] == "p95 17.7 ms [16.1 ms, 24.0 ms]"
    assert shown[0][2][-1] == "share of the best possible evidence in ten passages"
    assert may_break(late, 20.0).startswith(
        "The p95 17.7 ms [16.1 ms, 24.0 ms] may be beyond the SLA of 20.0"
    )
    assert "is beyond" in may_break(late, 10.0)
    chips = {sla: list(late_chip(late, sla)) for sla in (10.0, 20.0, 30.0)}
    assert chips == {10.0: ["p95 beyond the SLA"], 20.0: ["p95 near the SLA"], 30.0: []}
    assert may_break(late, 30.0) == may_break(None, 1.0) == may_break({**late, "ms": None}, 1.0) == ""


def test_a_measure_explains_itself_where_it_is_known():
    assert meaning(AT_10) == "share of the best possible evidence in ten passages"
    assert meaning(Quality("GMAP", 10)) == ""


@pytest.mark.parametrize(
    ("names", "n", "ships", "lacks"),
    [
        (["one", "two"], 50, True, ()),
        (["one"], 50, False, ("only stack",)),
        (["one", "two"], 5, False, ("5 queries", "leads")),
        (["one"], 3, False, ("3 queries", "only stack")),
        (["one", "two"], None, True, ()),
    ],
)
def test_a_choice_without_evidence_is_none(
    names: list[str], n: int | None, ships: bool, lacks: tuple[str, ...]
):
    table = stacks(name=names, quality=[0.9, 0.5][: len(names)], n=[n] * len(names))
    view = asking(table)
    assert answer(view).sentence.startswith("Best so far: ") is ships
    assert all(words in lacking(table, view.decision) for words in lacks)
    assert bool(lacking(table, view.decision)) is bool(lacks)
    few = "fewer than 8 queries" if n is not None and n < 8 else None
    alone = "nothing to choose from" if len(names) == 1 else "there are no results per query"
    assert firmness(table, view.decision, view.sure)[1] == (few or alone)


def test_the_only_stack_within_the_limits_says_how_often_it_meets_them():
    view = asking(
        TWO, Constraints(min_quality=0.7975), sample=of_queries(TWO, QUERIES + np.tile([-0.1, 0.1], 10))
    )
    feasible = view.sure.p_feasible
    assert 0.3 < feasible < 0.9
    assert firmness(TWO, view.decision, view.sure) == (
        "–",
        f"nothing to choose from; meets the limits in {100 * feasible:.1f} %",
    )
    assert sure_words(view).startswith(f"Meets the limits in {100 * feasible:.1f} % of")
