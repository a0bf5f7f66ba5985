"""Ray: starts or joins a cluster, places tasks on its machines, and says which of these are gone.

Ray begins the tasks of a machine that was lost once more on another.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from uuid import uuid4

from core.errors import ClqError, InputError
from core.extras import needed
from core.files import locked
from core.jobs import spread_over
from core.pipeline.evaluate.budget import Receipts
from core.pipeline.evaluate.cluster.desk import Desk, Told, Within
from core.pipeline.evaluate.cluster.link import Address, Link, Served, connected
from core.pipeline.evaluate.cluster.tasks import Answers, Done, Order, Piece, Worker
from core.pipeline.evaluate.job import Share
from core.prices import PriceBook
from core.providers.calls import Keys

LOCAL, CONFIGURED = "ray", "configured"
"""A cluster that is started here, of this machine alone; the one that the operator names under `SETTING`."""
SETTING = "CLQ_RAY_ADDRESS"
"""Where a cluster's address stands, in the environment or in a secrets file."""
_ATTEMPTS = 20
"""How often a task is begun again on another machine."""
_ANSWER_S, _LAST_S = 10.0, 20.0
"""Seconds that a cluster has to answer in, and tasks to end in when they are to stop."""


def _ray() -> ModuleType:
    return needed("ray", "requirements-ray.txt", "A cluster")


def configured() -> str:
    """Return the address of the operator's cluster; empty where there is none."""
    return Keys().setting(SETTING)


class Turn(NamedTuple):
    """What a task is given to find the work that it is a part of."""

    key: str  # tells it from others
    order: Sequence[Any]  # where Ray holds the `Order`; a process fetches it once
    desk: Address
    proof: bytes


def _require_answer(address: str) -> None:
    """Raise at once where nobody listens; Ray itself would try for minutes."""
    parts = urlsplit(address if "://" in address else f"//{address}")
    if parts.hostname and parts.port:
        socket.create_connection((parts.hostname, parts.port), timeout=_ANSWER_S).close()


class Keeper:
    """The desk as an actor, on the machine of the process that writes; see `Desk`."""

    def __init__(
        self, receipts: Path, journals: Mapping[str, Path], book: PriceBook, limit: float | None, proof: bytes
    ) -> None:
        self._alone = ExitStack()
        self._alone.enter_context(locked(receipts.with_name("desk.lock"), wait=_patience()))
        host = _ray().util.get_node_ip_address()
        self._served = Served(Desk(receipts, journals, book, limit), host, proof)

    def address(self) -> Address:
        """Return where workers find it."""
        return self._served.address

    def told(self) -> Told:
        """Return what a status says of the spending, and how far a task is."""
        with self._served.lock:
            return self._served.desk.told()

    def stop(self) -> None:
        """Let every task end."""
        with self._served.lock:
            self._served.desk.stop()

    def lose_nodes(self, nodes: Sequence[str]) -> None:
        """Give back what workers on lost machines held."""
        with self._served.lock:
            self._served.desk.lose_nodes(nodes)

    def close(self) -> None:
        """Release the files."""
        self._served.close()
        self._alone.close()


def _patience() -> Callable[[], None]:
    """Wait for the desk of a process that was killed, which Ray ends within moments."""
    end = time.monotonic() + _LAST_S

    def wait() -> None:
        if time.monotonic() > end:
            raise InputError(
                "A cluster still works on this evaluation for a process that is gone.",
                where="Ray",
                do="Wait a moment, and resume.",
            )

    return wait


_workers: dict[str, tuple[Worker, Link]] = {}
"""The worker of this process, by turn; there is one at most."""


@contextmanager
def _at_work(turn: Turn) -> Iterator[Worker]:
    ray = _ray()
    if turn.key not in _workers:
        _workers.clear()
        with suppress(
            ValueError
        ):  # not its first thread; the call under way of a worker that is ended is lost
            signal.signal(signal.SIGTERM, lambda *_: os._exit(1))
        link = connected(turn.desk, turn.proof, uuid4().hex)
        order: Order = ray.get(turn.order[0])
        _workers[turn.key] = Worker(order, link), link
    worker, link = _workers[turn.key]
    link.ask("begin", ray.get_runtime_context().get_node_id())
    try:
        yield worker
    finally:
        link.tell("end")


