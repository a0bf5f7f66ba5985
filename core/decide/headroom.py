"""What limits a stack: its candidate pool (retrieval) or the order within it (CLQ paper §5.1, §6)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from core.errors import InputError

Reading = Literal["improve retrieval", "improve ordering", "balanced"]

LEVERS: dict[Reading, tuple[str, ...]] = {
    "improve retrieval": (
        "fuse dense with BM25 candidates",
        "where there is a dense index, tune it for recall (efSearch, or exact search)",
        "rewrite or denoise the queries",
        "deepen the candidate pool",
    ),
    "improve ordering": (
        "use a stronger reranker",
        "drop near-duplicates before reranking",
        "shorten chunks",
        "clean the metadata sent with each chunk",
    ),
    "balanced": ("widen the pool and strengthen the reranker together",),
}
"""What the paper suggests to try (§6), by reading."""

MARGIN = 0.02  # Difference of the two headrooms below which neither is first; the paper gives no threshold
_ROUNDING = 1e-6  # printed means of actual and ceiling may cross in the last digit


@dataclass(frozen=True, slots=True)
class Headroom:
    """A quality of 1 split into what is realised and the two reasons for what is not."""

    actual: float  # mean of the measure, 0..1
    ordering: float  # PROC − actual: lost by the order within the pool
    retrieval: float  # 1 − PROC: lost because the pool does not hold the passages
    pct_proc: float  # 100 · actual / PROC, in percent; NaN when PROC is 0
    reading: Reading  # which of the two to work on first
    levers: tuple[str, ...]  # what to try
    text: str  # the reading in one sentence


def split(actual: float, proc: float, *, margin: float = MARGIN) -> Headroom:
    """Split a quality into actual, ordering headroom and retrieval headroom, which add up to 1.

    The paper gives no threshold for a "low" ceiling: the larger headroom decides, and two that differ by less
    than the margin are called balanced.

    Args:
        actual: Mean of a measure over queries, 0..1.
        proc: Mean of its ceiling within the candidate pool (PROC), 0..1, at the same cutoff.
        margin: Difference of the two headrooms below which neither is first.

    Raises:
        InputError: If a value is unknown or outside 0..1, or actual exceeds the ceiling: the two then come
            from different pools or queries.
    """
    if not all(math.isfinite(value) and -_ROUNDING <= value <= 1 + _ROUNDING for value in (actual, proc)):
        raise InputError(f"No headroom of actual {actual} and PROC {proc}.", do="Both must be within 0..1.")
    if actual > proc + _ROUNDING:
        raise InputError(
            f"Actual {actual:.3f} exceeds its ceiling {proc:.3f}.",
            do="Compare both on the same pool, queries and cutoff.",
        )
    ordering, retrieval = max(proc - actual, 0.0), 1.0 - proc
    reading: Reading = "balanced"
    if abs(retrieval - ordering) >= margin:
        reading = "improve retrieval" if retrieval > ordering else "improve ordering"
    return Headroom(
        actual=1.0 - ordering - retrieval,
        ordering=ordering,
        retrieval=retrieval,
        pct_proc=100 * actual / proc if proc > 0 else math.nan,
        reading=reading,
        levers=LEVERS[reading],
        text=_text(reading, ordering, retrieval),
    )


def _text(reading: Reading, ordering: float, retrieval: float) -> str:
    parts = f"{retrieval:.3f} is lost in retrieval and {ordering:.3f} in ordering"
    advice = "; ".join(LEVERS[reading])
    if reading == "balanced":
        return f"Both limit about equally: {parts}. To try: {advice}."
    what = "The pool" if reading == "improve retrieval" else "The order within the pool"
    return f"{what} limits first: {parts}. To try: {advice}."
