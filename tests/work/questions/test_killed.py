"""Questions by a model, by the command: killed and resumed, then run and decided on."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from core.jobs import State
from core.views.words.facts import MADE_UP, ONE_PLACE
from core.work.questions.folder import EVALUATION, QUERIES, QUOTES, QuestionSet, read
from tests.work.golden import hidden
from tests.work.questions import texts
from tests.work.questions.writers import writer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
_KILLS, _COUNT = 10, 24
SPEC = """
name = "judged"
collection.path = "{folder}"
method = "judge"
count = {count}
kinds = ["fact", "typed", "unanswerable"]
twins = true
budget_usd = 50.0
out = "{out}"
"""


class Writer:
    """What the model of the server says."""

    def answer(self, body: Mapping[str, Any]) -> str:
        return writer(body)


class Calm(NamedTuple):
    """A set that was made in peace."""

    place: hidden.Place
    handbook: Path
    state: hidden.Moody
    seconds: float


def spec_of(place: hidden.Place, handbook: Path) -> Path:
    return place.spec(SPEC.format(folder=handbook, count=_COUNT, out=place.folder / "asked"))


def sets(place: hidden.Place) -> list[QuestionSet]:
    """The set and its twin, without what was paid."""
    made = [read(place.folder / name) for name in ("asked", "asked-twin")]
    return [
        QuestionSet(
            about={}, entries=tuple(replace(one, draft=replace(one.draft, usd=None)) for one in each.entries)
        )
        for each in made
    ]


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Calm]:
    folder = tmp_path_factory.mktemp("calm")
    handbook, state = texts.handbook(folder), hidden.Moody({}, delay_s=0.0)
    with hidden.serving(Writer(), state) as url:
        place = hidden.Place(folder / "whole", url, "questions")
        begun = time.monotonic()
        place.do(*place.begin(spec_of(place, handbook)))
        yield Calm(place, handbook, state, time.monotonic() - begun)


def test_killed_questions_are_the_same_set_and_nothing_is_paid_twice(calm: Calm, tmp_path: Path):
    assert calm.place.status.usd == pytest.approx(calm.state.usd())
    needed = len({*calm.state.answers()})
    moody = hidden.Moody(hidden.FAULTS, delay_s=0.03, seed=1)
    with hidden.serving(Writer(), moody) as url:
        place = hidden.Place(tmp_path / "killed", url, "questions")
        killing = hidden.kill_and_resume(
            place, spec_of(place, calm.handbook), moody,
            kills=_KILLS, needed=needed, whole_s=calm.seconds, seed=2026,
        )  # fmt: skip
    assert len(killing.kills) == _KILLS
    assert sets(place) == sets(calm.place)
    for name in (QUERIES, QUOTES):
        assert (place.folder / "asked" / name).read_bytes() == (
            calm.place.folder / "asked" / name
        ).read_bytes()
    assert place.status.state is State.FINISHED
    paid = hidden.paid(place, moody, killing)
    assert {*calm.state.answers()} <= {*moody.answers("attempt")}
    assert paid.most_per_kill <= hidden.AT_ONCE
    assert paid.again <= paid.told <= _KILLS * hidden.AT_ONCE
    assert paid.billed_usd <= paid.settled_usd + paid.lost_usd + 1e-9


def test_from_documents_by_a_vendor_to_a_decision(calm: Calm):
    place = calm.place
    assert len(read(place.folder / "asked").asked) == _COUNT
    place.do("run", place.folder / "asked" / EVALUATION, "--yes")
    (collection,) = place.store.read().runs()["collection_id"].unique()
    found = json.loads(place.do("decide", "--collection", collection, "--format", "json"))
    assert found["chosen"]["quality_low"] <= found["chosen"]["quality"] <= found["chosen"]["quality_high"]
    assert 0 < found["chosen"]["n"] <= _COUNT
    assert {MADE_UP, ONE_PLACE} <= {*found["warnings"]}
    assert found["verdict"] != "ship"
