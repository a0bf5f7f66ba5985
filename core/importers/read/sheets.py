"""Reads the sheets of a workbook, in a process of its own with bounds: a hostile one ends no server.

Run as a script with the workbook and a folder for the results: every sheet comes out as an Arrow file of text
cells named by its number, and ``sheets.json`` says what they are called. It imports nothing of this project,
so that it begins at once.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import fastexcel
import polars as pl

_MOST_SHEETS = 1_000
"""Every one may be the same part of the file, and is read anew."""


def main(workbook: str, folder: str) -> None:
    """Write every sheet that can be read, and what went wrong with the others.

    Raises:
        ValueError: The workbook lists too many sheets.
    """
    into = Path(folder)
    reader = fastexcel.read_excel(workbook)
    if len(reader.sheet_names) > _MOST_SHEETS:
        raise ValueError(f"it lists {len(reader.sheet_names):,} sheets, more than {_MOST_SHEETS:,}")
    problems: dict[int, str] = {}
    for number, name in enumerate(reader.sheet_names):
        try:
            loaded = reader.load_sheet(name, header_row=None, skip_rows=0, dtypes="string")
            pl.DataFrame(loaded).write_ipc(into / f"{number}.arrow")
        except (Exception, pl.exceptions.PanicException) as error:
            problems[number] = str(error).split("\n")[0] or type(error).__name__
    report = {"sheets": list(reader.sheet_names), "problems": problems}
    (into / "sheets.json").write_text(json.dumps(report), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
