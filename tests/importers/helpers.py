"""Small makers for the importer tests."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import core
from core.answers import GRADE, KEY
from core.errors import ClqError
from core.importers import Import, LeftOut, Offered, Options, Upload, load
from core.tables import frame

SHARED = Path(os.environ.get("CLQ_SHARED") or Path(core.__file__).resolve().parents[2] / "shared")
TREC_EVAL = SHARED / "runs" / "trec_eval" / "test"
CRANFIELD = SHARED / "collections" / "cranfield"
PIAF = SHARED / "collections" / "piaf_fr"


def needs(path: Path) -> pytest.MarkDecorator:
    """Skip a test whose real files are not on this machine."""
    return pytest.mark.skipif(not path.exists(), reason=f"real files are not here: {path.name} (CLQ_SHARED)")


def up(name: str, content: str | bytes) -> Upload:
    return Upload(name, content.encode() if isinstance(content, str) else content)


def read(*offered: Offered, **options: Any) -> Import:
    return load(offered, Options(**options))


def refusal(*offered: Offered, **options: Any) -> str:
    """The message with which an offer is refused."""
    with pytest.raises(ClqError) as caught:
        load(offered, Options(**options))
    return str(caught.value)


def lost(made: Import) -> list[LeftOut]:
    """What was left out of what is taken: rows, cells and the like, not columns, keys and files."""
    return [each for each in made.left_out if not each.part]


def rows(made: Import, table: str) -> pl.DataFrame:
    return made.frames[table].lazy().collect()


def graded(made: Import) -> pl.DataFrame:
    """The answers in their order, each with its grade, the scale, and who or what graded it."""
    names = pl.coalesce("judge", "scorer").replace("grade", None).alias("judge")
    scores = rows(made, "answer_scores") if "answer_scores" in made.frames else frame("answer_scores", [])
    grades = scores.filter(pl.col("source") == GRADE).select(*KEY, names, "scale", grade="value")
    return rows(made, "answers").join(grades, on=KEY, how="left", nulls_equal=True, maintain_order="left")


def zipped(members: Mapping[str, str | bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def members(data: bytes) -> dict[str, bytes]:
    """The files of an archive; of another file itself, as "x"."""
    if not data.startswith(b"PK\3\4") or b"xl/workbook.xml" in data:
        return {"x": data}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}


def parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()
