"""How the library's objects display themselves: as blocks, drawn by a notebook or a terminal."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Console

from core.views.blocks import Answer, Block

if TYPE_CHECKING:
    from rich.table import Table

_WIDTH = 120  # Characters of a line of `repr`


class Shown(ABC):
    """An object that displays itself as blocks; others' texts in them are never read as markup."""

    @property
    @abstractmethod
    def blocks(self) -> tuple[Block, ...]:
        """Its content, as in the dashboard and the commands."""

    @property
    def sentence(self) -> str:
        """Its first sentence."""
        return next((block.sentence for block in self.blocks if isinstance(block, Answer)), "")

    @property
    def _kind(self) -> str:
        return type(self).__name__

    @property
    def _made(self) -> str:
        return ""

    def _repr_html_(self) -> str:
        from core.report.page import as_text  # noqa: PLC0415 - the templates' library

        return as_text("notebook", self.blocks, kind=self._kind, sentence=self.sentence, made=self._made)

    def __rich_console__(self, console: Console, _: object) -> Iterator[str | Table]:
        from rich.text import Text  # noqa: PLC0415

        from core.report.narrow import fit  # noqa: PLC0415
        from core.report.plain import pieces  # noqa: PLC0415

        left: list[str] = []
        for piece in pieces(self.blocks):
            if not isinstance(piece, str):
                left += fit(piece, console)
            yield Text(piece) if isinstance(piece, str) else piece  # type: ignore[misc]
        if left:
            names = ", ".join(dict.fromkeys(left))
            yield Text(f"Left out at {console.width} columns: {names}.")  # type: ignore[misc]

    def __repr__(self) -> str:
        text = io.StringIO()
        # In a notebook, a console would display the text instead of returning it.
        console = Console(file=text, width=_WIDTH, highlight=False, color_system=None, force_jupyter=False)
        console.print(self)
        return "\n".join(line.rstrip() for line in text.getvalue().splitlines()).strip("\n")
