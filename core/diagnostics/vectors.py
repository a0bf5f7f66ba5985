"""Measures how close an embedder keeps perturbed queries to their intent (CLQ paper §4.4, Tables 12, 13)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import polars as pl

from core.arrays import Floats
from core.diagnostics.names.margins import unit
from core.diagnostics.noise import mean_of
from core.errors import InputError
from core.paths import PUBLISHED
from core.pipeline.evaluate.identity import billed_by, model_identity
from core.pipeline.evaluate.session import Result, Session, Site, WorkOrder, work_through
from core.pipeline.query.perturb import LANGUAGES, perturb_table, perturbed
from core.pipeline.sweep.known import KnownNames
from core.pipeline.sweep.plan import Bill, embedded_lines
from core.prices import PriceBook
from core.providers.base import Purpose
from core.providers.config import ModelConfig
from core.providers.embed import Embedder, embedder_config
from core.records import short_hash

_EMBED = "embed queries"

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
) -> pl.DataFrame:
    """Return how close perturbed queries stay to their intent in an embedder's vectors.

    Args:
        language: Language of the small talk.
        references: An ideal restatement of each query; None = the query itself.

    Returns:
        `SIMILARITIES`, a row per level: mean cosine to the reference with its 95 % interval; drop = cosine −
        cosine at level 0, paired, with its interval; share = the drop in relation to level 0.
    """
    target = unit(embed(texts if references is None else references))
    base, records = None, []
    for level, asked in by_level(texts, language).items():
        cosine = (unit(embed(asked)) * target).sum(axis=1)
        base = cosine if base is None else base
        records.append({
            "perturb": f"noise {level}", "reference": "query" if references is None else "restatement",
            "n": len(texts), **mean_of("cosine", cosine, ends=("low", "high")),
            **mean_of("drop", cosine - base),
            "share": float((cosine - base).mean() / base.mean()),
        })  # fmt: skip
    return pl.DataFrame(records, schema=SIMILARITIES)


def by_level(texts: Sequence[str], language: str) -> dict[int, list[str]]:
    """Perturb queries to each level of small talk, in the form `similarities` embeds."""
    tables = {level: perturb_table({"noise": level}, language) for level in LEVELS}
    return {level: [perturbed(text, table) for text in texts] for level, table in tables.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorJob:
    """Texts for an embedder: queries at every level of small talk, and their references."""

    texts: Sequence[str]
    model: str
    dim: int | None = None  # None = the model's own
    language: str = "english"
    references: Sequence[str] | None = None  # an ideal restatement of each query; None = the query itself
    book: PriceBook
    budget_usd: float | None = None
    models: Mapping[str, ModelConfig] = field(default_factory=dict)  # missing from the catalogue, by name

    @property
    def config(self) -> ModelConfig:
        """Return the embedder's configuration."""
        return embedder_config(self.models.get(self.model, self.model))

    def every_text(self) -> list[str]:
        """Return all texts to embed, without duplicates."""
        levels = by_level(self.texts, self.language).values()
        return list(dict.fromkeys(chain(self.references or (), *levels)))


def bill(job: VectorJob) -> Bill:
    """Compute what a job will pay for; this sends nothing."""
    lines = embedded_lines(
        (_EMBED, job.model, Purpose.QUERY), job.every_text(), KnownNames(job.models), job.book
    )
    return Bill(lines=tuple(lines), limit=job.budget_usd)


def run_job(job: VectorJob, site: Site) -> tuple[pl.DataFrame, Result]:
    """Measure an embedder, or resume; nothing is paid twice.

    Returns:
        `measured`, empty if it was stopped, and the outcome; errors as in `session.work_through`.
    """
    config = job.config
    dim = job.dim or config.default_dim
    if dim is None:
        raise InputError(f"The dimension of {job.model} is not known.", do="Give it (--dim).")
    spec = {"embedder": job.model, "dim": dim, "language": job.language, "texts": len(job.texts)}
    asked = short_hash(*job.texts, "", *(job.references or ()))
    models = {job.model: dict(model_identity(config))}
    order = WorkOrder(
        work_id=short_hash("vectors", *map(str, spec.values()), asked),
        name=f"noise, {job.model}",
        collection_id="",
        spec=spec,
        manifest={"diagnosis": "noise", "spec": spec, "queries": asked, "models": models},
        models=job.models,
        book=job.book,
        budget_usd=job.budget_usd,
        billed=billed_by("embedder", job.model, job.models),
    )
    results = [pl.DataFrame()]

    def do(session: Session) -> str:
        session.tracker.expect({_EMBED: 1})
        session.tracker.begin(_EMBED, _EMBED)
        session.budget.begin_stage(f"embed {job.model}")
        embedder = session.models.for_passages(job.model, dim)
        results[0] = measured(job.texts, embedder, job.language, job.references, session.watch.check)
        session.tracker.end()
        return "figures"

    result = work_through(order, do, site)
    return results[0], result


def measured(
    texts: Sequence[str],
    embedder: Embedder,
    language: str,
    references: Sequence[str] | None = None,
    check: Callable[[], None] = lambda: None,
) -> pl.DataFrame:
    """Return `similarities` of an embedder, preceded by source, model and language ("EN", "FR")."""
    frame = similarities(
        texts,
        lambda asked: embedder.embed(asked, Purpose.QUERY, on_batch=lambda *_: check()).astype(np.float64),
        language=language,
        references=references,
    )
    return frame.select(
        pl.lit("measured").alias("source"),
        pl.lit(f"{embedder.name} {embedder.dim} d").alias("model"),
        pl.lit(LANGUAGES[language].upper()).alias("language"),
        pl.all(),
    )


def published() -> pl.DataFrame:
    """Return Tables 12 and 13 of the CLQ paper, in the columns of `measured` that they have."""
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
