"""A cluster's coordinator, asked without a cluster; and evaluations on Ray, where it is installed."""

from __future__ import annotations

import pickle
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from functools import partial
from multiprocessing import AuthenticationError
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
import pytest

from core.errors import BudgetError, ClqError, InputError, ProviderError, UnknownNameError
from core.jobs import Stopped
from core.paths import ROOT
from core.pipeline.chunk import chunk
from core.pipeline.evaluate import Protocol
from core.pipeline.evaluate.budget import Receipts
from core.pipeline.evaluate.cluster.coordinator import Coordinator
from core.pipeline.evaluate.cluster.link import FarBudget, FarJournal, FarTurns, Link, Served, connected
from core.pipeline.evaluate.cluster.nodes import SETTING, sharing
from core.providers.base import Amount, Reply
from core.providers.calls import Limits
from core.records import Basis, Collection
from tests.pipeline.corpora import WORDS
from tests.pipeline.evaluate import helpers, paid
from tests.pipeline.evaluate.machines import lose_a_machine, nodes, wait_for
from tests.pipeline.evaluate.vendor import Vendor, vendor

ONE = (Amount("e", "input_tokens", 1.0, Basis.MEASURED),)


class Office:
    """A coordinator and the links of workers that ask it directly."""

    def __init__(self, folder: Path, limit: float | None = None) -> None:
        self.receipts = folder / "ledger.sqlite"
        self.coordinator = Coordinator(self.receipts, {"own": folder / "own.sqlite"}, paid.book(), limit)

    def link(self, worker: str, *, node: str = "n") -> Link:
        self.coordinator.ask("begin", worker, node)
        return Link(
            lambda method, *asked: self.coordinator.ask(method, worker, *asked),
            lambda method, *told: self.coordinator.tell(method, worker, *told),
        )


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    made = Office(tmp_path, limit=0.002)
    yield made
    made.coordinator.close()


def test_one_budget_for_all_workers(office: Office):
    one, other = office.link("one"), office.link("other", node="m")
    held = FarBudget(one).reserve(ONE)
    FarBudget(other).reserve(ONE)
    assert one.ask("attempt", "s", ONE) is None  # calls under way decide
    FarBudget(one).settle(held, ONE)
    assert office.coordinator.progress()[0]["usd"] == pytest.approx(0.001)
    office.coordinator.lose_nodes(["m"])  # nobody will know what the other's call cost
    assert office.coordinator.progress()[0]["usd_lost"] == pytest.approx(0.001)
    with pytest.raises(BudgetError, match=r"0\.002"):
        FarBudget(one).reserve(ONE)


def test_what_one_worker_asks_for_the_others_wait_for(office: Office):
    one, other = office.link("one"), office.link("other", node="m")
    journal = FarJournal(one, "own")
    assert journal.get("k") is None
    assert other.ask("replies", "own", ["k"]) is None  # not there, and another's to get
    with journal.sending(["k"]):
        journal.put("k", Reply("answer"))
    assert FarJournal(other, "own").get("k").value == "answer"
    assert FarJournal(other, "own").get("z") is None
    with FarJournal(other, "own").sending(["z"]):
        pass  # lost on its way
    office.coordinator.lose_nodes(["m"])
    assert journal.get("z") is None
    with journal.sending(["z"]):
        assert office.coordinator.progress()[0]["calls_again"] == 1


def test_one_pace_for_all_workers(office: Office):
    limits = Limits(requests_per_minute=1, concurrency=1)
    one, other = (FarTurns(office.link(name), "line", limits) for name in ("one", "other"))
    with one:
        assert one.book({"requests": 1}, 5.0) == pytest.approx(5.0, abs=0.1)
        assert office.coordinator.ask("enter", "other", "line", {"requests": 1}, 1) is None
    with other:
        assert other.book({"requests": 1}, 5.0) == pytest.approx(65.0, abs=0.1)
    free = FarTurns(office.link("one"), "free", Limits())
    free.hold(1e9)
    with free:
        assert free.book({"requests": 1}, 0.0) > 0


def test_over_the_wire_a_worker_that_ends_gives_back_what_it_held(office: Office):
    counter = Served(office.coordinator, "127.0.0.1", b"proof")
    with pytest.raises(AuthenticationError):
        connected(counter.address, b"guess", "stranger")
    silent = socket.create_connection(counter.address)  # nobody waits for one who says nothing
    one, other = (connected(counter.address, b"proof", name) for name in ("one", "other"))
    held = FarBudget(other).reserve(ONE)
    FarBudget(other).settle(held, ONE)
    FarJournal(other, "own").put("a", Reply("answer"))
    assert FarJournal(other, "own").get("a").value == "answer"
    assert FarJournal(one, "own").get("k") is None
    FarBudget(one).reserve(ONE)
    assert other.ask("attempt", "s", ONE) is None
    one.end()
    with pytest.raises(BudgetError):  # what the call of the worker that is gone can have cost stays spent
        FarBudget(other).reserve(ONE)
    assert FarJournal(other, "own").get("k") is None  # and others ask what it asked
    other.end()
    silent.close()
    counter.close()


def test_everybody_stops(office: Office):
    link = office.link("one")
    office.coordinator.stop()
    for method, *asked in (("replies", "own", ["k"]), ("attempt", "s", ONE), ("go_on",)):
        with pytest.raises(Stopped):
            link.ask(method, *asked)


def test_what_failed_untold_is_told_to_whoever_asks_next(office: Office):
    link = office.link("one")
    office.coordinator._paths["own"].mkdir()  # type: ignore[attr-defined]
    link.tell("keep", "own", {"k": Reply("answer")})
    with pytest.raises(ClqError, match="replies cannot be used"):
        link.ask("go_on")


