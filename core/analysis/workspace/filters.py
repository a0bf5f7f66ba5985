"""Rankings beside what askers may see: which ranked passages a question's filter allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from core.metrics.access import FORBIDDEN, NEVER, UNKNOWN
from core.store import Snapshot
from core.store.read.memory import Memory

_KEPT = Memory(64 * 2**20)
_LEXICAL = "sparse"  # Mode of a stack whose exact search returns only passages with a word of the question


def ranked_states(snapshot: Snapshot, run_ids: Sequence[str], depth: int | None = None) -> pl.DataFrame:
    """Return what the filters of questions, judged or not, say of ranked passages.

    Args:
        depth: The deepest rank; None for all.

    Returns:
        run_id, query_id, rank, passage_id and state (of `core.metrics.access`), sorted; of questions with a
        filter.
    """
    key = (str(snapshot.catalogue.path), snapshot.revision, tuple(run_ids), depth)
    return _KEPT.once(key, lambda: _ranked(snapshot, run_ids, depth), lambda rows: int(rows.estimated_size()))


def _ranked(snapshot: Snapshot, run_ids: Sequence[str], depth: int | None) -> pl.DataFrame:
    by_collection: dict[str, list[str]] = {}
    for run_id, collection in snapshot.searched(run_ids).items():
        by_collection.setdefault(collection, []).append(run_id)
    parts = []
    for collection, runs in by_collection.items():
        access = snapshot.access(collection)
        if access is None:
            continue
        rows = snapshot.rankings(runs, stage="final").select("run_id", "query_id", "rank", "passage_id")
        rows = rows.filter(pl.col("query_id").is_in(list(access.filters)))
        rows = rows if depth is None else rows.filter(pl.col("rank") <= depth)
        states = access.states(rows["query_id"], rows["passage_id"])
        parts.append(rows.with_columns(state=pl.Series(states, dtype=pl.Int8)))
    if not parts:
        texts = dict.fromkeys(("run_id", "query_id", "passage_id"), pl.String)
        return pl.DataFrame(schema={**texts, "rank": pl.Int32, "state": pl.Int8})
    return pl.concat(parts).sort("run_id", "query_id", "rank")


def first_unknown(rows: pl.DataFrame) -> dict[str, int]:
    """Return the rank from which on leaks of a run are unknown, of runs with any such."""
    unknown = rows.filter(pl.col("state") == UNKNOWN).group_by("run_id").agg(pl.col("rank").min())
    return dict(unknown.select("run_id", "rank").iter_rows())


def arrays(
    snapshot: Snapshot, run_ids: Sequence[str], query_ids: Sequence[str], depth: int
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int32]]:
    """Return the inputs `states` and `filtered` of `core.metrics.Extra`."""
    rows = ranked_states(snapshot, run_ids)
    unsure, left = first_unknown(rows), expected(snapshot, run_ids)
    longest = dict(rows.group_by("run_id").agg(pl.col("rank").max()).iter_rows())
    states = np.full((len(run_ids), len(query_ids), depth), -1, dtype=np.int8)
    filtered = np.zeros((len(run_ids), len(query_ids), 2), dtype=np.int32)
    for run, run_id in enumerate(run_ids):
        for query, query_id in enumerate(query_ids):
            if query_id in left[run_id]:
                most = min(left[run_id][query_id], longest.get(run_id, 0))
                filtered[run, query] = unsure.get(run_id, NEVER), most
    shown = rows.filter(pl.col("query_id").is_in(list(query_ids)) & (pl.col("rank") <= depth))
    run_at, query_at = (
        shown[column].replace_strict(list(names), range(len(names)), return_dtype=pl.Int64).to_numpy()
        for column, names in (("run_id", run_ids), ("query_id", query_ids))
    )
    states[run_at, query_at, shown["rank"].to_numpy() - 1] = shown["state"].to_numpy()
    return states, filtered


def expected(snapshot: Snapshot, run_ids: Sequence[str]) -> dict[str, Mapping[str, int]]:
    """Return how many passages exact filtered search would return, by run and question with a filter.

    It returns every passage that the filter leaves. A lexical stack returns only those with a word of the
    question: there it is unknown, −1.
    """
    modes = dict(snapshot.runs().select("run_id", pl.col("spec").str.json_path_match("$.mode")).iter_rows())
    found: dict[str, Mapping[str, int]] = {}
    for run_id, collection in snapshot.searched(run_ids).items():
        access = snapshot.access(collection)
        left = {} if access is None else access.left
        found[run_id] = dict.fromkeys(left, -1) if modes.get(run_id) == _LEXICAL else left
    return found


def leaks(snapshot: Snapshot, run_ids: Sequence[str], k: int) -> pl.DataFrame:
    """Return whether the first K of each ranked question with a filter leak: run_id, query_id, leak (0 or 1).

    All questions of a run of which anything is unknown there are null: it may leak anywhere.
    """
    rows = ranked_states(snapshot, run_ids).filter(pl.col("rank") <= k)
    unsure = list(first_unknown(rows))
    forbidden = (pl.col("state") == FORBIDDEN).any().cast(pl.Float64)
    found = rows.group_by("run_id", "query_id").agg(leak=forbidden).sort("run_id", "query_id")
    known = pl.when(pl.col("run_id").is_in(unsure).not_()).then(pl.col("leak"))
    return found.with_columns(leak=known)
