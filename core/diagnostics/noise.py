"""What perturbed queries cost: stacks beside their perturbed siblings, and what a rewrite wins back of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.diagnostics.siblings import CLEAN, NONE, SIBLINGS
from core.stats.agreement import order_agreement
from core.stats.intervals import SEED, bootstrap_means

if TYPE_CHECKING:
    pass

Floats = NDArray[np.float64]
_FIGURES = (
    *("quality", "low", "high", "change", "change_low", "change_high"),
    *("won", "won_low", "won_high", "overlap", "tau"),
)
EFFECTS = pl.Schema([*SIBLINGS.items(), ("n", pl.Int32), *((name, pl.Float64) for name in _FIGURES)])
"""Columns of `effects`."""


def effects(
    rows: pl.DataFrame,
    values: Mapping[str, Floats],
    alike: Callable[[str, str], tuple[float | None, float | None]],
    *,
    seed: int = SEED,
) -> pl.DataFrame:
    """What perturbing costs each stack, and what each rewrite wins back.

    Args:
        rows: `SIBLINGS`.
        values: Values per query by run, of the same queries in the same order; NaN = not applicable.
        alike: Overlap@K and tau of two runs' rankings.
        seed: Of the bootstrap.

    Returns:
        `EFFECTS`: quality with its 95 % interval; change = quality minus that of the same stack and rewrite
        with the queries as they are; won = quality minus that of the same stack and perturbation without a
        rewrite; both paired over queries with their 95 % interval, null where the other run is not there.
    """
    found = {(row["family"], row["rewrite"], row["perturb"]): row["run_id"] for row in rows.to_dicts()}
    made = []
    for row in rows.to_dicts():
        own, family = values[row["run_id"]], row["family"]
        clean = found.get((family, row["rewrite"], CLEAN)) if row["perturb"] else None
        plain = found.get((family, NONE, row["perturb"])) if row["rewrite"] != NONE else None
        overlap, tau = alike(clean, row["run_id"]) if clean else (None, None)
        made.append(
            {
                **row,
                "n": int(np.isfinite(own).sum()),
                **mean_of("quality", own, seed, ends=("low", "high")),
                **(mean_of("change", own - values[clean], seed) if clean else {}),
                **(mean_of("won", own - values[plain], seed) if plain else {}),
                "overlap": overlap,
                "tau": tau,
            }
        )
    return pl.DataFrame(made, schema=EFFECTS)


def mean_of(
    name: str, values: Floats, seed: int, ends: tuple[str, str] | None = None
) -> dict[str, float | None]:
    """Return a mean with its 95 % interval, as columns; null where nothing is known."""
    ends = ends or (f"{name}_low", f"{name}_high")
    known = values[np.isfinite(values)]
    if not len(known):
        return dict.fromkeys((name, *ends))
    low, high = bootstrap_means(values, seed=seed)
    told = (float(known.mean()), float(low[0]), float(high[0]))
    return {key: each if np.isfinite(each) else None for key, each in zip((name, *ends), told, strict=True)}


def orders(table: pl.DataFrame) -> pl.DataFrame:
    """Whether perturbed queries would rank the stacks alike.

    Args:
        table: `EFFECTS`.

    Returns:
        rewrite, perturb, stacks and tau (Kendall's tau-b of the stacks' quality to that with the queries as
        they are; null with fewer than two).
    """
    clean = table.filter(pl.col("perturb") == CLEAN).select("family", "rewrite", was=pl.col("quality"))
    both = table.filter(pl.col("perturb") != CLEAN).join(clean, on=["family", "rewrite"])
    made = []
    for (rewrite, perturb), part in both.group_by("rewrite", "perturb", maintain_order=True):
        tau = order_agreement(*(part[name].cast(pl.Float64).to_numpy() for name in ("was", "quality")))
        made.append((rewrite, perturb, part.height, tau if np.isfinite(tau) else None))
    schema = {"rewrite": pl.String, "perturb": pl.String, "stacks": pl.Int32, "tau": pl.Float64}
    return pl.DataFrame(made, schema=schema, orient="row")
