"""Remedies tried for a stack limited by retrieval or ordering (CLQ paper §6), and those not tried yet.

Remedies measured in the workspace come first, with their difference; they are advice only if they gained.
A remedy that the stack already has, or that cannot change it, isn't named.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from core.analysis.workspace.pools import BALANCED, ORDERING, RETRIEVAL
from core.axes import NEAR_COPIES, AxisSpec, as_read
from core.decide.ties import Paired
from core.views import text

NONE = "none"
_DENSE = ("embedder", "dim", "index", "index_params", "metric")
_SPARSE = ("sparse", "bm25")
_DEPTH = frozenset({"candidates"})
_FUSION = frozenset({"mode", "fusion", *_DENSE, *_SPARSE})
_RERANKER = _DEPTH | {"reranker"}
SAME_RESULT = "which changes nothing"
NOTHING_LEFT = "None of the CLQ paper's levers (§6) is left to try."


@dataclass(frozen=True, slots=True)
class Lever:
    """One thing to try on a stack.

    Attributes:
        words: The advice.
        keys: Specification keys in which a stack with the remedy differs.
        fits: Whether it can change a stack with this specification.
        done: Whether another stack, which differs in `keys` alone, is this one with the remedy.
        like: Whether a stack shows the cost of the remedy, whatever its other parts.
    """

    words: str
    keys: frozenset[str] = frozenset()
    fits: Callable[[AxisSpec], bool] = lambda _: True
    done: Callable[[AxisSpec, AxisSpec], bool] = lambda own, other: own != other
    like: Callable[[AxisSpec], bool] = lambda _: False


def _reranks(spec: AxisSpec) -> bool:
    return spec.get("reranker") not in (None, NONE)


def _mode(spec: AxisSpec) -> str | None:
    mode = spec.get("mode")
    return None if mode is None else str(mode)


def _fused(own: AxisSpec, other: AxisSpec) -> bool:
    leg = _DENSE if _mode(own) == "dense" else _SPARSE
    return _mode(other) == "hybrid" and all(own.get(key) == other.get(key) for key in leg)


def _deeper(own: AxisSpec, other: AxisSpec) -> bool:
    return int(other.get("candidates") or 0) > int(own.get("candidates") or 0)


def _size(spec: AxisSpec) -> float:
    chunker = spec.get("chunker")
    size = chunker.get("size") if isinstance(chunker, Mapping) else None
    return float(size) if isinstance(size, int | float) else 0.0


_ADD = Lever(
    "add a reranker",
    _RERANKER,
    lambda spec: not _reranks(spec),
    lambda _, other: _reranks(other),
    _reranks,
)
LEVERS: Mapping[str, tuple[Lever, ...]] = {
    RETRIEVAL: (
        Lever("fuse dense with BM25 candidates", _FUSION, lambda spec: _mode(spec) != "hybrid", _fused),
        Lever(
            "tune the dense index for recall (efSearch, or exact search)",
            frozenset({"index", "index_params"}),
            lambda spec: spec.get("index") not in (None, "flat"),
            lambda _, other: other.get("index") == "flat",
        ),
        Lever(
            "rewrite or denoise the queries",
            frozenset({"rewrite"}),
            lambda spec: spec.get("rewrite", NONE) == NONE,
        ),
        Lever("deepen the candidate pool", _DEPTH, _reranks, _deeper),
    ),
    ORDERING: (
        _ADD,
        Lever(
            "use a stronger reranker",
            _RERANKER,
            _reranks,
            lambda own, other: _reranks(other) and own.get("reranker") != other.get("reranker"),
        ),
        Lever("drop near-duplicates", frozenset({NEAR_COPIES}), lambda spec: not spec.get(NEAR_COPIES)),
        Lever(
            "shorten chunks", frozenset({"chunker"}), done=lambda own, other: 0 < _size(other) < _size(own)
        ),
        Lever("clean the metadata sent with each chunk"),
    ),
    BALANCED: (
        Lever("widen the pool and strengthen the reranker together", _RERANKER, _reranks, _deeper),
        replace(_ADD, words="add a reranker over a wide pool"),
    ),
}
"""Suggestions of the paper (§6) by bottleneck."""


def to_try(
    row: Mapping[str, Any],
    reading: str,
    table: pl.DataFrame,
    feasible: Sequence[bool],
    paired: Paired | None = None,
) -> str:
    """Say what to try on a stack, and which remedies the workspace has measured already, with their gain.

    Args:
        row: From the stack table.
        reading: Its bottleneck: a key of `LEVERS`.
        table: The stack table.
        feasible: Which of its rows are within the limits.
        paired: The quality of its stacks per query; without it any higher quality is a gain.
    """
    spec = as_read(json.loads(row["spec"]))
    others = [
        (as_read(json.loads(other["spec"])), other, bool(within))
        for other, within in zip(table.iter_rows(named=True), feasible, strict=True)
    ]
    open_, gained = [], []
    idle: list[str] = []
    lost: list[str] = []
    for lever in LEVERS[reading]:
        if not lever.fits(spec):
            continue
        same = [
            _Other(found, other, within, *_gain(row, other, paired))
            for found, other, within in others
            if _pulled(lever, spec, found)
        ]
        if not same:
            alike = [within for found, _, within in others if lever.like(found)]
            beyond = f" (all {len(alike)} here that do are beyond your limits)"
            open_.append(lever.words + beyond * (bool(alike) and not any(alike)))
            continue
        best = max(same, key=lambda other: other.rank)
        if best.surely > 0:
            gained.append(f"{lever.words}: {best.written}")
            continue
        for other in _by_reranker(same):
            (lost if other.surely < 0 else idle).append(other.written)
    said = (
        f"Not tried here (CLQ paper §6): {'; '.join(open_)}." if open_ else NOTHING_LEFT,
        f"Measured here with a gain: {'; '.join(gained)}." if gained else "",
        f"Measured here without a sure gain: {'; '.join(dict.fromkeys(idle))}." if idle else "",
        f"Measured here, surely worse: {'; '.join(dict.fromkeys(lost))}." if lost else "",
    )
    return " ".join(filter(None, (*said[1:], said[0])))


def _by_reranker(same: Sequence[_Other]) -> list[_Other]:
    """Return the most informative stack of each reranker, the best first."""
    ways = {str(other.spec.get("reranker")): other for other in sorted(same, key=lambda other: other.rank)}
    return sorted(ways.values(), key=lambda other: other.rank, reverse=True)


@dataclass(frozen=True, slots=True)
class _Other:
    """A stack compared with the one in question."""

    spec: AxisSpec
    row: Mapping[str, Any]
    within: bool  # whether it is within the limits
    surely: int  # 1 = significantly better, −1 = worse, 0 = neither
    change: str  # by how much, with the interval if there is one

    @property
    def rank(self) -> tuple[bool, bool, bool, float]:
        """Sort key by how informative it is, ascending; equal scores are least informative."""
        return self.surely > 0, self.within, self.change != SAME_RESULT, self.row["quality"] or 0.0

    @property
    def written(self) -> str:
        """Return its name with its gain."""
        return f"{self.row['name']}, {self.change}{'' if self.within else ', beyond your limits'}"


def _gain(row: Mapping[str, Any], other: Mapping[str, Any], paired: Paired | None) -> tuple[int, str]:
    """Return whether another stack is significantly better (1) or worse (−1), and by how much."""
    if row["quality"] is None or other["quality"] is None:
        return 0, "not scored"
    if text.score(row["quality"]) == text.score(other["quality"]):
        return 0, SAME_RESULT
    apart = text.signed(other["quality"] - row["quality"])
    ids = pl.Series([row["run_id"], other["run_id"]], dtype=pl.String) if paired else None
    if paired is None or ids is None or min(places := paired.places(ids).tolist()) < 0:
        return int(other["quality"] > row["quality"]), apart
    gain, low, high = (float(each[0]) for each in paired.differences(np.array(places[1:]), places[0]))
    return (low > 0) - (high < 0), f"{text.signed(gain)} [{text.signed(low)}, {text.signed(high)}]"


def _pulled(lever: Lever, own: AxisSpec, other: AxisSpec) -> bool:
    """Return whether another specification is this one with only a lever applied."""
    if not lever.keys or own == other:
        return False
    rest = (own.keys() | other.keys()) - lever.keys
    return all(own.get(key) == other.get(key) for key in rest) and lever.done(own, other)
