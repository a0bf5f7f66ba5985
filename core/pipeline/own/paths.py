"""Document names matched by path: exactly, by common endings, or without the file extension."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from urllib.parse import unquote


class Paths:
    """Document names, each with its position."""

    def __init__(self, names: Iterable[tuple[str, int]]) -> None:
        self._exact: dict[str, int] = {}
        self._of: dict[str, list[tuple[PurePosixPath, int]]] = {}  # by the last part, with ending and without
        for name, at in names:
            self._exact.setdefault(name, at)
            path = _path(name)
            for last in dict.fromkeys((path.name, path.stem)):
                self._of.setdefault(last, []).append((path, at))

    def find(self, name: str) -> int | None:
        """Return the position of the only document that a name or path can mean; None for none or several."""
        if name in self._exact:
            return self._exact[name]
        path = _path(name)
        alike = self._of.get(path.name, []) or self._of.get(path.stem, [])
        ends = [(other, at) for other, at in alike if _ends_alike(path, other)]
        return ends[0][1] if len(ends) == 1 else None


def _path(name: str) -> PurePosixPath:
    plain = unquote(name.partition("#")[0].partition("?")[0]) if "://" in name else name.partition("#")[0]
    return PurePosixPath(plain.replace("\\", "/").casefold())


def _ends_alike(one: PurePosixPath, other: PurePosixPath) -> bool:
    folders = [[part for part in path.parent.parts if part not in ("/", ".")] for path in (one, other)]
    shorter, longer = sorted(folders, key=len)
    return not shorter or longer[-len(shorter) :] == shorter
