"""One query of a stack as people may type it: what each perturbation makes of its ranking."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from core.diagnostics.noise import CLEAN, kin, perturbed_runs
from core.pipeline.query.perturb import NAMES, perturbed
from core.stats.agreement import agreement
from core.store import Snapshot
from core.views import text
from core.views.workspace.query_sets import asked_in
from core.views.workspace.scope import Quality, Scope
from core.views.workspace.scores import at_cutoff, evidence

TYPED = pl.Schema(
    {
        **dict.fromkeys(("run_id", "perturb", "typed"), pl.String),
        **dict.fromkeys(("score", "change", "overlap"), pl.Float64),
    }
)
"""Columns of `typed`."""


def typed(snapshot: Snapshot, scope: Scope, quality: Quality, run_id: str, query_id: str) -> pl.DataFrame:
    """Read how the siblings of a run that were asked a query perturbed rank it.

    Returns:
        `TYPED`, what hurts most first: run, perturbation, what was typed (null where only the run knows),
        the score, its difference to that of the query as it is, and the share of the Top-K that stays; empty
        where there are no such runs. Null where a run was not asked it or the measure does not apply.
    """
    siblings = _siblings(snapshot, scope.collection_id, run_id)
    if not siblings or scope.golden_set_id is None or quality.measure is None:
        return pl.DataFrame(schema=TYPED)
    ids = [run_id, *siblings]
    found = evidence(snapshot, ids, scope.golden_set_id, [quality.measure], only={query_id})
    if not found.query_ids:
        return pl.DataFrame(schema=TYPED)
    values = np.where(asked_in(found, snapshot.timings), at_cutoff(found, quality.measure), np.nan)[:, 0]
    scores = dict(zip(found.run_ids, values.tolist(), strict=True))
    ranked = snapshot.rankings(ids, query_id=query_id).filter(
        pl.col("stage") == "final", pl.col("rank") <= quality.k
    )
    own = ranked.filter(run_id=run_id)
    said = snapshot.queries(scope.collection_id).filter(query_id=query_id)["text"].to_list()
    rows = []
    for other, (name, told) in siblings.items():
        same = agreement(own, ranked.filter(run_id=other), quality.k)["overlap"].to_list()
        known = bool(said and said[0]) and NAMES not in told
        rows.append(
            {
                "run_id": other,
                "perturb": name,
                "typed": perturbed(said[0], told) if known else None,
                "score": scores[other],
                "change": scores[other] - scores[run_id],
                "overlap": same[0] if same else None,
            }
        )
    worst_last = not quality.higher_is_better
    table = pl.DataFrame(rows, schema=TYPED).with_columns(pl.col(pl.Float64).fill_nan(None))
    return table.sort("change", "perturb", descending=[worst_last, False], nulls_last=True)


def _siblings(
    snapshot: Snapshot, collection_id: str, run_id: str
) -> dict[str, tuple[str, Mapping[str, Any]]]:
    """Return by run how it perturbs the queries of this run's stack; of several the newest."""
    runs = snapshot.runs(collection_id).filter("has_rankings")
    own = kin(runs.filter(run_id=run_id)).get(run_id)
    if own is None or own.perturb != CLEAN:
        return {}
    newest = {}
    noisy = perturbed_runs(runs)
    for (name, key), spec in zip(kin(noisy).items(), noisy["spec"], strict=True):
        if key._replace(perturb=CLEAN) == own:
            newest[key.perturb] = (name, json.loads(spec)["perturb"])
    return {name: (way, told) for way, (name, told) in newest.items()}


def answer(rows: pl.DataFrame, quality: Quality) -> str:
    """Say which perturbation of the query hurts most."""
    worst = rows.drop_nulls("change").head(1).to_dicts()
    sign = 1 if quality.higher_is_better else -1
    if not worst or sign * worst[0]["change"] >= 0:
        return f"None of {text.count(rows.height, 'perturbation')} that were run makes this query worse."
    of = f"{text.signed(worst[0]['change'])} {quality.name}"
    return f"{worst[0]['perturb'].capitalize()} hurts this query most: {of}."


def mark(row: Mapping[str, Any], k: int, *, clean: bool) -> str:
    """Say what became of a passage between the query as it is and perturbed; empty where nothing did.

    Args:
        row: Of `Side.ranking`.
        clean: Whether it stands in the ranking of the query as it is.
    """
    there = row["before"]
    if there == row["rank"]:
        return ""
    at = "" if there is None else f", now #{there}" if clean else f", was #{there}"
    if row["rank"] <= k and (there is None or there > k):
        return f"{'lost' if clean else 'new'}{at}"
    return "" if clean or there is None else f"{row['change']}{at}"
