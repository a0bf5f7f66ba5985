import polars as pl
import pytest

from core.decide.rules import Constraints, decide
from core.errors import UnknownNameError
from core.number_format import CostUnit

COLUMNS = ("run_id", "quality", "quality_low", "quality_high", "latency_ms", "cost", "candidates")


def table(*rows):
    floats = dict.fromkeys(COLUMNS[1:], pl.Float64)
    return pl.DataFrame(rows, schema={"run_id": pl.String, **floats}, orient="row")


# quality, its interval, ms, $ / 1k, K
STACKS = table(
    ("dense", 0.57, 0.50, 0.64, 186.0, 0.00, None),
    ("lite50", 0.77, 0.70, 0.83, 539.0, 0.50, 50),
    ("full50", 0.80, 0.74, 0.86, 519.0, 1.25, 50),
    ("full100", 0.81, 0.75, 0.87, 681.0, 2.50, 100),
    ("full200", 0.82, 0.76, 0.88, 3118.0, 5.00, 200),
    ("hybrid", 0.85, 0.79, 0.91, None, None, 50),
)


def names(rows, found):
    return None if found is None else rows["run_id"][found]


@pytest.mark.parametrize(
    ("limits", "rule", "chosen", "runner_up"),
    [
        ({}, "quality", "hybrid", "full200"),  # an unknown latency and cost are nobody's business
        ({"sla_ms": 4000}, "quality", "full200", "full100"),
        ({"sla_ms": 700}, "quality", "full100", "full50"),
        ({"sla_ms": 600}, "quality", "full50", "lite50"),
        ({"budget": 1.25}, "quality", "full50", "lite50"),
        ({"sla_ms": 200}, "quality", "dense", None),
        ({"sla_ms": 100}, "quality", None, None),
        ({"min_quality": 0.75}, "cost", "lite50", "full50"),
        ({"min_quality": 0.75}, "latency", "full50", "lite50"),  # of the two within 75 ms the better
        ({"min_quality": 0.78}, "latency", "full50", "full100"),
        ({}, "cost", "dense", "lite50"),
        ({"min_quality": 0.75, "sla_ms": 700, "budget": 1.0}, "quality", "lite50", None),
    ],
)
def test_rules(limits, rule, chosen, runner_up):
    found = decide(STACKS, Constraints(**limits), rule)
    assert (names(STACKS, found.chosen), names(STACKS, found.runner_up)) == (chosen, runner_up)


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"sla_ms": 9.98}, "0.02 ms over the SLA"),
        ({"sla_ms": 7.25}, "2.8 ms over the SLA"),
        ({"sla_ms": 0.0}, "10 ms over the SLA"),
        ({"budget": 0.0000015}, "$0.0000052 / 1k over the budget"),
        ({"budget": 0.0000015, "costs_said": CostUnit(million=True)}, "$0.0052 / 1M over the budget"),
        ({"budget": 0.0000066555, "costs_said": CostUnit(True, 4)}, "$0.0000445 / 1M over the budget"),
        ({"min_quality": 0.50004}, "0.00004 under the quality floor"),
    ],
)
def test_a_small_excess_is_not_rounded_to_nothing(limits, reason):
    rows = table(("a", 0.5, None, None, 10.0, 0.0000067, None))
    assert decide(rows, Constraints(**limits)).excluded()["reason"].to_list() == [reason]


def test_excluded_rows_name_their_first_constraint_and_all_reasons():
    found = decide(STACKS, Constraints(sla_ms=600, budget=1.0, min_quality=0.6))
    rows = {row["run_id"]: row for row in found.excluded().iter_rows(named=True)}
    assert found.feasible.tolist() == [False, True, False, False, False, False]
    assert {name: row["constraint"] for name, row in rows.items()} == {
        "dense": "min_quality",
        "full50": "budget",
        "full100": "sla_ms",
        "full200": "sla_ms",
        "hybrid": "unknown latency",
    }
    assert rows["full100"]["by"] == pytest.approx(81.0)
    assert rows["full100"]["reason"] == "81 ms over the SLA and $1.50 / 1k over the budget"
    assert rows["full200"]["reason"] == "2518 ms over the SLA and $4.00 / 1k over the budget"
    assert rows["full50"]["reason"] == "$0.25 / 1k over the budget"
    assert rows["dense"]["reason"] == "0.030 under the quality floor"
    assert (rows["hybrid"]["by"], rows["hybrid"]["reason"]) == (None, "unknown latency and unknown cost")
    assert [rows[name]["unit"] for name in ("full100", "full50", "dense")] == ["ms", "$ / 1k", ""]


