"""Runs of one stack with the queries as they are and perturbed, with and without a rewrite: siblings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl

from core.pipeline.query.perturb import shown
from core.records import canonical_json, stack_label

CLEAN, NONE = "", "none"
_NAMED = ("run_id", "family", "stack", "rewrite", "perturb")
SIBLINGS = pl.Schema(dict.fromkeys(_NAMED, pl.String))
"""Columns of `siblings`: stack is named without the rewrite; perturb is "noise 4", empty = as it is."""


_CORPUS = pl.col("manifest").str.json_path_match("$.corpus.hash")


class Kin(NamedTuple):
    """What tells a run from its siblings, and what they have in common."""

    # The stack without rewrite and perturbation, as JSON; with the hash of the texts it searched, as "corpus"
    family: str
    rewrite: str
    perturb: str  # "noise 4"; empty = the queries as they are


def kin(runs: pl.DataFrame) -> dict[str, Kin]:
    """Tell the family of runs, in their order, by run_id, spec and manifest (JSON).

    Runs over other texts are no siblings, though the same settings made them.
    """
    known = runs.select("run_id", "spec", _CORPUS).iter_rows()
    return {run_id: _kin(json.loads(text), corpus) for run_id, text, corpus in known}


def _kin(spec: dict[str, Any], corpus: str | None) -> Kin:
    told, rewrite = spec.pop("perturb", None), str(spec.pop("rewrite", NONE))
    family = canonical_json(spec | ({"corpus": corpus} if corpus else {}))
    return Kin(family, rewrite, shown(told) if isinstance(told, Mapping) else CLEAN)


def siblings(runs: pl.DataFrame) -> pl.DataFrame:
    """Find the stacks that were asked perturbed queries, with all rewrites and perturbations of each.

    Args:
        runs: Runs with rankings of one collection, oldest first: run_id, spec and manifest (JSON).

    Returns:
        `SIBLINGS`, by stack, rewrite and perturbation; of a stack that ran several times the newest run.
    """
    rows = {}
    for run_id, key in kin(runs).items():
        rows[key] = (run_id, key.family, stack_label(json.loads(key.family)), key.rewrite, key.perturb)
    noisy = {key.family for key in rows if key.perturb}
    kept = [row for key, row in rows.items() if key.family in noisy]
    table = pl.DataFrame(kept, schema=SIBLINGS, orient="row")
    return table.sort("stack", "family", pl.col("rewrite") != NONE, "rewrite", "perturb")


def perturbed_runs(runs: pl.DataFrame) -> pl.DataFrame:
    """Return those of some runs, with their spec (JSON), that were asked perturbed queries."""
    maybe = runs.filter(pl.col("spec").str.contains('"perturb"', literal=True))  # 50 times as fast as reading
    return maybe.filter(pl.col("spec").str.json_path_match("$.perturb").is_not_null())
