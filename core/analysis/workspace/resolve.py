"""Turns a question into its workspace; every choice that is left open takes its default."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from core.analysis.cache import cached
from core.analysis.workspace.answers import agreed, as_word
from core.analysis.workspace.choices import as_known, choices
from core.analysis.workspace.clusters import groups
from core.analysis.workspace.filters import no_leaks
from core.analysis.workspace.narrow import READS, NarrowChoices, Narrowed, Reads, judging, narrow
from core.analysis.workspace.query_sets import unperturbed
from core.analysis.workspace.question import Question
from core.analysis.workspace.scope import (
    Answering,
    Latency,
    Quality,
    Scope,
    audits,
    called,
    resolve_runs,
    zone,
)
from core.axes import stack_key
from core.decide.axes import LEAK
from core.decide.rules import Constraints
from core.decide.switching import Terms
from core.errors import InputError, UnknownNameError, nearest
from core.metrics import REGISTRY, Measure, understood
from core.metrics.measure import MAX_K
from core.number_format import cost_unit
from core.prices import PriceBook
from core.records import Origin
from core.store import Snapshot

if TYPE_CHECKING:
    from core.analysis.workspace.view import Place, View

NO_INCUMBENT = "none"


@dataclass(frozen=True, kw_only=True)
class Compared:
    """The comparison behind a question: the part of a view that limits, rule and judge noise leave as is."""

    snapshot: Snapshot
    quality: Quality
    book: PriceBook
    narrowed: Narrowed


def resolve(question: Question, snapshot: Snapshot, book: PriceBook) -> View:
    """Return the workspace with all settings of a question; arguments and errors are those of `compare`."""
    return decided(question, compare(question, snapshot, book))


def compare(
    question: Question,
    snapshot: Snapshot,
    book: PriceBook,
    *,
    scope: Scope | None = None,
    chosen: NarrowChoices | None = None,
    reads: Reads = READS,
) -> Compared:
    """Return the comparison that a question asks for.

    Args:
        book: The prices, before those that the question changes.
        scope: The runs if known, like those of a page, which may be none.
        chosen: How runs that differ are compared, overriding the question.
        reads: Read functions for narrowing; a page supplies cached ones.

    Raises:
        InputError: If a choice is missing that only the user can make, or one is out of range.
        UnknownNameError: If a name does not exist in the data.
    """
    book = book.derived(question.price or ())
    scope, quality = _measured(question, snapshot, scope)
    latency = Latency(
        question.on or choices(snapshot, scope).percentile,
        question.latency,
        generation=question.generation,
        answers=scope.answering.measure(quality.k) if question.latency == "end-to-end" else None,
    )
    chosen = _chosen(question, quality) if chosen is None else chosen
    narrowed = narrow(snapshot, scope, quality, latency, book, choices=chosen, reads=reads)
    return Compared(snapshot=snapshot, quality=quality, book=book, narrowed=narrowed)


def decided(question: Question, asked: Compared) -> View:
    """Return the view of a comparison, under a question's limits and by its rule; errors as in `compare`."""
    # Imported here because the frontier's library takes long to load, which no other command should wait for.
    from core.analysis.workspace.noise import auditor  # noqa: PLC0415
    from core.analysis.workspace.view import View  # noqa: PLC0415

    quality, narrowed = asked.quality, asked.narrowed
    delta = question.indifference
    view = View(
        snapshot=asked.snapshot,
        scope=narrowed.scope,
        quality=quality,
        latency=narrowed.latency,
        constraints=replace(
            _limits(
                question,
                quality,
                narrowed.scope.answering,
                no_leaks(asked.snapshot, narrowed.scope.collection_id),
            ),
            costs_said=cost_unit(narrowed.table),
            delta=zone(quality, narrowed.table) if delta is None else delta,
        ),
        book=asked.book,
        compared=narrowed.compared,
        noise=auditor(asked.snapshot, narrowed.scope, question.judge_noise),
        rule=question.rule,
        take=None if question.take is None else taken(narrowed.table, question.take),
        incumbent=running(narrowed.table, asked.snapshot, narrowed.scope, question.incumbent),
        terms=Terms.of(question.move or ()),
        seed=question.seed,
        given=narrowed.table,
    )
    if view.incumbent is None:
        return view
    from core.analysis.moves.switching import with_moves  # noqa: PLC0415 - which looks at views

    return with_moves(view)


