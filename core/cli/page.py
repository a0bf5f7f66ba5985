"""``page NAME``: the content of a dashboard page, as text, data, a table or a file.

``compare FIRST SECOND``: that of page Compare for two stacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from core.cli.context import lay
from core.cli.deciding import QuestionOptions, deciding
from core.errors import InputError, UnknownNameError
from core.files import write_out
from core.views.pages import PAGES, Page

if TYPE_CHECKING:
    import polars as pl

    from core.report.page import Said


class PageForm(StrEnum):
    """The output format of a section."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"
    HTML = "html"
    MARKDOWN = "md"


TableOption = Annotated[str | None, typer.Option(help="With csv: which of its tables.")]
OutOption = Annotated[Path | None, typer.Option(help="File to write; by default standard output.")]
PageFormOption = Annotated[PageForm, typer.Option("--format", help="How to write it.")]


@deciding
def run(
    ctx: typer.Context,
    question: QuestionOptions,
    *,
    name: Annotated[str, typer.Argument(help="A page, as its address has it: headroom, latency …")],
    section: Annotated[str | None, typer.Option(help="One of its sections; by default the first.")] = None,
    choose: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A choice of the section, by its key in the address; again for several of one key.",
        ),
    ] = None,
    table: TableOption = None,
    out: OutOption = None,
    form: PageFormOption = PageForm.TEXT,
) -> None:
    """Say what a page of the dashboard says: the same sentences, numbers and tables."""
    from core.report.page import say  # noqa: PLC0415 - the charts' library takes long to load

    page = _page(name)
    place = question.on_page(ctx.obj) if page.settings else question.in_store(ctx.obj)
    _print(say(page, section, place, choices_of(choose or ())), table, out, form)


@deciding
def compare(
    ctx: typer.Context,
    question: QuestionOptions,
    *,
    first: Annotated[str, typer.Argument(help="A stack by its name, or by the id or label of its run.")],
    second: Annotated[str, typer.Argument(help="The stack that it is compared with.")],
    table: TableOption = None,
    out: OutOption = None,
    form: PageFormOption = PageForm.TEXT,
) -> None:
    """Say whether one stack is really better than another: paired differences, intervals, p-values."""
    from core.report.page import say  # noqa: PLC0415 - the charts' library takes long to load
    from core.views.compare.sections import pair  # noqa: PLC0415

    view = question.on_page(ctx.obj)
    given = {key: [name] for key, name in pair(view, first, second).items()}
    _print(say(PAGES["compare"], None, view, given), table, out, form)


def _print(said: Said, table: str | None, out: Path | None, form: PageForm) -> None:
    if form is PageForm.TEXT and out is None:
        from core.report.plain import pieces  # noqa: PLC0415

        lay(pieces(said.blocks, more="; --format csv has all"))
        return
    written = _written(said, form, table)
    if out is None:
        typer.echo(written, nl=not written.endswith("\n"))
    else:
        write_out(out, written)


def _page(name: str) -> Page:
    known = [page.name for page in PAGES.values() if page.home]
    if name not in known:
        raise UnknownNameError("page for the command line", name, known)
    return PAGES[name]


def choices_of(given: Sequence[str]) -> dict[str, list[str]]:
    """Return the answers given as KEY=VALUE, by key."""
    choices: dict[str, list[str]] = {}
    for choice in given:
        key, sign, value = choice.partition("=")
        if not sign or not key:
            raise InputError(f"--set {choice!r} is not a choice.", do="Write --set KEY=VALUE.")
        choices.setdefault(key, []).append(value)
    return choices


def _written(said: Said, form: PageForm, table: str | None) -> str:
    from core.report.page import as_file, as_json  # noqa: PLC0415
    from core.views.text import to_csv  # noqa: PLC0415

    if form is PageForm.JSON:
        return as_json(said)
    if form is PageForm.CSV:
        return to_csv(_chosen(said, table)).decode()
    if form is PageForm.TEXT:
        raise InputError("Text goes to standard output.", do="Choose --format md, html, json or csv.")
    return as_file(said, form.value)


def _chosen(said: Said, name: str | None) -> pl.DataFrame:
    """Return all rows and columns of one of a section's tables."""
    tables = said.tables
    if not tables:
        raise InputError(f"No table here: {said.answer}", do="Choose --format text or json.")
    if name is not None and name not in tables:
        raise UnknownNameError("table", name, tables)
    block = tables[name] if name is not None else next(iter(tables.values()))
    return block.rows if block.whole is None else block.whole
