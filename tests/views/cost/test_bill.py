"""The cost calculator's words, bill and what-if."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from core.analysis.stack_cost import models
from core.prices import Price, PriceBook, load_books
from core.prices.calculator import CostInputs
from core.views.cost import words
from core.views.cost.bill import PAPER_BOOK, cost, paper_generator, paper_rerank, swings

CASES = json.loads((Path(__file__).parents[2] / "cases" / "clq.json").read_text(encoding="utf-8"))
BOOKS = load_books()
LIST = BOOKS["list"]
PLAIN = CostInputs(queries_per_month=1e6, embedder="voyage-3.5", reranker="rerank-2.5")


def asked(**changes):
    given = {name: getattr(PLAIN, name) for name in PLAIN.__dataclass_fields__}
    return CostInputs(**{**given, **changes})


def said(found, book=LIST, inputs=PLAIN):
    return " ".join(filter(None, words.caveats(inputs, book, found).values()))


def test_the_answer_names_cost_volume_and_largest_stage():
    found = cost(PLAIN, LIST)
    assert words.answer(found) == (
        "voyage-3.5 + rerank-2.5: $1.25 per 1,000 queries, $1,251.20 a month at 1,000,000 queries; "
        "99.9 % of it is the reranker call."
    )
    assert said(found) == "Prices: book list, looked up 2026-11-21."
    assert words.changed(LIST) == []
    assert words.lead(found) == ("$1.25 per 1,000 queries, 99.9 % of it for the reranker call.", "")
    assert words.lead(found, "≥ $0.0012, reranking not recorded") == (
        "$1.25 per 1,000 queries, modelled; recorded: ≥ $0.0012, reranking not recorded.",
        "99.9 % of it is the reranker call.",
    )
    own = cost(CostInputs(queries_per_month=1e6, cpu_ms=8.66), LIST)
    assert words.lead(own) == (
        "A machine costs $36.06 a month; 1,000,000 queries keep it busy for 0.3 %.",
        "This busy time is worth $0.12 per million queries, at a mean of 8.66 ms per query.",
    )
    busy = cost(CostInputs(queries_per_month=1e9, cpu_ms=8.66), LIST)
    assert words.lead(busy)[0] == "1,000,000,000 queries a month keep 4 machines busy: $144.25 a month."
    mixed = cost(asked(cpu_ms=8.66), LIST)
    assert words.lead(mixed)[1] == "Busy time only. An always-on machine costs $36.06 a month."


def test_the_bill_adds_up_and_carries_the_source_of_every_price():
    found = cost(asked(generator="gpt-5-mini", chunks_sent=10, output_tokens=300, cpu_ms=3.6), LIST)
    assert found.bill["stage"].to_list() == [
        "embed",
        "rerank",
        "generate-input",
        "generate-output",
        "machine",
    ]
    assert found.bill["usd_per_1k"].to_list() == pytest.approx([0.0012, 1.25, 1.25, 0.6, 0.0000494])
    assert found.bill["usd_per_month"].sum() == pytest.approx(3101.2494)
    assert found.bill["unit_price"][1] == "0.05 USD / 1,000,000 input tokens"
    assert found.bill["confirmed"].to_list() == ["yes", "yes", "yes", "yes", "no"]
    assert found.bill["source"].null_count() == found.bill["looked_up"].null_count() == 0
    assert [bar.x[0] for bar in found.figure.data] == pytest.approx(found.bill["usd_per_1k"].to_list())


def test_an_unknown_price_makes_the_total_unknown_and_never_zero():
    found = cost(asked(reranker="my-ranker"), LIST)
    assert words.answer(found) == (
        "Unknown: no price for my-ranker (input_tokens) in list. "
        "The other stages cost $0.0012 per 1,000 queries."
    )
    assert found.bill["usd_per_1k"].to_list()[1] is None
    assert found.bill["reason"][1] == "no price for my-ranker (input_tokens) in list"
    assert found.figure.data[1].name == "rerank unknown"
    assert found.figure.data[1].x[0] is None


def test_nothing_chosen_costs_nothing_and_says_why():
    found = cost(CostInputs(), LIST)
    assert words.answer(found) == "$0: no billed model and no machine time is chosen."
    assert found.bill.is_empty()


def test_a_free_stack_has_no_largest_stage():
    found = cost(asked(reranker=None, query_tokens=0), LIST)
    assert words.answer(found) == "voyage-3.5: $0.00 per 1,000 queries, $0.00 a month at 1,000,000 queries."


@pytest.mark.parametrize(
    ("candidates", "tokens", "usd_per_1k"),
    [(50, 500, 2.5), (100, 500, 2.5), (101, 500, 5.0), (100, 501, 5.0)],
)
def test_a_reranker_billed_by_search_unit(candidates, tokens, usd_per_1k):
    inputs = asked(
        embedder=None, reranker="rerank-v4.0-pro", candidates=candidates, tokens_per_candidate=tokens
    )
    found = cost(inputs, LIST)
    assert found.bill["unit"].to_list() == ["search_units"]
    assert found.bill["usd_per_1k"].to_list() == pytest.approx([usd_per_1k])
    assert "Not confirmed: rerank-v4.0-pro. One source only" in said(found)
    assert words.answer(found).endswith("; all of it is the reranker call.")


def test_shares_do_not_round_a_remainder_away():
    found = cost(asked(candidates=1000), LIST)
    assert "> 99.9 % of it is the reranker call" in words.answer(found)
    assert found.figure.data[0].name == "embed $0.0012, &lt; 0.1 %"


def test_names_are_inert_in_the_chart():
    hostile = Price(
        item="<b>x</b>",
        provider="p",
        unit="input_tokens",
        price=1.0,
        per=1e6,
        currency="USD",
        source="s",
        looked_up=date(2026, 1, 1),
        confirmed=True,
    )
    found = cost(asked(embedder=None, reranker="<b>x</b>"), PriceBook("mine", (hostile,)))
    assert "<b>" not in found.figure.data[0].hovertext[0]
    assert "&lt;b&gt;x" in found.figure.data[0].hovertext[0]
    assert found.figure.data[0].hovertemplate == "%{hovertext}<extra></extra>"


def test_a_what_if_replaces_a_price_and_is_marked():
    book = LIST.with_changes({("rerank-2.5", "input_tokens"): 0.1})
    found = cost(PLAIN, book)
    assert words.answer(found).startswith("voyage-3.5 + rerank-2.5: $2.50 per 1,000 queries")
    assert words.changed(book) == ["rerank-2.5: $0.05 → $0.1 per 1,000,000 input tokens"]
    assert found.bill["confirmed"].to_list() == ["yes", "what-if"]
    assert said(found, book) == "Prices: book list, 1 price changed, looked up 2026-11-21."
    assert LIST.find("rerank-2.5", "input_tokens").price == 0.05


def test_the_papers_rerank_table():
    table = paper_rerank(BOOKS[PAPER_BOOK])
    assert table.columns == ["k", "rerank-2.5", "rerank-2.5-lite"]
    for row, printed in zip(table.to_dicts(), CASES["rerank_usd_per_1k"]["rows"], strict=True):
        assert row == pytest.approx(printed, abs=1e-9)


def test_the_papers_generator_table():
    table = paper_generator(BOOKS[PAPER_BOOK])
    for row, printed in zip(table.to_dicts(), CASES["generator_input_usd_per_1k"]["rows"], strict=True):
        assert row == pytest.approx(printed, abs=1e-9)


def test_models_are_told_apart_by_what_they_sell():
    found = models(BOOKS.values())
    assert found["embedder"][0] == "embed-english-light-v3.0"
    assert set(found["embedder"]) >= {"voyage-3.5", "text-embedding-3-small"}
    assert set(found["reranker"]) >= {"rerank-2.5", "rerank-2.5-lite", "rerank-v3.5", "rerank-v4.0-pro"}
    assert set(found["generator"]) >= {"gpt-5", "gpt-5-nano", "gpt-4o-mini"}
    assert not set(found["embedder"]) & {*found["reranker"], *found["generator"]}


def test_a_corpus_is_billed_once_and_by_the_month():
    asked_for = asked(passages=2**20, spread_queries=10**7, index="flat", dim=1024)
    found = cost(asked_for, LIST, {"embed": "measured"})
    rows = {row["stage"]: row for row in found.bill.to_dicts()}
    # 2^20 vectors of 4 KiB are 4 GiB; 2^20 x 500 tokens at $0.06 a million are $31.46
    assert rows["index"]["usd_per_month"] == pytest.approx(4 * 3.24485)
    assert rows["storage"]["usd_per_month"] == pytest.approx(4 * 0.08)
    assert rows["embed-corpus"]["usd_per_month"] == pytest.approx(2**20 * 500 * 0.06e-6 / 10)
    assert "Embedding the corpus costs $31.46 once, spread over 10,000,000 queries." in said(
        found, inputs=asked_for
    )
    assert {stage: row["basis"] for stage, row in rows.items()} == {
        "embed": "measured",
        "rerank": "modelled",
        "embed-corpus": "modelled",
        "index": "modelled",
        "storage": "modelled",
    }
    assert len(found.figure.data) == 5


def test_without_queries_the_month_is_known_and_the_query_is_not():
    found = cost(asked(queries_per_month=0, passages=1000), LIST)
    assert words.answer(found).startswith("Unknown: it is paid by the month")
    assert found.bill["usd_per_month"].null_count() == 0


def test_what_moves_the_bill_in_words_and_rows():
    found = swings(PLAIN, LIST, share=0.2)
    assert found.answer == (
        "What moves the month's usage most: queries per month, candidate depth, price of rerank-2.5 (input "
        "tokens), tokens per candidate. ± 20 % takes it from $1,251.20 to $1,000.96 or $1,501.44."
    )
    assert found.rows.columns == ["input", "value", "low", "high", "usd_low", "usd", "usd_high", "width"]
    top = found.rows.row(0, named=True)
    assert (top["low"], top["high"], top["width"]) == pytest.approx((8e5, 1.2e6, 500.48))
    lower, higher = found.figure.data
    assert lower.name == "20 % lower"
    assert [base + x for base, x in zip(lower.base, lower.x, strict=True)] == pytest.approx(
        found.rows["usd_low"].to_list()
    )
    assert [base + x for base, x in zip(higher.base, higher.x, strict=True)] == pytest.approx(
        found.rows["usd_high"].to_list()
    )


@pytest.mark.parametrize(
    ("inputs", "alike"),
    [
        (PLAIN, False),  # among them some that move less
        (asked(embedder=None), True),
        (asked(reranker="my-ranker"), False),  # nothing to vary
    ],
)
def test_inputs_that_all_move_the_bill_alike_need_no_chart(inputs: CostInputs, alike: bool):
    found = swings(inputs, LIST)
    assert found.alike == alike
    widths = found.rows["width"].to_list()
    assert alike == (len(widths) > 1 and min(widths) >= 0.99 * max(widths))
    assert ("alike" in found.answer) == alike


def test_an_unknown_bill_has_no_sensitivity():
    found = swings(asked(reranker="my-ranker"), LIST)
    assert found.answer == "There is no month's usage to vary: it is unknown, or nothing is billed."
    assert found.rows.is_empty()


def test_a_hostile_name_is_inert_in_the_tornado():
    entry = replace(LIST.find("rerank-2.5", "input_tokens"), item="<b>x</b>")
    found = swings(asked(embedder=None, reranker="<b>x</b>"), PriceBook("mine", (entry,)))
    assert not any("<b>" in name for trace in found.figure.data for name in trace.y)


def test_an_input_that_moves_nothing_says_so():
    free = PriceBook("free", (replace(LIST.find("rerank-2.5", "input_tokens"), price=0.0),))
    found = swings(asked(embedder=None), free)
    assert found.answer == "No input moves the month's usage of $0.00 by itself within ± 25 %."
