"""Golden sets of texts by the command: killed and resumed, planned and paid."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from core.jobs import State
from core.pipeline.sweep import load_as
from core.store.doctor import examine
from core.work.golden.spec import GoldenSpec
from tests.pipeline import cranfield
from tests.work.golden import hidden

pytestmark = pytest.mark.slow
_KILLS, _QUESTIONS, _DEPTH = 5, 8, 12


@pytest.mark.skipif(
    not cranfield.FOLDER.is_dir(), reason=f"the Cranfield collection is not at {cranfield.FOLDER}"
)
@pytest.mark.timeout(600)
def test_a_killed_build_is_the_same_golden_set_and_nothing_is_paid_twice(tmp_path: Path):
    truth = hidden.cranfield_truth(_QUESTIONS)
    spec = hidden.cranfield_spec(hidden.cranfield_files(tmp_path, truth), _DEPTH)
    calm = hidden.Moody({}, delay_s=0.0)
    with hidden.serving(truth, calm) as url:
        whole = hidden.Place(tmp_path / "whole", url)
        plan = whole.table("golden", "plan", whole.spec(spec))
        begun = time.monotonic()
        whole.do("golden", "build", whole.spec(spec), "--yes")
        whole_s = time.monotonic() - begun
    for unit in hidden.PRICES:
        planned = sum(row["amount"] for row in plan["stages"] if row["unit"] == unit)
        assert planned == pytest.approx(
            sum(spent for (_, of), spent in calm.tokens.items() if of == unit), rel=0.01
        )
    assert plan["usd"] == pytest.approx(calm.usd(), rel=0.01)
    assert whole.status.usd == pytest.approx(calm.usd())

    moody = hidden.Moody(hidden.FAULTS, delay_s=0.03, seed=1)
    with hidden.serving(truth, moody) as url:
        place = hidden.Place(tmp_path / "killed", url)
        killing = hidden.kill_and_resume(
            place, place.spec(spec), moody, kills=_KILLS, needed=plan["calls"], whole_s=whole_s, seed=2026
        )
    assert len(killing.kills) == _KILLS
    read, other = place.store.read(), whole.store.read()
    assert read.judgements(hidden.NAME).equals(other.judgements(hidden.NAME))
    assert read.golden_sets()["golden_set_id"].to_list() == [hidden.NAME]
    assert examine(place.store).sound
    assert place.status.state is State.FINISHED
    paid = hidden.paid(place, moody, killing)
    assert {*calm.answers()} <= {*moody.answers("attempt")}
    assert paid.most_per_kill <= hidden.AT_ONCE
    assert paid.again <= paid.told <= _KILLS * hidden.AT_ONCE
    assert paid.told == place.status.calls_again
    assert paid.billed_usd <= paid.settled_usd + paid.lost_usd + 1e-9


def test_a_new_specification_is_built_at_once(tmp_path: Path):
    (tmp_path / "texts.csv").write_text("id,text\na,sort a frame\nb,mean of rows\n")
    (tmp_path / "asked.csv").write_text('id,question\nq,"to ""sort"" rows"\n')
    place = hidden.Place(tmp_path, "")
    files = (tmp_path / "texts.csv", "--questions", tmp_path / "asked.csv")
    text = place.do(
        "golden", "new", *files, "--judge", "fake", "--judge", "gpt-4o-mini", "--name", 'my "set"'
    )
    (tmp_path / "golden.toml").write_text(text)
    spec = load_as(GoldenSpec, tmp_path / "golden.toml")
    assert (spec.name, spec.golden.judge.models) == ('my "set"', ("fake", "gpt-4o-mini"))
    text = place.do("golden", "new", *files, "--judge", "fake")
    (tmp_path / "golden.toml").write_text(text)
    place.do("golden", "build", tmp_path / "golden.toml")
    assert place.store.read().judgements("judged")["passage_id"].unique().sort().to_list() == ["a", "b"]


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path):
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "text": "words"}\n')
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "words"}\n')
    place = hidden.Place(tmp_path / "place", "http://localhost:1")
    path = place.spec(hidden.cranfield_spec(tmp_path, 3).replace("wordllama", "wordlama"))
    path.write_text(path.read_text().replace("JUDGE_KEY", "OTHER_KEY"))
    process = place.start("golden", "build", path, "--yes")
    said = process.communicate()[1]
    assert process.returncode == 1
    assert "golden.judge.models" in said
    assert '"wordllama"' in said
