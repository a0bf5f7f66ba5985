"""A section of a page as data, as one HTML file or as Markdown: the same blocks as in the dashboard."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date, datetime
from functools import partial
from typing import Any

from core.analysis.workspace.view import Place, View
from core.bidi import escaped
from core.errors import UnknownNameError
from core.number_format import CostUnit
from core.records import JsonMap
from core.report import render, tables
from core.views import text
from core.views.ask import Given
from core.views.blocks import (
    Answer,
    Block,
    Card,
    Cards,
    Chart,
    Comparison,
    Control,
    Fold,
    Passage,
    Passages,
    SideBySide,
    Table,
    Tabs,
    Way,
)
from core.views.columns import Column
from core.views.pages import Page, now_at
from core.views.units import for_people as in_unit

FORMAT = "clq-explorer/page"
VERSION = 1
"""Version of the JSON described in `page.schema.json`: increases if a field changes meaning or is removed."""
_IN_NOTEBOOK = 30  # Maximum rows of a table in a notebook; its frame has all rows
ROWS = 300  # Maximum rows of a table in HTML and Markdown; JSON and CSV have all rows
_WHOLE = 1e5  # From here on six significant digits include no decimals


@dataclass(frozen=True)
class Said:
    """The blocks that a section yields for a workspace."""

    page: Page
    section: str  # "" if the page has no sections
    place: Place
    blocks: tuple[Block, ...]
    choices: Mapping[str, JsonMap]  # its choices, by key: label, value, options, help

    @property
    def answer(self) -> str:
        """Its first sentence, or the title of the page if it has none."""
        answers = [block.sentence for block in self.blocks if isinstance(block, Answer)]
        return answers[-1] if answers else self.page.title

    @property
    def tables(self) -> dict[str, Table]:
        """Its tables by name, including those behind folds."""
        return {block.name: block for block in flat(self.blocks) if isinstance(block, Table)}


def say(page: Page, section: str | None, place: Place, given: Mapping[str, Sequence[str]]) -> Said:
    """Run a section of a page on a workspace and return its blocks.

    Args:
        section: Its name; None = the first. An old name redirects to where its content moved.
        given: Answers to its choices, by key.

    Raises:
        UnknownNameError: If the page has no such section, or the section has no choice of that key.
        InputError: If an answer isn't one of the options.
    """
    now = now_at(page.name, section or "")
    page, section = (now[0], now[1] or None) if now else (page, section)
    sections = page.drawn()
    named = {part.name: part for part in sections}
    if section is not None and section not in named:
        raise UnknownNameError("section", section, [name for name in named if name])
    chosen, ask = sections[0] if section is None else named[section], Given(given)
    said = text.cost_unit(place.table) if isinstance(place, View) else None
    blocks = _settled(kept(chosen.draw(place, ask), said))
    if now is None:  # the section before it moved had other choices
        ask.unasked()
    return Said(page, chosen.name, place, blocks, ask.asked)


def kept(blocks: Iterable[Block], said: CostUnit | None = None) -> Iterator[Block]:
    """Yield blocks once, including those behind folds; side-by-side blocks follow each other.

    Args:
        said: Their page's cost unit.
    """
    for block in blocks:
        match block:
            case Tabs(folds):
                yield from kept(folds, said)
            case SideBySide(left, right):
                yield from kept((*left, *right), said)
            case Control(others=others):
                yield from kept(others() if others else (), said)
            case Fold(title, folded, late):
                yield Fold(title, tuple(kept(folded, said)), late)
            case Table():
                yield replace(block, said=block.said or said)
            case _:
                yield block


def _settled(blocks: Iterable[Block]) -> tuple[Block, ...]:
    """Drop the answers and cards that later ones replaced."""
    kept: dict[object, Block] = {}
    for place, block in enumerate(blocks):
        kept[type(block) if isinstance(block, Answer | Cards) else place] = block
    return tuple(kept.values())


def flat(blocks: Iterable[Block]) -> list[Block]:
    """Return the blocks in order, including those behind folds."""
    return [one for block in blocks for one in (flat(block.blocks) if isinstance(block, Fold) else [block])]


def as_data(said: Said) -> JsonMap:
    """Return a section's output as plain data; see `page.schema.json`."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "page": said.page.name,
        "section": said.section or None,
        "workspace": workspace_data(said.place),
        "choices": dict(said.choices),
        "blocks": [block_data(block) for block in said.blocks],
    }


