"""A worker's link to the coordinator, in place of a local budget, journals and pacers."""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener, answer_challenge, deliver_challenge
from pathlib import Path
from typing import Any

from core.pipeline.evaluate.cluster.coordinator import Coordinator
from core.providers.base import Amount, Reply
from core.providers.calls import Journal, Limits
from core.providers.calls.caller import per_minute

_ASK_AGAIN_S = 0.02
_LOOK_S = 0.25
_PROVE_S = 10
"""Seconds in which a new connection has to prove that it is a worker."""
Address = tuple[str, int]


class Link:
    """One worker's connection to the coordinator: `ask` returns an answer, `tell` does not wait.

    Messages arrive in the order sent.
    """

    def __init__(
        self, ask: Callable[..., Any], tell: Callable[..., None], end: Callable[[], None] = lambda: None
    ) -> None:
        self.ask, self.tell, self.end = ask, tell, end
        self._looked = time.monotonic()

    def until(self, method: str, *asked: Any) -> Any:
        """Ask repeatedly until there is an answer."""
        while (answer := self.ask(method, *asked)) is None:
            time.sleep(_ASK_AGAIN_S)
        return answer

    def check(self) -> None:
        """Raise `Stopped` if the evaluation is to stop; this checks a few times a second."""
        if time.monotonic() - self._looked >= _LOOK_S:
            self._looked = time.monotonic()
            self.ask("go_on")


class FarBudget:
    """Watches the calls of a worker (`core.providers.base.Meter`)."""

    def __init__(self, link: Link) -> None:
        self._link, self._stage = link, ""

    def begin_stage(self, words: str) -> None:
        """Set the stage that the following calls belong to."""
        self._stage = words

    def reserve(self, amounts: Sequence[Amount]) -> object:
        """Reserve the maximum cost of a call."""
        return self._link.until("attempt", self._stage, list(amounts))

    def settle(self, reservation: object, amounts: Sequence[Amount]) -> None:
        """Replace a reservation by the actual usage."""
        self._link.tell("settle", reservation, list(amounts))

    def release(self, reservation: object) -> None:
        """Release a reservation whose call costs nothing."""
        self._link.tell("release", reservation)


class FarJournal(Journal):
    """A journal that the coordinator keeps.

    Workers wait for a call that another one has sent, so that it is not made twice.
    """

    def __init__(self, link: Link, name: str) -> None:
        self.path, self._link, self._which = Path(name), link, name

    def get_many(self, keys: Sequence[str]) -> dict[str, Reply[Any]]:
        """Return the replies that exist for some keys."""
        known: dict[str, Reply[Any]] = self._link.until("replies", self._which, list(keys))
        return known

    def put_many(self, replies: Mapping[str, Reply[Any]]) -> None:
        """Store replies; they are on their way when this returns."""
        self._link.tell("keep", self._which, dict(replies))

    def begin(self, keys: Sequence[str], call: str) -> None:
        """Record that the call with this name is sent."""
        self._link.tell("sent", self._which, list(keys), call)

    def forget(self, call: str) -> None:
        """Record that the call with this name cost nothing."""
        self._link.tell("refused", self._which, call)

    def close(self) -> None:
        """Do nothing: the coordinator closes its files."""


class FarTurns:
    """The slots and the pace of one line, shared by the whole cluster."""

    def __init__(self, link: Link, line: str, limits: Limits) -> None:
        self._link, self._line, self._most = link, line, limits.concurrency
        self._limits, self._held = per_minute(limits), 0.0

    def __enter__(self) -> None:
        held_s = self._link.until("enter", self._line, self._limits, self._most)
        self._held = max(self._held, time.monotonic() + held_s)

    def __exit__(self, *args: object) -> None:
        self._link.tell("leave", self._line)

    def book(self, costs: Mapping[str, float], now: float) -> float:
        """Book the next place for a call."""
        if not self._limits:
            return max(now, self._held)
        return now + float(self._link.ask("book", self._line, self._limits, dict(costs)))

    def hold(self, until: float) -> None:
        """Let nothing through before this moment."""
        self._link.tell("hold", self._line, self._limits, until - time.monotonic())


class Served:
    """A coordinator that workers reach over a socket; it serves one at a time, without waiting.

    Ray's own calls would also work, but take ten times as long as a nearby vendor's answer.
    """

    def __init__(self, coordinator: Coordinator, host: str, key: bytes) -> None:
        self.coordinator, self.lock = coordinator, threading.Lock()
        self._listener, self._key = Listener((host, 0), backlog=128), key
        threading.Thread(target=self._admit, name="coordinator", daemon=True).start()

    @property
    def address(self) -> Address:
        """The address for workers."""
        host, port = self._listener.address
        return str(host), int(port)

    def close(self) -> None:
        """Stop accepting workers, and release the files."""
        self._listener.close()
        with self.lock:
            self.coordinator.close()

    def _admit(self) -> None:
        while True:
            try:
                wire = self._listener.accept()
            except ConnectionError:
                continue
            except OSError:
                return  # it was closed
            threading.Thread(target=self._serve, args=(wire,), daemon=True).start()

    def _serve(self, wire: Connection) -> None:
        worker = ""
        with wire, suppress(EOFError, OSError, AuthenticationError):
            self._require_proof(wire)
            while True:
                wanted, method, worker, *given = wire.recv()
                if wanted:
                    wire.send(self._answer(method, worker, given))
                else:
                    with self.lock:
                        self.coordinator.tell(method, worker, *given)
        with self.lock:
            self.coordinator.lose(worker)

    def _require_proof(self, wire: Connection) -> None:
        """Raise an error unless the other side proves to be a worker; nothing is unpacked before."""
        with socket.socket(fileno=os.dup(wire.fileno())) as handle:
            handle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", _PROVE_S, 0))
            deliver_challenge(wire, self._key)
            answer_challenge(wire, self._key)
            handle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 0))

    def _answer(self, method: str, worker: str, asked: Sequence[Any]) -> tuple[Any, BaseException | None]:
        try:
            with self.lock:
                return self.coordinator.ask(method, worker, *asked), None
        except Exception as error:  # the caller gets the error
            return None, error


def connected(address: Address, key: bytes, worker: str) -> Link:
    """Return a worker's link to a coordinator, which releases what the worker holds when its process ends."""
    wire, lock = Client(address, authkey=key), threading.Lock()
    with socket.socket(fileno=os.dup(wire.fileno())) as handle:  # messages must not wait for more to send
        handle.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(method: str, *asked: Any) -> Any:
        with lock:
            wire.send((True, method, worker, *asked))
            answer, error = wire.recv()
        if error is not None:
            raise error
        return answer

    def tell(method: str, *given: Any) -> None:
        with lock:
            wire.send((False, method, worker, *given))

    return Link(ask, tell, wire.close)
