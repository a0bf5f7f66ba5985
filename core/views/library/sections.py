"""Page Library: the contents of the store, deletions, history, and the papers' printed tables."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from core.analysis.cache import cached
from core.analysis.workspace.view import Place
from core.store import LedgerKind
from core.views import columns as cols
from core.views.ask import Ask
from core.views.blocks import Answer, Blocks, Control, Fold, Section, Table, Tabs, Text, Way
from core.views.library import data
from core.views.library.data import FIELDS, fields

TITLES: Mapping[str, LedgerKind] = {"Runs": "run", "Collections": "collection", "Golden sets": "golden_set"}
TABLES: Mapping[LedgerKind, cols.Rows] = {
    "run": cols.Rows(
        "run",
        cols.text("label", "run", width=290),
        "collection_id origin",
        cols.count("n", help="Queries that it ranks, or that its averages rest on."),
        cols.count("passages", "ranked passages"),
        "created_at",
        more=("pool added_revision", cols.text("run_id", "id")),
    ),
    "collection": cols.Rows(
        "collection",
        "collection_id",
        cols.text("name", width=200),
        "runs golden_sets",
        cols.count("queries"),
        cols.count("passages", help="The chunks of its chunkings are counted too."),
        cols.text("source", "from", width=200),
        more="notes",
    ),
    "golden_set": cols.Rows(
        "golden_set",
        "golden_set_id collection_id",
        cols.count("queries", "judged queries"),
        "judgements spans",
        cols.text("judge", width=200),
        "mapping",
        more="notes",
    ),
}
EXPORTS = (
    "To MLflow, or for a choice of runs: `python -m core export http://host:5000 --format mlflow`, "
    "`python -m core export out.zip --format trec --run RUN`."
)

rows_of = cached()(data.rows_of)


def draw(place: Place, ask: Ask) -> Blocks:
    """Yield existing and deleted things, a tab each."""
    yield Answer(*data.answer(place.snapshot))
    if place.snapshot.revision == 0:
        yield Text("The store is empty: add results, or load the demo on page Decision.", "info")
        yield Way("add", "Add results")
        return
    yield Tabs((
        Fold("In the store", held(place, ask)),
        Fold("Fields", of_passages(place)),
        Fold("Deleted", deleted(place)),
        Fold("Download", download(place)),
        Fold("History", history(place)),
        Fold("Published tables", published(ask)),
    ))  # fmt: skip


SECTIONS = (Section("", draw, "What does the store hold, and what happened to it?", bare=True),)


def held(place: Place, ask: Ask) -> Blocks:
    """Yield the things of a kind; runs filtered by collection, or by words in their name."""
    title = ask.one("Kind", TITLES, "kind", quiet=True)
    rows = rows_of(place.snapshot, TITLES[title])
    if title == "Runs" and not rows.is_empty():
        names = [data.ALL, *rows["collection_id"].unique().sort()]
        collection = ask.listed("Collection", names, "held", width=240)
        rows = data.chosen(rows, collection, ask.text("Name contains", "named"))
    if rows.is_empty():
        yield Text(f"No {title.lower()} are here.")
        return
    yield _ticked("held", place, TITLES[title], rows, TITLES[title])


def of_passages(place: Place) -> Blocks:
    """Yield the fields of the open collection's passages, and the form that marks permissions."""
    collection = place.scope.collection_id
    there = collection in set(place.snapshot.collections()["collection_id"])
    rows = fields(place.snapshot, collection) if there else FIELDS.frame()
    if rows.is_empty():
        yield Text("No passage of this workspace has metadata.")
        return
    words = "What filters may ask about. A stack that shows what a permission forbids is not shipped."
    yield Text(words, "caption")
    yield Table(rows, FIELDS)
    yield Control("permissions", {"snapshot": place.snapshot, "collection_id": collection, "rows": rows})


def deleted(place: Place) -> Blocks:
    """Yield deleted things that can be restored."""
    gone = {
        title: rows_of(place.snapshot, TITLES[title], removed=True)
        for title in ("Collections", "Golden sets", "Runs")
    }
    if all(rows.is_empty() for rows in gone.values()):
        yield Text("Nothing is deleted.")
    for title, rows in gone.items():
        if rows.is_empty():
            continue
        yield Text(title, "heading")
        if title == "Collections":
            words = "With a collection come back its runs and golden sets that were not deleted before it."
            yield Text(words, "caption")
        yield _ticked("deleted", place, TITLES[title], rows, f"{TITLES[title]}_deleted")


def _ticked(control: str, place: Place, kind: LedgerKind, rows: pl.DataFrame, name: str) -> Control:
    """Return rows with checkboxes in the dashboard, for deleting or restoring."""
    table = Table(rows, TABLES[kind].named(name))
    given = {"snapshot": place.snapshot, "kind": kind, "table": table}
    return Control(control, given, lambda: iter((table,)))


def download(place: Place) -> Blocks:
    """Yield the form that packs an export, and the commands that do more."""
    yield Control("export", {"place": place})
    yield Text(EXPORTS, "guide")


def history(place: Place) -> Blocks:
    """Yield the revisions, newest first."""
    yield Text("“Data as of revision” under Settings shows the store as it was at any of these.", "caption")
    rows = place.snapshot.revisions().sort("revision", descending=True)
    yield Table(rows, cols.Rows("revisions", "revision at action", cols.text("note", width=400)))


def published(ask: Ask) -> Blocks:
    """Yield one of the papers' tables shipped with the product."""
    tables = data.printed_tables()
    about = "What papers print, number by number, for comparison; nothing of it was measured here."
    name = ask.listed("Table", tables["name"], "printed", about=about)
    row = tables.row(by_predicate=pl.col("name") == name, named=True)
    figures = data.printed(row["file"], row["table"])
    columns = [_printed(values, row["file"]) for values in figures]
    yield Text(f"{name} (data/published/{row['file']})", "caption")
    yield Table(figures, cols.Rows("published", *columns))


def _printed(values: pl.Series, file: str) -> cols.Column:
    column = cols.exact if values.dtype.is_numeric() else cols.text
    return column(
        values.name, data.HEADINGS.get(values.name, values.name), f"Column {values.name} of {file}."
    )
