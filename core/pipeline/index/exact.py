"""Exact search whose answer depends on the query and the vectors alone.

faiss compares one query in one way and many in another; the last bits of a score differ between them, and so
would the order of near-equal passages. Here it proposes a few more candidates than are asked for, all of them
are scored in one way, and where a passage left out could tie with the last one kept, all that reach that
score are fetched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from core.pipeline.index.metric import row_lengths
from core.pipeline.ranking.hits import Hits, top_k, top_k_rows
from core.providers.embed import Vectors

if TYPE_CHECKING:
    import faiss


_SPARE = 8
_ROUNDING = 2.0**-22
"""Rounding of a float32 sum of products, per square root of its terms and relative to their size."""


class ExactSearch:
    """Searches a flat index."""

    def __init__(self, index: faiss.Index, sign: int, longest: float) -> None:
        self._index, self._sign, self._longest = index, sign, longest

    def ranked(self, queries: Vectors, k: int) -> list[Hits]:
        """The best k passages of each query [q, dim], scored with the values of faiss times the sign."""
        depth = min(k + _SPARE, self._index.ntotal)
        proposed, found = self._index.search(queries, depth)
        hits = top_k_rows(found, self._sign * self._values(queries, found), k)
        if depth == self._index.ntotal:
            return hits
        slack = self._slack(queries)
        last_kept = np.array([each.scores[-1] for each in hits])
        for row in np.flatnonzero(last_kept - self._sign * proposed[:, -1] <= 2 * slack):
            hits[row] = self._reaching(queries[row : row + 1], last_kept[row] - 2 * slack[row], k)
        return hits

    def _reaching(self, query: Vectors, score: float, k: int) -> Hits:
        """The best k of all passages that have this score or a better one."""
        radius = np.nextafter(np.float32(score), -np.inf, dtype=np.float32)  # which faiss leaves out
        _, _, found = self._index.range_search(query, float(self._sign * radius))
        found = np.sort(found)[np.newaxis]
        return top_k(found[0], self._sign * self._values(query, found)[0], k)

    def _values(self, queries: Vectors, found: NDArray[np.int64]) -> NDArray[np.float32]:
        """What faiss computes for pairs: queries [q, dim] and positions [q, n] to values [q, n]."""
        import faiss  # noqa: PLC0415 - not needed to plan

        values = np.empty(found.shape, dtype=np.float32)
        pointers = [faiss.swig_ptr(array) for array in (queries, values, found)]
        compute = self._index.compute_distance_subset  # type: ignore[attr-defined]  # only flat kinds have it
        compute(len(queries), pointers[0], found.shape[1], *pointers[1:])
        return values

    def _slack(self, queries: Vectors) -> NDArray[np.float64]:
        """How far a value can be off, per query."""
        lengths = row_lengths(queries).astype(np.float64)
        size = lengths * self._longest if self._sign > 0 else (lengths + self._longest) ** 2
        slack: NDArray[np.float64] = _ROUNDING * np.sqrt(queries.shape[1]) * size
        return slack


def ann_recall(hits: Hits, exact_hits: Hits, k: int) -> float | None:
    """Recall@K of an approximate search against the exact one.

    Passages count by identity: of two with equal scores only the one that the exact search ranks is a match,
    since codes do not tell whether their scores are equal.
    """
    wanted = exact_hits.passages[:k]
    if not len(wanted):
        return None
    return float(np.isin(wanted, hits.passages[:k]).mean())
