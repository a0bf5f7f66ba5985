"""What can be set of the listwise refinement (stage S6), with the paper's values (CLQ §3.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from core.errors import InputError, UnknownNameError

Method = Literal["locks", "map"]
METHODS: tuple[Method, ...] = get_args(Method)
TOP = 20
"""Places of an order that have to come to rest; the paper's Top-20."""
MARGINS_ONLY = 0
"""Confirmations of those who lock by margins alone."""

_LEAST: Mapping[str, float] = {
    "batch": 2, "confirmations": MARGINS_ONLY, "stable": 1, "z": 0, "exposures": 0, "turns": 1, "clip": 1e-6,
    "step": 1e-6, "least_step": 1e-6, "recentre": 1, "prior": 1e-6, "scale": 1e-6, "sure": 0.5,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class RefineSettings:
    """Settings of the refinement of one query; the same for every query of a golden set."""

    method: Method = "locks"  # "locks" (Algorithm 1) or "map" (Plackett–Luce maximum a posteriori)
    batch: int = 5  # Passages that the judge puts in order at once
    confirmations: int = 3  # Judgements of a pair after which it is locked; 0 = by margins only
    stable: int = 3  # Turns for which the Top-20 must be the same ordered list (the paper 3, its tool 15)
    z: float = 1.0  # Standard deviations that a margin has to exceed on either side
    exposures: int = 2  # Batches that every passage has to be in before the refinement may stop
    turns: int = 300  # Turns after which it stops at the latest
    clip: float = 0.2  # Most that a turn moves a score
    # Size of the first step of the scores; it shrinks by the inverse root of 1 + turn / 50
    step: float = 0.05
    least_step: float = 0.01  # Size under which the step does not shrink
    recentre: int = 50  # After every so many turns the mean of the scores becomes 0
    prior: float = 1.0  # Precision of the prior of `map`
    scale: float = 1.5  # What one grade is worth in the scores of `map`
    # `map` stops when the pairs inside the Top-20, and those across its edge, are each in the right order
    # with this probability (mean over the pairs)
    sure: float = 0.9

    def __post_init__(self) -> None:
        """Refuse what is out of range.

        Raises:
            UnknownNameError: If there is no such method.
            InputError: If a number is out of range.
        """
        if self.method not in METHODS:
            raise UnknownNameError("method of refinement", self.method, METHODS)
        for name, least in _LEAST.items():
            if not getattr(self, name) >= least:
                raise InputError(
                    f"{name} = {getattr(self, name)} is not allowed.", do=f"Use {least:g} or more."
                )
        if self.sure > 1:
            raise InputError(f"sure = {self.sure} is no probability.", do="Use 0.5 to 1.")

    def as_json(self) -> dict[str, Any]:
        """Every setting by its name."""
        return asdict(self)

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> RefineSettings:
        """Settings of what a specification or a checkpoint names; the others have their defaults.

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
