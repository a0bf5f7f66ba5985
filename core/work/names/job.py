"""A diagnosis of names: its cost, and running it; nothing is paid for twice, and a killed one can resume."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
import polars as pl
from pydantic import Field, model_validator

from core.arrays import Floats
from core.diagnostics.names.bundles import (
    BASE,
    CONDITIONS,
    LANGUAGES,
    BundleTexts,
    KnownWork,
    NameLanguage,
    bundles,
    in_ascii,
    phrases,
    read_works,
    shipped,
    works_of,
)
from core.diagnostics.names.margins import MEASURED, Embed, ascii_only, looked_up, margins, of_run
from core.errors import InputError
from core.pipeline.evaluate.identity import billed_by, model_identity
from core.pipeline.evaluate.session import Result, Session, Site, WorkOrder, work_through
from core.pipeline.own.config import Positive
from core.pipeline.sweep.fields import Encoder, Many, Named, Table
from core.pipeline.sweep.known import KnownNames
from core.pipeline.sweep.model import OwnModels
from core.pipeline.sweep.plan import Bill, Line, embedded_lines
from core.prices import PriceBook
from core.providers.base import Purpose
from core.providers.config import ModelConfig
from core.providers.embed import Embedder, embedder_config, make_embedder
from core.records import Batch, Collection, short_hash
from core.tables import frame

NAMES = "names"
_EMBED = "embed names"
_FOLDED = 10  # bundles of a run
DEMO_RUNS = 5  # Enough for a deviation between runs, in a few seconds; `diagnose names` uses 15


class NamesSpec(Table):
    """A whole specification; the command line builds one, or reads it from a file."""

    name: Named = "names"  # Display name
    embedder: Annotated[Many[Encoder], Field(min_length=1)]  # Embedders to measure
    # Languages of the phrases and of the shipped works
    language: Annotated[Many[NameLanguage], Field(min_length=1)] = ("en",)
    entities: Named | None = None  # A custom table instead, with entity, topic and title
    collection: Named | None = None  # A stored collection instead, whose passages have sources and titles
    runs: Positive = 15  # Number of times that bundles are drawn
    queries: Positive = 100  # Bundles of a run
    seed: Named = "names"  # For all random draws
    budget_usd: Annotated[float, Field(ge=0)] | None = None  # Hard limit in dollars; None = none
    prices: Named = "list"  # Name of a price book
    models: OwnModels = Field(default_factory=dict)  # Models missing from the catalogue, by name

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.entities is not None and self.collection is not None:
            raise ValueError("Give one of entities and collection.")
        return self

    @property
    def own(self) -> str:
        """Return the source used instead of the shipped works, or "" for these."""
        return self.collection or ("" if self.entities is None else Path(self.entities).name)


class MeasuredMargins(NamedTuple):
    """An embedder with one dimension."""

    model: str
    dim: int
    full_dim: int  # the dimension requested from it; others are cut from it


@dataclass(frozen=True, slots=True, kw_only=True)
class NamesJob:
    """A requested diagnosis of names, read and checked."""

    spec: NamesSpec
    embedders: tuple[MeasuredMargins, ...]
    works: Mapping[NameLanguage, tuple[KnownWork, ...]]
    book: PriceBook

    @property
    def job_id(self) -> str:
        """The identity: the same diagnosis resumes in the same folder."""
        spec = self.spec.model_dump_json(exclude={"budget_usd", "prices"})
        return short_hash(
            NAMES, spec, *(part for works in self.works.values() for work in works for part in work)
        )

    def manifest(self) -> dict[str, Any]:
        """Return the data needed to repeat it, as JSON."""
        models = {
            embedder.model: dict(model_identity(self.config(embedder.model))) for embedder in self.embedders
        }
        works = {language: short_hash(*map("\n".join, some)) for language, some in self.works.items()}
        forms = {language: short_hash(repr(phrases(language))) for language in self.works}
        return {
            "diagnosis": NAMES,
            "spec": self.spec.plain(),
            "models": models,
            "works": works,
            "phrases": forms,
        }

    def config(self, model: str) -> ModelConfig:
        """Return the configuration of an embedder."""
        return embedder_config(self.spec.models.get(model, model))

    def texts(self, language: NameLanguage, run: int) -> dict[str, list[BundleTexts]]:
        """Return the texts of a run's bundles, by condition."""
        return _texts(self.works[language], language, run, self.spec.queries, self.spec.seed)

    def every_text(self) -> tuple[frozenset[str], frozenset[str]]:
        """Return all questions and all candidates to embed, without duplicates."""
        works = tuple(self.works.items())
        return _every_text(works, self.spec.runs, self.spec.queries, self.spec.seed)


