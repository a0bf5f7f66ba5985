"""Sections that plug-ins add to pages, named ``page.anything`` among their entry points."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import Any

from core.errors import InputError
from core.plugins import blamed, loaded
from core.views.ask import Ask
from core.views.blocks import Blocks, Section
from core.views.pages import PAGES, Page


@cache
def added(page: str) -> tuple[Section, ...]:
    """Return the sections that plug-ins add to a page; those of other pages are not loaded."""
    return tuple(loaded("clq.sections", partial(_plugged, PAGES[page]), part=page).values())


def load_all() -> None:
    """Load the sections of all pages."""
    for page in PAGES:
        added(page)


def _plugged(page: Page, name: str, value: object) -> Section:
    if not isinstance(value, Section) or not value.name or not value.question:
        raise InputError(f"{name} is not a section with a name and a question.")
    if value.name in page.own or value.name in {own.name for own in page.declared()}:
        raise InputError(f"Section {value.name} of {page.title} is there already.")

    def draw(view: Any, ask: Ask) -> Blocks:  # noqa: ANN401 - as of any section
        with blamed(f"{page.name}.{name}"):
            yield from value.draw(view, ask)

    return replace(value, draw=draw)
