"""Numbers as people read them: fixed decimals, units, unknown shown as unknown."""

from __future__ import annotations

import math

UNKNOWN = "unknown"
NOT_APPLICABLE = "–"
MINUS = "−"
"""The sign of a number as people read it; a hyphen is for files."""


def known(value: float | None) -> bool:
    """Whether a number is there: neither None nor NaN."""
    return value is not None and not math.isnan(value)


def score(value: float | None) -> str:
    """A quality in 0..1 with three decimals, ``0.804``; "–" where it is not applicable."""
    return f"{value:.3f}".replace("-", MINUS) if value is not None and known(value) else NOT_APPLICABLE


def ms(value: float | None) -> str:
    """A latency: ``0.42 ms``, ``4.2 ms``, ``333 ms``, ``2.93 s``; "unknown" where it was not measured."""
    if value is None or not known(value):
        return UNKNOWN
    if value >= 1000:
        return f"{value / 1000:.2f} s"
    return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2}f} ms"


def usd(value: float | None, per: str = "1k") -> str:
    """A cost: ``$1.25 / 1k``; small ones keep two significant digits; "unknown" where no price is known."""
    if value is None or not known(value):
        return UNKNOWN
    digits = 2
    if 0 < abs(value) < 0.1:
        digits = min(9, 1 - math.floor(math.log10(abs(value))))
    return f"${value:,.{digits}f}" + (f" / {per}" if per else "")