def _texts(
    works: tuple[KnownWork, ...], language: NameLanguage, run: int, queries: int, seed: str
) -> dict[str, list[BundleTexts]]:
    drawn = bundles(works, language, run=run, queries=queries, seed=seed)
    return {
        name: [ablate(bundle, phrases(language)) for bundle in drawn] for name, ablate in CONDITIONS.items()
    }


@lru_cache(maxsize=4)  # a plan is recomputed with every other embedder and budget
def _every_text(
    works: tuple[tuple[NameLanguage, tuple[KnownWork, ...]], ...], runs: int, queries: int, seed: str
) -> tuple[frozenset[str], frozenset[str]]:
    asked: set[str] = set()
    candidates: set[str] = set()
    for language, named in works:
        for run in range(1, runs + 1):
            texts = _texts(named, language, run, queries, seed)
            for some in (*texts.values(), *ascii_of(texts).values()):
                asked.update(bundle.query for bundle in some)
                candidates.update(text for bundle in some for text in bundle.candidates)
    return frozenset(asked), frozenset(candidates)


def read_job(
    spec: NamesSpec, books: Mapping[str, PriceBook], passages: Callable[[str], pl.DataFrame] | None = None
) -> NamesJob:
    """Read everything that a specification names.

    Raises:
        InputError: If a table or a dimension cannot be used.
        UnknownNameError: If an embedder or a price book is unknown.
    """
    if spec.prices not in books:
        raise InputError(f"No price book {spec.prices!r}.", do=f"There are: {', '.join(sorted(books))}.")
    own = None if spec.entities is None else read_works(Path(spec.entities))
    if spec.collection is not None:
        if passages is None:
            raise InputError("No store was named.", where="collection", do="Name one, or give entities.")
        own = works_of(passages(spec.collection))
    works = {language: own or shipped(language) for language in spec.language}
    return NamesJob(spec=spec, embedders=tuple(_measured(spec)), works=works, book=books[spec.prices])


def _measured(spec: NamesSpec) -> Iterator[MeasuredMargins]:
    for encoder in spec.embedder:
        config = embedder_config(spec.models.get(encoder.name, encoder.name))
        for dim in encoder.dim or (config.default_dim,):
            if dim is None:
                raise InputError(f"The dimension of {encoder.name} is not known.", do="Give it (dim).")
            if config.dims and dim not in config.dims:
                known = ", ".join(map(str, config.dims))
                raise InputError(f"{encoder.name} has no {dim} dimensions.", do=f"It has: {known}.")
            yield MeasuredMargins(encoder.name, dim, config.full_dim(dim))


@dataclass(frozen=True, slots=True, kw_only=True)
class NamesPlan(Bill):
    """The bill of a diagnosis."""

    texts: int  # Number of distinct texts to embed


def plan(job: NamesJob) -> NamesPlan:
    """Estimate the cost of a diagnosis; this sends nothing and writes nothing.

    Returns:
        The plan; it includes texts already in the journal.
    """
    queries, candidates = job.every_text()
    lines: list[Line] = []
    known = KnownNames(job.spec.models)
    for model, _ in dict.fromkeys((embedder.model, embedder.full_dim) for embedder in job.embedders):
        for texts, purpose in ((queries, Purpose.QUERY), (candidates, Purpose.PASSAGE)):
            lines += embedded_lines((_EMBED, model, purpose), sorted(texts), known, job.book)
    return NamesPlan(lines=tuple(lines), limit=job.spec.budget_usd, texts=len(queries) + len(candidates))


def run_job(job: NamesJob, *, store_results: Callable[[Batch], None], site: Site) -> Result:
    """Run a diagnosis, or resume it; result and errors as in `session.work_through`.

    Args:
        store_results: Gets the figures, one batch; a collection for each embedder, dimension and language.
    """
    order = WorkOrder(
        work_id=job.job_id,
        name=job.spec.name,
        collection_id="",
        spec=job.spec.plain(),
        manifest=job.manifest(),
        models=job.spec.models,
        book=job.book,
        budget_usd=job.spec.budget_usd,
        billed=[
            pair
            for embedder in job.embedders
            for pair in billed_by("embedder", embedder.model, job.spec.models)
        ],
    )

    def do(session: Session) -> str:
        batch = batch_of(job, measured(job, session))
        store_results(batch)
        return ", ".join(collection.collection_id for collection in batch.collections)

    return work_through(order, do, site)


def measured(job: NamesJob, session: Session) -> pl.DataFrame:
    """Measure every run of every embedder and language in a session."""

    def make(model: str, dim: int) -> Embedder:
        session.budget.begin_stage(f"embed {model}")
        return session.models.for_passages(model, dim)

    def told(done: int, whole: int) -> None:
        session.watch.check()
        session.tracker.within(done, whole, "runs")

    session.tracker.expect({_EMBED: 1})
    session.tracker.begin(_EMBED, _EMBED)
    rows = figures(job, make, told, session.watch.check)
    session.tracker.end()
    return rows


