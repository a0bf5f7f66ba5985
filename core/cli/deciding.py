"""The options of every command that rests on a decision, and what they select from the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from core.cli.context import Context, complain, golden_set_of
from core.cli.options import options
from core.decide.rules import Constraints
from core.errors import InputError, UnknownNameError
from core.importers.read.text import shown
from core.metrics import Measure
from core.prices import PriceBook
from core.records import Origin
from core.store import Snapshot
from core.views.workspace import question
from core.views.workspace.answers import agreed, as_word
from core.views.workspace.choices import choices
from core.views.workspace.narrow import Choices, Narrowed, judging, narrow
from core.views.workspace.query_sets import unperturbed
from core.views.workspace.scope import (
    Answering,
    Latency,
    Quality,
    Scope,
    resolve_runs,
)

if TYPE_CHECKING:
    from core.views.workspace.view import Place, View

_LINE = 600


class Question(question.Question):
    """The question that a command is to decide."""

    def on_page(self, context: Context) -> View:
        """Return the workspace that is asked about."""
        # Here because the frontier's library takes long to load, which no other command should wait for.
        from core.views.workspace.view import View  # noqa: PLC0415

        book, snapshot = self._on(context)
        quality, limits, narrowed, drawn = self._asked(snapshot, book)
        return View(
            snapshot=snapshot,
            scope=narrowed.scope,
            quality=quality,
            latency=narrowed.latency,
            constraints=limits,
            book=book,
            compared=narrowed.compared,
            noise=drawn,
            rule=self.rule,
            seed=self.seed,
            given=narrowed.table,
        )

    def in_store(self, context: Context) -> Place:
        """Return the data that is asked about, whatever its workspaces."""
        from core.views.workspace.view import Place  # noqa: PLC0415

        snapshot = context.store().read(self.revision)
        if self.collection is not None:
            known_collection(snapshot, self.collection)
        return Place(snapshot, Scope(self.collection or ""))

    def _on(self, context: Context) -> tuple[PriceBook, Snapshot]:
        """Return the prices and the data that are asked about."""
        return context.book(self.prices).derived(self.price or ()), context.store().read(self.revision)

    def _asked(
        self, snapshot: Snapshot, book: PriceBook
    ) -> tuple[Quality, Constraints, Narrowed, str | None]:
        """Give the measure, the limits, what compares, and the golden set that the chances draw grades of."""
        from core.views.confidence.noise import auditor  # noqa: PLC0415

        scope = workspace(snapshot, self.collection, self.golden_set, self.origin or (), self.runs or ())
        answering = Answering(as_word(self.reader), as_word(self.scorer), self.cost_per, self.correct_from)
        quality = quality_of(self.measure) if self.measure else choices(snapshot, scope).quality
        quality, answering = agreed(quality, answering)
        scope = replace(scope, answering=answering)
        if quality.is_share and self.min_quality is not None and not 0 <= self.min_quality <= 1:
            raise InputError(
                f"--min-quality {self.min_quality:g}: {quality.name} lies between 0 and 1.", do="Write 0.6."
            )
        limits = Constraints(
            sla_ms=self.sla_ms,
            budget=self.budget,
            floor=self.min_quality,
            max_harm=self.max_harm,
            min_robust=self.min_robust,
            jitter_ms=self.jitter_ms,
            higher_is_better=quality.higher_is_better,
            per_correct=answering.per == "correct answer",
        )
        latency = Latency(
            self.on,
            self.latency,
            generation=self.generation,
            answers=answering.measure(quality.k) if self.latency == "end-to-end" else None,
        )
        narrowed = self._compared(snapshot, scope, quality, latency, book)
        fewer = narrowed.scope.shared or narrowed.scope.apart or narrowed.latency.machine
        for words in narrowed.compared.sentences:
            complain(f"warning: {shown(words, _LINE)}{' (--together compares all)' if fewer else ''}")
        return quality, limits, narrowed, auditor(snapshot, narrowed.scope, self.judge_noise)

    def _compared(
        self, snapshot: Snapshot, scope: Scope, quality: Quality, latency: Latency, book: PriceBook
    ) -> Narrowed:
        wanted = judging(quality, self.judged, everywhere=self.every_golden_set)
        if not self.together:
            return narrow(snapshot, scope, quality, latency, book, choices=Choices(wanted))
        if wanted:
            raise InputError(
                "--together takes everything; --judged and --every-golden-set do the opposite.",
                do="Leave one of them out.",
            )
        return narrow(snapshot, scope, quality, latency, book, choices=Choices(as_they_are=True))


deciding = options(Question, "question")
"""Give a command the options of `Question`, which it gets as its argument `question`."""


def quality_of(text: str) -> Quality:
    """Return the measure and cutoff that the user wrote.

    One that the product cannot compute is read as reported.
    """
    try:
        measure = Measure.parse(text)
    except UnknownNameError:
        bare, _, cutoff = text.strip().rpartition("@")
        if bare and cutoff.isdecimal() and int(cutoff) > 0:
            return Quality(bare, int(cutoff))
        raise
    if measure.k is None:
        raise InputError(f"{measure} has no cutoff.", do=f"Write {measure.at(10)}, for example.")
    return Quality(str(measure.at(None)), measure.k)


def known_collection(snapshot: Snapshot, name: str) -> None:
    """Refuse a collection that the data does not hold."""
    known = snapshot.collections()["collection_id"].to_list()
    if name not in known:
        raise UnknownNameError("collection", name, known)


def workspace(
    snapshot: Snapshot,
    collection: str | None,
    golden_set: str | None,
    origins: Sequence[Origin],
    names: Sequence[str] = (),
) -> Scope:
    """Return the collection, golden set and runs that were asked for, or the only ones there are."""
    if collection is not None:
        known_collection(snapshot, collection)
    runs = snapshot.runs(collection)
    if origins:
        runs = runs.filter(pl.col("origin").is_in([origin.value for origin in origins]))
    if names:
        runs = runs.filter(pl.col("run_id").is_in(resolve_runs(runs, names)))
    elif origins:
        runs = unperturbed(runs)
    collections = runs["collection_id"].unique().sort().to_list()
    if len(collections) != 1:
        what = (
            f"{len(collections)} collections have such runs: {', '.join(collections)}"
            if collections
            else "No such run"
        )
        raise InputError(
            f"{what}.", do="Choose one with --collection." if collections else "Import results first."
        )
    ids = tuple(runs["run_id"]) if origins or names else ()
    return Scope(collections[0], golden_set_of(snapshot, collections[0], golden_set), ids)
