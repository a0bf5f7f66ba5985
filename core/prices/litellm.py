"""Prices from the table that LiteLLM publishes (model_prices_and_context_window.json), in our units.

The table gives dollars per token or per search for some thousand models. Tiers by prompt length, cached
input, batches, images and sound are not modelled here; the note of an entry mentions its tiers.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from core.errors import PriceError
from core.prices.book import CURRENCY, Price

BOOK = "litellm"  # Name of the imported book, unless the user gives another
_LARGEST = 64_000_000
_TEXT = ("chat", "completion", "responses")
_READ = ("input_cost_per_token", "input_tokens", 1e6)
_WRITTEN = ("output_cost_per_token", "output_tokens", 1e6)
_COLUMNS: Mapping[str, tuple[tuple[str, str, float], ...]] = {
    **dict.fromkeys(_TEXT, (_READ, _WRITTEN)),
    "embedding": (_READ,),
    "rerank": (("input_cost_per_query", "search_units", 1e3), _READ),
}
"""Mode → the table's columns, our units, and the number of units that the price is for."""
_PREFIXES = ("voyage", "cohere", "openai", "jina_ai", "mistral", "gemini", "anthropic", "deepseek", "xai")
"""Vendors whose models papers and price books name without the vendor; resellers keep theirs."""
_EXAMPLE = "sample_spec"


@dataclass(frozen=True, slots=True)
class Imported:
    """Prices of a table, and what was left out of it."""

    prices: tuple[Price, ...]  # in our units, sorted by item and unit
    skipped: Mapping[str, int]  # how many entries were left out, by reason


def read_litellm(path: Path, *, looked_up: date, providers: Collection[str] = ()) -> Imported:
    """Read a table that the user has fetched.

    Args:
        providers: Only these, by their name in the table ("voyage", "cohere"…); empty = all.

    Returns:
        Prices and what was left out. A price of 0 is left out: the table writes it for unknown prices.

    Raises:
        PriceError: If the file cannot be read, isn't such a table, or lacks a named provider.
    """
    table = _table(path)
    known = {str(entry.get("litellm_provider")) for entry in table.values()}
    if unknown := sorted(set(providers) - known):
        shown = ", ".join(sorted(known)[:12])
        raise PriceError(f"It has no provider {unknown[0]!r}.", where=path.name, do=f"Found: {shown}, ….")
    skipped: Counter[str] = Counter()
    prices: dict[tuple[str, str], Price] = {}
    # an entry under the model's own name takes precedence over one under vendor/model
    for key, entry in sorted(table.items(), key=lambda pair: ("/" in pair[0], pair[0])):
        if providers and entry.get("litellm_provider") not in providers:
            continue
        read = _prices(key, entry, looked_up, path.name)
        if isinstance(read, str):
            skipped[read] += 1
        elif any((price.item, price.unit) in prices for price in read):
            skipped["the model is there already, under another name"] += 1
        else:
            prices |= {(price.item, price.unit): price for price in read}
    return Imported(tuple(prices[key] for key in sorted(prices)), dict(sorted(skipped.items())))


def _table(path: Path) -> dict[str, dict[str, Any]]:
    try:
        if path.stat().st_size > _LARGEST:
            raise PriceError("The file is larger than 64 MB.", where=path.name)
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PriceError(f"It cannot be read: {error.strerror}.", where=str(path)) from error
    except (ValueError, RecursionError) as error:
        raise PriceError("It is not JSON.", where=path.name) from error
    entries = data if isinstance(data, dict) else {}
    table = {key: entry for key, entry in entries.items() if isinstance(entry, dict) and key != _EXAMPLE}
    if not any("litellm_provider" in entry for entry in table.values()):
        raise PriceError(
            "It is not LiteLLM's table of prices.",
            where=path.name,
            do="Fetch model_prices_and_context_window.json of github.com/BerriAI/litellm.",
        )
    return table


def _prices(key: str, entry: Mapping[str, Any], looked_up: date, file: str) -> list[Price] | str:
    mode, provider = str(entry.get("mode")), entry.get("litellm_provider")
    item = _item(key, provider)
    if not isinstance(provider, str) or not _is_name(provider) or not _is_name(item):
        return "its name is not usable"
    if mode not in _COLUMNS:
        return "it is not an embedding, reranking or text model"
    amounts = [(unit, per, entry.get(column, 0)) for column, unit, per in _COLUMNS[mode]]
    if not all(_is_amount(amount) for _, _, amount in amounts):
        return "a price of it is not an amount"
    known = [(unit, per, float(amount)) for unit, per, amount in amounts if amount]
    if mode == "rerank":
        known = known[:1]  # billed by search if it has such a price; its tokens are then not billed
    if not known:
        return "its price is not known (0)"
    if mode in _TEXT and len(known) < len(amounts):
        return "only a part of its prices is known"
    return [
        Price(
            item=item,
            provider=provider,
            unit=unit,
            price=float(f"{amount * per:.12g}"),
            per=per,
            currency=CURRENCY,
            source=_source(entry, file),
            looked_up=looked_up,
            confirmed=False,
            note=_note(entry),
        )
        for unit, per, amount in known
    ]


def _item(key: str, provider: object) -> str:
    prefix, _, rest = key.partition("/")
    return rest if rest and prefix == provider and prefix in _PREFIXES else key


def _is_name(name: str) -> bool:
    return 0 < len(name) <= 120 and name.isprintable() and name == name.strip()


def _is_amount(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value is None
    return math.isfinite(value) and value >= 0


def _source(entry: Mapping[str, Any], file: str) -> str:
    said = entry.get("source")
    named = f", from {said}" if isinstance(said, str) and said.isprintable() and len(said) <= 300 else ""
    return f"LiteLLM's table of prices ({file}){named}"


def _note(entry: Mapping[str, Any]) -> str:
    tiers = any("_above_" in key for key in entry) or "tiered_pricing" in entry
    return "Imported, not confirmed." + (" Long prompts cost other than this." if tiers else "")
