"""``readers --run R``, ``readers --published``: scores of answers by k, with the figures of their curves."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import polars as pl
import typer

from core.cli.context import Context, golden_set_of
from core.cli.options import CollectionOption, RunsOption
from core.cli.output import Format, FormatOption, complain, emit
from core.errors import InputError, UnknownNameError
from core.store import Snapshot
from core.views.readers.told import published, told
from core.views.readers.words import NO_SCORES
from core.views.workspace.scope import Scope, resolve_runs

_SHOWN = (
    "name", "reader", "prompt", "temperature", "mode", "k", "scorer", "score", "low", "high", "n",
    "closed_book_gain", "with_gold_score", "without_gold_score", "k_star", "rss", "rsc", "shape",
)  # fmt: skip
_PRINTED = (
    "dataset", "retriever", "reader", "scorer", "k_star", "best", "rss", "rsc", "shape", "closed_book_gain",
    "gain_mean", "better_than_closed_book", "over_bm25", "over_bm25_mean", "recall_at_k_star",
)  # fmt: skip


class Need(StrEnum):
    """How many of its gold passages a question needs in Top(k) to be in the slice with gold."""

    ANY = "any"
    ALL = "all"


def show(
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
        Need, typer.Option(help="Which gold passages Top(k) must hold for the slice with gold.")
    ] = Need.ANY,
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
        told(snapshot, scope, book, scorer=scorer, need=gold.value)
        for scope in _scopes(snapshot, runs, collection, golden_set)
    ]
    parts = [part for part in parts if part.height]
    rows = pl.concat(parts) if parts else pl.DataFrame()
    emit(_cut(rows, _SHOWN, form), form, empty=NO_SCORES)


def _cut(rows: pl.DataFrame, shown: tuple[str, ...], form: Format) -> pl.DataFrame:
    """All columns for programs; for people those that fit, without the ones that say nothing."""
    if form is not Format.TABLE or rows.is_empty():
        return rows
    return rows.select(name for name in shown if rows[name].null_count() < rows.height)


def _scopes(
    snapshot: Snapshot, names: list[str] | None, collection: str | None, golden_set: str | None
) -> list[Scope]:
    """One workspace per collection that has scored answers, or that a named run is of."""
    known = snapshot.runs()
    having = {*snapshot.sizes("answers")["id"], *snapshot.sizes("answer_scores")["id"]}
    chosen = resolve_runs(known, names) if names else []
    rows = known.filter(pl.col("run_id").is_in(chosen or list(having)))
    if collection is not None:
        if collection not in (collections := set(snapshot.collections()["collection_id"])):
            raise UnknownNameError("collection", collection, collections)
        rows = rows.filter(collection_id=collection)
    scopes = []
    for (name,), own in rows.group_by("collection_id", maintain_order=True):
        judged = _judged(snapshot, str(name), golden_set)
        scopes.append(Scope(str(name), judged, tuple(own["run_id"]) if chosen else ()))
    return scopes


def _judged(snapshot: Snapshot, collection: str, asked: str | None) -> str | None:
    """The golden set of the slices; without one there are none, which is no reason to show nothing."""
    try:
        return golden_set_of(snapshot, collection, asked)
    except InputError as error:
        if asked is not None:
            raise
        complain(f"no slices: {error}")
        return None
