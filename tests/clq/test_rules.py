import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.clq.rules import Constraints, decide
from core.errors import UnknownNameError

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
        ({}, "quality", "hybrid", "full200"),
        ({"sla_ms": 4000}, "quality", "full200", "full100"),
        ({"sla_ms": 700}, "quality", "full100", "lite50"),
        ({"sla_ms": 600}, "quality", "lite50", "full50"),  # ties with full50: same K, lower cost
        ({"budget": 1.25}, "quality", "lite50", "full50"),
        ({"sla_ms": 200}, "quality", "dense", None),
        ({"sla_ms": 100}, "quality", None, None),
        ({"floor": 0.75}, "cost", "lite50", "full50"),
        ({"floor": 0.75}, "latency", "lite50", "full50"),
        ({"floor": 0.78}, "latency", "full50", "full100"),
        ({}, "cost", "dense", "lite50"),
        ({"floor": 0.75, "sla_ms": 700, "budget": 1.0}, "quality", "lite50", None),
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
        ({"floor": 0.50004}, "0.00004 under the quality floor"),
    ],
)
def test_a_small_excess_is_not_rounded_to_nothing(limits, reason):
    rows = table(("a", 0.5, None, None, 10.0, 0.0000067, None))
    assert decide(rows, Constraints(**limits)).excluded()["reason"].to_list() == [reason]


def test_excluded_rows_name_their_first_constraint():
    found = decide(STACKS, Constraints(sla_ms=600, budget=1.0, floor=0.6))
    rows = {row["run_id"]: row for row in found.excluded().iter_rows(named=True)}
    assert found.feasible.tolist() == [False, True, False, False, False, False]
    assert {name: row["constraint"] for name, row in rows.items()} == {
        "dense": "floor",
        "full50": "budget",
        "full100": "sla",
        "full200": "sla",
        "hybrid": "unknown latency",
    }
    assert rows["full100"]["by"] == pytest.approx(81.0)
    assert rows["full100"]["reason"] == "81 ms over the SLA"
    assert rows["full50"]["reason"] == "$0.25 / 1k over the budget"
    assert rows["dense"]["reason"] == "0.030 under the quality floor"
    assert (rows["hybrid"]["by"], rows["hybrid"]["reason"]) == (None, "unknown latency")
    assert [rows[name]["unit"] for name in ("full100", "full50", "dense")] == ["ms", "$ / 1k", ""]


@pytest.mark.parametrize(
    ("limits", "rule", "constraint"),
    [
        ({}, "quality", None),
        ({"budget": 99}, "quality", "unknown cost"),
        ({}, "cost", "unknown cost"),
        ({}, "latency", "unknown latency"),
        ({"floor": 0.9}, "quality", "floor"),
    ],
)
def test_unknown_excludes_only_where_it_is_needed(limits, rule, constraint):
    excluded = decide(STACKS, Constraints(**limits), rule).excluded()
    found = excluded.filter(pl.col("run_id") == "hybrid")["constraint"].to_list()
    assert found == ([constraint] if constraint else [])


def test_unknown_quality_is_never_chosen():
    rows = table(("a", None, None, None, 1.0, 0.0, 1), ("b", 0.1, None, None, 9.0, 9.0, 9))
    found = decide(rows, Constraints())
    assert names(rows, found.chosen) == "b"
    assert found.excluded()["reason"].to_list() == ["unknown quality"]


def test_ties_prefer_the_smaller_prompt():
    rows = table(
        ("best", 0.82, 0.78, 0.86, 520.0, 2.5, 100),
        ("smaller", 0.80, 0.76, 0.84, 560.0, 9.9, 50),
        ("worse", 0.70, 0.60, 0.80, 500.0, 0.5, 20),  # outside the interval
        ("slower", 0.81, 0.77, 0.85, 600.0, 0.5, 20),  # outside the jitter band
    )
    found = decide(rows, Constraints())
    assert names(rows, found.chosen) == "smaller"
    assert names(rows, found.runner_up) == "best"
    assert [rows["run_id"][row] for row in found.ties] == ["smaller", "best"]
    assert found.note.startswith("2 stacks tie with the best: within 75 ms")
    assert found.note.endswith("Chosen by fewer candidates.")
    assert names(rows, decide(rows, Constraints(jitter_ms=30)).chosen) == "best"
    assert names(rows, decide(rows, Constraints(jitter_ms=81)).chosen) == "slower"


def test_ties_then_prefer_shorter_chunks_then_cost_then_latency():
    rows = table(
        ("a", 0.80, 0.7, 0.9, 500.0, 2.0, 50),
        ("b", 0.80, 0.7, 0.9, 490.0, 2.0, 50),
        ("c", 0.80, 0.7, 0.9, 510.0, 1.0, 50),
    )
    assert names(rows, decide(rows, Constraints()).chosen) == "c"
    assert names(rows, decide(rows.head(2), Constraints()).chosen) == "b"
    chunks = rows.with_columns(pl.Series("chunk_tokens", [200.0, 400.0, 400.0]))
    assert names(chunks, decide(chunks, Constraints()).chosen) == "a"


def test_without_an_interval_only_equal_quality_ties():
    rows = table(("a", 0.80, None, None, 500.0, 2.0, 100), ("b", 0.80, None, None, 500.0, 3.0, 50))
    found = decide(rows, Constraints())
    assert names(rows, found.chosen) == "b"
    assert "equal quality (no interval known)" in found.note
    apart = rows.with_columns(pl.Series("quality", [0.80, 0.799]))
    assert names(apart, decide(apart, Constraints()).chosen) == "a"


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


known = st.one_of(st.none(), st.integers(0, 6).map(float))
stacks = st.lists(st.tuples(known, known, known, known), min_size=1, max_size=25)


@given(
    rows=stacks,
    sla=known,
    budget=known,
    floor=known,
    rule=st.sampled_from(["quality", "cost", "latency"]),
)
def test_invariants(rows, sla, budget, floor, rule):
    named = [(f"r{n}", q, q, q, latency, cost, k) for n, (q, latency, cost, k) in enumerate(rows)]
    found = decide(table(*named), Constraints(sla_ms=sla, budget=budget, floor=floor, jitter_ms=1), rule)
    assert found.feasible.sum() + found.excluded().height == len(rows)
    assert (found.chosen is None) == (not found.feasible.any())
    assert (found.runner_up is None) == (found.feasible.sum() < 2)
    for row in found.ties:
        assert found.feasible[row]
    if found.chosen is None:
        return
    quality, latency, cost, _ = rows[found.chosen]
    feasible = [rows[row] for row in np.flatnonzero(found.feasible)]
    assert sla is None or latency <= sla
    assert budget is None or cost <= budget
    assert floor is None or quality >= floor
    if rule == "quality":  # the interval is a point, so a tie is of equal quality
        assert quality == max(row[0] for row in feasible)
    if rule == "cost":
        assert cost == min(row[2] for row in feasible)
    if rule == "latency":
        assert latency == min(row[1] for row in feasible)
