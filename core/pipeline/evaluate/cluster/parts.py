"""Divides stacks among tasks: few, because each costs time, and of stacks that share much."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from core.pipeline.evaluate.steps import Route, Step

_MOST = 32
"""Stacks of a task at most: what a machine that is lost loses at most of each of its processors."""
_SHARES = 4
"""Each task takes one of so many shares of what is left for every slot, so that all end together."""


@dataclass(slots=True, eq=False)
class Part:
    """What one task asks: stacks with the steps that they alone need, or steps that several tasks need."""

    steps: list[Step]
    routes: list[Route] = field(default_factory=list)
    needs: list[Part] = field(default_factory=list)  # whose answers it takes; they come before it
    answers: Any = None  # where Ray holds its answers

    @property
    def counts(self) -> list[int]:
        """How many of the steps each stack is the first to need; all at once where it has no stacks."""
        if not self.routes:
            return [len(self.steps)]
        left, counts = set(self.steps), []
        for route in self.routes:
            counts.append(len(left & set(route.steps)))
            left -= set(route.steps)
        return counts


def parts(routes: Sequence[Route], slots: int) -> list[Part]:
    """Divide stacks among tasks, so many of which run at once; what they need from others hangs on them."""
    users: dict[Step, list[int]] = {}
    for number, route in enumerate(routes):
        for step in route.steps:
            users.setdefault(step, []).append(number)
    pieces = _divided(routes, users, slots)
    piece_of = {number: place for place, piece in enumerate(pieces) for number in piece}
    whole = [Part([], [routes[number] for number in piece]) for piece in pieces]
    shared: dict[tuple[int, ...], Part] = {}
    part_of: dict[Step, Part] = {}
    for step, by in users.items():  # what is needed before what needs it
        places = {piece_of[number] for number in by}
        part = whole[places.pop()] if len(places) == 1 else shared.setdefault(tuple(by), Part([]))
        part.steps.append(step)
        part_of[step] = part
    for part in (*whole, *shared.values()):
        taken = [step for route in part.routes for step in route.steps]
        needed = [part_of[step] for step in taken or [each for s in part.steps for each in _taken(s)]]
        part.needs = [each for each in dict.fromkeys(needed) if each is not part]
    return whole


def _divided(routes: Sequence[Route], users: dict[Step, list[int]], slots: int) -> list[list[int]]:
    """Places of stacks, task by task; stacks that share much stand together."""
    most = _size(len(routes), slots)
    first = {step: place for place, step in enumerate(users)}
    paths = [
        sorted((-len(users[step]), first[step]) for step in route.steps if len(users[step]) <= most)
        for route in routes
    ]
    order = sorted(range(len(routes)), key=lambda number: [place for _, place in paths[number]])
    pieces = []
    while order:
        size = _size(len(order), slots)
        common = {
            end: _common(paths[order[end - 1]], paths[order[end]])
            for end in range(-(-size // 2), min(size, len(order) - 1) + 1)
        }
        end = min(common, key=lambda end: (common[end], -end), default=len(order))
        pieces.append(order[:end])
        order = order[end:]
    return pieces


def _size(left: int, slots: int) -> int:
    return min(_MOST, max(1, left // (_SHARES * slots)))


def _common(one: Sequence[Any], other: Sequence[Any]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _taken(step: Step) -> Iterator[Step]:
    """What a step takes of the steps before it: their results, and the text that is asked."""
    yield from step.inputs
    if step.rewrite is not None and step.rewrite is not step:
        yield step.rewrite
