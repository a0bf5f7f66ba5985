"""A finished golden set in the store: under its own id, or as the next version that names the one before."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from core.records import Batch
from core.store import Snapshot, Store
from core.views.run.shelf import StoreShelf

if TYPE_CHECKING:  # the engines take a second to load
    from core.golden.job import GoldenJob
    from core.golden.spec import GoldenSpec
    from core.pipeline.sweep import Problem
    from core.prices import PriceBook

_TABLES = ("judgements", "orders")


def land(store: Store, batch: Batch) -> str:
    """Write a finished golden set; one with the same grades and orders is left alone.

    Returns:
        The id that it has in the store.
    """
    (golden,) = batch.golden_sets
    snapshot = store.read()
    versions = versions_of(snapshot, golden.golden_set_id)
    there = {str(name) for name in snapshot.golden_sets(golden.collection_id)["golden_set_id"]}
    last = next((name for name in reversed(versions) if name in there), None)
    if last is not None and _same(snapshot, last, batch):
        return last
    name = golden.golden_set_id if not versions else _next(golden.golden_set_id, versions)
    parents = tuple(dict.fromkeys((*golden.parents, *([last] if last else []))))
    record = replace(golden, golden_set_id=name, parents=parents)
    own = pl.lit(name).alias("golden_set_id")
    frames = {table: rows.lazy().with_columns(own).collect() for table, rows in batch.frames.items()}
    with store.write("build golden set", f"{name}: {record.notes}"[:500]) as writer:
        writer.add(Batch(golden_sets=(record,), frames=frames))
    return name


def versions_of(snapshot: Snapshot, name: str) -> list[str]:
    """Ids of a golden set and its later versions, oldest first, deleted ones included."""
    pattern = re.compile(rf"{re.escape(name)}(?:-(\d+))?")
    known = snapshot.with_deleted().golden_sets(parts=True)["golden_set_id"].to_list()
    found = [(int(match[1] or 1), each) for each in known if (match := pattern.fullmatch(each))]
    return [each for _, each in sorted(found)]


def _next(name: str, versions: list[str]) -> str:
    number = len(versions) + 1
    while f"{name}-{number}" in versions:
        number += 1
    return f"{name}-{number}"


def _same(snapshot: Snapshot, known: str, batch: Batch) -> bool:
    held = {"judgements": snapshot.judgements(known), "orders": snapshot.orders(known)}
    for table in _TABLES:
        offered = batch.frames.get(table)
        rows = held[table].clear() if offered is None else offered.lazy().collect()
        if (
            not rows.drop("golden_set_id")
            .sort(pl.all())
            .equals(held[table].drop("golden_set_id").sort(pl.all()))
        ):
            return False
    return True


def read(
    snapshot: Snapshot, spec: GoldenSpec, books: Mapping[str, PriceBook], *, to_run: bool
) -> tuple[GoldenJob, list[Problem]]:
    """Read what a specification names, with a store as its shelf."""
    from core.golden.job import read_job  # noqa: PLC0415 - with the engines, a second

    return read_job(spec, shelf=StoreShelf(snapshot), books=books, to_run=to_run)


def ways(snapshot: Snapshot, golden_set_id: str) -> pl.DataFrame:
    """What refining a golden set was predicted to bring: method, tau, low, high, turns, usd, recommended.

    No rows where that was not asked, or there is no such golden set.
    """
    told = snapshot.golden_sets().filter(golden_set_id=golden_set_id)["manifest"].to_list()
    rows = json.loads(told[0]).get("refined", {}).get("ways", []) if told else []
    return pl.DataFrame(rows, schema=_WAYS, orient="row")


_WAYS = {
    "method": pl.String,
    **dict.fromkeys(("tau", "low", "high", "turns", "usd"), pl.Float64),
    "recommended": pl.Boolean,
}
