import json
from pathlib import Path

import polars as pl
import pytest

from core.analysis.workspace.pools import NOT_STATED, ORDERING
from core.analysis.workspace.scope import Quality
from core.store import Store
from core.views import headroom as page
from core.views.headroom import BARS, MIXED, conventions, headroom
from tests.stores import HOSTILE
from tests.views.made import AT_10, DEMO, PAPER, stacks, table


@pytest.fixture(scope="module")
def paper(published_store: Path) -> pl.DataFrame:
    return table(Store.open(published_store).read(), PAPER)


@pytest.mark.parametrize("scope", [DEMO, PAPER])
def test_the_parts_of_every_stack_add_up_to_one(demo_store: Path, scope):
    rows = table(Store.open(demo_store).read(), scope)
    found = headroom(rows, AT_10, MIXED)
    assert found is not None
    known = rows.filter(pl.col("proc").is_not_null() & pl.col("quality").is_not_null())
    kinds = known.with_columns(pl.col("name").str.replace(r",? K = \d+", "")).unique(["name", "reranker"])
    assert found.table.height == (kinds.height if scope is DEMO else known.height)  # no reranker reads its K
    total = found.table.select(pl.sum_horizontal("quality", "ordering", "retrieval")).to_series()
    assert total.to_list() == pytest.approx([1.0] * found.table.height)
    assert found.table.select(pl.col("ordering", "retrieval") >= 0).to_numpy().all()
    for row in found.table.iter_rows(named=True):
        apart = row["retrieval"] - row["ordering"]
        larger = "missed passages" if apart > 0 else "bad ranking"
        assert row["reading"] == ("both alike" if abs(apart) < 0.02 else larger)


def test_percent_of_the_ceiling_is_the_published_one(published_store: Path):
    rows = table(Store.open(published_store).read(), PAPER)
    hybrid = rows.filter((pl.col("mode") == "hybrid") & (pl.col("reranker") == "rerank-2.5"))
    assert hybrid["pct_proc"].round(3).to_list() == [0.852]


def test_conventions_are_never_mixed_unless_asked(paper: pl.DataFrame):
    offered = conventions(paper)
    assert offered[-1] == MIXED
    assert offered[1:-1] == ["dense@50", "dense@100", "dense@150", "dense@200"]
    for name in offered[:-1]:
        found = headroom(paper, AT_10, name)
        assert found is not None
        assert found.table["pool"].unique().to_list() == [name]
        assert not [label for label in found.figure.layout.yaxis.ticktext if f"({name})" in label]
    mixed = headroom(paper, AT_10, MIXED)
    assert mixed is not None
    assert all("@" in label for label in mixed.figure.layout.yaxis.ticktext)


def test_the_best_stacks_convention_is_offered_first(paper: pl.DataFrame):
    known = paper.filter(pl.col("proc").is_not_null() & pl.col("quality").is_not_null())
    assert conventions(paper)[0] == known.sort("quality", descending=True)["proc_pool"][0]


@pytest.mark.parametrize(
    ("rows", "offered"),
    [
        (stacks(0), []),
        (stacks(2), []),
        (stacks(quality=[0.5], proc=[None]), []),
        (stacks(quality=[None], proc=[0.5]), []),
        (stacks(quality=[0.5], proc=[0.6]), [NOT_STATED]),
        (stacks(quality=[0.5, 0.4], proc=[0.6, 0.6], proc_pool=["a@1", None]), ["a@1", NOT_STATED, MIXED]),
    ],
)
def test_conventions_of_odd_tables(rows: pl.DataFrame, offered: list[str]):
    assert conventions(rows) == offered
    if not offered:
        assert headroom(rows, AT_10, MIXED) is None


@pytest.mark.parametrize(
    ("quality", "proc", "reading"),
    [(0.5, 0.95, "bad ranking"), (0.5, 0.55, "missed passages"), (0.5, 0.755, "both alike"),
     (0.0, 0.0, "missed passages"), (1.0, 1.0, "both alike"), (0.8, 0.79, "missed passages"),
     (0.79, 0.9, "both alike"), (0.852, 1.0, "bad ranking")],  # the last: CLQ paper, Table 4
)  # fmt: skip
def test_the_reading_is_of_the_larger_headroom(quality: float, proc: float, reading: str):
    found = headroom(stacks(quality=[quality], proc=[proc]), AT_10, NOT_STATED)
    assert found is not None
    assert found.table["reading"].to_list() == [reading]
    first = "Perfect retrieval" if reading == "missed passages" else "Perfect ordering"
    said = page.answer(found.explained, AT_10)
    assert said.startswith(f"{first} would add ")
    assert " RA-nWG@10, perfect " in said
    told = page.numbers(found.explained, AT_10)
    assert f"stack 0 reaches {quality:.3f} of a possible 1 (RA-nWG@10, n = 50, pool not stated)" in told