def figures(
    job: NamesJob,
    make: Callable[[str, int], Embedder],
    told: Callable[[int, int], None] = lambda *_: None,
    check: Callable[[], None] = lambda: None,
) -> pl.DataFrame:
    """Measure every run with the given embedders.

    Returns:
        embedder, dim, language, run, condition, measure, value and n.
    """
    rows: list[dict[str, Any]] = []
    full = dict.fromkeys((config.model, config.full_dim) for config in job.embedders)
    turns = list(product(job.works, range(1, job.spec.runs + 1)))
    for place, (model, full_dim) in enumerate(full):
        dims = [
            config.dim for config in job.embedders if (config.model, config.full_dim) == (model, full_dim)
        ]
        embedder = make(model, full_dim)
        for done, (language, run) in enumerate(turns, 1):
            of = {"embedder": model, "language": language, "run": run}
            measured_rows = _of_run(embedder, job.texts(language, run), dims, check)
            rows += [{**of, "dim": dim, **row} for dim, row in measured_rows]
            told(place * len(turns) + done, len(full) * len(turns))
    return pl.DataFrame(rows)


def _of_run(
    embedder: Embedder,
    texts: Mapping[str, Sequence[BundleTexts]],
    dims: Sequence[int],
    check: Callable[[], None],
) -> Iterator[tuple[int, dict[str, Any]]]:
    folded = ascii_of(texts)
    every = [texts_of_bundle for part in (*texts.values(), *folded.values()) for texts_of_bundle in part]

    def embedded(purpose: Purpose, some: Iterable[str]) -> Embed:
        return looked_up(lambda asked: embedder.embed(asked, purpose, on_batch=lambda *_: check()), some)

    queries = embedded(Purpose.QUERY, (texts_of_bundle.query for texts_of_bundle in every))
    candidates = embedded(
        Purpose.PASSAGE, (text for texts_of_bundle in every for text in texts_of_bundle.candidates)
    )

    def margins_of(given: Sequence[BundleTexts], dim: int) -> Floats:
        offered = np.array([candidates(texts_of_bundle.candidates)[:, :dim] for texts_of_bundle in given])
        return margins(queries([texts_of_bundle.query for texts_of_bundle in given])[:, :dim], offered)

    plain = ascii_only(next(iter(texts.values())))
    for dim in dims:
        by_condition, instead = (
            {name: margins_of(given, dim) for name, given in part.items()} for part in (texts, folded)
        )
        yield from ((dim, row) for row in of_run(by_condition, plain, instead))


def ascii_of(texts: Mapping[str, Sequence[BundleTexts]]) -> dict[str, list[BundleTexts]]:
    """Return a few of a run's bundles converted to ASCII, or {} if some are ASCII already."""
    return {} if ascii_only(texts[BASE]).any() else in_ascii(texts[BASE][:_FOLDED])


def batch_of(job: NamesJob, rows: pl.DataFrame) -> Batch:
    """Return the figures as records of the store: a collection for each embedder, dimension and language."""
    own = f" on {job.spec.own}" if job.spec.own else ""
    collections, parts = [], []
    for (embedder, dim, language), some in rows.group_by("embedder", "dim", "language", maintain_order=True):
        name = collection_id(str(embedder), int(str(dim)), str(language), job.spec)
        notes = f"{job.spec.runs} runs of {job.spec.queries} bundles, seed {job.spec.seed!r}."
        collections.append(
            Collection(
                collection_id=name, name=f"Names: {embedder} {dim} d, {language}",
                source=f"{MEASURED}{own}",
                notes=notes,
            )
        )  # fmt: skip
        parts.append(some.with_columns(collection_id=pl.lit(name), diagnosis=pl.lit(NAMES)))
    figures_frame = frame("diagnostics", pl.concat(parts).to_dict())
    return Batch(collections=tuple(collections), frames={"diagnostics": figures_frame})


def collection_id(embedder: str, dim: int, language: str, spec: NamesSpec) -> str:
    """Return the collection that owns the figures; a custom table has a separate one."""
    own = f"-{short_hash(spec.own)}" if spec.own else ""
    return f"names-{embedder}-{dim}-{language}{own}"


def demo_batch(book: PriceBook) -> Batch:
    """Diagnose what runs here without a download: wordllama at 64 and 256 dimensions, in both languages."""
    spec = NamesSpec(embedder=(Encoder(name="wordllama", dim=(64, 256)),), language=LANGUAGES, runs=DEMO_RUNS)
    job = read_job(spec, {spec.prices: book})
    return batch_of(job, figures(job, make_embedder))
