"""Parts of every provider call: purposes, amounts of usage, replies, and the meter of a budget."""

from __future__ import annotations

import importlib
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain
from typing import Any, Generic, Protocol, Self, TypeVar

from core.errors import ProviderError
from core.records import Basis

V = TypeVar("V")
W = TypeVar("W")

LOCAL_ITEM = "local-cpu"  # Name of this machine's processor time in price books
SENTENCE_TRANSFORMERS = "sentence-transformers"
CHECK = "Check its name, or set path to a folder with its files."
TOO_MUCH = ("too large", "timeout")  # Kinds of errors that half the input may avoid


class Purpose(StrEnum):
    """The purpose that a text is embedded for; many models treat passages and queries differently."""

    PASSAGE = "passage"
    QUERY = "query"


@dataclass(frozen=True, slots=True)
class Amount:
    """One kind of usage of one call."""

    item: str  # The priced item: a model ("voyage-3.5") or "local-cpu", named as in price books
    unit: str  # input_tokens, output_tokens, search_units, requests or cpu_ms
    amount: float | None  # How much, 0 or more; None = unknown
    basis: Basis  # MEASURED: from the vendor's response, or measured here; MODELLED: estimated


@dataclass(frozen=True, slots=True)
class Reply(Generic[V]):
    """The result of a call, with its usage and duration."""

    value: V  # The result
    # What producing the result used, whether it was paid now or comes from the journal. The `Meter` knows
    # what was paid now.
    usage: tuple[Amount, ...] = ()
    # Milliseconds of the successful call itself on the monotonic clock, without queueing, pacing, failed
    # attempts and backoff
    ms: float = 0.0
    waited_ms: float = 0.0  # Milliseconds of everything else
    attempts: int = 1  # How many times the call was sent; 0 if nothing was sent
    fresh: bool = True  # False if nothing was sent: `ms` is then not a present measurement
    # Figures for one kind of provider, such as {"chars_per_second": 812.0}
    details: Mapping[str, Any] = field(default_factory=dict)


def carrying(reply: Reply[Any], value: W, details: Mapping[str, Any] | None = None) -> Reply[W]:
    """Return the same reply with another value, and with other details if given."""
    about = reply.details if details is None else details
    return Reply(value, reply.usage, reply.ms, reply.waited_ms, reply.attempts, reply.fresh, about)


def joined(replies: Sequence[Reply[Any]], value: W, details: Mapping[str, Any] | None = None) -> Reply[W]:
    """Merge replies of successive calls into one, with the given value and details."""
    return Reply(
        value,
        total(reply.usage for reply in replies),
        sum(reply.ms for reply in replies),
        sum(reply.waited_ms for reply in replies),
        sum(reply.attempts for reply in replies),
        all(reply.fresh for reply in replies),
        details or {},
    )


def scaled(amount: Amount, share: float) -> Amount:
    """Return a share of an amount; a share of an unknown amount is unknown."""
    return replace(amount, amount=None if amount.amount is None else amount.amount * share)


def believable(amounts: Iterable[Amount]) -> tuple[Amount, ...]:
    """Return a vendor's reported usage; amounts that aren't numbers of 0 or more become unknown."""
    return tuple(
        replace(amount, amount=None)
        if amount.amount is not None and not 0 <= amount.amount < math.inf
        else amount
        for amount in amounts
    )


class Meter(Protocol):
    """Tracks what calls use, so that a budget refuses before anything is spent.

    Every attempt is reserved before it is sent, and then settled or released. An attempt of unknown outcome
    (a timeout, an unreadable answer) may have been billed: it is settled with the reserved amount.
    """

    def reserve(self, amounts: Sequence[Amount]) -> object:
        """Reserve the most that an attempt can use."""

    def settle(self, reservation: object, amounts: Sequence[Amount]) -> None:
        """Replace a reservation by what was used."""

    def release(self, reservation: object) -> None:
        """Release a reservation: the attempt was refused and costs nothing."""


def total(used: Iterable[Sequence[Amount]]) -> tuple[Amount, ...]:
    """Add up usage, per item and unit, in the order of their first appearance.

    A sum with an unknown part is unknown; a sum with an estimated part is estimated.
    """
    sums: dict[tuple[str, str], Amount] = {}
    for amount in chain.from_iterable(used):
        key = (amount.item, amount.unit)
        so_far = sums.get(key, Amount(*key, 0.0, amount.basis))
        unknown = so_far.amount is None or amount.amount is None
        added = None if unknown else (so_far.amount or 0.0) + (amount.amount or 0.0)
        sums[key] = Amount(*key, added, amount.basis if amount.basis == so_far.basis else Basis.MODELLED)
    return tuple(sums.values())


def timed(work: Callable[[], V]) -> Reply[V]:
    """Do work on this machine and time the whole process, so that nothing else should be running."""
    cpu, start = time.process_time(), time.perf_counter()
    value = work()
    ms, cpu_ms = (time.perf_counter() - start) * 1000, (time.process_time() - cpu) * 1000
    return Reply(value, (Amount(LOCAL_ITEM, "cpu_ms", cpu_ms, Basis.MEASURED),), ms)


class Model:
    """Base of models of every kind."""

    name: str  # its name in stacks and configurations
    provider: str = "local"  # who answers, for the journal
    item: str = LOCAL_ITEM  # its usage's name in price books
    local: bool = True  # whether it runs here, so that nothing is paid per call

    def ready(self) -> None:
        """Look up the key, or load the model, so that anything missing is found before the first call.

        Before this or the first call, only the attributes and estimates are certain to work.

        Raises:
            ProviderError: If there is no key, or a package that it needs is not installed.
            InputError: If a file of a local model is missing.
        """

    def count_tokens(self, text: str) -> int:
        """Return the tokens of a text: exact if the model's vocabulary is available, else an estimate."""
        return len(text) // 4 + 1

    def close(self) -> None:
        """Release connections; also done at the end of a `with` block."""

    def interrupt(self) -> None:
        """End all waits for a vendor."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *args: object) -> None:
        self.close()


def optional(package: str, attribute: str, name: str) -> Any:  # noqa: ANN401 - of a package without types
    """Return a class from an optional package, needed by the named model."""
    try:
        return getattr(importlib.import_module(package.replace("-", "_")), attribute)
    except ImportError as error:
        raise ProviderError(
            f"{name} needs the package {package}.", kind="refused", do=f"Install it: pip install {package}"
        ) from error


def loaded(make: Callable[[], V], package: str, name: str, do: str) -> V:
    """Return what a package makes of a model's files, or raise an error with its reason."""
    try:
        return make()
    except Exception as error:  # unknown names, missing files and refused downloads alike
        raise ProviderError(
            f"{package} cannot load the model: {error}", kind="refused", where=name, do=do
        ) from error
