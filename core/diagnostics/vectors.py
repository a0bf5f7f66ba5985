"""How near an embedder keeps perturbed queries to what they ask for (CLQ paper §4.4, Tables 12, 13)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from core.diagnostics.noise import Floats, mean_of
from core.paths import PUBLISHED
from core.pipeline.query.perturb import LANGUAGES, WAYS, perturb_table, perturbed
from core.stats.intervals import SEED

if TYPE_CHECKING:
    from core.providers.embed import Embedder

LEVELS = (0, 1, 2, 3, 4)
SIMILARITIES = pl.Schema({
    "perturb": pl.String, "reference": pl.String, "n": pl.Int32, "cosine": pl.Float64, "low": pl.Float64,
    "high": pl.Float64, "drop": pl.Float64, "drop_low": pl.Float64, "drop_high": pl.Float64,
    "share": pl.Float64,
})  # fmt: skip
"""Columns of `similarities`."""


def similarities(
    texts: Sequence[str],
    embed: Callable[[Sequence[str]], Floats],
    *,
    language: str = "english",
    references: Sequence[str] | None = None,
    way: str = "noise",
    levels: Sequence[int] = LEVELS,
    seed: int = SEED,
) -> pl.DataFrame:
    """How near perturbed queries stay to what they ask for, in an embedder's vectors.

    Args:
        texts: The queries.
        embed: Makes vectors of queries.
        language: That small talk is in.
        references: An ideal restatement of each query; None = the query itself.
        way: How they are perturbed.
        levels: To which levels; 0 is always among them.
        seed: Of the bootstrap.

    Returns:
        `SIMILARITIES`, a row per level: mean cosine to the reference with its 95 % interval; drop = cosine −
        cosine at level 0, paired, with its interval; share = the drop in relation to level 0.
    """
    target = _unit(embed(texts if references is None else references))
    base, made = None, []
    for level, asked in by_level(texts, language, way, levels).items():
        cosine = (_unit(embed(asked)) * target).sum(axis=1)
        base = cosine if base is None else base
        row = {"perturb": f"{way} {level}", "reference": "query" if references is None else "restatement",
               "n": len(texts), **mean_of("cosine", cosine, seed, ("low", "high")),
               **mean_of("drop", cosine - base, seed)}  # fmt: skip
        made.append({**row, "share": float((cosine - base).mean() / base.mean())})
    return pl.DataFrame(made, schema=SIMILARITIES)


def by_level(
    texts: Sequence[str], language: str, way: str = "noise", levels: Sequence[int] = LEVELS
) -> dict[int, list[str]]:
    """Perturb queries to each level, as `similarities` embeds them; arguments as there."""
    if way not in WAYS:
        raise ValueError(f"no way {way!r}")
    tables = {level: perturb_table({way: level}, language) for level in sorted({0, *levels})}
    return {level: [perturbed(text, told) for text in texts] for level, told in tables.items()}


def measured(
    texts: Sequence[str], embedder: Embedder, language: str, references: Sequence[str] | None = None
) -> pl.DataFrame:
    """Return `similarities` of an embedder with source, model and language ("EN", "FR") before them."""
    from core.providers.base import Purpose  # noqa: PLC0415 - takes long to load, which few pages should wait for

    made = similarities(
        texts,
        lambda asked: embedder.embed(asked, Purpose.QUERY).astype(np.float64),
        language=language,
        references=references,
    )
    return made.select(
        pl.lit("measured").alias("source"),
        pl.lit(f"{embedder.name} {embedder.dim} d").alias("model"),
        pl.lit(LANGUAGES[language].upper()).alias("language"),
        pl.all(),
    )


def _unit(vectors: Floats) -> Floats:
    wide = np.asarray(vectors, dtype=np.float64)
    return np.asarray(wide / np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), 1e-12))


def published() -> pl.DataFrame:
    """Return Tables 12 and 13 of the CLQ paper, with the columns that `measured` has of them."""
    rows = pl.read_csv(PUBLISHED / "clq_diagnostics.csv").filter(pl.col("table") == 12)
    rows = rows.with_columns(perturb=pl.col("condition").str.replace("_", " "), cosine=pl.col("value"))
    base = rows.filter(pl.col("perturb") == "noise 0").select("language", "model", base="cosine")
    joined = rows.join(base, on=["language", "model"], maintain_order="left")
    return joined.select(
        pl.lit("CLQ paper, Tables 12, 13").alias("source"),
        "model",
        "language",
        "perturb",
        pl.lit("restatement").alias("reference"),
        "cosine",
        (pl.col("cosine") - pl.col("base")).alias("drop"),
        (pl.col("cosine") / pl.col("base") - 1).alias("share"),
    )
