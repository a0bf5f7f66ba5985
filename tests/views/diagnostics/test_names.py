"""Diagnoses of names in the store: written, replaced, kept out of the workspaces, exported."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from core.analysis import export
from core.analysis.workspace.choices import workspaces
from core.diagnostics.names.margins import CHANGE
from core.paths import PRICES
from core.prices import load_books
from core.providers.embed import make_embedder
from core.store import Store
from core.views.diagnostics import names
from core.work.names import stored
from core.work.names.job import NamesSpec, batch_of, figures, read_job


def made(queries: int, **more: object):
    spec = NamesSpec.model_validate(
        {"embedder": [{"name": "fake", "dim": [8]}], "runs": 2, "queries": queries, **more}
    )
    job = read_job(spec, load_books(PRICES))
    return batch_of(job, figures(job, make_embedder))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store.open(tmp_path / "store")
    stored.store_results(store, made(5))
    return store


def test_figures_come_back_and_later_ones_take_their_place(store: Store):
    found, checked = names.figures(store.read())
    assert set(found["n"]) <= {10, *range(10)}
    assert [each.passed for each in checked if each.name == "hard_name_mask"] == [True]
    stored.store_results(store, made(7))
    again, _ = names.figures(store.read())
    assert again["n"].max() == 14
    assert store.read().collections().height == 1


@pytest.mark.slow
def test_one_of_several_that_were_written_together_is_replaced(tmp_path: Path):
    store = Store.open(tmp_path / "store")
    stored.store_results(store, made(5, language=["en", "fr"]))
    stored.store_results(store, made(7))
    found, _ = names.figures(store.read())
    assert dict(found.filter(measure="d_name", condition="base").select("language", "n").iter_rows()) == {
        "en": 14, "fr": 10
    }  # fmt: skip
    assert names.figures(Store.open(tmp_path / "empty").read())[0].is_empty()


def test_nothing_is_to_be_decided_there(store: Store):
    assert workspaces(store.read()) == {}


def test_deleted_figures_are_not_shown(store: Store):
    with store.write("delete") as writer:
        writer.remove("collection", ["names-fake-8-en"])
    assert names.figures(store.read())[0].is_empty()
    stored.store_results(store, made(7))
    assert names.figures(store.read())[0]["n"].max() == 14


def test_export_holds_them(store: Store):
    batch = export.batch_of(store.read())
    assert batch.frames["diagnostics"].lazy().collect().equals(store.read().diagnostics(["names-fake-8-en"]))


def test_beside_the_paper(store: Store):
    rows = names.both(names.figures(store.read())[0])
    table = names.wide(rows, "en")
    assert table.columns == [
        "condition", "fake 8 d", "text-embedding-3-large", "voyage-3.5", "± fake 8 d", "what",
    ]  # fmt: skip
    assert table["condition"].to_list() == list(names.ORDER[1:])
    gibberish = table.row(1, named=True)
    assert (gibberish["text-embedding-3-large"], gibberish["voyage-3.5"]) == (-76.9, -68.0)
    ranked = names.ranking(rows, "en")
    assert ranked["rank"].to_list() == [1, None, None]
    assert set(ranked["label"]) == {"fake 8 d", "text-embedding-3-large", "voyage-3.5"}


def test_what_the_page_says(store: Store):
    found, checked = names.figures(store.read())
    rows = names.both(found)
    lead = names.leading(rows, "en")
    assert lead["label"] == "fake 8 d"
    assert lead["label"] in " ".join(names.answer(rows, "en"))
    assert names.answer(rows, "fr") == (names.NOTHING, "")
    assert names.cards(rows, "fr") == []
    shown = {label: value for label, value, _ in names.cards(rows, "en")}
    assert float(shown["Name signal"].replace("−", "-")) == pytest.approx(lead["d_name"], abs=5e-4)
    assert len(shown) <= 4
    assert names.checked(checked)["result"].to_list() == ["✓ passed", "✓ passed"]
    drawn = {trace.name: trace for trace in names.chart(rows, "en").data}
    assert set(drawn) == {"fake 8 d", "text-embedding-3-large (paper)", "voyage-3.5 (paper)"}
    assert drawn["voyage-3.5 (paper)"].marker.symbol.endswith("-open")
    change = found.filter(measure="dd_name_pct").sort("condition")
    assert set(drawn["fake 8 d"].x) == set(change["value"])


def test_names_of_ones_own_stay_apart(store: Store, tmp_path: Path):
    own = tmp_path / "*parts*.csv"
    own.write_text("entity,topic,title\n" + "".join(f"{e},{t},{e}{t}\n" for e in "abcd" for t in "xy"))
    before, _ = names.figures(store.read())
    stored.store_results(store, made(5, entities=str(own)))
    after, _ = names.figures(store.read())
    assert after["language"].unique().sort().to_list() == ["en", "en · *parts*.csv"]
    assert after.filter(language="en").equals(before, null_equal=True)
    rows = names.both(after)
    assert set(names.ranking(rows, "en · *parts*.csv")["basis"]) == {"measured"}
    assert names.spoken("en · *parts*.csv") == "English · *parts*.csv"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (-40.0, "cut the name signal by 40 %"),
        (3.0, "cut nothing"),
        (-0.0, "cut nothing"),
        (-120.0, "by 100 %"),
    ],
)
def test_a_margin_that_grows_is_not_said_to_be_taken(store: Store, change: float, said: str):
    rows = names.both(names.figures(store.read())[0])
    near = (pl.col("condition") == "edit_distance_near_miss") & (pl.col("measure") == CHANGE)
    changed = rows.with_columns(value=pl.when(near).then(change).otherwise("value"))
    assert said in " ".join(names.answer(changed, "en"))
