"""Differences between a decision record and today's record: limits, measure, prices, data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from core.decide.axes import BESIDE, MOVING

Data = Mapping[str, Any]
Change = tuple[str, str, str, str]  # Kind, subject, before, now
SCHEMA = {"kind": pl.String, "what": pl.String, "was": pl.String, "now": pl.String}
"""kind: "limit", "measure", "prices", "data" or "program"."""
_LIMITS = ("sla_ms", "budget", "min_quality", *(axis.limit for axis in (*BESIDE, *MOVING)), "jitter_ms")
_PRICED = ("prices", "price")
_SIZES = ("queries", "passages")
_JUDGED = ("golden_set_id", "judge", "queries", "judgements", "spans")
_NUMBERS = ("quality", "latency_ms", "cost")
_MOST = 8  # Maximum stacks, and prices, named one by one


def changes(was: Data, now: Data) -> pl.DataFrame:
    """Compare two records.

    Args:
        was, now: From `core.report.data.record_data`; parts missing from an older one are not reported.

    Returns:
        A row per difference, limits first, with columns of `SCHEMA`.
    """
    rows = [*_asked(was, now), *_prices(was, now), *_data(was, now), *_program(was, now)]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _asked(was: Data, now: Data) -> Iterator[Change]:
    before, after = was.get("question", {}), now["question"]
    for name in sorted(before.keys() & after.keys(), key=lambda key: key not in _LIMITS):
        if before[name] != after[name] and name not in _PRICED:
            yield (
                "limit" if name in _LIMITS else "measure",
                name.replace("_", " "),
                _said(before[name]),
                _said(after[name]),
            )


def _prices(was: Data, now: Data) -> Iterator[Change]:
    book, book_now = was.get("price_book", {}), now["price_book"]
    for name in ("name", "changes"):
        if name in book and list(book[name]) != list(book_now[name]):
            yield "prices", f"price book, {name}", _said(book[name]), _said(book_now[name])
    before, after = _by_item(was), _by_item(now)
    shared = sorted(before.keys() & after.keys())
    differing = [key for key in shared if before[key] != after[key]]
    for item, unit in differing[:_MOST]:
        yield "prices", f"{item}, {unit.replace('_', ' ')}", before[item, unit], after[item, unit]
    if len(differing) > _MOST:
        yield "prices", f"{len(differing) - _MOST:,} more prices", "", ""


def _by_item(data: Data) -> dict[tuple[str, str], str]:
    return {
        (entry["item"], entry["unit"]): f"{entry['price']:g} {entry['currency']} per {entry['per']:,.10g}"
        for entry in data.get("price_entries", ())
    }


def _data(was: Data, now: Data) -> Iterator[Change]:
    if "workspace" in was:
        yield from _differing("", was["workspace"], now["workspace"], _SIZES)
        before, after = (data["workspace"].get("golden_set") or {} for data in (was, now))
        yield from _differing("golden set, ", before, after, _JUDGED)
    before, after = _stacks(was), _stacks(now)
    for words, names in (
        ("stacks that came", after.keys() - before.keys()),
        ("stacks that went", before.keys() - after.keys()),
    ):
        if names and before:
            listed = ", ".join(sorted({**before, **after}[name]["stack"] for name in names)[:_MOST])
            yield "data", words, "", f"{len(names):,}: {listed}{' …' if len(names) > _MOST else ''}"
    chosen = (was.get("chosen") or {}).get("run_id")
    if chosen in before and chosen in after:
        yield from _differing("chosen stack, ", before[chosen], after[chosen], _NUMBERS)


def _stacks(data: Data) -> dict[str, Data]:
    return {row["run_id"]: row for row in data.get("stacks", ())}


def _differing(of: str, was: Data, now: Data, names: tuple[str, ...]) -> Iterator[Change]:
    for name in names:
        if was.get(name) != now.get(name):
            yield "data", f"{of}{name.replace('_', ' ')}", _said(was.get(name)), _said(now.get(name))


def _program(was: Data, now: Data) -> Iterator[Change]:
    before, after = was.get("made_by", {}).get("version"), now["made_by"]["version"]
    if before not in (None, after):
        yield "program", "version", str(before), str(after)


def _said(value: object) -> str:
    """Return a value in human-readable form, including none."""
    if value is None or value == []:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,.6g}"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
