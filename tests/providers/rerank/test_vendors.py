"""Vendors' rerankers through their real clients, pointed at a local server that speaks the wire formats."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.errors import BudgetError, ProviderError
from core.prices import load_books
from core.providers.calls import Caller, Journal, Keys, Limits
from core.providers.rerank import RERANKERS, make_reranker
from core.providers.rerank.remote import RemoteReranker
from core.records import Basis
from tests.providers.calls.made import Ledger
from tests.vendors import Step, Vendors, answers, keys_for

KEY = "pa-THISisTHEkey0123456789"
MODELS = {
    "rerank-2.5": ("voyage/rerank", "VOYAGE_API_KEY", "input_tokens"),
    "rerank-v3.5": ("cohere/rerank", "COHERE_API_KEY", "search_units"),
}
QUERY = "how does heat transfer in a boundary layer"
PASSAGES = [
    "supersonic flow over a wing",
    "heat transfer",
    "heat transfer in the boundary layer of a flat plate",
    "shock waves",
]

every_vendor = pytest.mark.parametrize("name", MODELS)


@contextmanager
def connected(
    vendors: Vendors,
    name: str,
    *,
    journal: Journal | None = None,
    meter: Any = None,
    key: str = KEY,
    slept: list[float] | None = None,
    limits: Limits | None = None,
    **changes: Any,
) -> Iterator[RemoteReranker]:
    """A vendor's model at the local server; waits are noted and not waited."""
    _, key_env, _ = MODELS[name]
    address = getattr(vendors, RERANKERS[name].provider)
    limits = limits or Limits()
    told = {"base_url": address, "key_env": key_env, "limits": limits, **changes}
    waits = [] if slept is None else slept
    caller = Caller(
        limits,
        name=name,
        key_env=key_env,
        clock=lambda: time.monotonic() + sum(waits),
        sleep=waits.append,
        rng=lambda: 1.0,
    )
    made = make_reranker(
        RERANKERS[name].model_copy(update=told),
        keys=keys_for(vendors.url, **{key_env: key}),
        journal=journal,
        meter=meter,
        caller=caller,
    )
    assert isinstance(made, RemoteReranker)
    with made:
        yield made


def expected(passages: list[str]) -> np.ndarray:
    return np.array([answers.relevance(QUERY, text) for text in passages])


@every_vendor
def test_scores_stand_in_the_order_of_the_passages(vendors: Vendors, name: str):
    endpoint, _, unit = MODELS[name]
    with connected(vendors, name) as reranker:
        reply = reranker.rerank(QUERY, PASSAGES)
        assert (reranker.name, reranker.item, reranker.local, reranker.pointwise) == (name, name, False, True)
    np.testing.assert_allclose(reply.value.scores, expected(PASSAGES))
    assert reply.value.order.tolist() == np.argsort(-expected(PASSAGES), kind="stable").tolist()
    (amount,) = reply.usage
    assert (amount.item, amount.unit, amount.basis) == (name, unit, Basis.MEASURED)
    assert amount.amount == vendors.state.usage[endpoint]
    assert (reply.attempts, reply.fresh, reply.details["calls"]) == (1, True, 1)
    assert reply.ms > 0


@every_vendor
def test_what_is_expected_is_what_is_billed(vendors: Vendors, name: str):
    """The estimate before the call, from tokens alone, is the bill of the server (same vocabulary)."""
    passages = [f"{text} {'and so on ' * (150 * n)}" for n, text in enumerate(PASSAGES)]
    with connected(vendors, name) as reranker:
        tokens = [reranker.count_tokens(text) for text in passages]
        (guess,) = reranker.expected(reranker.count_tokens(QUERY), tokens)
        (used,) = reranker.rerank(QUERY, passages).usage
    assert (guess.item, guess.unit, guess.amount) == (used.item, used.unit, used.amount)
    assert guess.basis is Basis.MODELLED


@every_vendor
@pytest.mark.parametrize(
    ("steps", "waits"),
    [
        ([Step.error(429, "7")], [7.7]),
        ([Step.error(500)], [1.0]),
        ([Step.error(503), Step.error(502)], [1.0, 2.0]),
        ([Step("malformed")], [1.0]),
        ([Step("drop")], [1.0]),
    ],
    ids=["429", "500", "503 502", "malformed", "drop"],
)
def test_what_passes_is_tried_again(vendors: Vendors, name: str, steps: list[Step], waits: list[float]):
    endpoint = MODELS[name][0]
    vendors.script(endpoint, *steps)
    slept: list[float] = []
    with connected(vendors, name, slept=slept) as reranker:
        reply = reranker.rerank(QUERY, PASSAGES)
    np.testing.assert_allclose(reply.value.scores, expected(PASSAGES))
    assert reply.attempts == len(steps) + 1 == vendors.state.calls[endpoint]
    assert slept == pytest.approx(waits)
    assert reply.waited_ms >= 1000 * sum(waits)


