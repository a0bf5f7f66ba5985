"""Every measure the product knows. A new measure is its file, its cases and one line in `MEASURES`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from core.metrics import gain, hit, rates, recall
from core.metrics.info import MeasureInfo, show
from core.metrics.proc import with_ceiling

MEASURES: tuple[MeasureInfo, ...] = (
    gain.RA_NWG,
    recall.N_RECALL4,
    recall.N_RECALL5,
    rates.PRECISION4,
    rates.HARM,
    rates.HARM_UPPER,
    rates.HOLE,
    hit.HIT,
)

REGISTRY: Mapping[str, MeasureInfo] = MappingProxyType(
    {info.name: info for measure in MEASURES for info in with_ceiling(measure)}
)
"""Canonical name without cutoff to declaration; PROC[X] and %PROC[X] follow X."""


def reference() -> list[dict[str, str]]:
    """The measures as rows of text for a help page or a README table.

    Returns:
        One row per measure with the keys name, text, formula, section, params, range, better and na.
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
            "range": f"{show(info.low)} to {show(info.high)}",
            "better": "higher" if info.higher_is_better else "lower",
            "na": info.na or "Never.",
        }
        for info in REGISTRY.values()
    ]
