"""What to evaluate next: stacks proposed by Optuna from what is known of others."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from core.errors import UnknownNameError
from core.extras import SEARCH_REQUIREMENTS, needed
from core.pipeline.search.space import Space, Value

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Sampler = Literal["tpe", "nsga2", "random"]
POPULATION = 32
"""Stacks of a generation of NSGA-II, in the order in which they were evaluated."""
_TRIES = 2
"""Proposals of stacks that are known already, before the nearest that is not is taken."""


@dataclass(frozen=True, slots=True)
class Told:
    """What is known of a stack."""

    row: int  # its place in the space
    values: tuple[float, ...]  # one per objective
    broken: tuple[float, ...] = ()  # by how much it breaks each limit; ≤ 0 = it keeps it


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What good stacks keep; None = no limit."""

    ms: float | None = None
    usd: float | None = None  # per 1,000 queries
    quality: float | None = None  # the worst
    harm: float | None = None

    def broken(
        self, figures: tuple[Floats, Floats, Floats], harm: Floats | None, *, higher_is_better: bool
    ) -> Floats:
        """Return by how much stacks break each limit [S, L]; ≤ 0 = it is kept, or not known."""
        quality, ms, usd = figures
        up = 1 if higher_is_better else -1
        parts = [
            None if self.ms is None else ms / self.ms - 1,
            None if self.usd is None else usd / max(self.usd, 1e-9) - 1,
            None if self.quality is None else up * (self.quality - quality),
            None if self.harm is None or harm is None else harm - self.harm,
        ]
        set_ones = [np.nan_to_num(each, nan=0.0) for each in parts if each is not None]
        return np.column_stack(set_ones) if set_ones else np.empty((len(quality), 0))


NO_LIMITS = Limits()


def tell(
    rows: Sequence[int],
    figures: tuple[Floats, Floats, Floats],
    limits: Limits,
    *,
    harm: Floats | None = None,
    higher_is_better: bool,
) -> tuple[list[Told], list[bool]]:
    """Return what proposals go by, and the direction of each objective.

    Args:
        rows: Places of the stacks in the space.
        figures: Of each the quality, milliseconds and dollars; of time and money only what is known of all
            and tells them apart is an objective.
        limits: What good stacks keep.
        harm: Of each, where that is known.
        higher_is_better: The direction of the quality.
    """
    quality, ms, usd = figures
    axes = [(quality, higher_is_better)]
    axes += [(np.log10(np.maximum(each, 1e-6)), False) for each in (ms, usd) if _compares(each)]
    broken = limits.broken(figures, harm, higher_is_better=higher_is_better)
    known = [
        Told(row, tuple(float(axis[at]) for axis, _ in axes), tuple(map(float, broken[at])))
        for at, row in enumerate(rows)
        if not any(np.isnan(axis[at]) for axis, _ in axes)
    ]
    return known, [up for _, up in axes]


def _compares(values: Floats) -> bool:
    """Whether an axis is known and tells stacks apart."""
    return bool(values.size) and not np.isnan(values).any() and float(np.ptp(values)) > 0


def optuna() -> ModuleType:
    """Return the package; an error names the command that installs it."""
    return needed("optuna", SEARCH_REQUIREMENTS, 'method = "search"')


@contextmanager
def quiet() -> Iterator[ModuleType]:
    """Use the package without its log and its notes about experimental options."""
    package = optuna()
    level = package.logging.get_verbosity()
    package.logging.set_verbosity(package.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield package
        finally:
            package.logging.set_verbosity(level)


def propose(
    space: Space,
    told: Sequence[Told],
    count: int,
    *,
    maximised: Sequence[bool],
    sampler: Sampler = "tpe",
    seed: int = 0,
) -> list[int]:
    """Propose stacks of which nothing is known; the same ones for the same knowledge and seed.

    Args:
        space: All stacks.
        told: What is known.
        count: How many at most; fewer where the space has no more.
        maximised: Direction of each objective.
        sampler: "tpe" (multi-objective; Ozaki et al., GECCO 2020), "nsga2" (Deb et al., 2002) or "random".
        seed: Of the proposals.
    """
    if sampler not in get_args(Sampler):
        raise UnknownNameError("sampler", sampler, get_args(Sampler))
    rng = np.random.default_rng([seed, len(told)])
    free = np.ones(len(space), dtype=np.bool_)
    free[[each.row for each in told]] = False
    made: list[int] = []
    with quiet() as package:
        study = package.create_study(
            directions=["maximize" if each else "minimize" for each in maximised],
            sampler=_sampler(package, sampler, int(rng.integers(2**31)), limited=any(t.broken for t in told)),
        )
        study.add_trials([_trial(package, space, each, at // POPULATION) for at, each in enumerate(told)])
        while len(made) < count and free.any():
            row = _unknown(study, space, free, rng)
            free[row] = False
            made.append(row)
    return made


def distributions(
    package: ModuleType, params: Mapping[str, tuple[Value, tuple[Value, ...]]]
) -> dict[str, Any]:
    """Return the distributions of parameters as `Space.parameters` gives them."""
    return {
        name: package.distributions.CategoricalDistribution(choices) for name, (_, choices) in params.items()
    }


def _unknown(study: Any, space: Space, free: Mask, rng: np.random.Generator) -> int:  # noqa: ANN401
    """Return a proposed stack that is free, or the free one that is nearest to the last proposal."""
    row = -1
    for _ in range(_TRIES):
        row = space.choose(study.ask().suggest_categorical)
        if free[row]:
            return row
    return space.nearest(row, free, rng)


def _sampler(package: ModuleType, name: Sampler, seed: int, *, limited: bool) -> Any:  # noqa: ANN401
    limits = (lambda trial: trial.user_attrs.get("broken", (0.0,))) if limited else None
    made = package.samplers
    if name == "random":
        return made.RandomSampler(seed=seed)
    if name == "nsga2":
        return made.NSGAIISampler(seed=seed, constraints_func=limits, population_size=POPULATION)
    return made.TPESampler(
        seed=seed, multivariate=True, group=True, n_startup_trials=1, constraints_func=limits
    )


def _trial(package: ModuleType, space: Space, told: Told, generation: int) -> Any:  # noqa: ANN401
    params = space.parameters(told.row)
    return package.trial.create_trial(
        values=list(told.values),
        params={name: value for name, (value, _) in params.items()},
        distributions=distributions(package, params),
        system_attrs={
            package.samplers.NSGAIISampler._get_generation_key(): generation,
            **({"constraints": list(told.broken)} if told.broken else {}),
        },
    )
