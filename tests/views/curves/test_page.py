from pathlib import Path

import polars as pl
import pytest

from core.analysis.scoring.table import score_table
from core.analysis.workspace.scope import Quality
from core.analysis.workspace.stacks import runs_in
from core.metrics import Measure
from core.store import Snapshot, Store
from core.views import theme
from core.views.curves import page
from core.views.curves.page import (
    BESIDE,
    COLUMNS,
    curve_table,
    curves,
    depth_figure,
    depth_table,
    families_of,
    unjudged,
)
from tests.stores import HOSTILE, Lab
from tests.views.made import AT_10, DEMO, PAPER, every_k, stacks, table


@pytest.fixture(scope="module")
def demo(demo_store: Path) -> Snapshot:
    return Store.open(demo_store).read()


@pytest.fixture(scope="module")
def rows(demo: Snapshot) -> pl.DataFrame:
    return curve_table(demo, runs_in(demo, DEMO), DEMO.golden_set_id, Measure("RA-nWG"))


def test_bands_contain_the_mean_and_belong_to_one_measure(rows: pl.DataFrame):
    assert dict(rows.schema) == COLUMNS
    banded = rows.filter(pl.col("low").is_not_null())
    assert banded["measure"].unique().to_list() == ["RA-nWG"]
    assert banded.filter(~pl.col("value").is_between("low", "high")).is_empty()
    assert banded.height == rows.filter(pl.col("measure") == "RA-nWG").height


def test_ceilings_are_above_the_curve_and_never_fall(rows: pl.DataFrame):
    wide = rows.pivot("measure", index=["name", "k"], values="value")
    assert (wide["PROC[RA-nWG]"] + 1e-12 >= wide["RA-nWG"]).all()
    assert wide.select(pl.col("Hit", "Hole", "Harm").is_between(0, 1)).to_numpy().all()


@pytest.mark.parametrize("k", [1, 7, 10])
def test_a_curve_goes_through_the_scores_at_its_cutoffs(demo: Snapshot, rows: pl.DataFrame, k: int):
    measures = [Measure(name, k) for name in BESIDE]
    runs = runs_in(demo, DEMO)
    found = score_table(demo, runs, DEMO.golden_set_id, measures)
    names = dict(runs.select("run_id", "name").iter_rows())
    expected = {(names[run], measure.rpartition("@")[0]): value
                for run, measure, value in found.select("run", "measure", "value").iter_rows()}  # fmt: skip
    at_k = rows.filter((pl.col("k") == k) & pl.col("measure").is_in(BESIDE))
    assert at_k.height == len(expected)
    for name, measure, value in at_k.select("name", "measure", "value").iter_rows():
        assert value == pytest.approx(expected[name, measure])


def test_a_curve_ends_where_the_ranking_does(tmp_path: Path):
    lab = Lab().judge({"q1": {"p1": 5}, "q2": {"p2": 4}})
    lab.run("short", final={"q1": ["p1"], "q2": ["p9", "p2"]})
    lab.run("long", final={"q1": [f"p{n}" for n in range(1, 6)], "q2": ["p2"]})
    lab.run("none", figures=[{"measure": "RA-nWG", "k": 10, "value": 0.5}])
    snapshot = lab.write(tmp_path / "s").read()
    found = curve_table(snapshot, snapshot.runs().with_columns(name="label"), "gold", Measure("RA-nWG"))
    deepest = dict(
        found.filter(pl.col("measure") == "RA-nWG").group_by("name").agg(pl.col("k").max()).iter_rows()
    )
    assert deepest == {"short": 2, "long": 5, "none": 10}
    assert found.filter(pl.col("name") == "none")["basis"].to_list() == ["imported"]


@pytest.mark.parametrize(
    ("values", "chips"), [([0.0, 0.2], ["20.0 % unjudged at K = 50"]), ([0.2, 0.1], []), ([None, None], [])]
)
def test_unjudged_passages_at_the_end_of_a_curve_are_warned_of(values: list[float | None], chips: list[str]):
    holes = pl.DataFrame({"name": "a", "measure": "Hole", "k": [10, 50], "value": values})
    holes = holes.cast({"value": pl.Float64})
    assert list(unjudged(holes, "a")) == chips
    assert unjudged(holes, "b") == {}


