"""``golden new TEXTS``: a specification to begin with, of texts and questions that lie in files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from core.toml import toml

_JUDGE = "gpt-4o-mini"
_TEXT = """\
name = {name}
collection = {collection}
{queries}budget_usd = {budget:g}                # it stops before it costs more

[golden]
language = "en"                 # of the judges' instructions: en or fr

[[golden.pool]]                 # where candidates come from; add the indexes that you will compare
stack = {{ sparse = "bm25" }}
depth = 50

[[golden.pool]]
stack = {{ embedder = "wordllama" }}   # runs on this machine, without a key
depth = 50

[golden.judge]
models = {judges}

[golden.refine]
method = "none"                 # auto: the best are put in order, too, where the measured noise lets it pay
"""


def run(
    texts: Annotated[
        Path,
        typer.Argument(
            help="Passages with ids: .csv, .tsv, .jsonl, .parquet, or a BEIR folder.",
            exists=True, show_default=False,
        ),
    ],
    *,
    questions: Annotated[
        Path | None,
        typer.Option(exists=True, help="Questions with ids, as a table; a BEIR folder brings its own."),
    ] = None,
    judge: Annotated[
        list[str] | None, typer.Option(help="Chat model; may be repeated.", show_default=_JUDGE)
    ] = None,
    name: Annotated[str, typer.Option(help="Of the golden set.")] = "judged",
    budget: Annotated[float, typer.Option(min=0, help="The most dollars.")] = 5.0,
) -> None:  # fmt: skip
    """Print a specification for your texts and questions: save it, look it over, and build it.

    golden new texts.csv --questions questions.csv > golden.toml, then golden build golden.toml.
    """
    queries = "" if questions is None else f"queries = {toml(str(questions.absolute()))}\n"
    judges = toml(judge or [_JUDGE])
    collection = toml(str(texts.absolute()))
    typer.echo(
        _TEXT.format(name=toml(name), collection=collection, queries=queries, budget=budget, judges=judges),
        nl=False,
    )
