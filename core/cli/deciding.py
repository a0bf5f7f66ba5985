"""The options of every command that rests on a decision, and what they select from the store."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, get_origin

import polars as pl
import typer

from core.cli.context import Context, complain, golden_set_of
from core.decide.rules import Constraints, Rule
from core.errors import InputError, UnknownNameError
from core.importers.read.text import shown
from core.metrics import Measure
from core.metrics.rates import ANY
from core.prices import DEFAULT_BOOK, PriceBook
from core.records import Origin
from core.stats.intervals import SEED
from core.stats.latency import Generation
from core.store import Snapshot
from core.views.workspace.answers import agreed, as_word
from core.views.workspace.choices import choices
from core.views.workspace.narrow import Choices, Narrowed, judging, narrow
from core.views.workspace.query_sets import LeastJudged, unperturbed
from core.views.workspace.scope import (
    Answering,
    Latency,
    LatencyScope,
    Per,
    Percentile,
    Quality,
    Scope,
    resolve_runs,
)

if TYPE_CHECKING:
    from core.report.data import Case
    from core.views.workspace.view import View

_LINE = 600


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a command is to decide; its options, and what no option says."""

    measure: Annotated[
        str | None,
        typer.Option(help="Quality with its cutoff. By default RA-nWG@10, or what is there instead."),
    ] = None
    sla_ms: Annotated[float | None, typer.Option(min=0, help="Highest latency; ms.")] = None
    on: Annotated[Percentile, typer.Option("--on", help="Percentile of the latency.")] = "p50"
    latency: Annotated[LatencyScope, typer.Option(help="Which stages; end-to-end has the generator.")] = (
        "path"
    )
    budget: Annotated[float | None, typer.Option(min=0, help="Highest cost; $ per 1,000 queries.")] = None
    min_quality: Annotated[
        float | None, typer.Option(help="Worst quality: the lowest, or the highest of Harm and its like.")
    ] = None
    max_harm: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Highest Harm at the measure's cutoff; Harm + Hole where over 5 % of a Top-K is unjudged.",
        ),
    ] = None
    rule: Annotated[Rule, typer.Option(help="What is best within the limits.")] = "quality"
    jitter_ms: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Latencies this close are alike. By default measured where passes were repeated, else 75.",
        ),
    ] = None
    prices: Annotated[str, typer.Option(help="Price book.")] = DEFAULT_BOOK
    price: Annotated[
        list[str] | None,
        typer.Option(help="Changed price, ITEM:UNIT=AMOUNT for the book's units; may be repeated."),
    ] = None
    origin: Annotated[
        list[Origin] | None, typer.Option(help="Only runs of this origin; may be repeated.")
    ] = None
    runs: Annotated[list[str] | None, typer.Option("--run", help="Only this run; may be repeated.")] = None
    collection: Annotated[str | None, typer.Option(help="By default the only one with such runs.")] = None
    golden_set: Annotated[str | None, typer.Option(help="By default the only one of the collection.")] = None
    revision: Annotated[int | None, typer.Option(min=0, help="By default the latest.")] = None
    together: Annotated[
        bool,
        typer.Option(
            "--together",
            help="Put on one scale also what does not compare: other queries, averages from elsewhere, "
            "latencies of other machines.",
        ),
    ] = False
    judged: Annotated[
        LeastJudged,
        typer.Option(
            help="Compare only on queries of whose Top-K every run has at least half, most (80 %) or all "
            "judged. These are no random sample."
        ),
    ] = "any"
    every_golden_set: Annotated[
        bool, typer.Option("--every-golden-set", help="Only on queries that all golden sets of it judge.")
    ] = False
    judge_noise: Annotated[
        str | None,
        typer.Option(
            metavar="SET",
            help="Golden set of another judge whose grades are drawn in the chances, or off. By default one "
            "that grades 50 or more passages of this one as a sample.",
        ),
    ] = None
    reader: Annotated[
        str, typer.Option(help="Whose answers count in costs and times; any = who answered for most runs.")
    ] = ANY
    scorer: Annotated[str, typer.Option(help="What scores the answers; any = F1, or what there is.")] = ANY
    cost_per: Annotated[
        Per,
        typer.Option(
            help="What costs and the budget are one (1,000) of: a query, one with its answer from as many "
            "passages as the measure's cutoff, or an answer that is correct."
        ),
    ] = "query"
    correct_from: Annotated[
        float, typer.Option(min=0.001, max=1, help="Score from which on an answer is correct.")
    ] = 0.5
    seed: Annotated[int, typer.Option(min=0, help="Of the resampling.")] = SEED
    generation: Generation | None = None
    """How fast the generator is; no option says so, a record may."""

    def on_store(self, context: Context) -> Case:
        """Find what is asked about."""
        # Here because the frontier's library takes long to load, which no other command should wait for.
        from core.report.data import Case  # noqa: PLC0415
        from core.views.decision.facts import Asked  # noqa: PLC0415

        book, snapshot = self._on(context)
        quality, limits, found, drawn = self._asked(snapshot, book)
        asked = Asked(limits, self.rule, quality, found.latency, noise=drawn)
        return Case(snapshot, found.scope, asked, book, self.seed, remarks=found.compared.sentences)

    def on_page(self, context: Context) -> View:
        """The workspace as a page of the dashboard has it."""
        from core.decide.rules import decide  # noqa: PLC0415
        from core.views.workspace.query_sets import paired  # noqa: PLC0415
        from core.views.workspace.view import View  # noqa: PLC0415

        book, snapshot = self._on(context)
        quality, limits, found, drawn = self._asked(snapshot, book)
        pairs = paired(snapshot, found.table, found.scope, quality, seed=self.seed)
        return View(
            snapshot=snapshot,
            scope=found.scope,
            quality=quality,
            latency=found.latency,
            constraints=limits,
            book=book,
            table=found.table,
            decision=decide(found.table, limits, self.rule, paired=pairs),
            paired=pairs,
            compared=found.compared,
            noise=drawn,
            rule=self.rule,
        )

    def _on(self, context: Context) -> tuple[PriceBook, Snapshot]:
        """The prices and the data that are asked about."""
        return context.book(self.prices).derived(self.price or ()), context.store().read(self.revision)

    def _asked(
        self, snapshot: Snapshot, book: PriceBook
    ) -> tuple[Quality, Constraints, Narrowed, str | None]:
        """The measure, the limits, what compares, and the golden set that the chances draw grades of."""
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
        found = self._compared(snapshot, scope, quality, latency, book)
        narrowed = found.scope.shared or found.scope.apart or found.latency.machine
        for words in found.compared.sentences:
            complain(f"warning: {shown(words, _LINE)}{' (--together compares all)' if narrowed else ''}")
        return quality, limits, found, auditor(snapshot, found.scope, self.judge_noise)

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