def test_no_stack_no_judgements_and_no_measure_are_empty_curves(tmp_path: Path, demo: Snapshot):
    assert curve_table(demo, runs_in(demo, DEMO).clear(), DEMO.golden_set_id, Measure("RA-nWG")).is_empty()
    snapshot = Lab().run("a", final={"q1": ["p1"]}).write(tmp_path / "s").read()
    runs = snapshot.runs().with_columns(name="label")
    found = curve_table(snapshot, runs, None, None)
    assert found.is_empty()
    view = curves(found, AT_10, {"a": "#000000"})
    assert view.answer == "None of the stacks shown has a value for RA-nWG@10."
    assert not view.main.data
    assert not view.beside.data


def test_the_answer_is_the_leader_at_the_cutoff(rows: pl.DataFrame):
    names = rows["name"].unique(maintain_order=True).to_list()
    view = curves(rows, AT_10, theme.colours_for(names))
    at_10 = rows.filter((pl.col("k") == 10) & (pl.col("measure") == "RA-nWG"))
    best = at_10.sort("value", "name", descending=[True, False]).row(0, named=True)
    assert view.answer == f"RA-nWG is {best['value']:.3f} with 10 passages (n = {best['n']})."
    assert view.details.startswith(f"Of {best['name']}: [")
    assert view.details.endswith("] with 10.")
    lines = [trace.name for trace in view.main.data if trace.name]
    key = "best order of each pool (PROC)"
    assert set(lines) == {*names, *(f"{name} PROC" for name in names), key}
    assert {trace.name for trace in view.main.data if trace.showlegend is not False} >= {*names, key}
    assert len(view.beside.data) == (len(BESIDE) - 1) * len(names)  # RA-nWG is the main chart
    assert sum(bool(trace.showlegend) for trace in view.beside.data) == len(names)


def test_the_first_stack_is_stressed_and_the_axis_fits_the_data(rows: pl.DataFrame):
    first, second = rows["name"].unique(maintain_order=True).to_list()[:2]
    view = curves(rows, AT_10, theme.colours_for([second, first]))
    widths = {trace.name: trace.line.width for trace in view.main.data if trace.name in (first, second)}
    assert widths[second] > widths[first]
    assert view.main.layout.yaxis.range is None


def test_published_points_have_marks_and_no_band(published_store: Path):
    snapshot = Store.open(published_store).read()
    found = curve_table(snapshot, runs_in(snapshot, PAPER), None, None)
    assert found["low"].is_null().all()
    assert found["basis"].unique().to_list() == ["published"]
    names = found["name"].unique(maintain_order=True).to_list()[:4]
    view = curves(found, AT_10, theme.colours_for(names))
    own = [trace for trace in view.main.data if trace.name in names]
    assert {trace.mode for trace in own} == {"lines+markers"}
    assert all(trace.fill is None for trace in view.main.data)


def test_an_unknown_n_is_said_to_be_unknown():
    row = {
        "name": "a",
        "measure": "RA-nWG",
        "k": 10,
        "value": 0.5,
        "low": None,
        "high": None,
        "n": None,
        "basis": "imported",
    }
    deeper = {**row, "k": 20}
    view = curves(pl.DataFrame([row, deeper], schema=COLUMNS), AT_10, {"a": "#000000"})
    assert view.answer == "RA-nWG is 0.500 with 10 passages and with 20 (n unknown)."
    assert view.main.data[0].customdata[0] == "K = 10: 0.500, n unknown"


