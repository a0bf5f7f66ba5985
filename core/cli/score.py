"""``score``: measures of runs, as means with intervals or per query."""

from __future__ import annotations

from typing import Annotated

import polars as pl
import typer

from core.cli.context import Context, resolve_runs
from core.cli.output import Format, FormatOption, emit
from core.errors import InputError, UnknownNameError
from core.metrics import parse_list
from core.store import Snapshot
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
        score_table(snapshot, of, _golden_set(snapshot, str(name), golden_set), wanted, per_query=per_query)
        for (name,), of in known.partition_by("collection_id", as_dict=True, maintain_order=True).items()
    ]
    emit(pl.concat(parts) if parts else pl.DataFrame(), form, empty="No runs.")


def _golden_set(snapshot: Snapshot, collection: str, asked: str | None) -> str | None:
    """The golden set to score a collection with; None where it has none."""
    known = snapshot.golden_sets(collection)["golden_set_id"].to_list()
    if asked is None:
        if len(known) > 1:
            raise InputError(
                f"{collection} has {len(known)} golden sets: {', '.join(known)}.",
                do="Choose one with --golden-set.",
            )
        return str(known[0]) if known else None
    if asked in known:
        return asked
    everywhere = snapshot.golden_sets()["golden_set_id"].to_list()
    if asked not in everywhere:
        raise UnknownNameError("golden set", asked, everywhere)
    return None