@every_vendor
def test_a_timeout_is_tried_again_and_counted_as_spent(vendors: Vendors, name: str):
    endpoint = MODELS[name][0]
    with connected(vendors, name) as warm:
        warm.rerank("the client is loaded", ["before the clock runs"])
    ledger = Ledger()
    vendors.script(endpoint, Step("timeout", seconds=1.0))
    with connected(vendors, name, meter=ledger, limits=Limits(timeout_s=0.3)) as reranker:
        reply = reranker.rerank(QUERY, PASSAGES)
    assert reply.attempts >= 2
    assert reply.usage[0].amount is not None
    assert ledger.spent > reply.usage[0].amount  # the attempt without an answer may have been billed
    assert ledger.reserved == 0


@every_vendor
@pytest.mark.parametrize(
    ("step", "kind", "says"),
    [
        (Step.error(401), "auth", "Check the key in {env}"),
        (Step.error(400, message="no such model"), "refused", "no such model.*name and its settings"),
        (Step.error(402, message="pay first"), "quota", "credit"),
        (Step.error(429, "9999"), "busy", "asks to wait 9999 s"),
        (Step("wrong count"), "count", "5 results came for 4 texts"),
    ],
    ids=["401", "400", "402", "429 for hours", "wrong count"],
)
def test_what_does_not_pass_is_an_error_at_once(
    vendors: Vendors, name: str, step: Step, kind: str, says: str
):
    endpoint, env, _ = MODELS[name]
    vendors.script(endpoint, step)
    with (
        connected(vendors, name) as reranker,
        pytest.raises(ProviderError, match=says.format(env=env)) as raised,
    ):
        reranker.rerank(QUERY, PASSAGES)
    assert (raised.value.kind, raised.value.where) == (kind, name)
    assert vendors.state.calls[endpoint] == 1
    assert KEY not in "".join(traceback.format_exception(raised.value)) + repr(raised.value)


@every_vendor
def test_the_last_attempt_is_an_error(vendors: Vendors, name: str):
    endpoint = MODELS[name][0]
    vendors.always(endpoint, Step.error(503))
    with (
        connected(vendors, name, limits=Limits(attempts=3)) as reranker,
        pytest.raises(ProviderError, match=r"after 3 attempts.*HTTP 503"),
    ):
        reranker.rerank(QUERY, PASSAGES)
    assert vendors.state.calls[endpoint] == 3


@every_vendor
def test_a_partial_answer_is_completed(vendors: Vendors, name: str):
    endpoint, _, unit = MODELS[name]
    vendors.script(endpoint, Step("partial"), Step("partial"))
    with connected(vendors, name) as reranker:
        reply = reranker.rerank(QUERY, PASSAGES)
    np.testing.assert_allclose(reply.value.scores, expected(PASSAGES))
    assert [len(each["documents"]) for each in vendors.state.requests] == [4, 2, 1]
    (amount,) = reply.usage
    assert (amount.unit, amount.amount) == (unit, vendors.state.usage[endpoint])
    assert reply.attempts == 3


@every_vendor
def test_pointwise_work_keeps_to_the_limits(vendors: Vendors, name: str):
    endpoint = MODELS[name][0]
    passages = [f"{'heat ' * (n % 5)}text {n}" for n in range(40)]
    with connected(vendors, name, batch_items=7, batch_tokens=100) as reranker:
        reply = reranker.rerank(QUERY, passages)
        most, asked = reranker.batch_tokens, reranker.count_tokens(QUERY)
        for body in vendors.state.requests:
            sent = body["documents"]
            assert len(sent) <= 7
            assert most is not None
            assert len(sent) == 1 or sum(asked + reranker.count_tokens(text) for text in sent) <= most
    np.testing.assert_allclose(reply.value.scores, expected(passages))
    assert reply.usage[0].amount == vendors.state.usage[endpoint]
    assert reply.details["calls"] == vendors.state.calls[endpoint] > 5


@every_vendor
def test_a_batch_that_is_too_large_is_halved(vendors: Vendors, name: str):
    endpoint = MODELS[name][0]
    vendors.script(endpoint, Step.error(400, message="too many tokens: the maximum is 3"))
    with connected(vendors, name) as reranker:
        np.testing.assert_allclose(reranker.rerank(QUERY, PASSAGES).value.scores, expected(PASSAGES))
        assert vendors.state.calls[endpoint] == 3
        vendors.script(endpoint, Step.error(413))
        with pytest.raises(ProviderError, match="shorter texts"):
            reranker.rerank(QUERY, ["a single passage cannot be halved"])


