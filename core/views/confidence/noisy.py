"""The choice for noisy queries."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from core.analysis.workspace.figures.robust import robust_quality
from core.analysis.workspace.stacks import stack_table
from core.analysis.workspace.view import View
from core.decide.rules import decide
from core.views import text


def choice_under_noise(view: View) -> str:
    """Say which stack is best by the worse of its clean and noisy scores, among stacks run on both.

    A quality floor is left out, as it applies to clean queries.

    Returns:
        A sentence, or "" if the measure has no Robust form or no stack was run on noisy queries.
    """
    robust = robust_quality(view.snapshot, view.scope, view.quality)
    if robust is None:
        return ""
    noisy = stack_table(view.snapshot, view.scope, robust, view.latency, view.book)
    noisy = noisy.filter(pl.col("quality").is_not_null())
    clean = noisy.select("run_id").join(view.table, on="run_id", how="inner", maintain_order="left")
    limits = replace(view.constraints, min_quality=None, min_robust=None)
    places = [(rows, decide(rows, limits, view.rule).chosen) for rows in (clean, noisy)]
    chosen = [rows["name"][place] for rows, place in places if place is not None]
    if len(chosen) < len(places):
        return ""
    first, then = chosen
    of = f"Of the {text.count(noisy.height, 'stack')} asked noisy queries too"
    if first == then:
        return f"{of}, {first} would be chosen by {robust.name} as well."
    return f"{of}, {then} would be chosen by {robust.name}, {first} by {view.quality.name}."
