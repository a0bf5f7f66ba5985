"""``judges agree|merge``: whether golden sets of one collection agree, and one golden set made of several."""

from __future__ import annotations

from typing import Annotated

import typer

from core.cli.context import Context, Format, FormatOption, complain, emit
from core.stats.judges import Policy
from core.views.golden import judges, words
from core.views.golden.judges import POLICIES

app = typer.Typer(
    help="Compare the golden sets of several judges, or merge them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
SetsArgument = Annotated[
    list[str], typer.Argument(help="Golden sets of one collection, two or more.", show_default=False)
]


@app.command("agree")
def agree(ctx: typer.Context, sets: SetsArgument, form: FormatOption = Format.TABLE) -> None:
    """Agreement of every two judges (Cohen's kappa) and of all together (Krippendorff's alpha)."""
    context: Context = ctx.obj
    found = judges.judged(context.store().read(), sets)
    pairs = judges.agreement(found)
    complain(words.agreement(found, pairs, judges.alpha(found)))
    emit(pairs, form)


@app.command("merge")
def merge(
    ctx: typer.Context,
    sets: SetsArgument,
    *,
    into: Annotated[str, typer.Option(help="Name of the new golden set.", show_default=False)],
    policy: Annotated[
        Policy, typer.Option(help="; ".join(f"{name}: {words}" for name, words in POLICIES.items()) + ".")
    ] = "majority",
    form: FormatOption = Format.TABLE,
) -> None:
    """Write one golden set made of several; those stay as they are."""
    store = ctx.obj.store()
    golden = judges.write_merged(store, sets, policy, into)
    known = store.read().golden_sets()
    emit(known.filter(known["golden_set_id"] == golden.golden_set_id), form)
