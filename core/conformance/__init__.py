"""Checks of plug-ins: a suite for each kind, which finds what a broken one breaks.

Each suite yields a sentence for everything that is broken, and nothing if all is well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from core.conformance.formats import format_faults
from core.conformance.indexes import index_faults
from core.conformance.measures import measure_faults
from core.conformance.models import model_faults
from core.conformance.sections import section_faults
from core.plugins import PlugIn
from core.views.pages import PAGES

_SUITES: Mapping[str, Callable[[PlugIn], Iterator[str]]] = MappingProxyType(
    {
        "clq.measures": lambda plug_in: measure_faults(plug_in.made),
        "clq.importers": lambda plug_in: format_faults(plug_in.made),
        "clq.providers": lambda plug_in: model_faults(plug_in.name.partition(".")[2], plug_in.made),
        "clq.indexes": lambda plug_in: index_faults(plug_in.name, plug_in.made),
        "clq.sections": lambda plug_in: section_faults(PAGES[plug_in.name.partition(".")[0]], plug_in.made),
    }
)


def faults(plug_in: PlugIn) -> Iterator[str]:
    """Yield the faults of a plug-in, and nothing if it was not loaded."""
    return iter(()) if plug_in.made is None else _SUITES[plug_in.group](plug_in)