def test_receipts_come_back_from_another_process(tmp_path: Path):
    own = Receipts(tmp_path / "ledger.sqlite")
    own.close()
    office = Office(tmp_path)
    office.link("one").ask("attempt", "s", ONE)
    office.coordinator.close()
    own.resume()
    assert (own.settled, own.lost, own.open) == (0.0, pytest.approx(0.001), 0.0)
    own.close()


@pytest.mark.parametrize(
    "error",
    [
        ClqError("found", where="w", do="d"),
        ProviderError("found", kind="busy", status=429, where="w"),
        UnknownNameError("kind", "name", ["a", "b"]),
    ],
)
def test_errors_travel(error: ClqError):
    again = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert (type(again), str(again), again.__dict__) == (type(error), str(error), error.__dict__)


def test_without_ray_the_error_names_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ClqError, match=r"pip install -r requirements-ray\.txt"):
        helpers.run(tmp_path, on="ray")


def test_no_cluster_is_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "ray", ModuleType("ray"))
    monkeypatch.delenv(SETTING, raising=False)
    with pytest.raises(InputError, match="No cluster is configured"):
        helpers.run(tmp_path, on="configured")


def test_where_no_cluster_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    stand_in = ModuleType("ray")
    stand_in.is_initialized = lambda: False  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ray", stand_in)
    with pytest.raises(ClqError, match="No cluster answers"):
        helpers.run(tmp_path, on="127.0.0.1:1")


def test_a_cluster_that_asks_for_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    class AuthenticationError(Exception): ...

    def refuse(*_: object, **__: object) -> None:
        raise ConnectionError from AuthenticationError()

    stand_in = ModuleType("ray")
    stand_in.__dict__.update({"is_initialized": lambda: False, "init": refuse})
    monkeypatch.setitem(sys.modules, "ray", stand_in)
    with pytest.raises(ClqError, match="RAY_AUTH_MODE"):
        helpers.run(tmp_path, on="auto")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vendor]:
    with (
        vendor(tmp_path_factory.mktemp("vendor"), delay_s=0.004) as made,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("KEY", "k")  # machines look keys up themselves
        patch.setenv("CLQ_ALLOW_KEYS", f"KEY={made.url}")
        yield made


@pytest.fixture(scope="module")
def cluster(server: Vendor) -> Iterator[Any]:
    """Two machines of one processor, which are processes here."""
    pytest.importorskip("ray", reason="needs requirements-ray.txt")
    with nodes(2) as made:
        yield made


@pytest.mark.extras
@pytest.mark.usefixtures("cluster")
def test_same_results_as_here(tmp_path: Path):
    asked = helpers.job(protocol=Protocol(shuffled=True, repeats=2, rounds=2))
    one, here = helpers.run(tmp_path / "here", asked)
    other, there = helpers.run(tmp_path / "there", asked, on="ray")
    assert sorted(there.run_ids) == sorted(here.run_ids)
    assert (one.status.done, one.status.total) == (other.status.done, other.status.total)
    for name in ("rankings", "signals"):
        assert there.table(name).sort(pl.all()).equals(here.table(name).sort(pl.all()))
    timed = [sunk.table("timings").drop("ms").sort(pl.all()) for sunk in (here, there)]
    assert timed[0].equals(timed[1])


@pytest.mark.extras
def test_documents_are_cut_by_all_machines(cluster: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("core.pipeline.chunk._BLOCK", 5_000)
    texts = {"source": [f"d{at}" for at in range(9)], "text": [f"{WORDS} {at}. " * 20 for at in range(9)]}
    chunker = {"method": "recursive", "size": 64}
    asked = partial(chunk, pl.DataFrame(texts), chunker, collection=Collection(collection_id="c", name="C"))
    here = asked()
    monkeypatch.setattr("core.pipeline.chunk.PARALLEL_FROM", 0)
    monkeypatch.setattr("core.pipeline.chunk.cores", lambda: 2)
    with sharing(cluster.address):
        there = asked()
    assert there.passages.equals(here.passages)


@pytest.mark.extras
def test_a_machine_and_then_the_process_that_writes_are_lost(tmp_path: Path, cluster: Any, server: Vendor):
    whole = paid.work_much(tmp_path / "whole", server.url, "k")
    needed, seen = server.paid(), len(server.lines())
    command = [sys.executable, "-m", "bench.ray_nodes", "work", str(tmp_path / "killed"), server.url]
    process = subprocess.Popen([*command, cluster.address], cwd=ROOT)
    wait_for(server, seen + 30)
    process.kill()
    process.wait()
    hunter = threading.Thread(target=lambda: (wait_for(server, seen + 60), lose_a_machine(cluster)))
    hunter.start()
    paid.work_much(tmp_path / "killed", server.url, "k", on="ray")
    hunter.join()
    paid.require_same(tmp_path / "whole", tmp_path / "killed")
    bought = Counter(thing for things in server.requests()[seen:] for thing in things)
    billed = sum(line["units"] for line in server.lines()[seen:]) * paid.USD_PER_TOKEN
    receipts = Receipts(paid.folder_of(tmp_path / "killed").receipts)
    assert not needed - bought
    calls = receipts.again  # of at most five things: a passage's batch has three, a pool five
    assert (bought - needed).total() <= 5 * calls
    assert calls <= 2 * 2 * paid.AT_ONCE, "two losses of two workers"
    assert receipts.settled == pytest.approx(whole.status.usd, rel=0.2)
    assert receipts.settled <= billed + 1e-9
    assert billed <= receipts.settled + receipts.lost + 1e-9
    receipts.close()
