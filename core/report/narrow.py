"""Tables on a narrow terminal: columns that do not fit are left out, so that no word is broken."""

from __future__ import annotations

from rich.console import Console
from rich.measure import Measurement
from rich.table import Column, Table


def fit(table: Table, console: Console) -> list[str]:
    """Make a table as wide as a terminal at most; return the headings of the columns left out."""
    needs = [(column, _measured(column, console)) for column in table.columns]
    left = []
    while len(needs) > 1 and _spare(needs, console) < 0:
        widest = max(needs[1:], key=lambda need: need[1].minimum)
        out = widest if widest[1].minimum > console.width // 2 else needs[-1]
        needs.remove(out)
        left.append(out[0])
    shown = [column for column, _ in needs]
    headings = [str(column.header) for column in table.columns if column in left]
    table.columns[:] = shown
    spare = max(0, _spare(needs, console))
    for place, (column, need) in enumerate(sorted(needs, key=lambda need: need[1].span)):
        more = min(need.span, spare // (len(needs) - place))
        column.width = need.minimum + more
        spare -= more
    return headings


def _measured(column: Column, console: Console) -> Measurement:
    """Return the width of a column's longest word, and of its longest cell."""
    sizes = [Measurement.get(console, console.options, cell) for cell in (column.header, *column.cells)]
    most = max(size.maximum for size in sizes)
    return Measurement(most if column.no_wrap else max(size.minimum for size in sizes), most)


def _spare(needs: list[tuple[Column, Measurement]], console: Console) -> int:
    """Return how many characters of a line are left; each column takes three for padding and separator."""
    return console.width - sum(need.minimum + 3 for _, need in needs) - 1
