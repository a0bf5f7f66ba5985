"""A cluster's desk, asked without a cluster; and evaluations on Ray, where it is installed."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from multiprocessing import AuthenticationError
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
import pytest

from core.errors import BudgetError, ClqError, InputError, ProviderError, UnknownNameError
from core.jobs import Stopped
from core.pipeline.evaluate import Protocol
from core.pipeline.evaluate.budget import Receipts
from core.pipeline.evaluate.cluster.desk import Desk
from core.pipeline.evaluate.cluster.link import Counter, FarBudget, FarJournal, FarTurns, Link, connected
from core.pipeline.evaluate.cluster.nodes import SETTING
from core.providers.base import Amount, Reply
from core.providers.calls import Limits
from core.records import Basis
from tests.pipeline.evaluate import helpers, paid

ONE = (Amount("e", "input_tokens", 1.0, Basis.MEASURED),)


class Office:
    """A desk and the links of workers that ask it directly."""

    def __init__(self, folder: Path, limit: float | None = None) -> None:
        self.receipts = folder / "ledger.sqlite"
        self.desk = Desk(self.receipts, {"own": folder / "own.sqlite"}, paid.book(), limit)

    def link(self, worker: str, *, node: str = "n") -> Link:
        self.desk.ask("begin", worker, node)
        return Link(
            lambda method, *asked: self.desk.ask(method, worker, *asked),
            lambda method, *told: self.desk.tell(method, worker, *told),
        )


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    made = Office(tmp_path, limit=0.002)
    yield made
    made.desk.close()


def test_one_budget_for_all_workers(office: Office):
    one, other = office.link("one"), office.link("other", node="m")
    held = FarBudget(one).reserve(ONE)
    FarBudget(other).reserve(ONE)
    assert one.ask("attempt", "s", ONE) is None  # calls under way decide
    FarBudget(one).settle(held, ONE)
    assert office.desk.told()[0]["usd"] == pytest.approx(0.001)
    office.desk.lose_nodes(["m"])  # nobody will know what the other's call cost
    assert office.desk.told()[0]["usd_lost"] == pytest.approx(0.001)
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
    office.desk.lose_nodes(["m"])
    assert journal.get("z") is None
    with journal.sending(["z"]):
        assert office.desk.told()[0]["calls_again"] == 1


def test_one_pace_for_all_workers(office: Office):
    limits = Limits(requests_per_minute=1, concurrency=1)
    one, other = (FarTurns(office.link(name), "line", limits) for name in ("one", "other"))
    with one:
        assert one.book({"requests": 1}, 5.0) == pytest.approx(5.0, abs=0.1)
        assert office.desk.ask("enter", "other", "line", {"requests": 1}, 1) is None
    with other:
        assert other.book({"requests": 1}, 5.0) == pytest.approx(65.0, abs=0.1)
    free = FarTurns(office.link("one"), "free", Limits())
    free.hold(1e9)
    with free:
        assert free.book({"requests": 1}, 0.0) > 0


def test_over_the_wire_a_worker_that_ends_gives_back_what_it_held(office: Office):
    counter = Counter(office.desk, "127.0.0.1", b"proof")
    with pytest.raises(AuthenticationError):
        connected(counter.address, b"guess", "stranger")
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
    counter.close()


def test_everybody_stops(office: Office):
    link = office.link("one")
    office.desk.stop()
    for method, *asked in (("replies", "own", ["k"]), ("attempt", "s", ONE), ("go_on",)):
        with pytest.raises(Stopped):
            link.ask(method, *asked)


def test_what_failed_untold_is_told_to_whoever_asks_next(office: Office):
    link = office.link("one")
    office.desk._paths["own"].mkdir()  # type: ignore[attr-defined]
    link.tell("keep", "own", {"k": Reply("answer")})
    with pytest.raises(ClqError, match="replies cannot be used"):
        link.ask("go_on")


def test_receipts_come_back_from_another_process(tmp_path: Path):
    own = Receipts(tmp_path / "ledger.sqlite")
    own.close()
    office = Office(tmp_path)
    office.link("one").ask("attempt", "s", ONE)
    office.desk.close()
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


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    ray = pytest.importorskip("ray", reason="needs requirements-ray.txt")
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield ray
    ray.shutdown()


@pytest.mark.extras
@pytest.mark.parametrize("protocol", [Protocol(repeats=1), Protocol(shuffled=True, repeats=2, rounds=2)])
def test_same_results_as_here(tmp_path: Path, cluster: Any, protocol: Protocol):
    asked = helpers.job(protocol=protocol)
    one, here = helpers.run(tmp_path / "here", asked)
    other, there = helpers.run(tmp_path / "there", asked, on="ray")
    assert sorted(there.run_ids) == sorted(here.run_ids)
    assert (one.status.done, one.status.total) == (other.status.done, other.status.total)
    for name in ("rankings", "signals"):
        assert there.table(name).sort(pl.all()).equals(here.table(name).sort(pl.all()))
    timed = [sunk.table("timings").drop("ms").sort(pl.all()) for sunk in (here, there)]
    assert timed[0].equals(timed[1])