def place_of(question: Question, snapshot: Snapshot) -> Place:
    """Return the data that a question is about, for pages that read no results.

    Raises:
        UnknownNameError: If there is no such collection.
    """
    from core.analysis.workspace.view import Place  # noqa: PLC0415

    if question.collection is not None:
        known_collection(snapshot, question.collection)
    return Place(snapshot, Scope(question.collection or ""))


def known_collection(snapshot: Snapshot, name: str) -> None:
    """Refuse a collection that the data does not hold."""
    known = snapshot.collections()["collection_id"].to_list()
    if name not in known:
        raise UnknownNameError("collection", name, known)


def _measured(question: Question, snapshot: Snapshot, scope: Scope | None) -> tuple[Scope, Quality]:
    if scope is None:
        asked = (question.collection, question.golden_set, question.origin or (), question.runs or ())
        scope = scope_of(snapshot, *asked)
    scope = replace(scope, cluster_by=question.cluster_by)
    groups(snapshot, scope)  # refuses unknown groups
    answering = Answering(
        as_word(question.reader), as_word(question.scorer), question.cost_per, question.correct_from
    )
    if question.measure:
        quality = quality_of(
            question.measure, lambda: longest_of(snapshot, snapshot.runs(scope.collection_id))
        )
    else:
        quality = choices(snapshot, scope).quality
    quality, answering = agreed(as_known(quality, snapshot, scope), answering)
    return replace(scope, answering=answering, cutoff=quality.k), quality


def _limits(question: Question, quality: Quality, answering: Answering, leakless: bool) -> Constraints:
    floor = question.min_quality
    if quality.is_share and floor is not None and not 0 <= floor <= 1:
        raise InputError(f"--min-quality {floor:g}: {quality.name} lies between 0 and 1.", do="Write 0.6.")
    beside = question.beside
    if leakless and beside[LEAK.limit] is None:
        beside = {**beside, LEAK.limit: 0.0}
    return Constraints(
        sla_ms=question.sla_ms,
        budget=question.budget,
        min_quality=floor,
        **beside,
        jitter_ms=question.jitter_ms,
        higher_is_better=quality.higher_is_better,
        per_correct=answering.per == "correct answer",
    )


def running(table: pl.DataFrame, snapshot: Snapshot, scope: Scope, asked: str | None) -> str | None:
    """Return the run_id of the stack that runs today, as asked or as marked in the store.

    Args:
        asked: Its run, name or label; "none" for no stack, None for the marked one.

    Raises:
        UnknownNameError: If the workspace has no such stack.
    """
    if asked is not None:
        return None if asked == NO_INCUMBENT else taken(table, asked)
    marked = _marked(snapshot, scope.collection_id)
    if marked is None or marked in table["run_id"]:
        return marked
    spec = snapshot.runs(scope.collection_id).filter(run_id=marked)["spec"][0]
    key = stack_key(json.loads(spec))  # a K that nothing reads sets no stack apart
    alike = [stack_key(json.loads(other)) == key for other in table["spec"]]
    found = table.filter(pl.Series(alike, dtype=pl.Boolean))["run_id"]
    return None if found.is_empty() else str(found[0])


@cached(entries=64)
def _marked(snapshot: Snapshot, collection_id: str) -> str | None:
    return snapshot.incumbent(collection_id)


def taken(table: pl.DataFrame, name: str) -> str:
    """Return the run_id of a stack of the workspace, by its id, name, label or former name.

    Raises:
        UnknownNameError: If there is none in the workspace.
    """
    for column in ("run_id", "name", "label"):
        rows = table.filter(pl.col(column) == name)
        if rows.height:
            return str(rows["run_id"][0])
    before = called(table, name)
    if len(before) == 1:
        return before[0]
    raise UnknownNameError("stack", name, table["name"])


