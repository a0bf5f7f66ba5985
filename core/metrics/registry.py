"""Every measure the product knows. A new measure is its file, its cases and one line in `MEASURES`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from core.metrics import classical, gain, rates, tradeoff
from core.metrics.info import MeasureInfo
from core.metrics.proc import with_ceiling
from core.metrics.robust import robust
from core.params import show

MEASURES: tuple[MeasureInfo, ...] = (
    gain.RA_NWG,
    gain.NOVELTY,
    rates.N_RECALL4,
    rates.N_RECALL5,
    rates.N_RECALL,
    rates.PRECISION4,
    rates.HARM,
    rates.HARM_UPPER,
    rates.HOLE,
    rates.HIT,
    rates.ACC_HIT,
    rates.ANSWER,
    classical.P,
    classical.R,
    classical.F1,
    classical.SUCCESS,
    classical.RR,
    classical.AP,
    classical.NDCG,
    classical.RBP,
    tradeoff.F,
    tradeoff.F_E,
    tradeoff.T,
    tradeoff.T_U,
    classical.NDCG_FOUND,
)

REGISTRY: Mapping[str, MeasureInfo] = MappingProxyType(
    {info.name: info for measure in MEASURES for info in with_ceiling(measure)}
    | {made.name: made for made in (robust(measure) for measure in MEASURES if not measure.needs)}
)
"""Canonical name without cutoff to declaration; PROC[X] and %PROC[X] follow X, Robust[X] follow all."""


def reference() -> list[dict[str, str]]:
    """The measures as rows of text for a help page or a README table.

    Returns:
        One row per measure with the keys name, text, formula, section, params, range, better, na and differs.
    """
    return [
        {
            "name": info.name,
            "text": info.text,
            "formula": info.formula,
            "section": info.section,
            "params": "; ".join(
                f"{param.name}={show(param.default)} ({param.range}): {param.text}" for param in info.params
            ),
            "range": info.range,
            "better": "higher" if info.higher_is_better else "lower",
            "na": info.na or "Never.",
            "differs": info.differs,
        }
        for info in REGISTRY.values()
    ]