def build(turn: Turn, key: str, *_built: Done) -> Done:
    """Build what a step is; a task."""
    with _at_work(turn) as worker:
        worker.build(key)
    return Done({})


def ask(turn: Turn, piece: Piece, *inputs: Answers | Done) -> tuple[Answers, Done]:
    """Ask the queries of a piece, given the answers of those before it and what was built; a task."""
    with _at_work(turn) as worker:
        return worker.ask(piece, [each for each in inputs if isinstance(each, dict)])


def finish(turn: Turn, piece: Piece, *inputs: Answers | Done) -> Iterator[Done]:
    """As `ask`, and bring the results of one stack after the other; as many if it is begun again."""
    with _at_work(turn) as worker:
        yield from worker.finish(piece, [each for each in inputs if isinstance(each, dict)])


def finish_all(turn: Turn, piece: Piece, *inputs: Answers | Done) -> list[Done]:
    """As `finish`, and bring all results together: a client of Ray ("ray://") takes none as they come."""
    return list(finish(turn, piece, *inputs))


_RETURNS: Mapping[Callable[..., Any], int | str] = {build: 1, ask: 2, finish: "streaming", finish_all: 1}
"""What Ray hands out for a task: where its one result will be, or its two, or one after the other."""


def _do(work: Callable[[Any], Any], block: object) -> object:
    return work(block)


@contextmanager
def sharing(address: str) -> Iterator[None]:
    """Have documents cut by a cluster of several machines, which is joined when there are any.

    Args:
        address: As of `Nodes`; nothing is shared where it is empty, or this machine's alone.
    """
    if address in ("", LOCAL):
        yield
        return
    nodes, joined = Nodes(address), False

    def others(work: Callable[[Any], Any], blocks: Sequence[Any]) -> Iterator[Any]:
        nonlocal joined
        if not joined:
            nodes.join()
            joined = True
        return nodes.each(work, blocks)

    try:
        with spread_over(others):
            yield
    finally:
        if joined:
            nodes.part()


