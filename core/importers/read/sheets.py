"""Reads sheets of workbooks in a separate process with limits, so that a hostile one cannot end the server.

It runs as a script that takes one request per line (`_answered`) and answers each with a line, both JSON. It
imports nothing of this project, so that it starts at once.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import fastexcel
import polars as pl

_MOST_SHEETS = 1_000
"""Each may be the same part of the file, which is read again every time."""


def _answered(workbook: str, folder: str) -> dict[str, Any]:
    """Write every readable sheet as an Arrow file of text cells, named by its number.

    Returns:
        sheets: their names; problems: by number, what went wrong with the others.

    Raises:
        ValueError: The workbook lists too many sheets.
    """
    reader = fastexcel.read_excel(workbook)
    if len(reader.sheet_names) > _MOST_SHEETS:
        raise ValueError(f"it lists {len(reader.sheet_names):,} sheets, more than {_MOST_SHEETS:,}")
    problems: dict[int, str] = {}
    for number, name in enumerate(reader.sheet_names):
        try:
            loaded = reader.load_sheet(name, header_row=None, skip_rows=0, dtypes="string")
            pl.DataFrame(loaded).write_ipc(Path(folder) / f"{number}.arrow")
        except (Exception, pl.exceptions.PanicException) as error:
            problems[number] = str(error).split("\n")[0] or type(error).__name__
    return {"sheets": list(reader.sheet_names), "problems": problems}


def main() -> None:
    """Answer requests until there are no more; a failed one is answered with ``error``, its kind first."""
    for line in sys.stdin:
        try:
            said = _answered(**json.loads(line))
        except BaseException as error:  # panics of libraries are not an `Exception`
            said = {"error": f"{type(error).__name__}: {error}"}
        sys.stdout.write(f"{json.dumps(said)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
