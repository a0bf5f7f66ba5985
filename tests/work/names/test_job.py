"""Diagnoses with an embedder of a vendor's wire format: plan, faults, budget, kill −9; and the command."""

from __future__ import annotations

import json
import os
import time
from datetime import date
from pathlib import Path

import pytest
from typer.testing import CliRunner

from core.cli.app import app
from core.errors import BudgetError, ClqError, InputError, UnknownNameError
from core.jobs import State
from core.pipeline.evaluate.session import Site
from core.prices import Price, PriceBook
from core.providers.embed import make_embedder
from core.records import Batch
from core.store import Store
from core.views.diagnostics import names
from core.work.names.job import NamesJob, NamesSpec, figures, plan, read_job, run_job
from tests import warm
from tests.vendors import Step, Vendors, serve
from tests.vendors.keys import keys_for

ENDPOINT = "openai/embeddings"


@pytest.fixture
def vendors():
    with serve() as server:
        yield server


def told(url: str, **more: object) -> dict[str, object]:
    limits = {"concurrency": 2, "attempts": 4}
    model = {
        "provider": "openai", "base_url": url, "key_env": "KEY", "dim": 384, "limits": limits,
        "tokenizer": "cl100k_base",
    }  # fmt: skip
    return {
        "embedder": [{"name": "ours"}], "runs": 1, "queries": 6, "models": {"ours": model}, "prices": "fake",
        **more,
    }  # fmt: skip


def job(vendors: Vendors, *, price: float = 1.0, **more: object) -> NamesJob:
    about = {"provider": "fake", "looked_up": date(2026, 11, 1), "confirmed": True, "source": "here"}
    known = Price(item="ours", unit="input_tokens", price=price, per=1e6, currency="USD", **about)
    book = PriceBook("fake", (known,))
    return read_job(NamesSpec.model_validate(told(vendors.openai, **more)), {"fake": book})


def diagnose(asked: NamesJob, folder: Path, vendors: Vendors) -> tuple[Batch, State, float]:
    made: list[Batch] = []
    keys = keys_for(vendors.url, KEY="key")
    site = Site(work=folder / "diagnostics", shared=folder / "evaluations", keys=keys)
    outcome = run_job(asked, store_results=made.append, site=site)
    return made[0], outcome.status.state, outcome.status.usd


def rows_of(batch: Batch):
    return batch.frames["diagnostics"].lazy().collect()


@pytest.mark.slow
def test_every_text_is_paid_once_as_planned(tmp_path: Path, vendors: Vendors):
    asked = job(vendors)
    foreseen = plan(asked)
    batch, state, usd = diagnose(asked, tmp_path, vendors)
    assert state is State.FINISHED
    sent = vendors.state.texts[ENDPOINT]
    queries, candidates = asked.every_text()
    assert set(sent) == queries | candidates
    assert set(sent.values()) == {1}
    assert foreseen.texts == len(queries) + len(candidates)
    assert usd == pytest.approx(vendors.state.usage[ENDPOINT] / 1e6)
    assert foreseen.usd is not None
    assert sum(line.calls for line in foreseen.lines) > 0
    assert all(each.passed for each in names.checks(rows_of(batch)) if each.passed is not None)
    again, _, spent = diagnose(asked, tmp_path, vendors)
    assert rows_of(again).equals(rows_of(batch))
    assert spent == pytest.approx(usd)
    assert set(sent.values()) == {1}


@pytest.mark.slow
@pytest.mark.parametrize(
    "step",
    [Step.error(429, retry_after="0"), Step.error(500), Step("drop"), Step("malformed"), Step("partial")],
    ids=lambda step: f"{step.kind} {step.status}",
)
def test_faults_change_nothing(tmp_path: Path, vendors: Vendors, step: Step):
    whole, _, _ = diagnose(job(vendors), tmp_path / "whole", vendors)
    vendors.script(ENDPOINT, Step(), step)
    batch, state, _ = diagnose(job(vendors), tmp_path / "faults", vendors)
    assert state is State.FINISHED
    assert rows_of(batch).equals(rows_of(whole))


def test_what_failed_goes_on(tmp_path: Path, vendors: Vendors):
    vendors.script(ENDPOINT, *[Step()] * 3, Step.error(400))
    asked = job(vendors)
    with pytest.raises(ClqError):
        diagnose(asked, tmp_path, vendors)
    paid = sum(vendors.state.texts[ENDPOINT].values())
    assert paid > 0
    _, state, _ = diagnose(asked, tmp_path, vendors)
    assert state is State.FINISHED
    assert set(vendors.state.texts[ENDPOINT].values()) == {1}


