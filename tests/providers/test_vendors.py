"""Vendors' embedders through their real clients, pointed at a local server that speaks the wire formats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.errors import BudgetError, InputError
from core.providers.base import Purpose
from core.providers.calls import Journal, Keys, Limits
from core.providers.config import ModelConfig
from core.providers.embed import EMBEDDERS, RemoteEmbedder, make_embedder, unit_rows
from core.records import Basis
from tests.providers.calls.made import Ledger
from tests.providers.connected import KEY, MODELS, TEXTS, connected, every_vendor, expected
from tests.vendors import Step, Vendors, answers, keys_for


@every_vendor
def test_texts_become_vectors_in_order(vendors: Vendors, name: str):
    endpoint, _, dim = MODELS[name]
    texts = [*TEXTS, "", TEXTS[0], " \n"]
    done: list[tuple[int, int]] = []
    with connected(vendors, name) as embedder:
        reply = embedder.embed_all(texts, on_batch=lambda *each: done.append(each))
        assert (embedder.name, embedder.item, embedder.local) == (name, name, False)
    np.testing.assert_allclose(reply.value, expected(texts, dim), atol=1e-6)
    assert reply.value.dtype == np.float32
    assert vendors.state.texts[endpoint] == dict.fromkeys(TEXTS, 1)  # equal ones once, blank ones never
    assert done == [(7, 7)]
    (amount,) = reply.usage
    assert (amount.item, amount.unit, amount.basis) == (name, "input_tokens", Basis.MEASURED)
    assert amount.amount == vendors.state.usage[endpoint]


@every_vendor
def test_passages_and_queries_are_told_apart(vendors: Vendors, name: str):
    words = {
        "voyage": ["document", "query"],
        "cohere": ["search_document", "search_query"],
        "openai": [None, None],  # it has no such parameter
    }
    with connected(vendors, name) as embedder:
        embedder.embed(TEXTS)
        query = embedder.embed_query(TEXTS[1])
    np.testing.assert_allclose(query.value, answers.vector(TEXTS[1], 256), atol=1e-6)
    assert (query.value.shape, query.fresh, query.attempts) == ((256,), True, 1)
    assert query.ms > 0
    sent = [each.get("input_type") for each in vendors.state.requests]
    assert sent == words[EMBEDDERS[name].provider]


@every_vendor
def test_every_dimension_is_a_cut_of_the_longest(vendors: Vendors, name: str):
    config = EMBEDDERS[name]
    assert config.matryoshka
    with connected(vendors, name, dim=max(config.dims)) as longest:
        full = longest.embed(TEXTS)
        assert longest.full_dim == max(config.dims)
    for dim in config.dims:
        with connected(vendors, name, dim=dim) as embedder:
            assert embedder.full_dim == max(config.dims)
            np.testing.assert_allclose(embedder.embed(TEXTS), unit_rows(full[:, :dim]), atol=1e-6)


@every_vendor
def test_cut_here_needs_no_parameter_of_the_vendor(vendors: Vendors, name: str):
    with connected(vendors, name, dim=100, dims=(), cut="here") as embedder:
        vectors = embedder.embed(TEXTS)
    np.testing.assert_allclose(vectors, expected(TEXTS, 100), atol=1e-6)
    body = vendors.state.requests[0]
    assert body.get("output_dimension") is body.get("dimensions") is None


@every_vendor
def test_what_was_embedded_is_recalled(vendors: Vendors, name: str, tmp_path: Path):
    endpoint = MODELS[name][0]
    journal, ledger = Journal(tmp_path / "replies.sqlite"), Ledger()
    with connected(vendors, name, journal=journal, meter=ledger) as embedder:
        first = embedder.embed_all(TEXTS[:3])
        query = embedder.embed_query("heat")
    spent, calls = ledger.spent, vendors.state.calls[endpoint]
    with connected(vendors, name, journal=journal, meter=ledger, batch_items=1) as embedder:
        again = embedder.embed_all(TEXTS[:3])
        recalled = embedder.embed_query("heat")
        assert (vendors.state.calls[endpoint], ledger.spent) == (calls, spent)
        more = embedder.embed_all(TEXTS)
    np.testing.assert_array_equal(again.value, first.value)
    np.testing.assert_array_equal(more.value[:3], first.value)
    np.testing.assert_array_equal(recalled.value, query.value)
    assert again.usage[0].amount == pytest.approx(first.usage[0].amount)
    assert recalled.usage == query.usage
    assert (first.fresh, again.fresh, recalled.fresh, more.fresh) == (True, False, False, True)
    assert (again.details, more.details) == ({"calls": 0, "recalled": 3}, {"calls": 1, "recalled": 3})
    assert set(vendors.state.texts[endpoint].values()) == {1}
    assert recalled.ms == query.ms


def test_what_differs_is_not_recalled(vendors: Vendors, tmp_path: Path):
    journal = Journal(tmp_path / "replies.sqlite")
    ways = [
        {},
        {"dim": 512},
        {"prefixes": {Purpose.QUERY: "query: "}},
        {"input_types": {}},
        {"model": "voyage-3.5-other"},
    ]
    for way in ways:
        with connected(vendors, "voyage-3.5", journal=journal, **way) as embedder:
            assert embedder.embed_query("heat").fresh
            assert not embedder.embed_query("heat").fresh
            assert embedder.embed_query("heat", extra="repeat 2").fresh
            assert not embedder.embed_query("heat", extra="repeat 2").fresh
    assert len({str(sorted(each.items())) for each in vendors.state.requests}) == len(ways)


@every_vendor
def test_batches_keep_to_the_limits(vendors: Vendors, name: str):
    endpoint = MODELS[name][0]
    texts = [f"{'word ' * (n % 7)}text {n}" for n in range(60)]
    with connected(vendors, name, batch_items=9, batch_tokens=40) as embedder:
        vectors = embedder.embed(texts)
    np.testing.assert_allclose(vectors, expected(texts, 256), atol=1e-6)
    assert vendors.state.largest[endpoint] <= 9
    for body in vendors.state.requests:
        sent = body.get("input") or body["texts"]
        assert len(sent) == 1 or sum(map(embedder.count_tokens, sent)) <= 40


def test_batches_are_side_by_side_up_to_the_limit(vendors: Vendors):
    texts = [f"text {n}" for n in range(40)]
    vendors.script("voyage/embeddings", *[Step(count=3, seconds=20.0)] * 3)
    limits = Limits(concurrency=3)
    config = EMBEDDERS["voyage-3.5"].model_copy(
        update={"base_url": vendors.voyage, "key_env": "K", "batch_items": 2, "limits": limits}
    )
    done: list[tuple[int, int]] = []
    with make_embedder(config, 256, keys=keys_for(vendors.url, K=KEY)) as embedder:
        vectors = embedder.embed(texts, on_batch=lambda *each: done.append(each))
    np.testing.assert_allclose(vectors, expected(texts, 256), atol=1e-6)
    assert vendors.state.most_at_once == 3
    assert done == [(n, 40) for n in range(2, 41, 2)]


@pytest.mark.parametrize("name", ["embed-v4.0", "text-embedding-3-small"])
def test_usage_that_is_not_told_is_estimated(vendors: Vendors, name: str):
    vendors.script(MODELS[name][0], Step("no usage"))
    with connected(vendors, name) as embedder:
        (amount,) = embedder.embed_query(TEXTS[0]).usage
        assert amount.basis is Basis.MODELLED
        assert amount.amount == embedder.count_tokens(TEXTS[0])


@every_vendor
def test_the_meter_is_asked_first_and_told_after(vendors: Vendors, name: str):
    endpoint = MODELS[name][0]
    ledger = Ledger()
    with connected(vendors, name, meter=ledger, batch_items=2) as embedder:
        embedder.concurrency = 1
        embedder.embed(TEXTS)
        assert ledger.events == ["reserve", "settle"] * 2
        assert (ledger.spent, ledger.reserved) == (vendors.state.usage[endpoint], 0)
        ledger.most = ledger.spent + 1
        with pytest.raises(BudgetError):
            embedder.embed(["one more text"])
    assert vendors.state.calls[endpoint] == 2


@every_vendor
def test_no_reservation_is_smaller_than_the_bill(vendors: Vendors, name: str):
    texts = ["naïve 東京 📈", "x", "The <|endoftext|> of it", "a" * 2000, "\u200b\u200b", "1234567890" * 30]
    reserved: list[float] = []

    class Watching(Ledger):
        def reserve(self, amounts: Any) -> float:
            reserved.append(super().reserve(amounts))
            return reserved[-1]

        def settle(self, reservation: Any, amounts: Any) -> None:
            assert sum(each.amount for each in amounts) <= reservation
            super().settle(reservation, amounts)

    with connected(vendors, name, meter=Watching(), batch_items=1) as embedder:
        embedder.embed(texts)
    assert len(reserved) == len(texts)


def test_a_dimension_that_the_model_lacks():
    with pytest.raises(InputError, match=r"no 300 dimensions.*256, 512, 1024, 2048"):
        make_embedder("voyage-3.5", 300, keys=Keys({"VOYAGE_API_KEY": KEY}, ()))
    unknown = ModelConfig(provider="openai", model="mine", base_url="http://localhost:1/v1")
    with pytest.raises(InputError, match="dimension of mine is not known"):
        make_embedder(unknown)


def test_the_pace_is_kept_over_all_dimensions_of_a_model(vendors: Vendors):
    """Embedders of one model share its line to the vendor."""
    limits = Limits(requests_per_minute=17, concurrency=2)
    config = EMBEDDERS["voyage-3.5"].model_copy(
        update={"base_url": vendors.voyage, "key_env": "K", "limits": limits}
    )
    keys = keys_for(vendors.url, K=KEY)
    one, other = make_embedder(config, 256, keys=keys), make_embedder(config, 512, keys=keys)
    assert isinstance(one, RemoteEmbedder)
    assert isinstance(other, RemoteEmbedder)
    assert one._caller._pacer is other._caller._pacer
