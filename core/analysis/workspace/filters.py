"""Rankings beside what askers may see: which ranked passages a question's filter allows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from core.analysis.cache import cached
from core.metrics.access import ALLOWED, FORBIDDEN, NEVER, UNKNOWN
from core.records import JsonMap, canonical_json
from core.store import Snapshot
from core.store.read.memory import Memory

_KEPT = Memory(64 * 2**20)
_PAIR = ("run_id", "query_id")
_HOW = ("filtering", "index", "index_params")  # Keys of a stack's specification that say how it searches


@cached(entries=64)
def no_leaks(snapshot: Snapshot, collection_id: str) -> bool:
    """Return whether a stack that leaks is never shipped: a filter asks about a permission."""
    access = snapshot.access(collection_id)
    return access is not None and access.decides


def ranked_states(snapshot: Snapshot, run_ids: Sequence[str]) -> pl.DataFrame:
    """Return what the filters of questions, judged or not, say of ranked passages.

    Returns:
        run_id, query_id, rank, passage_id and state (of `core.metrics.access`), sorted; of questions with a
        filter.
    """
    key = (str(snapshot.catalogue.path), snapshot.revision, tuple(run_ids))
    return _KEPT.once(key, lambda: _ranked(snapshot, run_ids), lambda rows: int(rows.estimated_size()))


def _ranked(snapshot: Snapshot, run_ids: Sequence[str]) -> pl.DataFrame:
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
    """Return how many passages exact filtered search returns, by run and question with a filter.

    It is what the same stack returned with an exact index that filters first, if it was run so. Otherwise it
    is every passage that the filter leaves; of a lexical stack, which returns only passages with a word of
    the question, it is then unknown, −1.
    """
    held, same = specs(snapshot, run_ids), twins(snapshot, run_ids)
    found: dict[str, Mapping[str, int]] = {}
    for run_id, collection in snapshot.searched(run_ids).items():
        access = snapshot.access(collection)
        left = {} if access is None else access.left
        twin = same.get(run_id)
        if twin is not None:
            rows = snapshot.rankings([twin], stage="final").group_by("query_id").len()
            counts = dict(rows.iter_rows())
            left = {query: min(counts.get(query, 0), most) for query, most in left.items()}
        found[run_id] = dict.fromkeys(left, -1) if twin is None and _lexical(held[run_id]) else left
    return found


def specs(snapshot: Snapshot, run_ids: Sequence[str]) -> dict[str, JsonMap]:
    """Return the specifications of runs, and of all others of their collections, the oldest first."""
    runs = snapshot.runs()
    near = runs.filter(pl.col("run_id").is_in(list(run_ids)))["collection_id"].unique()
    among = runs.filter(pl.col("collection_id").is_in(near.to_list()))
    return {run_id: json.loads(spec) for run_id, spec in among.select("run_id", "spec").iter_rows()}


def twins(snapshot: Snapshot, run_ids: Sequence[str]) -> dict[str, str]:
    """Return the run of the same stack that filters first and searches exactly, by run, if there is one."""
    held = specs(snapshot, run_ids)
    exact = {_stack(spec): run_id for run_id, spec in held.items() if _is_exact(spec)}
    of = {run_id: exact.get(_stack(held[run_id])) for run_id in run_ids}
    return {run_id: twin for run_id, twin in of.items() if twin is not None}


def exact_runs(snapshot: Snapshot, run_ids: Sequence[str]) -> frozenset[str]:
    """Return the runs whose search is exact among the passages that a filter allows."""
    held = specs(snapshot, run_ids)
    return frozenset(run_id for run_id in run_ids if _is_exact(held[run_id]) or _in_parts(held[run_id]))


def _in_parts(spec: JsonMap) -> bool:
    """Return whether partitions are searched exactly; weights of words are those of a partition in BM25."""
    apart = str(spec.get("filtering")).startswith("partition")
    return apart and not _lexical(spec) and spec.get("index", "flat") == "flat"


def _stack(spec: JsonMap) -> str:
    """Return what stacks share that differ only in their index and in how they filter."""
    return canonical_json({name: value for name, value in spec.items() if name not in _HOW})


def _lexical(spec: JsonMap) -> bool:
    return spec.get("mode") == "sparse"


def _is_exact(spec: JsonMap) -> bool:
    return spec.get("filtering") == "pre" and (_lexical(spec) or spec.get("index", "flat") == "flat")


def per_query(snapshot: Snapshot, run_ids: Sequence[str], k: int) -> pl.DataFrame:
    """Return what the first K of each question with a filter show and lack, if the run was asked it.

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
    asked = pl.concat([rows.select(_PAIR), snapshot.timings(run_ids).select(_PAIR)]).unique()
    found = most.join(asked, on=_PAIR).join(found, on=_PAIR, how="left")
    found = found.join(longest, on="run_id", how="left").with_columns(
        pl.col("longest", "leaked", "allowed").fill_null(0)
    )
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
