"""Requests for golden sets, read and checked: nothing has run and nothing has been spent.

Candidates (S2, S3) are rankings of several sources, fused by reciprocal rank into one pool per question.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import polars as pl

from core.analysis.deciding import Apart, Contest
from core.analysis.export import StoreShelf
from core.errors import InputError, UnknownNameError
from core.golden.pool import RankedSource
from core.importers.runs import slug
from core.pipeline.evaluate import Job
from core.pipeline.evaluate.identity import hashes, model_identity
from core.pipeline.evaluate.steps import FILTERING
from core.pipeline.index.scope import PRE
from core.pipeline.sweep.check import chat_problems, require
from core.pipeline.sweep.expand import expand
from core.pipeline.sweep.fields import WORKSPACE
from core.pipeline.sweep.problems import Problem, Severity, SpecError
from core.pipeline.sweep.read import read_job as read_sweep
from core.prices import PriceBook
from core.providers.chat import Chat, chat_config, make_chat
from core.records import Batch, Stack, short_hash
from core.store import Snapshot
from core.tables import TABLES
from core.work.golden.prompts import KINDS, prompt_hash
from core.work.golden.spec import NONE, GoldenSpec


@dataclass(frozen=True, kw_only=True)
class GoldenJob:
    """The job of building one golden set."""

    spec: GoldenSpec  # The request
    search: Job  # The evaluation of `stacks`, if any; its corpus, questions, models, budget and prices
    stacks: Sequence[Stack] = ()  # The stacks to search; none if stored runs or grades alone make the pool
    stored: tuple[RankedSource, ...] = ()  # The rankings of stored runs
    apart: Apart | None = None  # What two stacks show differently, if grades are to decide between them
    # The golden set whose grades are used, if any, with its judgements and gradings
    held: Batch = field(default_factory=Batch)

    @property
    def collection_id(self) -> str:
        """The collection to judge."""
        return self.search.collection_id

    def chat(self, name: str) -> Chat:
        """Return a model for planning, which needs no key."""
        return make_chat(name, models=self.spec.models, ready=False)

    @property
    def build_id(self) -> str:
        """The identity: different questions, sources, judges and settings resume in the same folder.

        Existing judgements are not paid for again: calls are kept by their content.
        """
        return short_hash("golden", self.spec.name, self.collection_id)

    @property
    def golden_set_id(self) -> str:
        """The id of the first version."""
        return slug(self.spec.name, "golden")

    @cached_property
    def texts(self) -> pl.DataFrame:
        """passage_id and text of everything that can be judged."""
        corpus = self.search.corpora[None]
        return pl.DataFrame({"passage_id": corpus.passage_ids, "text": corpus.texts})

    @cached_property
    def questions(self) -> Mapping[str, str]:
        """The questions by id, as typed."""
        return dict(self.search.queries.select("query_id", "text").iter_rows())

    @cached_property
    def drawn(self) -> pl.DataFrame | None:
        """query_id and passage_id of what decides between two stacks, in the order of judging."""
        return None if self.apart is None else self.apart.drawn

    @cached_property
    def turns(self) -> list[str]:
        """The questions in the order in which they are judged."""
        return list(dict.fromkeys(self.questions if self.drawn is None else self.drawn["query_id"]))

    @cached_property
    def grades(self) -> pl.DataFrame:
        """query_id, passage_id, grade and judge of the grades used."""
        rows = self.held.frames.get("judgements", pl.DataFrame(schema=TABLES["judgements"])).lazy().collect()
        name = next(
            (golden_set.judge or golden_set.golden_set_id for golden_set in self.held.golden_sets), None
        )
        return rows.select("query_id", "passage_id", "grade", judge=pl.coalesce("judge", pl.lit(name)))

    @property
    def refiner(self) -> str:
        """The model that orders; "" if nothing is refined."""
        refine = self.spec.golden.refine
        return "" if refine.method == NONE else refine.model or self.spec.golden.judge.models[0]

    @property
    def models(self) -> tuple[str, ...]:
        """Every chat model in use, without duplicates."""
        return tuple(name for name in dict.fromkeys(self._asked) if name)

    @property
    def _asked(self) -> tuple[str, ...]:
        golden = self.spec.golden
        return (*golden.judge.models, self.refiner, golden.nuggets.model or "")

    @property
    def setup(self) -> Batch:
        """Return the prerequisites in the store: collection and questions, without judgements by others."""
        kept = {name: self.search.setup.frames[name] for name in ("passages", "queries", "chunks")
                if name in self.search.setup.frames}  # fmt: skip
        return Batch(collections=self.search.setup.collections, frames=kept)

    def manifest(self) -> dict[str, Any]:
        """Return the data needed to repeat it, as JSON."""
        language = self.spec.golden.language
        kinds = KINDS if self.spec.golden.nuggets.model else KINDS[:2]
        return {
            "golden": {"id": self.build_id, "name": self.spec.name, "collection": self.collection_id},
            "spec": self.spec.plain(),
            "prompts": {f"{kind}.{language}": prompt_hash(kind, language) for kind in kinds},
            "models": {
                name: dict(model_identity(chat_config(name, self.spec.models))) for name in self.models
            },
            "hashes": {key: value for key, value in hashes(self.search).items() if key != "golden_set"},
            "seed": self.build_id,
        }


def read(
    snapshot: Snapshot, spec: GoldenSpec, books: Mapping[str, PriceBook], *, to_run: bool
) -> tuple[GoldenJob, list[Problem]]:
    """Read everything that a specification names, using a store as its shelf.

    Raises:
        SpecError: With everything that cannot work.
        InputError: If something it names cannot be read.
    """
    shelf = StoreShelf(snapshot)
    golden = spec.golden
    named = [("golden.judge.models", name) for name in golden.judge.models]
    named += [("golden.refine.model", golden.refine.model)] if golden.refine.model else []
    named += [("golden.nuggets.model", golden.nuggets.model)] if golden.nuggets.model else []
    asked = list(chat_problems(named, spec.models))
    try:
        search, problems = read_sweep(spec.sweep(), shelf=shelf, books=books, to_run=to_run, judged=False)
    except SpecError as error:
        require([*asked, *error.problems], to_run=to_run)
        raise
    require(asked, to_run=to_run)
    if None not in search.corpora:
        raise InputError(
            "Documents are cut before they are judged.",
            where="collection",
            do="Bring the passages into the store first, and name that collection.",
        )
    stacks = _searched(spec)
    if search.filters:  # a candidate that the asker may not see would be judged for nothing
        stacks = [Stack({FILTERING: PRE, **stack.spec}) for stack in stacks]
    job = GoldenJob(
        spec=spec,
        search=replace(search, stacks=stacks) if stacks else search,
        stacks=stacks,
        stored=tuple(_stored(spec, search, shelf)),
        held=_held(spec, search, shelf),
        apart=_apart(snapshot, spec, search),
    )
    unknown = [
        Problem("golden.pool", f"{ranked.label} ranks none of the questions.", "", Severity.WARNING)
        for ranked in job.stored
        if ranked.rows.is_empty()
    ]
    return job, [*asked, *(problem for problem in problems if spec.golden.pool), *unknown]


def _searched(spec: GoldenSpec) -> list[Stack]:
    """Return one stack per index of the pool, in order; duplicates stay."""
    sweep = spec.sweep()
    legs = sum(source.stack is not None for source in spec.golden.pool)
    return [expand(sweep.model_copy(update={"stack": (point,)}))[0] for point in sweep.stack[:legs]]


def _stored(spec: GoldenSpec, search: Job, shelf: StoreShelf) -> Iterator[RankedSource]:
    asked = set(search.queries["query_id"])
    for source in spec.golden.pool:
        if source.runs:
            names = None if WORKSPACE in source.runs else source.runs
            shelved = shelf.ranked(search.collection_id, names, source.depth)
            for ranked in shelved:
                yield RankedSource(
                    ranked.label, ranked.kind, ranked.rows.filter(pl.col("query_id").is_in(asked))
                )


def _apart(snapshot: Snapshot, spec: GoldenSpec, search: Job) -> Apart | None:
    asked = spec.golden.between
    if asked is None:
        return None
    known = snapshot.runs()["run_id"]
    for run in (asked.now, asked.to):
        if run not in known:
            raise UnknownNameError("run", run, known, where="golden.between")
    contest = Contest(now=asked.now, to=asked.to, k=asked.k, margin=asked.margin, delta=asked.alike)
    found = Apart.of(snapshot, contest)
    drawn, corpus = found.drawn, search.corpora[None]
    texts = {*zip(corpus.passage_ids, corpus.texts, strict=True)}
    here = {passage for passage, text in texts if text}
    lost = [*({*drawn["passage_id"]} - here), *({*drawn["query_id"]} - {*search.queries["query_id"]})]
    if drawn.is_empty() or lost:
        problem = f"{len(lost)} of them have no text, such as {min(lost)}" if lost else "they are the same"
        raise InputError(
            f"The passages that the two stacks show cannot be judged: {problem}.",
            where="golden.between",
            do="Choose two others, or bring the texts.",
        )
    return found


def _held(spec: GoldenSpec, search: Job, shelf: StoreShelf) -> Batch:
    name = spec.golden.judge.grades
    if name is None:
        return Batch()
    whole = shelf.golden_set(name)
    (golden,) = whole.golden_sets
    if golden.collection_id != search.collection_id:
        raise InputError(
            f"The golden set {name!r} judges {golden.collection_id!r}, not {search.collection_id!r}.",
            where="golden.judge.grades",
            do="Name a golden set of this collection.",
        )
    if "judgements" not in whole.frames:
        raise InputError("It has no grades of passages.", where=name, do="Name another golden set.")
    kept = {"judgements": whole.frames["judgements"], "gradings": shelf.gradings(name)}
    return Batch(golden_sets=whole.golden_sets, frames=kept)
