"""Embedders asked perturbed queries as paid work: bill, faults, budget, and nothing paid twice."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from core.diagnostics.vectors import VectorJob, bill, run_job
from core.errors import BudgetError, ClqError
from core.jobs import State
from core.pipeline.evaluate.session import Site
from core.prices import Price, PriceBook
from core.providers.config import ModelConfig
from tests.vendors import Step, Vendors, serve
from tests.vendors.keys import keys_for

ENDPOINT = "openai/embeddings"
TEXTS = ["where do cats sleep", "who sang it first", "what is a lambda", "why is the sky blue"]


@pytest.fixture
def vendors():
    with serve() as server:
        yield server


def job(vendors: Vendors, budget: float | None = None) -> VectorJob:
    told = {
        "provider": "openai", "base_url": vendors.openai, "key_env": "KEY", "dim": 384,
        "limits": {"attempts": 4}, "tokenizer": "cl100k_base",
    }  # fmt: skip
    about = {"provider": "fake", "looked_up": date(2026, 11, 1), "confirmed": True, "source": "here"}
    price = Price(item="ours", unit="input_tokens", price=1.0, per=1e6, currency="USD", **about)
    return VectorJob(
        texts=TEXTS, model="ours", book=PriceBook("fake", (price,)), budget_usd=budget,
        models={"ours": ModelConfig(model="ours", **told)},
    )  # fmt: skip


def measure(asked: VectorJob, folder: Path, vendors: Vendors):
    keys = keys_for(vendors.url, KEY="key")
    return run_job(asked, Site(work=folder / "vectors", shared=folder / "evaluations", keys=keys))


@pytest.mark.parametrize(
    "step",
    [Step(), Step.error(429, retry_after="0"), Step.error(500), Step("drop"), Step("malformed")],
    ids=lambda step: f"{step.kind} {step.status}",
)
def test_what_is_paid_is_paid_once(tmp_path: Path, vendors: Vendors, step: Step):
    vendors.script(ENDPOINT, step)
    asked = job(vendors)
    rows, result = measure(asked, tmp_path, vendors)
    assert result.status.state is State.FINISHED
    assert rows["perturb"].to_list() == [f"noise {level}" for level in range(5)]
    assert rows["cosine"][0] == pytest.approx(1)
    assert set(vendors.state.texts[ENDPOINT]) == set(asked.every_text())
    once = dict(vendors.state.texts[ENDPOINT])
    foreseen = bill(asked)
    assert foreseen.usd is not None
    assert result.status.usd > 0
    again, paid = measure(asked, tmp_path, vendors)
    assert again.equals(rows)
    assert paid.status.usd == pytest.approx(result.status.usd)
    assert vendors.state.texts[ENDPOINT] == once


def test_a_budget_ends_it_and_what_failed_goes_on(tmp_path: Path, vendors: Vendors):
    with pytest.raises(BudgetError):
        measure(job(vendors, budget=1e-9), tmp_path, vendors)
    vendors.script(ENDPOINT, Step(), Step.error(400))
    with pytest.raises(ClqError):
        measure(job(vendors), tmp_path, vendors)
    assert vendors.state.texts[ENDPOINT]
    _, result = measure(job(vendors, budget=1.0), tmp_path, vendors)
    assert result.status.state is State.FINISHED
    assert set(vendors.state.texts[ENDPOINT].values()) == {1}