@pytest.mark.slow
def test_a_budget_ends_it_and_more_goes_on(tmp_path: Path, vendors: Vendors):
    whole = plan(job(vendors)).usd
    assert whole is not None
    with pytest.raises(BudgetError):
        diagnose(job(vendors, budget_usd=whole / 2), tmp_path, vendors)
    assert vendors.state.usage[ENDPOINT] / 1e6 <= whole / 2
    _, state, _ = diagnose(job(vendors, budget_usd=whole * 2), tmp_path, vendors)
    assert state is State.FINISHED
    assert set(vendors.state.texts[ENDPOINT].values()) == {1}


@pytest.mark.slow
def test_killed_and_resumed(tmp_path: Path, vendors: Vendors):
    vendors.always(ENDPOINT, Step("slow", seconds=0.05))
    spec = tmp_path / "names.json"
    spec.write_text(json.dumps(told(vendors.openai, prices="list", runs=2)))
    store = tmp_path / "store"
    allowed = {"KEY": "key", "CLQ_ALLOW_KEYS": f"KEY={vendors.url}"}

    def begin(*words: str) -> warm.Child:
        command = ["--store", str(store), "diagnose", *words, "--format", "json"]
        return warm.command(command, {**os.environ, **allowed})

    process = begin("names", "--spec", str(spec), "--yes")
    while vendors.state.answered[ENDPOINT] < 3 and process.poll() is None:
        time.sleep(0.01)
    process.kill()
    assert process.communicate() is not None
    assert process.returncode == -9
    assert Store.open(store).read().revision == 0
    process = begin("resume", "names")
    said, complaints = process.communicate()
    assert process.returncode == 0, complaints
    assert {each["passed"] for each in json.loads(said)["checks"]} <= {True, None}
    counts = vendors.state.texts[ENDPOINT]
    asked = job(vendors, runs=2)
    queries, candidates = asked.every_text()
    assert set(counts) == queries | candidates
    under_way = 2 * vendors.state.largest[ENDPOINT]
    assert sum(counts.values()) - len(counts) <= under_way
    stored, _ = names.figures(Store.open(store).read())
    local = names.summary(figures(asked, lambda *_: make_embedder_at(asked, vendors)))
    assert stored.equals(local, null_equal=True)


def make_embedder_at(asked: NamesJob, vendors: Vendors):
    return make_embedder(asked.config("ours"), 384, keys=keys_for(vendors.url, KEY="key"))


def command(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == code, result.output
    return result.stdout


def test_the_command(tmp_path: Path):
    own = tmp_path / "parts.csv"
    own.write_text(
        "entity,topic,title\n"
        + "".join(f"AX-{i},pumps,Pump {i}\nAX-{i},valves,Valve {i}\n" for i in range(5))
    )
    words = ["--store", str(tmp_path / "store"), "diagnose", "names", "--embedder", "fake"]
    words += ["--entities", str(own), "--runs", "1", "--queries", "4", "--format", "json"]
    foreseen = json.loads(command(*words, "--dry-run"))
    assert foreseen["usd"] == 0
    assert not (tmp_path / "store" / "CURRENT").exists()
    said = json.loads(command(*words))
    assert {each["condition"] for each in said["summary"]} == set(names.ORDER)
    assert len(said["published"]) == 56
    (row,) = Store.open(tmp_path / "store").read().collections().to_dicts()
    assert row["source"] == "Measured on parts.csv"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--language", "de"), 1),
        (("--embedder", "nobody"), 1),
        (("--embedder", "wordllama", "--dim", "65"), 1),
        (("--runs", "0"), 2),
        (("--entities", "missing.csv"), 2),
    ],
)
def test_what_cannot_be_diagnosed(tmp_path: Path, words: tuple[str, ...], code: int):
    command("--store", str(tmp_path / "store"), "diagnose", "names", *words, code=code)


def test_unknown_names_are_named(vendors: Vendors):
    with pytest.raises(UnknownNameError):
        read_job(
            NamesSpec.model_validate({"embedder": [{"name": "nobody"}]}), {"list": PriceBook("list", ())}
        )
    with pytest.raises(InputError, match="No price book"):
        read_job(NamesSpec.model_validate({"embedder": [{"name": "fake"}]}), {})
