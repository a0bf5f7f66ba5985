"""Proposals of what to evaluate next: Optuna chooses stacks of a space given the results of others.

A space is read off the stacks themselves, as parameters with conditions: the specification of each stack is
walked key by key, and where the stacks that agree so far still differ, the key is a parameter whose choices
are their values. So a value that exists only under another (a fusion of hybrids, a dimension of one model) is
only ever chosen under it, and every complete choice leads to a stack.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from core.arrays import Floats, Mask
from core.extras import SEARCH_REQUIREMENTS, needed
from core.pipeline.sweep.fields import SearchLimits
from core.records import JsonMap, Stack, canonical_json

POPULATION = 32
"""Stacks of a generation of NSGA-II, in the order in which they were evaluated."""
_TRIES = 2
"""Attempts that end at a known stack, before the nearest free one is taken."""


Value: TypeAlias = "str | int | float | bool"
ABSENT = "–"
"""The value of a key that a stack lacks: its default, or none."""


class Space:
    """Stacks to choose among, each once."""

    def __init__(self, stacks: Sequence[Stack]) -> None:
        self.stacks = tuple(stacks)
        rows = [dict(_leaves(stack.spec)) for stack in self.stacks]
        keys = list(dict.fromkeys(key for row in rows for key in row))
        self._values = {
            key: sorted(
                {row.get(key, ABSENT) for row in rows}, key=lambda value: (isinstance(value, str), value)
            )
            for key in keys
        }
        self._keys = [key for key in keys if len(self._values[key]) > 1]
        places = {key: {value: at for at, value in enumerate(self._values[key])} for key in self._keys}
        self._codes = np.array(
            [[places[key][row.get(key, ABSENT)] for key in self._keys] for row in rows], dtype=np.int32
        ).reshape(len(rows), len(self._keys))
        self._known: dict[int, dict[str, tuple[Value, tuple[Value, ...]]]] = {}

    def __len__(self) -> int:
        return len(self.stacks)

    def choose(self, suggest: Callable[[str, Sequence[Value]], Value]) -> int:
        """Return the place of the stack that choices lead to, parameter by parameter."""
        rows = np.arange(len(self))
        for column, key in enumerate(self._keys):
            choices = np.flatnonzero(np.bincount(self._codes[rows, column]))  # counting needs no sorting
            if len(choices) > 1:
                name, values = self._parameter(key, choices)
                chosen = choices[values.index(suggest(name, values))]
                rows = rows[self._codes[rows, column] == chosen]
        return int(rows[0])

    def parameters(self, row: int) -> Mapping[str, tuple[Value, tuple[Value, ...]]]:
        """Return the parameters that lead to a stack: name → its value and all choices."""
        if row not in self._known:
            parameters: dict[str, tuple[Value, tuple[Value, ...]]] = {}

            def follow(name: str, values: Sequence[Value]) -> Value:
                value = own[name.partition(" among ")[0]]
                parameters[name] = value, tuple(values)
                return value

            own: dict[str, Value] = {
                key: self._values[key][self._codes[row, at]] for at, key in enumerate(self._keys)
            }
            self.choose(follow)
            self._known[row] = parameters
        return self._known[row]

    def nearest(self, row: int, free: Mask, rng: np.random.Generator) -> int:
        """Return the free stack that differs from a stack in the fewest keys."""
        apart = (self._codes != self._codes[row]).sum(axis=1) + rng.random(len(self)) / 2
        return int(np.where(free, apart, np.inf).argmin())

    def spread(self, count: int, rng: np.random.Generator) -> list[int]:
        """Return stacks that show each value about as often as any other of its key."""
        seen = [np.zeros(len(self._values[key])) for key in self._keys]
        free, chosen = np.ones(len(self), dtype=np.bool_), []
        for _ in range(min(count, len(self))):
            crowd = sum((seen[at][self._codes[:, at]] for at in range(len(self._keys))), np.zeros(len(self)))
            row = int(np.where(free, crowd + rng.random(len(self)) / 2, np.inf).argmin())
            free[row] = False
            chosen.append(row)
            for at in range(len(self._keys)):
                seen[at][self._codes[row, at]] += 1
        return chosen

    def _parameter(self, key: str, choices: NDArray[np.intp]) -> tuple[str, tuple[Value, ...]]:
        values = tuple(self._values[key][choice] for choice in choices)
        whole = {*values} == {*self._values[key]} - {ABSENT}  # one name always has the same choices
        return (key if whole else f"{key} among {', '.join(map(str, values))}"), values


def _leaves(spec: JsonMap, before: str = "") -> Iterator[tuple[str, Value]]:
    for key, value in spec.items():
        name = f"{before}{key}"
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{name}.")
        else:
            yield name, value if isinstance(value, str | int | float) else canonical_json(value)


@dataclass(frozen=True, slots=True)
class StackTrial:
    """Results and broken limits of a stack that was started."""

    row: int  # its place in the space
    values: tuple[float, ...]  # one per objective; empty if its quality is not known
    broken: tuple[float, ...] = ()  # by how much it breaks each limit; ≤ 0 = it keeps it


def tell(
    rows: Sequence[int],
    figures: tuple[Floats, Floats, Floats],
    limits: SearchLimits,
    *,
    harm: Floats | None = None,
    higher_is_better: bool,
) -> tuple[list[StackTrial], list[bool]]:
    """Return the data for proposals, and which objectives are maximised.

    Time and cost are objectives only if they are known for all stacks and distinguish them.
    """
    quality, ms, usd = figures
    axes = [(quality, higher_is_better)]
    axes += [(np.log10(np.maximum(figure, 1e-6)), False) for figure in (ms, usd) if np.ptp(figure) > 0]
    broken = _broken(figures, harm, limits, higher_is_better=higher_is_better)
    values = np.column_stack([axis for axis, _ in axes])
    known = [
        StackTrial(row, () if np.isnan(own).any() else tuple(own.tolist()), tuple(over.tolist()))
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
        None if limits.sla_ms is None else ms / limits.sla_ms - 1,
        None if limits.budget is None else usd / max(limits.budget, 1e-9) - 1,
        None if limits.min_quality is None else up * (limits.min_quality - quality),
        None if limits.max_harm is None or harm is None else harm - limits.max_harm,
    ]
    limited = [np.nan_to_num(part, nan=0.0) for part in parts if part is not None]
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
    trials: Sequence[StackTrial],
    count: int,
    *,
    maximised: Sequence[bool],
    sampler: str = "tpe",
    seed: int = 0,
) -> list[int]:
    """Propose at most this many stacks that were not started; the same ones for the same knowledge and seed.

    The sampler is "tpe" (multi-objective; Ozaki et al., GECCO 2020), "nsga2" (Deb et al., 2002) or "random".
    """
    rng = np.random.default_rng([seed, len(trials)])
    free = np.ones(len(space), dtype=np.bool_)
    free[[trial.row for trial in trials]] = False
    proposed: list[int] = []
    with quiet() as package:
        study = package.create_study(
            directions=["maximize" if up else "minimize" for up in maximised],
            sampler=_sampler(
                package, sampler, int(rng.integers(2**31)), limited=any(t.broken for t in trials)
            ),
        )
        generation = package.samplers.NSGAIISampler._get_generation_key()
        for at, trial in enumerate(known for known in trials if known.values):
            limited = {"constraints": list(trial.broken)} if trial.broken else {}
            frozen = package.trial.create_trial(
                values=list(trial.values),
                system_attrs={generation: at // POPULATION, **limited},
                **parameters(package, space, trial.row),
            )
            study.add_trial(frozen)
        while len(proposed) < count and free.any():
            row = _free(study, space, free, rng)
            free[row] = False
            proposed.append(row)
    return proposed


def parameters(package: ModuleType, space: Space, row: int) -> dict[str, Any]:
    """Return the parameters of a stack and their distributions, in the form of Optuna trials."""
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
    samplers = package.samplers
    if name == "random":
        return samplers.RandomSampler(seed=seed)
    if name == "nsga2":
        return samplers.NSGAIISampler(seed=seed, constraints_func=limits, population_size=POPULATION)
    return samplers.TPESampler(
        seed=seed, multivariate=True, group=True, n_startup_trials=1, constraints_func=limits
    )