def test_one_cutoff_is_no_curve_and_says_so(published_store: Path):
    snapshot = Store.open(published_store).read()
    found = curve_table(snapshot, runs_in(snapshot, PAPER), None, None).filter(pl.col("k") == 10)
    view = curves(found, AT_10, theme.colours_for(found["name"].unique(maintain_order=True).to_list()))
    assert not view.main.data
    assert "at cutoff 10 only" in page.nothing(found, AT_10, "k")
    assert "tokens sent is not known" in page.nothing(found.clear(), AT_10, "tokens")


def test_names_are_not_read_as_tags_or_templates():
    colours = theme.colours_for(HOSTILE)
    row = {"measure": "RA-nWG", "k": 10, "value": 0.5, "low": None, "high": None, "n": 3, "basis": "imported"}
    found = pl.DataFrame([{**row, "name": name, "k": k} for name in HOSTILE for k in (5, 10)], schema=COLUMNS)
    view = curves(found, AT_10, colours)
    assert len(view.main.data) == len(HOSTILE)
    for trace in (*view.main.data, *view.beside.data):
        assert "<" not in trace.name
        assert trace.hovertemplate == "%{fullData.name}<br>%{customdata}<extra></extra>"
    titled = curves(found, Quality(HOSTILE[0], 3), colours).main
    assert "<" not in titled.layout.yaxis.title.text.replace("<br>", "")


@pytest.fixture(scope="module")
def reranked(demo: Snapshot) -> pl.DataFrame:
    """The stacks of the demo as if something had read their K."""
    rerank = pl.col("spec").str.replace('"reranker":"none"', '"reranker":"r"')
    return table(demo, every_k(demo)).with_columns(rerank)


def test_families_differ_in_a_depth_only_that_something_reads(demo: Snapshot, reranked: pl.DataFrame):
    assert depth_table(table(demo, every_k(demo))).is_empty()
    depths = depth_table(reranked)
    assert depths.height == reranked.height
    assert depths["family"].n_unique() == 5
    assert depths.group_by("family").len()["len"].unique().to_list() == [2]
    assert depths.filter(pl.col("family") == "BM25")["candidates"].to_list() == [10, 50]
    alike = depth_table(reranked.with_columns(name=pl.format("all, K = {}", "candidates")))
    assert "BM25 + r" in set(alike["family"]), "a name that several families have is none of theirs"


def test_a_depth_alone_is_no_family():
    rows = stacks(
        spec=['{"sparse":"bm25","candidates":5}', '{"sparse":"bm25"}', '{"embedder":"e","candidates":5}'],
        candidates=[5, None, 5],
    )
    assert depth_table(rows).is_empty()
    assert depth_table(stacks(0)).is_empty()


def test_families_are_those_of_the_stacks_else_a_few_with_a_quality():
    told = {"a": 0.1, "b": None, "c": 0.2, "d": 0.3, "e": 0.4}
    names = [f"{family} 1" for family in told]
    depths = pl.DataFrame({"family": list(told), "name": names, "quality": list(told.values())})
    assert families_of(depths, ["d 1", "x", "a 1"]) == ["d", "a"]
    assert families_of(depths, ["x"]) == ["a", "c", "d", "e"]


def test_depth_lines_show_quality_ceiling_latency_and_cost(reranked: pl.DataFrame):
    depths = depth_table(reranked)
    fig = depth_figure(depths, ["BM25"], AT_10)
    assert [trace.name for trace in fig.data] == [*["BM25"] * 3, "best order of each pool (PROC)"]
    assert fig.layout.annotations[0].text == "RA-nWG@10"
    assert not depth_figure(depths.clear(), [], Quality(HOSTILE[0], 1)).data


def test_of_equals_the_first_that_was_chosen_leads():
    row = {"measure": "RA-nWG", "k": 10, "value": 0.5, "low": None, "high": None, "n": 3, "basis": "imported"}
    found = pl.DataFrame([{**row, "name": name} for name in ("a", "b")], schema=COLUMNS)
    view = curves(found, AT_10, theme.colours_for(["b", "a"]))
    assert view.answer == "RA-nWG is 0.500 with 10 passages (n = 3)."
    assert view.details == "Of b."
