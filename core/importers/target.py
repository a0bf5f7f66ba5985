"""A folder or zip that appears all at once, or not at all."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core.errors import InputError
from core.files import replacing

_DATE = (1980, 1, 1, 0, 0, 0)


@contextmanager
def target(path: Path) -> Iterator[Path]:
    """A folder to write into that becomes `path` when all went well: a folder, or a zip by its ending.

    Raises:
        InputError: The path exists already, or cannot be written.
    """
    if path.exists():
        raise InputError(
            "The path exists already.", where=str(path), do="Choose another, or remove it first."
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as draft:
            if path.suffix.lower() != ".zip":
                draft.mkdir()
                yield draft
                return
            with tempfile.TemporaryDirectory(prefix=".clq-export-", dir=path.parent) as folder:
                yield Path(folder)
                _zip(Path(folder), draft)
    except OSError as error:
        raise InputError(f"It cannot be written: {error}.", where=str(path)) from error


def _zip(folder: Path, to: Path) -> None:
    """Pack a folder; the same files give the same bytes."""
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in sorted(each for each in folder.rglob("*") if each.is_file()):
            entry = zipfile.ZipInfo(file.relative_to(folder).as_posix(), _DATE)
            packs = file.suffix != ".parquet"  # packed within already
            entry.compress_type = zipfile.ZIP_DEFLATED if packs else zipfile.ZIP_STORED
            with file.open("rb") as source, packed.open(entry, "w", force_zip64=True) as sink:
                while block := source.read(1 << 20):
                    sink.write(block)
