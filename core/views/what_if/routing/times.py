"""Latency per query of the depths that a routing can choose: measured, or modelled from a deeper run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from core.decide.routing.replay import replayed_ms
from core.prices import PriceBook
from core.records import Basis
from core.stats.latency import TOTAL, per_query
from core.store import Snapshot
from core.views.what_if.deeper import latency_by_depth
from core.views.what_if.routing.families import Option
from core.views.workspace.comparable import machine
from core.views.workspace.latency_sample import sample
from core.views.workspace.scope import Latency, Quality, Scope

RERANK = "rerank"


@dataclass(frozen=True, slots=True)
class Asked:
    """What the sidebar says."""

    scope: Scope  # the workspace
    quality: Quality  # measure and cutoff
    latency: Latency  # percentile and scope
    book: PriceBook  # prices


class Times:
    """Latency per query of the options: measured, or modelled from the deepest run that was timed.

    Attributes:
        modelled: How smaller depths were modelled, in words; None where none was.
    """

    def __init__(
        self, snapshot: Snapshot, table: pl.DataFrame, asked: Asked, options: Sequence[Option]
    ) -> None:
        self._snapshot, self._asked = snapshot, asked
        self._ids = list(dict.fromkeys(option.run_id for option in options))
        self._runs = table.filter(pl.col("run_id").is_in(self._ids))
        whole = sample(snapshot, self._runs, asked.latency)
        self._guessed = set(whole.filter("modelled")["run_id"])
        stages = per_query(snapshot.timings(self._ids)).filter(pl.col("stage") != TOTAL)
        totals = whole.select("run_id", pl.lit(TOTAL).alias("stage"), "query_id", "ms")
        self._rows = pl.concat([stages, totals])
        timed = set(whole["run_id"]) - self._elsewhere(asked.latency.machine)
        depth = {option.run_id: option.deep or option.depth or 0 for option in options}
        self._timed = timed
        self._donor = max(timed, key=lambda run_id: depth.get(run_id, 0), default=None)
        self._depth = depth
        self.modelled: str | None = None

    def _elsewhere(self, chosen: str | None) -> set[str]:
        """Runs that were timed on another machine than the chosen one, or than the first."""
        rows = self._runs.select("run_id", "environment", "origin").iter_rows()
        found = {run_id: machine(environment, origin) for run_id, environment, origin in rows}
        same = chosen or found[self._ids[0]]
        return {run_id for run_id, name in found.items() if name != same}

    def reranked(self, option: Option) -> bool:
        """Whether the option has a reranker."""
        run = self._runs.row(by_predicate=pl.col("run_id") == option.run_id, named=True)
        return (run["reranker"] or "none") != "none"

    def of(self, option: Option) -> tuple[pl.DataFrame, str | None]:
        """query_id and ms of an option, and how they are known; no rows where they are not."""
        if option.deep is None and option.run_id in self._timed:
            origin = self._runs.row(by_predicate=pl.col("run_id") == option.run_id, named=True)["origin"]
            basis = Basis.IMPORTED if origin == "import" else Basis.MEASURED
            basis = Basis.MODELLED if option.run_id in self._guessed else basis
            return self._stage(option.run_id, TOTAL), str(basis)
        donor = option.run_id if option.deep is not None else self._donor
        deep = self._depth.get(donor or "", 0)
        if donor is None or donor not in self._timed or option.depth is None or deep < option.depth:
            return self._rows.clear(), None
        if not self.reranked(option):
            return self._rows.clear(), None
        return self._scaled(donor, option.depth, deep), str(Basis.MODELLED)

    def spent(self, option: Option, stages: Sequence[str]) -> pl.DataFrame | None:
        """What a query has taken at an option by the end of some stages; None = nothing counts."""
        if not stages:
            return None
        whole, basis = self.of(option)
        if stages == (TOTAL,):
            embedded = self._stage(option.run_id, "embed").rename({"ms": "embed"})
            rest = whole.join(embedded, on="query_id", how="left")
            return rest.with_columns(pl.col("ms") - pl.col("embed").fill_null(0.0))
        if basis == Basis.MODELLED:
            donor = option.run_id if option.deep is not None else str(self._donor)
            line = self._line(donor)
            rows = self._stage(donor, RERANK)
            return rows.with_columns(
                replayed_ms(pl.col("ms"), option.depth or 0, self._depth[donor], line).alias("ms")
            )
        return self._stage(option.run_id, RERANK)

    def _stage(self, run_id: str, stage: str) -> pl.DataFrame:
        return self._rows.filter((pl.col("run_id") == run_id) & (pl.col("stage") == stage)).select(
            "query_id", "ms"
        )

    def _scaled(self, donor: str, depth: int, deep: int) -> pl.DataFrame:
        line = self._line(donor)
        by = "along the line fitted over K" if line else "in proportion to K"
        self.modelled = f"from the run at K = {deep}, its reranker's time {by}"
        rows = self._stage(donor, TOTAL).join(
            self._stage(donor, RERANK).rename({"ms": "rerank"}), on="query_id", how="inner"
        )
        scaled = replayed_ms(pl.col("rerank"), depth, deep, line)
        return rows.select("query_id", (pl.col("ms") - pl.col("rerank") + scaled).alias("ms"))

    def _line(self, donor: str) -> tuple[float, float] | None:
        """Slope and intercept of the donor's reranker, where its depths were fitted."""
        fitted = latency_by_depth(self._snapshot, self._asked.scope).filter(pl.col("run_id") == donor)
        if fitted.is_empty() or fitted["slope"][0] is None:
            return None
        return float(fitted["slope"][0]), float(fitted["intercept"][0])
