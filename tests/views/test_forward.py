"""Which sections stand in a page's bar, and which behind "More" until a workspace's data tell something."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from core.analysis.workspace.answers import TRIAL
from core.answers import BY_PEOPLE
from core.importers.samples import ASKED_AT
from core.records import Batch, Collection, GoldenSet, Origin, Run, Stack
from core.store import Snapshot, Store
from core.tables import TABLES, frame
from core.views.pages import PAGES

MOST = 34
"""Places that a newcomer sees on the first workspace at most."""
ANSWER = {"query_id": "q", "prompt": "p", "mode": "top_k", "k": 5, "pass": 1}
SCORE = {**ANSWER, "reader": "some-model", "scorer": "f1", "scale": "0-1", "value": 0.5}
RANKED = {"query_id": "q", "stage": "final", "rank": 1, "passage_id": "p", "score": 1.0}
GRADED = {"query_id": "q", "passage_id": "p", "grade": 4, "raw": 4}
ANSWERED = {"rankings": [RANKED], "answers": [{**ANSWER, "reader": "some-model", "text": "So."}]}
CASES: Mapping[str, Mapping[str, Any]] = {
    "readers/gains": {"answer_scores": [SCORE]},
    "readers/with and without gold": {"answer_scores": [SCORE]},
    "readers/matrix": {"answer_scores": [SCORE]},
    "readers/joint k": {"answer_scores": [SCORE]},
    "readers/generators": {"answer_scores": [{**SCORE, "k": None}]},
    "readers/dose of distractors": ANSWERED,
    "readers/sources": ANSWERED,
    "measures/predicting answers": ANSWERED,
    "readers/rerankers": {
        "answer_scores": [{**SCORE, "scorer": scorer} for scorer in ("similarity", "precision")]
    },
    "readers/judges": {"answer_scores": [{**SCORE, "judge": "anna", "source": BY_PEOPLE}]},
    "readers/refusing": {"tags": ["unanswerable"]},
    "latency/generator": {
        "timings": [{"query_id": "q", "stage": "first_token", "repeat": 1, "ms": 1.0}]
    },
    "latency/filters": {"query_filters": [{"query_id": "q", "filter": '{"tenant":"a"}'}]},
    "latency/index loss": {"rankings": [RANKED], "specs": [{"index": "flat"}, {"index": "hnsw-f32"}]},
    "what_if/criteria weights": {"criteria": [{"position": 1, "criterion": "authority", "weight": 0.5}]},
    "golden/judges": {"judgements": [GRADED], "sets": 2},
    "golden/people": {"judgements": [GRADED], "gradings": [{**GRADED, "judge": "anna"}], "sets": 1},
    "diagnostics/noise": {"specs": [{"perturb": {"noise": 4}}]},
    **{
        f"diagnostics/{name}": {"signals": [{"query_id": "q", "signal": ASKED_AT, "value": 1.0}]}
        for name in ("recall", "drift", "live quality")
    },
}  # fmt: skip
"""What brings a section forward."""
SELDOM = {
    *(
        "confidence/other weights",
        "what_if/router",
        "what_if/stay or switch",
        "what_if/steps",
        "what_if/deadlines",
        "what_if/queries that change",
        "what_if/few grades",
        "curves/cutoff methods",
        "curves/cutoff table",
    ),
    *("latency/reranker by K", "golden/unseen", "add/formats"),
}
"""Places that nothing brings forward."""
OF_THE_STORE = {"latency/indexes"}
"""Places that tell something of the whole store, and come forward in all of its workspaces."""
WITH_NOTHING = {
    "nothing": {"rankings": [RANKED], "specs": [{"index": "flat"}], "judgements": [GRADED], "sets": 1},
    "made up": {
        "answers": [{**ANSWER, "reader": TRIAL, "text": "So."}],
        "answer_scores": [{**SCORE, "reader": TRIAL}],
    },
}
"""Workspaces in which every such place stays behind."""


def batch(name: str, rows: Mapping[str, Any]) -> Batch:
    """A collection with a run or two, and what they have of each table."""
    tables = {key: rows[key] for key in rows if key not in ("specs", "tags", "sets")}
    runs = [f"{name}: {at}" for at in range(len(rows.get("specs", [{}])))]
    sets = [f"{name}: {at}" for at in range(rows.get("sets", 0))]
    owners = {"judgements": sets, "gradings": sets, "query_filters": [name]}
    frames = {
        table: [
            {**row, next(iter(TABLES[table])): owner}
            for owner in owners.get(table, runs)
            for row in tables[table]
        ]
        for table in tables
    }
    frames["queries"] = [
        {"collection_id": name, "query_id": "q", "text": "What?", "tags": rows.get("tags", [])}
    ]
    return Batch(
        collections=(Collection(collection_id=name, name=name),),
        golden_sets=tuple(GoldenSet(golden_set_id=each, collection_id=name, name=each) for each in sets),
        runs=tuple(
            Run(run_id=run, collection_id=name, stack=Stack({"name": run, **spec}), label=run,
                origin=Origin.IMPORT)
            for run, spec in zip(runs, rows.get("specs", [{}]), strict=True)
        ),
        frames={table: frame(table, held) for table, held in frames.items()},
    )  # fmt: skip


def behind(snapshot: Snapshot, name: str) -> set[str]:
    return {f"{page.name}/{section}" for page in PAGES.values() for section in page.behind(snapshot, name)}


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    store = Store.open(tmp_path_factory.mktemp("forward") / "store")
    with store.write("import") as writer:
        for name, rows in {**CASES, **WITH_NOTHING}.items():
            writer.add(batch(name.replace("/", " "), rows))
    return store.read()


def test_every_place_behind_more_is_known_here() -> None:
    known = {f"{page.name}/{section}" for page in PAGES.values() for section in page.behind(None)}
    assert known == {*CASES, *SELDOM, *OF_THE_STORE}
    assert not known & {f"{page.name}/{page.sections[0]}" for page in PAGES.values() if page.sections}


@pytest.mark.parametrize("name", WITH_NOTHING)
def test_a_workspace_with_nothing_to_tell_leaves_all_of_them_behind(snapshot: Snapshot, name: str) -> None:
    assert behind(snapshot, name) == {*CASES, *SELDOM, *OF_THE_STORE}


@pytest.mark.parametrize("place", CASES)
def test_data_bring_a_section_forward(snapshot: Snapshot, place: str) -> None:
    left = behind(snapshot, place.replace("/", " "))
    assert place not in left
    assert left >= SELDOM


@pytest.mark.slow
def test_a_newcomer_sees_few_places_on_the_first_workspace(shipped_store: Path) -> None:
    first = Store.open(shipped_store).read()
    left = behind(first, "docs-search")
    every = [f"{page.name}/{name}" for page in PAGES.values() for name in page.sections or ("",)]
    seen = [place for place in every if place not in left]
    assert len(seen) <= MOST, seen
    assert len(seen) + len(left) == len(every)