UNTIMED = STACKS.with_columns(pl.lit(None, pl.Float64).alias("latency_ms"))
UNPRICED = STACKS.with_columns(pl.lit(None, pl.Float64).alias("cost"))
ENDURING = STACKS.with_columns(pl.Series("robust", [0.1, 0.5, None, 0.3, 0.5, 0.1]))
HARMED = STACKS.with_columns(pl.Series("harm", [0.1, None, None, 0.3, 0.3, 0.1]))
BARE = UNTIMED.with_columns(pl.lit(None, pl.Float64).alias("cost"))


@pytest.mark.parametrize(
    ("rows", "limits", "rule", "expected"),
    [
        (STACKS, {}, "quality", ("hybrid", None, [])),
        (STACKS, {"min_quality": 0.9}, "quality", (None, "min_quality", [])),  # breaks a limit: not promising
        (STACKS, {}, "cost", ("dense", "unknown cost", [])),
        (STACKS, {"sla_ms": 700}, "quality", ("full100", "unknown latency", [])),
        (STACKS, {"budget": 2.0}, "quality", ("full50", "unknown cost", [])),
        (UNTIMED, {}, "quality", ("hybrid", None, [])),
        (UNPRICED, {"sla_ms": 700}, "quality", ("full100", "unknown latency", [])),
        # what nobody has cannot be limited, nor be what the rule minimises
        (BARE, {"sla_ms": 700}, "quality", (None, "unknown latency", ["latency"])),
        (BARE, {"max_harm": 0.2}, "quality", (None, "unknown harm", ["harm"])),
        (BARE, {}, "cost", (None, "unknown cost", ["cost"])),
        (BARE, {}, "latency", (None, "unknown latency", ["latency"])),
        (BARE, {"min_quality": 0.83}, "quality", ("hybrid", None, [])),
        (HARMED, {}, "quality", ("hybrid", None, [])),
        (HARMED, {"max_harm": 0.2, "sla_ms": 700}, "quality", ("dense", "unknown latency", [])),
        (ENDURING, {"min_robust": 0.2, "sla_ms": 700}, "quality", ("full100", "min_robust", [])),
    ],
)
def test_an_axis_is_required_where_a_limit_or_the_rule_asks_for_it(rows, limits, rule, expected):
    found = decide(rows, Constraints(**limits), rule)
    excluded = dict(found.excluded().select("run_id", "constraint").iter_rows())
    hybrid = excluded.get("hybrid")
    assert (names(rows, found.chosen), hybrid, [axis.key for axis in found.lacking]) == expected
    place = rows["run_id"].to_list().index("hybrid")
    assert found.promising[place] == (hybrid is not None and hybrid.startswith("unknown"))


def test_unknown_quality_is_never_chosen():
    rows = table(("a", None, None, None, 1.0, 0.0, 1), ("b", 0.1, None, None, 9.0, 9.0, 9))
    found = decide(rows, Constraints())
    assert names(rows, found.chosen) == "b"
    assert found.excluded()["reason"].to_list() == ["unknown quality"]


def equals(*, cost, latency=(100.0, 100.0, 100.0)):
    """Three averages that print alike."""
    rows = [(name, 0.8, None, None, ms, usd, 50) for name, ms, usd in zip("abc", latency, cost, strict=True)]
    return table(*rows)


