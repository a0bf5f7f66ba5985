"""Answers that a custom pipeline writes along: a reader's of its name, scored like the others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from core.analysis.readers import answered, curve_table
from core.analysis.workspace.scope import Answering, Latency, Quality, Scope
from core.analysis.workspace.stacks import stack_table
from core.pipeline.evaluate import Protocol, corpus_of
from core.pipeline.own.config import OwnStack
from core.records import Batch, Stack
from core.store import Store
from core.views.readers.scores import scored
from core.work.readers import stored
from tests.pipeline.evaluate.helpers import job, run
from tests.views.made import BOOK
from tests.work.readers import asked

CODE = """
ANSWERS = {"sort a frame": "sort a frame by rows", "mean of rows": "a mean", "plot a chart": "no idea"}

def plain(query):
    return ["p0"]

def ask(query, k=3):
    return {"calls": [["p0", "p1"], ["p2"]], "answer": ANSWERS[query], "usage": [{"usd": 0.002}]}
"""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    (tmp_path / "shop.py").write_text(CODE)
    one = asked.store_of(tmp_path)
    snapshot = one.read()
    shop = OwnStack(name="shop", call="shop:ask", path=tmp_path, candidates=3)
    plain = OwnStack(name="plain", call="shop:plain", path=tmp_path, usd_per_query=0.001)
    own = {"shop": shop, "plain": plain}
    stacks = [Stack(pipeline.spec({})) for pipeline in own.values()]
    work = replace(
        job(stacks, protocol=Protocol(repeats=2), own=own),
        corpora={None: corpus_of(snapshot.passages("c"))},
        queries=snapshot.queries("c"),
    )
    _, sunk = run(tmp_path, work)
    batch = Batch(runs=sunk.all.runs, frames=dict(sunk.all.frames))
    with one.write("evaluate") as writer:
        writer.add(stored.with_scores(one.read(), "c", batch))
    return one


@pytest.mark.slow
def test_it_stands_among_the_readers_and_where_answers_count(store: Store):
    snapshot, scope = store.read(), Scope("c", "g")
    known = answered(snapshot, scope, BOOK)
    (label,) = curve_table(known, "exact_match")["label"].unique()
    assert label == "shop"
    rows = scored(snapshot, scope, BOOK, scorer="exact_match").filter(reader="shop")
    assert rows.select("k", "score", "queries", "mode").rows() == [(3, pytest.approx(200 / 3), 3, "top_k")]
    measure = str(Answering(scorer="exact_match").measure())
    per_correct = replace(scope, answering=Answering(scorer="exact_match", per="correct answer"))
    timed = Latency(scope="end-to-end", answers=Answering(scorer="exact_match").measure(3))
    table = stack_table(snapshot, per_correct, Quality(measure, 3), timed, BOOK)
    row = table.filter(pl.col("label").str.starts_with("shop")).row(0, named=True)
    assert (row["quality"], row["n"], row["calls"]) == (pytest.approx(2 / 3), 3, 2.0)
    # $ 2 per 1,000 queries, the answers within them, and two of three are correct
    assert (row["cost"], row["latency_basis"]) == (pytest.approx(3.0), "measured")
    assert table.filter(mode="r-a")["calls"].to_list() == [None]


def test_the_jitter_of_a_function_is_that_of_its_passes_unless_it_reports_what_it_used(store: Store):
    table = stack_table(store.read(), Scope("c", "g"), Quality("RR", 3), Latency(), BOOK).filter(mode="own")
    notes = {label.partition(",")[0]: note for label, note in table.select("label", "jitter_note").rows()}
    assert notes["plain"].startswith("measured")
    assert notes["shop"].startswith("the paper's")
