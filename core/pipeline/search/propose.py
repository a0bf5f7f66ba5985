"""What to evaluate next: stacks proposed by Optuna from what is known of others."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.extras import SEARCH_REQUIREMENTS, needed
from core.pipeline.search.space import Space
from core.pipeline.sweep.fields import SearchLimits

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
POPULATION = 32
"""Stacks of a generation of NSGA-II, in the order in which they were evaluated."""
_TRIES = 2
"""Proposals of stacks that are known already, before the nearest that is not is taken."""


@dataclass(frozen=True, slots=True)
class Told:
    """What is known of a stack that was begun."""

    row: int  # its place in the space
    values: tuple[float, ...]  # one per objective; empty where its quality is not known
    broken: tuple[float, ...] = ()  # by how much it breaks each limit; ≤ 0 = it keeps it


def tell(
    rows: Sequence[int],
    figures: tuple[Floats, Floats, Floats],
    limits: SearchLimits,
    *,
    harm: Floats | None = None,
    higher_is_better: bool,
) -> tuple[list[Told], list[bool]]:
    """Return what proposals go by, and which objectives are maximised.

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
    axes += [(np.log10(np.maximum(each, 1e-6)), False) for each in (ms, usd) if np.ptp(each) > 0]
    broken = _broken(figures, harm, limits, higher_is_better=higher_is_better)
    values = np.column_stack([axis for axis, _ in axes])
    known = [
        Told(row, () if np.isnan(own).any() else tuple(own.tolist()), tuple(over.tolist()))
        for row, own, over in zip(rows, values, broken, strict=True)
    ]
    return known, [up for _, up in axes]


def _broken(
    figures: tuple[Floats, Floats, Floats],
    harm: Floats | None,
    limits: SearchLimits,
    *,
    higher_is_better: bool,
) -> Floats:
    """Return by how much stacks break each limit [S, L]; ≤ 0 = it is kept, or not known."""
    quality, ms, usd = figures
    up = 1 if higher_is_better else -1
    parts = [
        None if limits.sla is None else ms / limits.sla - 1,
        None if limits.budget is None else usd / max(limits.budget, 1e-9) - 1,
        None if limits.floor is None else up * (limits.floor - quality),
        None if limits.harm is None or harm is None else harm - limits.harm,
    ]
    limited = [np.nan_to_num(each, nan=0.0) for each in parts if each is not None]
    return np.column_stack(limited) if limited else np.empty((len(quality), 0))


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
    sampler: str = "tpe",
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
    rng = np.random.default_rng([seed, len(told)])
    free = np.ones(len(space), dtype=np.bool_)
    free[[each.row for each in told]] = False
    made: list[int] = []
    with quiet() as package:
        study = package.create_study(
            directions=["maximize" if each else "minimize" for each in maximised],
            sampler=_sampler(package, sampler, int(rng.integers(2**31)), limited=any(t.broken for t in told)),
        )
        generation = package.samplers.NSGAIISampler._get_generation_key()
        for at, each in enumerate(stack for stack in told if stack.values):
            limited = {"constraints": list(each.broken)} if each.broken else {}
            trial = package.trial.create_trial(
                values=list(each.values),
                system_attrs={generation: at // POPULATION, **limited},
                **parameters(package, space, each.row),
            )
            study.add_trial(trial)
        while len(made) < count and free.any():
            row = _free(study, space, free, rng)
            free[row] = False
            made.append(row)
    return made


def parameters(package: ModuleType, space: Space, row: int) -> dict[str, Any]:
    """Return the parameters of a stack and their distributions, as trials have them."""
    own = space.parameters(row)
    categorical = package.distributions.CategoricalDistribution
    return {
        "params": {name: value for name, (value, _) in own.items()},
        "distributions": {name: categorical(choices) for name, (_, choices) in own.items()},
    }


def _free(study: Any, space: Space, free: Mask, rng: np.random.Generator) -> int:  # noqa: ANN401
    """Return a proposed stack that is free, or the free one that is nearest to the last proposal."""
    for _ in range(_TRIES):
        row = space.choose(study.ask().suggest_categorical)
        if free[row]:
            return row
    return space.nearest(row, free, rng)


def _sampler(package: ModuleType, name: str, seed: int, *, limited: bool) -> Any:  # noqa: ANN401
    limits = (lambda trial: trial.user_attrs.get("broken", (0.0,))) if limited else None
    made = package.samplers
    if name == "random":
        return made.RandomSampler(seed=seed)
    if name == "nsga2":
        return made.NSGAIISampler(seed=seed, constraints_func=limits, population_size=POPULATION)
    return made.TPESampler(
        seed=seed, multivariate=True, group=True, n_startup_trials=1, constraints_func=limits
    )
