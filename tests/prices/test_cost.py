from datetime import date

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError
from core.prices import Price, PriceBook
from core.prices.calculator import CostInputs, calculator, search_units
from core.prices.cost import cost_per_1k, scope_of, totals
from core.tables import frame


def price(item, unit, amount, per=1e6, currency="USD"):
    return Price(
        item=item,
        provider="acme",
        unit=unit,
        price=amount,
        per=per,
        currency=currency,
        source="test",
        looked_up=date(2026, 11, 1),
        confirmed=True,
    )


BOOK = PriceBook(
    "test",
    (
        price("ranker", "input_tokens", 0.05),
        price("searcher", "search_units", 2.0, per=1000),
        price("caller", "requests", 1.0, per=1000),
        price("embedder", "input_tokens", 0.1),
        price("writer", "input_tokens", 1.0),
        price("writer", "output_tokens", 10.0),
        price("local-cpu", "cpu_hour", 0.36, per=1),
        price("local-gpu", "gpu_hour", 1.8, per=1),
        price("foreign", "input_tokens", 1.0, currency="EUR"),
    ),
)


def usage(*rows):
    names = ("run_id", "query_id", "stage", "item", "unit", "amount", "basis")
    return frame("usage", [dict(zip(names, row, strict=True)) for row in rows])


def costs(*rows):
    return cost_per_1k(usage(*rows), BOOK)


def test_mean_over_queries_times_price():
    found = costs(
        ("a", "q1", "rerank", "ranker", "input_tokens", 10_000.0, "measured"),
        ("a", "q2", "rerank", "ranker", "input_tokens", 30_000.0, "measured"),
    )
    assert found.row(0, named=True) == {
        "run_id": "a",
        "stage": "rerank",
        "usd_per_1k": pytest.approx(1.0),
        "basis": "measured",
        "reason": None,
    }


def test_the_last_digit_of_a_mean_is_the_same_every_time():
    rows = [
        (f"r{run}", f"q{n}", "embed", "local-cpu", "cpu_ms", 1.0 / (1 + n * 7 + run), "measured")
        for run in range(40)
        for n in range(60)
    ]
    table = usage(*rows)
    made = {tuple(cost_per_1k(table, BOOK)["usd_per_1k"]) for _ in range(20)}
    assert len(made) == 1


def test_processor_time_is_priced_by_the_hour():
    found = costs(("a", None, "embed", "local-cpu", "cpu_ms", 10.0, "measured"))
    assert found["usd_per_1k"].item() == pytest.approx(0.36 * 10 / 3_600_000 * 1000)


def test_graphics_time_is_priced_by_the_hour():
    # 20 ms at $1.80 an hour is a hundred-thousandth of a dollar: 1 cent per 1,000 queries
    found = costs(("a", None, "rerank", "local-gpu", "gpu_ms", 20.0, "measured"))
    assert found["usd_per_1k"].item() == pytest.approx(0.01)


def test_weakest_basis_names_the_stage():
    found = costs(
        ("a", None, "rerank", "ranker", "input_tokens", 1.0, "measured"),
        ("a", None, "rerank", "local-cpu", "cpu_ms", 1.0, "modelled"),
    )
    assert found["basis"].to_list() == ["modelled"]


@pytest.mark.parametrize(
    ("item", "amount", "reason"),
    [
        ("nobody", 5.0, "no price for nobody (input_tokens) in test"),
        ("ranker", None, "input_tokens of ranker not recorded"),
        ("ranker", float("nan"), "input_tokens of ranker not recorded"),
        ("foreign", 5.0, "foreign is priced in EUR"),
    ],
)
def test_unknown_is_null_with_a_reason(item, amount, reason):
    found = costs(
        ("a", None, "embed", "embedder", "input_tokens", 20.0, "measured"),
        ("a", None, "rerank", item, "input_tokens", amount, "measured"),
        ("a", None, "rerank", "local-cpu", "cpu_ms", 1.0, "measured"),
    )
    rerank = found.filter(pl.col("stage") == "rerank").row(0, named=True)
    assert (rerank["usd_per_1k"], rerank["reason"]) == (None, reason)
    total = totals(found, ["a"]).row(0, named=True)
    assert (total["usd_per_1k"], total["reason"]) == (None, f"rerank: {reason}")
    # a scope without the unknown stage is known
    assert totals(found, ["a"], {"a": ("embed",)})["usd_per_1k"].item() == pytest.approx(0.002)


