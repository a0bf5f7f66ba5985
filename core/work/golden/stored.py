"""Reading and storing for a build of a golden set: its inputs from the store, and its result in the store.

The result is stored under its own id, or as the next version, which names the one before.
"""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace

import polars as pl

from core.records import Batch
from core.store import Snapshot, Store
from core.tables import Frame

_WAYS = {
    "method": pl.String,
    **dict.fromkeys(("tau", "low", "high", "turns", "usd"), pl.Float64),
    "recommended": pl.Boolean,
}


def store_results(store: Store, batch: Batch) -> str:
    """Store a finished golden set, unless one with the same grades, orders and nuggets exists."""
    (golden,) = batch.golden_sets
    snapshot = store.read()
    versions = versions_of(snapshot, golden.golden_set_id)
    there = {str(name) for name in snapshot.golden_sets(golden.collection_id)["golden_set_id"]}
    last = next((name for name in reversed(versions) if name in there), None)
    if last is not None and _same(snapshot, last, batch):
        return last
    name = golden.golden_set_id
    if versions:
        numbered = (f"{name}-{number}" for number in itertools.count(len(versions) + 1))
        name = next(name for name in numbered if name not in versions)
    parents = tuple(dict.fromkeys((*golden.parents, *([last] if last else []))))
    record = replace(golden, golden_set_id=name, parents=parents)
    own = pl.lit(name).alias("golden_set_id")
    frames = {table: rows.lazy().with_columns(own).collect() for table, rows in batch.frames.items()}
    with store.write("build golden set", f"{name}: {record.notes}"[:500]) as writer:
        writer.add(Batch(golden_sets=(record,), frames=frames))
    return name


def versions_of(snapshot: Snapshot, name: str) -> list[str]:
    """Return ids of a golden set and its later versions, oldest first, deleted ones included."""
    pattern = re.compile(rf"{re.escape(name)}(?:-(\d+))?")
    known = snapshot.with_deleted().golden_sets(parts=True)["golden_set_id"].to_list()
    versions = [(int(match[1] or 1), version) for version in known if (match := pattern.fullmatch(version))]
    return [version for _, version in sorted(versions)]


def _same(snapshot: Snapshot, known: str, batch: Batch) -> bool:
    def comparable(rows: Frame) -> pl.DataFrame:
        return rows.lazy().collect().drop("golden_set_id").sort(pl.all())

    held = {"judgements": snapshot.judgements(known), "orders": snapshot.orders(known)}
    held["nuggets"] = snapshot.nuggets(known)
    return all(
        comparable(batch.frames.get(table, rows.clear())).equals(comparable(rows))
        for table, rows in held.items()
    )


def ways(snapshot: Snapshot, golden_set_id: str) -> pl.DataFrame:
    """List the predicted gain of each method of refining: method, tau, low, high, turns, usd, recommended.

    It has no rows if no prediction was made, or there is no such golden set.
    """
    manifests = snapshot.golden_sets().filter(golden_set_id=golden_set_id)["manifest"].to_list()
    rows = json.loads(manifests[0]).get("refined", {}).get("ways", []) if manifests else []
    return pl.DataFrame(rows, schema=_WAYS, orient="row")
