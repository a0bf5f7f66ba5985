"""New questions about documents that were run before go into a workspace of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.pipeline.evaluate import Job
from core.pipeline.sweep import parse
from core.pipeline.sweep.problems import Problem, Severity
from core.store import Store
from core.work.sweep.kind import EVALUATION
from tests.views.made import BOOK

SPEC = """name = "run"
collection.path = "{docs}"
{id}
queries.path = "{questions}"
[axes]
mode = ["sparse"]
candidates = [2]
"""


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "wing.txt").write_text("A wing lifts.")
    (folder / "plate.txt").write_text("A plate warms.")
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


def read(store: Store, docs: Path, questions: str, named: str = "") -> tuple[Job, list[Problem]]:
    path = docs.parent / f"{questions}.csv"
    path.write_text(f"query_id,text\n{questions}1,what lifts\n{questions}2,what warms\n")
    spec = SPEC.format(docs=docs, questions=path, id=f'collection.id = "{named}"' if named else "")
    return EVALUATION.read(store.read(), parse(spec), {"list": BOOK}, to_run=False)


def keep(store: Store, job: Job) -> None:
    with store.write("evaluate", "what is evaluated") as writer:
        writer.add(job.setup)


def test_other_questions_go_into_a_workspace_of_their_own_and_the_plan_says_so(store: Store, docs: Path):
    made, problems = read(store, docs, "made")
    keep(store, made)
    assert (made.collection_id, [problem.where for problem in problems]) == ("docs", [])
    real, problems = read(store, docs, "real")
    said = "The workspace docs has 2 other questions. This run makes a workspace of its own, docs-real."
    assert (real.collection_id, [(each.found, each.severity) for each in problems]) == (
        "docs-real", [(said, Severity.WARNING)]
    )  # fmt: skip
    keep(store, real)
    for questions, workspace in (("real", "docs-real"), ("made", "docs")):  # each goes where it was
        assert read(store, docs, questions)[0].collection_id == workspace
    rows = store.read().collections().sort("collection_id").select("collection_id", "queries")
    assert rows.rows() == [("docs", 2), ("docs-real", 2)]


def test_a_workspace_that_is_named_is_not_replaced_by_another(store: Store, docs: Path):
    keep(store, read(store, docs, "made", "mine")[0])
    assert read(store, docs, "made", "mine")[0].collection_id == "mine"
    real, (problem,) = read(store, docs, "real", "mine")
    assert (real.collection_id, problem.found) == ("mine", "The workspace mine has 2 other questions.")
    assert "set id under [collection]" in problem.do
