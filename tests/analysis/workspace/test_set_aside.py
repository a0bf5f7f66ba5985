"""Judgements of what an asker may not see change nothing: every reader answers as if they were not there."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from core.analysis import between, judging
from core.analysis.workspace import noise, unanswerable
from core.analysis.workspace.question import Question
from core.analysis.workspace.resolve import resolve
from core.contrib import unseen
from core.paths import ROOT
from core.prices import PriceBook
from core.records import Batch
from core.store import Store
from core.tables import frame
from core.views.confidence.data import judgements_per_query
from core.views.diagnostics.asked_names import _asked
from core.views.golden import data as golden
from core.views.golden.people import _both
from core.work.readers.run import ReaderSpec
from core.work.readers.stored import _gold, _harmful
from tests.analysis.workspace.test_filters import ASKER, CLEAN, PASSAGES, QUERIES, TENANT, stored
from tests.store.material import CORPUS, GOLD, judgements

OWN = {
    query: {name: 1 + (at * 7 + int(query[1:])) % 5 for at, name in enumerate(PASSAGES)} for query in QUERIES
}
OTHERS = {query: {name: 1 + (grade + len(name) + int(query[1:])) % 5 for name, grade in of.items()}
          for query, of in OWN.items()}  # fmt: skip
OWN["q3"] = {name: 5 if TENANT[name] != ASKER["q3"] else 1 for name in PASSAGES}  # of no use to its asker
OTHERS["q5"] = {name: 4 for name in PASSAGES if TENANT[name] != ASKER["q5"]}
FORBIDDEN = {query: [name for name in PASSAGES if TENANT[name] != ASKER[query]][:2] for query in QUERIES}
READER = ReaderSpec.model_validate(
    {
        "name": "r",
        "collection": {"stored": "corpus"},
        "reader": {
            "runs": ["good"],
            "models": ["fake"],
            "prompts": ["short"],
            "k": [1],
            "golden_set": "gold",
        },
    }
).reader
RAW = {
    "core/analysis/export.py": "writes what is stored",
    "core/analysis/filtered.py": "counts what is set aside",
    "core/analysis/workspace/scope.py": "which golden set is part of which",
    "core/store/read/snapshot.py": "defines both",
    "core/views/golden/adding.py": "adds grades to stored ones, and of a person",
    "core/views/golden/judges.py": "merges and compares judges on what they graded",
    "core/views/golden/judging.py": "writes grades by hand; what is drawn is looked at by filter",
    "core/views/golden/soundness.py": "compares an order by hand with the grades of the same passages",
    "core/views/latency/indexes.py": "exact neighbours of others' files",
    "core/work/golden/stored.py": "compares whole golden sets",
    "core/work/imports/anchored.py": "anchors whole golden sets",
}  # fmt: skip
"""Which parts read stored judgements, also those that are set aside, and why."""


def view_of(path, *, whole):
    """A workspace with grades by two judges; without those of what askers may not see unless `whole`."""

    def kept(graded):
        return {
            query: {name: grade for name, grade in of.items() if whole or TENANT[name] == ASKER[query]}
            for query, of in graded.items()
        }

    better = {query: sorted(of, key=lambda name: -OWN[query][name]) for query, of in CLEAN.items()}
    leaky = {query: [*FORBIDDEN[query], *of[::-1]] for query, of in better.items()}
    stored(path, {"good": better, "plain": CLEAN, "bad": leaky}, grades=kept(OWN))
    second = replace(GOLD, golden_set_id="second", name="Second", judge="another person", parents=())
    own = {"collection_id": CORPUS.collection_id}
    texts = frame("passages", [{**own, "passage_id": name, "text": name} for name in PASSAGES])
    asked = frame("queries", [{**own, "query_id": name, "text": name} for name in QUERIES])
    frames = {"judgements": judgements(kept(OTHERS), "second"), "passages": texts, "queries": asked}
    with Store.open(path).write("second") as writer:
        writer.add(Batch(collections=(CORPUS,), golden_sets=(second,), frames=frames))
    question = Question(collection="corpus", golden_set="gold", measure="RA-nWG@5")
    return resolve(question, Store.open(path).read(), PriceBook("none", ()))


@pytest.fixture(scope="module")
def views(tmp_path_factory):
    folder = tmp_path_factory.mktemp("aside")
    return [view_of(folder / str(whole), whole=whole) for whole in (True, False)]


def contested(view):
    contest, scoring = judging._read(view.snapshot, ("good", "bad"), view.scope, view.quality)
    grades, counts = contest.grades, contest.counts
    merits = np.nan_to_num(scoring(grades, counts), nan=-1)  # what is not applicable equals itself
    return contest.queries, grades.tolist(), counts.tolist(), merits.tolist()


def drawn(view):
    found = noise.noise(view.snapshot, view.table, view.scope, view.quality, "second", resamples=20)
    return (
        None if found is None else {name: np.asarray(value).tolist() for name, value in vars(found).items()}
    )


READERS = {
    "quality": lambda view: view.table.select("name", "quality", "quality_low", "quality_high", "proc"),
    "few grades": lambda view: between.mistakes(view.snapshot, view.scope, "gold"),
    "auditors": lambda view: noise.auditors(view.snapshot, view.scope, least=1),
    "noise of grades": drawn,
    "unanswerable": lambda view: unanswerable.classes(view.snapshot, view.scope),
    "what to judge next": contested,
    "unseen": lambda view: unseen.ranked(view, ("good", "bad")),
    "judgements per query": judgements_per_query,
    "judged": lambda view: vars(golden.judged(view.snapshot, view.scope)),
    "pool bias": lambda view: golden.pool_bias(view.snapshot, view.scope, view.quality),
    "people": lambda view: _both(view, "gold", "second").sort("query_id", "passage_id"),
    "names": lambda view: _asked(
        view.snapshot, view.scope, view.snapshot.queries("corpus"), view.snapshot.passages("corpus")
    ),
    "gold of readers": lambda view: _gold(view.snapshot, "corpus", READER, ["good"]),
    "harm of readers": lambda view: _harmful(view.snapshot, "corpus", READER, "bad"),
}


def same(one, other):
    if isinstance(one, pl.DataFrame):
        assert_frame_equal(one, other)
    elif isinstance(one, dict):
        assert one.keys() == other.keys()
        for name, value in one.items():
            same(value, other[name])
    else:
        assert one == other


@pytest.mark.parametrize("reader", READERS)
def test_what_lies_outside_of_a_filter_changes_no_answer(views, reader):
    whole, kept = (READERS[reader](view) for view in views)
    assert whole is not None
    same(whole, kept)


def test_there_is_something_to_set_aside(views):
    whole, kept = (view.snapshot.judgements("gold").height for view in views)
    assert (whole, kept) == (480, 120)
    answerable = dict(READERS["unanswerable"](views[0]).select("query_id", "answerable").iter_rows())
    assert answerable["q3"] is False


def test_who_reads_all_stored_judgements_is_known():
    """A new reader of grades takes `Snapshot.within`, or stands here with the reason why it does not."""
    found = {
        str(file.relative_to(ROOT))
        for file in (ROOT / "core").rglob("*.py")
        if re.search(
            r"napshot\.judgements\(|self\.judgements\(golden_set_id\)", file.read_text(encoding="utf-8")
        )
    }
    assert found == set(RAW)
