"""Budgets that end, vendors that fail, people who stop it: what was paid for is kept and not paid again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from core.errors import BudgetError, InputError, ProviderError
from core.files import locked
from core.pipeline.evaluate import Protocol
from core.pipeline.evaluate.budget import Receipts
from core.pipeline.evaluate.folder import Folder, State, Status, folder_of, folders
from core.records import Stack
from core.store import Store
from tests.pipeline.evaluate import paid
from tests.pipeline.evaluate.vendor import Vendor, vendor

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vendor]:
    with vendor(tmp_path_factory.mktemp("vendor")) as serving:
        paid.work(tmp_path_factory.mktemp("whole"), serving.url, "whole")
        yield serving


@pytest.fixture
def key(request: pytest.FixtureRequest) -> str:
    """What the server knows this test's requests by."""
    return "".join(letter if letter.isalnum() else "-" for letter in request.node.name)


def folder(path: Path) -> Folder:
    (found,) = folders(path / "evaluations")
    return found


def status(path: Path) -> Status:
    found = folder(path).status()
    assert found is not None
    return found


def stored(path: Path) -> set[str]:
    return set(Store.open(path / "store").read().runs()["label"])


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_budget_is_never_exceeded_and_what_it_bought_is_kept(
    server: Vendor, tmp_path: Path, key: str, concurrency: int
):
    protocol = Protocol(repeats=2, concurrency=concurrency)
    whole = server.billed("whole") * paid.USD_PER_TOKEN
    spent = []
    for share in (0.1, 0.4, 0.8):
        job = paid.job(server.url, budget_usd=share * whole, protocol=protocol)
        with pytest.raises(BudgetError, match=r"The budget of \$"):
            paid.work(tmp_path, server.url, key, job)
        spent.append(server.billed(key) * paid.USD_PER_TOKEN)
        assert spent[-1] <= share * whole
        assert status(tmp_path).state is State.BUDGET
        assert status(tmp_path).usd == pytest.approx(spent[-1])
    assert spent[0] < spent[1] < spent[2]
    assert "BM25, K = 5" in stored(tmp_path)
    done = paid.work(tmp_path, server.url, key, paid.job(server.url, budget_usd=whole + 1, protocol=protocol))
    assert done.status.state is State.FINISHED
    assert len(stored(tmp_path)) == len(paid.stacks())
    assert server.paid(key) == server.paid("whole")
    assert done.status.usd == pytest.approx(whole)


def test_what_was_spent_is_told_by_stage(server: Vendor, tmp_path: Path, key: str):
    outcome = paid.work(tmp_path, server.url, key)
    assert {each.stage for each in outcome.spent} == {
        "embed the corpus: embedder 16 d", "embed, warm-up", "embed", "rerank, warm-up", "rerank",
    }  # fmt: skip
    assert sum(each.usd or 0 for each in outcome.spent) == pytest.approx(outcome.status.usd)
    assert outcome.status.usd == pytest.approx(server.billed(key) * paid.USD_PER_TOKEN)
    usage = Store.open(tmp_path / "store").read().usage([run.run_id for run in outcome.runs])
    reranked = usage.filter(stage="rerank", item="r")
    assert reranked["basis"].unique().to_list() == ["measured"]
    assert reranked["amount"].min() > 0
    told = next(run for run in outcome.runs if run.stack.spec.get("dim") == 8).manifest["indexes"]["flat"]
    ((item, unit, tokens, basis),) = told["embed_usage"]
    assert (item, unit, basis) == ("e", "input_tokens", "measured")
    (corpus,) = [each for each in outcome.spent if each.stage.startswith("embed the corpus")]
    assert tokens == pytest.approx(corpus.amount.amount)


def test_an_unknown_price_is_refused_before_anything_is_paid(server: Vendor, tmp_path: Path, key: str):
    job = paid.job(server.url, budget_usd=5.0)
    job = replace(job, book=replace(job.book, prices=job.book.prices[:1]))
    with pytest.raises(BudgetError, match=r"What r costs \(input_tokens\) is not known"):
        paid.work(tmp_path, server.url, key, job)
    assert server.billed(key) == 0
    assert stored(tmp_path) == set()


