"""One unit of costs on every page of a workspace, and no two different costs that read alike."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl
import pytest
from typer.testing import CliRunner

from core.analysis.workspace.view import View
from core.api import open as open_store
from core.cli.app import app
from core.number_format import SHARED_DIGITS
from core.report.page import Said, flat, for_people, say, written
from core.report.plain import pieces
from core.views.blocks import Chart, Fold, Table, Text
from core.views.pages import PAGES
from core.views.text import cost_unit

PLACES = [(page.name, section.name) for page in PAGES.values() if page.settings for section in page.drawn()]
UNITS = re.compile(r"\$[^$|]{0,40}?(?:/|per) (1k|1M|1,000|million)\b")
LIMITS = {"docs-search": {"sla_ms": 900, "budget": 0.00016}, "clq-paper": {"sla_ms": 600, "budget": 2.5}}
PER = {"docs-search": {"1M", "million"}, "clq-paper": {"1k", "1,000"}}
PAPER = "The paper's prices"
"""Title of what quotes a paper, in the paper's unit."""


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> dict[str, View]:
    path = tmp_path_factory.mktemp("shipped") / "store"
    assert CliRunner().invoke(app, ["--store", str(path), "demo"]).exit_code == 0
    results = open_store(path)
    return {name: results.workspace(name).decide(**limits).view for name, limits in LIMITS.items()}


_SAID: dict[tuple[str, str, str], Said] = {}


def said_on(view: View, page: str, section: str) -> Said:
    key = (view.scope.collection_id, page, section)
    if key not in _SAID:
        _SAID[key] = _without_the_papers(view, page, section)
    return _SAID[key]


def _without_the_papers(view: View, page: str, section: str) -> Said:
    said = say(PAGES[page], section, view, {})
    own = [block for block in said.blocks if not (isinstance(block, Fold) and block.title.startswith(PAPER))]
    return Said(said.page, said.section, said.place, tuple(own), said.choices)


def words_of(said: Said) -> Iterator[str]:
    """All that a page says, a line a piece: tables cell by cell under their heads, charts with their axes."""
    for block in flat(said.blocks):
        if isinstance(block, Table):
            laid, shown = for_people(block)
            for column in shown:
                cells = [written(value, column) for value in laid.rows[column.name]]
                yield from (f"{column.label} {cell}" for cell in (column.help, *cells))
            yield from (words for row in block.cells for words in row.values())
        elif isinstance(block, Chart):
            yield block.figure.to_json().replace('"', "\n")
            yield f"{block.alt} {block.caption}"
        elif isinstance(block, Text) or not isinstance(block, Fold):
            yield from (piece for piece in pieces([block]) if isinstance(piece, str))


@pytest.mark.slow
@pytest.mark.parametrize(("page", "section"), PLACES, ids=["/".join(place) for place in PLACES])
def test_a_page_says_costs_in_the_unit_of_its_workspace(views: dict[str, View], page: str, section: str):
    for name, view in views.items():
        assert view.constraints.costs_said == cost_unit(view.table)
        for line in words_of(said_on(view, page, section)):
            assert set(UNITS.findall(line)) <= PER[name], (name, line[:300])


@pytest.mark.slow
def test_every_page_that_shows_costs_was_looked_at(views: dict[str, View]):
    """The test above would pass on silence."""
    seen = {
        (name, place)
        for name, view in views.items()
        for place in PLACES
        if any(UNITS.search(line) for line in words_of(said_on(view, *place)))
    }
    assert {place for _, place in seen} >= {
        ("decision", ""), ("cost", ""), ("confidence", "would it hold"), ("confidence", "what flips it"),
        ("what_if", "scenarios"), ("what_if", "latency targets"),
        ("curves", "by candidate depth"), ("compare", ""),
    }  # fmt: skip
    assert {name for name, _ in seen} == set(LIMITS)


@pytest.mark.slow
@pytest.mark.parametrize("name", LIMITS)
def test_different_costs_of_a_table_read_differently(views: dict[str, View], name: str):
    looked_at = 0
    for place in PLACES:
        for table in (
            block for block in flat(said_on(views[name], *place).blocks) if isinstance(block, Table)
        ):
            laid, shown = for_people(table)
            for column in (column for column in shown if column.form == "usd"):
                each = (
                    laid.rows[column.name]
                    .cast(pl.Float64)
                    .drop_nulls()
                    .round_sig_figs(SHARED_DIGITS)
                    .unique()
                )
                told = {written(value, column) for value in each}
                assert len(told) == len(each), (place, table.name, column.label)
                looked_at += len(each) > 1
    assert looked_at > 3
