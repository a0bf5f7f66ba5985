"""Rankings beside what askers may see: which ranked passages a question's filter allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from core.metrics.access import ALLOWED, FORBIDDEN, NEVER, UNKNOWN
from core.store import Snapshot
from core.store.read.memory import Memory

_KEPT = Memory(64 * 2**20)
_LEXICAL = "sparse"  # Mode of a stack whose exact search returns only passages with a word of the question


def no_leaks(snapshot: Snapshot, collection_id: str) -> bool:
    """Return whether a stack that leaks is never shipped: a filter asks about a permission."""
    access = snapshot.access(collection_id)
    return access is not None and access.decides


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


def per_query(snapshot: Snapshot, run_ids: Sequence[str], k: int) -> pl.DataFrame:
    """Return what the first K of each ranked question with a filter show and lack.

    Returns:
        run_id, query_id, leak and short (0 or 1), leaked (forbidden passages); null = unknown. Where anything
        of a run is unknown, all of its questions are: it may leak anywhere.
    """
    rows = ranked_states(snapshot, run_ids)
    longest = rows.group_by("run_id").agg(pl.col("rank").max().alias("longest"))
    left = [
        (run_id, query_id, most)
        for run_id, by_query in expected(snapshot, run_ids).items()
        for query_id, most in by_query.items()
    ]
    most = pl.DataFrame(
        left, schema={"run_id": pl.String, "query_id": pl.String, "left": pl.Int64}, orient="row"
    )
    shown = rows.filter(pl.col("rank") <= k)
    unsure = pl.col("run_id").is_in(list(first_unknown(shown)))
    found = shown.group_by("run_id", "query_id").agg(
        leaked=(pl.col("state") == FORBIDDEN).sum().cast(pl.Float64),
        allowed=(pl.col("state") == ALLOWED).sum().cast(pl.Int64),
    )
    found = found.join(longest, on="run_id").join(most, on=["run_id", "query_id"], how="left")
    wanted = pl.min_horizontal(pl.lit(k), "longest", "left")
    short = pl.when(pl.col("left") >= 0).then((pl.col("allowed") < wanted).cast(pl.Float64))
    leak = (pl.col("leaked") > 0).cast(pl.Float64)
    return found.select(
        "run_id",
        "query_id",
        *(
            pl.when(~unsure).then(value).alias(name)
            for name, value in (("leak", leak), ("leaked", pl.col("leaked")), ("short", short))
        ),
    ).sort("run_id", "query_id")