def test_one_query_without_an_amount_makes_the_stage_unknown():
    found = costs(
        ("a", "q1", "rerank", "ranker", "input_tokens", 10_000.0, "measured"),
        ("a", "q2", "rerank", "ranker", "input_tokens", None, "measured"),
    )
    assert found["usd_per_1k"].to_list() == [None]


AMOUNTS = st.one_of(st.none(), st.floats(0.01, 9))


@pytest.mark.slow
@given(
    st.dictionaries(st.sampled_from(["embed", "rerank", "generate"]), AMOUNTS),
    st.one_of(st.none(), st.lists(st.sampled_from(["embed", "rerank"]), unique=True)),
    st.one_of(st.none(), AMOUNTS.map(lambda amount: (amount,))),
)
def test_totals_against_adding_up_by_hand(stages, scope, beside):
    schema = {"run_id": pl.String, "stage": pl.String, "usd_per_1k": pl.Float64}

    def costs_of(items):
        rows = [("a", stage, usd) for stage, usd in items]
        made = pl.DataFrame(rows, schema=schema, orient="row").with_columns(basis=pl.lit("measured"))
        return made.with_columns(reason=pl.when(pl.col("usd_per_1k").is_null()).then(pl.lit("no price")))

    further = costs_of([("query", beside[0])] if beside else [])
    row = totals(costs_of(stages.items()), ["a"], {"a": scope}, further=further).row(0, named=True)
    needed = list(stages.values()) if scope is None else [stages.get(stage) for stage in scope]
    counted = [*needed, *(beside or ())]
    known = [usd for usd in counted if usd is not None]
    if None in needed or (scope is None and not counted):
        assert row["usd_per_1k"] is None
    else:
        assert row["usd_per_1k"] == pytest.approx(sum(known))
    if None not in counted or (not known and needed):
        assert row["least"] is None
    else:
        assert row["least"] == pytest.approx(sum(known))
    assert (row["missing"] is None) == (None not in counted)


def test_totals_follow_the_scope_and_the_order_of_runs():
    found = costs(
        ("a", None, "embed", "embedder", "input_tokens", 20.0, "measured"),
        ("a", None, "rerank", "ranker", "input_tokens", 25_000.0, "modelled"),
    )
    whole = totals(found, ["none", "a"])
    assert whole["run_id"].to_list() == ["none", "a"]
    assert whole["usd_per_1k"].to_list() == [None, pytest.approx(1.252)]
    assert whole["reason"].to_list() == ["usage not recorded", None]
    assert whole["stages"].to_list() == [[], ["embed", "rerank"]]
    scoped = totals(found, ["a", "b", "c"], {"a": ("rerank",), "b": (), "c": ("rerank",)})
    assert scoped["usd_per_1k"].to_list() == [pytest.approx(1.25), 0.0, None]
    assert scoped["reason"].to_list() == [None, None, "rerank: usage not recorded"]
    assert scoped["basis"].to_list() == ["modelled", None, None]


def test_nothing_recorded():
    found = cost_per_1k(usage(), BOOK)
    assert found.height == 0
    assert totals(found, [])["run_id"].to_list() == []
    assert totals(found, ["a"])["usd_per_1k"].to_list() == [None]


