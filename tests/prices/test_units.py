"""What vendors count, against hand-computed bills."""

from __future__ import annotations

import pytest

from core.errors import InputError, UnknownNameError
from core.prices.calculator import (
    GIB,
    CostInputs,
    calculator,
    index_bytes,
    search_units,
)
from tests.prices.test_cost import BOOK, price

BOOK = type(BOOK)(
    "test",
    (
        *BOOK.prices,
        price("local-memory", "gib_month", 3.0, per=1),
        price("local-disk", "gib_month", 0.1, per=1),
    ),
)


# One unit per started 100 documents; a document counts once per started 500 tokens.
@pytest.mark.parametrize(
    ("documents", "tokens", "units"),
    [
        (0, 500, 0),
        (1, 500, 1),
        (100, 500, 1),
        (101, 500, 2),
        (50, 501, 1),  # 50 documents count twice: 100
        (51, 501, 2),  # 102
        (34, 1001, 2),  # 34 x 3 = 102
        (100, 0, 1),
    ],
)
def test_search_units_of_documents(documents, tokens, units):
    assert search_units(documents, tokens) == units


@pytest.mark.parametrize(
    ("kind", "bytes_each"),
    [
        ("flat", 4 * 512),
        ("int8", 512),
        # 64 links below and 32/31 above, 4 bytes each, and 12 bytes beside them
        ("hnsw-f32", 4 * 512 + 4 * (64 + 32 / 31) + 12),
        ("hnsw-int8", 512 + 4 * (64 + 32 / 31) + 12),
    ],
)
def test_bytes_of_an_index(kind, bytes_each):
    assert index_bytes(kind, vectors=1000, dim=512) == pytest.approx(1000 * bytes_each)


@pytest.mark.parametrize("links", [20, 32, 64])
def test_links_of_a_million_vectors_take_about_as_much_as_the_paper_says(links):
    extra = index_bytes("hnsw-int8", vectors=1e6, dim=64, links=links) - 64e6
    assert 0.15 <= extra / GIB <= 0.6


def test_unknown_indexes_are_refused():
    with pytest.raises(UnknownNameError):
        index_bytes("annoy", vectors=1, dim=1)
    with pytest.raises(InputError):
        index_bytes("hnsw-f32", vectors=1, dim=1, links=1)


def lines(**asked):
    return {line.stage: line for line in calculator(CostInputs(**asked), BOOK).lines}


def test_a_bill_with_corpus_and_index_by_hand():
    asked = {
        "queries_per_month": 1e6,
        "embedder": "embedder",  # $0.1 a million tokens
        "query_tokens": 20,
        "passages": 2**20,
        "tokens_per_passage": 500,
        "spread_queries": 1e7,
        "index": "flat",
        "dim": 1024,
        "copies": 2,
    }
    found = lines(**asked)
    # 2^20 vectors of 4 KiB are 4 GiB: twice in memory at $3, once on disk at $0.10
    assert found["index"].per_month(1e6) == pytest.approx(24.0)
    assert found["index"].usd_per_query == pytest.approx(24e-6)
    assert found["storage"].per_month(1e6) == pytest.approx(0.4)
    # 2^20 x 500 tokens cost $52.4288, a tenth of it in a month's million queries
    assert found["embed-corpus"].per_month(1e6) == pytest.approx(5.24288)
    assert found["embed"].per_month(1e6) == pytest.approx(2.0)
    bill = calculator(CostInputs(**asked), BOOK)
    assert bill.per_month == pytest.approx(24 + 0.4 + 5.24288 + 2)
    assert bill.per_query == pytest.approx(bill.per_month / 1e6)
    assert bill.frame()["usd_per_month"].sum() == pytest.approx(bill.per_month)
    int8 = lines(**{**asked, "index": "int8"})
    assert int8["index"].per_month(1e6) == pytest.approx(6.0)


def test_partitions_take_at_least_what_an_engine_keeps_for_each():
    asked = {"queries_per_month": 1e6, "passages": 2**20, "index": "flat", "dim": 1024, "partitions": 2048}
    assert lines(**asked)["storage"].per_month(1e6) == pytest.approx(0.4)  # 4 GiB at $0.10
    kept = lines(**asked, least_mib=64)
    assert kept["storage"].per_month(1e6) == pytest.approx(12.8)  # 128 GiB
    assert kept["index"].per_month(1e6) == lines(**asked)["index"].per_month(1e6)


def test_what_is_paid_by_the_month_is_known_without_queries():
    bill = calculator(CostInputs(passages=2**20, index="flat", dim=1024), BOOK)
    assert bill.per_month == pytest.approx(12.4)
    assert bill.per_query is None
    assert "no query to spread it over" in bill.unknown[0]


def test_a_corpus_without_a_price_makes_the_bill_unknown():
    bare = type(BOOK)("bare", ())
    bill = calculator(CostInputs(queries_per_month=10, passages=5), bare)
    assert (bill.per_query, bill.per_month) == (None, None)
    assert bill.unknown[0] == "no price for local-memory (gib_month) in bare"
    foreign = type(BOOK)("f", (price("local-memory", "gib_month", 1.0, currency="EUR"), *BOOK.prices[-1:]))
    assert calculator(CostInputs(passages=5), foreign).per_month is None


def test_parts_that_are_not_asked_for_are_not_billed():
    assert lines(passages=100, index="none") == {}
    assert set(lines(passages=100, embedder="embedder")) == {"embed", "index", "storage"}
    assert set(lines(spread_queries=100, embedder="embedder")) == {"embed"}


def test_graphics_time():
    # 20 ms at $1.80 an hour
    assert lines(gpu_ms=20)["gpu"].usd_per_query == pytest.approx(1e-5)
