"""What every call of a provider speaks: purposes, amounts of usage, replies, and the meter of a budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Generic, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from core.records import Basis

V = TypeVar("V")
A = TypeVar("A", bound=NDArray[Any])

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Purpose(StrEnum):
    """What a text is embedded for; many models treat the two differently."""

    PASSAGE = "passage"
    QUERY = "query"


@dataclass(frozen=True, slots=True)
class Amount:
    """One kind of usage of one call.

    Attributes:
        item: What is priced: a model ("voyage-3.5") or "local-cpu", as price books name it.
        unit: input_tokens, output_tokens, search_units, requests or cpu_ms.
        amount: How much, 0 or more; None = not known.
        basis: MEASURED: from the vendor's response, or measured here; MODELLED: estimated.
    """

    item: str
    unit: str
    amount: float | None
    basis: Basis


@dataclass(frozen=True, slots=True)
class Reply(Generic[V]):
    """What a call brought, what it used and how long it took.

    Attributes:
        value: The result.
        usage: What producing the result used, whether it was paid now or is from the journal. What was paid
            now is known to the `Meter`.
        ms: Milliseconds of the successful call itself on the monotonic clock, without queueing, pacing,
            failed attempts and backoff.
        waited_ms: Milliseconds of all of the rest.
        attempts: How many times the call was sent; 0 when nothing was sent.
        fresh: False when nothing was sent for it: `ms` is then not a measurement of now.
        details: Figures of one kind of provider, such as {"chars_per_second": 812.0}.
    """

    value: V
    usage: tuple[Amount, ...] = ()
    ms: float = 0.0
    waited_ms: float = 0.0
    attempts: int = 1
    fresh: bool = True
    details: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)


W = TypeVar("W")


def carrying(reply: Reply[Any], value: W, details: Mapping[str, Any] | None = None) -> Reply[W]:
    """The same reply with another value, and other details if they are given."""
    return Reply(
        value,
        reply.usage,
        reply.ms,
        reply.waited_ms,
        reply.attempts,
        reply.fresh,
        dict(reply.details) if details is None else details,
    )


TOO_MUCH = ("too large", "timeout")
"""Kinds of errors that half as much at once may not meet."""


class Meter(Protocol):
    """Watches what calls use; a budget refuses before anything is spent.

    Every attempt that is sent is reserved first, and then settled or released. An attempt whose outcome is
    not known (a timeout, an answer that cannot be read) may have been billed: it is settled with what was
    reserved.
    """

    def reserve(self, amounts: Sequence[Amount]) -> object:
        """Set aside the most that an attempt can use."""

    def settle(self, reservation: object, amounts: Sequence[Amount]) -> None:
        """Replace a reservation by what was used."""

    def release(self, reservation: object) -> None:
        """Give a reservation back: the attempt was refused and costs nothing."""


def total(replies: Sequence[Reply[Any]]) -> tuple[Amount, ...]:
    """Add up the usage of replies, per item and unit in the order of their first appearance.

    A sum with an unknown part is unknown; a sum with an estimated part is estimated.
    """
    sums: dict[tuple[str, str], Amount] = {}
    for amount in (each for reply in replies for each in reply.usage):
        key = (amount.item, amount.unit)
        sums[key] = _sum(sums[key], amount) if key in sums else amount
    return tuple(sums.values())


def joined(replies: Sequence[Reply[A]]) -> Reply[A]:
    """Replies of calls that came one after the other, row by row, as one; their details are left out."""
    return Reply(
        cast(A, np.concatenate([reply.value for reply in replies])),
        total(replies),
        sum(reply.ms for reply in replies),
        sum(reply.waited_ms for reply in replies),
        sum(reply.attempts for reply in replies),
    )


def _sum(one: Amount, other: Amount) -> Amount:
    unknown = one.amount is None or other.amount is None
    value = None if unknown else (one.amount or 0.0) + (other.amount or 0.0)
    basis = one.basis if one.basis == other.basis else Basis.MODELLED
    return Amount(one.item, one.unit, value, basis)
