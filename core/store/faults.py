"""Errors of the system and of the libraries that read files, as errors of the product: one sentence each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa

from core.errors import ClqError, StoreDamagedError, StoreError, refusal

FAULTS = (OSError, duckdb.Error, pa.ArrowException, pl.exceptions.PolarsError)
"""What a disk, or a file that is not what it was, makes the libraries raise."""

EXAMINE = "Run `python -m core doctor`."


@contextmanager
def told(doing: str, root: Path, do: str = "") -> Iterator[None]:
    """Raise what goes wrong inside as a `StoreError`."""
    try:
        yield
    except ClqError:
        raise
    except FAULTS as error:
        raise of(error, doing, root, do) from error


def of(error: Exception, doing: str, root: Path, do: str = "") -> StoreError:
    """What went wrong in words; a query that failed is not shown."""
    if isinstance(error, FileNotFoundError) and error.filename:
        missing = Path(str(error.filename)).name
        return StoreDamagedError(f"{missing} is missing.", where=str(root), do=EXAMINE)
    said = refusal(error)
    if said is None:
        first = str(error).strip().partition("\n")[0]
        return StoreError(f"The store failed while {doing}: {first[:200]}", where=str(root), do=do)
    return StoreError(f"The store failed while {doing}: {said.found}", where=str(root), do=said.do)
