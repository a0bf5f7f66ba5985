"""Readers on Cranfield by the command: killed, refused, cut and dropped, and the same answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.jobs import State
from core.store.doctor import examine
from tests.pipeline import cranfield
from tests.work.golden import hidden
from tests.work.readers import killed

pytestmark = pytest.mark.slow
_KILLS, _QUESTIONS = 3, 12


@pytest.mark.skipif(
    not cranfield.FOLDER.is_dir(), reason=f"the Cranfield collection is not at {cranfield.FOLDER}"
)
@pytest.mark.timeout(600)
def test_killed_readers_give_the_same_answers_and_nothing_is_paid_twice(tmp_path: Path):
    base = killed.stored(tmp_path / "base", _QUESTIONS)
    calm = hidden.Moody({}, delay_s=0.0)
    moody = hidden.Moody({**hidden.FAULTS, "form": 0.0}, delay_s=0.03, seed=1)
    whole, place, told = killed.compare(tmp_path, base, moody, calm, _KILLS)
    assert len(told.killing.kills) == _KILLS
    assert told.same
    assert told.answers == told.plan["answers"]
    assert len(calm.answers()) == told.plan["asked"]
    assert whole.status.usd == pytest.approx(calm.usd())
    assert examine(place.store).sound
    assert place.status.state is State.FINISHED
    paid = hidden.paid(place, moody, told.killing)
    assert {*calm.answers()} <= {*moody.answers("attempt")}
    assert paid.most_per_kill <= hidden.AT_ONCE
    assert paid.again <= paid.told <= _KILLS * hidden.AT_ONCE
    assert paid.billed_usd <= paid.settled_usd + paid.lost_usd + 1e-9
