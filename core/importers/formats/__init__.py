"""Every format that can be imported. A new one is its file here and its tests; or a plug-in."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages

from core.errors import InputError
from core.importers.base import Format
from core.plugins import loaded
from core.tables import TABLES


def _declared() -> Iterator[Format]:
    """Yield the formats that modules of this package declare: subclasses of `Format` with a name."""
    for module in walk_packages(__path__, f"{__name__}."):
        for each in vars(import_module(module.name)).values():
            mine = isinstance(each, type) and issubclass(each, Format) and each.__module__ == module.name
            if mine and "name" in vars(each):
                yield each()


def _place(form: Format) -> tuple[bool, bool, str]:
    """Return what formats are ordered by: tables of any tool last, formats of runs before the others."""
    return form.maps_columns, "rankings" not in form.takes, form.title.casefold()


_OWN = tuple(sorted(_declared(), key=_place))


def _plugged(name: str, value: object) -> Format:
    """Return the format of a plug-in, given as a subclass of `Format` or an instance."""
    form = value() if isinstance(value, type) else value
    if not isinstance(form, Format):
        raise InputError(f"{name} is not a subclass of Format.")
    lacking = [part for part in ("name", "title", "takes", "recognised") if not getattr(form, part, None)]
    if lacking or (unknown := set(form.takes) - set(TABLES)):
        raise InputError(f"{name} lacks {', '.join(lacking)}." if lacking else f"No table {min(unknown)!r}.")
    if any(form.name == own.name for own in _OWN):
        raise InputError(f"Format {form.name} is there already.", do="Give it another name.")
    return form


PLUGGED = tuple(loaded("clq.importers", _plugged).values())
"""The formats that plug-ins provide."""
FORMATS = (*PLUGGED, *_OWN)
"""Every format; plug-ins' formats are asked first, because tables of any tool look alike."""
