"""Stacks by what filters leave: quality, latency, leaks and short answers by selectivity and by tenant."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from core.analysis.workspace.clusters import groups
from core.analysis.workspace.figures.costs import run_totals
from core.analysis.workspace.figures.latencies import sample
from core.analysis.workspace.filters import exact_runs, per_query, ranked_states, specs, twins
from core.analysis.workspace.query_sets import scores_by_query
from core.analysis.workspace.view import View
from core.filters import DECADES, Condition, Filter, decade, parse
from core.metrics.access import FORBIDDEN
from core.stats.means import mean_interval
from core.store import Snapshot
from core.store.read.access import Access

ALL = "all questions with a filter"  # The row over all bins
_SHARES = ("leak", "short")
_LEAKS = ("leak", "leak_low", "leak_high", "short")


def questions(view: View, names: list[str]) -> pl.DataFrame:
    """Return every question with a filter, by stack.

    Args:
        names: The stacks.

    Returns:
        name, run_id, query_id, selectivity (share of the passages that its filter leaves), bin, quality
        (null: the question is not judged, or does not count), recall (against exact filtered search), ms,
        leak, leaked and short (null = unknown).
    """
    table = view.table.filter(pl.col("name").is_in(names))
    runs = table.filter("has_rankings").select("name", "run_id")
    run_ids = runs["run_id"].to_list()
    rows = _selectivities(view, run_ids)
    found = per_query(view.snapshot, run_ids, view.quality.k)
    ms = sample(view.snapshot, table, view.latency).select("run_id", "query_id", "ms")
    rows = rows.join(runs, on="run_id")
    for more in (_quality(view, table), _recall(view, run_ids), ms, found):
        rows = rows.join(more, on=["run_id", "query_id"], how="left")
    return rows.sort("name", "query_id")


def _selectivities(view: View, run_ids: list[str]) -> pl.DataFrame:
    sizes = dict(view.snapshot.sizes("passages").select("id", "rows").iter_rows())
    rows = []
    for run_id, collection in view.snapshot.searched(run_ids).items():
        access = view.snapshot.access(collection)
        if access is not None:
            every = max(int(sizes.get(collection, 0)), access.passage_ids.len(), 1)
            rows += [
                (run_id, query, left / every, decade(left / every)) for query, left in access.left.items()
            ]
    texts = dict.fromkeys(("run_id", "query_id"), pl.String)
    return pl.DataFrame(rows, schema={**texts, "selectivity": pl.Float64, "bin": pl.String}, orient="row")


def _recall(view: View, run_ids: list[str]) -> pl.DataFrame:
    """Return the share that a search finds of what exact filtered search finds; 1 where it is that search.

    It is what was measured with the run, else what it ranks of the passages that the same stack ranks if it
    filters first and searches exactly; unknown of what ignores filters.
    """
    rows = view.snapshot.signals(run_ids, signal="ann_recall")
    parts = [rows.group_by("run_id", "query_id").agg(recall=pl.col("value").mean())]
    left = [run_id for run_id in run_ids if run_id not in set(rows["run_id"])]
    exact, way = exact_runs(view.snapshot, left), ways(view.snapshot, left)
    every = view.snapshot.rankings([name for name in left if name in exact], stage="final")
    parts.append(every.select("run_id", "query_id").unique().with_columns(recall=pl.lit(1.0)))
    for run_id, twin in twins(view.snapshot, left).items():
        if run_id not in exact and way[run_id][0] != "none":
            wanted, found = (view.snapshot.rankings([name], stage="final") for name in (twin, run_id))
            seen = found.select("query_id", "passage_id", hit=1)
            both = wanted.join(seen, on=["query_id", "passage_id"], how="left")
            shares = both.group_by("query_id").agg(recall=pl.col("hit").fill_null(0).mean())
            parts.append(shares.select(pl.lit(run_id).alias("run_id"), "query_id", "recall"))
    return pl.concat(parts)


def ways(snapshot: Snapshot, run_ids: Sequence[str]) -> dict[str, tuple[str, bool]]:
    """Return how each run honours filters, and whether its search is exact; unknown is as "none"."""
    exact = exact_runs(snapshot, run_ids)
    said = {run_id: str(spec.get("filtering", "none")) for run_id, spec in specs(snapshot, run_ids).items()}
    return {run_id: (said[run_id], run_id in exact) for run_id in run_ids}


def _quality(view: View, table: pl.DataFrame) -> pl.DataFrame:
    scores = scores_by_query(view.snapshot, table, view.scope, view.quality)
    schema = {"run_id": pl.String, "query_id": pl.String, "quality": pl.Float64}
    if scores is None:
        return pl.DataFrame(schema=schema)
    rows = [
        (run_id, query_id, float(value))
        for run_id, values in zip(scores.run_ids, scores.values, strict=True)
        for query_id, value in zip(scores.query_ids, values, strict=True)
        if not np.isnan(value)
    ]
    return pl.DataFrame(rows, schema=schema, orient="row")


def summed(view: View, rows: pl.DataFrame, by: str) -> pl.DataFrame:
    """Return the figures of each stack over the questions that share a value of a column.

    Args:
        rows: From `questions`.
        by: The column.

    Returns:
        name, the column, questions, selectivity (median), quality with low, high and n, p50 (ms),
        usd_per_1k, recall (of the exact filtered search), leak with leak_low, leak_high and leak_n, short and
        short_n; null = unknown.
    """
    spent = _costs(view, rows, by)
    made = [
        _figures(view, part, {"name": name, by: value, "usd_per_1k": spent.get((name, value))})
        for (name, value), part in rows.group_by("name", by, maintain_order=True)
    ]
    numbers = ("selectivity", "quality", "low", "high", "p50", "usd_per_1k", "recall", *_LEAKS)
    counts = ("questions", "n", "leak_n", "short_n")
    schema = {
        "name": pl.String,
        by: pl.String,
        **dict.fromkeys(numbers, pl.Float64),
        **dict.fromkeys(counts, pl.Int64),
    }
    return pl.DataFrame(made, schema=schema)


def _costs(view: View, rows: pl.DataFrame, by: str) -> dict[tuple[object, object], float | None]:
    """Return the $ per 1,000 of the questions that share a value, by stack; of usage recorded by question."""
    runs = view.snapshot.runs().filter(pl.col("run_id").is_in(rows["run_id"].unique().to_list()))
    usage = view.snapshot.usage(runs["run_id"].to_list())
    whole = usage.filter(pl.col("query_id").is_null())["run_id"].unique().to_list()
    usage = usage.filter(~pl.col("run_id").is_in(whole))
    names = dict(rows.select("run_id", "name").iter_rows())
    found: dict[tuple[object, object], float | None] = {}
    for (value,), part in rows.group_by(by):
        own = usage.join(part.select("run_id", "query_id"), on=["run_id", "query_id"], how="semi")
        costs = run_totals(runs, own, view.book).select("run_id", "usd_per_1k").iter_rows()
        found |= {(names[run_id], value): None if run_id in whole else usd for run_id, usd in costs}
    return found


def _figures(view: View, part: pl.DataFrame, named: dict[str, object]) -> dict[str, object]:
    found = named | {
        "questions": part.height,
        "selectivity": part["selectivity"].median(),
        "p50": part["ms"].median(),
        "recall": part["recall"].mean(),
    }
    alike = groups(view.snapshot, view.scope)
    for name in ("quality", *_SHARES):
        known = part.drop_nulls(name)
        share = name in _SHARES or view.quality.is_share
        ends: tuple[float | None, float | None] = (None, None)
        if known.height > 1:
            labels = alike.labels(known["query_id"].to_list())
            low, high = mean_interval(
                known[name].to_numpy(), "shares" if share else "amounts", clusters=labels
            )
            ends = tuple(None if np.isnan(end[0]) else float(end[0]) for end in (low, high))  # type: ignore[assignment]
        prefix = "" if name == "quality" else f"{name}_"
        found |= {
            name: known[name].mean(),
            f"{prefix}low": ends[0],
            f"{prefix}high": ends[1],
            f"{prefix}n": known.height,
        }
    return {key: value for key, value in found.items() if key not in ("short_low", "short_high")}


def by_selectivity(view: View, rows: pl.DataFrame) -> pl.DataFrame:
    """Return `summed` by decade of selectivity, the narrowest filters first, and over all of them."""
    every = summed(view, rows.with_columns(bin=pl.lit(ALL)), "bin")
    order = pl.col("bin").replace_strict([*DECADES, ALL], range(len(DECADES) + 1), return_dtype=pl.Int32)
    return pl.concat([summed(view, rows, "bin"), every]).sort("name", order)


def fields_of_one(access: Access) -> list[str]:
    """Return the fields that filters ask to equal one value, those asked most often first: tenants."""
    names = [name for asked in access.filters.values() for name in _one_value(asked)]
    return sorted(set(names), key=lambda name: (-names.count(name), name))


def _one_value(asked: Filter) -> dict[str, object]:
    return {
        part.name: part.values[0]
        for part in asked.parts
        if isinstance(part, Condition) and part.operator == "in" and len(part.values) == 1
    }


def by_tenant(view: View, rows: pl.DataFrame, access: Access, name: str) -> pl.DataFrame:
    """Return `summed` by the value that a field has to equal; column passages: how many have it."""
    values = {
        query: held[name] for query, asked in access.filters.items() if name in (held := _one_value(asked))
    }
    said = {query: str(value) for query, value in values.items()}
    of = {said[query]: parse({name: value}) for query, value in values.items()}
    sizes = {value: int(access.mask(asked).sum()) for value, asked in of.items()}
    tenant = pl.col("query_id").replace_strict(said, default=None, return_dtype=pl.String)
    found = summed(view, rows.with_columns(tenant=tenant).drop_nulls("tenant"), "tenant")
    passages = pl.col("tenant").replace_strict(sizes, return_dtype=pl.Int64)
    return found.with_columns(passages=passages).sort(
        "name", "passages", "tenant", descending=[False, True, False]
    )


def leaking(view: View, rows: pl.DataFrame, access: Access) -> pl.DataFrame:
    """Return every forbidden passage within the cutoff: name, query_id, filter, rank, passage_id."""
    runs = rows.select("run_id", "name").unique()
    found = ranked_states(view.snapshot, runs["run_id"].to_list()).filter(
        (pl.col("state") == FORBIDDEN) & (pl.col("rank") <= view.quality.k)
    )
    filters = {query: asked.text for query, asked in access.filters.items()}
    said = pl.col("query_id").replace_strict(filters, default=None, return_dtype=pl.String)
    found = found.join(runs, on="run_id").with_columns(filter=said)
    return found.select("name", "query_id", "filter", "rank", "passage_id").sort("name", "query_id", "rank")


def set_aside(view: View) -> int:
    """Return how many judged passages are outside of what the askers may see."""
    if view.scope.golden_set_id is None:
        return 0
    golden_set_id = view.scope.golden_set_id
    return view.snapshot.judgements(golden_set_id).height - view.snapshot.within(golden_set_id).height
