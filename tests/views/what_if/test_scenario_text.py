import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ClqError
from core.views.what_if.scenarios import MOST, Scenario, parse, with_one, written

names = st.text("ab 1é<*_", min_size=1, max_size=8).map(lambda name: " ".join(name.split())).filter(bool)
amounts = st.none() | st.floats(0, 1e6).map(lambda value: float(f"{value:.8g}"))
scenarios = st.builds(
    Scenario,
    names,
    st.sampled_from(["quality", "cost", "latency"]),
    sla_ms=amounts,
    budget=amounts,
    min_quality=amounts,
    dim=amounts,
    depth=amounts,
)


@pytest.mark.slow
@given(st.lists(scenarios, max_size=4, unique_by=lambda each: each.name))
def test_what_is_written_reads_back(given_ones: list[Scenario]):
    assert parse(written(given_ones)) == given_ones


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", []),
        (" ; ;", []),
        ("A:", [Scenario("A")]),
        ("A: sla_ms 500", [Scenario("A", sla_ms=500.0)]),
        ("A: sla 500, floor 0.5, harm 0.1", [Scenario("A", sla_ms=500, min_quality=0.5, max_harm=0.1)]),
        (" A : cost , K 100;B: latency", [Scenario("A", "cost", depth=100.0), Scenario("B", "latency")]),
    ],
)
def test_reads(line: str, expected: list[Scenario]):
    assert parse(line) == expected


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("A", "is not a scenario"),
        (": cost", "is not a scenario"),
        ("A: best", "rule"),
        ("A: quality, slo 5", "limit"),
        ("A: sla_ms fast", "the sla_ms “fast”"),
        ("A: sla_ms -1", "the sla_ms “-1”"),
        ("A: sla nan", "the sla_ms “nan”"),
        ("A: sla 1, sla_ms 2", "twice"),
        ("A: cost; A: quality", "Two scenarios"),
        ("; ".join(f"n{i}: cost" for i in range(MOST + 1)), "too many"),
    ],
)
def test_refuses_and_says_where(line: str, said: str):
    with pytest.raises(ClqError, match=said):
        parse(line)


def test_one_more_or_the_same_name_replaced():
    line = with_one("A: cost", Scenario(" B  b ", "quality", 500.0))
    assert line == "A: cost; B b: quality, sla_ms 500"
    assert with_one(line, Scenario("A", "latency")) == "A: latency; B b: quality, sla_ms 500"
    for name in ("", " ", "a:b", "a;b", "a,b"):
        with pytest.raises(ClqError, match="is not a name"):
            with_one(line, Scenario(name))


def test_in_words():
    asked = Scenario("A", "cost", 500.0, 2.5, 0.7, 512.0, 100.0)
    assert asked.words() == (
        "lowest cost, at most 500 ms, at most $2.50 / 1k, quality at least 0.7, at most 512 d, K at least 100"
    )
