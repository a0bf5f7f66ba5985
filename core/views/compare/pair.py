"""Compare, one pair of stacks: queries that flip, tags, rankings, where the difference comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from core.metrics import Measure
from core.stats.agreement import agreement
from core.stats.significance import Sample, Setup, compare
from core.store import Snapshot
from core.views import text
from core.views.compare.page import LOSSES, TIES, WINS, with_verdict
from core.views.queries.page import query_table, signed
from core.views.workspace.query_sets import among
from core.views.workspace.scope import Quality, Scope
from core.views.workspace.scores import Evidence, at_cutoff, evidence


@dataclass(frozen=True)
class Closer:
    """One pair of stacks, looked at closely; differences are second − first.

    Attributes:
        queries: From `flips`.
        tags: From `by_tag`.
        sources: From `sources`.
        alike: From `alike`.
        pools: The conventions of the two candidate pools, where they differ.
    """

    queries: pl.DataFrame
    tags: pl.DataFrame
    sources: pl.DataFrame
    alike: pl.DataFrame | None
    pools: tuple[str, ...]


def look_closer(
    snapshot: Snapshot,
    scope: Scope,
    quality: Quality,
    runs: pl.DataFrame,
    *,
    pair: tuple[str, str],
    setup: Setup,
) -> Closer:
    """Compare two stacks query by query.

    Args:
        snapshot: Where to read.
        scope: Collection and golden set.
        quality: Measure and cutoff.
        runs: The stack table.
        pair: run_id of the first and of the second.
        setup: How to compare.
    """
    first, second = pair
    same = alike(snapshot, runs, quality.k, first, second)
    rows = query_table(snapshot, scope, quality, second, first, as_zero=True)
    queries = flips(rows, setup, same)
    pools = runs.filter(pl.col("run_id").is_in(pair))["pool"].fill_null("none").unique().sort().to_list()
    return Closer(
        queries=queries,
        tags=by_tag(queries, setup),
        sources=sources(snapshot, scope, quality, pair, setup),
        alike=same,
        pools=tuple(pools) if len(pools) > 1 else (),
    )


def flips(queries: pl.DataFrame, setup: Setup, alike: pl.DataFrame | None) -> pl.DataFrame:
    """The queries of a pair, those that flip first, the largest difference first.

    Args:
        queries: `core.views.queries.page.query_table` of the second stack against the first.
        setup: Which difference is a tie, and which direction wins.
        alike: `core.stats.agreement.agreement` of the pair's rankings; None where they do not compare.

    Returns:
        The table with outcome (better, tie, worse; null without two scores), overlap, tau and shared.
    """
    limit = setup.tolerance + 1e-12
    gain = pl.col("delta") if setup.higher_is_better else -pl.col("delta")
    outcome = (
        pl.when(gain > limit).then(pl.lit(WINS))
        .when(gain < -limit).then(pl.lit(LOSSES))
        .when(pl.col("delta").is_not_null()).then(pl.lit(TIES))
    )  # fmt: skip
    if alike is None:
        alike = agreement(_NO_RANKING, _NO_RANKING, 1)
    return (
        queries.join(alike, on="query_id", how="left", maintain_order="left")
        .with_columns(outcome.alias("outcome"))
        .sort(
            pl.col("outcome") == TIES,
            pl.col("delta").abs(),
            "query_id",
            descending=[False, True, False],
            nulls_last=True,
        )
    )


_NO_RANKING = pl.DataFrame(schema={"query_id": pl.String, "passage_id": pl.String, "rank": pl.Int32})


def by_tag(rows: pl.DataFrame, setup: Setup) -> pl.DataFrame:
    """Compare a pair on the queries of each tag; the tags are one family."""
    known = rows.filter(pl.col("delta").is_not_null()).sort("query_id")
    tagged = known.select("query_id", pl.col("tags").alias("tag")).explode("tag").drop_nulls().unique()
    sizes = tagged.group_by("tag").len().filter((pl.col("len") > 1) & (pl.col("len") < known.height))
    names = sizes["tag"].sort().to_list()
    schema = {"tag": pl.String(), **with_verdict(compare(Sample.means([[0.0]]), [], [], setup)).schema}
    if not names:
        return pl.DataFrame(schema=schema).drop("first", "second")
    tags = known["tags"].to_list()
    masks = np.array([[name in each for each in tags] for name in names])
    values = known.select("other", "score").to_numpy().T
    table = np.where(masks[:, None, :], values[None], np.nan).reshape(2 * len(names), -1)
    first = np.arange(0, 2 * len(names), 2)
    made = compare(Sample.means(table), first, first + 1, setup)
    made = with_verdict(made, higher_is_better=setup.higher_is_better)
    return made.drop("first", "second").insert_column(0, pl.Series("tag", names))


def alike(snapshot: Snapshot, runs: pl.DataFrame, k: int, first: str, second: str) -> pl.DataFrame | None:
    """Overlap and tau of two rankings per query; None where they rank differently cut passages.

    Args:
        snapshot: Where to read.
        runs: The stack table.
        k: The cutoff.
        first: run_id of one.
        second: run_id of the other.
    """
    pair = runs.filter(pl.col("run_id").is_in([first, second]))
    if pair["chunking"].n_unique() > 1:
        return None
    ranked = snapshot.rankings([first, second], stage="final").filter(pl.col("rank") <= k)
    return agreement(ranked.filter(run_id=first), ranked.filter(run_id=second), k)


def alike_means(rows: pl.DataFrame | None) -> tuple[float | None, float | None]:
    """Mean overlap and mean tau over the queries that have them."""
    if rows is None or rows.is_empty():
        return None, None
    overlap, tau = rows["overlap"].drop_nulls().to_numpy(), rows["tau"].drop_nulls().to_numpy()
    return float(overlap.mean()), float(tau.mean()) if len(tau) else None


def sources(
    snapshot: Snapshot, scope: Scope, quality: Quality, pair: Sequence[str], setup: Setup
) -> pl.DataFrame:
    """Where a difference comes from: the measure, its ceiling in the candidate pool, the share reached.

    Args:
        snapshot: Where to read.
        scope: Collection and golden set.
        quality: Measure and cutoff.
        pair: run_id of the first and the second.
        setup: How to compare.

    Returns:
        One row per measure (one family): measure, says (what a difference in it means), then the columns of
        `differences` from n on; empty where the measure has no ceiling.
    """
    measure, ceiling = quality.measure, quality.ceiling
    if measure is None or ceiling is None or scope.golden_set_id is None:
        return pl.DataFrame()
    only = among(snapshot, scope)
    found = evidence(snapshot, list(pair), scope.golden_set_id, (measure, ceiling), only=only)
    wanted = {
        measure: "what the user gets",
        ceiling: "what the candidate pool holds: retrieval",
        ceiling.renamed(f"%{ceiling.name}"): "how much of it is brought up: ordering",
    }
    parts = [compare(sample_of(found, each), [0], [1], setup) for each in wanted]
    made = pl.concat(parts).drop("first", "second")
    return made.insert_column(0, pl.Series("measure", [str(each) for each in wanted])).insert_column(
        1, pl.Series("says", list(wanted.values()))
    )


def sample_of(found: Evidence, measure: Measure) -> Sample:
    """What is averaged over queries; of %PROC the ratio of means, as published (metrics.md §2)."""
    if measure.name.startswith("%"):
        ceiling, actual = measure.name.removeprefix("%"), measure.inner or ""
        return Sample.ratios(*(at_cutoff(found, measure.renamed(name)) for name in (actual, ceiling)))
    return Sample.means(at_cutoff(found, measure))


def summary(queries: pl.DataFrame, pair: Mapping[str, Any], quality: Quality, tolerance: float) -> str:
    """How the queries divide, and where most is won and lost.

    Args:
        queries: From `flips`.
        pair: Row of `core.views.compare.page.differences`.
        quality: Measure and cutoff.
        tolerance: Largest difference that is a tie.
    """
    if not pair["n"]:
        return f"{quality.name} applies to no query of both stacks."
    extremes = [
        f"the largest {what} is {_quoted(found)} ({signed(found['delta'])})"
        for what, outcome in (("gain", WINS), ("loss", LOSSES))
        for found in queries.filter(outcome=outcome).head(1).iter_rows(named=True)
    ]
    said = "; ".join(
        [
            f"Of {text.count(pair['n'], 'query', 'queries')} {pair['second']} wins {pair['wins']}, ties "
            f"{pair['ties']} (up to {tolerance:g}) and loses {pair['losses']}",
            f"on a query drawn at random it is better with probability {pair['superiority']:.2f}, ties "
            "counting half",
            *extremes,
        ]
    )
    return f"{said}."


def _quoted(row: Mapping[str, Any]) -> str:
    question = " ".join((row["text"] or "").split())
    return f"{row['query_id']} “{text.shorten(question, _QUESTION)}”" if question else str(row["query_id"])


_QUESTION = 60


def rankings_summary(closer: Closer, k: int) -> str:
    """Whether two stacks rank the same passages in the same order."""
    overlap, tau = alike_means(closer.alike)
    if overlap is None:
        return (
            "The two searched differently cut passages, so there are none that both could rank."
            if closer.alike is None
            else "Neither ranks any query."
        )
    shared = f"On average the two Top-{k} share {text.percent(overlap)} of their passages (overlap@{k})"
    if tau is None:
        return f"{shared}; no query has two shared passages whose order could be compared."
    means = text.count(closer.queries["tau"].count(), "query", "queries")
    scale = "1 = the same, 0 = unrelated"
    return f"{shared}. Kendall's tau-b of the order of those: {tau:.2f} ({scale}; mean of {means})."
