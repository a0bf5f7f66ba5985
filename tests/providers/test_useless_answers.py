"""Answers that cannot rank anything are refused by name, and nothing of them is kept."""

from __future__ import annotations

from contextlib import closing
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.errors import BudgetError, ProviderError
from core.pipeline.evaluate.budget import Budget, Receipts
from core.prices import Price, PriceBook
from core.providers.base import Amount, Purpose, Reply, believable
from core.providers.calls import Journal
from core.providers.embed.base import useless
from core.records import Basis
from tests.providers.connected import MODELS, TEXTS, connected, every_vendor
from tests.providers.rerank import test_vendors as rerank
from tests.vendors import Step, Vendors

ODD = ["null", "null number", "nan", "zeros", "alike", "wrong count"]


@every_vendor
@pytest.mark.parametrize("kind", ODD)
def test_vectors_that_cannot_rank_are_refused_and_forgotten(
    vendors: Vendors, tmp_path: Path, name: str, kind: str
):
    vendors.always(MODELS[name][0], Step(kind))
    with closing(Journal(tmp_path / "journal.sqlite")) as journal:
        with connected(vendors, name, journal=journal) as embedder:
            with pytest.raises(ProviderError) as refused:
                embedder.embed(TEXTS)
            if kind not in ("alike", "wrong count"):  # one text is like itself
                with pytest.raises(ProviderError):
                    embedder.embed_query("heat")
        assert len(journal) == 0
    assert name in str(refused.value)


@pytest.mark.parametrize("name", rerank.MODELS)
@pytest.mark.parametrize("kind", ["null", "null number", "nan", "wrong count"])
def test_scores_that_cannot_rank_are_refused_and_forgotten(
    vendors: Vendors, tmp_path: Path, name: str, kind: str
):
    vendors.always(rerank.MODELS[name][0], Step(kind))
    with closing(Journal(tmp_path / "journal.sqlite")) as journal:
        with (
            rerank.connected(vendors, name, journal=journal) as reranker,
            pytest.raises(ProviderError) as refused,
        ):
            reranker.rerank("heat", TEXTS)
        assert len(journal) == 0
    assert name in str(refused.value)


@pytest.mark.parametrize(
    ("texts", "vectors", "says"),
    [
        (["a", "b"], [[1, 0], [0, 1]], ""),
        (["a", "b"], [[1, 0], [np.nan, 1]], "not finite for text 2 of 2"),
        (["a", "b"], [[np.inf, 0], [0, 1]], "not finite for text 1 of 2"),
        (["a", "b"], [[1, 0], [0, 0]], "zeros for text 2 of 2"),
        (["a", "🙂 …"], [[1, 0], [0, 0]], ""),  # no token of it is known to a static model
        (["a", "b", "c"], [[1, 0]] * 3, "same vector for all of 3"),
        (["a", "A", " a "], [[1, 0]] * 3, ""),  # a model that knows no case
        (["a", "b"], [[1, 0]] * 2, ""),
    ],
)
def test_what_is_useless(texts: list[str], vectors: Any, says: str):
    told = useless(texts, np.array(vectors, dtype=np.float32))
    assert says in told
    assert bool(says) == bool(told)


def test_zeros_that_an_earlier_release_kept_are_asked_again(vendors: Vendors, tmp_path: Path):
    name = next(iter(MODELS))
    with (
        closing(Journal(tmp_path / "journal.sqlite")) as journal,
        connected(vendors, name, journal=journal) as embedder,
    ):
        embedder.embed(TEXTS)
        zeros = Reply(np.zeros(embedder.dim, dtype=np.float32))
        journal.put(embedder._key(TEXTS[0], Purpose.PASSAGE), zeros)
        again = embedder.embed(TEXTS)
    assert np.linalg.norm(again, axis=1) == pytest.approx(1.0)
    assert vendors.state.texts[MODELS[name][0]][TEXTS[0]] == 2


@pytest.mark.parametrize("amount", [-1.0, float("nan"), float("inf")])
def test_usage_that_is_no_amount_is_unknown(amount: float):
    (known,) = believable([Amount("m", "input_tokens", amount, Basis.MEASURED)])
    assert known.amount is None


BOOK = PriceBook(
    "b",
    tuple(
        Price(
            item=name, provider="p", unit="input_tokens", price=0.001, per=1, currency="USD", source="here",
            looked_up=date(2026, 1, 1), confirmed=True,
        )
        for name in MODELS
    ),
)  # fmt: skip


@every_vendor
def test_answers_billed_below_nothing_are_kept_and_paid_as_reserved(
    vendors: Vendors, tmp_path: Path, name: str
):
    vendors.always(MODELS[name][0], Step(billed=-3.0))
    receipts = Receipts(tmp_path / "receipts.sqlite")
    with closing(Journal(tmp_path / "journal.sqlite")) as journal:
        with connected(
            vendors, name, journal=journal, meter=Budget(BOOK, 1.0, receipts), batch_items=1
        ) as embedder:
            reply = embedder.embed_all(TEXTS)
            assert {each.amount for each in reply.usage} == {None}
        assert len(journal) == len(TEXTS)
    assert 0 < receipts.settled <= 1.0
    receipts.close()


@every_vendor
def test_who_bills_more_than_the_most_is_reserved_at_what_it_billed(
    vendors: Vendors, tmp_path: Path, name: str
):
    """One call's excess is all that a budget can be exceeded by."""
    vendors.always(MODELS[name][0], Step(billed=5.0))
    receipts = Receipts(tmp_path / "receipts.sqlite")
    budget = Budget(BOOK, 0.4, receipts)
    texts = [f"text number {at:03} about wings" for at in range(100)]
    with connected(vendors, name, meter=budget, batch_items=1) as embedder:
        embedder.concurrency = 1
        with pytest.raises(BudgetError):
            embedder.embed(texts)
    bill = vendors.state.usage[MODELS[name][0]] * 0.001 * 5
    assert receipts.settled == pytest.approx(bill, rel=0.01)
    assert receipts.settled <= 0.4 + 0.05  # all after the first were foreseen
    receipts.close()


@every_vendor
@pytest.mark.parametrize("way", ["queries", "batches of one"])
def test_a_vector_that_never_changes_is_found_call_by_call(
    vendors: Vendors, tmp_path: Path, name: str, way: str
):
    vendors.always(MODELS[name][0], Step("constant"))
    with closing(Journal(tmp_path / "journal.sqlite")) as journal:
        with connected(vendors, name, journal=journal) as embedder:
            embedder.batch_items = 1
            embed = embedder.embed if way == "batches of one" else partial(map, embedder.embed_query)
            with pytest.raises(ProviderError, match=r"the same vector for all of \d different texts"):
                list(embed(TEXTS))
        assert len(journal) == 0
