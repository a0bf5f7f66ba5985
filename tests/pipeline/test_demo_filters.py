"""The demo with filters: shipped results whose ways of filtering differ where filters are narrow."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from core.analysis import filtered
from core.analysis.workspace.question import Question
from core.analysis.workspace.resolve import resolve
from core.analysis.workspace.view import View
from core.filters import decoded, fields_of, parse
from core.paths import PRICES
from core.pipeline import demo, demo_docs, demo_filters
from core.prices import load_books
from core.store import Store

FUSED = "BM25 ⊕ MiniLM"
ADDED = ("quality", "p50", "usd_per_1k", "recall", "leak", "short")


@pytest.fixture(scope="module")
def view(shipped_store: Path) -> View:
    question = Question(collection=demo_filters.COLLECTION_ID)
    return resolve(question, Store.open(shipped_store).read(), load_books(PRICES)["list"])


def test_what_is_shipped_is_small_and_says_how_it_was_timed():
    assert sum(file.stat().st_size for file in demo_filters.RESULTS.iterdir()) < 400_000
    runs = demo_filters.shipped().runs
    assert all("processor time" in run.environment["reported"] for run in runs)
    assert {run.stack.spec["filtering"] for run in runs} == {"none", "pre", "post:4", "partition:package"}


def test_filters_follow_their_rule_and_leave_something():
    frames = {name: rows.lazy().collect() for name, rows in demo_filters.texts().frames.items()}
    asked = dict(frames["query_filters"].select("query_id", "filter").iter_rows())
    fields = fields_of(decoded(frames["passage_metadata"]["metadata"]))
    sizes = dict(fields["module"].value_counts().iter_rows())
    tags = {query: dict(tag.split("=", 1) for tag in of)
            for query, of in demo_docs.queries().select("query_id", "tags").iter_rows()}  # fmt: skip
    good = frames["judgements"].filter(pl.col("grade") >= 4).group_by("query_id").agg("passage_id")
    right = dict(good.iter_rows())
    assert len(asked) == 149 == len(tags) - 1
    for query, text in asked.items():
        known = [demo_filters.known(passage) for passage in right.get(query, [])]
        package, narrow = tags[query]["package"], tags[query]["type"] == "narrow"
        own = {each["module"] for each in known if each["package"] == package and sizes[each["module"]] >= 5}
        if package == "mixed":
            among = sorted({each["package"] for each in known})
            wanted = {"package": among if len(among) > 1 else among[0]}
        else:
            wanted = {"package": package}
            if narrow and own:
                wanted["module"] = min(own, key=lambda name: (sizes[name], name))
        assert json.loads(text) == json.loads(parse(wanted).text)
        assert parse(text).mask(fields).any()


@pytest.mark.slow
def test_only_what_is_asked_unfiltered_leaks_and_it_is_not_shipped(view: View):
    leaks = dict(view.table.select("name", "leak").iter_rows())
    leaky = {name for name, leak in leaks.items() if leak}
    assert leaky == {f"{FUSED} · unfiltered", "MiniLM hnsw-f32 · unfiltered"}
    shipped = view.table["name"][view.decision.chosen]
    assert shipped not in leaky
    assert not view.feasible.filter(pl.col("name").is_in(list(leaky))).height


@pytest.mark.slow
def test_bins_add_up_and_say_what_the_readme_says(view: View):
    names = view.table["name"].to_list()
    bins = filtered.by_selectivity(view, filtered.questions(view, names))
    whole = bins.filter(bin=filtered.ALL)
    for name in names:
        parts, (every,) = (
            bins.filter(pl.col("name") == name, pl.col("bin") != filtered.ALL),
            whole.filter(name=name).iter_rows(named=True),
        )
        assert parts["bin"].to_list() == ["0.1–1 %", "1–10 %", "10–100 %"]
        assert parts["questions"].sum() == every["questions"] == 149
        for figure, count in (("usd_per_1k", "questions"), ("leak", "leak_n"), ("recall", "questions")):
            known = parts.drop_nulls(figure)
            if known.height and not (figure == "recall" and name.startswith("BM25 ·")):  # some find nothing
                mean = (known[figure] * known[count]).sum() / known[count].sum()
                assert mean == pytest.approx(every[figure])
    after = bins.filter(name=f"{FUSED} · post-filter 4 ×")
    recall, short = (dict(after.select("bin", figure).iter_rows()) for figure in ("recall", "short"))
    said = " ".join((demo.DEMO / "README.md").read_text(encoding="utf-8").split())
    lowest, narrow = round(100 * recall["1–10 %"]), round(100 * recall["0.1–1 %"])
    assert f"finds {lowest} % of what exact filtered search finds; where they leave less, {narrow} %" in said
    assert f"and {round(100 * short['0.1–1 %'])} % of its answers are short" in said
    graph = bins.filter(pl.col("name") == "MiniLM hnsw-f32 · pre-filter", pl.col("bin") != filtered.ALL)
    assert "The graph that filters while it searches finds all of it." in said
    assert set(graph["recall"]) == {1.0}
    assert f"leaks for {round(100 * whole.filter(name=f'{FUSED} · unfiltered')['leak'][0])} % of" in said
    assert f"{filtered.set_aside(view):,} grades lie outside" in said
    (bm25,) = whole.filter(name="BM25 · post-filter 4 ×")["recall"]
    assert 0 < bm25 < 1, "of what BM25 finds that filters first"
    exact = whole.filter(
        pl.col("name").is_in(["BM25 · pre-filter", "MiniLM · pre-filter", f"{FUSED} · pre-filter"])
    )
    assert exact["recall"].to_list() == [1.0, 1.0, 1.0]
