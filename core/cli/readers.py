"""``readers …``: scores of answers by k; let models answer from the passages of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import polars as pl
import typer

from core.analysis.readers import NO_SCORES, AnyAll
from core.analysis.workspace.resolve import golden_set_of
from core.analysis.workspace.scope import Scope, resolve_runs
from core.cli.base import Context, complain, require_collection
from core.cli.context import CollectionOption, Format, FormatOption, RunsOption, emit
from core.cli.runs.paid import add_commands
from core.errors import InputError
from core.store import Snapshot
from core.views.readers.scores import published, scored
from core.work.readers import words

if TYPE_CHECKING:  # the engines take a second to load, and no other command should wait for them
    from core.pipeline.evaluate.session import Result
    from core.work.readers.job import ReaderJob
    from core.work.readers.plan import ReaderPlan
    from core.work.work import Work


_SCORES = (
    "name", "reader", "prompt", "temperature", "mode", "k", "scorer", "score", "low", "high", "n",
    "closed_book_gain", "with_gold_score", "without_gold_score", "k_star", "rss", "rss_fewer",
    "rss_more", "rsc", "shape",
)  # fmt: skip
_PRINTED = (
    "dataset", "retriever", "reader", "scorer", "k_star", "best", "rss", "rsc", "shape", "closed_book_gain",
    "gain_mean", "better_than_closed_book", "over_bm25", "over_bm25_mean", "recall_at_k_star",
)  # fmt: skip
_HELPS = {
    "plan": "Print how many answers there will be, with calls, tokens, dollars and time; nothing is spent.",
    "run": "Have the readers of a specification answer, or what is left of it; nothing is paid twice.",
    "resume": "Go on where readers stopped; the budget counts what was spent before.",
    "status": "List the reader jobs that were begun, newest first.",
}


def scores(
    ctx: typer.Context,
    runs: RunsOption = None,
    *,
    collection: CollectionOption = None,
    golden_set: Annotated[
        str | None, typer.Option(help="Whose passages of grade 4 and 5 are gold; by default the only one.")
    ] = None,
    scorer: Annotated[
        str | None,
        typer.Option(help="Whose scores: f1, exact_match, correctness…; by default the usual one."),
    ] = None,
    gold: Annotated[
        AnyAll, typer.Option(help="Which gold passages Top(k) must hold for the slice with gold.")
    ] = "any",
    tables: Annotated[
        bool, typer.Option("--published", help="RAGGED's published readers; nothing of the store is read.")
    ] = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Score readers against k: intervals, gain over the closed book, k*, RSS, RSC, shape; slices by gold."""
    if ctx.invoked_subcommand is not None:
        return
    if tables:
        emit(_cut(published(), _PRINTED, form), form)
        return
    context: Context = ctx.obj
    snapshot, book = context.store().read(), context.books()["list"]
    parts = [
        scored(snapshot, scope, book, scorer=scorer, need=gold)
        for scope in _scopes(snapshot, runs, collection, golden_set)
    ]
    parts = [part for part in parts if part.height]
    rows = pl.concat(parts) if parts else pl.DataFrame()
    emit(_cut(rows, _SCORES, form), form, empty=NO_SCORES)


def _cut(rows: pl.DataFrame, shown: tuple[str, ...], form: Format) -> pl.DataFrame:
    """Return all columns for programs; for people those that fit, without uninformative ones."""
    if form is not Format.TABLE or rows.is_empty():
        return rows
    return rows.select(name for name in shown if rows[name].null_count() < rows.height)


def _scopes(
    snapshot: Snapshot, names: list[str] | None, collection: str | None, golden_set: str | None
) -> list[Scope]:
    """Return one workspace per collection with scored answers, or with a named run."""
    known = snapshot.runs()
    having = {*snapshot.sizes("answers")["id"], *snapshot.sizes("answer_scores")["id"]}
    chosen = resolve_runs(known, names) if names else []
    rows = known.filter(pl.col("run_id").is_in(chosen or list(having)))
    require_collection(snapshot, collection)
    if collection is not None:
        rows = rows.filter(collection_id=collection)
    scopes = []
    for (name,), own in rows.group_by("collection_id", maintain_order=True):
        judged = _judged(snapshot, str(name), golden_set)
        scopes.append(Scope(str(name), judged, tuple(own["run_id"]) if chosen else ()))
    return scopes


def _judged(snapshot: Snapshot, collection: str, asked: str | None) -> str | None:
    """Return the golden set of the slices, or None: without one the rest is still shown."""
    try:
        return golden_set_of(snapshot, collection, asked)
    except InputError as error:
        if asked is not None:
            raise
        complain(f"no slices: {error}")
        return None


def _work() -> Work[ReaderJob, ReaderPlan, Result]:
    from core.work.readers.kind import READERS  # noqa: PLC0415

    return READERS


def _answered(context: Context, job: ReaderJob, _: Result, form: Format) -> None:
    runs = [replay.run_id for replay in job.material.replays]
    emit(words.answered(context.store().read().answers(runs)), form)


app = typer.Typer(
    help="Readers: what the passages are worth to the answer. `readers --run R` scores them by k, "
    "`readers run SPEC` has models answer from the final rankings of stored runs.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.callback(invoke_without_command=True)(scores)
add_commands(app, _HELPS, _work, _answered, empty="No reader was asked here.")
