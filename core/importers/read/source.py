"""Opens what a user offers: files, folders, .gz, .zip and uploads, as archives of readable members.

Nothing is unpacked to disk and nothing outside the offer is read: links are not followed, names that leave
their archive are refused, and what a compressed file may unfold to is bounded while it is being read.
"""

from __future__ import annotations

import io
import os
import re
import stat
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Protocol, cast, runtime_checkable

from core.errors import InputError
from core.importers.read.member import Archive, Limits, Member, check_unfolded, sound
from core.importers.read.text import shown

_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_CLUTTER = ("__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini")
_ENCRYPTED = 0x1
_NAME = 255  # Characters of a file name, as many as file systems take
WORKBOOK = "xl/workbook.xml"
"""The part that makes a zip archive an Excel workbook: it is one file, not a folder of its parts."""


@runtime_checkable
class Named(Protocol):
    """An upload: a name and bytes. Streamlit's uploaded files are of this shape."""

    name: str

    def getvalue(self) -> bytes:
        """Return all bytes of the upload."""


@dataclass(slots=True)
class Upload:
    """Bytes with a file name."""

    name: str
    data: bytes = field(repr=False)

    def getvalue(self) -> bytes:
        """Return all bytes of the upload."""
        return self.data


Offered = str | os.PathLike[str] | Named


@contextmanager
def opened(offered: Sequence[Offered], limits: Limits) -> Iterator[tuple[Archive, ...]]:
    """Open everything that was offered, and close it again.

    Args:
        offered: Paths and uploads.
        limits: Bounds on reading them.

    Yields:
        One archive for each, in order; its members are readable until the context ends.

    Raises:
        InputError: Absent, not a regular file, or an archive that is broken, hostile or encrypted.
    """
    with ExitStack() as stack:
        yield tuple(_open(item, limits, stack) for item in offered)


def _open(item: Offered, limits: Limits, stack: ExitStack) -> Archive:
    if isinstance(item, Named) and not isinstance(item, os.PathLike):
        data = item.getvalue()
        name = shown(PurePosixPath(item.name.replace("\\", "/")).name or "upload", _NAME)
        member = Member(name, name, len(data), limits, lambda: io.BytesIO(data))
        return _unzip(member, "", stack) if data.startswith(_ZIP) else Archive(name, (member,))
    path = Path(cast("str | os.PathLike[str]", item))
    name, parent = shown(path.name or path, _NAME), path.absolute().parent.name
    if path.is_dir():
        return _walk(path, shown(path.absolute().name, _NAME), limits)
    if not path.exists():
        raise InputError("There is no such file or folder.", where=shown(path, 200))
    if not path.is_file():
        raise InputError("This is neither a regular file nor a folder.", where=shown(path, 200))
    member = Member(name, name, path.stat().st_size, limits, lambda: path.open("rb"), path)
    with member.opener() as file:
        zipped = file.read(4) in _ZIP
    return _unzip(member, parent, stack) if zipped else Archive(name, (member,), parent)


def _walk(folder: Path, name: str, limits: Limits) -> Archive:
    members: list[Member] = []
    skipped: list[str] = []
    for root, folders, files in os.walk(folder, followlinks=False):
        skipped += [shown(child) for child in folders if (Path(root) / child).is_symlink()]
        folders[:] = sorted(child for child in folders if not child.startswith(".") and child not in _CLUTTER)
        for file in sorted(files):
            path = Path(root) / file
            if path.is_symlink() or not path.is_file() or file in _CLUTTER:
                skipped.append(shown(file))
                continue
            relative = shown(path.relative_to(folder).as_posix(), 200)
            size = path.stat().st_size
            opener = cast("Callable[[], BinaryIO]", partial(path.open, "rb"))
            members.append(Member(f"{name}/{relative}", relative, size, limits, opener, path))
            if len(members) > limits.members:
                raise InputError(f"The folder holds more than {limits.members:,} files.", where=name)
    if not members:
        raise InputError("The folder holds no files.", where=name)
    return Archive(name, tuple(sorted(members, key=lambda member: member.relative)), skipped=tuple(skipped))


def _unzip(file: Member, parent: str, stack: ExitStack) -> Archive:
    with sound(file.name):
        packed = stack.enter_context(zipfile.ZipFile(stack.enter_context(file.opener())))
    infos = [info for info in packed.infolist() if not info.filename.endswith("/")]
    if len(infos) > file.limits.members:
        raise InputError(f"The archive holds more than {file.limits.members:,} files.", where=file.name)
    kept = [info for info in infos if not any(part in _CLUTTER for part in info.filename.split("/"))]
    for info in infos:
        _check_member(file.name, info)
    if len({info.filename for info in infos}) < len(infos):
        raise InputError("The archive holds two files of the same name.", where=file.name)
    # Overlapping members make the sum of the packed sizes larger than the archive: judge by the archive.
    check_unfolded(file.name, sum(info.file_size for info in infos), file.size, file.limits)
    if any(info.filename == WORKBOOK for info in infos):
        return Archive(file.name, (file,), parent)
    if not kept:
        raise InputError("The archive holds no files.", where=file.name)
    members = [
        Member(
            f"{file.name}/{shown(info.filename, 200)}",
            shown(info.filename, 200),
            max(info.compress_size, 1),
            file.limits,
            cast("Callable[[], BinaryIO]", partial(packed.open, info)),
        )
        for info in kept
    ]
    skipped = tuple(shown(info.filename) for info in infos if info not in kept)
    return Archive(file.name, tuple(sorted(members, key=lambda member: member.relative)), parent, skipped)


def _check_member(archive: str, info: zipfile.ZipInfo) -> None:
    name, where = info.filename, f"{archive}/{shown(info.filename, 200)}"
    parts = PurePosixPath(name).parts
    if not name:
        raise InputError("The archive holds a file without a name.", where=archive)
    if name.startswith("/") or "\\" in name or ".." in parts or re.match("[A-Za-z]:", name):
        raise InputError("The archive names a file outside itself.", where=where)
    if stat.S_ISLNK(info.external_attr >> 16):
        raise InputError("The archive holds a symbolic link.", where=where)
    if info.flag_bits & _ENCRYPTED:
        raise InputError("The archive is encrypted.", where=where, do="Unpack it with its password first.")