@pytest.mark.parametrize(
    ("manifest", "spec", "scope"),
    [
        ({}, {"reranker": "r"}, None),
        ({"cost_scope": "rerank"}, {"reranker": "r"}, ("rerank",)),
        ({"cost_scope": "rerank"}, {"reranker": "none"}, ()),
        ({"cost_scope": "rerank"}, {}, ()),
        ({"cost_scope": "generate"}, {}, ("generate",)),
    ],
)
def test_scope_of_a_run(manifest, spec, scope):
    assert scope_of(manifest, spec) == scope


# Hand-computed bills: 1 unit per started 100 documents, a document of up to 500 tokens counts once.
@pytest.mark.parametrize(
    ("documents", "tokens", "units"),
    [(0, 0, 0), (1, 0, 1), (100, 500, 1), (101, 500, 2), (50, 515, 1), (51, 515, 2), (100, 1500, 3)],
)
def test_search_units(documents, tokens, units):
    assert search_units(documents, tokens) == units


def test_calculator_splits_by_stage():
    inputs = CostInputs(
        queries_per_month=100_000,
        candidates=100,
        tokens_per_candidate=500,
        query_tokens=20,
        reranker="ranker",
        embedder="embedder",
        chunks_sent=10,
        tokens_per_chunk=400,
        prompt_tokens=100,
        generator="writer",
        output_tokens=200,
        cpu_ms=1000,
    )
    bill = calculator(inputs, BOOK)
    by_stage = {line.stage: line.usd_per_query for line in bill.lines}
    assert by_stage == {
        "embed": pytest.approx(20 * 0.1e-6),
        "rerank": pytest.approx(50_000 * 0.05e-6),
        "generate-input": pytest.approx(4100 * 1e-6),
        "generate-output": pytest.approx(200 * 10e-6),
        "machine": pytest.approx(0.36 / 3600),
    }
    assert bill.per_query == pytest.approx(sum(by_stage.values()))
    assert bill.per_1k == pytest.approx(1000 * bill.per_query)
    assert bill.per_month == pytest.approx(100_000 * bill.per_query)
    assert bill.unknown == ()
    table = bill.frame()
    assert table["stage"].to_list() == list(by_stage)
    assert table["usd_per_month"].sum() == pytest.approx(bill.per_month)


@pytest.mark.parametrize(
    ("reranker", "unit", "per_1k"),
    [("ranker", "input_tokens", 2.525), ("searcher", "search_units", 6.0), ("caller", "requests", 1.0)],
)
def test_reranker_is_billed_in_its_own_unit(reranker, unit, per_1k):
    bill = calculator(CostInputs(candidates=101, tokens_per_candidate=501, reranker=reranker), BOOK)
    assert bill.lines[0].unit == unit
    # 101 documents of more than 500 tokens count twice: 202 documents, 3 units
    expected = 101 * 501 * 0.05e-6 * 1000 if reranker == "ranker" else per_1k
    assert bill.per_1k == pytest.approx(expected)


def test_unknown_price_makes_the_bill_unknown():
    bill = calculator(CostInputs(reranker="nobody", embedder="embedder", query_tokens=5), BOOK)
    assert (bill.per_query, bill.per_1k, bill.per_month) == (None, None, None)
    assert bill.unknown == ("no price for nobody (input_tokens) in test",)
    assert bill.frame()["usd_per_1k"].to_list() == [pytest.approx(0.0005), None]


def test_foreign_price_is_not_converted():
    bill = calculator(CostInputs(embedder="foreign", query_tokens=5), BOOK)
    assert bill.unknown == ("foreign is priced in EUR",)


def test_nothing_sent_costs_nothing():
    bill = calculator(CostInputs(generator="nobody"), BOOK)
    assert bill.per_query == 0.0
    assert calculator(CostInputs(), BOOK).per_1k == 0.0


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf")])
def test_amounts_are_checked(value):
    with pytest.raises(InputError, match="candidates"):
        calculator(CostInputs(candidates=value), BOOK)
