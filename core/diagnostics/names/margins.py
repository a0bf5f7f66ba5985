"""Margins of name and topic, and what an ablation leaves of them (clq_ra_nwg §4.2, §4.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.diagnostics.names.bundles import ABLATIONS, BASE, DIACRITICS, Texts

LEAST = 0.02  # Rows whose margin is smaller without an ablation have no percent change (clq_ra_nwg §4.3)
MEASURED = "Measured here"
"""Source of figures; what follows it names what they were measured on, where that is one's own."""
MARGINS = ("d_name", "d_topic", "d_both")
CHANGE, DELTA, ASCII = "dd_name_pct", "delta_name", "ascii_delta_max"
RATIO = "name_topic_ratio"
MASK = "hard_name_mask"

Vectors = NDArray[np.float32]


def margins(queries: Vectors, candidates: Vectors) -> NDArray[np.float64]:
    """Compute D_name, D_topic and D_both.

    Args:
        queries: [n, dim].
        candidates: [n, 5, dim] of C1, C2a, C2b, C3, C4.

    Returns:
        float64 [n, 3]. Equal texts have exactly equal cosines, so that a margin between them is exactly 0.
    """
    cosines = (unit(queries)[:, None, :] * unit(candidates)).sum(axis=-1)
    right = cosines[:, 0]
    rivals = np.stack([cosines[:, 1:3].max(axis=1), cosines[:, 3], cosines[:, 4]], axis=1)
    found: NDArray[np.float64] = np.subtract(right[:, None], rivals)
    return found


def unit(vectors: Vectors) -> NDArray[np.float64]:
    """Return rows of length 1; rows of zeros stay."""
    wide = vectors.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=-1, keepdims=True)
    scaled: NDArray[np.float64] = np.divide(wide, lengths, out=np.zeros_like(wide), where=lengths > 0)
    return scaled


def of_run(
    found: Mapping[str, NDArray[np.float64]],
    plain: NDArray[np.bool_],
    folded: Mapping[str, NDArray[np.float64]] | None = None,
) -> list[dict[str, Any]]:
    """Sum up one run.

    Args:
        found: By condition, `margins` of the same bundles.
        plain: [n], whether every text of a bundle is ASCII.
        folded: `margins` of bundles put into ASCII, which stand in where none is.

    Returns:
        condition, measure, value and n; what no bundle counts for is left out.
    """
    base = found[BASE]
    counts = base[:, 0] >= LEAST
    rows = []
    for condition, values in found.items():
        figures = [(name, values[:, at]) for at, name in enumerate(MARGINS)]
        if condition != BASE:
            moved = values[:, 0] - base[:, 0]
            figures += [(DELTA, moved), (CHANGE, 100 * (moved[counts] / base[counts, 0]))]
        rows += [
            {"condition": condition, "measure": name, "value": float(some.mean()), "n": some.size}
            for name, some in figures
            if some.size
        ]
    pair = {name: found[name][plain] for name in (BASE, DIACRITICS) if name in found}
    pair = pair if plain.any() else dict(folded or {})
    if len(pair) > 1:
        moved = np.abs(pair[DIACRITICS] - pair[BASE])
        rows.append({"condition": DIACRITICS, "measure": ASCII, "value": float(moved.max()), "n": len(moved)})
    return rows


def ascii_only(texts: Sequence[Texts]) -> NDArray[np.bool_]:
    """Whether question and candidates of each bundle are ASCII."""
    return np.array([all(each.isascii() for each in (some.query, *some.candidates)) for some in texts])


_OF = ("embedder", "dim", "language")


def summary(rows: pl.DataFrame) -> pl.DataFrame:
    """Average over runs.

    Args:
        rows: embedder, dim, language, run, condition, measure, value and n of single runs.

    Returns:
        embedder, dim, language, condition, measure, value (mean over runs), sd (between them; null for one
        run), runs and n (bundles that counted, over all runs); with the name/topic ratio of the base, its
        n the runs' bundles; sorted as the paper lists conditions.
    """
    ratios = _ratios(rows)
    order = pl.Enum([BASE, *ABLATIONS])
    return (
        pl.concat([rows.select(ratios.columns), ratios])
        .group_by(*_OF, "condition", "measure")
        .agg(
            pl.col("value").mean(),
            pl.col("value").std().alias("sd"),
            pl.len().alias("runs"),
            pl.col("n").sum(),
        )
        .sort(*_OF, pl.col("condition").cast(order), "measure")
    )


def _ratios(rows: pl.DataFrame) -> pl.DataFrame:
    """Name/topic ratio of every run; a run whose topic margin is not positive has none."""
    wanted = rows.filter(pl.col("condition") == BASE, pl.col("measure").is_in(["d_name", "d_topic"]))
    of = (*_OF, "run", "condition", "n")
    wide = wanted.pivot("measure", index=of, values="value") if wanted.height else wanted.with_columns(
        d_name="value", d_topic="value"
    )  # fmt: skip
    return wide.filter(pl.col("d_topic") > 0).select(
        *_OF, "run", "condition", measure=pl.lit(RATIO), value=pl.col("d_name") / pl.col("d_topic"), n="n"
    )


class Check(NamedTuple):
    """A built-in check of a diagnosis."""

    embedder: str
    dim: int
    language: str
    name: str  # the condition that is checked
    passed: bool | None  # None where nothing could be checked
    value: float | None  # the figure furthest from what it must be
    n: int  # bundles it was checked on


def checks(rows: pl.DataFrame) -> list[Check]:
    """Check that the mask leaves nothing of the name margin, and that ASCII texts have no accents to lose.

    Args:
        rows: As for `summary`.
    """
    return [
        _check(some, condition, measure, must)
        for _, some in rows.sort(_OF).group_by(_OF, maintain_order=True)
        for condition, measure, must in ((MASK, CHANGE, -100.0), (DIACRITICS, ASCII, 0.0))
    ]


def _check(some: pl.DataFrame, condition: str, measure: str, must: float) -> Check:
    embedder, dim, language = some.select(_OF).row(0)
    found = some.filter(condition=condition, measure=measure)
    far = None if found.is_empty() else max(found["value"].to_list(), key=lambda value: abs(value - must))
    return Check(
        embedder, dim, language, condition, None if far is None else far == must, far, int(found["n"].sum())
    )
