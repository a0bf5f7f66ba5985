"""``demo``: load the published evidence, and really run the demo stacks on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import polars as pl
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from core.cli.context import Context
from core.cli.output import Format, FormatOption, complain, emit
from core.jobs import State, Status, Tracker
from core.records import Batch
from core.views.diagnostics import landing


def run(
    ctx: typer.Context,
    if_empty: Annotated[
        bool, typer.Option("--if-empty", help="Do nothing if the store has runs already.")
    ] = False,
    status: Annotated[Path | None, typer.Option(hidden=True, help="File that is told how far it is.")] = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Fill the store with the published evidence and a real local evaluation (under 2 minutes)."""
    context: Context = ctx.obj
    if if_empty and context.store().read().runs().height:
        complain("The store has runs already; nothing to do.")
        return
    # Here because the engines take a second to load, which no other command should wait for.
    from core.diagnostics.names.job import demo_batch  # noqa: PLC0415
    from core.importers.formats.published import published_batch  # noqa: PLC0415
    from core.importers.formats.published.readers import published_readers  # noqa: PLC0415
    from core.pipeline.demo import run_demo  # noqa: PLC0415

    # Everything is measured first and written at once: a store holds the whole demo or nothing of it.
    batches: list[Batch] = [published_batch(), published_readers()]
    tracker = Tracker(Status(name="The demo"), path=status)
    with _bar() as bar:
        task = bar.add_task("start", total=None)

        def tell(done: int, total: int, label: str) -> None:
            bar.update(task, completed=done, total=total, description=label)
            tracker.tell(done=done, total=total, stage=label)

        made = run_demo(batches.append, tell)
        bar.update(task, description="names in embedders")
        names = demo_batch(context.books()["list"])
    with context.write("demo", made.summary) as writer:
        for batch in batches:
            writer.add(batch)
        landing.add(writer, context.store().read(), names)
    tracker.close(State.FINISHED, made.summary)
    complain(made.summary)
    rows = [
        (each.run_id, each.label, each.collection_id, each.origin.value)
        for batch in batches
        for each in batch.runs
    ]
    runs = pl.DataFrame(rows, schema=["run_id", "label", "collection_id", "origin"], orient="row")
    if form is Format.TABLE:  # 130 lines would bury the summary
        runs = runs.group_by("collection_id", "origin", maintain_order=True).len("runs")
    emit(runs, form)


def _bar() -> Progress:
    """A progress bar on standard error, so that the result can be piped."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    )
