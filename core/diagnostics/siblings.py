"""Runs of one stack with the queries as they are and perturbed, with and without a rewrite: siblings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

from core.pipeline.query.perturb import shown
from core.records import canonical_json, stack_label

CLEAN, NONE = "", "none"
_NAMED = ("run_id", "family", "stack", "rewrite", "perturb")
SIBLINGS = pl.Schema(dict.fromkeys(_NAMED, pl.String))
"""Columns of `siblings`: stack is named without the rewrite; perturb is "noise 4", empty = as it is."""


class Kin(NamedTuple):
    """What tells a run from its siblings, and what they have in common."""

    family: str  # the stack without rewrite and perturbation, as JSON
    rewrite: str
    perturb: str  # "noise 4"; empty = the queries as they are


def kin(text: str) -> Kin:
    """Tell the family of a run by its specification (JSON)."""
    spec = json.loads(text)
    told, rewrite = spec.pop("perturb", None), str(spec.pop("rewrite", NONE))
    return Kin(canonical_json(spec), rewrite, shown(told) if isinstance(told, Mapping) else CLEAN)


def siblings(runs: pl.DataFrame) -> pl.DataFrame:
    """Find the stacks that were asked perturbed queries, with all rewrites and perturbations of each.

    Args:
        runs: Runs with rankings of one collection, oldest first: run_id and spec (JSON).

    Returns:
        `SIBLINGS`, by stack, rewrite and perturbation; of a stack that ran several times the newest run.
    """
    rows = {}
    for run_id, text in runs.select("run_id", "spec").iter_rows():
        key = kin(text)
        rows[key] = (run_id, key.family, stack_label(json.loads(key.family)), key.rewrite, key.perturb)
    noisy = {key.family for key in rows if key.perturb}
    kept = [row for key, row in rows.items() if key.family in noisy]
    table = pl.DataFrame(kept, schema=SIBLINGS, orient="row")
    return table.sort("stack", "family", pl.col("rewrite") != NONE, "rewrite", "perturb")


def perturbed_runs(runs: pl.DataFrame) -> pl.DataFrame:
    """Return those of some runs, with their spec (JSON), that were asked perturbed queries."""
    maybe = runs.filter(pl.col("spec").str.contains('"perturb"', literal=True))  # 50 times as fast as reading
    return maybe.filter(pl.col("spec").str.json_path_match("$.perturb").is_not_null())
