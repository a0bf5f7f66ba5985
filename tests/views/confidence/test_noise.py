"""Whose grades are drawn, and what they do to the answers."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from core.analysis.workspace.noise import (
    OFF,
    PAIR,
    auditor,
    auditors,
    noise,
    noise_effect,
    noise_words,
    noisy_rows,
    refusal,
    usual_auditor,
)
from core.analysis.workspace.scope import Latency, Quality, Scope
from core.analysis.workspace.view import View
from core.decide.rules import Constraints
from core.errors import UnknownNameError
from core.pipeline import demo
from core.records import Batch, Collection, GoldenSet
from core.report.data import decision_data, verdict
from core.store import Store
from core.tables import frame
from tests.views.made import AT_10, BOOK, DEMO

SECOND = demo.SECOND_SET_ID


@pytest.mark.parametrize(
    ("sets", "found", "usual"),
    [
        ({"mine": (100, "a", ())}, {}, None),
        ({"mine": (100, "a", ()), "few": (49, "b", ())}, {}, None),
        ({"mine": (100, "a", ()), "enough": (50, "b", ())}, {"enough": 50}, "enough"),
        ({"mine": (100, "a", ()), "whole": (100, "b", ())}, {"whole": 100}, None),
        (
            {"mine": (100, "a", ()), "whole": (100, "b", ()), "some": (60, "c", ())},
            {"whole": 100, "some": 60},
            "some",
        ),
        ({"mine": (100, "a", ()), "own": (60, "a", ())}, {}, None),
        ({"mine": (100, "", ()), "unnamed": (60, "", ())}, {"unnamed": 60}, "unnamed"),
        ({"mine": (100, "a", ()), "made of it": (60, "a, b", ("mine",))}, {}, None),
        ({"mine": (100, "a, b", ("part",)), "part": (60, "b", ())}, {}, None),
    ],
    ids=["alone", "few", "sample", "whole", "both", "same judge", "unnamed", "child", "parent"],
)  # fmt: skip
def test_who_audits(tmp_path, sets, found, usual):
    rows = [
        {"golden_set_id": name, "query_id": "q", "passage_id": f"p{at}", "grade": 3, "raw": 3, "judge": judge}
        for name, (size, judge, _) in sets.items()
        for at in range(size)
    ]  # fmt: skip
    golden = tuple(
        GoldenSet(golden_set_id=name, collection_id="c", name=name, judge=judge, parents=parents)
        for name, (_, judge, parents) in sets.items()
    )
    store = Store(tmp_path / "store")
    with store.write("test") as writer:
        frames = {"judgements": frame("judgements", rows)}
        collections = (Collection(collection_id="c", name="c"),)
        writer.add(Batch(collections=collections, golden_sets=golden, frames=frames))
    snapshot, scope = store.read(), Scope("c", "mine")

    assert auditors(snapshot, scope) == found
    assert usual_auditor(snapshot, scope) == auditor(snapshot, scope, None) == usual
    assert auditor(snapshot, scope, OFF) is None
    with pytest.raises(UnknownNameError):
        auditor(snapshot, scope, "nobody")


@pytest.fixture(scope="module")
def case(demo_store):
    snapshot = Store.open(demo_store).read()
    return View(snapshot, DEMO, quality=AT_10, latency=Latency(), book=BOOK)


@pytest.fixture(scope="module")
def noisy(case):
    return replace(case, noise=SECOND)


@pytest.fixture(scope="module")
def off(case):
    return verdict(case)


@pytest.fixture(scope="module")
def on(noisy):
    return verdict(noisy)


def test_only_the_chances_change(case, noisy, off, on):
    assert on.table.equals(off.table)
    assert on.decision.chosen == off.decision.chosen
    assert off.noise is None
    assert on.noise.passages == 240
    assert on.noise.means.shape == (5, 500)
    best = (off.chances["p_best"], on.chances["p_best"])
    assert all(shares.is_between(0, 1).all() for shares in best)
    assert all(shares.max() > 0.5 for shares in best)
    plain, drawn = (
        view.replace(constraints=Constraints(min_quality=0.48)).sure.p_feasible for view in (case, noisy)
    )
    assert 0 < drawn < plain < 1, "the other judge grades lower"


@pytest.mark.slow
def test_the_record_says_whose_grades_are_drawn(case, noisy, off, on):
    said = decision_data(case, off)
    assert said["judge_noise"] is None
    assert said["resamples"] == 10_000
    said = decision_data(noisy, on)
    held = said["judge_noise"]
    assert (held["golden_set"], held["passages"], said["resamples"]) == (SECOND, 240, 500)
    chosen = held["chosen"]
    assert chosen["noisy_low"] < chosen["noisy"] < chosen["noisy_high"]
    words = noise_words(on.table, on.decision, on.noise, AT_10)
    assert words == held["in_words"]
    first, second = (case.snapshot.within(name).sort(PAIR) for name in (case.scope.golden_set_id, SECOND))
    both = first.join(second, on=PAIR).select("grade", other="grade_right")
    lower, higher = (
        int(both.select(way).to_series().sum())
        for way in (pl.col("other") < pl.col("grade"), pl.col("other") > pl.col("grade"))
    )
    alike = 100 * (1 - (lower + higher) / both.height)
    who = "A second judge (a second language model, without sight of the first grades, checked by nobody)"
    assert words.startswith(
        f"{who} graded {alike:.1f} % of 240 passages like the first, {lower} lower and {higher} higher. "
    )
    assert "The percentages hold such doubts; RA-nWG@10 with them " in words
    assert f" is {chosen['noisy']:.3f} [{chosen['noisy_low']:.3f}, " in words
    assert words.endswith(" These passages may not be typical.")
    effect = noise_effect(on.table, on.decision, on.noise, AT_10)
    assert words.startswith(effect)
    assert "typical" not in effect, "page Decision says the effect, Confidence how to read it too"


def test_judge_noise_never_narrows_an_interval(on):
    rows = on.table.select("run_id", "quality", "quality_low", "quality_high").join(
        noisy_rows(on.table, on.noise), on="run_id"
    )
    wide, plain = (rows[f"{name}_high"] - rows[f"{name}_low"] for name in ("noisy", "quality"))
    assert rows.height == 5
    assert (wide >= plain - 1e-12).all()


def test_some_stacks_alone_have_the_same_means_as_among_all(case, off):
    table = off.table
    whole = noise(case.snapshot, table, DEMO, AT_10, SECOND, resamples=3)
    some = noise(case.snapshot, table[2:4], DEMO, AT_10, SECOND, resamples=3)
    places = [whole.run_ids.index(name) for name in some.run_ids]
    assert np.allclose(whole.means[places], some.means)


@pytest.mark.parametrize("name", ["PROC[RA-nWG]", "Novelty-RA-nWG"])
def test_a_measure_of_more_than_grades_is_refused(case, off, name):
    quality, table = Quality(name, 10), off.table
    assert refusal(case.snapshot, table, DEMO, quality)
    assert noise(case.snapshot, table, DEMO, quality, SECOND) is None
