"""``score``: measures of runs, as means with intervals or per query."""

from __future__ import annotations

from typing import Annotated

import polars as pl
import typer

from core.cli.context import Context, golden_set_of, resolve_runs
from core.cli.output import Format, FormatOption, emit
from core.metrics import parse_list
from core.views.score_table import score_table


def run(
    ctx: typer.Context,
    measures: Annotated[
        str,
        typer.Option(
            help='Measures with cutoffs, for example "RA-nWG@10,N-Recall4+@30,PROC[RA-nWG]@10".',
            show_default=False,
        ),
    ],
    *,
    runs: Annotated[
        list[str] | None, typer.Option("--run", help="A run by id or label; may be repeated. Default: all.")
    ] = None,
    collection: Annotated[str | None, typer.Option(help="Only runs of this collection.")] = None,
    golden_set: Annotated[
        str | None, typer.Option(help="The judgements; by default the only one of the collection.")
    ] = None,
    per_query: Annotated[bool, typer.Option("--per-query", help="One row per query, not the mean.")] = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Score runs: value, n and 95 % bootstrap interval of the mean; empty with a reason where unknown."""
    context: Context = ctx.obj
    snapshot = context.store().read()
    wanted = parse_list(measures)
    known = snapshot.runs(collection)
    if runs:
        known = known.filter(pl.col("run_id").is_in(resolve_runs(known, runs)))
    parts = [
        score_table(snapshot, of, golden_set_of(snapshot, str(name), golden_set), wanted, per_query=per_query)
        for (name,), of in known.partition_by("collection_id", as_dict=True, maintain_order=True).items()
    ]
    emit(pl.concat(parts) if parts else pl.DataFrame(), form, empty="No runs.")
