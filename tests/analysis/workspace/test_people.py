"""Grades of people as a measure: the corrected score decides, and uncorrected grades are told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from core.analysis.workspace.people import corrected_means, set_right, unused
from core.metrics import Measure
from core.records import Batch
from core.stats.corrected import ScoredLabels, correct
from core.store import Snapshot
from tests.stores import Lab
from tests.views.readers.test_judges import QUESTIONS, scores


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    lab = Lab()
    for run in ("one", "two"):
        lab = lab.run(run)
    store = lab.write(Path(tmp_path_factory.mktemp("people")) / "store")
    with store.write("scores") as writer:
        writer.add(Batch(frames={"answer_scores": scores(liked="two")}))
    return store.read()


def test_values_by_question_have_the_corrected_mean_and_its_scatter():
    random = np.random.default_rng(2)
    truth = random.random(200)
    judged = np.clip(truth + random.normal(0, 0.1, 200), 0, 1)
    graded = np.where(np.arange(200) < 50, truth, np.nan)
    values = set_right(judged[None, :, None], graded[None, :, None])[0, :, 0]
    told = correct(ScoredLabels(graded, judged))
    assert values.mean() == pytest.approx(told.value)
    assert values.std() / np.sqrt(200) == pytest.approx(np.sqrt(np.sum(told.influence**2)))
    few = np.where(np.arange(200) < 5, truth, np.nan)
    assert np.isnan(set_right(judged[None, :, None], few[None, :, None])).all()


def test_the_corrected_measure_turns_what_a_judge_favours(snapshot: Snapshot):
    plain, right = (Measure.parse(f"Answer{params}@3") for params in ("", "(people=corrected)"))
    assert unused(snapshot, ["one", "two"], plain) == 120
    assert unused(snapshot, ["one", "two"], right) == 0
    means = dict(corrected_means(snapshot, ["one", "two"], right).select("run_id", "value").iter_rows())
    judged = {
        run: snapshot.answer_scores([run]).filter(judge="gpt")["value"].mean() / 5 for run in ("one", "two")
    }
    assert judged["two"] > judged["one"]
    assert means["one"] > means["two"]
    assert QUESTIONS == 120
