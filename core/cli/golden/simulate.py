"""``golden simulate``: what refining the order of a golden set gains with a judge of a stated noise."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from typing import Annotated

import polars as pl
import typer

from core.cli.output import Format, FormatOption, complain, emit
from core.golden.refine.settings import RefineSettings

_DEFAULT = RefineSettings()


class Method(StrEnum):
    """How orders are put together."""

    LOCKS = "locks"
    MAP = "map"


_TURNS = {Method.LOCKS: 1_000, Method.MAP: _DEFAULT.turns}


def run(
    *,
    noise: Annotated[
        float, typer.Option(help="Of the judge: standard deviation in grades.", min=0, show_default=False)
    ],
    items: Annotated[int, typer.Option(help="Passages per query.")] = 40,
    confirmations: Annotated[
        int, typer.Option(help="Judgements that lock a pair; 0 = only a clear margin of the scores does.")
    ] = _DEFAULT.confirmations,
    stable: Annotated[
        int, typer.Option(help="Turns for which the Top-20 has to stay the same.")
    ] = _DEFAULT.stable,
    method: Annotated[
        Method, typer.Option(help="locks: Algorithm 1 of the paper; map: the likeliest order of all answers.")
    ] = Method.LOCKS,
    runs: Annotated[int, typer.Option(help="Queries to simulate.")] = 200,
    turns: Annotated[
        int | None,
        typer.Option(help="Turns at most; by default 1000 of locks, 300 of map.", show_default=False),
    ] = None,
    sure: Annotated[
        float, typer.Option(help="map stops when the Top-20 is right with this probability; 1 = never.")
    ] = _DEFAULT.sure,
    seed: Annotated[int | None, typer.Option(help="Of all that is random.", show_default=False)] = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Print Kendall's tau to the true order, refined and by grades alone, and the turns that it takes."""
    # Here because it takes a second to load, which no other command should wait for.
    from core.golden.refine.simulate import World, simulate  # noqa: PLC0415
    from core.stats.intervals import SEED  # noqa: PLC0415

    limit = _TURNS[method] if turns is None else turns
    settings = RefineSettings(
        method=method.value, confirmations=confirmations, stable=stable, sure=sure, turns=limit
    )
    world = World(noise=noise, items=items)
    found = simulate(settings, world, runs=runs, seed=SEED if seed is None else seed)
    if found.stable < 1:
        complain(f"{1 - found.stable:.0%} of the queries had not come to rest after {limit} turns.")
    asked = {"method": method.value, "noise": noise, "items": items, "confirmations": confirmations,
             "stable_turns": stable, "turn_limit": limit}  # fmt: skip
    emit(pl.DataFrame([{**asked, **asdict(found)}]), form)
