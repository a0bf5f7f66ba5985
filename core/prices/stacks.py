"""What a query of a stored stack costs, said after it was measured or imported: part of every price book.

A file of its own beside the user's price books has one price for a run: per request, of which a query is one.
It counts in place of what a source reported and of what is priced from usage.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date
from pathlib import Path

from core.errors import PriceError
from core.files import write_text
from core.prices.book import CURRENCY, Price, PriceBook, check_amount
from core.prices.write import STACKS, as_toml, stack_prices

UNIT = "requests"
"""The unit of such a price."""


def set_prices(
    folder: Path, prices: Mapping[str, float], *, names: Mapping[str, str], today: date
) -> tuple[str, ...]:
    """Set what a query of stored runs costs.

    Args:
        folder: That of the user's price books.
        prices: Dollars of a query, by run id.
        names: Labels of the runs, for the notes.

    Returns:
        The ids of the runs whose price is another one now.

    Raises:
        PriceError: If a price is no amount, or the file cannot be read or written.
    """
    known = {price.item: price for price in stack_prices(folder)}
    changed = tuple(run for run, usd in prices.items() if run not in known or known[run].price != usd)
    for run in changed:
        check_amount(prices[run], 0, names.get(run, run))
        known[run] = Price(
            item=run,
            provider="you",
            unit=UNIT,
            price=prices[run],
            per=1.0,
            currency=CURRENCY,
            source="set by hand",
            looked_up=today,
            confirmed=True,
            note=names.get(run, ""),
        )
    if changed:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_text(folder / STACKS, as_toml("", tuple(known.values())))
        except OSError as error:
            raise PriceError(
                f"It cannot be written: {error.strerror}.", where=str(folder / STACKS)
            ) from error
    return changed


def stack_costs(book: PriceBook, runs: Collection[str]) -> dict[str, float]:
    """Return what 1,000 queries of runs cost, by run id, where that was set."""
    priced = {run: book.newest.get((run, UNIT)) for run in runs}
    return {run: 1000 * price.each for run, price in priced.items() if price is not None}
