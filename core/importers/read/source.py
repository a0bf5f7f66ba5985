"""Opens what a user offers (files, folders, zip, tar, packed files, uploads) as archives of members.

Nothing outside the offer is read: links are not followed, names that leave their archive are refused, and
the unpacked size of a file is bounded while it is being read. No file is unpacked under its own name: a
packed tar archive waits in an unnamed file.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import stat
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast, runtime_checkable

from core.errors import InputError
from core.importers.read.member import MIB, Archive, Member, ReadLimits, check_unfolded, sound
from core.importers.read.packing import BEGIN, kind_of_packing
from core.importers.read.text import shown

if TYPE_CHECKING:
    from typing_extensions import Buffer

_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_CLUTTER = ("__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini")
_ENCRYPTED = 0x1
_IN_MEMORY = 64 * MIB  # Content of a packed tar archive beyond this waits on disk
_LONGEST_HEADER = 1 << 16  # Bytes of a tar archive's header
_NAME = 255  # Longest file name, in characters, that file systems accept
WORKBOOK = "xl/workbook.xml"
"""The part that makes a zip archive an Excel workbook: it is one file, not a folder of its parts."""


@runtime_checkable
class NamedContent(Protocol):
    """An upload: a name and bytes, like Streamlit's uploaded files."""

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


Offered = str | os.PathLike[str] | NamedContent


@contextmanager
def opened(offered: Sequence[Offered], limits: ReadLimits) -> Iterator[tuple[Archive, ...]]:
    """Open everything that was offered, and close it again.

    Args:
        offered: Paths and uploads.
        limits: Bounds on reading them.

    Yields:
        One archive for each, in order; its members are readable until the context ends.

    Raises:
        InputError: It is absent, not a regular file, or an archive that is broken, hostile or encrypted.
    """
    with ExitStack() as stack:
        yield tuple(_open(item, limits, stack) for item in offered)


def _open(item: Offered, limits: ReadLimits, stack: ExitStack) -> Archive:
    if isinstance(item, NamedContent) and not isinstance(item, os.PathLike):
        data = item.getvalue()
        name = shown(PurePosixPath(item.name.replace("\\", "/")).name or "upload", _NAME)
        member = Member(name, name, len(data), limits, lambda: io.BytesIO(data))
        return _archive_of(member, "", stack)
    path = Path(cast("str | os.PathLike[str]", item))
    name, parent = shown(path.name or path, _NAME), path.absolute().parent.name
    if path.is_dir():
        return _walk(path, shown(path.absolute().name, _NAME), limits)
    if not path.exists():
        raise InputError("There is no such file or folder.", where=shown(path, 200))
    if not path.is_file():
        raise InputError("This is neither a regular file nor a folder.", where=shown(path, 200))
    member = Member(name, name, path.stat().st_size, limits, lambda: path.open("rb"), path)
    return _archive_of(member, parent, stack)


def _archive_of(member: Member, parent: str, stack: ExitStack) -> Archive:
    with member.opener() as file:
        if file.read(4) in _ZIP:
            return _unzip(member, parent, stack)
    return _untar(member, parent, stack) if _is_tar(member) else Archive(member.name, (member,), parent)


def _is_tar(member: Member) -> bool:
    """Return whether a file, packed or not, begins with a valid tar header (headers carry checksums)."""
    with suppress(InputError, tarfile.HeaderError):
        tarfile.TarInfo.frombuf(member.head[: tarfile.BLOCKSIZE], "utf-8", "surrogateescape")
        return True
    return False


def _walk(folder: Path, name: str, limits: ReadLimits) -> Archive:
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
    for info in infos:
        _check_member(file.name, info)
    if len({info.filename for info in infos}) < len(infos):
        raise InputError("The archive holds two files of the same name.", where=file.name)
    # Overlapping members make the sum of packed sizes exceed the archive: judge by the archive.
    check_unfolded(file.name, sum(info.file_size for info in infos), file.size, file.limits)
    if any(info.filename == WORKBOOK for info in infos):
        return Archive(file.name, (file,), parent)
    members = {
        info.filename: Member(
            f"{file.name}/{shown(info.filename, 200)}",
            shown(info.filename, 200),
            max(info.compress_size, 1),
            file.limits,
            cast("Callable[[], BinaryIO]", partial(packed.open, info)),
        )
        for info in infos
    }
    return _archive(file.name, members, parent)


def _archive(name: str, members: Mapping[str, Member], parent: str) -> Archive:
    """Return an archive of members by their names in it, skipping clutter of operating systems."""
    skipped = [each for each in members if any(part in _CLUTTER for part in each.split("/"))]
    kept = [member for each, member in members.items() if each not in skipped]
    if not kept:
        raise InputError("The archive holds no files.", where=name)
    return Archive(
        name, tuple(sorted(kept, key=lambda member: member.relative)), parent, tuple(map(shown, skipped))
    )