def test_ties_prefer_the_cheaper_then_the_smaller_prompt_then_the_faster():
    rows = equals(cost=[2.0, 2.0, 1.0])
    assert names(rows, decide(rows, Constraints()).chosen) == "c"
    assert "Chosen by lower cost." in decide(rows, Constraints()).note
    same = equals(cost=[1.0, 1.0, 1.009], latency=(500.0, 400.0, 510.0))
    assert names(same, decide(same, Constraints(jitter_ms=200.0)).chosen) == "a"  # by name
    assert names(same, decide(same, Constraints(jitter_ms=50.0)).chosen) == "b"
    sent = same.with_columns(pl.Series("passages_sent", [20.0, 20.0, 10.0]))
    assert names(sent, decide(sent, Constraints(jitter_ms=200.0)).chosen) == "c"
    tokens = sent.with_columns(pl.Series("tokens_sent", [3000.0, 4000.0, 9000.0]))
    assert names(tokens, decide(tokens, Constraints(jitter_ms=200.0)).chosen) == "a"
    # tokens that are not known of all ties say nothing; passages do
    some = tokens.with_columns(pl.Series("tokens_sent", [3000.0, None, 9000.0]))
    assert names(some, decide(some, Constraints(jitter_ms=200.0)).chosen) == "c"


def test_averages_tie_where_they_print_the_same_alone():
    rows = table(("a", 0.80, 0.7, 0.9, 500.0, 3.0, 100), ("b", 0.80, None, None, 500.0, 2.0, 50))
    found = decide(rows, Constraints())
    assert (names(rows, found.chosen), len(found.ties)) == ("b", 2)
    printed = rows.with_columns(pl.Series("quality", [0.8004, 0.7996]))
    assert names(printed, decide(printed, Constraints()).chosen) == "b"
    apart = rows.with_columns(pl.Series("quality", [0.80, 0.799]))
    assert names(apart, decide(apart, Constraints(delta=0.01)).chosen) == "a"


@pytest.mark.parametrize(
    ("take", "chosen", "instead_of"),
    [
        ("full50", "full50", "full100"),
        ("full200", "full100", None),
        ("gone", "full100", None),
        (None, "full100", None),
    ],
)
def test_a_person_takes_another_feasible_stack(take, chosen, instead_of):
    found = decide(STACKS, Constraints(sla_ms=700), take=take)
    assert (names(STACKS, found.chosen), names(STACKS, found.instead_of)) == (chosen, instead_of)


def test_cost_rule_tells_equal_costs_apart_by_quality():
    rows = table(
        ("fast", 0.45, None, None, 170.0, 0.0, None),
        ("good", 0.59, None, None, 190.0, 0.0, None),
        ("dear", 0.80, None, None, 500.0, 1.0, 50),
    )
    assert names(rows, decide(rows, Constraints(), "cost").chosen) == "good"


def test_optional_columns_may_be_absent_and_required_ones_may_not():
    rows = STACKS.select("run_id", "quality", "latency_ms", "cost")
    assert names(rows, decide(rows, Constraints(sla_ms=600)).chosen) == "full50"
    with pytest.raises(UnknownNameError, match="cost"):
        decide(rows.drop("cost"), Constraints())
    with pytest.raises(UnknownNameError, match="rule"):
        decide(rows, Constraints(), "speed")


def test_no_rows():
    found = decide(STACKS.clear(), Constraints())
    assert (found.chosen, found.runner_up, found.ties, found.note) == (None, None, (), "")
    assert found.excluded().height == 0


def harms(*values):
    """Stacks of growing Harm and quality at once; the measure is either."""
    rows = [(f"r{n}", value, value - 0.05, value + 0.05, 100.0 * n + 1, 1.0, 10) for n, value in values]
    return table(*rows)


LOW_TO_HIGH = harms((1, 0.2), (2, 0.5), (3, 0.8)).with_columns(pl.col("quality").alias("harm"))


