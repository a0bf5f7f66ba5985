"""Compare, one pair of stacks: queries that flip, tags, rankings, where the difference comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from core.metrics import Measure
from core.stats.agreement import AGREEMENT
from core.stats.significance import Sample, Setup, compare
from core.store import Snapshot
from core.views.compare.page import LOSSES, TIES, WINS, alike, with_verdict
from core.views.queries.page import query_table
from core.views.workspace.query_sets import among
from core.views.workspace.scope import Quality, Scope
from core.views.workspace.scores import Evidence, at_cutoff, evidence


@dataclass(frozen=True)
class Closer:
    """One pair of stacks, looked at closely; differences are second − first."""

    queries: pl.DataFrame  # from `flips`
    tags: pl.DataFrame  # from `by_tag`
    sources: pl.DataFrame  # from `sources`
    alike: pl.DataFrame | None  # from `alike`
    pools: tuple[str, ...]  # the conventions of the two candidate pools, where they differ

    @property
    def same(self) -> bool:
        """Whether both rank the same passages in the same order on every query."""
        rows = self.alike
        if rows is None or rows.is_empty():
            return False
        return bool((rows["overlap"] == 1).all() and (rows["tau"].fill_null(1.0) == 1).all())


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
        pair: run_id of the first and of the second.
    """
    first, second = pair
    same = alike(snapshot, runs, quality.k, first, second)
    queries = flips(query_table(snapshot, scope, quality, second, first, as_zero=True), setup, same)
    pools = runs.filter(pl.col("run_id").is_in(pair))["pool"].fill_null("none").unique().sort().to_list()
    return Closer(
        queries=queries,
        tags=by_tag(queries, setup),
        sources=sources(snapshot, scope, quality, pair, setup),
        alike=same,
        pools=tuple(pools) if len(pools) > 1 else (),
    )


def flips(queries: pl.DataFrame, setup: Setup, alike: pl.DataFrame | None) -> pl.DataFrame:
    """Add outcome (better, tie, worse), overlap and tau; flips first, the largest difference first."""
    limit = setup.tolerance + 1e-12
    gain = pl.col("delta") if setup.higher_is_better else -pl.col("delta")
    outcome = (
        pl.when(gain > limit).then(pl.lit(WINS))
        .when(gain < -limit).then(pl.lit(LOSSES))
        .when(pl.col("delta").is_not_null()).then(pl.lit(TIES))
    )  # fmt: skip
    same = pl.DataFrame(schema=AGREEMENT) if alike is None else alike
    rows = queries.join(same, on="query_id", how="left", maintain_order="left").with_columns(outcome=outcome)
    order = [pl.col("outcome") == TIES, pl.col("delta").abs(), pl.col("query_id")]
    return rows.sort(order, descending=[False, True, False], nulls_last=True)


def by_tag(rows: pl.DataFrame, setup: Setup) -> pl.DataFrame:
    """Compare a pair on the queries of each tag; the tags are one family."""
    known = rows.filter(pl.col("delta").is_not_null()).sort("query_id")
    tagged = known.select("query_id", pl.col("tags").alias("tag")).explode("tag").drop_nulls().unique()
    sizes = tagged.group_by("tag").len().filter((pl.col("len") > 1) & (pl.col("len") < known.height))
    names = sizes["tag"].sort().to_list()
    table = np.full((2, 1), 0.0)
    if names:
        masks = np.array([[name in tags for tags in known["tags"].to_list()] for name in names])
        values = known.select("other", "score").to_numpy().T
        table = np.where(masks[:, None, :], values[None], np.nan).reshape(2 * len(names), -1)
    first = np.arange(0, 2 * len(names), 2)
    made = with_verdict(
        compare(Sample.means(table), first, first + 1, setup), higher_is_better=setup.higher_is_better
    )
    return made.drop("first", "second").insert_column(0, pl.Series("tag", names, dtype=pl.String))


def sources(
    snapshot: Snapshot, scope: Scope, quality: Quality, pair: Sequence[str], setup: Setup
) -> pl.DataFrame:
    """Compare a pair in the measure, its ceiling in the candidate pool and the share reached (one family).

    Empty where the measure has no ceiling.
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
    made = pl.concat([compare(_sample(found, each), [0], [1], setup) for each in wanted])
    names = pl.Series("measure", [str(each) for each in wanted])
    return made.select(names, pl.Series("says", list(wanted.values())), pl.exclude("first", "second"))


def _sample(found: Evidence, measure: Measure) -> Sample:
    """Return what is averaged over queries; of %PROC the ratio of means, as published (metrics.md §2)."""
    if measure.name.startswith("%"):
        ceiling, actual = measure.name.removeprefix("%"), measure.inner or ""
        return Sample.ratios(*(at_cutoff(found, measure.renamed(name)) for name in (actual, ceiling)))
    return Sample.means(at_cutoff(found, measure))
