"""A section of a page of the dashboard, in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from core.api.shown import Shown
from core.api.typed import typed
from core.errors import InputError, UnknownNameError
from core.files import write_out
from core.views import pages
from core.views.blocks import Block
from core.views.pages import PAGES

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from core.analysis.workspace.view import Place
    from core.report.page import Said

GivenChoices = Mapping[str, object]
"""Answers to a section's choices, by their URL key: one each, or a list of several."""
_ENDINGS = {".html": "html", ".md": "md", ".json": "json"}


@dataclass(frozen=True, repr=False)
class Page(Shown):
    """The content of a page's section for a workspace: blocks, and their tables and charts by name."""

    said: Said

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Its content, block by block; see `clq.views.blocks`."""
        return self.said.blocks

    @property
    def sentence(self) -> str:
        """Its answer."""
        return self.said.answer

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """Its tables by name, with all rows and columns."""
        return {
            name: block.rows if block.whole is None else block.whole
            for name, block in self.said.tables.items()
        }

    @property
    def figures(self) -> dict[str, go.Figure]:
        """Its charts by name."""
        from core.report.page import flat  # noqa: PLC0415
        from core.views.blocks import Chart  # noqa: PLC0415

        return {block.name: block.figure for block in flat(self.blocks) if isinstance(block, Chart)}

    @property
    def choices(self) -> dict[str, Mapping[str, Any]]:
        """The section's choices, by key: label, value, options, help."""
        return dict(self.said.choices)

    @property
    def data(self) -> dict[str, Any]:
        """All of it as plain data, in the shape of `docs/reference/json.md`."""
        from core.report.page import as_data  # noqa: PLC0415

        return dict(as_data(self.said))

    @typed
    def save(self, path: str | Path, *, replace: bool = False) -> Path:
        """Write it as one HTML file that needs no network, as Markdown or as JSON.

        Args:
            path: A new file ending in .html, .md or .json.
            replace: Whether to replace an existing file.

        Raises:
            InputError: If the file cannot be written there.
        """
        from core.report.files import destination  # noqa: PLC0415
        from core.report.page import as_file, as_json  # noqa: PLC0415

        file = Path(path).expanduser()
        form = _ENDINGS[destination(file, tuple(_ENDINGS), overwrite=replace)]
        write_out(file, as_json(self.said) if form == "json" else as_file(self.said, form))
        return file

    @property
    def _kind(self) -> str:
        return " · ".join(filter(None, (self.said.page.title, self.said.section)))

    @property
    def _made(self) -> str:
        from core.report.page import made_of  # noqa: PLC0415

        return made_of(self.said.place)


def page_of(place: Place, name: str, section: str | None, choices: GivenChoices | None) -> Page:
    """Return a page's content for a workspace.

    Raises:
        UnknownNameError: If there is no such page or section, or no such choice in it.
        InputError: If an answer isn't one of the options.
    """
    from core.report.page import say  # noqa: PLC0415

    given = {key: _texts(key, value) for key, value in (choices or {}).items()}
    return Page(say(_page(name), section, place, given))


def reads_results(name: str) -> bool:
    """Return whether a page reads the results of a workspace.

    Raises:
        UnknownNameError: If there is no such page.
    """
    return _page(name).settings


def _page(name: str) -> pages.Page:
    known = [page.name for page in PAGES.values() if page.home]
    if name not in known:
        raise UnknownNameError("page", name, known)
    return PAGES[name]


def _texts(key: str, value: object) -> Sequence[str]:
    if isinstance(value, Mapping):
        raise InputError(f"{key}: a mapping is not a choice.", do="Give a text, a number or a list of them.")
    return [str(one) for one in value] if isinstance(value, list | tuple | set) else [str(value)]
