"""``models``: the models of vendors that are known by name, and which of them have an announced end."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

import polars as pl
import typer

from core.cli.context import Format, FormatOption, emit
from core.tables import schema

_Kind = Literal["embed", "rerank", "chat"]
MODELS = schema("kind provider model retires successor source read")


def run(
    *,
    ending: Annotated[bool, typer.Option("--ending", help="Only those with an announced end.")] = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """List the models of vendors that are known by name, with announced ends and what replaces them."""
    from core.providers.config import vendor_models  # noqa: PLC0415 - pydantic takes a while to load
    from core.providers.ends import ends  # noqa: PLC0415

    rows = []
    for kind in get_args(_Kind):
        for model, config in vendor_models(kind).items():
            end = ends().get(model)
            row = {"kind": kind, "provider": config.provider, "model": model}
            if end is not None:
                row |= {"retires": end.retires.isoformat(), "successor": end.successor, "source": end.source}
                row["read"] = end.read.isoformat()
            rows.append(row)
    listed = pl.DataFrame(rows, schema=MODELS)
    emit(listed.drop_nulls("retires").sort("retires") if ending else listed, form, empty="No model.")