def workspace_data(place: Place) -> JsonMap:
    """Return the origin of the numbers, by name."""
    view = place if isinstance(place, View) else None
    return {
        "collection": place.scope.collection_id or None,
        "golden_set": place.scope.golden_set_id,
        "revision": place.snapshot.revision,
        "quality": view and view.quality.name,
        "latency": view and view.latency.name,
        "prices": view and view.book.title,
        "clusters": view and _groups(view),
        "remarks": list(view.compared.remarks) if view else [],
    }


def _groups(view: View) -> JsonMap | None:
    """Return the numbers of queries and groups behind the figures, or None if queries aren't grouped."""
    rows = view.table.drop_nulls("clusters").sort("n", descending=True)
    return rows.select("n", "clusters", kind="cluster_kind").row(0, named=True) if rows.height else None


def as_json(said: Said) -> str:
    """Return `as_data` as JSON text."""
    return escaped(json.dumps(as_data(said), ensure_ascii=False, indent=2, allow_nan=False))


def block_data(block: Block) -> JsonMap:
    """Return a block by its kind and its fields; empty values are null."""
    own: JsonMap
    match block:
        case Answer(caveats=caveats):
            own = {"caveats": {label: words for label, words in caveats.items() if words}}
        case Cards(cards):
            own = {"cards": _cards(cards)}
        case Comparison(numbers):
            own = {"numbers": [{"title": title, "cards": _cards(cards), "apart": _cards(apart)}
                               for title, cards, apart in numbers]}  # fmt: skip
        case Passages(passages, judged):
            own = {"passages": [_passage(passage, judged) for passage in passages]}
        case Chart(figure):
            own = {"figure": render.figure_data(figure)}
        case Table():
            own = _table(block)
        case Fold(_, blocks):
            own = {"blocks": [block_data(inner) for inner in blocks]}
        case Way(settings=settings):
            own = {"settings": {key: _value(value) for key, value in settings.items()}}
        case _:
            own = {}
    words = {field.name: getattr(block, field.name) for field in fields(block)}
    texts = {name: value or None for name, value in words.items() if isinstance(value, str)}
    return {"kind": type(block).__name__.lower(), **texts, **own}


def _cards(cards: Sequence[Card]) -> list[JsonMap]:
    return [dict(zip(("label", "value", "note"), one, strict=True)) for one in cards]


def _passage(passage: Passage, judged: bool) -> JsonMap:
    grade = {"grade": passage.grade} if judged else {}
    said = {name: getattr(passage, name) or None for name in ("rank", "title", "mark", "note", "text")}
    return {**said, **grade}


def _table(block: Table) -> JsonMap:
    shown = block.of.every
    about = [{"name": column.name, "label": column.label, "form": column.form, "help": column.help or None}
             for column in shown]  # fmt: skip
    rows = block.rows.select(column.name for column in shown).to_dicts()
    written = [{name: _value(value) for name, value in row.items()} for row in rows]
    return {"name": block.name, "columns": about, "rows": written}


def _value(value: object) -> object:
    """Return a value in its JSON form; unknown is null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, datetime | date):
        return value.isoformat()
    return value


def written(value: Any, column: Column) -> str:  # noqa: ANN401
    """Format a column's value for people, or return "" if it is unknown."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M")
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _NUMBERS.get(column.form, _number)(value, column.digits)
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _number(value: float, digits: int) -> str:
    return f"{value:,.{digits}f}".replace("-", text.MINUS)


_NUMBERS: Mapping[str, Callable[[float, int], str]] = {
    "score": lambda value, _: text.score(value),
    "signed": lambda value, digits: text.signed(value, lambda size: _number(size, digits)),
    "change": lambda value, _: text.signed(value, lambda size: f"{size:.3g}"),
    "share": lambda value, _: text.percent(value),
    "usd": text.usd,
    "exact": lambda value, _: _number(value, 0) if abs(value) >= _WHOLE else f"{value:,.6g}",
}


