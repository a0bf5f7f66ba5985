"""Compare stacks with their perturbed siblings: the loss from noise, and how much a rewrite recovers.

Siblings are runs of one stack with unchanged and perturbed queries, with and without a rewrite.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import polars as pl

from core.arrays import Floats
from core.pipeline.query.perturb import shown
from core.records import canonical_json, stack_label
from core.stats.correlation import order_agreement, top_agreement
from core.stats.intervals import Labels
from core.stats.means import Of, mean_interval

CLEAN, NONE = "", "none"
_NAMED = ("run_id", "family", "stack", "rewrite", "perturb")
SIBLINGS = pl.Schema(dict.fromkeys(_NAMED, pl.String))
"""Columns of `siblings`: stack is named without the rewrite; perturb is "noise 4", "" = unchanged."""
_FIGURES = (
    *("quality", "low", "high", "change", "change_low", "change_high"),
    *("won", "won_low", "won_high", "overlap", "tau"),
)
EFFECTS = pl.Schema([*SIBLINGS.items(), ("n", pl.Int32), *((name, pl.Float64) for name in _FIGURES)])
"""Columns of `effects`."""


class Kin(NamedTuple):
    """Family of a run: its difference from its siblings, and what they have in common."""

    # The stack without rewrite and perturbation, as JSON; with the hash of the searched texts, as "corpus"
    family: str
    rewrite: str
    perturb: str  # "noise 4"; "" = unchanged queries


def kin(runs: pl.DataFrame) -> dict[str, Kin]:
    """Return the family of each run, in order, by run_id, spec and manifest (JSON).

    Runs over other texts are not siblings, even with the same settings.
    """
    corpus = pl.col("manifest").str.json_path_match("$.corpus.hash")
    families = {}
    for run_id, text, searched in runs.select("run_id", "spec", corpus).iter_rows():
        spec = json.loads(text)
        perturbation, rewrite = spec.pop("perturb", None), str(spec.pop("rewrite", NONE))
        family = canonical_json(spec | ({"corpus": searched} if searched else {}))
        families[run_id] = Kin(
            family, rewrite, shown(perturbation) if isinstance(perturbation, Mapping) else CLEAN
        )
    return families


def siblings(runs: pl.DataFrame) -> pl.DataFrame:
    """Find the stacks that were run on perturbed queries, with all rewrites and perturbations of each.

    Args:
        runs: Runs with rankings of one collection, oldest first: run_id, spec and manifest (JSON).

    Returns:
        `SIBLINGS`, by stack, rewrite and perturbation; if a stack ran several times, the newest run.
    """
    rows = {}
    for run_id, key in kin(runs).items():
        rows[key] = (run_id, key.family, stack_label(json.loads(key.family)), key.rewrite, key.perturb)
    noisy = {key.family for key in rows if key.perturb}
    kept = [row for key, row in rows.items() if key.family in noisy]
    table = pl.DataFrame(kept, schema=SIBLINGS, orient="row")
    return table.sort("stack", "family", pl.col("rewrite") != NONE, "rewrite", "perturb")


def perturbed_runs(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the runs on perturbed queries, with their spec (JSON)."""
    maybe = runs.filter(pl.col("spec").str.contains('"perturb"', literal=True))  # 50 times as fast as parsing
    return maybe.filter(pl.col("spec").str.json_path_match("$.perturb").is_not_null())


def effects(
    rows: pl.DataFrame,
    values: Mapping[str, Floats],
    alike: Callable[[str, str], tuple[float | None, float | None]],
    clusters: Labels | None = None,
) -> pl.DataFrame:
    """Compute the loss of each stack from perturbation, and the gain from each rewrite.

    Args:
        rows: `SIBLINGS`.
        values: Values per query by run, of the same queries in the same order; NaN = not applicable.
        alike: Overlap@K and tau of two runs' rankings.
        clusters: Per query, as in `core.stats.means.mean_interval`.

    Returns:
        `EFFECTS`: quality with its 95 % interval; change = quality minus that of the same stack and rewrite
        with unchanged queries; won = quality minus that of the same stack and perturbation without a
        rewrite; both paired over queries with their 95 % interval, null if the other run does not exist.
    """
    siblings = {(row["family"], row["rewrite"], row["perturb"]): row["run_id"] for row in rows.to_dicts()}
    records = []
    for row in rows.to_dicts():
        own, family = values[row["run_id"]], row["family"]
        clean = siblings.get((family, row["rewrite"], CLEAN)) if row["perturb"] else None
        plain = siblings.get((family, NONE, row["perturb"])) if row["rewrite"] != NONE else None
        overlap, tau = alike(clean, row["run_id"]) if clean else (None, None)
        records.append(
            {
                **row,
                "n": int(np.isfinite(own).sum()),
                **mean_of("quality", own, clusters, ends=("low", "high")),
                **(mean_of("change", own - values[clean], clusters) if clean else {}),
                **(mean_of("won", own - values[plain], clusters) if plain else {}),
                "overlap": overlap,
                "tau": tau,
            }
        )
    return pl.DataFrame(records, schema=EFFECTS)


def mean_of(
    name: str, values: Floats, clusters: Labels | None = None, *, ends: tuple[str, str] | None = None
) -> dict[str, float | None]:
    """Return a mean with its 95 % interval, as columns; null if nothing is known.

    Args:
        clusters: Per query, as in `core.stats.means.mean_interval`.
        ends: Columns of the interval of shares; None = a difference's columns, named after it.
    """
    of: Of = "differences" if ends is None else "shares"
    ends = ends or (f"{name}_low", f"{name}_high")
    known = values[np.isfinite(values)]
    if not len(known):
        return dict.fromkeys((name, *ends))
    low, high = mean_interval(values, of, clusters=clusters)
    values_of = (float(known.mean()), float(low[0]), float(high[0]))
    return {
        key: value if np.isfinite(value) else None
        for key, value in zip((name, *ends), values_of, strict=True)
    }


def orders(table: pl.DataFrame, *, higher_is_better: bool = True) -> pl.DataFrame:
    """Return how far perturbed queries would rank the stacks alike.

    Args:
        table: `EFFECTS`.
        higher_is_better: Which end of an order is the top.

    Returns:
        rewrite, perturb, stacks and, between the stacks' quality and that with unchanged queries, tau
        (Kendall's tau-b) and top (AP-correlation, in which the best count more); null with fewer than two.
    """
    sign = 1.0 if higher_is_better else -1.0
    clean = table.filter(pl.col("perturb") == CLEAN).select("family", "rewrite", was=pl.col("quality"))
    both = table.filter(pl.col("perturb") != CLEAN).join(clean, on=["family", "rewrite"])
    records = []
    for (rewrite, perturb), part in both.group_by("rewrite", "perturb", maintain_order=True):
        merits = [part[name].cast(pl.Float64).to_numpy() * sign for name in ("was", "quality")]
        records.append((rewrite, perturb, part.height, order_agreement(*merits), top_agreement(*merits)))
    names = {"rewrite": pl.String, "perturb": pl.String, "stacks": pl.Int32}
    schema = {**names, "tau": pl.Float64, "top": pl.Float64}
    return pl.DataFrame(records, schema=schema, orient="row").with_columns(
        pl.col("tau", "top").fill_nan(None)
    )
