"""What Ray runs on the machines of a cluster: the desk of an evaluation, and tasks."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from uuid import uuid4

from core.errors import InputError
from core.extras import needed
from core.files import locked
from core.pipeline.evaluate.cluster.desk import Desk, Told
from core.pipeline.evaluate.cluster.link import Address, Link, Served, connected
from core.pipeline.evaluate.cluster.tasks import Answers, Done, Order, Piece, Worker
from core.prices import PriceBook

LAST_S = 20.0
"""Seconds that tasks have to end in when they are to stop."""


def ray() -> ModuleType:
    """Return Ray, where it is installed."""
    return needed("ray", "requirements-ray.txt", "A cluster")


class Turn(NamedTuple):
    """What a task is given to find the work that it is a part of."""

    key: str  # tells it from others
    order: Sequence[Any]  # where Ray holds the `Order`; a process fetches it once
    desk: Address
    proof: bytes


class Keeper:
    """The desk as an actor, on the machine of the process that writes; see `Desk`."""

    def __init__(
        self, receipts: Path, journals: Mapping[str, Path], book: PriceBook, limit: float | None, proof: bytes
    ) -> None:
        self._alone = ExitStack()
        self._alone.enter_context(locked(receipts.with_name("desk.lock"), wait=_patience()))
        host = ray().util.get_node_ip_address()
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
    end = time.monotonic() + LAST_S

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
    if turn.key not in _workers:
        _workers.clear()
        with suppress(
            ValueError
        ):  # not its first thread; the call under way of a worker that is ended is lost
            signal.signal(signal.SIGTERM, lambda *_: os._exit(1))
        link = connected(turn.desk, turn.proof, uuid4().hex)
        order: Order = ray().get(turn.order[0])
        _workers[turn.key] = Worker(order, link), link
    worker, link = _workers[turn.key]
    link.ask("begin", ray().get_runtime_context().get_node_id())
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


RETURNS: Mapping[Callable[..., Any], int | str] = {build: 1, ask: 2, finish: "streaming", finish_all: 1}
"""What Ray hands out for a task: where its one result will be, or its two, or one after the other."""


def do(work: Callable[[Any], Any], block: object) -> object:
    """Do something with a block; a task."""
    return work(block)
