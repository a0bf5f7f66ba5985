"""Rows on disk for as long as an import needs them, so that files larger than memory can be read."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path

import polars as pl


class Spool:
    """A temporary folder of Parquet files; it goes when nothing refers to it any more."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="clq-import-"))
        self._made = 0
        self._gone = weakref.finalize(self, shutil.rmtree, str(self.path), ignore_errors=True)

    def add(self, rows: pl.DataFrame) -> Path:
        """Write rows to a file of their own."""
        path = self.path / f"{self._made:08d}.parquet"
        self._made += 1
        rows.write_parquet(path, compression="lz4", statistics=False)
        return path

    def close(self) -> None:
        """Remove the folder now."""
        self._gone()
