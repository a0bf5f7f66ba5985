"""What is sure of the choice, and what is not: beside it on page, command and record."""

from pathlib import Path

import numpy as np
import pytest

from core.analysis.workspace.figures.latencies import jitter_words
from core.api.workspace import Workspace
from core.decide.joint import JointSample
from core.decide.rules import Constraints, decide
from core.store import Store
from core.views.decision.tiles import confidence
from core.views.decision.words import band, banded, lead_words
from core.views.words.advice import second_row
from core.views.words.choice import decided_by
from core.views.words.lead import Lead, lead
from core.views.words.users import hurts
from tests.views.made import asking, stacks

RANDOM = np.random.default_rng(11)


def of(*means: float, n: int = 60, noise: float = 0.1):
    """A view of stacks with these means exactly, and independent noise per query."""
    values = RANDOM.normal(0, noise, (len(means), n))
    values += np.array(means)[:, None] - values.mean(axis=1, keepdims=True)
    names = [f"s{place}" for place in range(len(means))]
    none = np.full(len(means), np.nan)
    table = stacks(name=names, quality=list(means), n=[n] * len(means))
    sample = JointSample(values, np.full(values.shape, np.nan), none, none, none)
    return asking(table, Constraints(delta=0.01), sample=sample)


def test_a_lead_counts_the_others_that_are_surely_worse_and_names_the_nearest():
    view = of(0.6, 0.599, 0.3, 0.2)
    found = lead(view)
    assert found is not None
    assert (found.surely, found.others, found.rival) == (2, 3, "s1")
    assert found.by == pytest.approx(0.001)
    assert found.low < 0 < found.high
    assert found.beaten == ("s2", "s3")  # the best first
    sure, named, unsure = lead_words(view)
    assert sure == "Surely better than 2 of the 3 others, all pairs together, grades as given."
    assert named == "Those are: s2; s3."
    assert unsure == f"Not surely better than s1: {found.interval}, this pair alone."


def test_of_many_beaten_stacks_the_best_are_named():
    many = Lead(6, 7, beaten=tuple("abcdef"))
    assert many.named == "Those are: a; b; c; d and 2 more."
    assert Lead(7, 7, beaten=tuple("abcdefg")).named == ""  # all of them are known by the count


def test_the_best_of_thirty_equal_stacks_is_seldom_surely_better_than_any():
    """One by one it would be, as it was selected for its lead."""
    beaten = []
    for _ in range(40):
        means = 0.5 + RANDOM.normal(0, 0.1 / np.sqrt(60), 30)
        beaten.append(lead(of(*means.tolist())).surely > 0)
    assert np.mean(beaten) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 40)


def test_without_results_per_query_or_of_one_stack_nothing_is_said():
    averages = asking(stacks(name=["a", "b"], quality=[0.6, 0.5]))
    assert lead(averages) is None
    assert lead_words(averages) == []
    assert lead(of(0.6)) is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            Lead(3, 3, "x", 0.2, 0.1, 0.3),
            ("Surely better than 3 of the 3 others, all pairs together, grades as given.", ""),
        ),
        (
            Lead(0, 1, "x", 0.0, -0.1, 0.1),
            ("", "Not surely better than x: 0.000 [−0.100, +0.100], this pair alone."),
        ),
        (Lead(1, 1), ("Surely better than the other one, all pairs together, grades as given.", "")),
        (Lead(0, 2), ("Surely better than none of the 2 others, all pairs together, grades as given.", "")),
    ],
)
def test_a_lead_in_words(given: Lead, said: tuple[str, str]):
    assert given.sentences == said


@pytest.mark.parametrize(
    ("jitter", "ms", "drawn"),
    [(0.87, 3.75, True), (0.87, 0.04, False), (0.87, 276.0, False), (75.0, 75.0, True)],
)
def test_a_band_of_jitter_is_drawn_where_it_is_neither_thin_nor_wider_than_the_latency(
    jitter: float, ms: float, drawn: bool
):
    table = stacks(quality=[0.5], latency_ms=[ms])
    assert banded(table, decide(table, Constraints(jitter_ms=jitter))) == drawn


@pytest.mark.parametrize(
    ("ms", "said"),
    [
        (None, "Grey band: jitter between runs, ± 75 ms, assumed as in the CLQ paper."),
        (20.0, "Grey band: jitter between runs, ± 20 ms."),
    ],
)
def test_a_band_that_nobody_measured_is_said_to_be_assumed(ms: float | None, said: str):
    table, limits = stacks(quality=[0.5], latency_ms=[100.0]), Constraints(jitter_ms=ms)
    decision = decide(table, limits)
    assert band(table.with_columns(latency_low=None), decision, jitter_words(table, decision, limits)) == said


def test_the_rule_says_which_part_of_it_decided():
    assert decided_by(of(0.6, 0.599).decision).endswith("Here no other is surely as good.")
    assert decided_by(of(0.6).decision).endswith("Here only one is left.")
    assert decided_by(of(0.6, 0.6, noise=0.0).decision).endswith("Here 2 are surely as good.")


def test_where_all_results_are_equal_no_other_is_in_doubt():
    ((_, number, said, _),) = confidence(of(0.6, 0.6, noise=0.0))
    assert (number, said) == ("–", ["nothing to choose from"])


@pytest.mark.slow
@pytest.mark.parametrize("sla", [20.0, 500.0])
def test_page_record_and_json_say_the_same_lead_noise_and_band(shipped_store: Path, sla: float):
    decided = Workspace(Store.open(shipped_store), "docs-search").decide(sla_ms=sla)
    view, page = decided.view, str(decided.page("decision").blocks)
    found = lead(view)
    assert decided.data["lead"] == found.data
    for said in filter(None, lead_words(view)):
        assert said in page
    noise = [hurt for hurt in view.once(hurts) if hurt.section == "noise"]
    assert len(noise) == 1 + (view.once(second_row) is not None)
    for hurt in noise:
        assert hurt.sentence in page
    measured = sla == 20.0
    assert ("not measured" in noise[0].sentence) != measured
    assert ("Robust quality, each query at its worst level, is 0." in noise[0].sentence) == measured
    assert banded(view.table, view.decision) == measured, "0.9 ms is no jitter of 276 ms"
    assert ("the tile's interval" in band(view.table, view.decision, "1 ms")) == measured