def test_a_vendor_that_fails_leaves_what_was_finished(server: Vendor, tmp_path: Path, key: str):
    broken = paid.job(server.url, attempts=1)
    nowhere = {"base_url": "http://127.0.0.1:9", "key_env": ""}
    models = {**broken.models, "reranker": broken.models["reranker"].model_copy(update=nowhere)}
    with pytest.raises(ProviderError, match="voyage r: No answer to use"):
        paid.work(tmp_path, server.url, key, replace(broken, models=models))
    assert status(tmp_path).state is State.FAILED
    assert "No answer to use" in status(tmp_path).message
    assert stored(tmp_path) == {"BM25, K = 5", "embedder 8 d, K = 5"}
    assert paid.work(tmp_path, server.url, key).status.state is State.FINISHED
    assert server.paid(key) == server.paid("whole")


def test_a_key_is_in_no_file(server: Vendor, tmp_path: Path, key: str):
    with pytest.raises(ProviderError, match="There is no key for embedder"):
        paid.work(tmp_path, server.url, "")
    paid.work(tmp_path, server.url, "pa-0123456789abcdef")
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"pa-0123456789abcdef" not in path.read_bytes(), path


@pytest.mark.parametrize("how", ["asked", "file"])
def test_a_stop_is_a_stop_and_goes_on_later(server: Vendor, tmp_path: Path, key: str, how: str):
    job = paid.job(server.url)
    place = folder_of(tmp_path / "evaluations", job.name, job.evaluation_id)
    seen: list[str] = []

    def progress(told: Status) -> None:
        seen.append(told.stage)
        if how == "file" and told.stage.startswith("Timing"):
            place.stop.touch()

    stop = {"cancelled": lambda: how == "asked" and any(each.startswith("Timing") for each in seen)}
    outcome = paid.work(tmp_path, server.url, key, job, progress=progress, **stop)
    assert outcome.status.state is State.CANCELLED
    assert status(tmp_path).state is State.CANCELLED
    assert paid.work(tmp_path, server.url, key).status.state is State.FINISHED
    assert server.paid(key) == server.paid("whole")


def test_ctrl_c_keeps_what_was_finished(server: Vendor, tmp_path: Path, key: str):
    def progress(told: Status) -> None:
        if "reranker" in told.stage:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        paid.work(tmp_path, server.url, key, progress=progress)
    assert status(tmp_path).state is State.INTERRUPTED
    assert stored(tmp_path) == {"BM25, K = 5", "embedder 8 d, K = 5"}
    assert paid.work(tmp_path, server.url, key).status.state is State.FINISHED
    assert server.paid(key) == server.paid("whole")


def test_a_finished_evaluation_is_left_alone(server: Vendor, tmp_path: Path, key: str):
    first = paid.work(tmp_path, server.url, key)
    revision = Store.open(tmp_path / "store").revision()
    again = paid.work(tmp_path, server.url, key)
    assert (again.runs, set(again.held)) == ((), {run.run_id for run in first.runs})
    assert Store.open(tmp_path / "store").revision() == revision
    assert server.paid(key) == server.paid("whole")


def more(**changes: Any) -> Protocol:
    return replace(Protocol(repeats=2), **changes)


EXTENDED = {
    "a stack": {"stacks": [*paid.stacks(), Stack({**paid.stacks()[2].spec, "candidates": 7})]},
    "a repeat": {"protocol": more(repeats=3)},
    "a round": {"protocol": more(rounds=2)},
}


@pytest.mark.parametrize("what", EXTENDED)
def test_what_is_added_is_all_that_is_paid(server: Vendor, tmp_path: Path, key: str, what: str):
    paid.work(tmp_path, server.url, key)
    before = server.paid(key)
    outcome = paid.work(tmp_path, server.url, key, paid.job(server.url, **EXTENDED[what]))
    bought = server.paid(key) - before
    assert not any("number" in thing and "/" not in thing for thing in bought), "the corpus is there"
    asked = paid.job(server.url).queries.height
    embedded = sum(times for thing, times in bought.items() if "/" not in thing)
    if what == "a stack":
        assert (len(outcome.runs), embedded) == (1, 0)
        assert sum(bought.values()) == asked * 2 * 7
    else:
        warm_up = 1 if what == "a round" else 0
        again = 1 if what == "a repeat" else 2
        assert embedded == asked * 2 * again + warm_up
        assert len(outcome.runs) == len(paid.stacks())
        timings = Store.open(tmp_path / "store").read().timings([outcome.runs[0].run_id])
        assert timings["repeat"].max() == (3 if what == "a repeat" else 4)
        old = Store.open(tmp_path / "store").read()
        kept = old.timings(old.runs()["run_id"].to_list()).filter(stage="embed", repeat=1)
        assert kept["ms"].n_unique() == asked * 2, "times that were measured stay as they were"


