"""The budget: reserved before it is spent, kept by threads together, remembered over killed processes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import BudgetError
from core.pipeline.evaluate.budget import Budget, Receipts
from core.prices import Price, PriceBook
from core.providers.base import Amount
from core.records import Basis

CENT = 0.01


def price(item: str, currency: str = "USD") -> Price:
    return Price(
        item=item, provider="p", unit="input_tokens", price=CENT, per=1, currency=currency, source="here",
        looked_up=date(2026, 1, 1), confirmed=True,
    )  # fmt: skip


BOOK = PriceBook("b", (price("m"), price("euro", "EUR")))


def tokens(count: float | None, item: str = "m") -> list[Amount]:
    return [Amount(item, "input_tokens", count, Basis.MEASURED)]


@pytest.fixture
def receipts(tmp_path: Path) -> Iterator[Receipts]:
    made = Receipts(tmp_path / "ledger.sqlite")
    yield made
    made.close()


def test_what_was_reserved_is_replaced_by_what_was_used(receipts: Receipts):
    budget = Budget(BOOK, 1.0, receipts)
    held = budget.reserve(tokens(50))
    assert (receipts.open, budget.usd) == (0.5, 0.0)
    budget.settle(held, tokens(20))
    assert (receipts.open, budget.usd) == (0.0, pytest.approx(0.2))
    budget.release(budget.reserve(tokens(80)))
    assert (receipts.open, budget.usd) == (0.0, pytest.approx(0.2))


def test_nothing_is_begun_that_could_exceed_the_budget(receipts: Receipts):
    budget = Budget(BOOK, 1.0, receipts)
    budget.begin_stage("embed")
    budget.settle(budget.reserve(tokens(60)), tokens(60))
    with pytest.raises(BudgetError, match=r"embed: The budget of \$1 ends here: \$0.6 spent.*\$0.5.* resume"):
        budget.reserve(tokens(50))
    budget.settle(budget.reserve(tokens(40)), tokens(40))  # the last cent may be spent
    assert receipts.open == 0
    with pytest.raises(BudgetError):
        budget.reserve(tokens(1))


def test_an_unknown_outcome_counts_as_what_was_reserved(receipts: Receipts):
    budget = Budget(BOOK, 1.0, receipts)
    budget.settle(budget.reserve(tokens(30)), tokens(None))
    budget.settle(budget.reserve(tokens(20)), [])
    assert budget.usd == pytest.approx(0.5)


@pytest.mark.parametrize("item", ["unknown", "euro"])
def test_a_budget_needs_prices(receipts: Receipts, item: str):
    budget = Budget(BOOK, 1.0, receipts)
    with pytest.raises(BudgetError, match=f"price book b: What {item} costs .* is not known"):
        budget.reserve(tokens(1, item))
    with pytest.raises(BudgetError, match=item):
        budget.require_prices([("m", "input_tokens"), (item, "input_tokens")])
    with pytest.raises(BudgetError):
        budget.reserve(tokens(None))
    assert receipts.spent() == []


def test_without_a_budget_an_unknown_price_is_unknown_and_not_zero(receipts: Receipts):
    budget = Budget(BOOK, None, receipts)
    budget.require_prices([("unknown", "input_tokens")])
    budget.begin_stage("embed")
    for item in ("unknown", "m"):
        budget.settle(budget.reserve(tokens(7, item)), tokens(5, item))
    known, unknown = receipts.spent()
    assert (known.stage, known.amount.item, known.amount.amount, known.calls) == ("embed", "m", 5, 1)
    assert known.usd == pytest.approx(0.05)
    assert (unknown.amount.item, unknown.amount.amount, unknown.usd) == ("unknown", 5, None)


def test_time_here_is_not_billed(receipts: Receipts):
    budget = Budget(BOOK, 0.0, receipts)
    used = [Amount("local-cpu", "cpu_ms", 5.0, Basis.MEASURED)]
    budget.settle(budget.reserve(used), used)
    assert budget.usd == 0


def test_calls_of_a_killed_process_stay_spent(tmp_path: Path):
    path = tmp_path / "ledger.sqlite"
    first = Receipts(path)
    killed = Budget(BOOK, 1.0, first)
    killed.settle(killed.reserve(tokens(30)), tokens(30))
    killed.reserve(tokens(25))  # sent, and nobody heard the answer
    first.close()
    again = Receipts(path)
    assert (again.settled, again.lost, again.open) == (pytest.approx(0.3), pytest.approx(0.25), 0.0)
    budget = Budget(BOOK, 1.0, again)
    with pytest.raises(BudgetError, match=r"up to \$0.25 for calls whose answers were lost"):
        budget.reserve(tokens(46))
    budget.release(budget.reserve(tokens(45)))
    again.close()


@settings(max_examples=25, deadline=None)
@given(
    limit=st.integers(0, 60),
    calls=st.lists(st.tuples(st.integers(1, 20), st.integers(0, 20)), max_size=25),
)
def test_threads_together_never_spend_more(limit: int, calls: list[tuple[int, int]], tmp_path_factory):
    receipts = Receipts(tmp_path_factory.mktemp("budget") / "ledger.sqlite")
    budget = Budget(BOOK, limit * CENT, receipts)
    spent: list[int] = []

    def work(mine: list[tuple[int, int]]) -> None:
        for most, used in mine:
            try:
                held = budget.reserve(tokens(most))
            except BudgetError:
                continue
            assert receipts.settled + receipts.open <= limit * CENT + 1e-6
            budget.settle(held, tokens(min(most, used)))
            spent.append(min(most, used))

    threads = [threading.Thread(target=work, args=(calls[at::4],)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(spent) <= limit
    assert receipts.settled == pytest.approx(sum(spent) * CENT)
    assert sum(each.amount.amount or 0 for each in receipts.spent()) == sum(spent)
    receipts.close()


def test_a_call_waits_for_those_under_way_where_they_decide(receipts: Receipts):
    budget = Budget(BOOK, 1.0, receipts)
    first = budget.reserve(tokens(80))
    got: list[object] = []
    waiting = threading.Thread(target=lambda: got.append(budget.reserve(tokens(50))))
    waiting.start()
    waiting.join(0.02)
    assert got == []
    budget.settle(first, tokens(30))
    waiting.join()
    assert len(got) == 1
