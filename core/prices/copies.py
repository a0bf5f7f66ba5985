"""The user's price files in a backup of a store, because they decide answers too, and back from it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core.errors import PriceError
from core.files import replacing
from core.number_format import count
from core.records import now


def copy_prices(folder: Path, target: Path) -> int:
    """Copy the price files of a folder; the target holds just these afterwards.

    Args:
        folder: That of the user's price books, which may be missing.
        target: The folder in the backup.

    Returns:
        How many files there are.

    Raises:
        PriceError: If a file cannot be read or written.
    """
    files = sorted(folder.glob("*.toml"))
    with _told(target):
        for gone in {path.name for path in target.glob("*.toml")} - {path.name for path in files}:
            (target / gone).unlink()
        for path in files:
            _copy(path, target / path.name)
    return len(files)


def bring_prices_back(folder: Path, source: Path, *, back: bool = False) -> str:
    """Restore the price files of a backup; a file that is replaced stays beside it under another name.

    Args:
        folder: That of the user's price books, which may be missing.
        source: The folder in the backup, which may be missing.
        back: Whether a file replaces another one of its name; otherwise that is kept.

    Returns:
        What was done, in words; "" if the backup has no prices.

    Raises:
        PriceError: If a file cannot be read or written.
    """
    came, kept, files = 0, [], sorted(source.glob("*.toml"))
    with _told(folder):
        for path in files:
            own = folder / path.name
            differs = own.exists() and own.read_bytes() != path.read_bytes()
            if differs and not back:
                kept.append(path.name)
                continue
            if differs:
                own.replace(own.with_name(f"{own.name}.{now():%Y%m%d-%H%M%S-%f}.aside"))
            came += not own.exists()
            _copy(path, own)
    if kept:
        said = "differ and are" if len(kept) > 1 else "differs and is"
        return f"{', '.join(kept)} {said} kept; --back takes the backup's"
    named = count(len(files), "price file")
    if came:
        return f"{came} of {named} {'was' if came == 1 else 'were'} restored"
    return f"{named} {'is' if len(files) == 1 else 'are'} there already" if files else ""


def _copy(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as draft:
        shutil.copyfile(path, draft)


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    """Raise an error of the disk as one of prices."""
    try:
        yield
    except OSError as error:
        problem = f"The price files cannot be copied: {error.strerror}."
        raise PriceError(problem, where=str(error.filename or folder)) from error