def _check_member(archive: str, info: zipfile.ZipInfo) -> None:
    where = f"{archive}/{shown(info.filename, 200)}"
    _check_name(archive, info.filename)
    if stat.S_ISLNK(info.external_attr >> 16):
        raise InputError("The archive holds a symbolic link.", where=where)
    if info.flag_bits & _ENCRYPTED:
        raise InputError("The archive is encrypted.", where=where, do="Unpack it with its password first.")


def _check_name(archive: str, name: str) -> None:
    if not name:
        raise InputError("The archive holds a file without a name.", where=archive)
    parts = PurePosixPath(name).parts
    if name.startswith("/") or "\\" in name or ".." in parts or re.match("[A-Za-z]:", name):
        problem = "The archive names a file outside itself."
        raise InputError(problem, where=f"{archive}/{shown(name, 200)}")


def _untar(file: Member, parent: str, stack: ExitStack) -> Archive:
    content, size = _laid_out(file, stack)
    infos = list(_infos(file, content))
    for info in infos:
        _check_tarred(file.name, info, size)
    members = {
        info.name.removeprefix("./"): Member(
            f"{file.name}/{shown(info.name.removeprefix('./'), 200)}",
            shown(info.name.removeprefix("./"), 200),
            max(info.size, 1),
            file.limits,
            cast("Callable[[], BinaryIO]", partial(_part, content, info.offset_data, info.size)),
        )
        for info in infos
    }
    if len(members) < len(infos):
        raise InputError("The archive holds two files of the same name.", where=file.name)
    return _archive(file.name, members, parent)


def _laid_out(file: Member, stack: ExitStack) -> tuple[BinaryIO, int]:
    """Return the seekable content of a file, and its size; packed content waits in an unnamed file."""
    with file.opener() as stored:
        packed = kind_of_packing(stored.read(BEGIN))
    if packed is None:
        return stack.enter_context(file.opener()), file.size
    spool = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115
    content = cast(BinaryIO, stack.enter_context(spool))
    with file.stream() as stream:
        shutil.copyfileobj(stream, content, MIB)
    return content, content.tell()


def _infos(file: Member, content: BinaryIO) -> Iterator[tarfile.TarInfo]:
    """Yield the entries of a tar archive, except folders."""
    count = 0
    try:
        with sound(file.name):
            content.seek(0)
            packed = tarfile.open(fileobj=cast(BinaryIO, _Headers(content, file.name)), mode="r:")  # noqa: SIM115
            while (info := packed.next()) is not None:
                packed.__dict__["members"] = []  # otherwise it would keep all of them
                count += 1
                if count > file.limits.members:
                    problem = f"The archive holds more than {file.limits.members:,} files."
                    raise InputError(problem, where=file.name)
                if not info.isdir():
                    yield info
    except tarfile.TarError as error:
        raise InputError(f"The file cannot be read: {shown(error)}.", where=file.name) from error


class _Headers:
    """A tar archive limited to its headers, none of them long."""

    def __init__(self, content: BinaryIO, name: str) -> None:
        self._content, self._name = content, name
        self.seek, self.tell = content.seek, content.tell

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes."""
        if not 0 <= size <= _LONGEST_HEADER:
            raise InputError("A header of the archive is too long.", where=self._name)
        return self._content.read(size)


def _check_tarred(archive: str, info: tarfile.TarInfo, size: int) -> None:
    where = f"{archive}/{shown(info.name, 200)}"
    _check_name(archive, info.name)
    if info.issym() or info.islnk():
        raise InputError("The archive holds a link.", where=where)
    if not info.isreg() or info.issparse():
        raise InputError("The archive holds a device, a pipe or a sparse file.", where=where)
    if info.offset_data + info.size > size:
        raise InputError("The file cannot be read: the archive is cut off.", where=where)


def _part(content: BinaryIO, begin: int, size: int) -> BinaryIO:
    return cast(BinaryIO, io.BufferedReader(_Part(content, begin, size)))


class _Part(io.RawIOBase):
    """A range of bytes of a file, as a file."""

    def __init__(self, content: BinaryIO, begin: int, size: int) -> None:
        super().__init__()
        self._content, self._begin, self._size, self._at = content, begin, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move, and return the new position."""
        self._at = max(0, offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence])
        return self._at

    def readinto(self, buffer: Buffer) -> int:
        """Read into a buffer and return the number of bytes."""
        view = memoryview(buffer).cast("B")
        self._content.seek(self._begin + self._at)
        data = self._content.read(max(0, min(len(view), self._size - self._at)))
        view[: len(data)] = data
        self._at += len(data)
        return len(data)
