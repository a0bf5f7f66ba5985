import polars as pl
import pytest

from core.decide.routing import missing, replayed, replayed_ms, replayed_usage
from core.errors import InputError
from core.tables import frame


def ranked(**queries: str) -> pl.DataFrame:
    rows = [(query, rank, name) for query, names in queries.items() for rank, name in enumerate(names, 1)]
    return pl.DataFrame(rows, schema=["query_id", "rank", "passage_id"], orient="row")


def test_the_first_passages_of_the_pool_in_the_order_of_the_deep_run():
    final, pool = ranked(q1="dbac", q2="yx"), ranked(q1="abcd", q2="xy")
    found = replayed(final, pool, 2)
    assert found.rows() == [
        ("q1", 1, "b", 2), ("q1", 2, "a", 3), ("q2", 1, "y", 1), ("q2", 2, "x", 2)
    ]  # fmt: skip
    assert replayed(final, pool, 9)["passage_id"].to_list() == list("dbacyx")


def test_passages_that_the_reranker_discarded_stay_out():
    final, pool = ranked(q="ca"), ranked(q="abc")
    assert replayed(final, pool, 2)["passage_id"].to_list() == ["a"]
    assert missing(final, pool) == 1


def test_a_depth_below_one_is_refused():
    with pytest.raises(InputError, match="not possible"):
        replayed(ranked(q="a"), ranked(q="a"), 0)


@pytest.mark.parametrize(("line", "expected"), [(None, 50.0), ((2.0, 100.0), 200 / 300 * 100), ((0, 0), 100)])
def test_latency_scales_along_the_line(line, expected):
    rows = pl.DataFrame({"ms": [100.0]})
    assert rows.select(replayed_ms(pl.col("ms"), 50, 100, line)).item() == pytest.approx(expected)


def test_usage_of_the_reranker_is_shared_out_and_modelled():
    rows = [
        ("embed", "input_tokens", 10.0),
        ("rerank", "input_tokens", 1000.0),
        ("rerank", "search_units", 2.0),
        ("rerank", "requests", 1.0),
    ]
    usage = frame(
        "usage",
        [
            {"run_id": "r", "query_id": "q", "stage": stage, "item": "m", "unit": unit, "amount": amount,
             "basis": "measured"}
            for stage, unit, amount in rows
        ],
    )  # fmt: skip
    found = replayed_usage(usage, 50, 200)
    assert found["amount"].to_list() == [10, 250, 1, 1]
    assert found["basis"].to_list() == ["measured", "modelled", "modelled", "modelled"]