def _chosen(question: Question, quality: Quality) -> NarrowChoices:
    """Return how a question compares runs that differ."""
    wanted = judging(quality.k, question.judged, everywhere=question.every_golden_set)
    if wanted and question.together:
        raise InputError(
            "--together takes everything; --judged and --every-golden-set do the opposite.",
            do="Leave one of them out.",
        )
    return NarrowChoices(wanted, as_they_are=question.together)


def longest(rankings: pl.DataFrame) -> int:
    """Return the length of the longest final ranking, at least 1 and at most `MAX_K`."""
    ranks = rankings.filter(stage="final")["rank"].to_numpy()
    return int(np.clip(ranks.max(initial=1), 1, MAX_K))


def longest_of(snapshot: Snapshot, runs: pl.DataFrame) -> int:
    """Return the length of the longest ranking of stored runs."""
    return longest(snapshot.rankings(runs["run_id"].to_list(), stage="final"))


def quality_of(text: str, longest: Callable[[], int] | None = None) -> Quality:
    """Return the measure and cutoff in a user's text.

    A measure that the product cannot compute is read as reported; ``ndcg_cut_10`` is nDCG@10. `longest` is
    that of `core.metrics.understood`.
    """
    try:
        measure = understood(text, longest) if "@" not in text else Measure.parse(text)
    except (InputError, UnknownNameError):
        bare, _, cutoff = text.strip().rpartition("@")
        # A table may call its measure anything, also with brackets; parameters are those of our own measures.
        head = bare.partition("(")[0]
        own = "(" in bare and (head in REGISTRY or bool(nearest(head, REGISTRY)))
        if bare and not own and cutoff.isdecimal() and int(cutoff) > 0:
            return Quality(bare, int(cutoff))
        raise
    if measure.k is None:
        raise InputError(f"{measure} has no cutoff.", do=f"Write {measure.at(10)}, for example.")
    return Quality(str(measure.at(None)), measure.k)


def scope_of(
    snapshot: Snapshot,
    collection: str | None,
    golden_set: str | None,
    origins: Sequence[Origin],
    names: Sequence[str] = (),
) -> Scope:
    """Return the requested collection, golden set and runs, or the only ones there are."""
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
    if not collections:
        raise _no_results(snapshot, collection, asked=bool(origins or names))
    if len(collections) > 1:
        what = f"{len(collections)} collections have such runs: {', '.join(collections)}."
        raise InputError(what, do="Choose one with --collection.")
    ids = tuple(runs["run_id"]) if origins or names else ()
    return Scope(collections[0], golden_set_of(snapshot, collections[0], golden_set), ids)


def _no_results(snapshot: Snapshot, collection: str | None, *, asked: bool) -> InputError:
    """Explain what is missing if there is no run, and what the existing judgements are good for."""
    where = collection or "the store"
    if asked or not snapshot.runs(collection).is_empty():
        return InputError("No such run.", do="Import results first.")
    judged = snapshot.golden_sets(collection)["golden_set_id"].to_list()
    if not judged:
        return InputError("There are no results.", where=where, do="Import results first.")
    sets = " ".join(judged)
    do = "Import results, or run a stack" + (
        f"; `judges agree {sets}` compares the judges as they are." * (len(judged) > 1) or "."
    )
    return InputError(
        f"There are judgements ({', '.join(judged)}), but no results of a stack.", where=where, do=do
    )


def golden_set_of(snapshot: Snapshot, collection: str, asked: str | None) -> str | None:
    """Return the golden set to score a collection with: the requested one, or its only one besides audits."""
    known = snapshot.golden_sets(collection)["golden_set_id"].to_list()
    if asked is None:
        audited = audits(snapshot, collection)
        whole = [name for name in known if name not in audited]
        if len(whole) > 1:
            raise InputError(
                f"{collection} has {len(whole)} golden sets: {', '.join(whole)}.",
                do="Choose one with --golden-set.",
            )
        return str(whole[0]) if whole else None
    if asked in known:
        return asked
    everywhere = snapshot.golden_sets()["golden_set_id"].to_list()
    if asked not in everywhere:
        raise UnknownNameError("golden set", asked, everywhere)
    return None