def test_an_unknown_n_is_said_to_be_unknown():
    found = headroom(stacks(quality=[0.5], proc=[0.6], n=[None]), AT_10, NOT_STATED)
    assert found is not None
    assert "n unknown" in page.numbers(found.explained, AT_10)
    assert page.cards(found.explained, AT_10)[0] == ("RA-nWG@10", "0.500", "n unknown")


def test_stacks_that_are_cut_to_one_name_keep_their_own_bars():
    names = [f"{'a very long name of a stack ' * 4}{number}" for number in range(3)]
    found = headroom(stacks(name=names, quality=[0.5] * 3, proc=[0.6] * 3), AT_10, NOT_STATED)
    assert found is not None
    for bars in found.figure.data:
        assert len(set(bars.y)) == 3


def test_many_stacks_are_all_in_the_table_and_the_best_on_the_chart():
    height = BARS + 7
    rows = stacks(quality=[row / height for row in range(height)], proc=[1.0] * height)
    found = headroom(rows, AT_10, NOT_STATED)
    assert found is not None
    assert found.table.height == height
    assert len(found.figure.data[0].y) == BARS
    assert max(found.figure.data[0].x) == max(rows["quality"])


def test_hostile_names_are_escaped():
    rows = stacks(name=HOSTILE, quality=[0.5] * len(HOSTILE), proc=[0.6] * len(HOSTILE), proc_pool=HOSTILE)
    found = headroom(rows, Quality(HOSTILE[0], 3), MIXED)
    assert found is not None
    page = found.figure.to_json().replace("<br>", "").replace("<extra></extra>", "")
    assert "<" not in page


def test_the_chosen_stack_is_explained_and_marked_whatever_its_pool(paper: pl.DataFrame):
    pool, *others = conventions(paper)
    known = pl.col("proc").is_not_null() & pl.col("quality").is_not_null()
    there = known & (pl.col("proc_pool") == others[0])
    row = int(paper.with_row_index("row").filter(there)["row"][0])
    assert conventions(paper, row)[0] == others[0]
    alone, found = headroom(paper, AT_10, pool), headroom(paper, AT_10, pool, row)
    assert alone is not None
    assert found is not None
    assert found.explained["name"] == paper["name"][row]
    assert set(found.table["name"]) == {*alone.table["name"], paper["name"][row]}
    assert [label for label in found.figure.layout.yaxis.ticktext if label.startswith("▸")]
    assert (len(found.figure.layout.shapes), len(alone.figure.layout.shapes)) == (1, 0)


def test_a_poor_chosen_stack_is_among_the_bars():
    height = BARS + 7
    rows = stacks(quality=[row / height for row in range(height)], proc=[1.0] * height)
    found = headroom(rows, AT_10, NOT_STATED, 0)
    assert found is not None
    assert len(found.figure.data[0].y) == BARS + 1
    assert found.figure.layout.yaxis.ticktext[-1] == "▸ stack 0"


def test_a_depth_that_nothing_reads_is_one_row_which_goes_by_the_chosen_name():
    spec = [json.dumps({"mode": "sparse", "reranker": "none", "candidates": k}) for k in (20, 200)]
    names = ["BM25, K = 20", "BM25, K = 200"]
    rows = stacks(quality=[0.5] * 2, proc=[0.9] * 2, n=[64, 64], name=names, spec=spec)
    rows = rows.with_columns(proc_pool=pl.lit("bm25@200"))
    for chosen in (None, 0, 1):
        found = headroom(rows, AT_10, "bm25@200", chosen)
        assert conventions(rows, chosen) == ["bm25@200"]
        assert found is not None
        assert found.table.select("name", "proc", "reading").rows() == [(names[chosen or 0], 0.9, ORDERING)]
    reranked = rows.with_columns(spec=pl.col("spec").str.replace("none", "some"))
    found = headroom(reranked, AT_10, "bm25@200")
    assert found is not None
    assert found.table["name"].to_list() == ["BM25, K = 20", "BM25, K = 200"]
