"""What perturbed queries cost: stacks beside their perturbed siblings, and embedders by level of small talk.

The CLQ paper, §4.4, prints cosines to a restatement of the query (Tables 12, 13); what counts for a decision
is the effect on a measure, and what a rewrite wins back of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from core.diagnostics.siblings import CLEAN, NONE, SIBLINGS
from core.paths import PUBLISHED
from core.pipeline.query.perturb import LANGUAGES, WAYS, perturb_table, perturbed
from core.stats.agreement import order_agreement
from core.stats.intervals import SEED, bootstrap_means

if TYPE_CHECKING:
    from core.providers.embed import Embedder

Floats = NDArray[np.float64]
LEVELS = (0, 1, 2, 3, 4)
_FIGURES = (
    *("quality", "low", "high", "change", "change_low", "change_high"),
    *("won", "won_low", "won_high", "overlap", "tau"),
)
EFFECTS = pl.Schema([*SIBLINGS.items(), ("n", pl.Int32), *((name, pl.Float64) for name in _FIGURES)])
"""Columns of `effects`."""


def effects(
    rows: pl.DataFrame,
    values: Mapping[str, Floats],
    alike: Callable[[str, str], tuple[float | None, float | None]],
    *,
    seed: int = SEED,
) -> pl.DataFrame:
    """What perturbing costs each stack, and what each rewrite wins back.

    Args:
        rows: `SIBLINGS`.
        values: Values per query by run, of the same queries in the same order; NaN = not applicable.
        alike: Overlap@K and tau of two runs' rankings.
        seed: Of the bootstrap.

    Returns:
        `EFFECTS`: quality with its 95 % interval; change = quality minus that of the same stack and rewrite
        with the queries as they are; won = quality minus that of the same stack and perturbation without a
        rewrite; both paired over queries with their 95 % interval, null where the other run is not there.
    """
    found = {(row["family"], row["rewrite"], row["perturb"]): row["run_id"] for row in rows.to_dicts()}
    made = []
    for row in rows.to_dicts():
        own, family = values[row["run_id"]], row["family"]
        clean = found.get((family, row["rewrite"], CLEAN)) if row["perturb"] else None
        plain = found.get((family, NONE, row["perturb"])) if row["rewrite"] != NONE else None
        overlap, tau = alike(clean, row["run_id"]) if clean else (None, None)
        made.append(
            {
                **row,
                "n": int(np.isfinite(own).sum()),
                **_mean("quality", own, seed, ends=("low", "high")),
                **(_mean("change", own - values[clean], seed) if clean else {}),
                **(_mean("won", own - values[plain], seed) if plain else {}),
                "overlap": overlap,
                "tau": tau,
            }
        )
    return pl.DataFrame(made, schema=EFFECTS)


def _mean(
    name: str, values: Floats, seed: int, ends: tuple[str, str] | None = None
) -> dict[str, float | None]:
    ends = ends or (f"{name}_low", f"{name}_high")
    known = values[np.isfinite(values)]
    if not len(known):
        return dict.fromkeys((name, *ends))
    low, high = bootstrap_means(values, seed=seed)
    told = (float(known.mean()), float(low[0]), float(high[0]))
    return {key: each if np.isfinite(each) else None for key, each in zip((name, *ends), told, strict=True)}


def orders(table: pl.DataFrame) -> pl.DataFrame:
    """Whether perturbed queries would rank the stacks alike.

    Args:
        table: `EFFECTS`.

    Returns:
        rewrite, perturb, stacks and tau (Kendall's tau-b of the stacks' quality to that with the queries as
        they are; null with fewer than two).
    """
    clean = table.filter(pl.col("perturb") == CLEAN).select("family", "rewrite", was=pl.col("quality"))
    both = table.filter(pl.col("perturb") != CLEAN).join(clean, on=["family", "rewrite"])
    made = []
    for (rewrite, perturb), part in both.group_by("rewrite", "perturb", maintain_order=True):
        tau = order_agreement(*(part[name].cast(pl.Float64).to_numpy() for name in ("was", "quality")))
        made.append((rewrite, perturb, part.height, tau if np.isfinite(tau) else None))
    schema = {"rewrite": pl.String, "perturb": pl.String, "stacks": pl.Int32, "tau": pl.Float64}
    return pl.DataFrame(made, schema=schema, orient="row")


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
               "n": len(texts), **_mean("cosine", cosine, seed, ("low", "high")),
               **_mean("drop", cosine - base, seed)}  # fmt: skip
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
