"""The sensitivity of the monthly bill, against bills worked out by hand and by the calculator."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError
from core.prices.calculator import CostInputs, calculator, tornado
from tests.prices.test_units import BOOK

# rerank 50 x 500 x $0.05 a million = $1.25, embed 20 x $0.1 a million = $0.002 per 1,000 queries
INPUTS = CostInputs(queries_per_month=1e6, reranker="ranker", embedder="embedder")


def by_name(inputs, **options):
    return {each.item or each.field: each for each in tornado(inputs, BOOK, **options)}


def test_by_hand():
    found = tornado(INPUTS, BOOK, share=0.2)
    assert [each.item or each.field for each in found] == [
        "queries_per_month",
        "candidates",
        "ranker",
        "tokens_per_candidate",
        "embedder",
        "query_tokens",
    ]
    volume, depth = found[0], found[1]
    assert (volume.usd, volume.low_usd, volume.high_usd) == pytest.approx((1252, 1001.6, 1502.4))
    assert (depth.low, depth.high) == pytest.approx((40, 60))
    assert (depth.low_usd, depth.high_usd) == pytest.approx((1002, 1502))
    assert (found[2].low, found[2].value, found[2].high) == pytest.approx((0.04, 0.05, 0.06))
    assert (found[2].low_usd, found[2].high_usd) == pytest.approx((1002, 1502))
    assert found[5].width == pytest.approx(0.8)


def test_an_amount_may_move_nothing():
    # 50 and 62.5 candidates of up to 500 tokens are one search unit
    found = by_name(CostInputs(queries_per_month=1e6, reranker="searcher", tokens_per_candidate=300))
    assert found["candidates"].width == 0
    assert found["tokens_per_candidate"].width == 0
    assert found["searcher"].width == pytest.approx(1000.0)


def test_spreading_the_corpus_over_more_queries_makes_it_cheaper():
    inputs = replace(INPUTS, passages=1e6, spread_queries=1e6, index="flat")
    found = by_name(inputs, share=0.5)
    spread = found["spread_queries"]
    # 1e6 x 500 tokens at $0.1 a million are $50 a million queries; $100 spread over half as many
    assert spread.low_usd - spread.usd == pytest.approx(50)
    assert spread.usd - spread.high_usd == pytest.approx(50 / 3)
    assert {"dim", "copies", "passages", "local-memory", "local-disk"} <= set(found)


def test_an_unknown_bill_has_none():
    assert tornado(replace(INPUTS, reranker="nobody"), BOOK) == ()
    assert tornado(CostInputs(queries_per_month=5), BOOK) == ()


@pytest.mark.parametrize("share", [0, 1, -0.1, float("nan")])
def test_ranges_are_checked(share):
    with pytest.raises(InputError, match="not between 0 and 1"):
        tornado(INPUTS, BOOK, share=share)


AMOUNT = st.floats(0, 1e6, allow_subnormal=False)


@given(AMOUNT, AMOUNT, AMOUNT, st.floats(0.01, 0.99))
def test_every_end_is_the_bill_of_the_changed_inputs(queries, depth, tokens, share):
    inputs = CostInputs(
        queries_per_month=queries, candidates=depth, tokens_per_candidate=tokens, reranker="ranker"
    )
    found = tornado(inputs, BOOK, share=share)
    widths = [float(f"{each.width:.9g}") for each in found]
    assert widths == sorted(widths, reverse=True)
    for each in found:
        if each.field != "price":
            changed = replace(inputs, **{each.field: each.high})
            assert each.high_usd == calculator(changed, BOOK).per_month
