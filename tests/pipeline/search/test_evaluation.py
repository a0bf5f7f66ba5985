"""Searches as evaluations: proposed by Optuna, raced, kept, resumed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from core.errors import ClqError, DiskError
from core.files import read_json
from core.pipeline.evaluate import Outcome, Protocol, State
from core.pipeline.search import propose as proposing
from core.pipeline.search.asking import Course
from core.pipeline.search.evaluation import searching
from core.pipeline.search.propose import Space, StackTrial, propose
from core.pipeline.sweep import parse
from core.pipeline.sweep.check import check
from core.pipeline.sweep.plan import plan
from core.records import Batch, GoldenSet
from core.tables import frame
from core.work.sweep.words import button, search_rows, search_words, size_of
from tests.pipeline.evaluate.helpers import STACKS, Sunk, job, run

QUESTIONS = [f"sort a frame {word}" for word in "abcdefghijklmnopqrstuvwx"]
HOW = {"trials": 8, "rounds": [8, 16], "seed": 3}


def asked(**how: Any) -> Any:
    """A search over the small grid, in which a few passages are good answers to all questions."""
    plain = job(asked=QUESTIONS, protocol=Protocol(repeats=0))
    ids = plain.queries["query_id"].to_list()
    rows = [
        {"golden_set_id": "g", "query_id": query, "passage_id": passage, "grade": 5 - at % 5}
        for query in ids
        for at, passage in enumerate(plain.corpora[None].passage_ids[:20])
    ]
    columns = {
        name: [row.get(name) for row in rows] for name in ("golden_set_id", "query_id", "passage_id", "grade")
    }
    setup = Batch(golden_sets=(GoldenSet(golden_set_id="g", collection_id="c", name="g"),),
                  frames={"judgements": frame("judgements", columns)})  # fmt: skip
    spec = {"axes": [{"method": "search"}], "search": {**HOW, **how}}
    return job(asked=QUESTIONS, protocol=Protocol(repeats=0), setup=setup, spec=spec)


def done(work: Path, **how: Any) -> tuple[Outcome, Sunk, Any]:
    one = asked(**how)
    outcome, sunk = run(work, one, before=searching(one))
    return outcome, sunk, read_json(outcome.folder.search)


def test_other_specifications_are_not_searched() -> None:
    assert searching(job()) is None
    assert searching(job(spec={"axes": [{"method": "grid"}]})) is None


def test_a_search_takes_all_of_the_axes_or_none() -> None:
    text = 'collection = "c/"\n[[axes]]\nmethod = "search"\n[[axes]]\nmethod = "grid"'
    assert any(each.where == "axes.method" for each in check(parse(text)))


@pytest.mark.parametrize(("trials", "begun"), [(3, 3), (100, len(STACKS))])
def test_the_plan_of_a_search_is_the_most_that_it_takes(trials: int, begun: int) -> None:
    made = plan(asked(trials=trials))
    assert (made.begun, len(made.stacks)) == (begun, len(STACKS))
    assert f"Up to {begun:,} of {len(STACKS):,} stacks" in size_of(made)
    assert "at most" in button(made)
    assert plan(job()).begun is None


def test_without_the_package_the_error_names_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def missing(*_: object) -> None:
        raise ClqError(
            'method = "search" needs the package optuna.', do="pip install -r requirements-search.txt"
        )

    monkeypatch.setattr(proposing, "needed", missing)
    with pytest.raises(ClqError, match=r"requirements-search\.txt"):
        done(tmp_path)


@pytest.fixture
def _optuna() -> None:
    pytest.importorskip("optuna")


@pytest.mark.extras
@pytest.mark.usefixtures("_optuna")
class TestWithOptuna:
    """What needs Optuna."""

    @pytest.mark.parametrize("sampler", ["tpe", "nsga2", "random"])
    def test_proposals_are_new_and_the_same_for_the_same_knowledge(self, sampler: Any) -> None:
        space = Space(STACKS)
        told = [StackTrial(row, (row / 10, 1.0 - row / 20), (row - 3.0,)) for row in range(4)]
        made = propose(space, told, 4, maximised=(True, False), sampler=sampler, seed=1)
        assert len({*made}) == 4
        assert not {*made} & {0, 1, 2, 3}
        assert made == propose(space, told, 4, maximised=(True, False), sampler=sampler, seed=1)
        everything = propose(space, told, 100, maximised=(True, False), sampler=sampler, seed=1)
        assert len(everything) == len(space) - 4

    def test_only_what_was_asked_every_query_becomes_a_run(self, tmp_path: Path) -> None:
        outcome, sunk, found = done(tmp_path)
        assert outcome.status.state is State.FINISHED
        through = [entry["stack_id"] for entry in found["entries"] if entry["state"] == "through"]
        assert sorted(run.stack.stack_id for run in sunk.all.runs) == sorted(through)
        assert found["begun"] == 8
        assert found["dropped"] + found["through"] == 8
        assert found["dropped"] > 0
        table = search_rows(found)
        assert table.height == 8
        beaten = table.filter(state="dropped")
        assert beaten["beaten_by"].null_count() == 0
        assert (beaten["queries"] < 24).all()
        assert f"{found['dropped']} dropped" in search_words(found)

    def test_harm_with_a_limit_is_known_of_all(self, tmp_path: Path) -> None:
        _, _, found = done(tmp_path, limits={"harm": 0.5})
        harm = search_rows(found)["harm"]
        assert harm.null_count() == 0
        assert harm.is_between(0, 1).all()

    def test_the_study_has_a_trial_per_stack(self, tmp_path: Path) -> None:
        optuna = pytest.importorskip("optuna")
        outcome, _, found = done(tmp_path)
        storage = optuna.storages.RDBStorage(f"sqlite:///{outcome.folder.study}")
        with closing(storage.engine.raw_connection()):
            (study,) = optuna.get_all_study_summaries(storage)
            trials = optuna.load_study(study_name=study.study_name, storage=storage).trials
        storage.engine.dispose()
        states = pl.Series([trial.state.name for trial in trials]).value_counts()
        counts = dict(states.iter_rows())
        assert counts == {"COMPLETE": found["through"], "PRUNED": found["dropped"]}

    @pytest.mark.parametrize("harm", ["cut", "text", "locked"])
    @pytest.mark.parametrize("file", ["study", "answers"])
    def test_a_file_that_cannot_be_used_is_named_and_kept(self, tmp_path: Path, file: str, harm: str) -> None:
        outcome, _, _ = done(tmp_path)
        path: Path = getattr(outcome.folder, file)
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA journal_mode=DELETE")
            if harm == "locked":
                db.execute("BEGIN EXCLUSIVE")
            else:
                path.write_bytes(path.read_bytes()[:6000] if harm == "cut" else b"no database " * 400)
            held = path.read_bytes()
            one = asked()
            with pytest.raises(DiskError) as raised:
                run(tmp_path, one, before=searching(one))
        assert raised.value.where == str(path)
        assert ("locked" in raised.value.found) == (harm == "locked")
        assert path.read_bytes() == held

    def test_a_search_that_was_killed_goes_on_and_ends_the_same(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        _, whole, found = done(tmp_path / "whole")
        calls: list[tuple[str, int]] = []
        real, most = Course.ask, iter((5, 3, 10_000))

        class Killed(BaseException):
            """As if the process were gone."""

        def count(self: Course, stacks: Any, first: int, last: int) -> Any:
            if len(calls) - begun[0] >= limit[0]:
                raise Killed
            calls.extend((stack.stack_id, first) for stack in stacks)
            return real(self, stacks, first, last)

        monkeypatch.setattr(Course, "ask", count)
        begun, limit = [0], [0]
        for limit[0] in most:
            begun[0] = len(calls)
            try:
                _, sunk, again = done(tmp_path / "killed")
            except Killed:
                continue
        assert len(calls) == len({*calls})  # nothing was asked twice
        assert again == found
        assert sunk.run_ids == whole.run_ids