@every_vendor
def test_what_was_scored_is_recalled(vendors: Vendors, name: str, tmp_path: Path):
    endpoint = MODELS[name][0]
    journal, ledger = Journal(tmp_path / "replies.sqlite"), Ledger()
    with connected(vendors, name, journal=journal, meter=ledger) as reranker:
        first = reranker.rerank(QUERY, PASSAGES)
    spent = ledger.spent
    with connected(vendors, name, journal=journal, meter=ledger) as reranker:
        again = reranker.rerank(QUERY, PASSAGES)
        assert (vendors.state.calls[endpoint], ledger.spent) == (1, spent)
        assert reranker.rerank(QUERY, PASSAGES, extra="repeat 2").fresh
        assert reranker.rerank(QUERY, PASSAGES[:3]).fresh  # another pool is another call
    np.testing.assert_array_equal(again.value.scores, first.value.scores)
    assert (first.fresh, again.fresh) == (True, False)
    assert (again.usage, again.ms) == (first.usage, first.ms)
    journal.close()
    for file in tmp_path.iterdir():
        assert KEY.encode() not in file.read_bytes()


@every_vendor
def test_the_budget_is_asked_first(vendors: Vendors, name: str):
    endpoint = MODELS[name][0]
    ledger = Ledger()
    with connected(vendors, name, meter=ledger) as reranker:
        reranker.rerank(QUERY, PASSAGES)
        assert ledger.events == ["reserve", "settle"]
        assert (ledger.spent, ledger.reserved) == (vendors.state.usage[endpoint], 0)
        ledger.most = ledger.spent + 0.5
        with pytest.raises(BudgetError):
            reranker.rerank(QUERY, PASSAGES[:1])
    assert vendors.state.calls[endpoint] == 1


@every_vendor
def test_no_reservation_is_smaller_than_the_bill(vendors: Vendors, name: str):
    texts = ["naïve 東京 📈", "x", "The <|endoftext|> of it", "a" * 2000, "\u200b\u200b", "1234567890" * 300]

    class Watching(Ledger):
        def settle(self, reservation: Any, amounts: Any) -> None:
            assert sum(each.amount for each in amounts) <= reservation
            super().settle(reservation, amounts)

    ledger = Watching()
    with connected(vendors, name, meter=ledger) as reranker:
        for text in texts:
            reranker.rerank(text, texts)
    assert ledger.spent == vendors.state.usage[MODELS[name][0]]


def test_units_that_are_not_told_are_estimated(vendors: Vendors):
    vendors.script("cohere/rerank", Step("no usage"))
    with connected(vendors, "rerank-v3.5") as reranker:
        (amount,) = reranker.rerank(QUERY, PASSAGES).usage
    assert (amount.unit, amount.amount, amount.basis) == ("search_units", 1.0, Basis.MODELLED)


@pytest.mark.parametrize(
    ("query", "passages", "units"),
    [
        (20, [100] * 100, 1),
        (20, [100] * 101, 2),
        (20, [480] * 100, 1),  # 500 tokens with the query
        (20, [481] * 100, 2),
        (20, [481] * 50, 1),
        (20, [1500] * 25, 1),  # four parts each
        (20, [1500] * 26, 2),
        (20, [100_000] * 11, 1),  # cut at 4,096 tokens: nine parts each
        (20, [100_000] * 12, 2),
        (0, [0], 1),
    ],
)
def test_search_units(query: int, passages: list[int], units: float):
    reranker = make_reranker("rerank-v4.0-pro", ready=False)
    (amount,) = reranker.expected(query, passages)
    assert (amount.item, amount.unit, amount.amount) == ("rerank-v4.0-pro", "search_units", units)


def test_voyage_counts_the_query_with_every_passage():
    (amount,) = make_reranker("rerank-2.5", ready=False).expected(20, [480] * 50)
    assert (amount.item, amount.unit, amount.amount) == ("rerank-2.5", "input_tokens", 25_000)


def test_units_are_those_of_the_price_book():
    book = load_books()["list"]
    priced = 0
    for name, config in RERANKERS.items():
        if config.provider not in {"voyage", "cohere"}:
            continue
        (amount,) = make_reranker(name, ready=False).expected(20, [100])
        known = [unit for unit in ("input_tokens", "search_units") if book.find(amount.item, unit)]
        assert known in ([], [amount.unit]), name
        priced += len(known)
    assert priced >= 7


def test_a_key_is_not_sent_to_another_address(vendors: Vendors):
    config = RERANKERS["rerank-2.5"].model_copy(update={"base_url": vendors.voyage})
    with make_reranker(config, keys=Keys({"VOYAGE_API_KEY": KEY}, ())) as reranker:
        reranker.rerank(QUERY, PASSAGES)
    assert vendors.state.requests[0]["key"] == "none"


@every_vendor
def test_a_missing_key_is_named_before_anything_is_sent(name: str):
    with pytest.raises(ProviderError, match=MODELS[name][1]):
        make_reranker(name, keys=Keys({}, ()))
    planned = make_reranker(name, keys=Keys({}, ()), ready=False)
    assert planned.count_tokens(QUERY) > 0
    with pytest.raises(ProviderError, match=MODELS[name][1]):
        planned.rerank(QUERY, PASSAGES)
    planned.close()
