"""Options and arguments that several commands have, each said once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SpecArgument = Annotated[
    Path, typer.Argument(help="A specification: .toml, .yaml or .json.", show_default=False)
]
MaybeSpec = Annotated[
    Path | None, typer.Argument(help="A specification: .toml, .yaml or .json.", show_default=False)
]
BudgetOption = Annotated[
    float | None, typer.Option(min=0, help="The most dollars in all, instead of the specification's.")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Say what it takes; spend and write nothing.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask at the terminal before it costs.")]
RunsOption = Annotated[
    list[str] | None, typer.Option("--run", help="A run by id or label; may be repeated. Default: all.")
]
CollectionOption = Annotated[str | None, typer.Option(help="Only runs of this collection.")]