def deciding(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `Question`, which it gets as its argument `question`."""
    every = inspect.signature(Question, eval_str=True).parameters
    shared = {name: each for name, each in every.items() if get_origin(each.annotation) is Annotated}
    own = {
        name: each
        for name, each in inspect.signature(command, eval_str=True).parameters.items()
        if name != "question"
    }

    def run(**given: object) -> None:
        asked = {name: value for name, value in given.items() if name in shared}
        rest = {name: value for name, value in given.items() if name in own}
        command(**rest, question=Question(**asked))  # type: ignore[arg-type]

    both = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*own.values(), *shared.values())]
    run.__doc__ = command.__doc__
    run.__signature__ = inspect.Signature(both)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in both}
    return run


def quality_of(text: str) -> Quality:
    """The measure and cutoff that the user wrote; one that the product cannot compute is read as reported."""
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


def workspace(
    snapshot: Snapshot,
    collection: str | None,
    golden_set: str | None,
    origins: Sequence[Origin],
    names: Sequence[str] = (),
) -> Scope:
    """The collection, golden set and runs that were asked for, or the only ones there are."""
    known = snapshot.collections()["collection_id"].to_list()
    if collection is not None and collection not in known:
        raise UnknownNameError("collection", collection, known)
    runs = snapshot.runs(collection)
    if origins:
        runs = runs.filter(pl.col("origin").is_in([origin.value for origin in origins]))
    if names:
        runs = runs.filter(pl.col("run_id").is_in(resolve_runs(runs, names)))
    elif origins:
        runs = unperturbed(runs)
    found = runs["collection_id"].unique().sort().to_list()
    if len(found) != 1:
        what = f"{len(found)} collections have such runs: {', '.join(found)}" if found else "No such run"
        raise InputError(f"{what}.", do="Choose one with --collection." if found else "Import results first.")
    ids = tuple(runs["run_id"]) if origins or names else ()
    return Scope(found[0], golden_set_of(snapshot, found[0], golden_set), ids)
