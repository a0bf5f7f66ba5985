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
