"""Ray: starts or joins a cluster, places tasks on its machines, and says which machines are gone.

Ray restarts the tasks of a lost machine on another one.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from core.errors import ClqError, InputError
from core.jobs import spread_over
from core.pipeline.evaluate.budget import Receipts
from core.pipeline.evaluate.cluster import machines
from core.pipeline.evaluate.cluster.coordinator import Within
from core.pipeline.evaluate.cluster.machines import Done, NodeOrder, ray
from core.pipeline.evaluate.job import Share
from core.prices import PriceBook
from core.providers.calls import Keys

LOCAL, CONFIGURED = "ray", "configured"
"""A cluster started here, on this machine alone; or the one that the operator names under `SETTING`."""
SETTING = "CLQ_RAY_ADDRESS"
"""Setting with a cluster's address, in the environment or in a secrets file."""
_ATTEMPTS = 20
"""How often a task is restarted on another machine."""
_ANSWER_S = 10.0
"""Seconds within which a cluster has to answer."""


def configured() -> str:
    """Return the address of the operator's cluster, or "" if there is none."""
    return Keys().setting(SETTING)


def _require_answer(address: str) -> None:
    """Raise an error at once if nobody listens; Ray itself would try for minutes."""
    parts = urlsplit(address if "://" in address else f"//{address}")
    if parts.hostname and parts.port:
        socket.create_connection((parts.hostname, parts.port), timeout=_ANSWER_S).close()


@contextmanager
def sharing(address: str) -> Iterator[None]:
    """Let a cluster of several machines cut documents; it is joined once there are any.

    Args:
        address: See `Nodes`; this machine alone cuts if it is empty or names only this machine.
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
    """The machines of one process's session of an evaluation.

    Args:
        address: `LOCAL`, `CONFIGURED`, or where a cluster is: "ray://host:10001", "host:6379", "auto".
    """

    def __init__(self, address: str) -> None:
        self._address = configured() if address == CONFIGURED else address
        if not self._address:
            raise InputError("No cluster is configured.", where=SETTING, do=f"Set {SETTING} to its address.")
        self.ray = ray()
        self._alive: frozenset[str] = frozenset()
        self._tasks: dict[tuple[Callable[..., Any], Share], Any] = {}

    def join(self) -> None:
        """Start or join the cluster, unless this process is in one."""
        self._was_in = self.ray.is_initialized()
        if self._was_in:
            return
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_worker_niceness", "0")  # otherwise timed work has the lowest priority
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
                f"No cluster answers ({type(error).__name__}).",  # its address may be a secret
                where="Ray",
                do="Start one (ray start --head), or use --on ray.",
            ) from error

    def part(self) -> None:
        """Shut down a cluster that was started here, or leave it."""
        if not self._was_in:
            self.ray.shutdown()

    def each(self, work: Callable[[Any], Any], blocks: Sequence[Any]) -> Iterator[Any]:
        """Process every block on any machine; return the results in the order of the blocks."""
        task = self.ray.remote(num_cpus=1, max_retries=_ATTEMPTS)(machines.do)
        with self.causes():
            done = [task.remote(work, block) for block in blocks]
            for place, ref in enumerate(done):
                yield self.ray.get(ref)
                done[place] = None  # Ray can drop it

    def open(
        self,
        order: NodeOrder,
        receipts: Path,
        journals: Mapping[str, Path],
        book: PriceBook,
        limit: float | None,
    ) -> None:
        """Open the coordinator on this machine, and share the order."""
        here = self.ray.get_runtime_context().get_node_id()
        pinned = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(here, soft=False)
        actor = self.ray.remote(num_cpus=0, max_restarts=0, scheduling_strategy=pinned)(
            machines.CoordinatorActor
        )
        proof = secrets.token_bytes(32)
        with self.causes():
            self._actor = actor.remote(receipts, journals, book, limit, proof)
            address = self.ray.get(self._actor.address.remote())
            self._context = machines.TaskContext(uuid4().hex, [self.ray.put(order)], address, proof)

    def begin(self, work: Callable[..., Any], share: Share, *given: Any) -> Any:
        """Start a task somewhere (`build`, `ask` or `finish`), and return the reference to its results."""
        if work is machines.finish and self.ray.util.client.ray.is_connected():
            work = machines.finish_all
        if (work, share) not in self._tasks:
            memory = {} if share.memory_gb is None else {"memory": share.memory_gb * 2**30}
            self._tasks[work, share] = self.ray.remote(
                num_cpus=share.cpus,
                num_gpus=share.gpus,
                max_retries=_ATTEMPTS,
                num_returns=machines.RETURNS[work],
                **memory,
            )(work)
        return self._tasks[work, share].remote(self._context, *given)

    def brought(self, pending: Sequence[Any], wait_s: float) -> Iterator[tuple[Any, Done | None]]:
        """Wait a while for results of tasks; return those that exist, and None for a task that has ended."""
        for ref in self._there(pending, wait_s):
            if isinstance(ref, self.ray.ObjectRef):
                brought = self._get(ref)
                yield from ((ref, done) for done in (brought if isinstance(brought, list) else [brought]))
                yield ref, None
                continue
            while self._there([ref], 0):  # its results come one after another
                one = next(ref, None)
                yield ref, None if one is None else self._get(one)
                if one is None:
                    break

    def _there(self, pending: Sequence[Any], wait_s: float) -> list[Any]:
        with self.causes():
            ready, _ = self.ray.wait(list(pending), num_returns=len(pending), timeout=wait_s)
        return list(ready)

    def _get(self, ref: Any) -> Any:
        with self.causes():
            return self.ray.get(ref)

    def look(self, receipts: Receipts) -> tuple[Within | None, int]:
        """Take over the spending; return the progress of a task, and how many machines were lost since."""
        with self.causes():
            facts, within = self.ray.get(self._actor.do.remote("progress"))
            alive = frozenset(node["NodeID"] for node in self.ray.nodes() if node["Alive"])
            lost = self._alive - alive
            if lost:
                self.ray.get(self._actor.do.remote("lose_nodes", sorted(lost)))
        self._alive = alive
        receipts.show(**facts)
        return within, len(lost)

    def size(self) -> dict[str, Any]:
        """Return the number of machines and processors."""
        return {"nodes": len(self._alive), "cpus": self.ray.cluster_resources().get("CPU", 0)}

    def slots(self, share: Share) -> int:
        """Return how many tasks with a given share run at the same time."""
        there = self.ray.cluster_resources()
        fits = [there.get(kind, 0) / of for kind, of in (("CPU", share.cpus), ("GPU", share.gpus)) if of]
        return max(1, int(min(fits, default=1)))

    def leave(self, pending: Sequence[Any]) -> None:
        """Cancel pending tasks, close the coordinator, and stop a cluster that was started here."""
        with suppress(self.ray.exceptions.RayError, AttributeError):
            self._actor.do.remote("stop")
            if pending:
                self.ray.wait(list(pending), num_returns=len(pending), timeout=machines.LAST_S)
            for ref in pending:
                self.ray.cancel(ref, force=True)
            self.ray.get(self._actor.close.remote())
            self.ray.kill(self._actor)
        self.part()

    @contextmanager
    def causes(self) -> Iterator[None]:
        """Raise the error that a task raised, or say that the cluster is gone."""
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
