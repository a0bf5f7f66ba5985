"""The cost calculator's words, bill and what-if, and what it takes over from a stack."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import polars as pl
import pytest

from core.importers.formats.published import published_batch
from core.prices import Price, PriceBook, load_books
from core.prices.calculator import CostInputs
from core.store import Store
from core.tables import frame
from core.views.cost import words
from core.views.cost.bill import PAPER_BOOK, cost, paper_generator, paper_rerank, swings
from core.views.cost.stack import NONE, Amount, Start, basis_by_stage, models, recorded, start_from

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
    assert words.answer(found.found) == (
        "voyage-3.5 + rerank-2.5: $1.25 per 1,000 queries, $1,251.20 a month at 1,000,000 queries; "
        "99.9 % of it is the reranker call."
    )
    assert said(found) == "Prices: book list, looked up 2026-11-21."
    assert words.changed(LIST) == []
    assert words.lead(found.found) == "voyage-3.5 + rerank-2.5: 99.9 % of the cost is the reranker call."


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
    assert words.answer(found.found) == (
        "Unknown: no price for my-ranker (input_tokens) in list. "
        "The other stages cost $0.0012 per 1,000 queries."
    )
    assert found.bill["usd_per_1k"].to_list()[1] is None
    assert found.bill["reason"][1] == "no price for my-ranker (input_tokens) in list"
    assert found.figure.data[1].name == "rerank unknown"
    assert found.figure.data[1].x[0] is None


def test_nothing_chosen_costs_nothing_and_says_why():
    found = cost(CostInputs(), LIST)
    assert words.answer(found.found) == "$0: no billed model and no machine time is chosen."
    assert found.bill.is_empty()


def test_a_free_stack_has_no_largest_stage():
    found = cost(asked(reranker=None, query_tokens=0), LIST)
    assert (
        words.answer(found.found)
        == "voyage-3.5: $0.00 per 1,000 queries, $0.00 a month at 1,000,000 queries."
    )


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
    assert words.answer(found.found).endswith("; all of it is the reranker call.")


def test_shares_do_not_round_a_remainder_away():
    found = cost(asked(candidates=1000), LIST)
    assert "> 99.9 % of it is the reranker call" in words.answer(found.found)
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
    assert words.answer(found.found).startswith("voyage-3.5 + rerank-2.5: $2.50 per 1,000 queries")
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
    assert found.embedders[0] == "embed-v4.0"
    assert set(found.embedders) >= {"voyage-3.5", "text-embedding-3-small"}
    assert set(found.rerankers) >= {"rerank-2.5", "rerank-2.5-lite", "rerank-v3.5", "rerank-v4.0-pro"}
    assert set(found.generators) >= {"gpt-5", "gpt-5-nano", "gpt-4o-mini"}
    assert not set(found.embedders) & {*found.rerankers, *found.generators}


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
    assert words.answer(found.found).startswith("Unknown: it is paid by the month")
    assert found.bill["usd_per_month"].null_count() == 0


def test_what_moves_the_bill_in_words_and_rows():
    found = swings(PLAIN, LIST, share=0.2)
    assert found.answer == (
        "What moves the monthly bill most: queries per month, K candidates, price of rerank-2.5 (input "
        "tokens) and 1 more. ± 20 % takes it from $1,251.20 to $1,000.96 or $1,501.44."
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


def test_an_unknown_bill_has_no_sensitivity():
    found = swings(asked(reranker="my-ranker"), LIST)
    assert found.answer == "There is no monthly bill to vary: it is unknown, or nothing is billed."
    assert found.rows.is_empty()


def test_a_hostile_name_is_inert_in_the_tornado():
    entry = replace(LIST.find("rerank-2.5", "input_tokens"), item="<b>x</b>")
    found = swings(asked(embedder=None, reranker="<b>x</b>"), PriceBook("mine", (entry,)))
    assert not any("<b>" in name for trace in found.figure.data for name in trace.y)


def test_an_input_that_moves_nothing_says_so():
    free = PriceBook("free", (replace(LIST.find("rerank-2.5", "input_tokens"), price=0.0),))
    found = swings(asked(embedder=None), free)
    assert found.answer == "No input moves the monthly bill of $0.00 by itself within ± 25 %."


class Recorded:
    """A snapshot that knows the usage of one run."""

    def __init__(self, *rows, spec=None):
        self.spec = spec or {}
        columns = ("stage", "item", "unit", "amount", "basis", "query_id")
        self.rows = [{"run_id": "r", **dict(zip(columns, row, strict=True))} for row in rows]

    def usage(self, run_ids):
        assert run_ids == ["r"]
        return frame("usage", self.rows)

    def runs(self):
        return pl.DataFrame({"run_id": ["r"], "manifest": ["{}"], "spec": [json.dumps(self.spec)]})


def stack(**axes):
    return {"run_id": "r", "name": "mine", "embedder": None, "reranker": None, "candidates": None, **axes}


def test_amounts_are_derived_from_recorded_usage():
    recorded = Recorded(
        ("rerank", "rerank-2.5", "input_tokens", 20_000.0, "measured", "q1"),
        ("rerank", "rerank-2.5", "input_tokens", 31_500.0, "measured", "q2"),
        ("embed", "voyage-3.5", "input_tokens", 12.0, "imported", "q1"),
        ("retrieve", "local-cpu", "cpu_ms", 0.25, "measured", "q1"),
        ("fuse", "local-cpu", "cpu_ms", 0.5, "measured", "q1"),
        ("total", "not named", "requests", 1.0, "imported", "q1"),
    )
    found = start_from(recorded, stack(embedder="other", reranker="other", candidates=50))
    assert found.amounts == {
        "embedder": Amount("voyage-3.5", "imported"),
        "reranker": Amount("rerank-2.5", "measured"),
        "candidates": Amount(50, "from its specification"),
        "tokens_per_candidate": Amount(515.0, "measured"),
        "query_tokens": Amount(12.0, "imported"),
        "cpu_ms": Amount(0.75, "measured"),
    }
    assert found.left_out == ("total: requests of not named",)
    assert not found.assumed


def test_a_stage_that_ran_on_the_machine_is_billed_by_nobody():
    recorded = Recorded(("embed", "local-cpu", "cpu_ms", 0.2, "measured", "q1"))
    found = start_from(recorded, stack(embedder="wordllama", candidates=20))
    assert found.amounts["embedder"] == Amount(NONE, "it ran on the machine")
    assert found.amounts["reranker"] == Amount(NONE, "from its specification")
    assert "tokens_per_candidate" not in found.amounts


def test_an_amount_that_was_not_recorded_is_not_taken_for_zero():
    recorded = Recorded(("rerank", "rerank-2.5", "input_tokens", None, "measured", "q1"))
    found = start_from(recorded, stack(reranker="rerank-2.5", candidates=50))
    assert "tokens_per_candidate" not in found.amounts
    assert found.assumed


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("published"))
    with store.write("import") as writer:
        writer.add(published_batch())
    return store.read()


def test_a_published_stack_fills_in_its_modelled_tokens(published):
    run = published.runs().filter(pl.col("label") == "voyage-3.5 512 d + rerank-2.5-lite, K = 200")
    row = stack(run_id=run["run_id"][0], embedder="voyage-3.5", reranker="rerank-2.5-lite", candidates=200)
    amounts = start_from(published, row).amounts
    assert amounts["tokens_per_candidate"] == Amount(500.0, "modelled")
    inputs = asked(reranker=amounts["reranker"].value, candidates=amounts["candidates"].value)
    assert cost(inputs, BOOKS["list"]).bill["usd_per_1k"][1] == pytest.approx(2.0)


def test_basis_by_stage_is_the_weakest_of_what_was_taken():
    start = Start(
        "mine",
        {
            "embedder": Amount("voyage-3.5", "measured"),
            "query_tokens": Amount(12.0, "measured"),
            "reranker": Amount("rerank-2.5", "imported"),
            "tokens_per_candidate": Amount(515.0, "measured"),
            "candidates": Amount(50, "from its specification"),
        },
        (),
        assumed=False,
    )
    values = {
        "embedder": "voyage-3.5",
        "query_tokens": 12.0,
        "reranker": "rerank-2.5",
        "candidates": 50,
        "tokens_per_candidate": 515.0,
        "cpu_ms": 0.0,
    }
    found = basis_by_stage(start, values)
    assert found == {"embed": "measured", "rerank": "imported", "machine": "modelled"}
    assert basis_by_stage(start, values | {"candidates": 100})["rerank"] == "modelled"
    assert basis_by_stage(start, values | {"embedder": "voyage-4"})["embed"] == "modelled"
    assert set(basis_by_stage(None, values).values()) == {"modelled"}


def test_recorded_usage_is_priced_by_item():
    snapshot = Recorded(
        ("rerank", "rerank-2.5", "input_tokens", 20_000.0, "measured", "q1"),
        ("rerank", "rerank-2.5", "input_tokens", 30_000.0, "measured", "q2"),
        ("embed", "voyage-3.5", "input_tokens", 20.0, "imported", None),
    )
    rows = recorded(snapshot, "r", LIST)
    assert rows.select("stage", "units_per_query", "basis").rows() == [
        ("embed", 20.0, "imported"),
        ("rerank", 25_000.0, "measured"),
    ]
    assert rows["usd_per_1k"].to_list() == pytest.approx([0.0012, 1.25])
    assert words.recorded_answer(rows, "mine") == "mine: $1.25 per 1,000 queries (imported, measured)."


def test_what_a_bill_lacks_of_the_queries_embedding_is_modelled():
    spec = {"mode": "dense", "embedder": "voyage-3.5"}
    row = ("rerank", "rerank-2.5", "input_tokens", 25_000.0, "measured", "q1")
    for rows, embedding in (
        ((row,), ("modelled", 0.0012)),
        ((row, ("embed", "voyage-3.5", "input_tokens", None, "imported", "q1")), ("modelled", 0.0012)),
        ((row, ("embed", "voyage-3.5", "input_tokens", 10.0, "imported", "q1")), ("imported", 0.0006)),
        ((row, ("embed", "local-cpu", "cpu_ms", 0.0, "measured", "q1")), ("measured", 0.0)),
    ):
        made = recorded(Recorded(*rows, spec=spec), "r", LIST)
        (found,) = made.filter(pl.col("stage") == "embed").select("basis", "usd_per_1k").iter_rows()
        assert found == (embedding[0], pytest.approx(embedding[1]))
    assert recorded(Recorded(spec=spec), "r", LIST).is_empty()  # no bill, so nothing is added to it


def test_recorded_usage_without_a_price_is_unknown():
    snapshot = Recorded(
        ("rerank", "nobody", "input_tokens", 20_000.0, "measured", "q1"),
        ("rerank", "local-cpu", "cpu_ms", 3.6, "measured", "q1"),
    )
    rows = recorded(snapshot, "r", LIST)
    assert rows["usd_per_1k"].null_count() == 1
    assert rows["reason"].to_list() == [None, "no price for nobody (input_tokens) in list"]
    assert words.recorded_answer(rows, "m") == (
        "m: unknown; what is known costs $0.000049 per 1,000 queries (measured)."
    )
    assert words.recorded_answer(rows.clear(), "m") == "m has recorded no usage."


def test_provenance_tells_taken_changed_and_typed_apart():
    values = {"reranker": "rerank-2.5", "candidates": 50, "tokens_per_candidate": 515.0, "embedder": NONE}
    start = Start(
        "mine",
        {
            "reranker": Amount("rerank-2.5", "measured"),
            "tokens_per_candidate": Amount(515.0, "measured"),
            "candidates": Amount(100, "from its specification"),
        },
        ("total: requests of x",),
        assumed=True,
    )
    assert words.provenance(start, values) == (
        "From mine: reranker rerank-2.5 (measured), tokens per candidate 515 (measured). "
        "Changed since: K (there 100, from its specification). "
        "What it sent to its reranker is not recorded, so K × tokens is an assumption. "
        "Not taken over, as no input stands for it: total: requests of x. Everything else is typed."
    )
    assert words.provenance(None, values) == "All amounts are typed."
