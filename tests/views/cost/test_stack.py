"""What the cost calculator takes over from a stack."""

from __future__ import annotations

import json
from dataclasses import replace

import polars as pl
import pytest

from core.analysis.stack_cost import NONE, CostStart, StackAmount, basis_by_stage, recorded, start_from
from core.importers.formats.published import published_batch
from core.number_format import PER_1K, CostUnit
from core.prices import load_books
from core.prices.calculator import CostInputs
from core.store import Store
from core.tables import frame
from core.views.cost import words
from core.views.cost.bill import cost

BOOKS = load_books()
LIST = BOOKS["list"]
PLAIN = CostInputs(queries_per_month=1e6, embedder="voyage-3.5", reranker="rerank-2.5")


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
        "embedder": StackAmount("voyage-3.5", "imported"),
        "reranker": StackAmount("rerank-2.5", "measured"),
        "candidates": StackAmount(50, "from its specification"),
        "tokens_per_candidate": StackAmount(515.0, "measured"),
        "query_tokens": StackAmount(12.0, "imported"),
        "cpu_ms": StackAmount(0.75, "measured"),
    }
    assert found.left_out == ("total: requests of not named",)
    assert not found.assumed


def test_a_stage_that_ran_on_the_machine_is_billed_by_nobody():
    recorded = Recorded(("embed", "local-cpu", "cpu_ms", 0.2, "measured", "q1"))
    found = start_from(recorded, stack(embedder="wordllama", candidates=20))
    assert found.amounts["embedder"] == StackAmount(NONE, "it ran on the machine")
    assert found.amounts["reranker"] == StackAmount(NONE, "from its specification")
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
    assert amounts["tokens_per_candidate"] == StackAmount(500.0, "modelled")
    inputs = replace(PLAIN, reranker=amounts["reranker"].value, candidates=amounts["candidates"].value)
    assert cost(inputs, BOOKS["list"]).bill["usd_per_1k"][1] == pytest.approx(2.0)


def test_basis_by_stage_is_the_weakest_of_what_was_taken():
    start = CostStart(
        "mine",
        {
            "embedder": StackAmount("voyage-3.5", "measured"),
            "query_tokens": StackAmount(12.0, "measured"),
            "reranker": StackAmount("rerank-2.5", "imported"),
            "tokens_per_candidate": StackAmount(515.0, "measured"),
            "candidates": StackAmount(50, "from its specification"),
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
    assert (
        words.recorded_answer(rows, "mine", PER_1K) == "mine: $1.25 per 1,000 queries (imported, measured)."
    )


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
    assert words.recorded_answer(rows, "m", CostUnit(million=True)) == (
        "m: unknown; what is known costs $0.049 per million queries (measured)."
    )
    assert words.recorded_answer(rows.clear(), "m", PER_1K) == "m has recorded no usage."


def test_provenance_tells_taken_changed_and_typed_apart():
    values = {"reranker": "rerank-2.5", "candidates": 50, "tokens_per_candidate": 515.0, "embedder": NONE}
    start = CostStart(
        "mine",
        {
            "reranker": StackAmount("rerank-2.5", "measured"),
            "tokens_per_candidate": StackAmount(515.0, "measured"),
            "candidates": StackAmount(100, "from its specification"),
        },
        ("total: requests of x",),
        assumed=True,
    )
    assert words.provenance(start, values) == (
        "From mine: reranker rerank-2.5 (measured), tokens per candidate 515 (measured). "
        "Changed since: candidate depth (there 100, from its specification). "
        "What it sent to its reranker is not recorded, so K × tokens is an assumption. "
        "Not taken over, as no input stands for it: total: requests of x. "
        "The rest are defaults or your own values."
    )
    bare = CostStart("mine", {"candidates": StackAmount(50, "from its specification")}, (), assumed=False)
    said = words.provenance(bare, values | {"reranker": NONE})
    assert said == "From mine: nothing as it stands. The rest are defaults or your own values.", (
        "no reranker reads candidates"
    )
    assert words.provenance(None, values) == "All amounts are defaults or your own values."