class Nodes:
    """The machines of one process's turn at an evaluation.

    Args:
        address: `LOCAL`, `CONFIGURED`, or where a cluster is: "ray://host:10001", "host:6379", "auto".
    """

    def __init__(self, address: str) -> None:
        self._address = configured() if address == CONFIGURED else address
        if not self._address:
            raise InputError("No cluster is configured.", where=SETTING, do=f"Set {SETTING} to its address.")
        self.ray = _ray()
        self._alive: frozenset[str] = frozenset()
        self._tasks: dict[tuple[Callable[..., Any], Share], Any] = {}

    def join(self) -> None:
        """Start or join the cluster, unless this process is in one."""
        self._was_in = self.ray.is_initialized()
        if self._was_in:
            return
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_worker_niceness", "0")  # else what is timed runs behind all others
        own = {"include_dashboard": False} if self._address == LOCAL else {}
        address = "local" if self._address == LOCAL else self._address
        try:
            _require_answer(address)
            self.ray.init(address, log_to_driver=False, logging_level="ERROR", **own)
        except (OSError, RuntimeError, ValueError) as error:
            if type(error.__cause__).__name__ == "AuthenticationError":
                raise ClqError(
                    "The cluster refuses this machine.",
                    where="Ray",
                    do="Set RAY_AUTH_MODE=token on every machine, with the same token (ray get-auth-token).",
                ) from error
            raise ClqError(
                f"No cluster answers ({type(error).__name__}).",  # its address may be the operator's secret
                where="Ray",
                do="Start one (ray start --head), or use --on ray.",
            ) from error

    def part(self) -> None:
        """End a cluster that was started here, or leave it."""
        if not self._was_in:
            self.ray.shutdown()

    def each(self, work: Callable[[Any], Any], blocks: Sequence[Any]) -> Iterator[Any]:
        """Do something for every block, on whatever machine; its results in the order of the blocks."""
        task = self.ray.remote(num_cpus=1, max_retries=_ATTEMPTS)(_do)
        with self.causes():
            done = [task.remote(work, block) for block in blocks]
            for place, ref in enumerate(done):
                yield self.ray.get(ref)
                done[place] = None  # Ray lets go of it

    def open(
        self, order: Order, receipts: Path, journals: Mapping[str, Path], book: PriceBook, limit: float | None
    ) -> None:
        """Open the desk, on this machine, and give out the order."""
        here = self.ray.get_runtime_context().get_node_id()
        pinned = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(here, soft=False)
        keeper = self.ray.remote(num_cpus=0, max_restarts=0, scheduling_strategy=pinned)(Keeper)
        proof = secrets.token_bytes(32)
        with self.causes():
            self._keeper = keeper.remote(receipts, journals, book, limit, proof)
            address = self.ray.get(self._keeper.address.remote())
            self._turn = Turn(uuid4().hex, [self.ray.put(order)], address, proof)

    def begin(self, work: Callable[..., Any], share: Share, *given: Any) -> Any:
        """Have a task done somewhere: `build`, `ask` or `finish`; returns where its results will be."""
        if work is finish and self.ray.util.client.ray.is_connected():
            work = finish_all
        if (work, share) not in self._tasks:
            memory = {} if share.memory_gb is None else {"memory": share.memory_gb * 2**30}
            self._tasks[work, share] = self.ray.remote(
                num_cpus=share.cpus,
                num_gpus=share.gpus,
                max_retries=_ATTEMPTS,
                num_returns=_RETURNS[work],
                **memory,
            )(work)
        return self._tasks[work, share].remote(self._turn, *given)

    def brought(self, pending: Sequence[Any], wait_s: float) -> Iterator[tuple[Any, Done | None]]:
        """Wait a while for results of tasks; those that are there, and None for a task that has ended."""
        for ref in self._there(pending, wait_s):
            if isinstance(ref, self.ray.ObjectRef):
                brought = self._get(ref)
                yield from ((ref, done) for done in (brought if isinstance(brought, list) else [brought]))
                yield ref, None
            else:
                yield from self._streamed(ref)

    def _streamed(self, results: Any) -> Iterator[tuple[Any, Done | None]]:
        while self._there([results], 0):
            ref = next(results, None)
            yield results, None if ref is None else self._get(ref)
            if ref is None:
                return

    def _there(self, pending: Sequence[Any], wait_s: float) -> list[Any]:
        with self.causes():
            ready, _ = self.ray.wait(list(pending), num_returns=len(pending), timeout=wait_s)
        return list(ready)

    def _get(self, ref: Any) -> Any:
        with self.causes():
            return self.ray.get(ref)

    def look(self, receipts: Receipts) -> tuple[Within | None, int]:
        """Take over what was spent; how far a task is, and how many machines were lost since."""
        with self.causes():
            facts, within = self.ray.get(self._keeper.told.remote())
            alive = frozenset(node["NodeID"] for node in self.ray.nodes() if node["Alive"])
            lost = self._alive - alive
            if lost:
                self.ray.get(self._keeper.lose_nodes.remote(sorted(lost)))
        self._alive = alive
        receipts.show(**facts)
        return within, len(lost)

    def size(self) -> dict[str, Any]:
        """Return how many machines and processors there are."""
        return {"nodes": len(self._alive), "cpus": self.ray.cluster_resources().get("CPU", 0)}

    def slots(self, share: Share) -> int:
        """Return how many tasks of a share run at the same time."""
        there = self.ray.cluster_resources()
        fits = [there.get(kind, 0) / of for kind, of in (("CPU", share.cpus), ("GPU", share.gpus)) if of]
        return max(1, int(min(fits, default=1)))

    def leave(self, pending: Sequence[Any]) -> None:
        """Stop what is under way, close the desk, and end a cluster that was started here."""
        with suppress(self.ray.exceptions.RayError, AttributeError):
            self._keeper.stop.remote()
            if pending:
                self.ray.wait(list(pending), num_returns=len(pending), timeout=_LAST_S)
            for ref in pending:
                self.ray.cancel(ref, force=True)
            self.ray.get(self._keeper.close.remote())
            self.ray.kill(self._keeper)
        self.part()

    @contextmanager
    def causes(self) -> Iterator[None]:
        """Raise what a task raised, and say in words that the cluster is gone."""
        try:
            yield
        except self.ray.exceptions.RayTaskError as error:
            raise getattr(error, "cause", None) or error from None
        except self.ray.exceptions.RayError as error:
            raise ClqError(
                f"The cluster cannot go on: {type(error).__name__}.",
                where="Ray",
                do="Everything so far is kept. Look after the cluster, and resume.",
            ) from error
