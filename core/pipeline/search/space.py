"""A space of stacks as parameters with conditions, read off the stacks themselves.

The specification of each stack is walked key by key: where the stacks that agree so far still differ, the
key is a parameter whose choices are their values. So a value that exists only under another (a fusion of
hybrids, a dimension of one model) is only ever chosen under it, and each choice of all ends at a stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from core.records import JsonMap, Stack, canonical_json

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
            choices = np.unique(self._codes[rows, column])
            if len(choices) > 1:
                name, values = self._parameter(key, choices)
                chosen = choices[values.index(suggest(name, values))]
                rows = rows[self._codes[rows, column] == chosen]
        return int(rows[0])

    def parameters(self, row: int) -> Mapping[str, tuple[Value, tuple[Value, ...]]]:
        """Return the parameters that lead to a stack: name → its value and all choices."""
        if row not in self._known:
            made: dict[str, tuple[Value, tuple[Value, ...]]] = {}

            def follow(name: str, values: Sequence[Value]) -> Value:
                value = own[name.partition(" among ")[0]]
                made[name] = value, tuple(values)
                return value

            own: dict[str, Value] = {
                key: self._values[key][self._codes[row, at]] for at, key in enumerate(self._keys)
            }
            self.choose(follow)
            self._known[row] = made
        return self._known[row]

    def nearest(self, row: int, free: NDArray[np.bool_], rng: np.random.Generator) -> int:
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

    def _parameter(self, key: str, choices: NDArray[np.int32]) -> tuple[str, tuple[Value, ...]]:
        values = tuple(self._values[key][each] for each in choices)
        whole = {*values} == {*self._values[key]} - {ABSENT}  # one name always has the same choices
        return (key if whole else f"{key} among {', '.join(map(str, values))}"), values


def _leaves(spec: JsonMap, before: str = "") -> Iterator[tuple[str, Value]]:
    for key, value in spec.items():
        name = f"{before}{key}"
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{name}.")
        else:
            yield name, value if isinstance(value, str | int | float) else canonical_json(value)
