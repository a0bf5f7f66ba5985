"""``export stack NAME --as python``: the chosen stack as a folder that runs without this program."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import polars as pl
import typer

from core.analysis.workspace.scope import resolve_runs
from core.cli.base import Context, complain
from core.cli.context import Format, emit
from core.errors import InputError, UnknownNameError
from core.pipeline.shippable import KINDS
from core.prices import DEFAULT_BOOK
from core.records import JsonMap, Stack
from core.views.text import count

_CHECKED = 50  # Maximum queries in a check


def ship(
    context: Context, name: str, kind: str, to: Path | None, *, check: bool, python: str, form: Format
) -> None:
    """Write the stack of a run into a folder, or check an existing one; print what was written, or differs.

    Raises:
        typer.Exit: With code 1 if a check finds orders that differ from the store's.
    """
    from core.pipeline import ship as shipping  # noqa: PLC0415 - with the engines, a second
    from core.pipeline.evaluate import corpus_of  # noqa: PLC0415

    if kind not in KINDS:
        raise UnknownNameError("kind of export", kind, KINDS)
    snapshot = context.store().read()
    (run_id,) = resolve_runs(snapshot.runs(), [name])
    row = snapshot.runs().filter(run_id=run_id).row(0, named=True)
    spec: JsonMap = json.loads(row["spec"])
    folder = to or Path(f"{Stack(spec).stack_id}-{kind}")
    if not (check and folder.is_dir()):
        if row["chunking"] is not None:
            raise InputError(
                "It searches chunks of documents.", where=row["label"], do="Export the passages."
            )
        used = snapshot.usage([run_id]).select("item", "unit").unique().sort("item", "unit")
        about: dict[str, Any] = {
            "name": row["label"],
            "run_id": run_id,
            "stack_id": Stack(spec).stack_id,
            "collection": row["collection_id"],
            "prices": _prices(context, used),
        }
        passages = snapshot.passages(row["collection_id"])
        if passages.is_empty():
            raise InputError("The collection has no passages in the store.", where=row["collection_id"])
        shipping.ship(spec, kind, corpus_of(passages), folder, about)
        complain(f"written: {folder}")
    if not check:
        files = sorted(path for path in folder.iterdir() if path.is_file())
        rows = [(path.name, path.stat().st_size) for path in files]
        emit(pl.DataFrame(rows, schema=["file", "bytes"], orient="row"), form)
        return
    asked = snapshot.queries(row["collection_id"]).head(_CHECKED)
    rankings = snapshot.rankings([run_id], stage="final").sort("query_id", "rank")
    parts = {str(query): part for (query,), part in rankings.partition_by("query_id", as_dict=True).items()}
    stored, scores = (
        {query: part[name].to_list() for query, part in parts.items()} for name in ("passage_id", "score")
    )
    asked = asked.filter(pl.col("query_id").is_in(list(stored)))
    orders = shipping.compare(folder, kind, python or sys.executable, asked, stored, scores=scores)
    apart = orders.filter(~pl.col("same"))
    complain(
        f"{orders.height - apart.height} of {count(orders.height, 'question')} are ranked as in the store"
    )
    emit(apart, form, empty="Equal orders.")
    if apart.height:
        raise typer.Exit(1)


def _prices(context: Context, used: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the prices of a stack's components, each with its source; null if there is none."""
    book = context.book(DEFAULT_BOOK)
    rows = []
    for item, unit in used.iter_rows():
        price = book.find(item, unit) or book.find(item, {"cpu_ms": "cpu_hour"}.get(unit, unit))
        rows.append({"item": item, "unit": unit, "usd": None if price is None else price.each})
    return rows
