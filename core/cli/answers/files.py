"""Files that commands write for others: where they may go."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from core.errors import InputError

DashboardOption = Annotated[
    str, typer.Option("--dashboard", help="Address of the dashboard that the link in the file opens.")
]
ReplaceOption = Annotated[bool, typer.Option("--replace", help="Replace a file that is there.")]


def destination(path: Path, endings: Sequence[str], *, overwrite: bool) -> str:
    """Check where a file is to go."""
    ending = path.suffix.lower()
    if ending not in endings:
        raise InputError(
            f"A file ending in {ending or 'nothing'} is not written.",
            where=str(path),
            do=f"Choose {', '.join(endings)}.",
        )
    if not path.parent.is_dir():
        raise InputError("The folder does not exist.", where=str(path.parent), do="Make it first.")
    if path.exists() and not (overwrite and path.is_file()):
        raise InputError("The path exists already.", where=str(path), do="Choose another, or add --replace.")
    return ending