@pytest.mark.parametrize("rule", ["quality", "cost", "latency"])
@pytest.mark.parametrize(
    ("limits", "up", "down"),
    [
        ({}, ("r3", "r2"), ("r1", "r2")),
        ({"min_quality": 0.5}, ("r3", "r2"), ("r1", "r2")),
        ({"min_quality": 0.4}, ("r3", "r2"), ("r1", None)),
        ({"min_quality": 0.1}, ("r3", "r2"), (None, None)),
        ({"max_harm": 0.5}, ("r2", "r1"), ("r1", "r2")),
        ({"max_harm": 0.5, "min_quality": 0.3}, ("r2", None), ("r1", None)),
        ({"sla_ms": 250.0}, ("r2", "r1"), ("r1", "r2")),
        ({"budget": 0.5}, (None, None), (None, None)),
    ],
)
def test_best_follows_the_direction(limits, up, down, rule):
    wide = 1e6 if rule == "latency" else 75.0  # one band, so that every rule is about quality here
    alone = LOW_TO_HIGH.with_columns(pl.lit(None, pl.Float64).alias("quality_low"))
    for higher, expected in ((True, up), (False, down)):
        asked = Constraints(**limits, jitter_ms=wide, higher_is_better=higher)
        found = decide(alone, asked, rule)
        assert (names(alone, found.chosen), names(alone, found.runner_up)) == expected


@pytest.mark.parametrize(
    ("higher", "reason"),
    [
        (True, "0.100 under the quality floor"),
        (False, "0.100 over the quality cap"),
    ],
)
def test_a_floor_is_a_cap_where_lower_is_better(higher, reason):
    worst = 0.4 if higher else 0.6
    asked = Constraints(min_quality=0.5, higher_is_better=higher)
    rows = table(("a", worst, None, None, 1.0, 1.0, 1), ("b", 0.5, None, None, 1.0, 1.0, 1))
    found = decide(rows, asked).excluded()
    assert found.select("run_id", "constraint", "reason").rows() == [("a", "min_quality", reason)]


@pytest.mark.parametrize(
    ("bands", "typed", "within"),
    [
        (None, None, ["best", "near", "far"]),  # the paper's 75 ms
        ([1.0, 1.0, 1.0], None, ["best"]),
        ([10.0, 1.0, 1.0], None, ["best", "near"]),
        ([1.0, 10.0, 1.0], None, ["best", "near"]),  # of two stacks the wider band counts
        ([1.0, 1.0, None], None, ["best", "far"]),
        ([1.0, 1.0, 1.0], 75.0, ["best", "near", "far"]),  # a number typed by a person wins
        ([99.0, 99.0, 99.0], 0.0, ["best"]),
    ],
)
def test_the_band_is_that_of_the_stacks_unless_one_is_typed(bands, typed, within):
    rows = table(
        ("best", 0.80, None, None, 100.0, 3.0, 10),
        ("near", 0.80, None, None, 105.0, 2.0, 10),
        ("far", 0.80, None, None, 150.0, 1.0, 10),
    )
    if bands:
        rows = rows.with_columns(pl.Series("jitter_ms", bands, dtype=pl.Float64))
    # of the fastest the better: none is, so the cheaper of those within the band
    fastest = decide(rows, Constraints(jitter_ms=typed), "latency")
    assert names(rows, fastest.chosen) == within[-1]
    best = fastest.band[rows["run_id"].to_list().index("best")]
    assert best == (typed if typed is not None else bands[0] if bands else 75.0)


@pytest.mark.parametrize(
    ("budget", "reason", "promising"),
    [(None, None, False), (3.0, "unknown cost", True), (2.0, "$0.50 / 1k over the budget", False)],
)
def test_what_a_cost_is_at_least_can_break_the_budget(budget, reason, promising):
    rows = STACKS.with_columns(
        pl.when(pl.col("run_id") == "full100").then(None).otherwise("cost").alias("cost"),
        pl.when(pl.col("run_id") == "full100").then("cost").alias("cost_least"),
    )
    found = decide(rows, Constraints(budget=budget))
    excluded = dict(found.excluded().select("run_id", "reason").iter_rows())
    assert excluded.get("full100") == reason
    assert bool(found.promising[3]) == promising
