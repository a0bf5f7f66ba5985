"""The state of the refinement of one query: the next batch, the judged orders, the resulting order.

A driver asks `batch()`, has it judged, answers `told(order)` or `skipped()`, and writes `state()` after each.
The methods differ in how they learn from an order (`_learn`) and in how they sort. A state
is stored as its input and the judged orders, and restored by replaying them: it continues exactly as it
would have, and a checkpoint is small. Settings have the values of the paper (CLQ §3.4).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from hashlib import blake2b
from operator import ne
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from core.arrays import Floats
from core.errors import InputError, UnknownNameError
from core.records import JsonMap

RefineMethod = Literal["locks", "map"]
METHODS: tuple[RefineMethod, ...] = get_args(RefineMethod)
TOP = 20  # Ranks of an order that have to be stable; the paper's Top-20
MARGINS_ONLY = 0  # Value of `confirmations` that locks by margins alone

_LEAST: Mapping[str, float] = {
    "batch": 2, "confirmations": MARGINS_ONLY, "stable": 1, "z": 0, "exposures": 0, "turns": 1, "clip": 1e-6,
    "step": 1e-6, "least_step": 1e-6, "recentre": 1, "prior": 1e-6, "scale": 1e-6, "sure": 0.5,
}  # fmt: skip
RankedPair = tuple[int, int]  # Two items, the better one first


@dataclass(frozen=True, slots=True, kw_only=True)
class RefineSettings:
    """Settings of the refinement of one query; the same for every query of a golden set."""

    method: RefineMethod = "locks"  # "locks" (Algorithm 1) or "map" (Plackett–Luce maximum a posteriori)
    batch: int = 5  # Passages that the judge orders at once
    confirmations: int = 3  # Consistent judgements after which a pair is locked; 0 = by margins only
    stable: int = 3  # Turns for which the Top-20 must be the same ordered list (the paper 3, its tool 15)
    z: float = 1.0  # Standard deviations that a margin has to exceed on either side
    exposures: int = 2  # Batches that every passage must be in before the refinement may stop
    turns: int = 300  # Maximum number of turns
    clip: float = 0.2  # Largest change of a score in one turn
    # Size of the first step of the scores; it decreases with the square root of 1 + turn / 50
    step: float = 0.05
    least_step: float = 0.01  # Lower bound of the step
    recentre: int = 50  # Number of turns after which the mean of the scores is reset to 0
    prior: float = 1.0  # Precision of the prior of `map`
    scale: float = 1.5  # Value of one grade in the scores of `map`
    # `map` stops when the pairs inside the Top-20, and those across its edge, are each in the right order
    # with this probability (mean over the pairs)
    sure: float = 0.9

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        if self.method not in METHODS:
            raise UnknownNameError("method of refinement", self.method, METHODS)
        for name, least in _LEAST.items():
            if not getattr(self, name) >= least:
                raise InputError(
                    f"{name} = {getattr(self, name)} is not allowed.", do=f"Use {least:g} or more."
                )
        if self.sure > 1:
            raise InputError(f"sure = {self.sure} is not a probability.", do="Use 0.5 to 1.")

    def as_json(self) -> dict[str, Any]:
        """Return every setting by its name."""
        return asdict(self)

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> RefineSettings:
        """Return the settings named in a specification or a checkpoint; the others keep their defaults.

        Raises:
            UnknownNameError: If there is no such setting or method.
            InputError: If a value is out of range or not of its type.
        """
        known = {field.name: type(field.default) for field in fields(cls)}
        for name, value in given.items():
            if name not in known:
                raise UnknownNameError("setting of the refinement", name, known)
            kinds = (int, float) if known[name] is float else (known[name],)
            if isinstance(value, bool) or not isinstance(value, kinds):
                raise InputError(f"{name} = {value!r} is not allowed.", do=f"Give a {known[name].__name__}.")
        return cls(**given)


class RefinePoint(NamedTuple):
    """One point of the convergence curve."""

    turn: int  # The turn after which it was taken, from 1
    changed: int  # Ranks in the Top-20 whose item changed since the point before
    settled: float  # Progress: pairs locked ("locks"), or the probability that `sure` is about ("map")


class ItemState(NamedTuple):
    """State of one item."""

    item: int  # Position in the input
    rank: int  # Rank in the order, from 1
    score: float  # Score after the last turn; for `map` the mean of the posterior (its mode)
    exposures: int  # Batches that it was in
    information: float  # Inverse of the variance of the score
    locks: int  # Locked pairs with the item
    contradictions: int  # Judgements with the item that contradict a path of locks


class Refinement(ABC):
    """The refinement of one query, with items as positions 0..n-1: sampling, counting, and when to stop."""

    every = 1  # Number of orders after which the Top-20 is checked for changes

    def __init__(
        self,
        grades: Sequence[float],
        ranks: Sequence[float],
        ids: Sequence[str],
        settings: RefineSettings,
        seed: str,
    ) -> None:
        if not len(grades) == len(ranks) == len(ids):
            raise InputError(f"{len(grades)} grades, {len(ranks)} ranks and {len(ids)} ids do not match.")
        if len(set(ids)) < len(ids):
            raise InputError("A passage is there twice.", do="Give every passage once.")
        self.ids = list(ids)
        self.settings = settings
        self.turns = 0  # Batches judged or skipped
        self.skips = 0  # Batches that were skipped
        self.curve: list[RefinePoint] = []  # A point per judged batch; for `map` per five
        self.locks: list[RankedPair] = []  # In the order in which they were locked
        self.contradictions: list[RankedPair] = []  # Pairs judged against a path of locks, one for each time
        self._given = {"grades": list(grades), "ranks": list(ranks), "ids": self.ids, "seed": seed}
        self._grades = [float(grade) for grade in grades]
        self._log: list[list[int] | None] = []
        self._exposures = [0] * len(ids)
        self._streak = 0
        self._batch: tuple[int, ...] | None = None
        # Order of the items if nothing else distinguishes two of them
        self._placed = sorted(range(len(ids)), key=lambda item: (ranks[item], ids[item]))
        self._top: list[int] = sorted(self._placed, key=lambda item: -self._grades[item])[:TOP]
        self._begin()

    @abstractmethod
    def _begin(self) -> None:
        """Create the state that only this method needs; the shared state already exists."""

    @abstractmethod
    def order(self, first: int | None = None) -> list[int]:
        """Return the items, best first; all, or the first few."""

    @abstractmethod
    def _learn(self, order: Sequence[int]) -> None:
        """Learn from one order; `turns` still holds the number of the turn, from 0."""

    @abstractmethod
    def _scores(self) -> Sequence[float]:
        """Return the score of every item."""

    @abstractmethod
    def _information(self) -> Sequence[float]:
        """Return the information about every item, the inverse of its score's variance."""

    @abstractmethod
    def _known(self) -> Floats:
        """Return how well known each item is at equal exposures, in units of exposures."""

    @abstractmethod
    def _settled(self) -> float:
        """Return the progress for the curve; called once per check of the Top-20."""

    @abstractmethod
    def _rest(self) -> bool:
        """Return whether the order is stable."""

    @property
    def stopped(self) -> str:
        """Why the refinement stopped: "stable", "limit", "too few"; "" while it continues."""
        if len(self._grades) < self.settings.batch:
            return "too few"
        if min(self._exposures) >= self.settings.exposures and self._rest():
            return "stable"
        return "limit" if self.turns >= self.settings.turns else ""

    def batch(self) -> tuple[int, ...] | None:
        """Return the next batch to judge, or None if stopped; it is the same until told or skipped."""
        if self._batch is None and not self.stopped:
            self._batch = self._sample()
        return self._batch

    def _sample(self) -> tuple[int, ...]:
        """Draw a batch with the least seen and least known items first, and some randomness.

        It is shuffled, because a judge may favour the first.
        """
        text = f"{self._given['seed']}/{self.turns}".encode()
        random = np.random.default_rng(int.from_bytes(blake2b(text, digest_size=8).digest(), "big"))
        need = np.array(self._exposures) + self._known() + random.random(len(self._grades))
        least = np.argsort(need, kind="stable")[: self.settings.batch]
        return tuple(random.permutation(least).tolist())

    def told(self, order: Sequence[int]) -> None:
        """Learn from the judge's total order of the batch, best first.

        Raises:
            InputError: If it isn't a permutation of the batch.
        """
        if self._batch is None or sorted(order) != sorted(self._batch):
            raise InputError(f"{list(order)} is not an order of the batch {list(self._batch or ())}.")
        self._take(list(order))

    def skipped(self) -> None:
        """Record that the judge could not order a batch; the next turn has another one."""
        if self.batch() is None:
            raise InputError("There is no batch to skip.")
        self._take(None)

    def _take(self, order: list[int] | None) -> None:
        self._log.append(order)
        self._batch = None
        if order is None:
            self.skips += 1
            self.turns += 1
            return
        for item in order:
            self._exposures[item] += 1
        self._learn(order)
        self.turns += 1
        if (self.turns - self.skips) % self.every:
            return
        top = self.order(TOP)
        changed = sum(map(ne, top, self._top))
        self._streak = 0 if changed else self._streak + 1
        self._top = top
        self.curve.append(RefinePoint(self.turns, changed, self._settled()))

    def rows(self) -> list[ItemState]:
        """List the state of every item, best first."""
        locks, against = ([0] * len(self._grades) for _ in range(2))
        for counts, pairs in ((locks, self.locks), (against, self.contradictions)):
            for pair in pairs:
                for item in pair:
                    counts[item] += 1
        scores, information = self._scores(), self._information()
        return [
            ItemState(
                item, place, float(scores[item]), self._exposures[item], float(information[item]),
                locks[item], against[item],
            )
            for place, item in enumerate(self.order(), start=1)
        ]  # fmt: skip

    def state(self) -> JsonMap:
        """Return the state as JSON, for `restore`."""
        return {**self._given, "settings": self.settings.as_json(), "log": [*self._log]}

    def replay(self, log: Sequence[Sequence[int] | None]) -> None:
        """Replay the recorded orders."""
        items = set(range(len(self._grades)))
        for order in log:
            if order is not None and not (len(set(order)) == len(order) and items.issuperset(order)):
                raise ValueError(order)
            self._take(None if order is None else list(order))
