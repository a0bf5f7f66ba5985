"""Robust quality beside the requested quality: the worst of clean and perturbed queries.

A floor on it keeps stacks that lose little when people write differently than the golden set.
"""

from __future__ import annotations

import json

import polars as pl

from core.analysis.workspace.scope import Quality, Scope
from core.diagnostics.noise import perturbed_runs
from core.metrics import REGISTRY, Measure
from core.metrics.robust import PERTURBATIONS
from core.params import ParamValue
from core.pipeline.query.perturb import WAYS
from core.store import Snapshot


def endured(snapshot: Snapshot, scope: Scope, measure: Measure | None) -> Measure | None:
    """Return Robust[X] of a measure X, under the perturbations that the collection's stacks were run on.

    Returns:
        Under the highest level of small talk that was run by itself, otherwise another perturbation; with the
        measure's own cutoff. None if it has no Robust form, less of it is better, or no stack was run on
        perturbed queries.
    """
    if measure is None or f"Robust[{measure.name}]" not in REGISTRY or not measure.info.higher_is_better:
        return None
    runs = perturbed_runs(snapshot.runs(scope.collection_id).filter("has_rankings"))
    return None if runs.is_empty() else _under_highest(runs, measure)


def _under_highest(runs: pl.DataFrame, measure: Measure) -> Measure:
    alone: dict[str, ParamValue] = {}
    for spec in runs["spec"]:
        levels_of = {way: level for way, level in json.loads(spec)["perturb"].items() if way in WAYS}
        if len(levels_of) == 1:
            ((way, level),) = levels_of.items()
            # near misses before forms that are words: nobody types a mask
            alone[way] = max(alone.get(way, level), level, key=lambda one: (str(one).isdecimal(), str(one)))
    way = next((way for way in WAYS if way in alone), WAYS[0])
    levels = {perturbation.name: perturbation.default for perturbation in PERTURBATIONS} | {
        way: alone.get(way, 4)
    }
    return Measure(f"Robust[{measure.name}]", measure.k, (*measure.params, *levels.items()))


def robust_quality(snapshot: Snapshot, scope: Scope, quality: Quality) -> Quality | None:
    """Return the robust form of a workspace's quality, or None if there is none."""
    measure = endured(snapshot, scope, quality.measure)
    return None if measure is None else Quality(str(measure.at(None)), quality.k)