def for_people(block: Table) -> tuple[Table, tuple[Column, ...]]:
    """Return a table in human-readable form: its non-empty columns, costs in its page's unit."""
    rows, shown = in_unit(block.rows, _holding(block), block.said)
    return replace(block, rows=rows), shown


def _holding(block: Table) -> tuple[Column, ...]:
    """Return the non-empty columns of a table, or all if it has no rows."""
    return tuple(
        column
        for column in block.of.every
        if block.rows.is_empty() or block.rows[column.name].null_count() < block.rows.height
    )


def cells(block: Table, most: int) -> list[JsonMap]:
    """Return the first rows of a table; a number formatted differently from its column becomes that text."""
    rows = block.rows.head(most).to_dicts()
    said = block.cells[:most] or [{}] * len(rows)
    return [{**row, **words} for row, words in zip(rows, said, strict=True)]


def laid_out(block: Table, most: int = ROWS) -> tables.Table | None:
    """Return the first rows of a table in the form of the files' templates."""
    block, shown = for_people(block)
    laid = tables.table(cells(block, most), [_laid(column) for column in shown], most, sortable=True)
    return laid and replace(laid, left_out=max(0, block.rows.height - most))


def _laid(column: Column) -> tables.Column:
    def cell(row: Mapping[str, Any]) -> tables.Cell:
        value = row[column.name]
        number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        return tables.Cell(written(value, column), float(value) if number else None)

    return tables.Column(column.label, cell, number=column.form not in ("text", "list", "date", "time"))


def as_file(said: Said, form: str) -> str:
    """Render a section's output as one file that needs no network ("html"), or as Markdown ("md")."""
    kind = f"{said.page.title}{f', {said.section}' if said.section else ''}"
    title = f"{said.page.title} · CLQ Explorer"
    made = made_of(said.place)
    return as_text(form, said.blocks, kind=kind, sentence=said.answer, made=made, title=title)


def made_of(place: Place) -> str:
    """State the origin of the numbers: collection, revision of the store, prices."""
    ground = [place.scope.collection_id, f"revision {place.snapshot.revision}"]
    ground += [f"prices {place.book.title}"] if isinstance(place, View) else []
    return f"{', '.join(filter(None, ground))}."


def as_text(
    form: str,
    blocks: Sequence[Block],
    *,
    kind: str,
    sentence: str,
    made: str,
    title: str = "",
    link: str = "",
) -> str:
    """Render blocks as a file ("html"), as Markdown ("md") or as a notebook fragment ("notebook").

    Args:
        kind: The kind of content, above the answer.
        sentence: The answer, above the blocks.
        made: The origin of the blocks, below them.
        link: URL that opens them in a dashboard; "" = none.
    """
    charts = {block.name: render.Chart(block.figure, block.alt, block.caption)
              for block in flat(blocks) if isinstance(block, Chart)}  # fmt: skip
    context: JsonMap = {
        "title": title,
        "kind": kind,
        "heading": sentence,
        "blocks": blocks,
        "laid_out": partial(laid_out, most=_IN_NOTEBOOK if form == "notebook" else ROWS),
        "cards": pairs,
        "marked": marked,
        "made": made,
        "link": link,
    }
    if form == "notebook":
        return render.part("blocks.j2", charts, **context)
    fill = render.html if form == "html" else render.markdown
    return fill("blocks.j2", charts, **context)


def pairs(cards: Sequence[Card]) -> list[tuple[str, str]]:
    """Return cards as pairs of the label and the rest."""
    return [(label, f"{value} ({note})" if note else value) for label, value, note in cards]


def marked(passage: Passage, judged: bool) -> str:
    """Return the line above a passage: ``#1 · grade 4 · lost · Title``."""
    rank = "" if passage.rank is None else f"#{passage.rank}"
    grade = "unjudged" if passage.grade is None else f"grade {passage.grade}"
    return " · ".join(filter(None, (rank, grade if judged else "", passage.mark, passage.title)))
