"""Sections that plug-ins add to pages, named ``page.anything`` among their entry points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from core.errors import InputError
from core.plugins import blamed, loaded
from core.views.ask import Ask
from core.views.blocks import Blocks, Section
from core.views.pages import PAGES


def _plugged(name: str, value: object) -> Section:
    page = PAGES.get(name.partition(".")[0])
    if page is None:
        raise InputError(f"{name} begins with no page.", do=f"Pages: {', '.join(PAGES)}.")
    if not isinstance(value, Section) or not value.name or not value.question:
        raise InputError(f"{name} is no section with a name and a question.")
    if value.name in page.own or value.name in {own.name for own in page.declared()}:
        raise InputError(f"Section {value.name} of {page.title} is there already.")

    def draw(view: Any, ask: Ask) -> Blocks:  # noqa: ANN401 - as of any section
        with blamed(name):
            yield from value.draw(view, ask)

    return replace(value, draw=draw)


_LOADED = loaded("clq.sections", _plugged)

ADDED: Mapping[str, tuple[Section, ...]] = MappingProxyType(
    {
        page: tuple(one for name, one in _LOADED.items() if name.partition(".")[0] == page)
        for page in {name.partition(".")[0] for name in _LOADED}
    }
)
"""Sections by the page that they stand on, behind its own."""
