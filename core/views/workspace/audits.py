"""Golden sets that only judge again what a larger one judges: never the set to score with."""

from __future__ import annotations

import polars as pl

from core.store import Snapshot

_PAIR = ("query_id", "passage_id")


def audits(snapshot: Snapshot, collection_id: str) -> dict[str, str]:
    """Find the golden sets of a collection whose every judged passage a larger one judges, too.

    Args:
        snapshot: Where to read.
        collection_id: The collection.

    Returns:
        By the id of such a golden set the id of the largest one that it audits; an earlier version of a
        golden set that has grown stands here as well.
    """
    sets = snapshot.golden_sets(collection_id).filter(pl.col("judgements") > 0)
    if sets.height < 2:
        return {}
    sizes = sets.sort("judgements", "golden_set_id", descending=[True, False])
    ordered = [(str(name), int(size)) for name, size in sizes.select("golden_set_id", "judgements").rows()]
    judged = {name: snapshot.judgements(name).select(_PAIR) for name, _ in ordered}
    audited: dict[str, str] = {}
    for name, size in ordered:
        larger = (other for other, most in ordered if most > size)
        for other in larger:
            if judged[name].join(judged[other], on=_PAIR, how="anti").is_empty():
                audited[name] = other
                break
    return audited