def test_another_evaluation_shares_the_corpus_but_measures_for_itself(
    server: Vendor, tmp_path: Path, key: str
):
    paid.work(tmp_path, server.url, key)
    before = server.paid(key)
    paid.work(tmp_path, server.url, key, paid.job(server.url, name="other"))
    bought = server.paid(key) - before
    whole = server.paid("whole")
    corpus = {thing for thing in whole if "number" in thing and "/" not in thing}
    assert bought == type(whole)({thing: n for thing, n in whole.items() if thing not in corpus})


def test_without_repeats_answers_of_others_are_used_again(server: Vendor, tmp_path: Path, key: str):
    for name in ("one", "other"):
        job = paid.job(server.url, name=name, protocol=more(repeats=0))
        outcome = paid.work(tmp_path, server.url, key, job)
        assert outcome.status.state is State.FINISHED
    assert set(server.paid(key).values()) == {1}
    read = Store.open(tmp_path / "store").read()
    runs = read.runs()["run_id"].to_list()
    assert len(runs) == 2 * len(paid.stacks())
    assert read.timings(runs).is_empty()
    assert read.usage(runs)["unit"].unique().to_list() == ["input_tokens"]


def test_scores_of_the_deepest_pool_serve_the_others(server: Vendor, tmp_path: Path, key: str):
    stacks = [Stack({**paid.stacks()[2].spec, "candidates": k}) for k in (3, 6, 12)]
    job = paid.job(server.url, stacks=stacks, protocol=more(deepest=True))
    outcome = paid.work(tmp_path, server.url, key, job)
    calls = [things for things in server.requests(key) if "/" in things[0]]
    assert {len(things) for things in calls} == {12}
    assert len(calls) == paid.job(server.url).queries.height * 2 + 1
    each = paid.work(tmp_path / "each", server.url, key, paid.job(server.url, stacks=stacks))
    replayed, asked = (Store.open(path / "store").read() for path in (tmp_path, tmp_path / "each"))
    for one, other in zip(
        sorted(outcome.runs, key=lambda run: run.label),
        sorted(each.runs, key=lambda run: run.label),
        strict=True,
    ):
        k = one.stack.spec["candidates"]
        ranked = [
            s.rankings([run.run_id]).drop("run_id").sort(pl.all())
            for s, run in ((replayed, one), (asked, other))
        ]
        assert ranked[0].equals(ranked[1])
        assert replayed.timings([one.run_id]).is_empty() == (k < 12), "a replay has no time of its own"
        used = replayed.usage([one.run_id]).filter(stage="rerank")
        assert used["basis"].unique().to_list() == (["modelled"] if k < 12 else ["measured"])
        billed = asked.usage([other.run_id]).filter(stage="rerank")
        assert used["amount"].sum() == pytest.approx(billed["amount"].sum(), rel=0.25)
        assert ("replayed" in one.manifest) == (k < 12)


def test_two_processes_do_not_run_one_evaluation(server: Vendor, tmp_path: Path, key: str):
    job = paid.job(server.url)
    place = folder_of(tmp_path / "evaluations", job.name, job.evaluation_id)
    with locked(place.lock), pytest.raises(InputError, match="is running already"):
        paid.work(tmp_path, server.url, key)
    assert server.billed(key) == 0


def test_the_log_and_the_manifest_tell_what_happened(server: Vendor, tmp_path: Path, key: str):
    paid.work(tmp_path, server.url, key)
    events = [
        line.split('"event": "')[1].split('"')[0] for line in folder(tmp_path).log.read_text().splitlines()
    ]
    assert (events[0], events[-1]) == ("begin", "end")
    assert {"build", "answer", "round"} <= set(events)
    assert folder(tmp_path).manifest.is_file()
    receipts = Receipts(folder(tmp_path).receipts)
    assert (receipts.open, receipts.lost) == (0.0, 0.0)
    receipts.close()
